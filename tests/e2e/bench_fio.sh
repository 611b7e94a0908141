#!/bin/bash
# bench/fio/run: the real fio against a server and a loop device, read back by uzram bench compare;
# what it refuses; and what it leaves behind when it is interrupted.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_tool fio fio
need_tool mkfs.ext4 e2fsprogs
run=$here/../../bench/fio/run
export TMPDIR=$work

# rows FILE: how many.
rows() { jq -er '.rows | length' "$1"; }

# The main process and four jobs.
five_fios() { (($(pgrep -c -f "^fio .*$work/") >= 5)); }
no_fio() { ! pgrep -f "^fio .*$work/" >/dev/null; }

start_server --name disk --size 64M

# Beyond what the runs may use.
expect_success nbd disk fill 16M 1M 1

step 'six tests for one and two jobs'
expect_success "$run" "$(uri_of disk)" --yes --size 16M --jobs 1-2 --rounds 1 --json "$work/a.json"
expect_equal 'rows' "$(rows "$work/a.json")" $((2 * 2 * 8))
expect_equal 'latencies, as many' \
  "$(jq '[.rows[] | select(.latency_ns.max > 0)] | length' "$work/a.json")" $((2 * 2 * 8))
expect_equal 'peaks of the server, as many' \
  "$(jq '[.rows[] | select(.peak_memory > 0)] | length' "$work/a.json")" $((2 * 2 * 8))
"$UZRAM" bench compare "$work/a.json" "$work/a.json" >"$work/compared" ||
  fail 'uzram bench compare does not read what bench/fio/run wrote'
grep -q "$((2 * 2 * 8)) within noise" "$work/compared" || fail "$(cat "$work/compared")"

step 'discards and nowait'
expect_success "$run" "$(uri_of disk)" --yes --suite discard --size 16M --jobs 2 --rounds 2 \
  --json "$work/b.json"
expect_equal 'rows' "$(rows "$work/b.json")" 6
expect_success "$run" "$(uri_of disk)" --yes --suite nowait --size 16M --jobs 3 --runtime 0 \
  --rounds 1 --json "$work/c.json"
expect_equal 'rows' "$(rows "$work/c.json")" 4

step 'async: the six tests twice over, and the writer'
expect_success "$run" "$(uri_of disk)" --yes --suite async --size 16M --jobs 1 --rounds 1 \
  --json "$work/g.json"
expect_equal 'rows' "$(rows "$work/g.json")" $((2 * 8 + 2))
expect_equal 'requests in flight' \
  "$(jq '[.rows[] | select(.iodepth == 32) | .op] | join(",")' "$work/g.json")" '"fill,write"'

step 'without --yes nothing is written'
"$run" "$(uri_of disk)" --size 16M --json "$work/d.json" 2>"$work/refused" &&
  fail 'a run without --yes began'
grep -q -- 'first 16777216 bytes.*--yes' "$work/refused" ||
  fail "no word of the range or --yes: $(cat "$work/refused")"

step 'what lies beyond the size is as it was'
expect_success nbd disk check 16M 1M 1

step 'an interrupted run leaves nothing'
"$run" "$(uri_of disk)" --yes --size 16M --jobs 4 --runtime 60 --json "$work/e.json" \
  2>"$work/interrupted" &
runner=$!
at_exit "kill -KILL $runner 2>/dev/null"
wait_until 30 five_fios || fail 'fio did not start'
kill -TERM "$runner"
wait "$runner"
expect_equal 'exit code' "$?" 130
wait_until 5 no_fio || fail "fio is still there: $(pgrep -af "^fio .*$work/")"
[[ -z $(find "$work" -name 'uzram-fio-*' -o -name 'e.json*') ]] || fail "$(ls "$work")"

if ((EUID == 0)) && truncate -s 32M "$work/backing" &&
  loop=$(losetup --find --show "$work/backing" 2>/dev/null); then
  at_exit "losetup -d $loop"
  step 'a block device'
  expect_success "$run" "$loop" --yes --suite nowait --jobs 2 --runtime 0 --rounds 1 \
    --json "$work/f.json"
  expect_equal 'rows' "$(rows "$work/f.json")" 4
  step 'a mounted one is refused'
  expect_success mkfs.ext4 -q "$loop"
  mkdir "$work/mnt"
  expect_success mount "$loop" "$work/mnt"
  at_exit "umount '$work/mnt' 2>/dev/null"
  "$run" "$loop" --yes --json "$work/g.json" 2>"$work/refused" && fail 'a mounted device was used'
  grep -q 'mounted' "$work/refused" || fail "$(cat "$work/refused")"
  expect_success umount "$work/mnt"
fi
expect_server_alive 'after fio'
stop_server
