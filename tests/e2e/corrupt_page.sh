#!/bin/bash
# A page whose memory has changed: EIO for that page alone, a line in the log, and a server that stays
# up; writing the page makes it good.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_root 'writing into the memory file of another process'
need_tool jq jq

start_server --name disk --size 64M --block-size 512 --checksum
expect_equal 'checksum' "$("$UZRAM" stat --control "$work/control.sock" -n -o CHECKSUM disk)" on
# Random bytes do not compress: each page is in the pool as it is.
expect_equal 'fill' "$(nbd disk fill 0 256K 1)" "$((256 << 10)) OK"

# client CODE: Python with a connection c to the device.
client() { python3 -c "
import sys
sys.path.insert(0, '$here')
from nbd_client import *
c = Client('$(socket_of disk)', 'disk')
$1
c.close()"; }

pool=
for link in /proc/"$server"/fd/*; do
  [[ $(readlink "$link") == *memfd:uzram-pool:disk* ]] && pool=$link
done
[[ -n $pool ]] || fail 'the server has no pool file'

step 'a bit of one page changes'
client "
page = bytes(c.read(20 * PAGE, PAGE))
with open('$pool', 'r+b', buffering=0) as pool:
    pool_bytes = pool.read(4 << 20)
    at = pool_bytes.index(page) + 1234
    pool.seek(at)
    pool.write(bytes([pool_bytes[at] ^ 4]))
" || fail 'the page could not be changed'
status_of() { client "print(ERRORS[c.request(READ, $1, $2)[0]])"; }
expect_equal 'the page' "$(status_of '20 * PAGE' PAGE)" EIO
expect_equal 'its first half' "$(status_of '20 * PAGE' 2048)" EIO
expect_equal 'the page before it' "$(status_of '19 * PAGE' PAGE)" OK
expect_equal 'the page after it' "$(status_of '21 * PAGE' PAGE)" OK
expect_success nbd disk check 0 64K 1
expect_success nbd disk check 128K 128K 1
expect_server_alive 'after a corrupt page was read'
expect_equal 'corrupt_pages' "$(device_field disk corrupt_pages)" 2
has_line() { grep -q "device disk: the page at byte $((20 * 4096)) is corrupt" "$work/server.out"; }
wait_until 10 has_line || fail "the server logs nothing: $(cat "$work/server.out")"
expect_equal 'lines in the log' "$(grep -c 'is corrupt' "$work/server.out")" 1

step 'the page is written'
expect_equal 'fill' "$(nbd disk fill 64K 64K 1)" "$((64 << 10)) OK"
expect_success nbd disk check 0 256K 1
expect_equal 'corrupt_pages' "$(device_field disk corrupt_pages)" 2
stop_server
