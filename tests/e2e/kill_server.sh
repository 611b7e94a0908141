#!/bin/bash
# kill -9 of the server under load: every client gets an error and none hangs; a new server starts
# on the sockets that the dead one left behind.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_tool fio fio
need_tool nbdcopy libnbd-bin

start_server --name disk --size 4G
(cd "$work" && exec fio --name=load --thread --ioengine=nbd --uri="$(uri_of disk)" --rw=randrw --bs=16k \
  --iodepth=16 --size=1g --time_based --runtime=600 --output="$work/fio.out" 2>&1) &
fio=$!
at_exit "kill -KILL $fio 2>/dev/null"
truncate -s 3G "$work/image"
# Zeroes sent as data: many small requests, and no time spent on making content.
nbdcopy --allocated --no-extents -S 0 --request-size=4096 "$work/image" "$(uri_of disk)" \
  >"$work/nbdcopy.out" 2>&1 &
copy=$!
at_exit "kill -KILL $copy 2>/dev/null"
python3 "$here/nbd_client.py" "$(socket_of disk)" disk deaf 4 >"$work/deaf.out" 2>&1 &
deaf=$!
at_exit "kill -KILL $deaf 2>/dev/null"

has_writes() { (($(device_field disk orig_data_size) > 64 << 20)); }
wait_until 30 has_writes || fail 'the load does not reach the device'
alive "$copy" || fail "nbdcopy ended before the server was killed: $(cat "$work/nbdcopy.out")"
alive "$fio" || fail "fio ended before the server was killed: $(cat "$work/fio.out")"

step 'kill -9'
kill_server
for client in "$fio" "$copy"; do
  wait_until 60 gone "$client" || fail "client $(ps -o args= -p "$client") hangs"
  wait "$client" && fail 'a client did not notice that its server was killed'
done
[[ -S $(socket_of disk) ]] || fail 'the dead server left no socket, so nothing is tested below'

step 'a new server on the same sockets'
start_server --name disk --size 4G
expect_equal 'fill' "$(nbd disk fill 0 1M 1)" "$((1 << 20)) OK"
expect_success nbd disk check 0 1M 1
expect_equal 'name' "$(device_field disk name)" disk
stop_server
