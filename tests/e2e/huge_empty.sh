#!/bin/bash
# Empty devices of 1 and 16 TiB cost next to nothing, and reading all over them changes nothing.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_tool jq jq
need_tool nbdinfo libnbd-bin

# Includes the program itself, its buffers and the C++ library.
readonly limit_kib=$((32 << 10))

for size in 1T 16T; do
  step "$size"
  started=$(date +%s%N)
  start_server --name disk --size "$size"
  printf '   ready after %d ms\n' $((($(date +%s%N) - started) / 1000000))
  expect_equal 'size' "$(nbdinfo --size "$(uri_of disk)")" "$((${size%T} << 40))"
  expect_at_most 'VmRSS in KiB when ready' "$(status_kib VmRSS)" "$limit_kib"
  expect_success nbd disk touch 1G
  expect_at_most 'VmRSS in KiB after reading a page of each GiB' "$(status_kib VmRSS)" "$limit_kib"
  expect_success nbdinfo --map "$(uri_of disk)"
  expect_success nbd disk trim 0 "$size"
  expect_at_most 'VmRSS in KiB after discarding it all' "$(status_kib VmRSS)" "$limit_kib"
  expect_equal 'orig_data_size' "$(device_field disk orig_data_size)" 0
  expect_equal 'fill of the last MiB' \
    "$(nbd disk fill $(((${size%T} << 40) - (1 << 20))) 1M 5)" "$((1 << 20)) OK"
  expect_success nbd disk check $(((${size%T} << 40) - (1 << 20))) 1M 5
  stop_server
done
