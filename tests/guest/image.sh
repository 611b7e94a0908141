# shellcheck shell=bash
# shellcheck disable=SC2154 # variables that run and kernel.sh set
# Sourced by run: the file system of a guest, in two parts.
#
# base_image sets base_dir, a folder of the cache with base.ext4 (the tools, the libraries and all
# modules; a disk, so that the guest reads what it uses and can drop it again when memory is short)
# and boot.cpio (busybox, init's modules). run_archive FILE writes the small part that changes: the
# program, the test programs, init, lib.sh and the scenarios.

readonly guest_tools=(bash sh fio mkfs.ext4 e2fsck mkfs.xfs xfs_repair mkfs.btrfs btrfs fstrim
  blkdiscard blockdev sfdisk mkswap swapon swapoff mount umount setpriv nbd-client jq curl dd cmp
  truncate sha256sum timeout stat find awk diff tar unshare)

tool_path() {
  local path
  path=$(PATH=$PATH:/usr/sbin:/sbin command -v "$1") && readlink -f "$path"
}

libraries_of() { ldd "$@" 2>/dev/null | awk '/=> \// { print $3 } $1 ~ /^\/.*ld-/ { print $1 }'; }

# copy_into FOLDER PATH: with the folder's links resolved, so that all of it lies below /usr.
copy_into() {
  local folder
  folder=$(readlink -f "${2%/*}")
  [[ $folder == /usr/* ]] || folder=/usr$folder
  mkdir -p "$1$folder" && cp -L "$2" "$1$folder/"
}

# Sets base_files: paths of tools and libraries, those of the program too.
find_base_files() {
  local tool path
  base_files=()
  for tool in "${guest_tools[@]}"; do
    path=$(tool_path "$tool") ||
      skip "$tool is not installed (cmake/packages-check.txt lists what is needed)"
    base_files+=("$path")
  done
  mapfile -t -O ${#base_files[@]} base_files < <(
    libraries_of "${base_files[@]}" "$UZRAM" | sort -u)
}

make_base_tree() {
  local tree=$1 tool path
  mkdir -p "$tree/usr/bin" "$tree/usr/sbin" "$tree/lib"
  for path in "${base_files[@]}"; do copy_into "$tree" "$path" || return; done
  for tool in "${guest_tools[@]}"; do
    # By the name it is called by: mkfs.ext4 is a name of mke2fs, awk one of mawk.
    path=$(tool_path "$tool")
    [[ -e $tree/usr/bin/$tool ]] || ln -s "$path" "$tree/usr/bin/$tool" || return
  done
  cp -r "$kernel_dir/lib/modules" "$tree/usr/lib/"
}

make_boot_archive() {
  local tree=$1 path version
  version=$(<"$kernel_dir/version")
  mkdir -p "$tree"/{busybox,base,proc,sys,dev,tmp,run,etc,root,mnt,boot}
  cp "$(command -v busybox)" "$tree/busybox/busybox" || return
  while read -r path; do
    cp "$kernel_dir/lib/modules/$version/$path" "$tree/boot/" || return
    printf '%s\n' "${path##*/}" >>"$tree/boot/modules"
  done <"$kernel_dir/boot-modules"
  archive_of "$tree" >"$2"
}

# archive_of FOLDER: as cpio, every file root's. Not compressed: unpacking costs emulated time.
archive_of() { (cd "$1" && find . -mindepth 1 | sort | cpio --quiet -o -H newc -R 0:0); }

# Used space and a little more, in MiB.
image_size() { printf '%d' $(($(du -sm "$1" | cut -f1) * 11 / 10 + 16)); }

build_base() {
  local folder=$1.$$
  rm -rf "$1".*
  mkdir -p "$folder/tree" && make_base_tree "$folder/tree" &&
    PATH=$PATH:/usr/sbin:/sbin mkfs.ext4 -q -O ^has_journal -E root_owner=0:0 -m 0 \
      -d "$folder/tree" "$folder/base.ext4" "$(image_size "$folder/tree")M" &&
    make_boot_archive "$folder/boot" "$folder/boot.cpio" &&
    rm -rf "${folder:?}"/{tree,boot} && mv -T "$folder" "$1"
}

# One that other checkouts use may stay; what nobody touched for two weeks goes.
forget_old_bases() {
  find "$cache" -maxdepth 1 \( -name 'base-*' -o -name 'kernel-*' \) -mtime +14 \
    -exec rm -rf {} +
}

base_image() {
  local key
  local -a base_files
  find_base_files
  key=$({ stat -L -c '%n %s %Y' "${base_files[@]}" "$(command -v busybox)"
    sha256sum <"$here/image.sh"
    printf '%s\n' "$kernel_dir"; } | sha256sum)
  base_dir=$cache/base-${key:0:16}
  if [[ ! -d $base_dir ]]; then
    printf 'guest: building the image of tools\n'
    build_base "$base_dir" || fail 'the image of tools could not be built'
  fi
  touch "$kernel_dir" "$base_dir"
  forget_old_bases
}

# run_archive FILE: programs stripped, or a debug build would fill the guest's memory.
run_archive() {
  local tree=$work/tree program
  mkdir -p "$tree/opt/bin" "$tree/scenarios"
  strip -o "$tree/opt/bin/uzram" "$UZRAM" || fail "$UZRAM: cannot be stripped"
  for program in "$build"/tests/guest/*; do
    [[ -f $program && -x $program && $program != *.cmake ]] || continue
    strip -o "$tree/opt/bin/${program##*/}" "$program" || fail "$program: cannot be stripped"
  done
  cp "$here/init" "$here/lib.sh" "$root/tests/support/expect.sh" "$tree/" || fail 'init cannot be copied'
  cp "$scenarios"/* "$tree/scenarios/" || fail "the scenarios of $scenarios cannot be copied"
  if ((${#files[@]} > 0)); then
    mkdir "$tree/files"
    cp "${files[@]}" "$tree/files/" || fail 'a file cannot be copied'
  fi
  archive_of "$tree" >"$1"
}
