"""Parts of documents in tasks, and within a bound of memory: the decisions, tables and kept rows of a job in memory."""

import json
import random

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from flat import flat
from grids import some
from in_parts import compare, in_tasks, rows

import neardup_gpu as nd
from neardup_gpu import BottomK, MinHash, SimHash, Workers, errors
from neardup_gpu.cli import main
from neardup_gpu.engine.tasks import TaskFailedError
from neardup_gpu.planning import forecast
from neardup_gpu.results.explanation import explain
from neardup_gpu.sketches import sketch
from neardup_gpu.store.artefacts import PAIRS, UNITS, read_report
from neardup_gpu.tasks import unit_results

SENTENCES = [
    *("The river rose. ", "THE RIVER, rose! ", "All rights reserved", "menu", "Menu: ", "}\n", "\n\n", "", "\r\n"),
    *("It rained for many days and the river rose over its banks again. ", "He said so. And he went"),
    "He said so. The river rose! and he went. MENU. ",
]


def made(seed=1, number=160):
    """Documents of few different lines, some of them edited, with a date each."""
    draw = random.Random(seed)
    pool = [" ".join(f"w{draw.randrange(60)}" for _ in range(draw.randrange(1, 24))) for _ in range(60)]

    def line():
        words = draw.choice(pool).split()
        if draw.random() < 0.3:
            words[draw.randrange(len(words))] = f"w{draw.randrange(60)}"
        return " ".join(words) if draw.random() < 0.8 else draw.choice(SENTENCES)

    def text():
        return draw.choice(["\n", "\r\n", "\n\n"]).join(line() for _ in range(draw.randrange(9)))

    texts = [None if draw.random() < 0.03 else text() for _ in range(number)]
    table = {"id": [f"d{i}" for i in range(number)], "text": texts, "date": [draw.randrange(9) for _ in range(number)]}
    table |= {"site": [draw.choice("ab") for _ in range(number)]}
    return pa.table(table | {"n": range(number)}), pa.table({"id": ["r0", "r1"], "text": [text(), "\n".join(pool[:9])]})


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("units")
    table, reference = made()
    (folder / "in").mkdir()
    for i in range(0, 160, 40):
        pq.write_table(table[i : i + 40], folder / f"in/{i:03}.parquet", row_group_size=8)
    pq.write_table(reference, folder / "reference.parquet")
    return folder


def kept_rows(folder):
    """The kept rows, with what is left of their texts."""
    read = {".parquet": pq.read_table, ".jsonl": pyarrow.json.read_json, ".arrow": pyarrow.feather.read_table}
    paths = sorted((folder / "kept").rglob("*.*"))
    table = pa.concat_tables([read[path.suffix](path) for path in paths], promote_options="default")
    return sorted(table.to_pylist(), key=lambda row: row["n"] if "n" in row else row["path"])


def compare_units(memory, tasks):
    """See that all files of two results have the same rows."""
    compare(memory, tasks, ("comparisons", "candidate_pairs"))  # pairs of one document are counted by tasks alone
    assert rows(tasks, UNITS) == rows(memory, UNITS)
    assert kept_rows(tasks) == kept_rows(memory)
    here, there = map(read_report, (memory, tasks))
    for name in ("recipe", "limits", "lost_most", "warnings", "by", "measure"):
        assert here.get(name) == there.get(name), name


def test_documents_of_one_paragraph_each_are_a_reason_why_nothing_is_cut(tmp_path):
    pq.write_table(pa.table({"text": ["a\nb", "a\nc"]}), tmp_path / "in.parquet")
    flat(nd.dedup, tmp_path / "in.parquet", output=tmp_path / "memory", unit="paragraph")
    in_tasks(tmp_path / "tasks", tmp_path / "in.parquet", slice_bytes=3000, partitions=3, unit="paragraph")
    line = "there are no more than 2 paragraphs in 2 documents; try --unit line or sentence (unit)"
    assert [read_report(tmp_path / name)["warnings"] for name in ("memory", "tasks")] == [[line], [line]]
    assert nd.dedup({"text": ["a\n\nb", "a\n\nc"]}, recipe=nd.Recipe(unit="paragraph")).warnings == ()
    assert nd.dedup({"text": ["a", "a"]}, recipe=nd.Recipe(unit="paragraph")).warnings == ()  # one is cut


CASES = {
    "equal lines": {"unit": "line"},
    "near lines": {"unit": "line", "threshold": 0.8, "shingle_size": 2},
    "min-hash": {"unit": "line", "method": "minhash", "threshold": 0.7, "shingle_size": 2, "min_words": 3},
    "tf-idf": {"unit": "line", "method": MinHash(weighting="tfidf"), "shingle_size": 1},
    "simhash": {"unit": "line", "method": SimHash(), "min_words": 4},
    "bottom-k": {"unit": "paragraph", "method": BottomK(), "threshold": 0.6, "shingle_size": 1},
    "containment": {"unit": "line", "method": "containment", "threshold": 0.8, "shingle_size": 1, "keep": "date"},
    "paragraphs, the longest": {"unit": "paragraph", "keep": "longest", "drop_below": 12},
    "sentences, by date": {"unit": "sentence", "keep": "date:desc", "keep_copies": 2, "min_words": 2},
    "sentences, the longest": {"unit": "sentence", "keep": "date,longest", "inside": True},
    "two sentences, inside": {"unit": "sentences:2", "inside": True},
    "windows": {"unit": "window:6/2", "inside": True},
    "lines, inside": {"unit": "line", "inside": True, "keep_copies": 2, "drop_below": 9, "keep": "longest"},
    "within": {"unit": "line", "within": ("site",), "length_ratio": 0.7, "threshold": 0.5, "shingle_size": 1},
    "components": {"unit": "line", "threshold": 0.5, "shingle_size": 1, "cluster": "components"},
    "reference": {"unit": "line", "against": True, "keep_copies": 2},
    "reference, near": {"unit": "line", "against": True, "threshold": 0.6, "shingle_size": 1, "drop_below": 5},
    "reference alone": {"unit": "line", "against": True, "only_against": True, "threshold": 0.6, "shingle_size": 1},
    "counted by site": {"unit": "line", "by": "site", "check": 0},
}


SOME = (
    "tf-idf",
    "containment",
    "sentences, by date",
    "sentences, the longest",
    "lines, inside",
    "within",
    "components",
    "reference alone",
)


@pytest.mark.parametrize("case", some(CASES, SOME))
def test_tasks_decide_as_a_job_in_memory_does(place, tmp_path, case):
    options = {"id_column": "id", **CASES[case]}
    if options.pop("against", False):
        options["against"] = place / "reference.parquet"
    flat(nd.dedup, place / "in", output=tmp_path / "memory", engine="cpu", **options)
    in_tasks(tmp_path / "tasks", place / "in", slice_bytes=3000, partitions=3, **options)
    compare_units(tmp_path / "memory", tmp_path / "tasks")
    report = read_report(tmp_path / "tasks")
    assert report["tasks"]["slices"] > 4 and report["counts"]["units"] > 100
    listed = 0 if case == "simhash" else len(rows(tmp_path / "tasks", PAIRS)[1])  # which verifies nothing
    assert report["counts"]["verified_pairs"] == listed
    assert "near_reference" not in report["counts"]
    assert report["counts"]["units_cut"] > 0 or options["unit"].startswith("window")


@pytest.mark.parametrize("near", [False, True])
def test_sentences_that_cannot_be_cut_alone_come_last_in_tasks_too(tmp_path, near):
    """In many small documents of sentences that hold one another apart, with a reference set and several copies."""
    sentences = ["C. ", "Y! ", "d e! ", "a. ", "z w k. ", "Q u! "]
    for seed in range(6):
        draw = random.Random(seed)
        texts = ["".join(draw.choices(sentences, k=draw.randrange(1, 7))) for _ in range(26)]
        table = pa.table({"text": texts, "date": [draw.randrange(3) for _ in texts], "n": range(26)})
        (folder := tmp_path / str(seed)).mkdir()
        pq.write_table(table.slice(2), folder / "in.parquet", row_group_size=6)
        pq.write_table(table.slice(0, 2), folder / "reference.parquet")
        options = {
            "unit": nd.Unit("sentence", 1, 1 if near else 2),
            "keep": ("longest", "date,longest")[seed % 2],
        }
        options |= {"against": folder / "reference.parquet"} if seed % 3 == 0 else {}
        options |= {"threshold": 0.5, "shingle_size": 1} if near else {}
        flat(nd.dedup, folder / "in.parquet", output=folder / "memory", engine="cpu", **options)
        in_tasks(folder / "tasks", folder / "in.parquet", slice_bytes=200, partitions=2, **options)
        compare_units(folder / "memory", folder / "tasks")


KINDS = ("parquet", "jsonl", "csv", "arrow", "txt", "memory", "pages")


@pytest.mark.parametrize("kind", some(KINDS, ("jsonl", "arrow", "txt", "memory", "pages")))
def test_kept_rows_of_every_format(tmp_path, kind):
    table = made()[0].drop_columns(["date", "site"])
    (tmp_path / "in").mkdir()
    options = {"id_column": "id", "unit": "line", "drop_below": 3, "output_format": None}
    source = tmp_path / "in"
    if kind == "memory":
        source = table
    elif kind == "txt":
        del options["id_column"]
        for row in table.to_pylist():
            (source / f"{row['id']}.txt").write_text(row["text"] or "", newline="")
    elif kind == "csv":
        pa.csv.write_csv(table, source / "a.csv")
    elif kind == "arrow":
        pa.feather.write_feather(table, source / "a.arrow", chunksize=20)
    elif kind == "jsonl":
        rows = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
        (source / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        if kind == "pages":
            html = [f"<p>{text}</p>".replace("\n", "</p><p>") for text in table["text"].to_pylist()]
            table = table.set_column(1, "text", pa.array(html)).append_column("title", pa.array(["menu", "w1"] * 80))
            options |= {"text_columns": ["title", "text"], "html": True, "unit": "paragraph"}
        pq.write_table(table, source / "a.parquet", row_group_size=20)
    flat(nd.dedup, source, output=tmp_path / "memory", engine="cpu", **options)
    in_tasks(tmp_path / "tasks", source, slice_bytes=3000, **options)
    compare_units(tmp_path / "memory", tmp_path / "tasks")
    assert read_report(tmp_path / "tasks")["tasks"]["slices"] > 1 or kind == "csv"  # with line ends in quotes


@pytest.mark.parametrize("texts", [[], ["", None, " \n"], ["a", "a"]])
def test_few_units(tmp_path, texts):
    pq.write_table(pa.table({"text": pa.array(texts, pa.string()), "n": range(len(texts))}), tmp_path / "a.parquet")
    flat(nd.dedup, tmp_path / "a.parquet", unit="line", output=tmp_path / "memory", engine="cpu")
    in_tasks(tmp_path / "tasks", tmp_path / "a.parquet", unit="line")
    compare_units(tmp_path / "memory", tmp_path / "tasks")


def test_a_job_that_is_begun_again(place, tmp_path, monkeypatch):
    given = {"id_column": "id", "unit": "line", "keep_copies": 2, "by": "site"}
    flat(nd.dedup, place / "in", output=tmp_path / "memory", engine="cpu", **given)
    workers = Workers(work_dir=str(tmp_path / "work"), number=1, slice_bytes=900, partitions=2)
    options = {"output": tmp_path / "tasks", "engine": "cpu", "workers": workers, **given}
    original = unit_results.decided
    for stage in ("claim", "decided"):  # a task of the stage ends with an error, as if its process were killed
        with monkeypatch.context() as patched:
            patched.setattr(unit_results, stage, lambda *arguments: 1 / 0)
            with pytest.raises(TaskFailedError, match="ZeroDivisionError"):
                flat(nd.dedup, place / "in", **options)
        assert not (tmp_path / "tasks").exists()
    assert unit_results.decided is original
    assert flat(nd.dedup, place / "in", **options).report["tasks"]["resumed"] > 10
    compare_units(tmp_path / "memory", tmp_path / "tasks")


def test_a_bound_of_memory_and_results_in_parts(place, tmp_path, monkeypatch):
    options = {"id_column": "id", "unit": "line", "min_words": 2}
    whole = flat(nd.dedup, place / "in", output=tmp_path / "memory", **options)
    for in_parts in (False, True):
        if in_parts:
            monkeypatch.setattr(forecast, "at_most", lambda *arguments: 1 << 50)
        result = flat(nd.dedup, place / "in", memory="4GB", engine="cpu", **options)
        assert (result.facts is None) == in_parts == ("tasks" in result.report)
        for name in ("documents", "pairs", "units"):
            assert getattr(result, name).to_pylist() == getattr(whole, name).to_pylist()
    cut = next(row["id"] for row in whole.documents.to_pylist() if row["units_cut"])
    assert result.explain(cut) == whole.explain(cut)
    pytest.importorskip("datasets")
    with pytest.raises(errors.InputError, match="which tells no cuts"):
        result.kept_dataset()


def test_the_command_line(place, tmp_path, capsys):
    out, work = str(tmp_path / "out"), str(tmp_path / "work")
    given = ["dedup", str(place / "in"), "--id-column", "id", "--unit", "line", "--output", out]
    tasks = ["--work-dir", work, "--workers", "1", "--slice-bytes", "1kB"]
    assert main([*given, *tasks, "--report"]) == 0
    assert "documents/, pairs/, units/, kept/" in capsys.readouterr().out
    found = flat(nd.dedup, place / "in", unit="line", id_column="id", output=tmp_path / "memory")
    cut = next(row["id"] for row in found.documents.to_pylist() if row["units_cut"])
    assert explain(tmp_path / "out", cut) == explain(tmp_path / "memory", cut)
    assert main(["info", out, "--check"]) == 0
    again = flat(nd.dedup, tmp_path / "out/kept", id_column="id", unit="line")
    assert again.report["counts"]["units_cut"] == 0
    texts = tmp_path / "nested.jsonl"
    texts.write_text('{"page": {"text": "a b"}}\n')
    nested = ["dedup", str(texts), "--text-column", "page.text", "--unit", "line", "--output", str(tmp_path / "no")]
    assert main([*nested, *tasks]) == 2
    assert "columns of text that are not inside another one" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(("method", "unit"), [("minhash", "line"), (SimHash(weighting="tfidf"), "sentences:2/1")])
def test_sketches(place, tmp_path, method, unit):
    options = {"id_column": "id", "method": method, "unit": unit, "engine": "cpu", "within": ("site",)}
    here = flat(sketch, place / "in", tmp_path / "memory.parquet", **options)
    workers = Workers(work_dir=str(tmp_path / "work"), number=1, slice_bytes=900)
    there = flat(sketch, place / "in", tmp_path / "tasks.parquet", workers=workers, **options)
    assert there["tasks"]["slices"] > 4 and there["units"] == here["units"] > 300
    assert (tmp_path / "tasks.parquet").read_bytes() == (tmp_path / "memory.parquet").read_bytes()
