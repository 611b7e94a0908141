#!/bin/bash
# usage: filesystems.sh ext4|xfs|btrfs
# A file system on the device, through nbdfuse and a loop device: filled to the brim with real
# files, read back after a fresh mount, emptied, trimmed (memory comes back), and found clean.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

type=${1:-}
case $type in
  ext4) make=(mkfs.ext4 -q) check=(e2fsck -fn) package=e2fsprogs ;;
  xfs) make=(mkfs.xfs -q -f) check=(xfs_repair -n) package=xfsprogs ;;
  btrfs) make=(mkfs.btrfs -q -f) check=(btrfs check) package=btrfs-progs ;;
  *) fail "file system \"$type\": expected ext4, xfs or btrfs" ;;
esac
need_loop_over_fuse
need_filesystem "$type" "$package"
need_tool jq jq

# Real files of more than the disk holds.
list_files() {
  find /usr/lib /usr/share /usr/bin -xdev -type f -readable -size -16M -printf '%s %P\0%H/%P\0' \
    2>/dev/null | awk -v RS='\0' -v limit=$((900 << 20)) '
      NR % 2 { total += $1; next } total > limit { exit } { sub("^/", ""); printf "%s%c", $0, 0 }'
}

fill_to_the_brim() {
  list_files >"$work/files"
  tar -C / -cf - --null --verbatim-files-from -T "$work/files" 2>/dev/null |
    tar -C "$work/mnt" -xf - --no-same-owner 2>"$work/tar.err"
  grep -q 'No space left on device' "$work/tar.err" ||
    fail "the disk did not fill up: $(tail -n 3 "$work/tar.err")"
}

checksums_of() { (cd "$1" && tr '\n' '\0' <"$work/names" | xargs -0 sha256sum 2>/dev/null); }

# Every file is that of the machine; one that met the end of the room may be cut short.
expect_files_intact() {
  local name cut=0
  (cd "$work/mnt" && find . -type f -printf '%P\n' | grep -v '[\\]' | sort) >"$work/names"
  expect_at_least 'files on the disk' "$(wc -l <"$work/names")" 500
  checksums_of "$work/mnt" >"$work/sums.disk"
  checksums_of / >"$work/sums.machine"
  expect_equal 'files read back' "$(wc -l <"$work/sums.disk")" "$(wc -l <"$work/names")"
  while read -r name; do
    (($(stat -c %s "$work/mnt/$name") < $(stat -c %s "/$name"))) ||
      fail "$name is not what was written"
    ((cut++))
  done < <(diff "$work/sums.disk" "$work/sums.machine" | sed -n 's/^< [0-9a-f]*  //p')
  printf '   files cut short by the end of the room: %d\n' "$cut"
}

start_server --name disk --size 512M
attach_disk disk
step "$type to the brim"
expect_success "${make[@]}" "$disk"
mount_disk "$type"
fill_to_the_brim
unmount_disk
expect_success "${check[@]}" "$disk"

step 'read back after a fresh mount'
mount_disk "$type"
expect_files_intact
full=$(device_field disk mem_used_total)
full_kib=$(status_kib RssShmem)

step 'emptied and trimmed'
# xfs frees deleted files, and discards what is trimmed, in the background.
is_emptied() {
  sync -f "$work/mnt"
  expect_success fstrim "$work/mnt"
  (($(device_field disk mem_used_total) <= full / 8))
}
find "$work/mnt" -mindepth 1 -maxdepth 1 ! -name lost+found -exec rm -rf {} +
wait_until 60 is_emptied
expect_at_least 'mem_used_total when full' "$full" $((64 << 20))
expect_at_most 'mem_used_total when emptied' "$(device_field disk mem_used_total)" $((full / 8))
expect_at_most 'RssShmem in KiB when emptied' "$(status_kib RssShmem)" $((full_kib / 6))
unmount_disk
expect_success "${check[@]}" "$disk"
detach_disk disk
stop_server
