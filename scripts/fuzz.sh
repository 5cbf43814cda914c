#!/usr/bin/env bash
# Fuzzes every reply parser with libFuzzer (clang), one after the other, from the seeds in
# tests/fuzz/corpus/. A finding ends it with a non-zero code and the input that caused it.
#
#   scripts/fuzz.sh [SECONDS]      per protocol, default 600
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
case ${1:-} in -h | --help) sed -n '2,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;; esac
seconds=${1:-600}
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
for fuzzer in build/fuzz/tests/fuzz_*; do
  [ -x "$fuzzer" ] || continue
  kind=${fuzzer##*/fuzz_}
  mkdir -p "build/fuzz/corpus/$kind"
  echo "fuzz.sh: $kind, $seconds s"
  "$fuzzer" -max_total_time="$seconds" -max_len=20000 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$kind-" "build/fuzz/corpus/$kind" "tests/fuzz/corpus/$kind" \
    2>"build/fuzz/$kind.log" || { tail -n 40 "build/fuzz/$kind.log" >&2; exit 1; }
  sed -n 's/^stat::\(number_of_executed_units\|new_units_added\)/  \1/p' "build/fuzz/$kind.log"
done
