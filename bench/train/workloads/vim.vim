" Buffers with their undo history, registers, lists and dictionaries.
set hidden undolevels=1000 maxmem=2000000 maxmemtot=2000000
syntax on
exe 'edit' $FOLDER . '/records.tsv'
silent! %s/example\.org/example.net/
silent! %s/\t/ | /g
exe 'edit' $FOLDER . '/source.c'
silent! %s/total/sum/g
silent! 1,20000yank a
exe 'edit' $FOLDER . '/source.rs'
silent! %s/found/result/g
let words = {}
for line in readfile($FOLDER . '/docs.txt', '', 20000)
  for word in split(line)
    let words[word] = get(words, word, 0) + 1
  endfor
endfor
let records = map(readfile($FOLDER . '/records.tsv', '', 8000), 'split(v:val, "\t")')
call writefile([], $READY)
sleep 600
