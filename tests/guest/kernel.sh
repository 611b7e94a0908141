# shellcheck shell=bash
# shellcheck disable=SC2154 # variables that run sets
# Sourced by run: fetches a Debian kernel and unpacks what a guest needs of it into the cache.
#
# prepare_kernel PACKAGE sets kernel_dir, a folder of the cache with
#   vmlinuz, version, lib/modules/VERSION (decompressed, with modules.dep), boot-modules (a list in
#   the order of loading, for the image that mounts the tools).
# $cache is the cache folder; skip REASON ends the run.

# What scenarios load, and what a file system or codec asks for by name only, which modules.dep
# does not show.
readonly guest_modules=(virtio_blk ext4 xfs btrfs ublk_drv zram brd nbd null_blk loop
  crc32c_generic crc32c-intel blake2b_generic lz4 lz4hc zstd deflate)
readonly boot_modules=(crc32c_generic crc32c-intel virtio_blk ext4)

# The package that a metapackage such as linux-image-6.12-amd64 names; any other names itself.
concrete_kernel() {
  local found
  found=$(apt-cache depends "$1" 2>/dev/null |
    awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
  printf '%s' "${found:-$1}"
}

newest_cached_deb() {
  find "$cache" -maxdepth 1 -name "${1%-amd64}*.deb" -printf '%T@ %p\n' 2>/dev/null |
    sort -n | tail -n 1 | cut -d' ' -f2-
}

# The archive must be the one that apt's lists know, when they know it, and whole in any case.
deb_is_sound() {
  local expected
  expected=$(apt-cache show "$2" 2>/dev/null | awk '/^SHA256:/ { print $2 }')
  if [[ -n $expected ]]; then
    grep -qx "$(sha256sum <"$1" | cut -d' ' -f1)" <<<"$expected" && return
    printf 'guest: %s is not one of the archives that apt knows as %s\n' "$1" "$2" >&2
    return 1
  fi
  dpkg-deb --fsys-tarfile "$1" >/dev/null
}

# download_kernel PACKAGE: sets deb. apt-get writes under its own name, so into a folder first.
download_kernel() {
  local folder=$cache/download.$$ found
  mkdir -p "$folder"
  printf 'guest: fetching %s (about 107 MB)\n' "$1"
  (cd "$folder" && apt-get -qq download "$1" >apt.log 2>&1) || sed 's/^/  /' "$folder/apt.log"
  found=$(find "$folder" -name '*.deb' | head -n 1)
  deb=
  if [[ -n $found ]] && deb_is_sound "$found" "$1"; then
    deb=$cache/${found##*/}
    mv "$found" "$deb"
  fi
  rm -rf "$folder"
  [[ -n $deb ]]
}

# find_kernel PACKAGE: sets deb, a sound archive in the cache.
find_kernel() {
  local package
  package=$(concrete_kernel "$1")
  deb=$(newest_cached_deb "${package}_")
  if [[ -z $deb ]] && ! download_kernel "$package"; then
    # A kernel of yesterday tests as well as none.
    deb=$(newest_cached_deb "$1")
    [[ -n $deb ]] || skip "$package is neither in $cache nor to be had by apt-get download"
  fi
}

# modules_with_needs TREE NAME...: paths of the modules below TREE, those needed first.
modules_with_needs() {
  local tree=$1
  shift
  awk -v names="$*" '
    function name_of(path) {
      sub(".*/", "", path); sub("[.]ko.*", "", path); gsub("-", "_", path); return path
    }
    { sub(":", "", $1); path[name_of($1)] = $1; needs = ""
      for (i = NF; i > 1; i--) needs = needs $i "\n"
      before[name_of($1)] = needs }
    END {
      count = split(names, wanted, " ")
      for (i = 1; i <= count; i++) {
        name = name_of(wanted[i])
        if (!(name in path)) { print "guest: this kernel has no " name > "/dev/stderr"; exit 1 }
        printf "%s%s\n", before[name], path[name]
      }
    }' "$tree/modules.dep" | awk '!seen[$0]++'
}

# small_tree FROM TO VERSION: the modules of guest_modules, decompressed and stripped.
small_tree() {
  local from=$1/lib/modules/$3 to=$2/lib/modules/$3 path
  depmod -b "$1" "$3" || return
  modules_with_needs "$from" "${guest_modules[@]}" >"$2/modules" || return
  modules_with_needs "$from" "${boot_modules[@]}" | sed 's/[.]xz$//' >"$2/boot-modules" || return
  while read -r path; do
    mkdir -p "$to/${path%/*}"
    case $path in
      *.xz) xz -dc "$from/$path" >"$to/${path%.xz}" ;;
      *) cp "$from/$path" "$to/$path" ;;
    esac || return
    strip --strip-debug "$to/${path%.xz}" || return
  done <"$2/modules"
  cp "$from"/modules.{builtin,builtin.modinfo,order} "$to" && depmod -b "$2" "$3"
}

unpack_kernel() {
  local version folder=$2.$$
  mkdir -p "$folder/all" || return
  # Newer packages have the modules below /usr.
  dpkg-deb --fsys-tarfile "$1" | tar -C "$folder/all" -x --wildcards \
    --transform 's,^\./usr/lib/,./lib/,' './boot/vmlinuz-*' '*/lib/modules/*' || return
  version=$(basename "$(echo "$folder"/all/lib/modules/*)")
  cp "$folder/all/boot/vmlinuz-$version" "$folder/vmlinuz" &&
    printf '%s\n' "$version" >"$folder/version" &&
    small_tree "$folder/all" "$folder" "$version" &&
    rm -rf "$folder/all" && mv -T "$folder" "$2"
}

prepare_kernel() {
  local deb key
  find_kernel "$1"
  key=$(printf '%s\n' "${deb##*/}" "${guest_modules[@]}" "${boot_modules[@]}" | sha256sum)
  kernel_dir=$cache/kernel-${key:0:16}
  if [[ ! -d $kernel_dir ]]; then
    deb_is_sound "$deb" "$(basename "$deb" | cut -d_ -f1)" || {
      rm -f "$deb"
      fail "$deb was damaged and is removed; the next run fetches it again"
    }
    rm -rf "$kernel_dir".*
    printf 'guest: unpacking %s\n' "${deb##*/}"
    unpack_kernel "$deb" "$kernel_dir" || fail "$deb: cannot be unpacked"
  fi
}
