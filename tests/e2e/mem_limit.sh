#!/bin/bash
# A file system that meets the device's mem_limit: writes fail, the server goes on, what was synced
# before stays readable, and with the limit raised the file system is repaired and works again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_loop_over_fuse
need_filesystem ext4 e2fsprogs
need_tool curl curl
need_tool jq jq

expect_files_intact() {
  (cd "$work/mnt" && sha256sum --quiet -c "$work/sums") || fail "files written before: $1"
}

start_server --name disk --size 1G --mem-limit 128M
attach_disk disk
expect_success mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$disk"

step 'files that fit'
mount_disk ext4
for i in 1 2 3 4; do head -c 10M /dev/urandom >"$work/mnt/file$i"; done
(cd "$work/mnt" && sha256sum file?) >"$work/sums"
sync -f "$work/mnt"

step 'more than fits'
dd if=/dev/urandom of="$work/mnt/too_much" bs=1M count=300 conv=fsync 2>"$work/dd.err" &&
  fail '300 MiB of random bytes were accepted with a limit of 128 MiB'
expect_server_alive 'after writes over the limit'
expect_at_most 'mem_used_total' "$(device_field disk mem_used_total)" $((128 << 20))
expect_at_least 'failed writes' "$(device_field disk failed_writes)" 1
# What ext4 could not write it may not be able to report at unmounting either.
umount "$work/mnt" 2>/dev/null
echo 3 >/proc/sys/vm/drop_caches

step 'what was synced is readable at the limit'
mount_disk ext4 ro,noload
expect_files_intact 'at the limit'
unmount_disk

step 'limit raised'
expect_success patch_device disk '{"mem_limit": "1G"}'
expect_equal 'mem_limit' "$(device_field disk mem_limit)" $((1 << 30))
e2fsck -fy "$disk" >"$work/fsck.out" 2>&1
# 0: clean, 1: errors corrected.
expect_at_most 'exit code of e2fsck -fy' "$?" 1
expect_success e2fsck -fn "$disk"
mount_disk ext4
expect_files_intact 'after repair'
rm -f "$work/mnt/too_much"
expect_success dd if=/dev/urandom of="$work/mnt/more" bs=1M count=200 conv=fsync
unmount_disk
expect_success e2fsck -fn "$disk"
detach_disk disk
stop_server
