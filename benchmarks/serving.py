"""The service under load: documents are added at a fixed rate while clients query; and its memory over time.

    python -m benchmarks.serving --rate 1000 --seconds 60 --clients 4

A writer sends requests of `--batch` documents of 120 words, one every batch / rate seconds, whether or not the one
before was answered, as a crawl does: so waiting shows as latency, and not as a lower rate. Each client asks for a
document that was added, one request after another. The first seconds are left out. The program ends with status 1 if a
request is refused, an answer lacks the document that was asked for, or the rate was not reached.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from .run import machine

WORDS, LEFT_OUT = 120, 5.0
"""Words of a document; seconds at the beginning that are not counted."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Make an index and serve it on a free port; yield the process and its address."""
    command = [sys.executable, "-m", "neardup_gpu", "index"]
    subprocess.run([*command, "create", folder, "--quiet"], check=True)
    log = folder.with_suffix(".log")
    with log.open("wb") as file, subprocess.Popen([*command, "serve", folder, "--port", "0"], stderr=file) as process:
        try:
            while not (found := re.search(r"Serving .* at (http://\S+)", log.read_text())):
                time.sleep(0.05)
            while httpx.get(f"{found[1]}/health").status_code != 200:
                time.sleep(0.05)
            yield process, found[1]
        finally:
            if process.poll() is not None:
                print(f"the service ended with status {process.returncode}: {log.read_text()[-2000:]}", file=sys.stderr)
            process.terminate()


def memory_of(process: subprocess.Popen[bytes]) -> float:
    """Return the memory that a process holds and no file backs, in MB."""
    found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def text_of(number: int) -> str:
    """Return the text of a document; every tenth one is near the one before."""
    draw = random.Random(number - (number % 10 == 9))
    words = [f"w{draw.randrange(50_000)}" for _ in range(WORDS)]
    return " ".join([*words, "more"] if number % 10 == 9 else words)


async def load(address: str, process: subprocess.Popen[bytes], options: argparse.Namespace) -> dict[str, Any]:
    """Add and query for some seconds; return latencies in seconds, memory, and what went wrong."""
    added: list[int] = []
    found: dict[str, Any] = {"add": [], "query": [], "memory": [], "wrong": []}
    limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
    async with httpx.AsyncClient(base_url=address, timeout=120, limits=limits) as client:
        begin, end = time.perf_counter() + LEFT_OUT, time.perf_counter() + LEFT_OUT + options.seconds

        async def timed(kind: str, path: str, body: dict[str, Any], counted_from: float) -> Any:
            answer = await client.post(path, json=body)
            if answer.status_code != 200:
                found["wrong"].append(f"{path}: {answer.status_code} {answer.text[:200]}")
                return None
            if counted_from > begin:
                found[kind].append(time.perf_counter() - counted_from)
            return answer.json()

        async def add(first: int, due: float) -> None:
            numbers = range(first, first + options.batch)
            documents = [{"id": str(number), "text": text_of(number)} for number in numbers]
            answer = await timed("add", "/documents", {"documents": documents}, due)
            if answer is not None:
                added.append(first)
                if sum(not each["kept"] for each in answer["decisions"]) != options.batch // 10:
                    found["wrong"].append(f"documents from {first} on: other decisions than expected")

        async def write() -> None:
            running, first, due = set(), 0, time.perf_counter()
            while due < end:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                task = asyncio.create_task(add(first, due))
                running.add(task)
                task.add_done_callback(running.discard)
                first, due = first + options.batch, due + options.batch / options.rate
            await asyncio.gather(*running)

        async def ask(seed: int) -> None:
            draw = random.Random(seed)
            while time.perf_counter() < end:
                if not added:
                    await asyncio.sleep(0.05)
                    continue
                number = draw.choice(added) + draw.randrange(options.batch)
                answer = await timed("query", "/query", {"text": text_of(number)}, time.perf_counter())
                if answer and str(number) not in [each["id"] for each in answer["answers"][0]["matches"]]:
                    found["wrong"].append(f"query for {number}: not found")

        async def watch() -> None:
            while time.perf_counter() < end:
                found["memory"].append((time.perf_counter() - begin, memory_of(process)))
                await asyncio.sleep(1)

        await asyncio.gather(write(), watch(), *(ask(seed) for seed in range(options.clients)))
        found["late"] = time.perf_counter() - end
    return found


def summary(found: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of a run."""
    figures: dict[str, Any] = {"rate": options.rate, "seconds": options.seconds, "clients": options.clients}
    figures["added_per_second"] = round(len(found["add"]) * options.batch / options.seconds)
    for kind in ("add", "query"):
        seconds = np.array(found[kind] or [np.nan])
        for share in (50, 99):
            figures[f"{kind}_p{share}_ms"] = round(float(np.percentile(seconds, share)) * 1000, 1)
        figures[f"{kind}_most_ms"] = round(float(seconds.max()) * 1000, 1)
    figures["queries_per_second"] = round(len(found["query"]) / options.seconds)
    times, memory = np.array(found["memory"]).T
    later = times > options.seconds / 2
    if later.sum() > 2:
        figures["memory_mb"] = [round(float(memory[times <= options.seconds / 2].max())), round(float(memory.max()))]
        figures["memory_mb_per_minute"] = round(float(np.polyfit(times[later] / 60, memory[later], 1)[0]), 1)
    figures["last_answer_after_s"] = round(found["late"], 2)
    return {**figures, "wrong": len(found["wrong"])}


def described() -> dict[str, Any]:
    """Return the machine, its load and the versions of the packages that serve."""
    found = machine()
    return {**found, "packages": found["packages"] | {name: version(name) for name in ("fastapi", "uvicorn", "httpx")}}


def main() -> int:
    """Run the load and print its figures as a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=1000, help="documents per second")
    parser.add_argument("--seconds", type=float, default=60, help="length of the run; 600 for a soak")
    parser.add_argument("--batch", type=int, default=50, help="documents per request, a multiple of ten")
    parser.add_argument("--clients", type=int, default=4, help="clients that query")
    parser.add_argument("--folder", type=Path, help="where the index is made; a temporary folder unless given")
    parser.add_argument("--output", type=Path, help="JSON file of runs, to which this run is added")
    options = parser.parse_args()
    about = described()
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as scratch,
        served(Path(scratch, "index")) as (process, address),
    ):
        found = asyncio.run(load(address, process, options))
    figures = summary(found, options)
    print(json.dumps(figures))
    if options.output is not None:
        runs = json.loads(options.output.read_text())["runs"] if options.output.exists() else []
        command = " ".join(["python -m benchmarks.serving", *sys.argv[1:]])
        runs.append(
            {"command": command, "machine": about, "load_at_end": round(os.getloadavg()[0], 2), "figures": figures}
        )
        options.output.write_text(json.dumps({"runs": runs}, indent=1) + "\n")
    for line in found["wrong"][:5]:
        print(line, file=sys.stderr)
    return int(bool(found["wrong"]) or figures["added_per_second"] < 0.98 * options.rate)


if __name__ == "__main__":
    sys.exit(main())
