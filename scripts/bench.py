#!/usr/bin/env python3
"""Speed of the parts that wait for nobody, each beside a yardstick measured in the same run.

    scripts/bench.py [--build build/test] [--data DIR] [--runs 15] [--no-quickstart]

Cold start of `preval --version`; the file hash beside `openssl dgst -sha256`; `verify` of whatever public
subsets lie in --data beside `sha256sum` on the same files; replies of the scriptable test server (tests/server) on a
core of its own; peak memory of a quickstart run (needs the engine of scripts/setup.sh). Times are the minimum over
the runs, replies the maximum: the machine's noise only ever slows."""
import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def seconds(command, runs, expect=(0,)):
    """The fastest of `runs` runs, in seconds of wall clock."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - start)
        if done.returncode not in expect:
            sys.exit(f"bench: {' '.join(map(str, command))}: exit {done.returncode}")
    return best


def peak_mb(command):
    """Peak resident memory of the command itself, in MB: its children (servers) are not counted."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.chdir(ROOT)
        os.execv(command[0], [str(part) for part in command])
    # What wait4() tells includes children that were waited for, the server among them: so the kernel's own
    # high-water mark of this one process is read while it lives.
    peak = 0
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                peak = max(peak, int(line.split()[1]))
        time.sleep(0.05)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"bench: {' '.join(map(str, command))}: exit {os.waitstatus_to_exitcode(status)}")
    return peak / 1024


def server_line(build):
    """What the load client says of the test server: vLLM reads by id, of 18 labels behind 300 tokens."""
    server, client = build / "tests/preval_test_server", build / "tests/http_load"
    for program in (server, client):
        if not program.exists():
            return f"left out: no {program.relative_to(build)} in {build} (a build with PREVAL_TESTS=ON has it)"
    cores = sorted(os.sched_getaffinity(0))
    with subprocess.Popen([server, "--kind", "vllm"], stdout=subprocess.PIPE, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, cores[:1])) as process:
        try:
            port = process.stdout.readline().rpartition(":")[2].strip()
            said = []
            for _ in range(3):
                load = subprocess.run([client, port], stdout=subprocess.PIPE, text=True,
                                      preexec_fn=lambda: os.sched_setaffinity(0, cores[-1:]))
                if load.returncode != 0 or not load.stdout.endswith(" 0 not 200\n"):
                    sys.exit(f"bench: {client} {port}: exit {load.returncode}: {load.stdout}")
                said.append(load.stdout.strip().removesuffix(", 0 not 200"))
        finally:
            process.terminate()
    replies, rest = max((line.split(" ", 1) for line in said), key=lambda parts: int(parts[0]))
    shared = "" if len(cores) > 1 else ", client on the same core"
    return f"{replies:>8} {rest}{shared}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/test", help="folder of a build with PREVAL_TESTS=ON")
    parser.add_argument("--data", help="folder of SUBSET/all.jsonl of the public suite")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--no-quickstart", action="store_true", help="leave out the run on a real model (8 to 13 minutes)")
    options = parser.parse_args()
    build = ROOT / options.build
    preval = build / "preval"

    print(f"cold start of preval --version   {seconds([preval, '--version'], options.runs) * 1000:8.1f} ms")

    with tempfile.TemporaryDirectory(dir=build) as folder:
        big = Path(folder) / "big"
        block = os.urandom(1 << 20)
        with open(big, "wb") as out:
            for _ in range(500):
                out.write(block)
        ours = seconds([build / "tests/hash_file", big], 5)
        theirs = seconds(["openssl", "dgst", "-sha256", big], 5)
        print(f"hash of a 500 MB file            {ours:8.3f} s   openssl dgst {theirs:.3f} s   ratio {ours / theirs:.2f}")

        if options.data:
            files = sorted(Path(options.data).resolve().glob("*/all.jsonl"))
            command = [preval, "verify", "prereg/public-local.json", "--data", Path(options.data).resolve()]
            ours = seconds(command, options.runs, expect=(0, 1))
            theirs = seconds(["sha256sum", *files], options.runs)
            print(f"verify of {len(files)} public subsets      {ours * 1000:8.1f} ms  sha256sum {theirs * 1000:.1f} ms"
                  f"   ratio {ours / theirs:.2f}")

        print(f"test server (vllm) on one core   {server_line(build)}")

        if (ROOT / ".local/checkpoints").is_dir() and not options.no_quickstart:
            command = [preval, "-q", "--db", Path(folder) / "bench.db", "run", "prereg/quickstart.json"]
            start = time.perf_counter()
            peak = peak_mb(command)
            print(f"quickstart run                   {time.perf_counter() - start:8.1f} s   peak memory of preval {peak:.1f} MB")
            again = seconds(command, 3)
            print(f"quickstart again, all stored     {again:8.2f} s")


if __name__ == "__main__":
    main()
