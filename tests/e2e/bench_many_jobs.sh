#!/bin/bash
# A run whose jobs need more descriptors than the soft limit allows raises that limit for itself.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

start_server --name many --size 16M

step 'forty connections with a soft limit of thirty-two descriptors'
(
  ulimit -S -n 32
  exec timeout 60 "$UZRAM" bench pages --target "$(uri_of many)" --size 16M --rounds 1 --jobs 40 \
    --buffer-random --yes
) >"$work/out" 2>"$work/err" || fail "bench failed: $(cat "$work/err")"
grep -q randread "$work/out" || fail "no rows: $(cat "$work/out")"
