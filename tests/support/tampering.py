"""Mutations of what this package keeps in folders and files, and the judgement of what comes of them.

    python tests/support/tampering.py --mutations 20000 --seed 1 --json counts.json

A victim is an artefact: an index, a file of fingerprints, a file of sketches, a work folder or a result. A mutation
changes one file of it, or one field of a file; in about half of the mutations the checksums are made right again, as
somebody who prepares a file would do. Then the artefact is used as its owner would use it.

Allowed are the answer of the unchanged artefact, and a NeardupError of one line. Where checksums were made right again,
any answer that follows from what is stored is allowed as well. Never allowed are another exception, a signal, more
than `SECONDS`, and a change to a file outside the artefact.

Each victim is tried in a process of its own, which says before each mutation which one it is: so a process that dies or
hangs is known by its last line, and is begun again behind that mutation.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import io
import json
import logging
import os
import random
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from flat import flat

import neardup_gpu as nd
from neardup_gpu import dedup
from neardup_gpu.arrow_versions import is_about_null_lists
from neardup_gpu.definitions import METADATA_KEY
from neardup_gpu.store import arrays as stored_arrays
from neardup_gpu.store.artefacts import with_checksum
from neardup_gpu.store.checksums import checksum, seal

SECONDS = 5.0
"""Time that a use of an artefact may take."""

PATIENCE = 6
"""How many times that a busy machine may take."""

WORDS = [f"w{i}" for i in range(30)]
NUMBERS: list[Any] = [-1, 0, 1, 2, 7, 255, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 1e300, 0.5]
VALUES: list[Any] = [
    *NUMBERS,
    None,
    True,
    "",
    "x",
    "../../outside/precious",
    "/etc/passwd",
    "\ud800",
    [],
    {},
    [[]],
    "9" * 5000,
]
WORDS_OF_8 = [
    b"\xff" * 8,
    b"\xff" * 7 + b"\x7f",
    b"\0" * 8,
    b"\0" * 7 + b"\x80",
    b"\1" + b"\0" * 7,
    b"\0\0\0\0\1\0\0\0",
]


def texts(number: int, seed: int = 1) -> list[str]:
    """Texts of few words, many of which resemble one another."""
    draw, found = random.Random(seed), []
    for _ in range(number):
        if found and draw.random() < 0.6:
            words = draw.choice(found).split()
            words[draw.randrange(len(words))] = draw.choice(WORDS)
        else:
            words = [draw.choice(WORDS) for _ in range(draw.randint(3, 25))]
        found.append(" ".join(words))
    return found


def written(folder: Path) -> Path:
    """Write the texts to a file, and return its path."""
    rows = [json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts(60))]
    (folder / "in.jsonl").write_text("".join(rows))
    return folder / "in.jsonl"


# ------------------------------------------------------------------------------------------------------------ victims


def _answers_of(found: Any) -> Any:
    if isinstance(found, pa.Table):
        return found.to_pylist()
    if isinstance(found, np.ndarray):
        return found.tolist()
    return [_answers_of(each) for each in found] if isinstance(found, tuple) else found


def _tried(*uses: Callable[[], Any]) -> list[Any]:
    """The outcome of each use: its answer, or that it was refused in one line."""
    found: list[Any] = []
    for use in uses:
        try:
            found.append(_answers_of(use()))
        except nd.NeardupError as error:
            line = str(error)
            assert line and "\n" not in line and len(line) < 2_000, line
            found.append(Refused(line))
    return found


class Refused(str):
    """The line of a NeardupError."""


def make_index(kind: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        how: dict[str, Any] = {
            "minhash": {"method": nd.MinHash(filter=(6, 2, 1)), "threshold": 0.5, "containment": 2, "columns": "value"},
            "exact": {"method": "exact", "threshold": 0.5},
            "simhash": {"method": nd.SimHash(radius=8), "threshold": 0.5, "expected": 100},
            "estimates": {"method": nd.MinHash(filter=(6, 2, 1)), "threshold": 0.5, "sets": False},
        }[kind]
        with flat(nd.Index.create, folder / "x", shingle_size=2, engine="cpu", **how) as index:
            number = [f"d{i}" for i in range(60)] if kind != "exact" else list(range(60))
            rows = {"id": number, "text": texts(60)}
            if kind == "minhash":
                rows["value"] = [i % 7 for i in range(60)]
            index.add(rows, id_column="id", commit_every=25)
            index.remove([number[3], number[40]])

    return make


def use_index(folder: Path, draw: random.Random) -> list[Any]:
    asked = [*texts(60)[:8], "w1 w2 w3", ""]
    path = folder / "x"
    engine = nd.Engine(backend="cpu", threads=1)

    def query() -> Any:
        with nd.Index.open(path, engine=engine) as index:
            found = [index.query(text).to_pylist() for text in asked[:3]]
            return [*found, index.query({"text": asked}).to_pylist()]

    def containment() -> Any:
        with nd.Index.open(path, engine=engine) as index:
            if index.info()["containment"] is None:
                return None
            return [index.query(asked[0], containment=0.5, direction=way).to_pylist() for way in ("in", "of")]

    def check() -> Any:
        with nd.Index.open(path, engine=engine) as index:
            return [index.check()["documents"], index.info()["documents"], len(repr(index)), len(index._repr_html_())]

    def decide() -> Any:
        with nd.Index.open(path, engine=engine) as index:
            return index.decide().documents.to_pylist()

    def write() -> Any:
        with nd.Index.open(path, engine=engine) as index:
            value = {"value": [1]} if index.info()["columns"] else {}
            kind = index.info()["ids"]
            added = index.add(
                {"id": ["new"] if kind == "string" else [1000], "text": [asked[0] + " w9"], **value}, id_column="id"
            )
            index.remove(["d7"] if kind == "string" else [7])
            if draw.random() < 0.5:
                index.compact()
            return [added.kept, index.query(asked[0]).to_pylist()]

    return _tried(query, containment, check, decide, write)


def make_hamming(kind: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        draw = np.random.default_rng(3)
        values = draw.integers(0, 2**64, (300, 2) if kind == "wide" else 300, np.uint64)
        values[100:140] = values[:40]
        values[150:200] ^= np.uint64(5)
        ids = {"plain": None, "compressed": [f"i{i}" for i in range(300)], "wide": np.arange(300) * 3}[kind]
        index = nd.hamming.HammingIndex(values, 3, ids, compress=kind == "compressed", backend="cpu")
        index.save(folder / "x.index")

    return make


def use_hamming(folder: Path, draw: random.Random) -> list[Any]:
    from neardup_gpu.jobs.info import check, describe

    def query() -> Any:
        index = nd.hamming.HammingIndex.load(folder / "x.index", backend="cpu")
        draw = np.random.default_rng(3)
        values = draw.integers(0, 2**64, (300, 2) if index.design.bits == 128 else 300, np.uint64)
        few = [[each.values.tolist() for each in index.query(values[i : i + 1])] for i in (0, 120, 160)]
        return [*few, *(each.values.tolist() for each in index.query(values))]

    def nearest() -> Any:
        index = nd.hamming.HammingIndex.load(folder / "x.index", check=True, backend="cpu")
        values = np.random.default_rng(4).integers(0, 2**64, (9, 2) if index.design.bits == 128 else 9, np.uint64)
        return [*(each.values.tolist() for each in index.nearest(values, 2)), len(index), repr(index)]

    return _tried(query, nearest, lambda: describe(folder / "x.index")["counts"], lambda: check(folder / "x.index")[:3])


def make_sketches(kind: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        method = {
            "minhash": nd.MinHash(filter=(6, 2, 1)),
            "bottomk": nd.BottomK(s=16, leading=4),
            "simhash": nd.SimHash(radius=8),
        }
        written(folder)
        nd.sketches.sketch(
            folder / "in.jsonl",
            folder / "x.parquet",
            id_column="id",
            engine="cpu",
            recipe=nd.Recipe(shingles=nd.Shingles(2), method=method[kind]),
        )

    return make


def use_sketches(folder: Path, draw: random.Random) -> list[Any]:
    from neardup_gpu.jobs.info import check, describe

    path = folder / "x.parquet"
    engine = nd.Engine(backend="cpu", threads=1)
    return _tried(
        lambda: nd.sketches.pairs([path], engine=engine),
        lambda: nd.sketches.clusters([path], threshold=0.5),  # refused, but of bottom-k
        lambda: describe(path)["kind"],
        lambda: check(path)[:3],
    )


def make_result(folder: Path) -> None:
    written(folder)
    nd.dedup(
        folder / "in.jsonl",
        id_column="id",
        output=folder / "x",
        engine="cpu",
        recipe=nd.Recipe(shingles=nd.Shingles(2), threshold=0.5),
    )


def use_result(folder: Path, draw: random.Random) -> list[Any]:
    from neardup_gpu.jobs.info import check, describe
    from neardup_gpu.report_page import of_folder
    from neardup_gpu.results.explanation import explain

    path = folder / "x"
    removed = draw.choice(["d7", "d12", "d30"])
    uses = [
        lambda: str(explain(path, removed)),
        lambda: describe(path)["kind"],
        lambda: check(path)[:3],
        lambda: len(of_folder(path).html) > 1000 if draw.random() < 0.1 else None,
    ]
    if draw.random() < 0.3:
        again = partial_dedup(folder, path)
        uses.append(again)
    return _tried(*uses)


def partial_dedup(folder: Path, path: Path) -> Callable[[], Any]:
    def again() -> Any:
        source = folder / "in.jsonl"
        found = nd.dedup(
            source,
            id_column="id",
            output=path,
            engine="cpu",
            recipe=nd.Recipe(shingles=nd.Shingles(2), threshold=0.5),
            writing=nd.Writing(overwrite=True),
        )
        return found.report["counts"]["kept"]

    return again


def make_work(folder: Path) -> None:
    """A job that was ended by its output, which is there already when all tasks are done."""
    written(folder)
    _work(folder, "done")


def _work(folder: Path, output: str) -> Any:
    from neardup_gpu.tasks.workers import Workers

    recipe = nd.Recipe(method=nd.MinHash(filter=(6, 2, 1)), shingles=nd.Shingles(2), threshold=0.5)
    return dedup(
        folder / "in.jsonl",
        output=folder / output,
        workers=Workers(work_dir=str(folder / "x"), keep_work=True, number=1, slice_bytes=2000),
        id_column="id",
        engine=nd.Engine(backend="cpu", threads=1),
        recipe=recipe,
    ).report["counts"]["kept"]


def use_work(folder: Path, draw: random.Random) -> list[Any]:
    from neardup_gpu.jobs.info import check, describe

    path = folder / "x"
    return _tried(lambda: describe(path)["kind"], lambda: check(path)[:5], lambda: _work(folder, "again"))


VICTIMS: dict[str, tuple[Callable[[Path], None], Callable[[Path, random.Random], list[Any]]]] = {
    **{f"index-{kind}": (make_index(kind), use_index) for kind in ("minhash", "exact", "simhash", "estimates")},
    **{f"hamming-{kind}": (make_hamming(kind), use_hamming) for kind in ("plain", "compressed", "wide")},
    **{f"sketches-{kind}": (make_sketches(kind), use_sketches) for kind in ("minhash", "bottomk", "simhash")},
    "result": (make_result, use_result),
    "work": (make_work, use_work),
}


# ---------------------------------------------------------------------------------------------------------- mutations


def mutate(folder: Path, draw: random.Random) -> tuple[str, bool]:
    """Change one file of a victim; return what was done, and whether the checksums are right again."""
    files = sorted(
        each for each in folder.rglob("*") if each.is_file() and each.name != "in.jsonl" and each.name != "lock"
    )
    files = [each for each in files if "done" not in each.parts]
    path = draw.choice(files)
    data = path.read_bytes()
    if draw.random() < 0.5:
        for change in (_in_arrays, _in_manifest, _in_report, _in_record, _in_parquet):
            if (what := change(path, data, draw)) is not None:
                return f"{path.name}: {what}", True
    return f"{path.name}: {_raw(folder, path, data, files, draw)}", False


def _raw(folder: Path, path: Path, data: bytes, files: list[Path], draw: random.Random) -> str:
    """Change the bytes of a file, or what lies under its name."""
    how = draw.choice(
        [
            "bit",
            "bit",
            "word",
            "word",
            "cut",
            "longer",
            "zeros",
            "swap",
            "gone",
            "link",
            "null",
            "pipe",
            "folder",
            "inner",
        ]
    )
    if how == "inner":
        inner = path.parent
        if inner == folder or inner.parent == folder.parent or not any(inner == each for each in folder.glob("*/*")):
            how = "link"
        else:
            moved = folder.parent / "outside" / "moved"
            shutil.copytree(inner, moved)
            shutil.rmtree(inner)
            inner.symlink_to(moved)
            return "inner folder is a link"
    at = draw.randrange(max(1, len(data)))
    changed = bytearray(data)
    if how == "bit" and data:
        changed[at] ^= 1 << draw.randrange(8)
    elif how == "word":
        at -= at % 8
        changed[at : at + 8] = draw.choice(WORDS_OF_8)[: max(0, len(data) - at)]
    elif how == "cut":
        del changed[at:]
    elif how == "longer":
        changed += bytes(draw.randrange(1, 5000))
    elif how == "zeros":
        changed[at : at + 4096] = bytes(len(changed[at : at + 4096]))
    elif how == "swap":
        changed = bytearray(draw.choice(files).read_bytes())
    else:
        path.unlink()
        outside = folder.parent / "outside" / "precious"
        {
            "gone": lambda: None,
            "bit": lambda: None,
            "link": lambda: path.symlink_to(draw.choice([outside, Path("nowhere")])),
            "null": lambda: path.symlink_to(draw.choice(["/dev/zero", "/dev/null"])),
            "pipe": lambda: os.mkfifo(path),
            "folder": path.mkdir,
        }[how]()
        return how
    path.write_bytes(changed)
    return how


def _any_value(value: Any, draw: random.Random) -> Any:
    if type(value) is int and draw.random() < 0.6:
        return draw.choice([value + 1, value - 1, -value, value * 2, *NUMBERS])
    return draw.choice(VALUES)


def _in_json(found: Any, draw: random.Random) -> str:
    """Change a field of a JSON object, wherever it lies."""
    spots: list[tuple[Any, Any]] = []
    waiting = [found]
    while waiting:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else list(range(len(each)))
        for key in keys:
            spots.append((each, key))
            if isinstance(each[key], (dict, list)):
                waiting.append(each[key])
    where, key = draw.choice(spots)
    how = draw.random()
    if how < 0.1:
        del where[key]
        return f"{key} is gone"
    if how < 0.2 and isinstance(where[key], list):
        where[key] = where[key] * draw.choice([2, 3, 1000])
        return f"{key} many times"
    if how < 0.25 and isinstance(where, dict):
        where["more"] = draw.choice(VALUES)
        return "one more field"
    where[key] = _any_value(where[key], draw)
    return f"{key} = {where[key]!r:.40}"


def _in_manifest(path: Path, data: bytes, draw: random.Random) -> str | None:
    match = re.fullmatch(rb'\{"checksum": "([0-9a-f]{16})", "manifest": (.*)\}\n', data, re.DOTALL)
    if match is None:
        return None
    found = json.loads(match[2])
    if draw.random() < 0.2 and isinstance(found.get("recipe"), str):
        recipe = json.loads(found["recipe"])
        what = _in_json(recipe, draw)
        found["recipe"] = json.dumps(recipe)
    else:
        what = _in_json(found, draw)
    text = json.dumps(found).encode()
    path.write_bytes(f'{{"checksum": "{checksum(text):016x}", "manifest": '.encode() + text + b"}\n")
    return f"manifest, {what}"


def _in_report(path: Path, data: bytes, draw: random.Random) -> str | None:
    if path.name != "report.json":
        return None
    what: list[str] = []
    change_report(path, lambda found: what.append(_in_json(found, draw)))
    return f"report, {what[0]}"


def change_report(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a report, and make its checksum right again."""
    found = json.loads(path.read_bytes())
    found.pop("checksum", None)
    change(found)
    path.write_bytes(with_checksum(json.dumps(found, indent=1).encode()))


def _in_record(path: Path, data: bytes, draw: random.Random) -> str | None:
    if path.suffix != ".json":
        return None
    found = json.loads(data)
    sealed = found.pop("checksum", None)
    what = _in_json(found, draw)
    if sealed is not None and isinstance(found, dict):
        found["checksum"] = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:32]
    path.write_text(json.dumps(found))
    return f"record, {what}"


def _in_arrays(path: Path, data: bytes, draw: random.Random) -> str | None:
    """Change values, the header or the shape of a file of named arrays."""
    kinds = {b"NEARDUPX": 1, b"NEARDUPD": 1, b"NEARDUPO": 1, b"NEARDUPH": 3}
    preamble = stored_arrays._PREAMBLE
    if data[:8] not in kinds or len(data) < preamble.itemsize:
        return None
    first = np.frombuffer(data, preamble, 1)[0]
    if first["version"] != kinds[data[:8]] or first["text"] > len(data):
        return None  # an exchange has the same magic
    kind = stored_arrays.ArraysFormat(data[:8], kinds[data[:8]], "x", "x", "x")
    file = stored_arrays.ArraysFile(path, kind)
    arrays = {name: np.array(array) for name, array in file.arrays.items()}
    header = {name: value for name, value in file.header.items() if name != "arrays"}
    del file
    name, how = draw.choice(sorted(arrays)), draw.random()
    if how < 0.2 and header:
        what = f"header, {_in_json(header, draw)}"
    elif how < 0.3:
        arrays[name] = draw.choice(
            [
                arrays[name][:-1],
                np.concatenate([arrays[name], arrays[name]]),
                arrays[name][:0],
                arrays[name].reshape(1, -1),
            ]
        )
        what = f"{name} of another shape"
    elif how < 0.35:
        del arrays[name]
        what = f"{name} is gone"
    elif how < 0.4:
        arrays[name] = arrays[name].astype(draw.choice([np.uint8, np.int64, np.uint64, np.uint32]))
        what = f"{name} of another dtype"
    elif how < 0.45:
        arrays["more"] = np.arange(9)
        what = "one more array"
    else:
        flat = arrays[name].reshape(-1)
        for _ in range(draw.choice([1, 1, 3, 20])):
            if len(flat):
                at, size = draw.randrange(len(flat)), flat.itemsize
                word = draw.choice([*WORDS_OF_8, draw.randbytes(8), draw.randbytes(8)])[:size]
                some = [np.frombuffer(word, flat.dtype)[0], flat[draw.randrange(len(flat))]]
                flat[at] = draw.choice(some)
        what = f"values of {name}"
    out = io.BytesIO()
    text = stored_arrays._described(header, {key: (array.dtype, array.shape) for key, array in arrays.items()})
    if how > 0.97:
        described = json.loads(text)
        what = f"described as: {_in_json(described, draw)}"
        text = json.dumps(described).encode()
    arrays = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    sums = [found for array in arrays.values() for found in stored_arrays._checksums(array)]
    out.write(kind._beginning(text, sums))
    for array in arrays.values():
        out.write(array.tobytes() + bytes(-array.nbytes % 4096))
    path.write_bytes(out.getvalue())
    return what


def _in_parquet(path: Path, data: bytes, draw: random.Random) -> str | None:
    """Change a column or the recipe of a Parquet file, and seal it again."""
    if data[:4] != b"PAR1" or path.parent.name == "kept":
        return None
    table = pq.read_table(path)
    about = dict(table.schema.metadata or {})
    how = draw.random()
    name = draw.choice(table.column_names)
    number = table.column_names.index(name)
    if how < 0.35 and METADATA_KEY in about:
        recipe = json.loads(about[METADATA_KEY])
        what = f"recipe, {_in_json(recipe, draw)}"
        table = table.replace_schema_metadata({**about, METADATA_KEY: json.dumps(recipe).encode()})
    elif how < 0.45:
        table, what = table.drop_columns([name]), f"{name} is gone"
    elif how < 0.55:
        table, what = pa.concat_tables([table, table.slice(0, 5)]), "rows again"
    elif how < 0.65:
        table, what = table.slice(draw.randrange(5), draw.choice([0, 1, 20])), "fewer rows"
    elif how < 0.8:
        column = pa.nulls(len(table), table.schema.field(name).type)
        table, what = table.set_column(number, name, column), f"{name} is null"
    else:
        column = table[name].combine_chunks()
        values = column.to_pylist()
        if values:
            values[draw.randrange(len(values))] = draw.choice([values[0], None, values[-1]])
        with contextlib.suppress(pa.ArrowException, OverflowError, TypeError):
            if pa.types.is_integer(column.type):
                values[draw.randrange(len(values))] = draw.choice([-1, 0, 2**31, 2**63 - 1])
            table = table.set_column(number, name, pa.array(values, column.type))
        what = f"values of {name}"
    out = io.BytesIO()
    try:
        pq.write_table(table, out, compression="zstd", write_page_checksum=True)
    except pa.ArrowException as error:
        assert is_about_null_lists(error)
        return None
    path.write_bytes(out.getvalue())
    seal(path)
    return what


# ------------------------------------------------------------------------------------------------------------- judging


def _outside(folder: Path) -> dict[str, Any]:
    """What is outside a victim: nobody may touch it."""
    return {
        str(each.relative_to(folder)): (each.stat().st_mtime_ns, each.read_bytes() if each.is_file() else None)
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


def try_one(name: str, seed: int, number: int, base: Path, whole: Path, expected: dict[str, list[Any]]) -> str:
    """Mutate a copy of a victim and use it; return "same", "refused" or "another", or raise what may not be."""
    draw = random.Random(f"{name} {seed} {number}")
    place = base / "place"
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(whole, place / "victim")
    (place / "outside").mkdir()
    (place / "outside" / "precious").write_text("nobody may touch this")
    what, made_right = mutate(place / "victim", draw)
    print(f"{number} {what}", flush=True)
    before = _outside(place / "outside")
    how = f"{name} {number % 64}"
    found = VICTIMS[name][1](place / "victim", random.Random(how))
    assert _outside(place / "outside") == before, "a foreign file was touched"
    if how not in expected:
        shutil.rmtree(place)
        shutil.copytree(whole, place / "victim")
        expected[how] = VICTIMS[name][1](place / "victim", random.Random(how))
        assert not all(isinstance(each, Refused) for each in expected[how]), expected[how]
    if any(isinstance(one, Refused) and one != other for one, other in zip(found, expected[how], strict=True)):
        wrong = [
            (one, other)
            for one, other in zip(found, expected[how], strict=True)
            if not isinstance(one, Refused) and one != other
        ]
        outcome = "refused"
    else:
        wrong, outcome = [(found, expected[how])] if found != expected[how] else [], "same"
    if wrong and not made_right:
        raise AssertionError(f"another answer: {wrong[0][0]!r:.300} instead of {wrong[0][1]!r:.300}")
    return "another" if wrong and outcome == "same" else outcome


def work(name: str, seed: int, first: int, stop: int) -> None:
    """Try the mutations of a victim from a number on; a line before each, and one after it."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "whole").mkdir()
        VICTIMS[name][0](base / "whole")
        expected: dict[str, list[Any]] = {}
        shutil.copytree(base / "whole", base / "warm")
        VICTIMS[name][1](base / "warm", random.Random(0))
        print("ready", flush=True)
        for number in range(first, stop):
            begin = time.perf_counter()
            try:
                outcome = try_one(name, seed, number, base, base / "whole", expected)
            except BaseException as error:
                lines = "".join(traceback.format_exception(error)).splitlines()
                print(
                    f"WRONG {type(error).__name__}: {error!s:.400} | {' / '.join(lines[-7:-1])[:700]}".replace(
                        "\n", " "
                    ),
                    flush=True,
                )
            else:
                print(f"{outcome} {time.perf_counter() - begin:.2f}", flush=True)


def trial(name: str, seed: int, number: int, failures: list[str]) -> collections.Counter[str]:
    """Try so many mutations of a victim in processes of its own."""
    counts: collections.Counter[str] = collections.Counter()
    at = 0
    while at < number:
        command = [sys.executable, __file__, "--work", name, str(seed), str(at), str(number)]
        beside = {**os.environ, "PYTHONSAFEPATH": ""}  # this program imports others of its folder
        process = subprocess.Popen(command, env=beside, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None and process.stderr is not None
        os.set_blocking(process.stdout.fileno(), False)
        selector, waiting, last, ready = selectors.DefaultSelector(), b"", "", False
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            limit = SECONDS * PATIENCE if ready else 600.0
            if not selector.select(limit):
                failures.append(f"{name} {seed} {last}: takes more than {limit:.0f} s")
                counts["too slow"] += 1
                process.kill()
                at += 1
                break
            data = process.stdout.read()
            if not data:
                process.wait()
                if process.returncode != 0 and not ready:
                    raise RuntimeError(process.stderr.read().decode("utf-8", "replace"))
                if process.returncode != 0:
                    error = process.stderr.read().decode("utf-8", "replace")[-600:]
                    failures.append(f"{name} {seed} {last}: ended by {process.returncode}: {error}")
                    counts["died"] += 1
                    at += 1
                break
            *lines, waiting = (waiting + data).split(b"\n")
            for line in (each.decode("utf-8", "replace") for each in lines):
                if line == "ready":
                    ready = True
                elif line[:1].isdigit():
                    last = line
                else:
                    outcome = line.split(" ")[0]
                    counts[outcome] += 1
                    at += 1
                    if outcome == "WRONG":
                        failures.append(f"{name} {seed} {last}: {line}")
        process.stdout.close()
        process.stderr.close()
        process.wait()
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutate artefacts and judge what comes of it.")
    parser.add_argument("--mutations", type=int, default=240)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--victim", choices=sorted(VICTIMS), action="append")
    parser.add_argument("--json", help="where the counts go")
    parser.add_argument("--work", nargs=4, metavar=("VICTIM", "SEED", "FIRST", "STOP"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work[0], *map(int, given.work[1:]))
        return 0
    victims, failures, counts = given.victim or list(VICTIMS), [], {}
    for name in victims:
        counts[name] = dict(trial(name, given.seed, -(-given.mutations // len(victims)), failures))
        print(name, counts[name], flush=True)
    for failure in failures:
        print(failure)
    if given.json:
        Path(given.json).write_text(
            json.dumps({"seed": given.seed, "counts": counts, "failures": failures}, indent=1) + "\n"
        )
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main())
