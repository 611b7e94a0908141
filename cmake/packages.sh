# shellcheck shell=bash
# Sourced by ./quickstart and ./check: finds and installs Debian packages.
#
# need_packages LIST... takes files of package names (one a line, # begins a comment), installs
# those that are missing when that is possible, and otherwise prints the line to run and returns 1.

# Prints the names that the given lists hold and dpkg does not know as installed.
missing_packages() {
  local name
  while read -r name; do
    [[ $name == '' || $name == '#'* ]] && continue
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] ||
      printf '%s\n' "$name"
  done < <(sort -u "$@")
}

need_packages() {
  local missing=() as_root=()
  if ! command -v dpkg-query >/dev/null; then
    printf 'This is no Debian system: the packages of %s are taken to be there.\n' "$*"
    return 0
  fi
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} == 0)) && return 0
  if ((EUID != 0)); then
    # Without a terminal sudo could not ask for a password.
    if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
      as_root=(sudo)
    else
      printf 'Packages are missing and this user cannot install them. Run as root:\n  apt-get install -y --no-install-recommends %s\n' \
        "${missing[*]}" >&2
      return 1
    fi
  fi
  printf 'Installing %d packages: %s\n' "${#missing[@]}" "${missing[*]}"
  "${as_root[@]}" apt-get -qq update </dev/null || true
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 --no-install-recommends \
    install "${missing[@]}" </dev/null >/dev/null; then
    printf 'apt-get could not install: %s\nIts messages are above; "apt-get update" and a working package source are needed.\n' \
      "${missing[*]}" >&2
    return 1
  fi
}
