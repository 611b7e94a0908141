# shellcheck shell=bash
# shellcheck disable=SC2154 # variables that collect sets
# Sourced by collect: compilers and linkers, stopped in the middle of their work.

program_gcc() {
  start gcc -O2 -g -S -o /dev/null "$data/source.c"
  wait_memory 220
  sample
}

program_gxx() {
  start g++ -std=c++20 -O2 -S -o /dev/null "$data/source.cpp"
  wait_memory 500
  sample
}

program_clang() {
  # An old clang does not get along with libstdc++'s ranges.
  sed -e '/<ranges>/d' -e 's/ | std::views::filter([^;]*; })//' -e 's/std::ranges::sort.*;/(void)sorted;/' \
    -e 's/std::ranges::count_if(sorted, test)/sorted.size()/' "$data/source.cpp" >"$work/clang.cpp"
  start clang++ -std=c++20 -O1 -g -S -o /dev/null "$work/clang.cpp"
  wait_memory 350
  sample
}

program_rustc() {
  # Not that of rustup, which finds its compiler by HOME.
  start /usr/bin/rustc --edition 2021 -A warnings -C opt-level=1 -C codegen-units=1 --emit obj \
    -o "$work/rust.o" "$data/source.rs"
  wait_memory 400
  sample
}

program_ocaml() {
  start ocaml unix.cma "$here/workloads/ocaml.ml" "$data" "$work/ready"
  wait_ready
  sample
}

# The largest archives of the system, all in one.
program_ld() {
  local archives
  mapfile -t archives < <(find /usr/lib/x86_64-linux-gnu /usr/lib/llvm-* -name '*.a' -size +4M \
    -size -20M ! -name '*icudata*' | sort | head -n 12)
  ((${#archives[@]} > 0)) || skip 'there are no large static libraries'
  start ld.bfd -r --whole-archive "${archives[@]}" -o "$work/bfd.o"
  wait_memory 120
  signal_tree STOP "${roots[-1]}"
  start ld.lld -r --threads=1 -O2 --whole-archive "${archives[@]}" -o "$work/lld.o"
  run_for 0.5
  sample
}
