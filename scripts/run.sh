#!/usr/bin/env bash
# From a clean checkout to a report: installs what is missing, builds, and runs a preregistered plan on a
# real model. A second call reuses everything.
#
#   scripts/run.sh [PLAN] [options of `preval run`]      default plan: prereg/quickstart.json
#
# PREVAL_ACCEPT_GEMMA_TERMS=1 or --accept-gemma-terms adds Gemma 3 270M, under the Gemma terms of use
# (https://ai.google.dev/gemma/terms). Exit codes: as `preval run`.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
case ${1:-} in -h | --help) sed -n '2,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;; esac
cd "$root"

plan=prereg/quickstart.json
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then plan=$1; shift; fi
gemma=()
for argument in "$@"; do [ "$argument" = --accept-gemma-terms ] && gemma=(--gemma); done
case ${PREVAL_ACCEPT_GEMMA_TERMS:-0} in '' | 0) ;; *) gemma=(--gemma) ;; esac

started=$(date +%s%N)
phase_started=$started
phase() {  # NAME [TIME]: prints how long the phase took that ended at TIME, or ends here
  local now; now=${2:-$(date +%s%N)}
  printf 'run.sh %-10s %6.1f s\n' "$1" "$(((now - phase_started) / 100000000))e-1" >&2
  phase_started=$now
}

scripts/setup.sh packages
phase packages

# The download waits for the network and the build for the processor: both at once.
mkdir -p .local
engine_started=$phase_started
{
  scripts/setup.sh engine "${gemma[@]}" 2>.local/engine.log || exit
  date +%s%N >.local/engine.ready
} & engine=$!
[ -x build/release/preval ] ||
  echo "run.sh building: a minute or two (.local/build.log); the model is fetched meanwhile (150 MB)" >&2
trap 'kill "$engine" 2>/dev/null || true' EXIT
cmake --preset release >.local/configure.log || { tail -n 20 .local/configure.log >&2; exit 2; }
cmake --build --preset release >.local/build.log || { tail -n 40 .local/build.log >&2; exit 2; }
phase build
status=0; wait "$engine" || status=$?
trap - EXIT
cat .local/engine.log >&2
if [ "$status" -eq 0 ]; then phase_started=$engine_started; phase engine "$(cat .local/engine.ready)"; fi
phase_started=$(date +%s%N)
if [ "$status" -ne 0 ]; then
  cat >&2 <<EOF
run.sh: there is no model to ask, so nothing was measured.
  hint: with a network, call scripts/run.sh again; what is there already is kept
  hint: to see the pipeline on simulated answers, marked so everywhere:
        build/release/preval rehearse $plan
EOF
  exit 5
fi

status=0
build/release/preval run "$plan" "$@" || status=$?
phase run
printf 'run.sh %-10s %6.1f s\n' total "$((($(date +%s%N) - started) / 100000000))e-1" >&2
exit "$status"
