# shellcheck shell=bash
# Sourced after lib.sh by tests that put the server into a control group with a memory limit.

# Sets group, limit_file, usage_file and version.
# shellcheck disable=SC2034 # usage_file is for who sources this
make_group() {
  local mounted
  mounted=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' \
    <(awk '{ print $1, $2, $3, $4 }' /proc/mounts))
  if [[ -n $mounted ]]; then
    version=1 group=$mounted/uzram-e2e-$$
    mkdir "$group" || skip "no control group could be made in $mounted"
    limit_file=$group/memory.limit_in_bytes usage_file=$group/memory.usage_in_bytes
  else
    mounted=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    [[ -n $mounted ]] || skip 'no memory controller is mounted'
    version=2 group=$mounted/uzram-e2e-$$
    mkdir "$group" || skip "no control group could be made in $mounted"
    limit_file=$group/memory.max usage_file=$group/memory.current
    if [[ ! -e $limit_file ]]; then
      rmdir "$group"
      skip "the control groups of $mounted have no memory controller"
    fi
  fi
  # A group can be removed when its last process has been reaped and its memory uncharged.
  at_exit "wait_until 10 rmdir '$group' 2>/dev/null"
  printf '   control groups version %d: %s\n' "$version" "$group"
}

set_limit() { echo "$1" >"$limit_file" || fail "limit $1 was refused by $limit_file"; }

oom_kills() {
  if ((version == 1)); then
    awk '$1 == "oom_kill" { print $2 }' "$group/memory.oom_control"
  else
    awk '$1 == "oom_kill" { print $2 }' "$group/memory.events"
  fi
}

# start_server_in_group ARGUMENTS OF serve...
start_server_in_group() {
  # shellcheck disable=SC2016,SC2154 # the inner shell's own pid and arguments; work is of lib.sh
  start_server_by bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
    "$UZRAM" serve --control "$work/control.sock" "$@"
}
