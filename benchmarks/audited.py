"""Run deduplication tools on a small corpus, for the tests, the notebook and the page that audit their results.

    python -m benchmarks.audited --cache FOLDER [--tools text-dedup,datatrove,dolma] [--fixtures] [--demo]
    python -m benchmarks.audited --cache FOLDER --corpus corpora/bills_116_small.parquet --output FOLDER

Each tool is installed by pip into a virtual environment of its own, in the version that requirements.txt pins, and run
with the settings below. With --fixtures the corpus is the beginning of each passage of the demo, and what the tools
write becomes tests/auditing/tools/. Otherwise only the ids that each tool kept are written, as Parquet, for
`neardup audit`.

NeMo Curator needs a GPU with RAPIDS, and duplodocus is built from source by Rust's tools. Neither was run. Their
fixtures are made here from the same corpus, in the layout that their documentation and sources describe.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.peers import ensure_venv, requirement

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "tests" / "auditing" / "tools"
RESULTS = ROOT / "neardup_gpu" / "demo" / "audited.json"
WORDS = 120
"""Words of each passage of the demo in the corpus of the fixtures."""

THRESHOLD = 0.7
"""The threshold of the indexes in memory, which is that of text-dedup."""

DOCUMENTS = 40
"""Passages of the library in it."""

SETTINGS = {
    "text-dedup": {"module": "text_dedup.minhash", "ngram": 5, "num_perm": 250, "threshold": 0.7, "min_length": 5},
    "datatrove": {"n_grams": 5, "num_buckets": 14, "hashes_per_bucket": 8, "save_cluster_id": True},
    "dolma": {"function": "deduper_entrypoint", "document_key": "$.text", "bloom_filter_size": 1 << 20, "processes": 1},
}
"""The settings of each tool, which are its defaults besides the columns and the places."""

PACKAGES = {
    "text-dedup": ["text-dedup"],
    "datatrove": ["datatrove", "spacy", "xxhash", "orjson", "regex", "tokenizers", "numpy"],
    "dolma": ["dolma"],
}
WITHOUT_DEPENDENCIES = ("dolma",)
"""Tools whose command cannot be installed: a function of their compiled extension is run instead."""


def corpus_of_demo() -> list[dict[str, str]]:
    """Return the beginnings of some passages of the demo, and of all their variants."""
    import pyarrow.parquet

    rows = []
    for name in ("library", "mirror", "scans"):
        rows += pyarrow.parquet.read_table(ROOT / "neardup_gpu" / "demo" / f"{name}.parquet").to_pylist()
    chosen = {row["id"] for row in rows[:DOCUMENTS]}
    return [
        {"id": row["id"], "source": row["id"].partition("/")[0], "text": " ".join(row["text"].split()[:WORDS])}
        for row in rows
        if row["id"] in chosen or row["made_from"] in chosen
    ]


def write_lines(rows: list[dict[str, Any]], path: Path) -> None:
    """Write rows as JSON lines; as gzip without a time, so that the bytes are always the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def run_text_dedup(python: Path, corpus: Path, scratch: Path) -> Path:
    """Run min-hash of text-dedup; return the dataset that it wrote."""
    chosen = SETTINGS["text-dedup"]
    command = [str(python), "-m", chosen["module"], "--path", "json", "--data_files", str(corpus), "--split", "train"]
    command += ["--column", "text", "--output", str(scratch / "output"), "--cache_dir", str(scratch / "cache")]
    command += ["--threshold", str(chosen["threshold"]), "--num_proc", "1"]
    home = {"HF_HOME": str(scratch / "home"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    subprocess.run(command, check=True, stdout=sys.stderr, cwd=scratch, env=os.environ | home)
    return scratch / "output"


DATATROVE = """
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter
from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

corpus, scratch = sys.argv[1:]
reader = JsonlReader(corpus, text_key="text", id_key="id", add_file_path=False)
signatures, buckets, removed = (f"{scratch}/{name}" for name in ("signatures", "buckets", "removed"))
output, excluded = JsonlWriter(f"{scratch}/output"), JsonlWriter(f"{scratch}/excluded")
steps = [
    (1, [reader, MinhashDedupSignature(signatures)]),
    (MinhashConfig().num_buckets, [MinhashDedupBuckets(signatures, buckets)]),
    (1, [MinhashDedupCluster(buckets, removed, save_cluster_id=True)]),
    (1, [reader, MinhashDedupFilter(removed, load_cluster_ids=True, exclusion_writer=excluded), output]),
]
for number, (parts, step) in enumerate(steps):
    LocalPipelineExecutor(step, tasks=parts, workers=1, logging_dir=f"{scratch}/logs/{number}").run()
"""


def run_datatrove(python: Path, corpus: Path, scratch: Path) -> Path:
    """Run the four steps of datatrove's min-hash; return the folder with the kept and the excluded rows."""
    subprocess.run([str(python), "-c", DATATROVE, str(corpus.parent), str(scratch)], check=True, stdout=sys.stderr)
    (scratch / "both").mkdir()
    for name in ("output", "excluded"):
        shutil.move(scratch / name, scratch / "both" / name)
    return scratch / "both"


DOLMA = """
import json, sys, types
from pathlib import Path
import importlib.util

# The command imports all taggers, whose libraries do not install together on every machine. What it runs in the end is
# this function of its extension.
folder = Path(importlib.util.find_spec("dolma").submodule_search_locations[0])
sys.modules["dolma"] = types.ModuleType("dolma")
sys.modules["dolma"].__path__ = [str(folder)]
from dolma import dolma

dolma.deduper_entrypoint(sys.argv[1])
"""


def run_dolma(python: Path, corpus: Path, scratch: Path) -> Path:
    """Run the deduper of dolma by whole texts; return the attributes that it wrote."""
    chosen = SETTINGS["dolma"]
    (scratch / "documents").mkdir()
    write_lines([json.loads(line) for line in lines_of(corpus)], scratch / "documents" / "part-0.jsonl.gz")
    config = {
        "documents": [str(scratch / "documents" / "*.gz")],
        "work_dir": {"input": str(scratch / "in"), "output": str(scratch / "out")},
        "dedupe": {
            "name": "duplicates",
            "skip_empty": True,
            "documents": {"attribute_name": "duplicate", "key": chosen["document_key"]},
        },
        "bloom_filter": {
            "file": str(scratch / "bloom.bin"),
            "read_only": False,
            "size_in_bytes": chosen["bloom_filter_size"],
            "estimated_doc_count": 100_000,
            "desired_false_positive_rate": 1e-6,
        },
        "processes": chosen["processes"],
        "is_s3_volume": False,
    }
    subprocess.run([str(python), "-c", DOLMA, json.dumps(config)], check=True, stdout=sys.stderr)
    return scratch / "attributes"


TOOLS: dict[str, Callable[[Path, Path, Path], Path]] = {
    "text-dedup": run_text_dedup,
    "datatrove": run_datatrove,
    "dolma": run_dolma,
}


def lines_of(corpus: Path) -> list[bytes]:
    """Return the lines of a file of JSON lines, plain or compressed."""
    text = corpus.read_bytes()
    return (gzip.decompress(text) if corpus.suffix == ".gz" else text).splitlines()


def environment(tool: str, cache: Path) -> Path:
    """Return the interpreter of a virtual environment that has the tool."""
    lines = [requirement(package) for package in PACKAGES[tool]]
    return ensure_venv(tool, ["--no-deps", *lines] if tool in WITHOUT_DEPENDENCIES else lines, cache)


def run_tool(tool: str, corpus: Path, cache: Path, into: Path) -> None:
    """Run a tool on a file of JSON lines, and move what it wrote to `into`."""
    python = environment(tool, cache)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "corpus")
        folder.mkdir()
        shutil.copy(corpus, folder / corpus.name)
        found = TOOLS[tool](python, folder / corpus.name, Path(scratch))
        shutil.rmtree(into, ignore_errors=True)
        shutil.move(found, into)


def write_fixtures(tools: list[str], cache: Path) -> None:
    """Write the corpus of the tests, the output of each tool on it, and the layouts of the tools that were not run."""
    corpus = FIXTURES / "corpus.jsonl.gz"
    rows = corpus_of_demo()
    write_lines(rows, corpus)
    for tool in tools:
        run_tool(tool, corpus, cache, FIXTURES / tool)
    told = {
        tool: {"requirements": [requirement(name) for name in PACKAGES[tool]], "settings": SETTINGS[tool]}
        for tool in tools
    }
    told |= dict.fromkeys(("curator", "duplodocus"), "not run: made by benchmarks/audited.py in the documented layout")
    (FIXTURES / "versions.json").write_text(json.dumps(told, indent=1) + "\n")
    write_documented(rows)


def write_documented(rows: list[dict[str, str]]) -> None:
    """Write what NeMo Curator and duplodocus would write for equal texts, in their documented layouts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    first: dict[str, int] = {}
    groups = [first.setdefault(row["text"], number) for number, row in enumerate(rows)]
    sizes = {group: groups.count(group) for group in groups}
    removed = [number for number, group in enumerate(groups) if group != number]
    members = [number for number, group in enumerate(groups) if sizes[group] > 1]
    folder = FIXTURES / "curator"
    for name, columns in (
        ("FuzzyDuplicateIds", {"_curator_dedup_id": pa.array(removed, pa.int64())}),
        (
            "ConnectedComponentsStage",
            {
                "_curator_dedup_id": pa.array(members, pa.int64()),
                "_duplicate_group_id": pa.array([groups[member] for member in members], pa.int64()),
            },
        ),
    ):
        (folder / name).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), folder / name / "part.0.parquet")
    places: dict[int, int] = {}
    annotated = []
    for row, group in zip(rows, groups, strict=True):
        places[group] = places.get(group, -1) + 1
        about = {"cc_id": group, "cc_size": sizes[group], "cc_idx": places[group]}
        annotated.append({**row, "metadata": {"minhash": about if sizes[group] > 1 else None}})
    write_lines(annotated, FIXTURES / "duplodocus" / "part-0.jsonl.gz")


IN_MEMORY = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from benchmarks.peers import JOBS
print(json.dumps(JOBS[sys.argv[2]](Path(sys.argv[3]), Path(sys.argv[4]), "text", float(sys.argv[5]))[1]))
"""


def kept_in_memory(peer: str, corpus: Path, cache: Path, threshold: float) -> list[str]:
    """Return the ids that an index in memory of benchmarks/peers.py keeps."""
    package = PACKAGES_IN_MEMORY[peer]
    python = ensure_venv(package, [requirement(package), requirement("pyarrow")], cache)
    with tempfile.TemporaryDirectory() as scratch:
        command = [str(python), "-c", IN_MEMORY, str(ROOT), peer, str(corpus), scratch, str(threshold)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


PACKAGES_IN_MEMORY = {"rensa-lsh": "rensa", "datasketch-lsh": "datasketch", "gaoya": "gaoya"}


def write_removed_of_demo(tools: list[str], cache: Path) -> None:
    """Write which documents of the demo each tool removed, for the notebook that judges them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = [ROOT / "neardup_gpu" / "demo" / f"{name}.parquet" for name in ("library", "mirror", "scans")]
    whole = pa.concat_tables([pq.read_table(file, columns=["id", "text"]) for file in files])
    told: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        pq.write_table(whole, Path(scratch, "demo.parquet"))
        write_kept(tools, Path(scratch, "demo.parquet"), cache, Path(scratch))
        for tool in tools:
            kept = set(pq.read_table(Path(scratch, f"{tool}.parquet"))["id"].to_pylist())
            told[tool] = {
                "version": requirement(PACKAGES[tool][0]),
                "settings": SETTINGS[tool],
                "removed": [id for id in whole["id"].to_pylist() if id not in kept],
            }
    RESULTS.write_text(json.dumps(told, indent=1) + "\n")


def write_kept(tools: list[str], corpus: Path, cache: Path, output: Path) -> None:
    """Run tools on a corpus of Parquet and write the ids that each kept."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from neardup_gpu.auditing.claims import ClaimReader
    from neardup_gpu.auditing.settings import AuditSettings

    output.mkdir(parents=True, exist_ok=True)
    table = pq.read_table(corpus, columns=["id", "text"])
    with tempfile.TemporaryDirectory() as scratch:
        lines = Path(scratch, "corpus.jsonl")
        write_lines([{**row, "text": row["text"] or ""} for row in table.to_pylist()], lines)
        for tool in tools:
            if tool in PACKAGES_IN_MEMORY:
                kept = kept_in_memory(tool, corpus, cache, THRESHOLD)
                pq.write_table(pa.table({"id": kept}), output / f"{tool}.parquet")
                continue
            run_tool(tool, lines, cache, Path(scratch, tool))
            reader = ClaimReader(AuditSettings(tool=tool), "id")
            written = Path(scratch, tool, "output") if tool == "datatrove" else Path(scratch, tool)
            found = reader.ids(str(written), "removed" if tool == "dolma" else "kept")
            ids = table["id"]
            if tool == "dolma":
                found = ids.filter(pa.compute.invert(pa.compute.is_in(ids, found)))
            pq.write_table(pa.table({"id": found}), output / f"{tool}.parquet")
            print(f"{tool}: {len(found):,} of {len(ids):,} kept")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="folder for virtual environments")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--fixtures", action="store_true")
    parser.add_argument("--demo", action="store_true", help="write neardup_gpu/demo/audited.json")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    tools = given.tools.split(",")
    if given.fixtures:
        write_fixtures(tools, given.cache)
    if given.demo:
        write_removed_of_demo(tools, given.cache)
    if given.corpus is not None:
        write_kept(tools, given.corpus, given.cache, given.output)


if __name__ == "__main__":
    main()
