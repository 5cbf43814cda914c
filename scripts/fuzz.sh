#!/usr/bin/env bash
# Fuzzes every reply parser with libFuzzer (clang), as many at once as there are processors, from the seeds in
# tests/fuzz/corpus/. A finding ends it with a non-zero code and the input that caused it.
#
#   scripts/fuzz.sh [SECONDS]      per protocol, default 600
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
case ${1:-} in -h | --help) sed -n '2,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;; esac
seconds=${1:-600}

# FUZZER: one protocol's, for that long.
fuzz() {
  local kind=${1##*/fuzz_}
  mkdir -p "build/fuzz/corpus/$kind"
  if ! "$1" -max_total_time="$seconds" -max_len=20000 -timeout=10 -print_final_stats=1 \
       -artifact_prefix="build/fuzz/$kind-" "build/fuzz/corpus/$kind" "tests/fuzz/corpus/$kind" \
       2>"build/fuzz/$kind.log"; then
    { echo "fuzz.sh: $kind: a finding"; tail -n 40 "build/fuzz/$kind.log"; } >&2
    return 1
  fi
  echo "fuzz.sh: $kind, $seconds s:$(sed -n 's/^stat::number_of_executed_units: */ /p' "build/fuzz/$kind.log") inputs," \
       "$(sed -n 's/^stat::new_units_added: *//p' "build/fuzz/$kind.log") of them new, no finding"
}

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
export -f fuzz
export seconds
# xargs ends with 255 at once when a command does: the first finding stops what has not begun.
find build/fuzz/tests -name 'fuzz_*' -type f -executable | sort |
  xargs -P "$(nproc)" -I '{}' bash -c 'fuzz {} || exit 255'
