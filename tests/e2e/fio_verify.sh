#!/bin/bash
# Random reads and writes of mixed sizes that verify what they wrote, over two connections, while a
# third trims another range; what was trimmed reads as zeroes afterwards.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_tool fio fio

start_server --name disk --size 2G
expect_equal 'fill of the range to trim' "$(nbd disk fill 1G 256M 1)" "$((256 << 20)) OK"

cat >"$work/job.fio" <<EOF
[global]
ioengine=nbd
uri=$(uri_of disk)
buffer_compress_percentage=50
refill_buffers

[verify]
rw=randrw
bsrange=4k-256k
iodepth=16
numjobs=2
size=512m
offset_increment=512m
verify=crc32c
verify_fatal=1

[trim]
rw=randtrim
bs=64k
iodepth=16
offset=1g
size=256m
EOF
# The second time over what the first time wrote. (fio's own loops=2 verifies wrongly: it expects
# the headers of the first loop in blocks that the second has overwritten.)
for seed in 20 21; do
  step "two verifying jobs and a trimming one, seed $seed"
  (cd "$work" && fio --randseed="$seed" --output="$work/fio.out" job.fio) ||
    fail "fio: $(tail -n 40 "$work/fio.out")"
  expect_equal 'jobs without an error' "$(grep -c 'err= 0' "$work/fio.out")" 3
done
step 'the trimmed range'
expect_success nbd disk zero 1G 256M
expect_server_alive 'after fio'
stop_server
