#!/usr/bin/env python3
"""Serves one GGUF checkpoint with llama.cpp's HTTP server, as packaged by xllamacpp, on 127.0.0.1.

scripts/serve-local.sh calls this; a plan's backends name that script. The settings are those that make reads
repeatable: no prompt is kept for later, and the KV cache is what was asked for or the server does not start.
"""
import argparse
import importlib.metadata
import os
import re
import signal
import socket
import stat
import sys
import threading
import time

LOG_KV_CACHE = 4  # the least llama.cpp log level that tells what the KV cache is made of
CACHE_LINE = re.compile(r"llama_kv_cache: size =.*K \((\w+)\):.*V \((\w+)\):")


def version() -> str:
    return f"xllamacpp {importlib.metadata.version('xllamacpp')}"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", metavar="FILE.gguf", help="checkpoint file")
    parser.add_argument("--port", type=int, default=8080, help="port on 127.0.0.1 (default 8080)")
    parser.add_argument("--context", type=int, default=2048, help="tokens per slot (default 2048)")
    parser.add_argument("--slots", type=int, default=1, help="sequences decoded at once (default 1)")
    parser.add_argument("--kv-cache", default="f16", help="type of the KV cache: f16, q8_0, ... (default f16)")
    parser.add_argument("--threads", type=int, default=0, help="threads; 0 means all cores (default)")
    parser.add_argument("--version", action="store_true", help="print the engine's version and end")
    return parser.parse_args(arguments)


def stop(message: str, code: int) -> None:
    print(f"serve_llamacpp: {message}", file=sys.stderr, flush=True)
    sys.exit(code)


def check_port(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            stop(f"port {port} on 127.0.0.1 cannot be had: {error.strerror}", 1)


class OwnLog:
    """What llama.cpp writes to stderr, read back, where stderr is a file."""

    def __init__(self) -> None:
        self.is_file = stat.S_ISREG(os.fstat(2).st_mode)
        self.start = os.stat("/proc/self/fd/2").st_size if self.is_file else 0

    def lines(self) -> list[str]:
        with open("/proc/self/fd/2", encoding="utf-8", errors="replace") as log:
            log.seek(self.start)
            return log.read().splitlines()


def check_kv_cache(log: OwnLog, wanted: str) -> None:
    if not log.is_file:
        print("KV cache: not checked, since stderr is no file", flush=True)
        return
    found: list[tuple[str, str]] = []
    for _ in range(40):  # the log has a thread of its own and may be late
        found = [match.groups() for match in map(CACHE_LINE.search, log.lines()) if match]
        if found:
            break
        time.sleep(0.05)
    if not found:
        stop("the log does not tell what the KV cache is made of", 1)
    if any(pair != (wanted, wanted) for pair in found):
        stop(f"KV cache {wanted} asked for, but the log says {found}", 1)
    print(f"KV cache: K {wanted}, V {wanted}", flush=True)


def main() -> None:
    options = parse(sys.argv[1:])
    if options.version:
        print(version())
        return
    if not options.model or not os.path.isfile(options.model):
        stop(f"no checkpoint file {options.model or '(--model is missing)'}", 2)
    check_port(options.port)

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())

    from xllamacpp import CommonParams, Server, ggml_type

    kv_type = getattr(ggml_type, f"GGML_TYPE_{options.kv_cache.upper()}", None)
    if kv_type is None:
        stop(f"unknown KV cache type {options.kv_cache}", 2)
    params = CommonParams()
    params.model.path = options.model
    params.port = options.port
    params.n_ctx = options.context * options.slots  # llama.cpp divides this among its slots
    params.n_parallel = options.slots
    params.cache_type_k = params.cache_type_v = kv_type
    params.cpuparams.n_threads = options.threads or len(os.sched_getaffinity(0))
    params.endpoint_props = True
    params.fit_params = False  # nothing is made smaller to fit the machine
    params.cache_ram_mib = 0  # prompts are not kept, up to 8 GiB of them, for requests that never reuse them
    params.cache_idle_slots = False
    params.ui = False
    params.verbosity = LOG_KV_CACHE

    log = OwnLog()
    try:
        server = Server(params)
    except RuntimeError as error:
        stop(f"llama.cpp's server did not start: {error}", 1)
    check_kv_cache(log, options.kv_cache)
    print(f"{version()} listening on {server.listening_address}", flush=True)
    ended.wait()
    del server
    print("stopped", flush=True)


if __name__ == "__main__":
    main()
