#!/bin/bash
# `uzram serve` refuses what makes no sense, with exit code 2 (the command line) or 1 (the machine),
# a message that names what was given and what was expected, and nothing left behind.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

refused=0

# refuse CODE 'TEXT...' ARGUMENTS...: each TEXT, separated by |, is in the message.
refuse() {
  local code=$1 texts=() text output status
  IFS='|' read -ra texts <<<"$2"
  shift 2
  output=$(timeout 30 "$UZRAM" serve --control "$work/control.sock" "$@" 2>&1)
  status=$?
  ((status == code)) || fail "serve $*: exit code $status, expected $code: $output"
  for text in "${texts[@]}"; do
    [[ $output == *"$text"* ]] || fail "serve $*: \"$text\" is not in its message: $output"
  done
  [[ $output == 'uzram: error: '* ]] || fail "serve $*: no message of ours: $output"
  ((refused++))
}

step 'command lines'
refuse 2 '--size' # no device at all
refuse 2 '"4X"|expected|K, M, G, T' --size 4X
refuse 2 '"0"|expected' --size 0
refuse 2 '"-1"|expected' --size=-1
refuse 2 '"17T"|at most 16T' --size 17T
refuse 2 '"99999999999999999999"' --size 99999999999999999999
refuse 2 '"lz5"|lz4, ' --size 1G --algorithm lz5
refuse 2 'level|1000|22' --size 1G --algorithm zstd --level 1000
refuse 2 '"high"|number' --size 1G --level high
refuse 2 '"fast"|nowait' --size 1G --mode fast
refuse 2 '"300"|256' --size 1G --workers 300
refuse 2 'workers 4|async or auto' --size 1G --mode nowait --workers 4
refuse 2 '"1024"|512 or 4096' --size 1G --block-size 1024
refuse 2 '"12Q"' --size 1G --mem-limit 12Q
refuse 2 '"a/b"|"/"' --size 1G --name a/b
refuse 2 '--device' --size 1G --device name=a,size=1G
refuse 2 '"a"|two' --device name=a,size=1G --device name=a,size=2G
refuse 2 'color|name, ' --device name=a,size=1G,color=red
refuse 2 'size' --device name=a
refuse 2 '"nowhere"|tcp:HOST:PORT' --size 1G --nbd nowhere
refuse 2 '"0"|1 to' --size 1G --max-connections 0
refuse 2 '"never"' --size 1G --handshake-timeout never
refuse 2 '--frobnicate' --size 1G --frobnicate
refuse 2 'surplus' --size 1G surplus
[[ -z $(ls "$work") ]] || fail "refused command lines left behind: $(ls "$work")"

step 'a control socket that answers, and paths that are no sockets'
start_server --name disk --size 1G
refuse 1 "control.sock|answers" --name other --size 1G
expect_server_alive 'after a second server was refused'
expect_equal 'size' "$(nbd disk size)" $((1 << 30))
mkdir "$work/other"
output=$("$UZRAM" serve --control "$work/other/control.sock" --name x --size 1G \
  --nbd "unix:$(socket_of disk)" 2>&1) && fail 'a socket that answers was taken over'
[[ $output == *disk.nbd*answers* ]] || fail "the message names no socket: $output"
expect_equal 'size' "$(nbd disk size)" $((1 << 30))
[[ -z $(ls "$work/other") ]] || fail "a failed start left behind: $(ls "$work/other")"
stop_server
echo precious >"$work/control.sock"
refuse 1 'control.sock|no socket' --name disk --size 1G
expect_equal 'file in the place of the socket' "$(cat "$work/control.sock")" precious
rm "$work/control.sock"
refuse 1 "missing" --name disk --size 1G --nbd "unix:$work/missing/x.nbd"
printf '   refusals: %d\n' "$refused"
