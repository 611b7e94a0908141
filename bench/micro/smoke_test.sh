#!/bin/bash
# smoke_test.sh PROGRAM: the program lists benchmarks and runs each of them without an error. How
# long they take decides nothing. The gigabyte of the memory program is left out: tests run side by
# side.
set -uo pipefail
export LC_ALL=C
unset UZRAM_CORPUS

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

program=${1:?expected the path of a benchmark program}
filter=--benchmark_filter=-/1073741824
listed=$("$program" --benchmark_list_tests "$filter") || fail "$program lists nothing"
((${#listed} > 0)) || fail "$program has no benchmarks"
output=$("$program" "$filter" --benchmark_min_time=0.001 2>/dev/null) || fail "$program failed: $output"
while read -r name; do
  grep -qF "$name" <<<"$output" || fail "$name did not run: $output"
done <<<"$listed"
! grep -q 'ERROR OCCURRED' <<<"$output" || fail "$output"
printf '%d benchmarks ran\n' "$(wc -l <<<"$listed")"
