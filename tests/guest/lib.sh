# shellcheck shell=bash
# shellcheck disable=SC2034 # variables that scenarios use
# Sourced by every scenario, inside the guest: servers, clients, and at the end the check that
# nothing remains: no device node, no server, no stuck task.
#
# $work is the scenario's folder, in memory. UZRAM_FULL is 1 for the long and large runs.
set -uo pipefail
# shellcheck source=tests/support/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

work=/tmp/work
mkdir -p "$work"
control=$work/control.sock
server=
disk=
id=
# Set to 0 by a scenario that leaves something on purpose.
expect_nothing_left=1

step() { printf -- '-- %3d s: %s\n' "$SECONDS" "$*"; }

# scaled SMALL LARGE: what to use without and with --full.
scaled() { if ((UZRAM_FULL)); then printf '%s' "$2"; else printf '%s' "$1"; fi; }

# To the host: a line of SCENARIO.output.
report() { printf '%s\n' "$*" >/dev/ttyS2; }

# --- small helpers ---

# expect_refusal TEXT COMMAND...: it fails, and what it prints has TEXT, an extended expression.
expect_refusal() {
  local text=$1 output
  shift
  output=$("$@" 2>&1) && fail "\"$*\" was not refused: $output"
  grep -qiE -- "$text" <<<"$output" || fail "\"$*\": got \"$output\", expected \"$text\""
  printf '   refused: %s\n' "${output##*$'\n'}"
}

alive() { [[ -d /proc/$1 && $(state_of "$1") != Z ]]; }
gone() { ! alive "$1"; }
absent() { [[ ! -e $1 ]]; }
state_of() { sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null; }

# pattern FILE SIZE [SEED]: half random, half zero in each page, the same for the same seed.
pattern() {
  awk -v pages=$(($(bytes "$2") / 4096)) -v seed="${3:-1}" 'BEGIN {
    srand(seed)
    for (i = 0; i < pages; i++) {
      line = ""
      for (j = 0; j < 128; j++) line = line sprintf("%08x%08x", rand() * 2 ^ 31, i * 128 + j)
      printf "%s%-2048s", line, ""
    } }' >"$1"
}

# bytes 4K, 3M, 2G
bytes() {
  local number=${1%[KMG]}
  case $1 in
    *K) printf '%d' $((number << 10)) ;;
    *M) printf '%d' $((number << 20)) ;;
    *G) printf '%d' $((number << 30)) ;;
    *) printf '%d' "$1" ;;
  esac
}

# write_disk FILE OFFSET [BLOCK]; expect_on_disk FILE OFFSET [BLOCK]: past the page cache.
write_disk() {
  local block
  block=$(bytes "${3:-4K}")
  dd if="$1" of="$disk" bs="$block" seek=$(($(bytes "$2") / block)) oflag=direct conv=notrunc \
    status=none || fail "writing $1 to $disk at $2 failed"
}

expect_on_disk() {
  local block
  block=$(bytes "${3:-4K}")
  dd if="$disk" bs="$block" skip=$(($(bytes "$2") / block)) count=$(($(stat -c %s "$1") / block)) \
    iflag=direct status=none | cmp - "$1" || fail "$disk at $2 is not what $1 holds"
}

# expect_zeroes OFFSET LENGTH
expect_zeroes() {
  dd if="$disk" bs=4096 skip=$(($(bytes "$1") / 4096)) count=$(($(bytes "$2") / 4096)) \
    iflag=direct status=none | cmp -n "$(bytes "$2")" - /dev/zero || fail "$disk at $1 is not zero"
}

# --- the server ---

server_ready() { grep -qx ready "$work/server.out" 2>/dev/null || gone "$server"; }

# start_server ARGUMENTS OF serve...: with --ublk; sets server (its pid), disk and id.
start_server() { start_server_by "$control" uzram serve --control "$control" --ublk "$@"; }

# start_server_by CONTROL COMMAND...: the whole command is given.
start_server_by() {
  control=$1
  shift
  : >"$work/server.out"
  "$@" >"$work/server.out" 2>&1 </dev/null &
  server=$!
  wait_until 60 server_ready || fail 'the server did not become ready in 60 s'
  alive "$server" || fail 'the server ended instead of becoming ready'
  disk=$(sed -n 's,^ *\(/dev/ublkb[0-9]*\)$,\1,p' "$work/server.out" | tail -n 1)
  [[ -b $disk ]] || fail "the server names no block device: \"$disk\""
  id=${disk#/dev/ublkb}
}

expect_server_alive() { alive "$server" || fail "the server is gone: $1"; }

# expect_end SECONDS CODE: the server ends by itself, with this code, and its device is gone.
expect_end() {
  local status
  wait_until "$1" gone "$server" || fail "the server did not end within $1 s"
  wait "$server"
  status=$?
  expect_equal 'exit code of the server' "$status" "$2"
  wait_until 10 absent "$disk" || fail "$disk is still there"
}

stop_server() {
  kill -TERM "$server"
  expect_end 60 0
}

kill_server() {
  kill -KILL "$server"
  wait "$server" 2>/dev/null
}

# field NAME: of the only device, as `uzram stat --json` gives it.
field() {
  uzram stat --control "$control" --json | jq -er ".[0].$1" ||
    fail "uzram stat --json gave no field $1"
}

# column NAME: of the only device.
column() { uzram stat --control "$control" --noheadings --raw --output "$1"; }

# ublk_column ID HEADING: of `uzram ublk list`; nothing when there is no such device.
ublk_column() {
  uzram ublk list | awk -v id="$1" -v heading="$2" '
    NR == 1 { for (i = 1; i <= NF; i++) if ($i == heading) at = i; next }
    $1 == id { print $at }'
}

# --- load ---

# fio_job NAME ARGUMENTS...: to its end, on $disk; the output stays in $work/NAME.out.
fio_job() {
  local name=$1
  shift
  fio --eta=never --name="$name" --filename="$disk" --output="$work/$name.out" "$@" \
    >"$work/$name.err" 2>&1 || fail "fio $name: $(tail -n 20 "$work/$name.err" "$work/$name.out")"
}

# start_load [ARGUMENTS]: endless reads and writes in the background; sets load.
start_load() {
  fio --eta=never --name=load --filename="$disk" --ioengine=io_uring --direct=1 --rw=randrw \
    --bs=4k --iodepth=32 --size=64m --time_based --runtime=3600 --output="$work/load.out" "$@" \
    >"$work/load.err" 2>&1 </dev/null &
  load=$!
  wait_until 60 load_arrives || fail "the load does not reach $disk: $(cat "$work/load.err")"
}

# Sectors written, and requests in flight.
load_arrives() {
  gone "$load" && return 0
  awk '$7 > 2000 && $9 > 0 { found = 1 } END { exit !found }' "/sys/block/${disk##*/}/stat"
}

# expect_load_fails SECONDS: what the load asks of a device that is gone fails, and does not hang.
expect_load_fails() {
  wait_until "$1" gone "$load" || fail "fio hangs, in state $(state_of "$load")"
  wait "$load" && fail 'fio did not notice that its device is gone'
  return 0
}

make_load_end() {
  kill -TERM "$load" 2>/dev/null
  wait_until 60 gone "$load" || fail "fio does not end, state $(state_of "$load")"
  wait "$load" 2>/dev/null
}

# memory_kib NAME: of /proc/meminfo.
memory_kib() { awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo; }

# --- what remains ---

# PID:NAME of tasks that wait uninterruptibly. In one process: the guest forks slowly.
stuck_tasks() {
  cat /proc/[0-9]*/task/[0-9]*/stat 2>/dev/null |
    sed -n 's/^\([0-9]*\) (\(.*\)) D .*/\1:\2/p' | tr '\n' ' '
}

no_stuck_task() { [[ -z $(stuck_tasks) ]]; }
no_device_node() { ! compgen -G '/dev/ublk[bc][0-9]*' >/dev/null; }
no_server() { ! pidof uzram >/dev/null; }

show_stuck_tasks() {
  local task
  for task in $(stuck_tasks); do
    printf 'stuck: %s\n' "$task"
    sed 's/^/    /' /proc/*/task/"${task%%:*}"/stack
  done
}

expect_nothing_remains() {
  wait_until 10 no_server || fail "a server remains: $(pidof uzram)"
  wait_until 10 no_device_node || fail "nodes remain: $(echo /dev/ublk[bc][0-9]*)"
  wait_until 10 no_stuck_task || {
    show_stuck_tasks
    fail "stuck tasks remain: $(stuck_tasks)"
  }
}

at_end() {
  local status=$?
  trap - EXIT
  if ((status == 0 && expect_nothing_left)); then
    # In a subshell: fail ends it, and this is what it ended with.
    (expect_nothing_remains)
    status=$?
  fi
  ((status == 0)) || show_stuck_tasks
  exit "$status"
}
trap at_end EXIT
