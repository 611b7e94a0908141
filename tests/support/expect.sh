# shellcheck shell=bash
# Sourced by the libraries of tests/e2e and tests/guest: failing, waiting and comparing.
#
# $work is the test's folder, set by whoever sources this; what its server has printed is in
# $work/server.out.
# shellcheck disable=SC2154

# To standard error, so that it is also seen from within $( ), where only the subshell ends.
fail() {
  printf 'FAILED: %s\n' "$*" >&2
  [[ -s $work/server.out ]] && sed 's/^/  server: /' "$work/server.out" | tail -n 20 >&2
  exit 1
}

# wait_until SECONDS COMMAND...: polls; 1 when COMMAND did not succeed in that time.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

expect_equal() {
  [[ $2 == "$3" ]] || fail "$1: got \"$2\", expected \"$3\""
}

# expect_at_most WHAT VALUE LIMIT
expect_at_most() {
  (($2 <= $3)) || fail "$1: got $2, expected at most $3"
  printf '   %s: %d (at most %d)\n' "$1" "$2" "$3"
}

# expect_at_least WHAT VALUE LIMIT
expect_at_least() {
  (($2 >= $3)) || fail "$1: got $2, expected at least $3"
  printf '   %s: %d (at least %d)\n' "$1" "$2" "$3"
}

expect_success() {
  local output
  output=$("$@" 2>&1) || fail "\"$*\" failed: $output"
}
