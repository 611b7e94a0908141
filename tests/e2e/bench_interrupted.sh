#!/bin/bash
# An interrupted run of the bench leaves no device of the kernel's zram and no process behind,
# whether it is interrupted once, twice, or killed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_root 'making a kernel zram device'
need_tool pgrep procps
need_tool jq jq
[[ -e /sys/class/zram-control/hot_add ]] || skip 'this kernel has no zram'

# start_run SECONDS [OPTION...]: each operation takes that long. Sets $run, its $device, and the $keeper process that will remove that. A
# shell starts background jobs with SIGINT ignored, which the program would respect.
start_run() {
  env --default-signal=INT,HUP "$UZRAM" bench pages --target zram,engine --buffer-random \
    --size 16M --rounds 100 --runtime "$@" >"$work/run.out" 2>"$work/run.err" &
  run=$!
  at_exit "kill -KILL $run 2>/dev/null; wait $run 2>/dev/null"
  wait_until 30 has_device || fail "the run made no zram device: $(cat "$work/run.err")"
}

has_device() {
  keeper=$(pgrep -P "$run" -x uzram-zram | head -n 1)
  device=$(find "/proc/$run/fd" -lname '/dev/zram*' -printf '%l\n' 2>/dev/null | head -n 1)
  [[ -n $keeper && -n $device ]]
}

device_is_gone() { [[ ! -e /sys/block/${device#/dev/} ]]; }

expect_nothing_left() {
  wait_until 30 device_is_gone || fail "$device is still there"
  wait_until 30 gone "$keeper" || fail "process $keeper is still there"
}

expect_exit() {
  wait_until 30 gone "$run" || fail "the run did not end within 30 s"
  wait "$run"
  expect_equal 'exit code' $? "$1"
}

for signal in INT TERM HUP; do
  step "SIG$signal"
  start_run 2
  kill "-$signal" "$run"
  expect_exit $((128 + $(kill -l "$signal")))
  expect_nothing_left
  grep -q 'once more stops at once' "$work/run.err" || fail "no word of a second signal"
  grep -q interrupted "$work/run.err" || fail "it does not say so: $(cat "$work/run.err")"
done

step 'SIGINT after a round: its results are kept'
start_run 0.1 --json "$work/results.json"
sleep 2
kill -INT "$run"
expect_exit 130
expect_nothing_left
expect_equal 'interrupted' "$(jq .interrupted "$work/results.json")" true
expect_at_least 'rows' "$(jq '.rows | length' "$work/results.json")" 1

step 'kill -9'
start_run 2
kill -KILL "$run"
expect_exit 137
expect_nothing_left

step 'a signal to the whole process group, as a terminal sends it'
setsid env --default-signal=INT "$UZRAM" bench pages --target zram --buffer-random --size 16M \
  --runtime 2 --rounds 100 >"$work/run.out" 2>"$work/run.err" &
run=$!
at_exit "kill -KILL $run 2>/dev/null; wait $run 2>/dev/null"
wait_until 30 has_device || fail "the run made no zram device: $(cat "$work/run.err")"
kill -INT "-$run"
expect_exit 130
expect_nothing_left
