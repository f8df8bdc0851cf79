"""Audits are exact: they find the planted errors and no others, as brute force does."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st

import neardup_gpu as nd
from neardup_gpu.auditing.verdict import Audit, sentences
from neardup_gpu.jobs.comparison import compare
from neardup_gpu.results.fail_over import CountedShare, exceeded, limits_of

WORDS = [f"w{number}" for number in range(4000)]


def text(number: int, length: int = 40, changed: int = 0) -> str:
    """Return a text whose words no text of another number has, with some of its last words changed."""
    words = [f"{WORDS[number]}x{place}" for place in range(length)]
    return " ".join([*words[: length - changed], *(f"{word}changed{changed}" for word in words[length - changed :])])


def table(texts: list[str]) -> pa.Table:
    return pa.table({"id": [f"d{number}" for number in range(len(texts))], "text": texts})


def audited(texts: list[str], kept: list[int], **options) -> Audit:
    ids = pa.table({"id": pa.array([f"d{number}" for number in kept], pa.string())})
    return nd.audit(table(texts), kept=ids, id_column="id", **{"definitions": False, **options})


def brute_force(texts: list[str], kept: set[int], threshold: float) -> tuple[dict, set]:
    """Return the nearest kept document of each lost one, and all missed pairs, by comparing every pair."""
    worth = {
        pair: 1.0 if texts[pair[0]] == texts[pair[1]] else compare(texts[pair[0]], texts[pair[1]]).resemblance
        for pair in itertools.combinations(range(len(texts)), 2)
    }
    lost = {}
    for number in set(range(len(texts))) - kept:
        best = max((worth[tuple(sorted((number, other)))] for other in kept), default=0.0)
        if best < threshold:
            lost[f"d{number}"] = best
    missed = {pair for pair, value in worth.items() if kept.issuperset(pair) and value >= threshold}
    return lost, missed


@given(st.data())
@settings(max_examples=fewer(40), deadline=None)
def test_lost_and_missed_are_those_of_brute_force(data):
    sources = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=14))
    texts = [text(number, changed=data.draw(st.sampled_from([0, 1, 2, 4, 8, 12]))) for number in sources]
    kept = {number for number in range(len(texts)) if data.draw(st.booleans())}
    threshold = data.draw(st.sampled_from([0.5, 0.7, 0.8, 0.95, 1.0]))
    found = audited(texts, sorted(kept), threshold=threshold, nearest_from=0.05)
    lost, missed = brute_force(texts, kept, threshold)
    assert set(found.lost["id"].to_pylist()) == set(lost)
    for row in found.lost.to_pylist():
        assert (row["resemblance"] or 0.0) == (lost[row["id"]] if lost[row["id"]] >= 0.05 else 0.0)
    assert found.counts["missed"] == len(missed)
    listed = {tuple(sorted((int(row["id_a"][1:]), int(row["id_b"][1:])))) for row in found.missed.to_pylist()}
    assert listed <= missed
    assert found.counts["missed_documents"] == len({number for pair in missed for number in pair})


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), st.integers(0, 4))
@settings(max_examples=fewer(25), deadline=None)
def test_planted_errors_are_found_and_no_others(num_lost, num_missed, num_broken, num_chained):
    """Documents 3i, 3i + 1 and 3i + 2 are an original, a near-duplicate of it and a document of its own."""
    groups = 8
    texts = [each for number in range(groups) for each in (text(number), text(number, changed=2), text(100 + number))]
    originals, copies = [3 * group for group in range(groups)], [3 * group + 1 for group in range(groups)]
    singles = [3 * group + 2 for group in range(groups)]
    kept = [*originals, *singles[num_lost:], *copies[:num_missed]]
    removed = [number for number in range(len(texts)) if number not in kept]
    reasons = [(copy, copy - 1) for copy in copies[num_missed:]]
    broken = [(single, originals[0]) for single in singles[:num_broken]]
    chain = [[original, original + 1, single] for original, single in zip(originals, singles, strict=True)]
    clusters = [*chain[:num_chained], *([original, original + 1] for original in originals[num_chained:])]
    stated = pa.table(
        {"id": [f"d{a}" for a, _ in reasons + broken], "duplicate_of": [f"d{b}" for _, b in reasons + broken]}
    )
    members = [(f"d{number}", label) for label, some in enumerate(clusters) for number in some]
    of_clusters = pa.table({"id": [name for name, _ in members], "cluster": [label for _, label in members]})
    found = audited(texts, sorted(kept), pairs=stated, clusters=of_clusters)
    assert sorted(found.lost["id"].to_pylist()) == sorted(f"d{number}" for number in singles[:num_lost])
    assert {(row["id_a"], row["id_b"]) for row in found.missed.to_pylist()} == {
        (f"d{copy - 1}", f"d{copy}") for copy in copies[:num_missed]
    }
    assert found.counts["removed"] == len(removed)
    assert found.counts["reasons"] == len(reasons) + num_broken
    assert found.counts["reasons_holding"] == len(reasons)
    below = [row for row in found.clusters.to_pylist() if row["lowest"] < 0.8]
    assert {row["cluster"] for row in below} == set(range(num_chained)) and found.counts[
        "clusters_below"
    ] == num_chained


def test_a_chain_joins_two_members_by_its_strongest_links():
    words = [f"word{number}" for number in range(80)]
    texts = [" ".join(words[first : first + 60]) for first in (0, 4, 8, 12)]
    stated = pa.table({"id": [f"d{number}" for number in range(4)], "group": ["all"] * 4})
    found = audited(texts, [0], clusters=stated)
    (row,) = found.clusters.to_pylist()
    assert {row["id_a"], row["id_b"]} == {"d0", "d3"} and row["chain"] == ["d0", "d1", "d2", "d3"]
    assert row["lowest"] == compare(texts[0], texts[3]).resemblance < 0.8
    assert row["links"] == [compare(texts[0], texts[1]).resemblance] * 3 and min(row["links"]) >= 0.8
    assert row["reasons"] == 3 and row["holding"] == 1  # only d1 resembles d0


def test_clusters_that_are_measured_in_blocks_give_the_same(monkeypatch):
    from neardup_gpu.auditing import clusters

    words = [f"word{number}" for number in range(120)]
    texts = [" ".join(words[first : first + 60]) for first in range(0, 40, 2)]
    stated = pa.table({"id": [f"d{number}" for number in range(20)], "group": [number % 3 for number in range(20)]})
    whole = audited(texts, [0, 5], clusters=stated).clusters
    monkeypatch.setattr(clusters, "MOST_PAIRS", 9)
    assert audited(texts, [0, 5], clusters=stated).clusters.equals(whole)
    assert audited(texts, [0, 5], clusters=pa.concat_tables([stated, stated])).clusters.equals(whole)


def test_documents_in_several_clusters_are_told_of(caplog):
    stated = pa.table({"id": ["d0", "d1", "d1"], "group": ["a", "a", "b"]})
    found = audited([text(1), text(1), text(2)], [0, 2], clusters=stated)
    assert found.counts["clusters"] == 1 and found.counts["cluster_reasons"] == 1
    assert caplog.messages == ["clusters: 1 document in several clusters; each cluster counts"]


def test_copies_are_counted_by_documents():
    texts = [text(1), text(1), text(1), text(1, changed=2), text(1, changed=2), text(2)]
    found = audited(texts, range(6))
    assert found.counts["missed"] == 10 and found.missed.num_rows == 4  # C(5, 2); a pair, and one for each copy
    assert found.counts["missed_documents"] == 5
    assert "everything was kept" in " ".join(_matching(found))


def test_nothing_kept_loses_everything_with_words():
    found = audited([text(1), text(1), "", "!!"], [])
    assert found.lost.to_pylist() == [{"id": name, "nearest": None, "resemblance": None} for name in ("d0", "d1")]
    assert found.counts["without_words_removed"] == 2 and found.counts["judged_removed"] == 4
    assert "nothing was kept" in " ".join(_matching(found))


def _matching(found: Audit) -> list[str]:
    from neardup_gpu.auditing.verdict import matching_lines

    return matching_lines(found.report)


def test_pairs_close_to_the_threshold_are_counted():
    texts = [text(1, 104), text(1, 104, 10), text(2, 104), text(2, 104, 12), text(3, 104), text(3, 104, 30)]
    worth = [compare(texts[place], texts[place + 1]).resemblance for place in (0, 2, 4)]
    assert 0.8 <= worth[0] < 0.82 and 0.78 <= worth[1] < 0.8 and worth[2] < 0.78
    found = audited(texts, [0, 1, 2, 4])
    assert found.counts["close_kept"] == 1 and found.counts["close_removed"] == 1
    assert found.lost["id"].to_pylist() == ["d3", "d5"]


@pytest.mark.parametrize("method", ["exact", "containment"])
def test_tasks_and_a_bound_of_memory_change_nothing(tmp_path, method):
    texts = [text(number % 7, changed=[0, 1, 2, 8][number % 4]) for number in range(30)]
    plain = audited(texts, range(0, 30, 3), method=method)
    workers = nd.Workers(work_dir=str(tmp_path / "work"), number=1, keep_work=True)
    cleared = nd.Workers(work_dir=str(tmp_path / "cleared"), number=1)
    for options in ({"memory": "2GB"}, {"workers": workers}, {"workers": workers}, {"workers": cleared}):
        found = audited(texts, range(0, 30, 3), method=method, **options)
        assert found.lost.equals(plain.lost) and found.missed.sort_by("id_b").equals(plain.missed.sort_by("id_b"))
        assert found.counts == plain.counts
    assert sorted(path.name for path in (tmp_path / "work").iterdir())[-2:] == ["results", "split"]
    assert not list((tmp_path / "cleared").iterdir())


def test_a_work_folder_is_left_as_it_is_unless_an_audit_made_it(tmp_path):
    """An audit removes `split` and `results` from its work folder at the end, but none that somebody else put there."""
    work, corpus = tmp_path / "work", {"id": ["a", "b"], "text": [text(0), text(1)]}
    (work / "split").mkdir(parents=True)
    (work / "split" / "train.parquet").write_text("mine")
    (tmp_path / "file").write_text("mine")

    def refused(error, folder, **options):
        workers = nd.Workers(work_dir=None if folder is None else str(folder), number=1)
        with pytest.raises(error) as caught:
            nd.audit(corpus, kept={"id": ["a"]}, id_column="id", workers=workers, **options)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    message = refused(nd.errors.OutputError, work)
    assert message == f"{work}: holds split, which no audit wrote; name a new or empty folder with work_dir=..."
    assert "is not apart from the work folder" in refused(nd.errors.OutputError, tmp_path / "w", output=tmp_path / "w")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "a.txt").write_text(text(0))
    with pytest.raises(nd.errors.OutputError, match="w: is in the input folder"):
        nd.audit(inside, kept={"id": ["a.txt"]}, workers=nd.Workers(work_dir=str(inside / "w"), number=1))
    shutil.rmtree(inside)
    assert refused(nd.errors.OutputError, tmp_path / "file").endswith("; name another folder with work_dir=...")
    assert refused(nd.errors.ParameterError, tmp_path / "w", memory="2GB").startswith("memory and work_dir: ")
    assert refused(nd.errors.ParameterError, None).startswith("work_dir: tasks need a folder to work in")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "split", "train.parquet", "work"]


def test_a_disk_that_is_too_small_for_the_split_corpus_is_named(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("neardup_gpu.auditing.split.pq.ParquetWriter", full)
    corpus, out = {"id": ["a", "b"], "text": [text(0), text(1)]}, tmp_path / "out"
    workers, engine = nd.Workers(work_dir=str(tmp_path / "work"), number=1), nd.Engine(temp_dir=tmp_path)
    for options, says in (
        ({"workers": workers}, f"{tmp_path}/work/split: No space left on device; name a larger disk with work_dir=..."),
        ({"engine": engine}, f"{tmp_path}: No space left on device; name a larger disk with temp_dir=..."),
        ({}, f"{tmp_path}: No space left on device; name an output on a larger disk, or another disk for temporary "),
    ):
        with pytest.raises(nd.errors.OutputError) as caught:
            nd.audit(corpus, kept={"id": ["a"]}, id_column="id", output=out, **options)
        assert str(caught.value).startswith(says)
        assert not out.exists()


def test_containment_asks_whether_a_kept_document_has_the_text():
    long = text(1, 200)
    part = " ".join(long.split()[50:110])
    texts = [long, part, text(2)]
    found = audited(texts, [0], method="containment")
    assert found.lost["id"].to_pylist() == ["d2"] and found.recipe.threshold == 0.9
    assert audited(texts, [0]).lost["id"].to_pylist() == ["d1", "d2"]
    assert audited(texts, [0, 1], method="containment").missed.to_pylist() == [
        {"id_a": "d0", "id_b": "d1", "kind": "near", "containment": 1.0}
    ]


# ------------------------------------------------------------------------------------------------ by a column, limits


def test_everything_is_counted_for_each_source():
    texts = [text(0), text(0, changed=1), text(1), text(1), text(2)]
    given = table(texts).append_column("source", pa.array(["web", "web", "books", None, None]))
    found = nd.audit(given, kept={"id": ["d0", "d1", "d2"]}, id_column="id", by="source", definitions=False)
    assert found.report["by"] == [
        {"value": "web", "documents": 2, "kept": 2, "removed": 0, "lost": 0, "in_missed_pairs": 2},
        {"value": None, "documents": 2, "kept": 0, "removed": 2, "lost": 1, "in_missed_pairs": 0},
        {"value": "books", "documents": 1, "kept": 1, "removed": 0, "lost": 0, "in_missed_pairs": 0},
    ]


def test_limits_are_numbers_or_shares():
    limits = limits_of(["lost=2", "lost=10%", "missed=0.5", "missed=.25"], ["lost", "missed"])
    counts = {"lost": CountedShare(3, 3, 20), "missed": CountedShare(7, 4, 10)}
    assert exceeded(limits, counts) == [
        "lost: 3, more than 2",
        "lost: 3 of 20 (15.0%), more than 0.1",
        "missed: 4 of 10 (40.0%), more than 0.25",
    ]
    assert exceeded(limits_of(["lost=0.0"], ["lost"]), {"lost": CountedShare(0, 0, 0)}) == []
    for word in ("lost", "lost=", "lost=-1", "lost=2.5", "lost=101%", "lost=x", "kept=1"):
        with pytest.raises(nd.errors.ParameterError, match="fail_over"):
            limits_of([word], ["lost", "missed"])


# ------------------------------------------------------------------------------------------------------- explanations


def related() -> list[str]:
    """Return texts in groups. In some, words change here and there, and in others a passage changes.

    So the order of their resemblances depends on the size of shingles, and no threshold stands for another size.
    """
    texts = []
    for group in range(200):
        rng = np.random.default_rng(group)
        length = int(rng.integers(60, 240))
        words = [f"t{group}n{place}" for place in range(length)]
        number = int(rng.integers(1, 30))
        places = rng.choice(length, number // 2 + 1, replace=False) if group % 2 else range(20, 20 + number)
        texts += [
            " ".join(words),
            " ".join(f"new{place}" if place in places else word for place, word in enumerate(words)),
        ]
    return texts


@pytest.mark.parametrize("threshold", [0.6, 0.7, 0.9])
def test_another_threshold_is_told(threshold):
    texts = related()
    result = nd.dedup(table(texts), id_column="id", threshold=threshold)
    found = nd.audit(table(texts), kept=result, id_column="id")
    above, up_to = found.report["difference"]["threshold"]
    assert above < threshold <= up_to and (above, up_to) != (0.0, 1.0)
    assert "Another threshold explains all of it" in sentences(found.report)[-1]


@pytest.mark.parametrize("size", [2, 8])
def test_another_definition_is_told(size):
    texts = related()
    result = nd.dedup(table(texts), recipe=nd.Recipe(shingles=nd.Shingles(size)), id_column="id")
    found = nd.audit(table(texts), kept=result, id_column="id")
    difference = found.report["difference"]
    assert difference["threshold"] is None and difference["shingle_size"] == size
    assert f"by shingles of {size} words nothing is lost" in sentences(found.report)[-1]


def test_what_nothing_explains_is_said():
    texts = related()
    result = nd.dedup(table(texts), id_column="id")
    kept = result.kept["id"].to_pylist()
    alone = set(kept) - set(result.removed["duplicate_of"].to_pylist())
    broken = [*(set(kept) - {min(alone)}), *result.removed["id"].to_pylist()[:3]]
    found = nd.audit(table(texts), kept=pa.table({"id": broken}), id_column="id")
    assert found.report["difference"]["sentence"].startswith("Neither another threshold nor")


# ------------------------------------------------------------------------------------------------------------- results


def test_an_audit_is_written_checked_and_replaced(tmp_path: Path):
    from neardup_gpu.jobs import info

    texts = [text(0), text(0, changed=1), text(1), text(2)]
    out = tmp_path / "verdict"
    stated = pa.table({"id": ["d0", "d2"], "group": [1, 1]})
    options = {"output": out, "clusters": stated, "pairs": pa.table({"id_a": ["d3"], "id_b": ["d0"]})}
    found = audited(texts, [0, 1], **options)
    names = {"lost.parquet", "missed.parquet", "clusters.parquet", "reasons.parquet", "audit.json", "audit.html"}
    assert {path.name for path in out.iterdir()} == names
    assert info.describe(out)["kind"] == "audit" and info.describe(out)["counts"] == found.counts
    assert info.check(out) == f"all 6 files of {out}"
    assert nd.Recipe.of(pq.read_schema(out / "lost.parquet"), "lost") == found.recipe
    page = (out / "audit.html").read_text()
    assert sentences(found.report)[1].split(";")[0] in page and "<h2>Counts</h2>" in page and "://" not in page
    with pytest.raises(nd.errors.OutputError, match="exists already"):
        audited(texts, [0, 1], **options)
    audited(texts, [0], **options, writing=nd.Writing(overwrite=True))
    (out / "missed.parquet").write_bytes(b"other")
    with pytest.raises(nd.errors.DamagedError):
        info.check(out)
    (out / "missed.parquet").unlink()
    with pytest.raises(nd.errors.DamagedError, match="is missing"):
        info.check(out)


def test_texts_and_ids_are_escaped_on_the_page(tmp_path: Path):
    given = pa.table({"id": ["<b>", "<i>"], "text": ["<script>alert(1)</script> " + text(1), "<img> " + text(2)]})
    nd.audit(given, kept={"id": ["<b>"]}, id_column="id", output=tmp_path / "v", definitions=False)
    page = (tmp_path / "v" / "audit.html").read_text()
    assert "<img>" not in page and "<i>" not in page and "&lt;img&gt;" in page


def test_a_lost_document_is_explained():
    texts = [text(0), text(0, changed=10), text(1)]
    found = audited(texts, [0])
    assert found.explain("d1").resemblance == found.lost["resemblance"][0].as_py() == compare(*texts[:2]).resemblance
    with pytest.raises(nd.errors.InputError, match=r"d2: no kept document reaches 0\.5"):
        found.explain("d2")
    with pytest.raises(nd.errors.InputError, match="neither lost nor in a missed pair"):
        found.explain("d0")
    assert repr(found) == "Audit(3 documents: 1 kept, 2 removed; 2 lost, 0 missed)"
    assert found._repr_html_().count("<p>") == 5
