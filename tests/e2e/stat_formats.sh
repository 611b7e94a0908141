#!/bin/bash
# `uzram stat`: zramctl's columns, sizes for people and in bytes, JSON, choice of devices, and its
# messages; the same numbers as the control socket gives.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_tool jq jq
need_tool curl curl

stat() { "$UZRAM" stat --control "$work/control.sock" "$@"; }

stat_fails() {
  local text=$1 output
  shift
  output=$(stat "$@" 2>&1) && fail "stat $* succeeded, expected a refusal"
  [[ $output == *"$text"* ]] || fail "stat $*: \"$text\" is not in its message: $output"
}

stat_fails 'uzram serve'
start_server --device name=a,size=1G,algorithm=lz4 \
  --device name=b,size=64M,algorithm=zstd,level=3,mem-limit=32M
expect_equal 'fill of a' "$(nbd a fill 0 8M 1)" "$((8 << 20)) OK"

step 'the table'
expect_equal 'headings' "$(stat | head -n 1 | xargs)" \
  'NAME NODE ALGORITHM DISKSIZE DATA COMPR TOTAL STREAMS MOUNTPOINT'
expect_equal 'lines' "$(stat | wc -l)" 3
expect_equal 'row of b' "$(stat b | tail -n 1 | xargs)" 'b - zstd 64M 0B 0B 0B 0'
expect_equal 'DATA of a' "$(stat --noheadings --output DATA a | xargs)" 8M
expect_equal 'DATA of a in bytes' "$(stat --noheadings --bytes --output DATA a | xargs)" \
  $((8 << 20))
expect_equal 'raw' "$(stat --raw --noheadings --output NAME,DISKSIZE,ALGORITHM,MEM-LIMIT)" \
  $'a 1G lz4 0B\nb 64M zstd 32M'
for column in $(stat --output-all | head -n 1); do
  expect_success stat --output "$column"
done
expect_at_least 'columns of --output-all' "$(stat --output-all | head -n 1 | wc -w)" 13

step 'JSON, and the control socket'
expect_equal 'names' "$(stat --json | jq -r '[.[].name] | join(" ")')" 'a b'
expect_equal 'orig_data_size' "$(device_field a orig_data_size)" $((8 << 20))
expect_equal 'huge_pages' "$(device_field a huge_pages)" 2048
expect_equal 'export' "$(device_field b 'exports[0]')" "$(uri_of b)"
curl -sS --fail --unix-socket "$work/control.sock" http://localhost/v1/devices >"$work/http.json" ||
  fail 'the control socket does not answer'
expect_equal 'JSON of stat and of the control socket' "$(stat --json | jq -S .)" \
  "$(jq -S . "$work/http.json")"
code=$(curl -sS -o "$work/error.json" -w '%{http_code}' --unix-socket "$work/control.sock" \
  -X PATCH -d '{"disksize": 1}' http://localhost/v1/devices/a)
expect_equal 'status of a PATCH of disksize' "${code:0:1}" 4
grep -q disksize "$work/error.json" || fail "the refusal does not name the key: $(cat "$work/error.json")"

step 'refusals'
stat_fails '"c"' c
stat_fails '"COLOUR"' --output COLOUR
stat_fails '--frobnicate' --frobnicate
stop_server
stat_fails "$work/control.sock"
