# shellcheck shell=bash
# Sourced by every test of this folder: a private server, clients, and clean-up whatever happens.
#
# UZRAM is the program under test (CTest sets it). $work is the test's own folder; the server's
# control socket is $work/control.sock, the socket of device NAME $work/NAME.nbd.
# Exit codes: 0 passed, 77 skipped (the line "SKIPPED: reason" says why), all else failed.
# What a test makes (processes, mounts, loop devices, control groups) it hands to at_exit, which
# undoes it in reverse order.
set -uo pipefail
export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/support/expect.sh
source "$here/../support/expect.sh"
work=
server=
undo=()

skip() {
  printf 'SKIPPED: %s\n' "$*"
  exit 77
}

step() { printf -- '-- %s\n' "$*"; }

at_exit() { undo+=("$*"); }

cleanup() {
  local status=$? i
  trap - EXIT
  for ((i = ${#undo[@]} - 1; i >= 0; i--)); do eval "${undo[i]}"; done
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

[[ -x ${UZRAM:-} ]] || fail "UZRAM \"${UZRAM:-}\": expected the path of the program under test"
# Unix socket paths are short, so the folder is where paths are short too.
work=$(mktemp -d /tmp/uzram-e2e.XXXXXX) || fail "mktemp made no folder"
at_exit "rm -rf '$work'"

# --- what the machine has ---

need_tool() { command -v "$1" >/dev/null || skip "$1 is not installed (Debian package $2)"; }
need_root() { ((EUID == 0)) || skip "$1 needs root"; }

need_loop_over_fuse() {
  need_root 'a loop device'
  need_tool nbdfuse libnbd-bin
  need_tool fusermount3 fuse3
  need_tool losetup mount
  [[ -e /dev/fuse ]] || skip 'there is no /dev/fuse'
  losetup --find >/dev/null 2>&1 || skip 'there is no free loop device'
}

need_filesystem() {
  need_tool "mkfs.$1" "$2"
  grep -qw "$1" /proc/filesystems || modprobe "$1" 2>/dev/null ||
    skip "this kernel does not know $1"
}

# --- small helpers ---

sum_of() { sha256sum <"$1" | cut -d' ' -f1; }

alive() { kill -0 "$1" 2>/dev/null && [[ $(ps -o stat= -p "$1") != Z* ]]; }
gone() { ! alive "$1"; }

# --- the server ---

server_ready() { grep -qx ready "$work/server.out" 2>/dev/null || gone "$server"; }

# start_server ARGUMENTS OF serve...
start_server() { start_server_by "$UZRAM" serve --control "$work/control.sock" "$@"; }

# As start_server, but the whole command is given, for servers run in a control group.
start_server_by() {
  : >"$work/server.out"
  "$@" >"$work/server.out" 2>&1 </dev/null &
  server=$!
  # Each server is killed by its own pid; one that has been reaped already is no longer our child.
  at_exit "kill -KILL $server 2>/dev/null; wait $server 2>/dev/null"
  wait_until 60 server_ready || fail 'the server did not become ready in 60 s'
  alive "$server" || fail 'the server ended instead of becoming ready'
}

expect_server_alive() { alive "$server" || fail "the server is gone: $1"; }

# SIGTERM; the server must end by itself with exit code 0.
stop_server() {
  local status
  kill -TERM "$server"
  wait_until 60 gone "$server" || fail 'the server did not end within 60 s of SIGTERM'
  wait "$server"
  status=$?
  expect_equal 'exit code of the server after SIGTERM' "$status" 0
}

kill_server() {
  kill -KILL "$server"
  wait "$server" 2>/dev/null
}

socket_of() { printf '%s/%s.nbd' "$work" "$1"; }
uri_of() { printf 'nbd+unix:///%s?socket=%s' "$1" "$(socket_of "$1")"; }

# device_field NAME FIELD: a field of the control socket's object.
device_field() {
  "$UZRAM" stat --control "$work/control.sock" --json "$1" | jq -er ".[0].$2" ||
    fail "uzram stat --json $1 gave no field $2"
}

# patch_device NAME JSON: prints the answer, fails unless it is a success.
patch_device() {
  curl -sS --fail-with-body --unix-socket "$work/control.sock" -X PATCH \
    -H 'Content-Type: application/json' -d "$2" "http://localhost/v1/devices/$1" ||
    fail "PATCH $1 $2 was refused"
}

# status_kib FIELD: a line of the server's /proc/PID/status, in KiB.
status_kib() { awk -v field="$1:" '$1 == field { print $2 }' "/proc/$server/status"; }

nbd() { python3 "$here/nbd_client.py" "$(socket_of "$1")" "$@"; }

# --- a device as a disk ---

# attach_disk NAME: nbdfuse and a loop device; sets $disk. Detached at exit.
attach_disk() {
  local file=$work/$1.disk
  : >"$file"
  nbdfuse "$file" "$(uri_of "$1")" >"$work/nbdfuse.out" 2>&1 &
  fuse_pid=$!
  at_exit "fusermount3 -uz '$file' 2>/dev/null; kill $fuse_pid 2>/dev/null; wait $fuse_pid 2>/dev/null"
  wait_until 30 test -s "$file" || fail "nbdfuse shows no disk: $(cat "$work/nbdfuse.out")"
  # Sectors as large as the device's logical block: smaller requests would be refused by it.
  disk=$(losetup --find --show --direct-io=on --sector-size 4096 "$file") ||
    fail "losetup refused $file"
  at_exit "losetup -d $disk 2>/dev/null"
}

detach_disk() {
  sync
  losetup -d "$disk"
  wait_until 10 loop_is_free "$disk" || fail "$disk is still in use"
  fusermount3 -u "$work/$1.disk" || fail "fusermount3 could not unmount $1.disk"
  wait "$fuse_pid" 2>/dev/null
}

loop_is_free() { ! losetup "$1" >/dev/null 2>&1; }

# mount_disk TYPE [OPTIONS]: at $work/mnt.
mount_disk() {
  mkdir -p "$work/mnt"
  mount -t "$1" ${2:+-o "$2"} "$disk" "$work/mnt" || fail "mounting $1 from $disk failed"
  at_exit "umount -l '$work/mnt' 2>/dev/null"
}

unmount_disk() { expect_success umount "$work/mnt"; }
