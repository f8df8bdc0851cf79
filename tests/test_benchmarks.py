"""Benchmarks follow the library: each file starts, reaches into nothing private, and a run of small parts ends."""

import ast
import os
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import some

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "benchmarks").rglob("*.py"))

sys.path.append(str(ROOT))


@pytest.mark.parametrize(
    "name",
    [
        *("compression", "deciding", "gpu", "hamming", "kernel_times", "passages", "peers", "planted", "run"),
        *("serving", "simhash", "substring_peers", "substrings"),
    ],
)
def test_every_benchmark_can_be_run_as_a_module(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.delitem(sys.modules, f"benchmarks.{name}", raising=False)
    with pytest.raises(SystemExit, match=r"^0$"):
        runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
    assert "--" in capsys.readouterr().out


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_benchmark_reaches_into_what_is_private(path):
    """Attributes of others than itself, and imported functions; shared modules of kernels are named as they are."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            found += [] if ast.unparse(node) == "os._exit" or ast.unparse(node.value) == "self" else [ast.unparse(node)]
        elif isinstance(node, ast.ImportFrom) and node.module != "neardup_gpu.kernels":
            found += [alias.name for alias in node.names if is_private(alias.name)]
    assert found == []


def test_planted_items_are_found(tmp_path):
    """Each way of planting an item is found in its place, and nothing else."""
    from benchmarks import planted

    random = np.random.default_rng(1)
    texts = [" ".join(f"w{word}" for word in row) for row in random.integers(0, 500, (60, 60)).tolist()]
    pq.write_table(pa.table({"body": texts}), tmp_path / "corpus.parquet")
    found = planted.run(tmp_path / "corpus.parquet", "body", 10, 8, 1, 1)
    assert found["ways"] == {way: {"planted": 10, "found": 10} for way in planted.WAYS}
    assert (found["false"], found["without"]) == (0, 0) and found["rates"]["ratio"] > 0
    _, where = planted.planted(["one two"] * 5, [["a", "b"]], 1, random)
    assert planted.missed([], where) == (where, 0)
    assert planted.missed([{"eval_id": "3", "id": 0, "begin": 0, "end": 9}], where) == (where, 1)


def test_repeated_passages_of_a_corpus(tmp_path):
    """Of two equal texts one is removed, and a second run removes nothing."""
    from benchmarks import substrings

    texts = [" ".join(f"w{word}" for word in range(30))] * 2 + ["something else"]
    pq.write_table(pa.table({"text": texts}), tmp_path / "corpus.parquet")
    found = substrings.run(tmp_path / "corpus.parquet", 20, 1)
    assert (found["covered"], found["removed"], found["no_copy_left"]) == (0.9677, 0.4839, 0.4839)
    assert found["removed_by_a_second_run"] == 0
    assert set(found["ns_per_token"]) == set(found["ns_per_clean_token"]) == {*substrings.STAGES, "all"}


def test_the_judge_of_peers(tmp_path):
    """Of two equal texts the second one is removed and nothing is lost; the judge sees lost, cut and joined words."""
    from benchmarks import substring_peers

    texts = [" ".join(f"w{word}" for word in range(30))] * 2
    pq.write_table(pa.table({"text": texts}), tmp_path / "corpus.parquet")
    left, about = substring_peers.by_neardup(tmp_path / "corpus.parquet", "text", 20, 1, tmp_path)
    judge = substring_peers.Judge(texts)
    assert left == [texts[0], ""] and about["ranges"] == 1
    assert judge.judge(left) == {"removed": 0.5, "lost": 0, "made": 0}
    assert judge.judge([texts[0][:-4] + "x", ""]) == {"removed": 0.5167, "lost": 0.0667, "made": 1}
    assert judge.judge(["", ""])["lost"] == 1


def test_shared_passages_of_a_corpus(tmp_path):
    """The command and the independent program find the same runs."""
    from benchmarks import passages

    random = np.random.default_rng(3)
    texts = [" ".join(f"w{word}" for word in random.integers(0, 3, 60)) for _ in range(8)] + ["w0 w1 w2 " * 9] * 2
    pq.write_table(pa.table({"text": texts}), tmp_path / "corpus.parquet")
    found = passages.run(tmp_path / "corpus.parquet", 6, 1, 10)
    assert found["runs"] == found["sample"]["runs"] > 100 and set(found["ns_per_token"]) == set(passages.STAGES)
    assert found["sample"]["same_runs"] and found["sample"]["same_tokens"]
    assert passages.matched([[1, 2, 3, 4], [9, 2, 3, 4]], 2) == {(1, 1, 0, 1, 3)}


CORPORA = ("bills_116_small", "manpages", "winps_docs", "django_docs", "edinburgh_2500")


@pytest.mark.parametrize("name", some(CORPORA, CORPORA[1:4:2]))
def test_theorem_7_on_corpora(corpora, name):
    """The runs that documents of a corpus share are those of the independent program."""
    from benchmarks import passages

    found = passages.checked(corpora / f"{name}.parquet", 20, 60)
    assert found["runs"] > 10 and found["same_runs"] and found["same_tokens"]


@pytest.mark.parametrize("name", some(["verification", "giant", "scale"], ["verification", "giant"]))
def test_a_small_run_ends(name, tmp_path):
    from benchmarks import giant, scale, verification
    from benchmarks.measure import Bench

    random = np.random.default_rng(1)
    words = random.integers(0, 500, (30, 60))
    texts = [" ".join(f"w{word}" for word in row) for row in np.concatenate([words, words[:20]]).tolist()]
    texts[-1] += " more"
    pq.write_table(pa.table({"id": range(len(texts)), "text": texts}), tmp_path / "bills_116.parquet")
    bench = Bench(tmp_path, 1, False, tmp_path, tmp_path, small=True)
    figures = {"verification": verification, "giant": giant, "scale": scale}[name].part(bench)
    assert figures and all(row["runs"] >= 1 for row in figures) and bench.targets == []


def test_decisions_of_a_stream_are_checked(monkeypatch):
    from benchmarks import deciding

    deciding.check_agreement()
    monkeypatch.setattr(deciding, "decide_greedily", lambda *arguments: np.zeros(deciding.FEW // 64 + 1, np.uint64))
    with pytest.raises(AssertionError):
        deciding.check_agreement()


def test_the_table_of_methods(tmp_path):
    """A row a method: what was found of the gold, of how many candidates, and how large its sketches are."""
    from benchmarks import methods
    from benchmarks.measure import Bench

    words = [[f"w{page}x{i}" for i in range(60)] for page in range(20)]
    texts = [" ".join(page) for page in words] + [" ".join([*page[:-3], "a", "b", "c"]) for page in words]
    ids = [f"d{row}" for row in range(40)]
    path = tmp_path / "small.parquet"
    pq.write_table(pa.table({"id": ids, "text": texts}), path)
    gold = {"id_a": ids[:20], "id_b": ids[20:], "jaccard": [53 / 59] * 20}
    pq.write_table(pa.table(gold), tmp_path / "small.gold.parquet")
    chosen = {name: methods.METHODS[name] for name in ("exact", "bottom-k")}
    exact, bottomk = methods.of_corpus(Bench(tmp_path, 1, False, tmp_path, tmp_path), path, chosen)
    for row in (exact, bottomk):
        assert row["recall"] == row["precision"] == 1 and row["candidates"] == 20 and row["median"] > 0
        assert row["peak_mb"] > 10 and row["cpu_seconds"] > 0
    assert "bytes_a_document" not in exact
    assert 8 * 200 <= bottomk["bytes_a_document"] < 8 * 200 + 8


def test_every_tool_in_readme_has_a_version_and_its_pin():
    from benchmarks import versions

    readme = versions.README.read_text()
    (table,) = re.findall(r"^\|.*good at.*\n\|[-|]+\n((?:\|.*\n)+)", readme, re.MULTILINE)
    named = versions.named_versions(readme)
    assert len(named) == table.count("\n") - 1 > 4  # all but neardup_gpu
    pins = dict(re.findall(r"^([\w-]+)==(.*)$", (ROOT / "benchmarks/requirements.txt").read_text(), re.MULTILINE))
    assert {name: pins[name] for name in named if name in pins}.items() <= named.items()
    assert {"datasketch", "datatrove", "rensa", "text-dedup"} <= named.keys() & pins.keys()


@pytest.mark.parametrize(
    ("found", "status", "printed", "complaint"),
    [
        ({"a": "1.0", "b-c": "2.0rc1"}, 0, ["2 of 2 tools have"], ""),
        ({"a": "1.1", "b-c": "2.0rc1"}, 1, ["a: README names 1.0, pip installs 1.1", "1 of 2 tools have"], ""),
        ({"a": "1.0"}, 1, ["b-c: README names 2.0rc1, pip finds no version", "1 of 2 tools have"], ""),
        ({}, 2, [], "versions: pip finds none of a, b-c; is the package index within reach?\n"),
    ],
)
def test_versions_that_have_changed_are_printed(found, status, printed, complaint, monkeypatch, tmp_path, capsys):
    from benchmarks import versions

    (tmp_path / "README.md").write_text("| **neardup_gpu 0.1** | x |\n| a 1.0 | x |\n| b-c 2.0rc1 | y |\n")
    monkeypatch.setattr(versions, "README", tmp_path / "README.md")
    monkeypatch.setattr(versions, "version_by_pip", found.get)
    assert versions.main() == status
    said = capsys.readouterr()
    assert said.err == complaint
    for line, start in zip(said.out.splitlines(), printed, strict=True):
        assert line.startswith(start)


def test_pip_finds_nothing_without_an_index(monkeypatch):
    from benchmarks import versions

    for name, value in {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}.items():
        monkeypatch.setenv(name, value)
    assert versions.version_by_pip("datasketch") is None
