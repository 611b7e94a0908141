#!/bin/bash
# What is discarded is given back to the system: after discarding everything the server's shared
# memory is within 4 MiB of what it was before the device was ever written.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_tool jq jq
need_tool nbdcopy libnbd-bin
need_tool qemu-io qemu-utils

start_server --name disk --size 2G
expect_success nbd disk zero 0 1M
before=$(status_kib RssShmem)

fill_and_discard() {
  expect_equal 'fill' "$(nbd disk fill 0 512M "$1")" "$((512 << 20)) OK"
  expect_at_least 'RssShmem in KiB when filled' "$(status_kib RssShmem)" $((before + (500 << 10)))
  expect_success nbd disk trim 0 2G
  expect_at_most 'RssShmem in KiB when discarded' "$(status_kib RssShmem)" $((before + 4096))
  expect_success nbd disk zero 0 512M
  expect_equal 'orig_data_size' "$(device_field disk orig_data_size)" 0
  expect_equal 'compr_data_size' "$(device_field disk compr_data_size)" 0
}

step 'first round'
fill_and_discard 1
step 'second round'
fill_and_discard 2

step 'an image full of holes in by nbdcopy, out by qemu-io'
truncate -s 2G "$work/image"
for at in 0 500 1000 1500; do
  dd if=/dev/urandom of="$work/image" bs=1M seek=$at count=16 conv=notrunc status=none
done
expect_success nbdcopy "$work/image" "$(uri_of disk)"
expect_equal 'orig_data_size' "$(device_field disk orig_data_size)" $((64 << 20))
expect_at_least 'RssShmem in KiB' "$(status_kib RssShmem)" $((before + (64 << 10)))
expect_at_most 'RssShmem in KiB' "$(status_kib RssShmem)" $((before + (72 << 10)))
expect_success qemu-io -f raw -c 'discard 0 1G' -c 'discard 1G 1G' "$(uri_of disk)"
expect_equal 'orig_data_size' "$(device_field disk orig_data_size)" 0
expect_at_most 'RssShmem in KiB when discarded' "$(status_kib RssShmem)" $((before + 4096))
stop_server
