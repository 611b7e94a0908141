# shellcheck shell=bash
# shellcheck disable=SC2154 # variables that collect sets
# Sourced by collect: language runtimes, each with a script that builds its working set, makes the
# file `ready` and sleeps.

# script COMMAND...
script() {
  start "$@" "$data" "$work/ready"
  wait_ready
  sample
}

program_python() { script /usr/bin/python3 "$here/workloads/python.py"; }
program_perl() { script perl "$here/workloads/perl.pl"; }
program_ruby() { script ruby "$here/workloads/ruby.rb"; }
program_node() { script node "$here/workloads/node.js"; }
program_lua() { script lua5.4 "$here/workloads/lua.lua"; }
program_php() { script php -d memory_limit=1G "$here/workloads/php.php"; }
program_java() { script java -Xms64m -Xmx512m "$here/workloads/Java.java"; }
program_guile() { script guile --no-auto-compile "$here/workloads/guile.scm"; }
program_r() { script R --vanilla --slave -f "$here/workloads/r.R" --args; }

# Tools that hold all of their input, kept from ending by input that does not end.
program_textutils() {
  start bash "$here/workloads/bash.sh" "$data" "$work/ready"
  wait_ready
  start sh -c "{ cat '$data/packages.txt'; exec sleep 600; } | sort -S 300M"
  start sh -c "{ cat '$data/records.json'; exec sleep 600; } | jq -n '[inputs] | length'"
  start sh -c "{ cat '$data/docs.txt'; exec sleep 600; } |
    awk '{ for (i = 1; i <= NF; i++) { count[\$i]++; last[\$i] = NR } }'"
  wait_settled 100
  sample
}
