"""`neardup hamming`: what is found in every kind of file, what is printed and left behind, one line for errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from progress import messages

from neardup_gpu import cli, hamming
from neardup_gpu.definitions import METADATA_KEY
from neardup_gpu.errors import InputError
from neardup_gpu.fingerprint_options import Near, Query, TableOptions
from neardup_gpu.hamming import jobs as hamming_files, joins, members
from neardup_gpu.hamming.files import open_fingerprints
from neardup_gpu.methods.simhash import SimHash
from neardup_gpu.recipe import Recipe

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def warm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As if kernels had been compiled before: no notice of it. Outputs that are not named go to the test's folder."""
    from neardup_gpu.kernels import _cache

    monkeypatch.setattr(_cache, "_announced", True)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = cli.main(["hamming", *map(str, arguments)])
        said = capsys.readouterr()
        return status, said.out, messages(said.err)

    return call


@pytest.fixture
def fails(run: Run) -> Callable[..., str]:
    """A command that has to fail: its one line."""

    def call(*arguments: object) -> str:
        status, out, err = run(*arguments)
        assert (status, out) == (2, "")
        assert err.startswith("neardup: ") and err.count("\n") == 1
        return err

    return call


def planted(bits: int, num_rows: int = 400, seed: int = 1) -> np.ndarray:
    """Random fingerprints; a third of them 0 to 5 bits beside an earlier one, some of them as it is."""
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 2**64, (num_rows, bits // 64), np.uint64)
    for row in range(num_rows // 3 * 2, num_rows):
        values[row] = values[generator.integers(row)]
        for place in generator.choice(bits, generator.integers(6), replace=False):
            values[row, place // 64] ^= np.uint64(1) << np.uint64(place % 64)
    return values[:, 0] if bits == 64 else values


def distances(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Of every one to every other, bit by bit: shape (some, others)."""
    words = [np.atleast_2d(each.T).T for each in (some, others)]
    differing = np.bitwise_count(words[0][:, None, :] ^ words[1][None, :, :])
    return differing.sum(axis=2, dtype=np.int64)


def column_of(values: np.ndarray, null: np.ndarray | None = None) -> pa.Array:
    if values.ndim == 1:
        return pa.array(values, mask=null)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 2, mask=None if null is None else pa.array(null))


def write(
    path: Path,
    values: np.ndarray,
    ids: Any = None,
    *,
    null: np.ndarray | None = None,
    recipe: Recipe | None = None,
    name: str = "simhash",
) -> Path:
    """Fingerprints as Parquet, Arrow IPC (file or stream) or .npy, by the extension."""
    if path.suffix == ".npy":
        np.save(path, values)
        return path
    table = pa.table({**({} if ids is None else {"id": ids}), name: column_of(values, null)})
    if recipe is not None:
        table = table.replace_schema_metadata({METADATA_KEY: recipe.to_json().encode()})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=70)
    else:
        opener = pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file
        with opener(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
    return path


def rows_of(path: Path) -> list[tuple[Any, Any, int]]:
    table = pq.read_table(path)
    assert table.schema.field("distance").type == pa.uint8()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


# ---------------------------------------------------------------------------------------------------- what they find


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("radius", [0, 3, 5])
def test_pairs_are_all_within_the_radius(run: Run, tmp_path: Path, bits: int, radius: int) -> None:
    values, null = planted(bits), np.arange(400) % 50 == 9
    path = write(tmp_path / "a.parquet", values, names("d", 400), null=null)
    status, said, err = run("pairs", path, "--radius", radius, "-o", tmp_path / "p.parquet")
    assert (status, err) == (0, "")
    near = distances(values, values)
    present = np.flatnonzero(~null)
    first = {row: next(other for other in present if near[other, row] == 0) for row in present}
    expected = [(f"d{first[row]}", f"d{row}", 0) for row in present if first[row] != row]
    own = [row for row in present if first[row] == row]
    expected += [(f"d{a}", f"d{b}", int(near[a, b])) for a in own for b in own if a < b and near[a, b] <= radius]
    found = rows_of(tmp_path / "p.parquet")
    assert sorted(found) == sorted(expected) and len(expected) > 10
    assert found == sorted(found, key=lambda row: (int(row[0][1:]), int(row[1][1:])))
    assert re.search(rf"^fingerprints 392 of {bits} bits$", said, re.M)
    assert re.search(rf"^identical +{len(present) - len(own)} to an earlier one", said, re.M)
    assert re.search(rf"^pairs +{len(found)} within {radius} bits$", said, re.M)
    assert "left out     8 rows whose fingerprint is null" in said
    assert "uncompared" not in said
    assert f"next         neardup info {tmp_path / 'p.parquet'}" in said


@pytest.mark.parametrize("bits", [64, 128])
def test_join_is_every_existing_row_with_every_query_in_chunks(
    run: Run, tmp_path: Path, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = planted(bits)
    existing, queries = values[:300], values[100:]
    null = np.arange(300) % 60 == 7
    a = write(tmp_path / "a.parquet", existing, np.arange(1000, 1300), null=null)
    b = write(tmp_path / "b.arrow", queries, names("q", 300))
    scanned: list[int] = []
    scan = joins.scan

    def counting(chunks: Any, *rest: Any, **options: Any) -> Any:
        return scan((scanned.append(len(chunk)) or chunk for chunk in chunks), *rest, **options)

    monkeypatch.setattr(joins, "scan", counting)
    monkeypatch.setattr(hamming_files, "CHUNK_BYTES", 100 * bits // 8 + 100 * 8)
    status, said, err = run("join", a, b, "--radius", 4, "-o", tmp_path / "p.parquet")
    assert (status, err) == (0, "")
    near = distances(existing, queries)
    expected = [
        (1000 + int(row), f"q{query}", int(near[row, query]))
        for row, query in zip(*np.nonzero(near <= 4), strict=True)
        if not null[row]
    ]
    assert rows_of(tmp_path / "p.parquet") == expected
    assert len(scanned) >= 3 and sum(scanned) == 295 and max(scanned) <= 100
    matched = len({query for _, query, _ in expected})
    assert re.search(rf"^queries +300, {matched} of them near some$", said, re.M)
    assert "left out     5 rows" in said
    assert pq.ParquetFile(tmp_path / "p.parquet").num_row_groups == len(scanned)


@pytest.mark.parametrize("bits", [64, 128])
def test_query_answers_as_brute_force(run: Run, tmp_path: Path, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = planted(bits)
    existing, queries = values[:300], values[100:]
    null = np.arange(300) % 100 == 5
    a = write(tmp_path / "a.parquet", existing, names("d", 300))
    b = write(tmp_path / "b.parquet", queries, null=null)
    status, said, err = run("build", a, "--radius", 4, "-o", tmp_path / "i.hamming")
    assert (status, err) == (0, "")
    assert re.search(r"^tables +(1, compared whole|\d+ of \d+ leading bits or more), radius 4$", said, re.M)
    command = said.splitlines()[-1].split()[1:]
    assert command[:3] == ["neardup", "hamming", "query"]
    status, said, err = run(*command[2:])  # what it proposes works
    assert (status, err) == (0, "") and re.search(rf"^{command[-1]} +d0 +0$", said, re.M)
    monkeypatch.setattr(hamming_files, "QUERY_BYTES", 70 * 8)
    near = distances(queries, existing)
    for options, radius, most in (((), 4, 999), (("--radius", 2), 2, 999), (("--nearest", 1, "--radius", 3), 3, 1)):
        out = tmp_path / "matches.parquet"
        status, said, err = run("query", tmp_path / "i.hamming", b, *options, "-o", out, "--overwrite")
        assert (status, err) == (0, "")
        expected = []
        for query in np.flatnonzero(~null):
            rows = sorted(np.flatnonzero(near[query] <= radius), key=lambda row: (near[query, row], row))
            expected += [(int(query), f"d{row}", int(near[query, row])) for row in rows[:most]]
        assert rows_of(out) == expected and len(expected) > 150
        answered = len({query for query, _, _ in expected})
        assert f"matches      {len(expected)} within {radius} bits, of {answered} of 297 queries" in said


@pytest.mark.parametrize("bits", [64, 128])
def test_a_compressed_index_answers_the_same(run: Run, tmp_path: Path, bits: int) -> None:
    path = write(tmp_path / "f.parquet", planted(bits, 6000))
    for name, options in (("plain", []), ("small", ["--compress"])):
        status, said, _ = run("build", path, "-o", tmp_path / name, "--radius", 4, "--tables", 5, *options)
        assert (status, "of 64 bits per word" in said) == (0, bool(options))
        assert run("query", tmp_path / name, path, "-o", tmp_path / f"{name}.parquet")[0] == 0
    assert rows_of(tmp_path / "plain.parquet") == rows_of(tmp_path / "small.parquet")
    assert (tmp_path / "small").stat().st_size < (tmp_path / "plain").stat().st_size


def test_query_prints_a_table_or_lines_of_json(run: Run, tmp_path: Path) -> None:
    values = np.array([0xF0, 0xF1, 0xFF, 2**64 - 1], np.uint64)
    path = write(tmp_path / "a.parquet", values, ["first", "second", "third", "far"])
    assert run("build", path, "-o", tmp_path / "i", "-q") == (0, "", "")
    status, said, _ = run("query", tmp_path / "i", "--fingerprint", "0xf1", "--fingerprint", "f" * 15 + "0")
    assert status == 0
    assert said.splitlines() == [
        "query_id  id      distance",
        "0xf1      second         0",
        "0xf1      first          1",
        "0xf1      third          3",
        "",
        "3 within 3 bits, of 1 of 2 queries",
    ]
    status, said, _ = run("query", tmp_path / "i", "--fingerprint", "0xF1", "--nearest", 2, "--json")
    assert [json.loads(line) for line in said.splitlines()] == [
        {"query_id": "0xF1", "id": "second", "distance": 0},
        {"query_id": "0xF1", "id": "first", "distance": 1},
    ]
    assert run("query", tmp_path / "i", "--fingerprint", "0xff00000000") == (
        0,
        "0 within 3 bits, of 0 of 1 query\n",
        "",
    )


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".arrows", ".npy"])
def test_every_kind_of_file_gives_the_same_pairs(tmp_path: Path, bits: int, ending: str) -> None:
    values = planted(bits, 90)
    write(tmp_path / "all.parquet", values)
    hamming_files.pairs(tmp_path / "all.parquet", tmp_path / "expected.parquet")
    folder = tmp_path / "parts"
    folder.mkdir()
    parts = [write(folder / f"part-{i}{ending}", values[30 * i : 30 * i + 30]) for i in range(3)]
    write(folder / f"_ignored{ending}", values)
    (folder / "readme.txt").write_text("no fingerprints")
    expected = rows_of(tmp_path / "expected.parquet")
    assert len(expected) > 5
    for i, given in enumerate((folder, parts, parts[::-1], [*parts, parts[0]])):
        hamming_files.pairs(given, tmp_path / f"{i}.parquet")
        assert rows_of(tmp_path / f"{i}.parquet") == expected


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([5, 2**40, -3]),
        pa.array([5, 2**64 - 1, 3], pa.uint64()),
        pa.array(["a", "bb", "ü€"]),
        pa.array(["a", "bb", "c"], pa.large_string()),
        pa.array(["a", "bb", "a2"], pa.string_view()),
        pa.array(["a", "bb", "c"]).dictionary_encode(),
        pa.array([b"a", b"\xff", b"c"]),
        pa.array([b"ab", b"cd", b"ef"], pa.binary(2)),
        pa.array(["a\0", "a" * 5000, "a"]),
        pa.array([b"a\0", b"\0", b"a\0\0"]),
    ],
    ids=lambda ids: str(ids.type)[:20],
)
def test_ids_are_the_callers(tmp_path: Path, ids: pa.Array) -> None:
    values = np.array([7, 2**64 - 1, 5], np.uint64)
    path = write(tmp_path / "a.arrow", values, ids)
    kept = ids.to_pylist()
    hamming_files.pairs(path, tmp_path / "p.parquet")
    assert rows_of(tmp_path / "p.parquet") == [(kept[0], kept[2], 1)]
    hamming_files.join(path, path, tmp_path / "j.parquet")
    assert rows_of(tmp_path / "j.parquet")[0] == (kept[0], kept[0], 0)
    hamming_files.build(path, tmp_path / "i")
    hamming_files.query(tmp_path / "i", path, tmp_path / "m.parquet")
    assert rows_of(tmp_path / "m.parquet")[:2] == [(kept[0], kept[0], 0), (kept[0], kept[2], 1)]


def test_crowds_are_written_part_by_part(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Existing fingerprints of which 90 are equal, and queries of which 40 are: the pairs of both, in their order."""
    values = planted(64, 200)
    values[100:190], queries = values[3], np.concatenate([values[:5], np.repeat(values[3:4], 40)])
    names_of = ["x" * (row % 7) + f"\0{row}\0" for row in range(200)]
    a, b = write(tmp_path / "a.parquet", values, names_of), write(tmp_path / "b.parquet", queries)
    assert run("build", a, "-o", tmp_path / "i", "-q") == (0, "", "")
    near = distances(values, queries)
    for part, write_bytes in ((10**6, 10**6), (500, 10**6), (1000, 40 * 256)):
        monkeypatch.setattr(members, "PART", part)
        monkeypatch.setattr(hamming_files, "WRITE_BYTES", write_bytes)
        monkeypatch.setattr(hamming_files, "WRITE_ROWS", write_bytes // 256)
        out = tmp_path / "m.parquet"
        assert run("query", tmp_path / "i", b, "-o", out, "--overwrite", "-q") == (0, "", "")
        expected = [
            (query, names_of[row], int(near[row, query]))
            for query in range(len(queries))
            for row in sorted(np.flatnonzero(near[:, query] <= 3), key=lambda row: (near[row, query], row))
        ]
        assert rows_of(out) == expected and len(expected) > 3600
        groups = pq.ParquetFile(out).num_row_groups
        assert groups == 1 if part == 10**6 else groups >= (len(expected) - 1) // min(part, write_bytes // 256) + 1
        _, said, _ = run("query", tmp_path / "i", b, "-o", out, "--overwrite", "--json")
        assert (json.loads(said)["matches"], json.loads(said)["answered"]) == (len(expected), 45)
        assert run("join", a, b, "-o", out, "--overwrite", "-q") == (0, "", "")
        assert rows_of(out) == [
            (names_of[row], int(query), int(near[row, query])) for row, query in np.argwhere(near <= 3)
        ]
        assert (pq.ParquetFile(out).num_row_groups > 5) == (part < 10**6)


def test_what_neardup_wrote_beside_simhashes_is_left_out_of_a_folder(
    run: Run, fails: Callable[..., str], tmp_path: Path
) -> None:
    folder = tmp_path / "crawl"
    folder.mkdir()
    lines = "".join(json.dumps({"text": text}) + "\n" for text in ("to be or not to be", "To be, or not to be!"))
    (tmp_path / "docs.jsonl").write_text(lines)
    simhashes = folder / "simhashes.parquet"
    command = [
        "sketch",
        "--method",
        "simhash",
        str(tmp_path / "docs.jsonl"),
        "--weighting",
        "tfidf",
        "-o",
        str(simhashes),
        "-q",
    ]
    assert cli.main(command) == 0
    for name in ("pairs", "pairs-again"):
        assert run("pairs", folder, "-o", folder / f"{name}.parquet", "-q") == (0, "", "")
    assert run("join", folder, simhashes, "-o", folder / "matches.parquet", "-q") == (0, "", "")
    assert len(list(folder.glob("*.parquet"))) == 5  # document frequencies are one
    assert len(rows_of(folder / "pairs-again.parquet")) == 1
    assert "no column 'simhash'" in fails("pairs", folder / "pairs.parquet", "-o", tmp_path / "p.parquet")
    foreign = folder / "foreign.parquet"
    pq.write_table(pa.table({"x": [1]}), foreign)
    assert f"{foreign}: no column 'simhash'" in fails("pairs", folder, "-o", tmp_path / "p.parquet", "-q")
    foreign.unlink()
    simhashes.unlink()
    assert f"{folder}: no file in this folder has column" in fails("pairs", folder, "-o", tmp_path / "p.parquet")


def test_other_columns(run: Run, tmp_path: Path) -> None:
    table = pa.table({"url": ["a", "b"], "id": [0, 0], "sketch": pa.array([1, 3], pa.uint64()), "more": [1.5, 2.5]})
    pq.write_table(table, tmp_path / "a.parquet")
    options = ("--column", "sketch", "--id-column", "url", "-o", tmp_path / "p.parquet", "-q")
    assert run("pairs", tmp_path / "a.parquet", *options) == (0, "", "")
    assert rows_of(tmp_path / "p.parquet") == [("a", "b", 1)]


def test_crowded_buckets_are_said(run: Run, tmp_path: Path) -> None:
    crowd, others = np.arange(300, dtype=np.uint64), np.random.default_rng(4).integers(0, 2**64, 300_000, np.uint64)
    values = np.concatenate([crowd, others])  # too many to compare all with all
    path = write(tmp_path / "a.npy", values)
    out = tmp_path / "p.parquet"
    status, said, _ = run("pairs", path, "--bucket-limit", 280, "--bucket-probe", 5, "-o", out, "--json")
    found = json.loads(said)
    assert (status, found["output"], found["recipe"]["bucket_limit"]) == (0, str(out), 280)
    expected = hamming.pairs(values, 3, bucket_limit=280, bucket_probe=5)
    assert found["uncompared_pairs"] == expected.num_uncompared > 0
    assert found["large_buckets"] == expected.num_large > 0
    assert found["pairs"] == len(expected.left) == len(rows_of(out))
    _, said, _ = run("pairs", path, "--bucket-limit", 280, "--bucket-probe", 5, "-o", out, "--overwrite")
    assert f"uncompared   {expected.num_uncompared:,} pairs in {expected.num_large} large buckets" in said
    joined = hamming.join(values, values, 3, bucket_limit=280, bucket_probe=5)
    _, said, _ = run("join", path, path, "--bucket-limit", 280, "--bucket-probe", 5, "-o", out, "--overwrite", "--json")
    assert json.loads(said)["uncompared_pairs"] == joined.num_uncompared > 0


def test_nothing_in_nothing_out(run: Run, tmp_path: Path) -> None:
    for path in (
        write(tmp_path / "none.npy", np.empty(0, np.uint64)),
        write(tmp_path / "wide.npy", np.empty((0, 2), np.uint64)),
        write(tmp_path / "none.parquet", np.empty(0, np.uint64), pa.array([], pa.string())),
        write(tmp_path / "null.parquet", np.zeros(3, np.uint64), names("d", 3), null=np.ones(3, bool)),
    ):
        out, index = tmp_path / "out.parquet", tmp_path / "i"
        bits = open_fingerprints(path).bits
        one = write(tmp_path / "one.parquet", planted(bits, 3)[:1], ["x"])
        for command in (("pairs", path), ("join", path, one), ("join", one, path)):
            assert run(*command, "-o", out, "--overwrite", "-q") == (0, "", "")
            assert rows_of(out) == []
        assert run("build", path, "-o", index, "--overwrite", "-q") == (0, "", "")
        status, said, err = run("query", index, "--fingerprint", "0x0")
        assert (status, said, err) == (0, "0 within 3 bits, of 0 of 1 query\n", "")


# -------------------------------------------------------------------------------------------------------------- designs


def test_the_design_is_the_one_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npy", planted(64, 1000))

    def design(**options: Any) -> tuple[int, int]:
        found = hamming_files.build(path, tmp_path / "i", tables=TableOptions(**options), overwrite=True)
        return found["tables"], found["leading_bits"]

    assert [design(num_tables=n) for n in (1, 4, 9, 10, 16, 20)] == [
        (1, 0), (4, 16), (4, 16), (10, 25), (16, 28), (20, 31),
    ]  # fmt: skip
    assert [design(leading_bits=p) for p in (0, 10, 16, 17, 31)] == [(1, 0), (4, 16), (4, 16), (10, 25), (20, 31)]
    assert design(table_memory=12_000) == (1, 0)
    write(path, planted(64, 20_000))
    assert design(table_memory="1MB", num_queries=10**9) == (4, 16)
    assert design(num_queries=0) == (1, 0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--tables", 4, "--memory", "1GB"), "give one of them"),
        (("--tables", 4, "--queries", 9), "leave it out"),
        (("--tables", 0), "--tables must be >= 1, got 0"),
        (("--queries", -5), "--queries must be >= 0, got -5"),
        (("--memory", "much"), "memory 'much' is not a size"),
        (("--memory", "1kB"), "1,000 bytes"),
        (("--leading-bits", 62), "--leading-bits must be between 0 and 61, got 62"),
        (("--radius", 64), "radius must be between 0 and 63, got 64"),
        (("--radius", -1), "radius must be between 0 and 63, got -1"),
    ],
)
def test_impossible_designs(fails: Callable[..., str], tmp_path: Path, options: tuple, says: str) -> None:
    path = write(tmp_path / "a.npy", planted(64, 1000))
    assert says in fails("build", path, "-o", tmp_path / "i", *options)
    assert not (tmp_path / "i").exists()


# -------------------------------------------------------------------------------------------------------------- recipes


def test_outputs_carry_the_recipe_with_the_settings_that_were_used(tmp_path: Path) -> None:
    recipe = Recipe(method=SimHash(radius=2, weighting="log", bucket_limit=100))
    path = write(tmp_path / "a.parquet", planted(64), names("d", 400), recipe=recipe)
    out = tmp_path / "out.parquet"
    assert hamming_files.pairs(path, out)["radius"] == 2
    assert Recipe.of(pq.read_schema(out), "out") == recipe
    hamming_files.pairs(path, out, near=Near(radius=4, bucket_probe=7), overwrite=True)
    assert Recipe.of(pq.read_schema(out), "out") == recipe.with_(radius=4, bucket_probe=7)
    hamming_files.join(path, path, out, overwrite=True)
    assert Recipe.of(pq.read_schema(out), "out") == recipe
    found = hamming_files.build(path, tmp_path / "i", radius=5)
    assert found["recipe"] == recipe.with_(radius=5).describe()
    hamming_files.query(tmp_path / "i", path, out, query=Query(radius=1), overwrite=True)
    assert Recipe.of(pq.read_schema(out), "out") == recipe.with_(radius=1)
    plain = write(tmp_path / "b.parquet", planted(64))
    hamming_files.pairs(plain, out, near=Near(radius=1), overwrite=True)
    settings = json.loads(pq.read_schema(out).metadata[METADATA_KEY])
    assert settings == {"method": "hamming", "bits": 64, "radius": 1, "bucket_limit": 512, "bucket_probe": 32}


def test_info_describes_what_they_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.npy", planted(64))
    hamming_files.pairs(path, tmp_path / "p.parquet")
    assert cli.main(["info", str(tmp_path / "p.parquet")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("pairs") and re.search(r"^ +radius +3$", said, re.M)


def test_other_recipes_are_refused(fails: Callable[..., str], run: Run, tmp_path: Path) -> None:
    values, index = planted(64), tmp_path / "i"
    tf = write(tmp_path / "tf.parquet", values, names("d", 400), recipe=Recipe(method=SimHash(weighting="tf")))
    far = Recipe(method=SimHash(weighting="tf", radius=9), keep="longest")
    wide = write(tmp_path / "wide.parquet", values, names("w", 400), recipe=far)
    log = write(tmp_path / "log.parquet", values, names("e", 400), recipe=Recipe(method=SimHash(weighting="log")))
    plain = write(tmp_path / "plain.parquet", values, names("f", 400))
    assert run("build", tf, "-o", index, "-q")[0] == 0
    assert run("build", plain, "-o", tmp_path / "plain.hamming", "-q")[0] == 0
    for other, says in ((log, "made with weighting = "), (plain, f"records a recipe and {plain} does not")):
        assert says in fails("pairs", tf, other)
        assert says in fails("join", tf, other)
        assert says in fails("query", index, other)
    assert f"records a recipe and {tmp_path / 'plain.hamming'} does not" in fails(
        "query", tmp_path / "plain.hamming", tf
    )
    out = tmp_path / "out.parquet"
    for command in (("pairs", tf, wide), ("join", tf, wide), ("query", index, wide)):
        assert run(*command, "-o", out, "--overwrite", "-q") == (0, "", "")


# --------------------------------------------------------------------------------------------------------------- errors


def test_files_that_cannot_be_used(fails: Callable[..., str], tmp_path: Path) -> None:
    def said(path: Path, *options: object) -> str:
        text = fails("pairs", path, "-o", tmp_path / "p.parquet", *options)
        assert str(path) in text and fails("build", path, "-o", tmp_path / "i", *options) == text
        return text

    good = write(tmp_path / "good.parquet", planted(64), names("d", 400))
    assert "no such file" in said(tmp_path / "missing.parquet")
    assert "no column 'hash'; it has id, simhash; pass --column to name one of them" in said(good, "--column", "hash")
    assert "no column 'url'" in said(good, "--id-column", "url")
    assert "fingerprints are uint64" in said(good, "--column", "id")
    signed = tmp_path / "signed.parquet"
    pq.write_table(pa.table({"simhash": [1, -1]}), signed)
    assert "is int64" in said(signed) and ".reinterpret(signed=False) in Polars" in said(signed)
    (tmp_path / "text.parquet").write_text("text")
    assert "cannot be read as Parquet" in said(tmp_path / "text.parquet")
    (tmp_path / "text.arrow").write_text("text")
    assert "cannot be read as Arrow IPC" in said(tmp_path / "text.arrow")
    floats = write(tmp_path / "floats.npy", np.zeros(5))
    assert "holds float64" in said(floats)
    assert "of shape (5, 3)" in said(write(tmp_path / "three.npy", np.zeros((5, 3), np.uint64)))
    assert "column by column" in said(write(tmp_path / "turned.npy", np.asfortranarray(planted(128))))
    (tmp_path / "text.npy").write_text("text")
    assert "cannot be read as .npy" in said(tmp_path / "text.npy")
    short = write(tmp_path / "short.npy", np.zeros(500, np.uint64))
    short.write_bytes(short.read_bytes()[:-80])
    assert "ends 10 fingerprints early" in said(short)
    assert "no columns" in said(write(tmp_path / "plain.npy", planted(64)), "--id-column", "id")
    (tmp_path / "folder").mkdir()
    assert "no file to read in this folder" in said(tmp_path / "folder")
    broken = tmp_path / "broken.parquet"
    data = bytearray(good.read_bytes())
    data[10:4000] = bytes(3990)
    broken.write_bytes(data)
    assert "cannot be read as Parquet" in said(broken)
    nulls = pa.FixedSizeListArray.from_arrays(pa.array([1, None, 3, 4], pa.uint64()), 2)
    pq.write_table(pa.table({"simhash": nulls}), tmp_path / "nulls.parquet")
    assert "lists with a null in them" in said(tmp_path / "nulls.parquet")
    assert not (tmp_path / "p.parquet").exists() and not (tmp_path / "i").exists()


def test_ids_that_cannot_be_used(fails: Callable[..., str], tmp_path: Path) -> None:
    values = planted(64, 3)
    for ids, says in (
        (["a", None, "b"], "is null"),
        (["a", "b", "a"], "3 rows have 2 ids"),
        ([1.5, 2.5, 3.5], "are double"),
    ):
        path = write(tmp_path / "a.parquet", values, ids)
        assert says in fails("pairs", path, "-o", tmp_path / "p.parquet")


def test_files_that_do_not_belong_together(fails: Callable[..., str], tmp_path: Path) -> None:
    one = write(tmp_path / "a.parquet", planted(64), names("d", 400))
    wide = write(tmp_path / "b.parquet", planted(128), names("e", 400))
    assert "fingerprints of 128 bits" in fails("pairs", one, wide)
    assert "fingerprints of 128 bits" in fails("join", one, wide)
    rows = write(tmp_path / "c.npy", planted(64))
    assert f"{rows}: no column of ids" in fails("pairs", one, rows)
    numbers = write(tmp_path / "d.parquet", planted(64), np.arange(400))
    assert "ids are int64" in fails("pairs", one, numbers)
    again = write(tmp_path / "again.parquet", planted(64), names("d", 400))
    assert "800 rows have 400 ids" in fails("pairs", one, again)


def test_an_index_that_cannot_be_used(fails: Callable[..., str], run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", planted(64), names("d", 400))
    index = tmp_path / "i"
    assert run("build", path, "-o", index, "--tables", 4, "-q") == (0, "", "")

    def asked(*options: object) -> str:
        return fails("query", *options)

    assert "radius must be between 0 and 3, got 5; that is the index's radius" in asked(index, path, "--radius", 5)
    assert "nearest must be >= 1, got 0" in asked(index, path, "--nearest", 0)
    assert "give one of the two" in asked(index) and "give one of the two" in asked(index, path, "--fingerprint", "0x1")
    assert "hexadecimal" in asked(index, "--fingerprint", "12345")
    for option in ("--column", "--id-column"):
        assert "columns belong to files of fingerprints" in asked(index, "--fingerprint", "0x1", option, "other")
    wide = write(tmp_path / "wide.parquet", planted(128), names("d", 400))
    assert "fingerprints of 128 bits" in asked(index, wide)
    assert "is not an index" in asked(path, path)
    assert "no such file" in asked(tmp_path / "missing", path)
    assert str(tmp_path) in asked(tmp_path, path)
    index.write_bytes(index.read_bytes()[:-1])
    assert "cut short" in asked(index, path)


def test_outputs_are_not_replaced_unasked(fails: Callable[..., str], run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", planted(64), names("d", 400), recipe=Recipe(method=SimHash()))
    out, index, diary = tmp_path / "p.parquet", tmp_path / "i", tmp_path / "diary"
    diary.write_text("dear diary")
    assert run("build", path, "-o", index, "-q")[0] == 0
    for command in (("pairs", path), ("join", path, path), ("query", index, path)):
        assert run(*command, "-o", out, "-q") == (0, "", "")
        before = out.read_bytes()
        assert "exists already" in fails(*command, "-o", out)
        assert out.read_bytes() == before
        assert "was not written by neardup" in fails(*command, "-o", diary, "--overwrite")
        assert f"{path}: is read as input" in fails(*command, "-o", path, "--overwrite")
        assert run(*command, "-o", out, "--overwrite", "-q") == (0, "", "")
        out.unlink()
    assert "exists already" in fails("build", path, "-o", index)
    assert "was not written by neardup" in fails("build", path, "-o", diary, "--overwrite")
    assert "is read as input" in fails("build", path, "-o", path, "--overwrite")
    assert "is a folder" in fails("pairs", path, "-o", tmp_path)
    assert diary.read_text() == "dear diary"


def test_nothing_is_left_of_a_join_that_failed(
    fails: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two files of existing fingerprints is broken; the first has been matched by then."""
    folder = tmp_path / "existing"
    folder.mkdir()
    first = write(folder / "1.npy", planted(64, 1000))
    second = write(folder / "2.npy", planted(64, 1000))
    second.write_bytes(second.read_bytes()[:-800])
    monkeypatch.setattr(hamming_files, "CHUNK_BYTES", 8000)
    before = sorted(tmp_path.iterdir())
    assert "ends 100 fingerprints early" in fails("join", folder, first, "-o", tmp_path / "p.parquet")
    assert sorted(tmp_path.iterdir()) == before


# ------------------------------------------------------------------------------------------------- documents to pairs


@pytest.mark.parametrize("bits", [64, 128])
def test_from_documents_to_pairs(run: Run, tmp_path: Path, bits: int) -> None:
    texts = ["to be or not to be", "To be, or not to be!", "", "all the world is a stage", "..."]
    lines = "".join(json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts))
    (tmp_path / "docs.jsonl").write_text(lines)
    simhashes, out = tmp_path / "simhashes.parquet", tmp_path / "p.parquet"
    command = [
        "sketch",
        "--method",
        "simhash",
        tmp_path / "docs.jsonl",
        "--id-column",
        "id",
        "--bits",
        bits,
        "-o",
        simhashes,
        "-q",
    ]
    assert cli.main([str(part) for part in command]) == 0
    status, said, _ = run("pairs", simhashes, "-o", out)
    assert status == 0 and "2 rows whose fingerprint is null" in said
    assert rows_of(out) == [("d0", "d1", 0)]
    assert Recipe.of(pq.read_schema(out), "p") == Recipe.of(pq.read_schema(simhashes), "simhashes")


# ------------------------------------------------------------------------------------------------------ small functions


def test_chunks_are_bounded_and_whole(tmp_path: Path) -> None:
    values, null = planted(64, 1000), np.arange(1000) % 3 == 1
    for name in ("a.parquet", "a.arrow"):
        source = open_fingerprints(write(tmp_path / name, values, names("d", 1000), null=null))
        chunks = list(source.chunks(2000))
        assert len(chunks) > 4 and max(len(chunk.ids) for chunk in chunks) <= 2000 // 12
        assert np.concatenate([chunk.fingerprints for chunk in chunks]).tolist() == values[~null].tolist()
        ids = [id for chunk in chunks for id in chunk.ids.to_pylist()]
        assert ids == [f"d{i}" for i in np.flatnonzero(~null)]
        assert sum(chunk.num_null for chunk in chunks) == null.sum()
    with pytest.raises(InputError, match="no fingerprints given"):
        open_fingerprints([])


def test_help_imports_nothing_slow() -> None:
    code = """
import sys
from neardup_gpu.cli import main
for name in ([], ["build"], ["query"], ["join"], ["pairs"]):
    assert main(["hamming", *name, "--help"]) == 0
assert main(["hamming"]) == 0
assert not {"numpy", "numba", "pyarrow", "neardup_gpu.pipeline"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("build", "--leading-bits", "--fingerprint", "--bucket-limit", "EXISTING"):
        assert word in done.stdout
