#!/bin/bash
# Images in and out by nbdcopy, qemu-img, qemu-io and nbdkit's nbd plugin; sizes, exports and maps
# by nbdinfo; two devices in one server.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_tool nbdcopy libnbd-bin
need_tool qemu-img qemu-utils
need_tool nbdkit nbdkit
need_tool jq jq

qemu_io() {
  local output uri
  uri=$(uri_of "$1")
  shift
  # qemu-io reports a pattern that does not match on its output only.
  output=$(qemu-io -f raw "$@" "$uri" 2>&1) || fail "qemu-io $*: $output"
  grep -qiE 'failed|error' <<<"$output" && fail "qemu-io $*: $output"
  return 0
}

# Types of the map's extents: 0 data, 2 zero, 3 hole and zero; neighbours of one type joined.
map_types() {
  nbdinfo --map --json "$(uri_of "$1")" | jq -r '.[].type' | uniq | paste -sd' '
}

# Files, a hole in the middle and random bytes at the end: 200 MiB.
make_image() {
  find /usr/lib /usr/share -type f -size -4M -print0 2>/dev/null |
    xargs -0 cat 2>/dev/null | head -c 128M >"$work/image"
  truncate -s 184M "$work/image"
  head -c 16M /dev/urandom >>"$work/image"
  expect_equal 'size of the image' "$(stat -c %s "$work/image")" $((200 << 20))
}

start_server --device name=a,size=200M,algorithm=lz4 \
  --device name=b,size=200M,algorithm=zstd,block-size=512
make_image
sum=$(sum_of "$work/image")

step 'nbdinfo: sizes and exports'
expect_equal 'size of a' "$(nbdinfo --size "$(uri_of a)")" $((200 << 20))
exports=$(nbdinfo --list --json "$(uri_of a)" | jq -r '[.exports[]."export-name"] | sort | join(" ")')
expect_equal 'exports' "$exports" 'a b'
expect_equal 'map of an empty device' "$(map_types a)" 3

step 'nbdcopy in, from device to device, and out'
expect_success nbdcopy --flush "$work/image" "$(uri_of a)"
expect_success nbdcopy --flush "$(uri_of a)" "$(uri_of b)"
expect_success nbdcopy "$(uri_of b)" "$work/back"
expect_equal 'checksum after nbdcopy' "$(sum_of "$work/back")" "$sum"

step 'qemu-img both ways'
expect_success nbd a trim 0 200M
expect_success nbd a zero 0 200M
expect_success qemu-img convert -n -f raw -O raw "$work/image" "$(uri_of a)"
expect_success qemu-img convert -f raw -O raw "$(uri_of a)" "$work/back"
expect_equal 'checksum after qemu-img' "$(sum_of "$work/back")" "$sum"
expect_success qemu-img compare -f raw -F raw "$work/image" "$(uri_of b)"

step 'qemu-io: patterns, discard, zeroes'
qemu_io a -c 'write -P 0xab 4M 8M' -c 'read -P 0xab 4M 8M'
qemu_io a -c 'discard 6M 1M' -c 'read -P 0 6M 1M' -c 'read -P 0xab 7M 1M'
qemu_io a -c 'write -z 8M 1M' -c 'read -P 0 8M 1M' -c 'read -P 0xab 9M 1M'
qemu_io a -c 'write -z -u 10M 1M' -c 'read -P 0 10M 1M' -c 'flush'
qemu_io b -c 'write -P 0x17 512 1024' -c 'read -P 0x17 512 1024'
expect_success cmp -n 512 "$work/image" "$work/back"

step 'nbdinfo: the map follows discards'
expect_success nbd a trim 0 200M
qemu_io a -c 'write -P 1 1M 1M' -c 'write -P 1 3M 1M'
expect_equal 'map of a' "$(map_types a)" '3 0 3 0 3'

step 'nbdkit as a client'
# shellcheck disable=SC2016 # nbdkit sets uri for the command it runs
size=$(nbdkit -U - nbd "uri=$(uri_of b)" --run 'nbdinfo --size "$uri"') || fail 'nbdkit refused b'
expect_equal 'size through nbdkit' "$size" $((200 << 20))
stop_server
