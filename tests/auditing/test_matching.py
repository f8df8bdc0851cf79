"""What a tool wrote is matched with the corpus, in every form; bad input gives one line."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu.cli.process import main

TOOLS = Path(__file__).parent / "tools"
IDS = ["a", "b", "c", "d"]
TEXTS = [f"{name} one two three four five six seven" for name in "aabc"]
CORPUS = pa.table({"id": IDS, "text": TEXTS})


def audited(kept=None, **options):
    return nd.audit(CORPUS, kept=kept, id_column="id", **{"definitions": False, **options})


def kept_by(found) -> int:
    return found.counts["kept"]


def test_every_form_of_kept_documents(tmp_path: Path) -> None:
    rows = CORPUS.slice(1, 2)
    (tmp_path / "rows").mkdir()
    pq.write_table(rows, tmp_path / "rows" / "part-0.parquet")
    pq.write_table(rows.select(["id"]), tmp_path / "ids.parquet")
    pa.csv.write_csv(rows, tmp_path / "rows.csv")
    (tmp_path / "ids.txt").write_text("b\n\n c \n")
    lines = "".join(json.dumps(row) + "\n" for row in rows.to_pylist())
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    pq.write_table(CORPUS.append_column("kept", pa.array([False, True, True, False])), tmp_path / "marked.parquet")
    removed = pa.table({"id": ["a", "d"]})
    forms = [
        tmp_path / name for name in ("rows", "ids.parquet", "rows.csv", "ids.txt", "rows.jsonl.gz", "marked.parquet")
    ]
    for form in [*map(str, forms), *forms, rows, {"id": ["b", "c"]}, np.array(["b", "c"]), pa.array(["c", "b"])]:
        found = audited(form)
        assert kept_by(found) == 2 and found.lost["id"].to_pylist() == ["d"], form
    assert audited(removed=removed).lost.equals(audited(rows).lost)
    assert kept_by(audited(rows, removed=removed)) == 2


@pytest.mark.parametrize(
    "marks", [["False", "true", "TRUE", "f"], [0, 1, 1, 0], ["no", "Yes", " y", "N"], [0.0, 1.0, 1.0, 0.0]]
)
def test_a_column_kept_of_words_or_numbers_counts(tmp_path: Path, marks: list) -> None:
    marked = CORPUS.append_column("kept", pa.array(marks))
    pa.csv.write_csv(marked, tmp_path / "marked.csv")
    pa.csv.write_csv(marked, tmp_path / "marked.tsv", pa.csv.WriteOptions(delimiter="\t"))
    lines = "".join(json.dumps(row) + "\n" for row in marked.to_pylist())
    (tmp_path / "marked.jsonl").write_text(lines)
    for form in (marked, *map(str, sorted(tmp_path.iterdir()))):
        assert kept_by(audited(form)) == kept_by(audited(removed=form)) == 2, form


def test_nothing_is_told_of_the_jobs_of_an_audit(caplog: pytest.LogCaptureFixture) -> None:
    audited({"id": ["b"]})
    assert caplog.messages == []
    assert nd.dedup({"text": ["one two three"]}).warnings and len(caplog.messages) == 1


def test_a_result_of_text_files_is_judged(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for name, text in zip("abcd", TEXTS, strict=True):
        (tmp_path / "texts" / f"{name}.txt").write_text(text)
    nd.dedup(tmp_path / "texts", output=tmp_path / "result")
    for tool, kept in itertools.product((None, "neardup"), (tmp_path / "result", [str(tmp_path / "result")])):
        found = nd.audit(tmp_path / "texts", kept=kept, tool=tool)
        assert (found.counts["removed"], found.counts["lost"], found.counts["missed"]) == (1, 0, 0)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
def test_a_file_without_rows_names_no_documents(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("id\n" if name.endswith("csv") else "")
    corpus = pa.table({"id": [1, 2], "text": ["to be or not to be", "that is the question"]})
    assert nd.audit(corpus, removed=tmp_path / name, id_column="id", definitions=False).counts["removed"] == 0
    assert nd.audit(corpus, kept=tmp_path / name, id_column="id", definitions=False).counts["kept"] == 0


def test_a_result_of_dedup_is_judged(tmp_path: Path) -> None:
    result = nd.dedup(CORPUS, id_column="id", output=tmp_path / "rows")
    nd.dedup(CORPUS, id_column="id", output=tmp_path / "ids", writing=nd.Writing(ids_only=True))
    stated = {"clusters": tmp_path / "rows" / "documents.parquet", "pairs": tmp_path / "rows" / "pairs.parquet"}
    for kept in (result, tmp_path / "rows", str(tmp_path / "ids"), tmp_path / "rows" / "documents.parquet"):
        found = audited(kept, tool="neardup", **stated)
        assert (found.counts["lost"], found.counts["missed"], found.counts["removed"]) == (0, 0, 1)
        assert (
            found.counts["reasons"] == found.counts["reasons_holding"] == found.counts["cluster_reasons_holding"] == 1
        )


def test_texts_are_matched_where_there_are_no_ids() -> None:
    kept = pa.table({"text": [TEXTS[0], f"  {TEXTS[2]}  ", TEXTS[3].upper()]})
    found = audited(kept, by_text=True)
    assert found.lost.num_rows == 0 and kept_by(found) == 3
    matching = found.report["matching"]
    assert (matching["by"], matching["by_words"], matching["copies"], matching["repeated"]) == ("text", 2, 1, 0)
    thrice = audited(pa.table({"text": [TEXTS[0]] * 3}), by_text=True)
    assert kept_by(thrice) == 2 and thrice.report["matching"]["repeated"] == 1


def test_other_white_space_is_counted_and_other_words_are_refused() -> None:
    spaced = pa.table({"id": ["b", "c"], "text": [TEXTS[1].replace(" ", "  "), TEXTS[2]]})
    assert audited(spaced).report["matching"]["other_spaces"] == 1
    changed = pa.table({"id": ["b", "c"], "text": [TEXTS[1], "something else"]})
    with pytest.raises(
        nd.errors.InputError, match=r"1 row with other words than in the corpus \(c\); the corpus changed"
    ):
        audited(changed)
    assert audited(changed, ignore_unknown=True).report["matching"]["changed"] == 1


def test_repeated_and_unknown_ids_are_counted_and_named() -> None:
    found = audited({"id": ["b", "c", "b", "x", "y"]}, ignore_unknown=True)
    matching = found.report["matching"]
    assert (matching["repeated"], matching["unknown"], matching["first_unknown"]) == (1, 2, ["x", "y"])
    both = audited(
        {"id": ["b", "c"]}, ignore_unknown=True, pairs=pa.table({"id": ["a", "x"], "duplicate_of": ["b", "b"]})
    )
    assert both.counts["reasons"] == 1 and both.report["matching"]["unknown"] == 1


def test_borders_between_text_columns_survive() -> None:
    corpus = pa.table({"id": [1, 2, 3], "title": ["one two", "one", "a"], "body": ["three", "two three", "b"]})
    options = {"id_column": "id", "text_columns": ["title", "body"], "definitions": False}
    result = nd.dedup(corpus, id_column="id", text_columns=["title", "body"])
    found = nd.audit(corpus, kept=result, **options)
    assert found.counts["removed"] == result.removed.num_rows and found.counts["lost"] == found.counts["missed"] == 0


BAD = {
    "unknown ids": ({"kept": {"id": ["b", "x"]}}, r"kept: 1 id of 2 not in the corpus \(x\); give the corpus that"),
    "another corpus": ({"kept": {"id": ["x", "y"]}}, r"kept: none of its 2 ids is in the corpus \(x, y\)"),
    "ids of another type": (
        {"kept": {"id": [1, 2]}},
        "kept: its ids are integers, and those of the corpus are strings",
    ),
    "both, at once": (
        {"kept": {"id": ["a"]}, "removed": {"id": ["a", "b", "c", "d"]}},
        "1 document both kept and removed",
    ),
    "neither": ({"kept": {"id": ["a"]}, "removed": {"id": ["b"]}}, r"2 documents neither kept nor removed \(c, d\)"),
    "nothing said": ({}, "kept: say what the tool kept"),
    "no ids": ({"kept": {"text": ["x"]}}, "no column 'id' for ids"),
    "no clusters": ({"kept": {"id": ["a"]}, "clusters": {"id": ["a"]}}, "no column 'group' or .* for clusters"),
    "no reasons": ({"kept": {"id": ["a"]}, "pairs": {"id": ["a"]}}, "no two columns of ids that state a reason"),
    "other texts": ({"kept": {"text": ["x"]}, "by_text": True}, "none of its 1 text is in the corpus"),
    "a text too many": (
        {"kept": {"text": [TEXTS[0], "x"]}, "by_text": True},
        r"1 text of 2 not in the corpus, .*row 2",
    ),
    "texts removed": ({"removed": {"id": ["a"]}, "by_text": True}, "by_text: texts are matched with kept rows"),
    "a method that misses": ({"kept": {"id": ["a"]}, "method": "minhash"}, "may miss pairs"),
    "a recipe of groups": ({"kept": {"id": ["a"]}, "recipe": nd.Recipe(within=("site",))}, "within site: an audit"),
    "common shingles": ({"kept": {"id": ["a"]}, "recipe": nd.Recipe(ignore_common=2)}, "ignore_common: an audit joins"),
    "integers": (
        {"kept": {"id": ["a"]}, "recipe": nd.Recipe(shingles=nd.Shingles(tokens="ids"))},
        "tokens 'ids': an audit compares texts",
    ),
    "no such keyword": ({"kept": {"id": ["a"]}, "treshold": 0.8}, "treshold: audit takes no such keyword"),
    "no such tool": ({"kept": {"id": ["a"]}, "tool": "x"}, "tool 'x' is not one of curator"),
    "no such column": ({"kept": {"id": ["a"]}, "by": "source"}, "no column 'source'; .*Name one with by="),
    "no mark": (
        {"kept": {"id": ["a", "b"], "kept": [True, None]}},
        r"kept: column 'kept' holds null in row 2; write true",
    ),
    "other marks": (
        {"removed": {"id": ["a"], "kept": ["web"]}},
        "removed: column 'kept' holds 'web' in row 1; write true",
    ),
    "ids that are lists": ({"kept": {"id": [["a"]]}}, "column 'id' holds list.*; an audit needs strings or numbers"),
    "clusters that are lists": (
        {"kept": {"id": ["a"]}, "clusters": {"id": ["a"], "cluster": [["x"]]}},
        "column 'cluster' holds list.*; an audit needs",
    ),
    "marks that are lists": (
        {"kept": {"id": ["a"], "kept": [[1]]}},
        "column 'kept' holds list.*; an audit needs strings or numbers",
    ),
    "no such file": ({"kept": "nowhere.parquet"}, "nowhere.parquet: no such file or folder"),
}


def test_ids_that_are_uuids() -> None:
    ids = pa.array([bytes([number] * 16) for number in range(4)], pa.uuid())
    found = nd.audit(CORPUS.set_column(0, "id", ids), kept={"id": ids.slice(0, 3)}, id_column="id")
    assert kept_by(found) == 3


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case: str) -> None:
    options, message = BAD[case]
    with pytest.raises(nd.errors.NeardupError, match=message):
        nd.audit(CORPUS, id_column="id", **options)


@pytest.mark.parametrize(
    ("value", "message"),
    [([1], "column 'by' holds list.*; by needs strings"), (b"\xff", "column 'by' holds binary that is not text")],
)
def test_a_column_without_text_is_refused_to_count_by(value: Any, message: str) -> None:
    with pytest.raises(nd.errors.InputError, match=message):
        nd.audit(CORPUS.append_column("by", pa.array([value] * 4)), kept={"id": ["a"]}, id_column="id", by="by")


def test_a_folder_of_tables_and_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    pq.write_table(CORPUS, tmp_path / "kept" / "a.parquet")
    (tmp_path / "kept" / "b.txt").write_text("a")
    with pytest.raises(nd.errors.InputError, match="pick one kind"):
        audited(str(tmp_path / "kept"))


def test_a_stream_and_an_empty_corpus_are_refused() -> None:
    with pytest.raises(nd.errors.InputError, match="the corpus is a stream"):
        nd.audit(CORPUS.to_reader(), kept={"id": ["a"]}, id_column="id")
    with pytest.raises(nd.errors.InputError, match="has no documents"):
        nd.audit(CORPUS.slice(0, 0), kept={"id": ["a"]}, id_column="id")


def test_the_command_says_one_line_and_fails_over_a_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus, kept = str(tmp_path / "corpus.parquet"), str(tmp_path / "kept.txt")
    pq.write_table(CORPUS, corpus)
    Path(kept).write_text("b\nc\n")
    words = ["audit", corpus, "--id-column", "id", "--kept", kept, "--quiet"]
    assert main([*words, "--fail-over", "lost=1"]) == 0
    assert main([*words, "--fail-over", "lost=0", "--fail-over", "missed=5%"]) == 3
    assert main([*words[:-1], "--fail-over", "lost=0.1"]) == 3
    out = capsys.readouterr().out
    assert (
        "failed     lost: 1 of 2 (50.0%), more than 0.1" in out and "matched    documents matched by their ids" in out
    )
    assert main([*words[:-1], "--json", "--fail-over", "lost=0"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "failed" and told["exceeded"] == ["lost: 1, more than 0"] and told["counts"]["lost"] == 1
    Path(kept).write_text("b\nx\n")
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("neardup: --kept: 1 id of 2 not in the corpus (x); give the corpus that the tool read")
    assert line.endswith("or pass --ignore-unknown")
    assert main([*words, "--fail-over", "kept=1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("neardup: --fail-over 'kept=1': there is no count 'kept'")


# --------------------------------------------------------------------------------------------------------------- tools

JUDGED = {
    # tool: what it is told, (removed, lost, missed) at 0.7
    "text-dedup": ({"kept": TOOLS / "text-dedup"}, (28, 0, 0)),
    "datatrove": ({"kept": TOOLS / "datatrove" / "output", "clusters": TOOLS / "datatrove"}, (27, 0, 1)),
    "dolma": ({"removed": TOOLS / "dolma"}, (8, 0, 22)),
    "duplodocus": ({"kept": TOOLS / "duplodocus", "clusters": TOOLS / "duplodocus"}, (8, 0, 22)),
}


@pytest.mark.parametrize("tool", JUDGED)
def test_the_output_of_tools_is_judged(tool: str) -> None:
    options, expected = JUDGED[tool]
    found = nd.audit(TOOLS / "corpus.jsonl.gz", id_column="id", tool=tool, threshold=0.7, definitions=False, **options)
    counts = found.counts
    assert (counts["removed"], counts["lost"], counts["missed"]) == expected
    if "clusters" in options:
        assert counts["cluster_reasons"] == counts["cluster_reasons_holding"] == counts["removed"]
        assert counts["clusters_without_kept"] == 0


def test_ids_of_curator_are_rows_of_the_corpus() -> None:
    folder = TOOLS / "curator"
    options = {"removed": folder / "FuzzyDuplicateIds", "clusters": folder / "ConnectedComponentsStage"}
    found = nd.audit(TOOLS / "corpus.jsonl.gz", tool="curator", threshold=0.7, definitions=False, **options)
    assert (found.counts["removed"], found.counts["lost"], found.counts["clusters_below"]) == (8, 0, 0)


def test_the_other_rows_of_a_tool_are_its_complement() -> None:
    folder = TOOLS / "datatrove"
    found = [
        nd.audit(
            TOOLS / "corpus.jsonl.gz", id_column="id", tool="datatrove", threshold=0.7, definitions=False, **options
        )
        for options in ({"kept": folder / "output"}, {"removed": folder / "excluded"})
    ]
    assert found[0].counts == found[1].counts


def test_versions_and_settings_are_beside_the_fixtures() -> None:
    told = json.loads((TOOLS / "versions.json").read_text())
    assert set(told) == {"text-dedup", "datatrove", "dolma", "curator", "duplodocus"}
    assert "text-dedup==0.4.0" in told["text-dedup"]["requirements"] and told["curator"].startswith("not run")


def test_files_of_clusters_and_of_reasons_may_be_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["one two three four five six"] * 2 + ["another text with other words in it"]
    tables = {"corpus": {"id": IDS[:3], "text": texts}, "kept": {"id": ["a", "c"]}}
    tables |= {"c0": {"id": ["a"], "group": [1]}, "c1": {"id": ["b", "c"], "group": [1, 2]}}
    tables |= {"p0": {"id_a": ["b"], "id_b": ["a"]}, "p1": {"id": ["c"], "duplicate_of": ["a"]}}
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    paths = {name: str(tmp_path / f"{name}.parquet") for name in tables}
    words = ["audit", paths["corpus"], "--id-column", "id", "--kept", paths["kept"], "--quiet"]
    for flag, names in (("--clusters", ("c0", "c1")), ("--pairs", ("p0", "p1"))):
        words += [word for name in names for word in (flag, paths[name])]
    assert main([*words, "--output", str(tmp_path / "out")]) == 0
    counts = json.loads((tmp_path / "out" / "audit.json").read_text())["counts"]
    assert (counts["clusters"], counts["cluster_reasons_holding"]) == (1, 1)
    assert (counts["reasons"], counts["reasons_holding"]) == (2, 1)
    capsys.readouterr()
