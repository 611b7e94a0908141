#!/bin/bash
# SIGTERM while clients are at work: the server ends with exit code 0 and removes its sockets, and
# the clients do not hang.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_tool fio fio
need_tool jq jq

start_server --name disk --size 1G
(cd "$work" && exec fio --name=load --thread --ioengine=nbd --uri="$(uri_of disk)" --rw=randrw --bs=64k \
  --iodepth=16 --size=512m --time_based --runtime=600 --output="$work/fio.out" 2>&1) &
fio=$!
at_exit "kill -KILL $fio 2>/dev/null"
python3 "$here/nbd_client.py" "$(socket_of disk)" disk half 512M >"$work/half.out" 2>&1 &
half=$!
at_exit "kill -KILL $half 2>/dev/null"
has_writes() { (($(device_field disk orig_data_size) > 16 << 20)); }
wait_until 30 has_writes || fail 'the load does not reach the device'
wait_until 30 grep -qs sent "$work/half.out" || fail "half: $(cat "$work/half.out")"

stop_server
wait_until 60 gone "$fio" || fail 'fio hangs'
wait "$fio" && fail 'fio did not notice that its server ended'
for socket in "$work/control.sock" "$(socket_of disk)"; do
  [[ ! -e $socket ]] || fail "$socket was left behind"
done
