#!/bin/bash
# Clients killed in mid-request, again and again: the server goes on, and neither connections nor
# memory are left behind.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_tool fio fio
need_tool nbdcopy libnbd-bin

descriptors() { find "/proc/$server/fd" -mindepth 1 | wc -l; }

# Starts four kinds of client, lets each get into its work, and kills all of them.
vanish_once() {
  local pids=() kind
  # With --thread, as else its worker is another process that goes on.
  (cd "$work" && exec fio --name=load --thread --ioengine=nbd --uri="$(uri_of disk)" --rw=randrw \
    --bs=256k --iodepth=32 --size=128m --time_based --runtime=600 --eta=never >"$work/fio.out" 2>&1) &
  pids+=($!)
  nbdcopy --allocated --no-extents -S 0 --request-size=65536 "$work/image" "$(uri_of disk)" \
    >/dev/null 2>&1 &
  pids+=($!)
  for kind in 'half 0' 'deaf 32'; do
    # shellcheck disable=SC2086 # command and argument
    python3 "$here/nbd_client.py" "$(socket_of disk)" disk $kind >"$work/${kind% *}.out" 2>&1 &
    pids+=($!)
  done
  wait_until 30 grep -qs sent "$work/half.out" || fail "half: $(cat "$work/half.out")"
  # One connection each, and nbdcopy may have more.
  wait_until 30 has_connections $((idle + 4)) || fail 'clients do not connect'
  kill -KILL "${pids[@]}" 2>/dev/null
  wait "${pids[@]}" 2>/dev/null
  rm -f "$work/half.out" "$work/deaf.out"
}

has_connections() { (($(descriptors) >= $1)); }
is_idle() { (($(descriptors) <= idle)); }

start_server --name disk --size 8G
truncate -s 8G "$work/image"
expect_success nbd disk size
idle=$(descriptors)

step 'warming up'
for _ in 1 2 3; do vanish_once; done
wait_until 60 is_idle || fail "$(descriptors) descriptors are open, $idle before any client"
before=$(status_kib RssAnon)

step 'thirty rounds'
for _ in $(seq 30); do
  vanish_once
  expect_server_alive 'after clients were killed'
done
wait_until 60 is_idle || fail "$(descriptors) descriptors are open, $idle before any client"
expect_at_most 'RssAnon in KiB' "$(status_kib RssAnon)" $((before + 16384))
expect_equal 'fill' "$(nbd disk fill 0 16M 9)" "$((16 << 20)) OK"
expect_success nbd disk check 0 16M 9
stop_server
