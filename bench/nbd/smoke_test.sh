#!/bin/bash
# smoke_test.sh NULL_SERVER: a client finds its export, reads and writes.
set -u
server=$1
command -v nbdcopy >/dev/null || {
  echo 'skipped: nbdcopy (Debian package libnbd-bin) is missing'
  exit 77
}
work=$(mktemp -d)
"$server" "$work/null" 8388608 &
pid=$!
trap 'kill "$pid"; rm -rf "$work"' EXIT
for _ in $(seq 100); do
  [[ -S $work/null ]] && break
  sleep 0.1
done
uri="nbd+unix:///?socket=$work/null"
size=$(nbdinfo --size "$uri") || exit 1
[[ $size == 8388608 ]] || {
  echo "size $size, expected 8388608"
  exit 1
}
nbdcopy "$uri" "$work/copy" || exit 1
[[ $(stat -c %s "$work/copy") == 8388608 ]] || exit 1
head -c 8388608 /dev/urandom >"$work/random"
nbdcopy "$work/random" "$uri"
