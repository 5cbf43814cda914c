#!/usr/bin/env bash
# Serves one GGUF checkpoint on 127.0.0.1 with llama.cpp's own HTTP server: the packaged one in the private
# Python environment of this checkout, or a llama-server from PATH.
#
#   scripts/serve-local.sh --model FILE.gguf --port N [--context N] [--slots N] [--kv-cache f16|q8_0|...] [--threads N]
#   scripts/serve-local.sh --version       engine and version, on one line
#
# --context is per slot, --threads 0 means all cores. PREVAL_ENGINE=xllamacpp|llama-server forces one of the two.
# Exit codes: 2 no engine, or arguments that make no sense; otherwise the server's own.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;; esac
root=$(cd "$(dirname "$0")/.." && pwd)
python=$root/.local/venv/bin/python

has_xllamacpp() { [ -x "$python" ] && "$python" -c 'import importlib.metadata as m; m.version("xllamacpp")' 2>/dev/null; }
has_llama_server() { command -v llama-server >/dev/null; }

engine=${PREVAL_ENGINE:-}
case $engine in
  '')
    if has_xllamacpp; then engine=xllamacpp
    elif has_llama_server; then engine=llama-server
    else
      echo "serve-local: no llama.cpp server here" >&2
      echo "  hint: scripts/setup.sh engine fetches one (xllamacpp); a llama-server on PATH does as well" >&2
      exit 2
    fi ;;
  xllamacpp)
    has_xllamacpp || { echo "serve-local: PREVAL_ENGINE=xllamacpp, but $python has none" >&2
                       echo "  hint: scripts/setup.sh engine" >&2; exit 2; } ;;
  llama-server)
    has_llama_server || { echo "serve-local: PREVAL_ENGINE=llama-server, but there is none on PATH" >&2; exit 2; } ;;
  *) echo "serve-local: PREVAL_ENGINE=$engine: xllamacpp and llama-server are known" >&2; exit 2 ;;
esac

# Threads that wait for each other at every layer spin for a moment only: on a machine that does something else as
# well (a build, another arm) endless spinning makes reads two to three times slower. Values do not change.
export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-10000}

if [ "$engine" = xllamacpp ]; then exec "$python" "$root/scripts/serve_llamacpp.py" "$@"; fi

if [ "${1:-}" = --version ]; then
  llama-server --version 2>&1 | sed -n 's/^version: */llama-server /p' | head -n 1
  exit 0
fi

model='' port=8080 context=2048 slots=1 kv_cache=f16 threads=0
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { echo "serve-local: $1 needs a value" >&2; exit 2; }
  case $1 in
    --model) model=$2 ;; --port) port=$2 ;; --context) context=$2 ;; --slots) slots=$2 ;;
    --kv-cache) kv_cache=$2 ;; --threads) threads=$2 ;;
    *) echo "serve-local: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
[ -f "$model" ] || { echo "serve-local: no checkpoint file ${model:-(--model is missing)}" >&2; exit 2; }
[ "$threads" -gt 0 ] || threads=$(nproc)

# Builds differ in what they know: a flag is passed when this one lists it.
help=$(llama-server --help 2>&1 || true)
knows() { grep -qe "$1" <<<"$help"; }
flags=()
if knows '--cache-ram'; then flags+=(--cache-ram 0); fi
if knows '--no-webui'; then flags+=(--no-webui); fi
# A quantised V cache needs flash attention; older builds know it as a switch without a value.
if [ "$kv_cache" != f16 ] && [ "$kv_cache" != f32 ]; then
  if knows '--flash-attn.*on|off'; then flags+=(-fa on); else flags+=(-fa); fi
fi
exec llama-server -m "$model" --host 127.0.0.1 --port "$port" -c $((context * slots)) -np "$slots" -t "$threads" \
  -ctk "$kv_cache" -ctv "$kv_cache" "${flags[@]}"
