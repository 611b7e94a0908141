#!/bin/bash
# What goes wrong in a run of the bench is told by one line that names it; nothing is overwritten
# without consent.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# expect_refusal STATUS PATTERN ARGUMENT...: the command fails so, with one line on standard error.
expect_refusal() {
  local status=$1 pattern=$2 output
  shift 2
  output=$(timeout 60 "$UZRAM" bench "$@" 2>&1 >"$work/out")
  expect_equal "exit code of bench $*" $? "$status"
  [[ $output =~ $pattern ]] || fail "bench $*: \"$output\" lacks \"$pattern\""
  expect_equal "lines on standard error of bench $*" "$(wc -l <<<"$output")" 1
  [[ ! -s $work/out ]] || fail "bench $* printed: $(head -n 3 "$work/out")"
}

small=(--size 4M --rounds 1)

step 'options'
expect_refusal 2 'no suite.*pages' --
expect_refusal 2 'motor.*engine, codec or zram' pages --target motor
expect_refusal 2 'fast.*nowait, async or auto' async --target engine --mode fast
expect_refusal 2 '--method .threads.: expected sync or uring' discard --target engine --method threads
expect_refusal 2 '4X' pages --target engine --size 4X

step 'corpora'
expect_refusal 1 "$work/none" pages --target engine --corpus "$work/none"
printf 'x' >"$work/bad.pages"
expect_refusal 2 'bad.pages.*multiple of 4096' pages --target engine --corpus "$work/bad.pages"
head -c 100000 /dev/urandom >"$work/bad.pages.zst"
expect_refusal 1 'bad.pages.zst' pages --target engine --corpus "$work/bad.pages.zst"
mkdir "$work/empty"
expect_refusal 1 'empty.*pages' pages --target engine --corpus "$work/empty"

step 'a full target'
expect_refusal 1 'engine:mem-limit=1M.*fill.*ENOSPC' pages "${small[@]}" --buffer-random \
  --target codec,engine:mem-limit=1M

step 'result files'
expect_refusal 1 "$work/none.json" compare "$work/none.json" "$work/none.json"
printf '{"rows": 1' >"$work/bad.json"
expect_refusal 2 'bad.json' report "$work/bad.json" --html "$work/x.html"
expect_refusal 1 "$work/none/r.json" pages "${small[@]}" --target engine --json "$work/none/r.json"

# Not by permissions, which root does not ask for.
expect_refusal 1 '/proc/r.json' pages "${small[@]}" --target engine --json /proc/r.json
"$UZRAM" bench pages "${small[@]}" --target engine --buffer-random --json /dev/full \
  >"$work/out" 2>"$work/err"
expect_equal 'exit code where the results have no room' $? 1
grep -q '/dev/full.*No space' "$work/err" || fail "it does not say why: $(cat "$work/err")"
grep -q '^fill .*engine' "$work/out" || fail "the table is lost: $(cat "$work/out")"

step 'an NBD server that is not there, or vanishes'
expect_refusal 1 "$work/none.nbd" pages "${small[@]}" --buffer-random \
  --target "nbd+unix:///x?socket=$work/none.nbd"
start_server --name disk --size 64M
"$UZRAM" bench pages --size 64M --buffer-random --runtime 60 --target "$(uri_of disk)" \
  >"$work/run.out" 2>"$work/run.err" &
run=$!
at_exit "kill -KILL $run 2>/dev/null; wait $run 2>/dev/null"
has_writes() { (($(device_field disk orig_data_size) > 1 << 20)); }
wait_until 30 has_writes || fail "the load does not reach the server: $(cat "$work/run.err")"
kill_server
wait_until 30 gone "$run" || fail 'the run hangs'
wait "$run"
expect_equal 'exit code' $? 1
grep -q 'disk.nbd.*server' "$work/run.err" || fail "it does not say why: $(cat "$work/run.err")"

step 'an export that holds something wants consent'
start_server --name disk --size 64M
expect_success nbd disk fill 0 1M 1
expect_success nbd disk fill 4M 1M 2
expect_refusal 2 'target nbd[^ ]*: the first 4M .*--yes' pages "${small[@]}" --buffer-random --target "$(uri_of disk)"
expect_success nbd disk check 0 1M 1
expect_success "$UZRAM" bench pages "${small[@]}" --buffer-random --target "$(uri_of disk)" --yes
# The rest is as it was.
expect_success nbd disk check 4M 1M 2
stop_server

step 'an ordinary user'
if ((EUID == 0)) && command -v setpriv >/dev/null; then
  # Where the ordinary user may run it.
  install -m 755 "$UZRAM" "$work/uzram" && chmod 755 "$work"
  as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups "$work/uzram" bench pages)
  output=$("${as_nobody[@]}" "${small[@]}" --buffer-random 2>&1) || fail "it fails: $output"
  [[ $output =~ 'zram is left out' ]] || fail "it does not say what is left out: $output"
  output=$("${as_nobody[@]}" "${small[@]}" --buffer-random --target zram 2>&1) &&
    fail 'an ordinary user made a zram device'
  [[ $output =~ 'run as root' ]] || fail "it does not say why: $output"
fi

step 'block devices'
if ((EUID != 0)) || ! losetup --find >/dev/null 2>&1; then
  skip 'loop devices need root'
fi
truncate -s 64M "$work/image"
disk=$(losetup --find --show "$work/image")
at_exit "losetup -d $disk"
expect_refusal 2 "$disk.*first 4M.*--yes" pages "${small[@]}" --buffer-random --target "$disk"
mkfs.ext4 -q "$disk"
mkdir "$work/mnt"
mount "$disk" "$work/mnt"
at_exit "umount '$work/mnt' 2>/dev/null"
expect_refusal 1 "$disk.*mounted.*$work/mnt" pages "${small[@]}" --buffer-random \
  --target "$disk" --yes
umount "$work/mnt"
expect_success "$UZRAM" bench pages "${small[@]}" --buffer-random --target "$disk" --yes \
  --verify crc32c
