#!/usr/bin/env python3
"""Checks preval's exact reads on llama.cpp against a second implementation that shares no code with it.

    scripts/check_exact.py [--plan prereg/public-local.json] [--data DIR] [--records 50] [--raw-probs N] [--binary FILE]

preval reads the first records of every subset into a store that is thrown away. Then the plan's own server is started
once more, each prompt is rendered again, and one reply gives the log-probabilities of the whole vocabulary: the softmax
over the labels must be what the store holds. Two fifths of the records are MASSIVE's, with 18 labels each, where there
are some. Labels outside the plan's `raw_probs` best tokens take preval a second, restricted read: --raw-probs 64 checks
that. Needs the engine of scripts/setup.sh. Exit codes: 0 within the limit, 1 otherwise."""
import argparse
import contextlib
import http.client
import json
import math
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 1e-4  # relative, of every label's probability
Json = dict[str, Any]


class Stop(Exception):
    """Why the check cannot go on."""


def exact_arm(plan: Json) -> tuple[Json, Json, Json]:
    """The first arm with exact reads on a llama.cpp server that the plan starts; its backend and checkpoint."""
    backends, checkpoints = ({item["id"]: item for item in plan[key]} for key in ("backends", "checkpoints"))
    for arm in plan["arms"]:
        backend, checkpoint = backends[arm["backend"]], checkpoints[arm["checkpoint"]]
        is_exact = (backend["kind"], backend["read"]) == ("llamacpp", "exact")
        if is_exact and backend.get("server") and checkpoint.get("template") != "none":
            return arm, backend, checkpoint
    raise Stop("the plan has no arm with exact reads on a llama.cpp server that it starts")


def choose_records(plan: Json, plans: Path, data: Path | None, wanted: int) -> dict[str, list[Json]]:
    """The first records of each subset that is there, about equally many, two fifths of them MASSIVE's."""
    found: dict[str, list[Json]] = {}
    for group in plan["datasets"]:
        for subset in group["subsets"]:
            file = (data or plans / group["data"]) / subset["id"] / "all.jsonl"
            if file.is_file():
                found[subset["id"]] = [json.loads(line) for line in file.read_bytes().split(b"\n") if line]
    massive = [name for name in found if name.startswith("massive-")]
    others = [name for name in found if name not in massive]
    counts: Counter[str] = Counter()
    for names, total in (massive, wanted * 2 // 5 if others else wanted), (others, wanted):
        turns = [name for turn in range(wanted) for name in names if turn < len(found[name])]
        counts.update(turns[: total - counts.total()])
    return {name: found[name][: counts[name]] for name in found if counts[name] > 0}


def render(wording: dict[str, str], record: Json, state_ascii: bool) -> tuple[list[Json], list[str], list[str]]:
    """Messages, the answers that are possible ("decision: A"), and what the store calls them."""
    [(name, asked)] = record["input"]["questions"].items()
    criteria, state, instructions = asked["criteria"], record["input"]["state"], asked["instructions"]
    letters = [chr(ord("A") + i) for i in range(len(criteria))]
    if asked["type"] == "noul":
        labels, keys = ["yes", "no"], ["true", "false"]
        alternatives = [("", criteria[key]) for key in keys]
    elif asked["type"] == "choice":
        labels, keys, alternatives = letters, list(criteria), list(criteria.items())
    else:
        labels = [str(i + 1) for i in range(len(criteria))] if len(criteria) <= 9 else letters
        keys, alternatives = [str(i) for i in range(len(criteria))], [(level, "") for level in criteria]
    about = {"id": name, "label_list": ", ".join(labels),
             "instructions": instructions if isinstance(instructions, str) else json.dumps(instructions)}
    form = "verdict" if asked["type"] == "noul" else "alternative"
    lines = [wording["opening"].format(**about), wording["question"].format(**about)]
    for label, (option, text) in zip(labels, alternatives, strict=True):
        lines.append(wording[form if text else f"{form}_bare"].format(label=label, name=option, description=text))
    lines.append(wording["closing"].format(**about))
    user = state if isinstance(state, str) else json.dumps(state, ensure_ascii=state_ascii)
    messages = [{"role": "system", "content": "\n".join(lines)}, {"role": "user", "content": user}]
    return messages, [f"{name}: {label}" for label in labels], keys


@contextlib.contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, which is ended on every way out."""
    with log.open("wb") as out:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    try:
        yield child
    finally:
        for number in signal.SIGTERM, signal.SIGKILL:
            if child.poll() is None:
                os.killpg(child.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(10)


def read_with_preval(command: list[str], store: Path, log: Path) -> dict[tuple[str, str], dict[str, float]]:
    """(subset, record) → key → probability."""
    with running(command, log) as child:
        if child.wait() not in (0, 4):
            raise Stop(f"preval run: exit {child.returncode}\n{log.read_text()[-2000:]}")
    stored: dict[tuple[str, str], dict[str, float]] = {}
    with contextlib.closing(sqlite3.connect(store)) as db:
        for subset, record, key, probability in db.execute(
                "SELECT subset, record_id, key, probability FROM v_label WHERE variant = 'none' AND repeat = 0"):
            stored.setdefault((subset, record), {})[key] = probability
    return stored


class Server:
    """llama.cpp's server on a free port of 127.0.0.1, over HTTP."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]

    def ask(self, path: str, body: Json | None = None) -> Any:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)) as connection:
            connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
            reply = connection.getresponse()
            content = reply.read()
        if reply.status != 200:
            raise Stop(f"{path}: HTTP {reply.status}: {content[:200].decode(errors='replace')}")
        return json.loads(content)

    def wait(self, child: subprocess.Popen[bytes], log: Path, limit_s: float) -> None:
        end = time.monotonic() + limit_s
        while time.monotonic() < end and child.poll() is None:
            with contextlib.suppress(OSError, Stop):
                self.ask("/health")
                return
            time.sleep(0.1)
        raise Stop(f"the server did not serve:\n{log.read_text()[-2000:]}")

    def tokens(self, text: str, special: bool = False, parse: bool = False) -> list[int]:
        return list(self.ask("/tokenize", {"content": text, "add_special": special, "parse_special": parse})["tokens"])

    def prompt(self, messages: list[Json], answers: list[str], reasoning: bool) -> tuple[list[int], list[int]]:
        """The tokens up to the label, and one token per label."""
        body = {"messages": messages, "chat_template_kwargs": {"enable_thinking": reasoning}}
        tokens = self.tokens(self.ask("/apply-template", body)["prompt"], parse=True)
        start = self.tokens("", special=True)  # the BOS of models that want one
        sequences = [self.tokens(answer) for answer in answers]
        leads, labels = {tuple(sequence[:-1]) for sequence in sequences}, [sequence[-1] for sequence in sequences]
        if len(leads) != 1 or len(set(labels)) != len(labels):
            raise Stop(f"labels that are not one token each: {answers}: {sequences}")
        return [*(start if tokens[: len(start)] != start else []), *tokens, *leads.pop()], labels

    def read(self, prompt: list[int], labels: list[int], best: int, size: int) -> tuple[list[float], int]:
        """The softmax over the labels, from the whole vocabulary; how many labels are outside the best tokens."""
        reply = self.ask("/completion", {"prompt": prompt, "n_predict": 1, "temperature": 0, "n_probs": size,
                                         "cache_prompt": False, "post_sampling_probs": False})
        tokens = [token for position in reply["completion_probabilities"] for token in position["top_logprobs"]]
        odds = {token["id"]: math.exp(token["logprob"]) for token in tokens}
        mass = math.fsum(odds.values())
        if len(odds) != size or abs(mass - 1) > 1e-3 or reply["tokens_evaluated"] != len(prompt):
            raise Stop(f"{len(odds)} of {size} values, of sum {mass:.6f}, behind {reply['tokens_evaluated']} tokens")
        least, total = sorted(odds.values(), reverse=True)[:best][-1], math.fsum(odds[label] for label in labels)
        return [odds[label] / total for label in labels], sum(odds[label] < least for label in labels)


def check(options: argparse.Namespace, stack: contextlib.ExitStack) -> int:
    plan_file, data = options.plan.resolve(), options.data.resolve() if options.data else None
    plan, plans, root = json.loads(plan_file.read_text(encoding="utf-8")), plan_file.parent, plan_file.parent.parent
    arm, backend, checkpoint = exact_arm(plan)
    wording = json.loads((plans / plan["prompt"]["file"]).read_text(encoding="utf-8"))
    chosen = choose_records(plan, plans, data, options.records)
    if not chosen:
        raise Stop("nothing could be compared: none of the plan's data is there (--data DIR)")

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="check_exact-")))
    store, log = folder / "check.db", folder / "log"
    best = backend["raw_probs"] = options.raw_probs or backend.get("raw_probs") or 64
    if options.raw_probs:  # a plan like this one, with links to what its paths lead to, and without its lock
        study = folder / "study" / plans.name
        study.mkdir(parents=True)
        for item in {*root.iterdir(), *plans.iterdir()} - {plans}:
            (study.parent / item.relative_to(root)).symlink_to(item)
        plan_file = study / "raw-probs.json"
        plan_file.write_text(json.dumps(plan), encoding="utf-8")
    command = [str(options.binary.resolve()), "-q", "--db", str(store), "run", str(plan_file), "--exploratory", "--arm",
               arm["id"], "--limit", str(max(map(len, chosen.values()))), "--logs", str(folder)]
    command += [word for subset in chosen for word in ("--subset", subset)] + (["--data", str(data)] if data else [])
    stored = read_with_preval(command, store, log)

    server = Server()
    values = {"port": server.port, "checkpoint": root / ".local/checkpoints" / checkpoint["files"][0]["name"],
              "root": root, "context": backend.get("context") or 2048, "slots": backend.get("slots") or 1,
              "kv_cache": backend.get("kv_cache") or "", "threads": backend.get("threads") or 0}
    child = stack.enter_context(running([part.format(**values) for part in backend["server"]["command"]], log))
    server.wait(child, log, arm.get("boot_limit_s") or 1500)
    size = server.ask("/v1/models")["data"][0]["meta"]["n_vocab"]
    n_read = 0
    differences: list[float] = []  # one a label
    for subset, records in chosen.items():
        answered = [record for record in records if (subset, record["id"]) in stored]
        n_before, n_outside = len(differences), 0
        for record in answered:
            messages, answers, keys = render(wording, record, plan["prompt"].get("state") != "utf-8")
            prompt, labels = server.prompt(messages, answers, bool(plan["prompt"].get("reasoning")))
            wanted, outside = server.read(prompt, labels, best, size)
            ours = stored[subset, record["id"]]
            if ours.keys() != set(keys):
                raise Stop(f"{subset}, {record['id']}: labels {keys} expected, {list(ours)} stored")
            differences += [abs(ours[key] / p - 1) for key, p in zip(keys, wanted, strict=True)]
            n_outside += outside
        n_read += len(answered)
        here = differences[n_before:]
        print(f"{subset:<22}{len(answered):3} of {len(records)} records, {len(here):3} labels, {n_outside} outside the "
              f"best {best}: largest relative difference {max(here, default=0):.1e}", flush=True)
    n_labels, worst = len(differences), max(differences, default=math.inf)
    verdict = "ok" if worst <= LIMIT else "above the limit" if differences else "nothing could be compared"
    print(f"{n_read} records, {n_labels} labels: largest relative difference {worst:.1e} (limit 1e-4): {verdict}")
    return 0 if worst <= LIMIT else 1


def on_signal(number: int, _: object) -> None:
    for other in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        signal.signal(other, signal.SIG_IGN)  # nothing interrupts the cleaning up
    sys.exit(128 + number)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", type=Path, default=ROOT / "prereg/public-local.json", help="the plan")
    parser.add_argument("--data", type=Path, help="folder of SUBSET/all.jsonl, instead of the plan's")
    parser.add_argument("--records", type=int, default=50, help="how many to compare (default 50)")
    parser.add_argument("--raw-probs", type=int, help="in place of the plan's raw_probs")
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/preval", help="preval itself")
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        signal.signal(number, on_signal)
    with contextlib.ExitStack() as stack:
        try:
            return check(parser.parse_args(), stack)
        except (Stop, OSError) as reason:
            sys.exit(f"check_exact: {reason}")


if __name__ == "__main__":
    sys.exit(main())
