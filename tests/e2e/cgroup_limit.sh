#!/bin/bash
# A server whose control group has less memory than its device has room: writes get ENOSPC instead
# of the server being killed; the limit is followed when it is raised and lowered.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/e2e/control_group.sh
source "$here/control_group.sh"
need_root 'a control group'
need_tool jq jq

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
start_server_in_group --name disk --size 4G

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
