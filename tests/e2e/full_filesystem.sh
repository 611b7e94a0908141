#!/bin/bash
# full_filesystem.sh mem_limit|cgroup: a file system whose device runs out of memory, by its mem_limit
# or by the memory limit of the server's control group. Writes fail, the server goes on, what was
# synced before stays readable, and with the limit raised the file system is repaired and works again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/e2e/control_group.sh
source "$here/control_group.sh"
limited_by=${1:-}
need_loop_over_fuse
need_filesystem ext4 e2fsprogs
need_tool curl curl
need_tool jq jq

expect_files_intact() {
  (cd "$work/mnt" && sha256sum --quiet -c "$work/sums") || fail "files written before: $1"
}

raise_limit() {
  if [[ $limited_by == mem_limit ]]; then
    expect_success patch_device disk '{"mem_limit": "1G"}'
    expect_equal 'mem_limit' "$(device_field disk mem_limit)" $((1 << 30))
  else
    set_limit $((1 << 30))
  fi
}

case $limited_by in
  mem_limit)
    limit_mib=128
    start_server --name disk --size 1G --mem-limit 128M
    ;;
  cgroup)
    limit_mib=256
    make_group
    set_limit $((256 << 20))
    start_server_in_group --name disk --size 1G
    expect_equal 'mem_limit' "$(device_field disk mem_limit)" 0
    ;;
  *) fail "argument \"$limited_by\": expected mem_limit or cgroup" ;;
esac
attach_disk disk
expect_success mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$disk"

step 'files that fit'
mount_disk ext4
for i in 1 2 3 4; do head -c 10M /dev/urandom >"$work/mnt/file$i"; done
(cd "$work/mnt" && sha256sum file?) >"$work/sums"
sync -f "$work/mnt"

step 'more than fits'
dd if=/dev/urandom of="$work/mnt/too_much" bs=1M count=600 conv=fsync 2>"$work/dd.err" &&
  fail "600 MiB of random bytes were accepted with a limit of $limit_mib MiB"
expect_server_alive 'after writes over the limit'
expect_at_most 'mem_used_total' "$(device_field disk mem_used_total)" $((limit_mib << 20))
expect_at_least 'failed writes' "$(device_field disk failed_writes)" 1
# What ext4 could not write it may not be able to report at unmounting either.
umount "$work/mnt" 2>/dev/null
echo 3 >/proc/sys/vm/drop_caches

step 'what was synced is readable at the limit'
mount_disk ext4 ro,noload
expect_files_intact 'at the limit'
unmount_disk

step 'limit raised'
raise_limit
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
[[ $limited_by == cgroup ]] && expect_equal 'processes killed for want of memory' "$(oom_kills)" 0
stop_server
