"""Chunks of files: cuts that move with the content, similar files, and files of any kind through the whole library."""

import gzip
import json
import shutil
from fractions import Fraction
from math import comb

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu import MinHash, Recipe, Shingles, cli, compare, errors, papers, sketches, theory
from neardup_gpu.kernels import chunks
from neardup_gpu.stages import Ragged, tokenize
from neardup_gpu.text.token_kinds import RUN, WINDOW

CHUNKS = Recipe(shingles=Shingles(tokens="chunks"), threshold=0.5)
Q = CHUNKS.material.tokens


def cuts_of(data, window=WINDOW, run=RUN):
    data = np.frombuffer(data, np.uint8)
    return chunks.cpu(data, np.array([0, len(data)]), Q, run, window, True)[3]


# ---------------------------------------------------------------------------------------------------------- winnowing


def test_bytes_at_the_front_change_the_first_chunk_alone():
    data = np.random.default_rng(2).bytes(50_000)
    before, after = _tokens(data), _tokens(b"ten bytes!" + data)
    assert len(before) > 300 and len(set(before) - set(after)) == 1 and after[-len(before) + 1 :] == before[1:]
    middle = _tokens(data[:20_000] + b"!" + data[20_000:])
    assert len(set(before) - set(middle)) <= 5  # those within a window, and a run, of the place


def _tokens(data):
    data = np.frombuffer(data, np.uint8)
    return tokenize(Ragged(data, np.array([0, len(data)])), CHUNKS)[0].tolist()


def test_constant_bytes_have_a_cut_per_window():
    cuts = cuts_of(bytes(10_000))
    assert set(np.diff(cuts[1:]).tolist()) == {WINDOW}
    assert set(np.diff(cuts_of(b"abc" * 5_000)[2:]).tolist()) == {255}


def test_equal_stretches_share_a_cut():
    """Schleimer et al.: two stretches of a window of hashes share a cut, whatever lies around them."""
    random, run, window = np.random.default_rng(3), 8, 16
    for _ in range(300):
        stretch = random.bytes(window + run - 1)
        fronts = [random.bytes(int(random.integers(0, 200))) for _ in range(2)]
        found = [cuts_of(front + stretch + random.bytes(100), window, run) - len(front) for front in fronts]
        inside = [{cut for cut in cuts.tolist() if 0 <= cut < window} for cuts in found]
        assert inside[0] & inside[1]


@pytest.mark.parametrize(("times", "missed"), [(1, (0.058, 0.069)), (1.5, (0.011, 0.015)), (2, (0.0005, 0.002))])
def test_a_search_that_begins_again_after_each_cut_misses_stretches(times, missed):
    """M 6.2: the next cut is the rightmost least of the next m places. Equal stretches need not share a cut then."""
    m, pairs, random = 32, 20_000, np.random.default_rng(4)
    length, front = int(times * m), 8 * m
    values = random.random((2, pairs, front + length + m), np.float32)
    values[1, :, front : front + length] = values[0, :, front : front + length]
    cuts = []
    for stream in values:
        is_cut, at = np.zeros((pairs, front + length), bool), random.integers(0, m, pairs)
        while len(going := np.flatnonzero(at < front + length)):
            window = stream[going[:, None], at[going, None] + np.arange(m)]
            at[going] += m - window[:, ::-1].argmin(axis=1)
            inside = going[at[going] <= front + length]
            is_cut[inside, at[inside] - 1] = True
        cuts.append(is_cut[:, front:])
    share = 1 - (cuts[0] & cuts[1]).any(axis=1).mean()
    low, high = missed
    assert low - papers.hoeffding(pairs) <= share <= high + papers.hoeffding(pairs) and share > 0


# ------------------------------------------------------------------------------------------------------ similar files


@pytest.mark.parametrize(
    ("common", "expected"), [(0, 6.73e-7), (1 / 3, 0.398), (0.4, 0.588), (0.5, 0.821)], ids=["0", "third", "0.4", "0.5"]
)
def test_similar_files(common, expected):
    """M 6.2: files whose 12 samples of 6 bits agree in 5 or more. The filter "files" is this rule."""
    k, s, r = theory.PRESETS["files"]
    agree = Fraction(common).limit_denominator(100) * Fraction(63, 64) + Fraction(1, 64)
    chance = sum(comb(k, i) * agree**i * (1 - agree) ** (k - i) for i in range(r, k + 1))
    assert (k, s, r) == (12, 1, 5) and float(chance) == pytest.approx(expected, rel=2e-3)
    pairs, size, random = 4000, 60, np.random.default_rng(5)
    shared = round(common * 2 * size / (1 + common))  # of the elements of each of two sets
    rows = random.integers(0, 2**63, (pairs, 2 * size - shared), np.uint64)
    method = MinHash(filter="files")
    assert method.supershingle_bits == 6
    keys = [
        method.keys(method.sketch(Ragged.from_rows(list(some), np.uint64)))
        for some in (rows[:, :size], rows[:, size - shared :])
    ]
    agreed = method.are_candidates(np.concatenate(keys), np.arange(pairs), np.arange(pairs, 2 * pairs))
    exactly = Fraction(shared, 2 * size - shared)
    chance = theory.pass_probability(float(exactly + (1 - exactly) / 64), k, s, r)
    assert abs(agreed.mean() - chance) < papers.hoeffding(pairs)


# --------------------------------------------------------------------------------------------------- files of any kind


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("files"), np.random.default_rng(6)
    data = random.bytes(30_000)
    (folder / "sub").mkdir()
    files = {
        "a.bin": data,
        "b.parquet": b"\xff\xfe" + data,
        "c.gz": gzip.compress(b"<p>" * 200),  # other bytes than those of d.html
        "d.html": b"<p>" * 200,
        "e": data[:15_000] + b"!" + data[15_000:],
        "sub/f.html": b"<p>" * 200,
        ".hidden": data,
        "g.json": b"",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_a_folder_of_files(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert cli.main(["dedup", str(folder), "--tokens", "chunks", "--threshold", "0.5", "-o", str(out), "-q"]) == 0
    table = pq.read_table(out / "documents.parquet")
    assert table["id"].to_pylist() == ["a.bin", "b.parquet", "c.gz", "d.html", "e", "g.json", "sub/f.html"]
    assert table["duplicate_of"].to_pylist() == [None, "a.bin", None, None, "a.bin", None, "d.html"]
    assert sorted(path.name for path in (out / "kept").rglob("*") if path.is_file()) == [
        "a.bin",
        "c.gz",
        "d.html",
        "g.json",
    ]
    assert (out / "kept" / "c.gz").read_bytes() == (folder / "c.gz").read_bytes()
    report = json.loads((out / "report.json").read_text())
    assert report["counts"]["invalid_utf8"] == report["counts"]["replaced_text"] == 0
    assert report["input"]["left_out"]["hidden"]["first"][0].endswith(".hidden")
    assert cli.main(["explain", str(out), "e"]) == 0
    told = capsys.readouterr().out
    cuts = cuts_of((folder / "a.bin").read_bytes())
    changed = cuts[np.searchsorted(cuts, 15_000, side="right") - 1]
    assert f"[-{changed}-" in told.replace("\n", " ") and "chunks are shown by the places of their bytes" in told
    assert cli.main(["compare", str(folder / "a.bin"), str(folder / "b.parquet"), "--tokens", "chunks", "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["shared"] == len(cuts) - 1
    workers = nd.Workers(work_dir=tmp_path / "work", number=1)
    there = nd.dedup(folder, recipe=CHUNKS, output=tmp_path / "tasks", workers=workers)
    assert there.documents["duplicate_of"].equals(table["duplicate_of"])
    shutil.rmtree(out)


def test_files_in_sketches_an_index_and_a_column(folder, tmp_path):
    recipe = CHUNKS.with_(method="minhash", filter="files")
    sketches.sketch(folder, tmp_path / "s.parquet", recipe=recipe)
    found = sketches.pairs(tmp_path / "s.parquet")
    assert {("a.bin", "b.parquet"), ("a.bin", "e"), ("d.html", "sub/f.html")} <= {
        *zip(found["id_a"].to_pylist(), found["id_b"].to_pylist(), strict=True)
    }
    with nd.Index.create(tmp_path / "index", recipe=CHUNKS) as index:
        assert index.add(folder)[:3] == (7, 4, 3)
    column = {"id": ["a", "b"], "payload": [(folder / name).read_bytes() for name in ("a.bin", "b.parquet")]}
    pq.write_table(pa.table(column), tmp_path / "t.parquet")
    result = nd.dedup(tmp_path / "t.parquet", text_columns="payload", id_column="id", recipe=CHUNKS)
    assert result.documents["kept"].to_pylist() == [True, False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CHUNKS.with_(unit="line"), "unit 'line' and tokens 'chunks': bytes have no lines; leave one out"),
        (lambda: nd.dedup({"text": ["a"]}, recipe=CHUNKS, reading=nd.Reading(html=True)), "html and tokens 'chunks'"),
        (lambda: Shingles(2, "spots", tokens="chunks"), "shingling 'spots' and tokens 'chunks': spots are of words"),
    ],
    ids=["unit", "html", "spots"],
)
def test_what_chunks_cannot_have(call, message):
    with pytest.raises(errors.ParameterError, match=message):
        call()


def test_chunks_of_a_text_are_those_of_its_bytes():
    text = " ".join(map(str, range(2000)))
    found = compare(text, text.encode()[7:], shingles=Shingles(tokens="chunks"))
    assert found.num_a - found.shared <= 1 and found.resemblance > 0.9
