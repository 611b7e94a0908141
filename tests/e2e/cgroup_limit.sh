#!/bin/bash
# A server whose control group has less memory than its device has room: writes get ENOSPC instead
# of the server being killed; the limit is followed when it is raised and lowered.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_root 'a control group'
need_tool jq jq

# Sets group, limit_file, usage_file and version.
make_group() {
  local mounted
  mounted=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' \
    <(awk '{ print $1, $2, $3, $4 }' /proc/mounts))
  if [[ -n $mounted ]]; then
    version=1 group=$mounted/uzram-e2e-$$
    mkdir "$group" || skip "no control group could be made in $mounted"
    limit_file=$group/memory.limit_in_bytes usage_file=$group/memory.usage_in_bytes
  else
    mounted=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    [[ -n $mounted ]] || skip 'no memory controller is mounted'
    version=2 group=$mounted/uzram-e2e-$$
    mkdir "$group" || skip "no control group could be made in $mounted"
    limit_file=$group/memory.max usage_file=$group/memory.current
    if [[ ! -e $limit_file ]]; then
      rmdir "$group"
      skip "the control groups of $mounted have no memory controller"
    fi
  fi
  # A group can be removed when its last process has been reaped and its memory uncharged.
  at_exit "wait_until 10 rmdir '$group' 2>/dev/null"
  printf '   control groups version %d: %s\n' "$version" "$group"
}

set_limit() { echo "$1" >"$limit_file" || fail "limit $1 was refused by $limit_file"; }

oom_kills() {
  if ((version == 1)); then
    awk '$1 == "oom_kill" { print $2 }' "$group/memory.oom_control"
  else
    awk '$1 == "oom_kill" { print $2 }' "$group/memory.events"
  fi
}

# fill_until_full OFFSET SEED: writes until ENOSPC; sets filled to the bytes written.
fill_until_full() {
  local result
  result=$(nbd disk fill "$1" 512M "$2") || fail "the connection broke at offset $1"
  filled=${result% *}
  expect_equal "end of writing at $1" "${result#* }" ENOSPC
  expect_server_alive "after writing $filled bytes at $1"
  expect_equal 'processes killed for want of memory' "$(oom_kills)" 0
}

make_group
set_limit $((256 << 20))
# shellcheck disable=SC2016 # the inner shell's own pid and arguments
start_server_by bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
  "$UZRAM" serve --control "$work/control.sock" --name disk --size 4G

step 'at 256 MiB'
fill_until_full 0 1
first=$filled
expect_at_least 'bytes written at 256 MiB' "$first" $((128 << 20))
expect_success nbd disk check 0 "$first" 1

step 'raised to 400 MiB'
set_limit $((400 << 20))
fill_until_full 1G 2
expect_at_least 'further bytes at 400 MiB' "$filled" $((96 << 20))
expect_success nbd disk check 1G "$filled" 2

step 'lowered to little more than what is in use'
set_limit $((($(cat "$usage_file") >> 20) + 4 << 20))
fill_until_full 2G 3
expect_at_most 'further bytes after lowering' "$filled" $((4 << 20))
expect_success nbd disk check 0 "$first" 1

step 'room given back is usable again'
expect_success nbd disk trim 0 4G
expect_equal 'fill after discarding' "$(nbd disk fill 0 64M 4)" "$((64 << 20)) OK"
expect_success nbd disk check 0 64M 4
expect_equal 'processes killed for want of memory' "$(oom_kills)" 0
stop_server
