"""The whole job on small corpora of seeded edits: its promises, checked by brute force over strings."""

import itertools
import json
import math
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from in_parts import in_tasks
from versions import WORDS, corpus, decisions, families
from witnesses import greedy, jaccard, shingle_set, token_strings

from neardup_gpu import Engine, Index, MinHash, Recipe, Result, Writing, dedup, theory
from neardup_gpu.definitions import METADATA_KEY
from neardup_gpu.engine.processors import most_threads
from neardup_gpu.errors import (
    ArgumentTypeError,
    InputError,
    NeardupError,
    OutputError,
    ParameterError,
)
from neardup_gpu.kernels._cpu import num_threads
from neardup_gpu.sketches import pairs, sketch
from neardup_gpu.stages.decisions import KINDS


def by_id(result):
    documents, pairs = decisions(result)
    return {row["id"]: row for row in documents}, sorted(tuple(row.values()) for row in pairs)


@pytest.fixture(scope="module")
def table():
    return corpus()


@pytest.fixture(scope="module")
def result(table):
    return dedup(table, id_column="id")


def check_greedy(table, result, order=None, threshold=0.8):
    """Every promise of a greedy run, from the texts alone.

    `order` gives row numbers from the best to the worst; input order unless given.
    """
    order = list(range(len(table))) if order is None else order
    ids, texts = table["id"].to_pylist(), [text or "" for text in table["text"].to_pylist()]
    rows = {row["id"]: row for row in result.documents.to_pylist()}
    assert result.documents["id"].to_pylist() == ids
    tokens = [tuple(token_strings(text)) for text in texts]
    sets = {ids[row]: shingle_set(texts[row]) for row in order}
    first = {}
    for row in order:
        if tokens[row]:
            first.setdefault(tokens[row], row)
    representatives = [row for row in order if tokens[row] and first[tokens[row]] == row]
    rank = {ids[row]: number for number, row in enumerate(representatives)}

    verified, copies = [], {}
    for pair in result.pairs.to_pylist():
        a, b = pair["id_a"], pair["id_b"]
        assert pair["resemblance"] == jaccard(sets[a], sets[b]) >= threshold
        assert order.index(ids.index(a)) < order.index(ids.index(b))
        if b in rank:
            verified.append((rank[a], rank[b]))
        else:
            copies[b] = a
    assert len(verified) == len(set(verified))
    assert copies == {ids[row]: ids[first[tokens[row]]] for row in order if tokens[row] and first[tokens[row]] != row}
    stay = greedy(len(representatives), verified)
    for row in order:
        id_, mine = ids[row], rows[ids[row]]
        if not tokens[row]:
            nothing = dict.fromkeys(("duplicate_of", "kind", "resemblance"))
            assert mine == {"id": id_, "kept": True, **nothing, "group": id_}
            continue
        representative = ids[first[tokens[row]]]
        assert mine["kept"] == (representative == id_ and stay[rank[id_]])
        if mine["kept"]:
            assert (mine["duplicate_of"], mine["resemblance"], mine["group"]) == (None, None, id_)
            continue
        keeper = mine["duplicate_of"]
        assert rows[keeper]["kept"]
        assert mine["group"] == keeper
        assert mine["resemblance"] == jaccard(sets[id_], sets[keeper]) >= threshold
        if not stay[rank[representative]]:
            mates = [b if a == rank[representative] else a for a, b in verified if rank[representative] in (a, b)]
            kept_mates = [ids[representatives[m]] for m in mates if stay[m]]
            best = min(kept_mates, key=lambda other: (-jaccard(sets[id_], sets[other]), rank[other]))
            assert keeper == best
        else:
            assert (keeper, mine["resemblance"]) == (representative, 1)
    return verified


class TestPromises:
    def test_greedy(self, table, result):
        verified = check_greedy(table, result)
        assert len(verified) > 30  # the corpus has something to say

    def test_no_pair_is_missed_by_a_filter_that_misses_none(self, table):
        """All pairs at or above the threshold; by the union bound one is missed with probability below 1e-9."""
        run = dedup(table, id_column="id", method=MinHash(filter="64,2,1"))
        first = {}
        for id_, text in zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True):
            first.setdefault(tuple(token_strings(text)), (id_, shingle_set(text)))
        sets = {id_: shingles for tokens, (id_, shingles) in first.items() if tokens}
        expected = {(a, b) for a, b in itertools.combinations(sets, 2) if jaccard(sets[a], sets[b]) >= 0.8}
        assert len(expected) * theory.miss_probability(0.8, *run.recipe.method.filter) < 1e-9
        found = {(p["id_a"], p["id_b"]) for p in run.pairs.to_pylist() if p["id_b"] in sets}
        assert found == expected
        assert run.report["counts"]["verified_pairs"] == len(expected) > 30

    @pytest.mark.parametrize("tenths", range(1, 11))
    def test_a_resemblance_equal_to_the_threshold_is_enough(self, tenths):
        """10 shingles, of which the shorter text has some: 0.3 is 3 / 10, and nothing is lost in between."""
        texts = [" ".join(WORDS[:14]), " ".join(WORDS[: 4 + tenths]) + (" ." if tenths == 10 else "")]
        options = {"method": MinHash(filter="200,1,1"), "check": 0}  # misses 1 / 10 with probability 0.9**200 < 1e-9
        for threshold, removed in ((tenths / 10, 1), (math.nextafter(tenths / 10, 2), 0)):
            if threshold <= 1:
                run = flat(dedup, pa.table({"text": texts}), threshold=threshold, **options)
                assert run.report["counts"]["removed"] == removed
                assert run.pairs["resemblance"].to_pylist() == [tenths / 10] * removed

    @pytest.mark.parametrize("threshold", [0.3, 0.5, 0.95, 1.0])
    def test_other_thresholds(self, table, threshold):
        check_greedy(table, dedup(table, id_column="id", threshold=threshold), threshold=threshold)

    def test_counts(self, table, result):
        counts = result.report["counts"]
        texts = table["text"].to_pylist()
        assert counts["documents"] == len(table) == counts["kept"] + counts["removed"]
        assert counts["removed"] == sum(counts[f"removed_{kind}"] for kind in KINDS)
        assert counts["kept"] == sum(row["kept"] for row in result.documents.to_pylist())
        assert counts["empty"] == sum(not token_strings(text) for text in texts)
        assert counts["tokens"] == sum(len(token_strings(text)) for text in texts)
        assert counts["text_bytes"] == sum(len(text.encode()) for text in texts)
        assert counts["representatives"] == len({tuple(token_strings(t)) for t in texts} - {()})
        assert counts["verified_pairs"] <= counts["candidate_pairs"]
        assert counts["null_text"] == counts["invalid_utf8"] == 0
        sizes = dict(result.report["group_sizes"])
        assert sum((size - 1) * number for size, number in sizes.items()) == counts["removed"]
        assert sum(sizes.values()) == counts["groups"]
        words = {}
        for row, text in zip(result.documents.to_pylist(), texts, strict=True):
            words.setdefault(row["group"], []).append(tuple(token_strings(text)))
        distinct = [(len(set(each)), len(each)) for each in words.values() if len(each) > 1]
        assert result.report["group_kinds"] == {
            "same_words": sum(number == 1 for number, _ in distinct),
            "different_words": sum(number == size for number, size in distinct),
            "mixed": sum(1 < number < size for number, size in distinct),
        }
        assert result.report["limits"] == {"max_partners": 64, "unlisted_pairs": 0, "all_counted": True}

    def test_the_result_shows_itself(self, table, result):
        counts = result.report["counts"]
        assert isinstance(result, Result)
        assert repr(result) == f"Result({len(table)} documents: {counts['kept']} kept, {counts['removed']} removed)"
        assert str(counts["kept"]) in result._repr_html_() and "<" in result._repr_html_()
        assert len(result.kept) == counts["kept"] and len(result.removed) == counts["removed"]
        assert json.loads(json.dumps(result.report)) == result.report

    def test_tables_carry_the_recipe(self, result):
        for artefact in (result.documents, result.pairs):
            assert Recipe.of(artefact.schema, "result") == result.recipe
        assert METADATA_KEY == b"neardup_gpu"


def changed(first):
    """Return a text of 60 words that begins at word `first`, and a near-duplicate of it."""
    words = list(itertools.islice(itertools.cycle(WORDS), first, first + 60))
    return " ".join(words), " ".join([*words[:-1], "end"])


KNOWN, _ = changed(0)
FIRST, NEAR = changed(40)
OTHER, OTHER_NEAR = changed(80)
GROUPED = {
    "nothing": ([], (0, 0, 0)),
    "no group": ([KNOWN, FIRST, OTHER], (0, 0, 0)),
    "blank and null texts": (["", "", None, None], (0, 0, 0)),
    "without words": (["?!", "?!", "..."], (1, 0, 0)),
    "written differently": ([FIRST, FIRST.upper(), FIRST + "."], (1, 0, 0)),
    "near": ([FIRST, NEAR, OTHER, OTHER_NEAR], (0, 2, 0)),
    "a copy of the kept one": ([FIRST, NEAR, FIRST], (0, 0, 1)),
    "a copy of a removed one": ([FIRST, NEAR, NEAR], (0, 0, 1)),
    "all": ([KNOWN, KNOWN, FIRST, OTHER, NEAR, OTHER_NEAR, OTHER, OTHER], (1, 1, 1)),
}
"""Texts, and their groups of the same words, of different words, and mixed ones."""


class TestKindsOfGroups:
    """`group_kinds` of the report, in memory, in tasks and for an index."""

    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    @pytest.mark.parametrize("case", GROUPED)
    def test_everywhere(self, case, cluster, tmp_path):
        texts, numbers = GROUPED[case]
        kinds = dict(zip(("same_words", "different_words", "mixed"), numbers, strict=True))
        source, recipe = pa.table({"text": pa.array(texts, pa.string())}), Recipe(cluster=cluster)
        assert flat(dedup, source, recipe=recipe).report["group_kinds"] == kinds
        assert in_tasks(tmp_path / "out", source, recipe=recipe)["group_kinds"] == kinds
        with Index.create(tmp_path / "index", method="exact") as index:
            index.add(source)
            assert index.decide(cluster=cluster).report["group_kinds"] == kinds

    @pytest.mark.parametrize(("only_against", "numbers"), [(False, (1, 1, 1)), (True, (1, 1, 0))])
    def test_groups_of_a_reference_set(self, only_against, numbers, tmp_path):
        known = pa.table({"text": [KNOWN, KNOWN, OTHER]})
        mine = pa.table({"text": [KNOWN, OTHER_NEAR, FIRST, FIRST, NEAR]})
        options = {"against": known, "only_against": only_against}
        kinds = dict(zip(("same_words", "different_words", "mixed"), numbers, strict=True))
        assert flat(dedup, mine, **options).report["group_kinds"] == kinds
        assert in_tasks(tmp_path / "out", mine, **options)["group_kinds"] == kinds

    def test_units_are_in_no_groups(self, tmp_path):
        source = pa.table({"text": [FIRST + "\n" + OTHER, FIRST]})
        kinds = {"same_words": 0, "different_words": 0, "mixed": 0}
        assert flat(dedup, source, unit="line").report["group_kinds"] == kinds
        assert in_tasks(tmp_path / "out", source, unit="line")["group_kinds"] == kinds


class TestTheSameBits:
    """Results are a function of the documents and the recipe alone."""

    @pytest.mark.parametrize("batch_bytes", [1, 700, 5000])
    def test_batches(self, table, result, batch_bytes):
        assert decisions(dedup(table, id_column="id", engine=Engine(batch_bytes=batch_bytes))) == decisions(result)

    @pytest.mark.parametrize("threads", [1, 2])
    def test_threads(self, table, result, threads):
        if threads > most_threads():
            pytest.skip("this machine has one processor")
        before = num_threads()
        assert decisions(dedup(table, id_column="id", engine=Engine(threads=threads))) == decisions(result)
        assert num_threads() == before

    def test_where_it_ran(self, table):
        report = dedup(table, id_column="id", engine="cpu").report
        assert (report["backend"], report["device"]) == ("cpu", None)

    def test_blocks_of_verification(self, table, result, monkeypatch):
        monkeypatch.setattr("neardup_gpu.engine.memory.HOST_BYTES", 8 * 500)
        assert decisions(dedup(table, id_column="id")) == decisions(result)

    @pytest.mark.parametrize("parts", [1, 4])
    def test_files(self, table, result, parts, tmp_path):
        bounds = np.linspace(0, len(table), parts + 1).astype(int)
        for i, (a, b) in enumerate(itertools.pairwise(bounds.tolist())):
            pq.write_table(table.slice(a, b - a), tmp_path / f"part-{i}.parquet", row_group_size=17)
        assert decisions(dedup(tmp_path, id_column="id")) == decisions(result)
        named = sorted(tmp_path.iterdir(), reverse=True)  # the order in which files are named changes nothing
        assert decisions(dedup(named, id_column="id")) == decisions(result)

    def test_output_changes_nothing(self, table, result, tmp_path):
        written = dedup(table, id_column="id", output=tmp_path / "out", writing=Writing(check=0))
        assert decisions(written) == decisions(result)
        stored = pq.read_table(tmp_path / "out" / "documents.parquet")
        assert stored.to_pylist() == result.documents.to_pylist()
        assert Recipe.of(stored.schema, "") == result.recipe
        assert pq.read_table(tmp_path / "out" / "pairs.parquet").to_pylist() == result.pairs.to_pylist()
        kept, expected = pq.read_table(tmp_path / "out" / "kept"), table.filter(result.documents["kept"])
        assert kept.schema == expected.schema
        assert kept.drop(["score"]).equals(expected.drop(["score"]))
        np.testing.assert_array_equal(kept["score"].to_numpy(), expected["score"].to_numpy())  # where NaN equals NaN
        report = json.loads((tmp_path / "out" / "report.json").read_text())
        assert report["counts"] == result.report["counts"]
        assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
            "documents.parquet",
            "kept",
            "pairs.parquet",
            "report.json",
        ]

    @pytest.mark.parametrize("filter_", ["2,3,1", "3,2,2"])
    def test_backends(self, filter_):
        small = corpus(families(6, seed=3, lengths=(3, 50, 90)))
        options = {"id_column": "id", "method": MinHash(filter=filter_), "threshold": 0.5}
        runs = [flat(dedup, small, engine=backend, **options) for backend in ("reference", "cpu")]
        assert decisions(runs[0]) == decisions(runs[1])
        assert [run.report["backend"] for run in runs] == ["reference", "cpu"]
        assert runs[0].report["counts"] == runs[1].report["counts"]
        assert runs[0].report["recall"] == runs[1].report["recall"]

    @pytest.mark.parametrize("keep", ["unique", "unique:desc"])
    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    def test_order_of_input_under_a_priority_without_ties(self, table, keep, cluster):
        shuffled = table.take(pa.array(np.random.default_rng(0).permutation(len(table))))
        runs = [dedup(t, id_column="id", recipe=Recipe(keep=keep, cluster=cluster)) for t in (table, shuffled)]
        assert by_id(runs[0]) == by_id(runs[1])
        assert runs[0].report["recall"] == runs[1].report["recall"]

    def test_another_seed_changes_nothing_where_all_pairs_are_found(self, table, result):
        other = dedup(table, id_column="id", recipe=Recipe(seed=99))
        check_greedy(table, other)
        assert decisions(other) == decisions(result)

    def test_another_seed_draws_other_candidates_of_the_same_truth(self, table):
        """By min-hash."""
        runs = [dedup(table, id_column="id", recipe=Recipe(method="minhash", seed=seed)) for seed in (1, 99)]
        for run in runs:
            check_greedy(table, run)
        assert runs[0].report["counts"]["candidate_pairs"] != runs[1].report["counts"]["candidate_pairs"]


def priority(table, keep):
    """Row numbers from the best to the worst, by the definition in design.md."""
    rows = range(len(table))
    if keep == "longest":
        return sorted(rows, key=lambda row: -len(token_strings(table["text"][row].as_py())))
    name, _, direction = keep.partition(":")
    values = [v.encode() if isinstance(v, str) else v for v in table[name].to_pylist()]
    have = [row for row in rows if values[row] is not None and values[row] == values[row]]
    have.sort(key=lambda row: values[row], reverse=False)
    if direction == "desc":
        have = sorted(have, key=lambda row: values[row], reverse=True)  # stable: ties stay in input order
    return have + [row for row in rows if row not in set(have)]


KEEP_RULES = ["longest", "date", "date:asc", "date:desc", "score", "score:desc", "unique:desc"]


@pytest.mark.parametrize("keep", KEEP_RULES)
def test_keep_rules(table, keep):
    run = dedup(table, id_column="id", keep=keep)
    check_greedy(table, run, priority(table, keep))
    assert run.recipe.keep == keep


def test_strings_sort_by_their_bytes():
    text = " ".join(WORDS[:60])
    table = pa.table({"id": [0, 1, 2, 3], "text": [text] * 4, "name": ["é", "z", "Z", "\U00010000"]})
    assert dedup(table, id_column="id", keep="name").kept["id"].to_pylist() == [2]
    assert dedup(table, id_column="id", keep="name:desc").kept["id"].to_pylist() == [3]
    coded = table.set_column(2, "name", table["name"].dictionary_encode())
    assert dedup(coded, id_column="id", keep="name:desc").kept["id"].to_pylist() == [3]


@pytest.mark.parametrize("value", [True, b"bytes", pa.scalar(2**63, pa.uint64()), pa.scalar(3, pa.timestamp("s"))])
def test_other_columns_have_an_order(value):
    text = " ".join(WORDS[:60])
    table = pa.table({"text": [text] * 2, "rank": pa.array([None, value])})
    assert dedup(table, keep="rank").kept["id"].to_pylist() == [1]


def test_components():
    """A chain whose ends do not resemble each other: greedy keeps both ends, components the first alone."""
    words = [f"w{i}" for i in range(140)]
    texts = [" ".join(words[i : i + 100]) for i in (0, 8, 16)]  # neighbours 88 of 104 shingles, ends 80 of 112
    table = pa.table({"id": ["a", "b", "c"], "text": texts})
    chain = dedup(table, id_column="id", recipe=Recipe(method=MinHash(recall=0.999), cluster="greedy"))
    assert [row["kept"] for row in chain.documents.to_pylist()] == [True, False, True]
    whole = dedup(table, id_column="id", recipe=Recipe(method=MinHash(recall=0.999), cluster="components"))
    assert whole.documents.to_pylist() == [
        {"id": "a", "kept": True, "duplicate_of": None, "kind": None, "resemblance": None, "group": "a"},
        {"id": "b", "kept": False, "duplicate_of": "a", "kind": "near", "resemblance": 88 / 104, "group": "a"},
        {"id": "c", "kept": False, "duplicate_of": "a", "kind": "near", "resemblance": None, "group": "a"},
    ]
    assert whole.report["counts"]["removed_unverified"] == 1
    assert chain.pairs.to_pylist() == whole.pairs.to_pylist()


def test_components_keep_the_first_of_each_component(table):
    run = dedup(table, id_column="id", recipe=Recipe(cluster="components"))
    ids = table["id"].to_pylist()
    group = {i: i for i in ids}

    def root(i):
        while group[i] != i:
            i = group[i]
        return i

    for a, b in zip(run.pairs["id_a"].to_pylist(), run.pairs["id_b"].to_pylist(), strict=True):
        first, second = sorted((root(a), root(b)), key=ids.index)
        group[second] = first
    assert run.documents["group"].to_pylist() == [root(i) for i in ids]
    assert run.documents["kept"].to_pylist() == [root(i) == i for i in ids]


class TestAgainst:
    def test_what_resembles_the_reference_goes(self, table):
        half = len(table) // 2
        reference, rest = table.slice(0, half), table.slice(half)
        run = dedup(rest, against=reference, id_column="id")
        whole = dedup(pa.concat_tables([reference, rest]), id_column="id")
        assert run.documents["id"].to_pylist() == rest["id"].to_pylist()
        known = {i: shingle_set(t) for i, t in zip(*[reference[c].to_pylist() for c in ("id", "text")], strict=True)}
        mine = {i: shingle_set(t) for i, t in zip(*[rest[c].to_pylist() for c in ("id", "text")], strict=True)}
        for row in run.documents.to_pylist():
            if row["in_reference"]:
                assert not row["kept"]
                assert row["resemblance"] == jaccard(mine[row["id"]], known[row["duplicate_of"]]) >= 0.8
            elif not row["kept"]:
                assert row["resemblance"] == jaccard(mine[row["id"]], mine[row["duplicate_of"]])
        pairs = {(p["id_a"], p["id_b"]) for p in run.pairs.to_pylist() if p["a_in_reference"]}
        assert pairs
        assert all(a in known and b in mine for a, b in pairs)
        # Documents of the input that resemble nothing in either set stay in both runs.
        assert run.report["counts"]["kept"] <= whole.report["counts"]["kept"]
        assert run.report["counts"]["reference_documents"] == half

    def test_the_reference_is_not_compared_with_itself_nor_removed(self):
        text = " ".join(WORDS[:80])
        reference = pa.table({"id": ["r1", "r2", "r3"], "text": [text, text, text + " more"]})
        run = dedup(pa.table({"id": ["r1", "x"], "text": [text + " more", "else"]}), against=reference, id_column="id")
        assert run.documents.to_pylist() == [
            {
                "id": "r1",
                "kept": False,
                "duplicate_of": "r3",
                "kind": "identical",
                "resemblance": 1.0,
                "group": "r3",
                "in_reference": True,
                "near_reference": "r3",
                "reference_resemblance": 1.0,
            },
            {
                "id": "x",
                "kept": True,
                "duplicate_of": None,
                "kind": None,
                "resemblance": None,
                "group": "x",
                "in_reference": False,
                "near_reference": None,
                "reference_resemblance": None,
            },
        ]
        assert {(p["id_a"], p["id_b"], p["a_in_reference"]) for p in run.pairs.to_pylist()} == {("r3", "r1", True)}

    def test_the_reference_survives_components(self):
        text = " ".join(WORDS[:80])
        reference = pa.table({"id": ["r1", "r2"], "text": [text, text + " more"]})
        run = dedup(
            pa.table({"id": ["x"], "text": [text + " less"]}),
            against=reference,
            id_column="id",
            recipe=Recipe(cluster="components"),
        )
        assert run.report["counts"] | {"documents": 1, "kept": 0, "removed": 1} == run.report["counts"]

    def test_empty_reference_and_empty_input(self, table, result):
        empty = table.slice(0, 0)
        run = dedup(table, against=empty, id_column="id")
        assert (
            run.documents.drop(["in_reference", "near_reference", "reference_resemblance"]).to_pylist()
            == result.documents.to_pylist()
        )
        run = dedup(empty, against=table, id_column="id")
        assert run.documents.schema.names == dedup(table, against=table, id_column="id").documents.schema.names
        assert len(run.documents) == 0 and run.report["counts"]["reference_documents"] == len(table)

    def test_ids_of_different_types(self, table):
        other = table.set_column(0, "id", table["id"].cast(pa.binary()))
        with pytest.raises(InputError, match="ids of the input are int64, ids of the reference set binary"):
            dedup(table.set_column(0, "id", pa.array(range(len(table)))), against=other, id_column="id")


class TestInput:
    @pytest.mark.parametrize(
        "kind", [pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string())]
    )
    def test_types_of_text(self, table, result, kind):
        column = table["text"].dictionary_encode() if pa.types.is_dictionary(kind) else table["text"].cast(kind)
        run = dedup(table.set_column(1, "text", column), id_column="id")
        assert decisions(run) == decisions(result)

    def test_slices_and_chunks(self, table, result):
        padded = pa.concat_tables([table.slice(0, 3), table.slice(0, 10), table.slice(10), table.slice(5, 2)])
        assert decisions(dedup(padded.slice(3, len(table)), id_column="id")) == decisions(result)

    def test_nulls_are_empty_and_counted(self):
        run = dedup(pa.table({"text": ["a b c", None, "", None, "a b c"]}))
        assert run.documents["kept"].to_pylist() == [True, True, True, True, False]
        counts = run.report["counts"]
        assert (counts["null_text"], counts["empty"], counts["removed_identical"]) == (2, 3, 1)

    def test_invalid_utf8_is_read_and_counted(self):
        texts = pa.array([b"caf\xc3 \xff", b"caf", b"caf\xc3, \xff", b"\xe2\x82"], pa.binary())
        run = dedup(pa.table({"text": texts}))
        assert run.documents["duplicate_of"].to_pylist() == [None, None, 0, None]
        assert run.report["counts"]["invalid_utf8"] == 6

    def test_no_documents(self, tmp_path):
        empty = pa.table({"text": pa.array([], pa.string())})
        result = dedup(empty, output=tmp_path / "out")
        assert result.warnings == ("the input holds no documents: check the path or the filter that it comes from",)
        assert result.report["counts"] == dict.fromkeys(result.report["counts"], 0)
        assert pq.read_table(tmp_path / "out/kept").equals(empty)
        for method in ("minhash", "simhash", "bottomk", "modm"):
            file = tmp_path / f"{method}.parquet"
            assert sketch(empty, output=file, method=method)["documents"] == len(pairs(file)) == 0
            sketch({"text": ["to be"]}, method=method, output=tmp_path / "one.parquet", overwrite=True)
            assert pq.read_schema(file).equals(pq.read_schema(tmp_path / "one.parquet"))

    def test_only_empty_documents(self):
        run = dedup(pa.table({"text": ["", None, "..."]}))
        assert run.documents["kept"].to_pylist() == [True] * 3
        assert len(run.pairs) == 0

    def test_ids_are_row_numbers_unless_named(self, table):
        run = dedup(table, text_columns="text")
        assert run.documents["id"].to_pylist() == list(range(len(table)))

    def test_several_text_columns(self):
        texts = [" ".join(WORDS[i : i + 40]) for i in (0, 50)]
        table = pa.table({"title": ["first", "second", "first"], "body": [texts[0], texts[0], texts[0]]})
        run = dedup(table, text_columns=["title", "body"], threshold=0.99)
        assert run.documents["duplicate_of"].to_pylist() == [None, None, 0]

    def test_a_million_one_word_documents(self):
        """No error and no quadratic time: of a thousand words, they have a thousand representatives."""
        words = pa.array([f"word{i}" for i in range(1000)])
        column = pa.DictionaryArray.from_arrays(pa.array(np.tile(np.arange(1000, dtype=np.int32), 1000)), words)
        run = dedup(pa.table({"text": column}), writing=Writing(check=0))
        assert run.report["counts"]["kept"] == run.report["counts"]["representatives"] == 1000
        assert run.documents["duplicate_of"].to_pylist()[-1] == 999

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"id_column": "date"}, InputError, "null|stands for"),
            ({"id_column": "missing"}, InputError, "no column 'missing'"),
            ({"text_columns": "missing"}, InputError, "no column 'missing'; it has id, text, date"),
            ({"text_columns": "score"}, InputError, "column 'score' holds double"),
            ({"keep": "missing"}, InputError, "no column 'missing'"),
            ({"keep": "missing:desc"}, InputError, "no column 'missing'"),
            ({"keep": "list"}, InputError, "keep list: column 'list' of type list<.*> has no order"),
            ({"threshold": 1.5}, ParameterError, r"threshold must be .*got 1.5"),
            ({"recipe": 5}, ArgumentTypeError, "recipe: 5; give a Recipe"),
            ({"cluster": "mean"}, ParameterError, "cluster 'mean'"),
            ({"engine": "tpu"}, ParameterError, "engine 'tpu' is not one of auto, reference, cpu, gpu"),
            ({"engine": Engine(threads=10_000)}, ParameterError, "threads must be .*got 10000"),
            ({"check": -1}, ParameterError, "check must be >= 0, got -1"),
        ],
    )
    def test_what_cannot_be(self, table, options, error, message, tmp_path):
        source = table.append_column("list", pa.array([[1]] * len(table)))
        with pytest.raises(error, match=message) as caught:
            flat(dedup, source, output=tmp_path / "out", **{"id_column": "id"} | options)
        assert isinstance(caught.value, NeardupError)
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    def test_repeated_ids(self, table):
        twice = pa.concat_tables([table, table.slice(3, 1)])
        with pytest.raises(InputError, match=r"input: id 'doc-3' stands for 2 documents .*; name a column"):
            dedup(twice, id_column="id")


class TestStreams:
    def test_without_output(self, table, result):
        stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))
        assert decisions(dedup(stream, id_column="id")) == decisions(result)

    def test_with_output(self, table, tmp_path):
        stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
        with pytest.raises(InputError, match="a stream cannot be read again to write the kept rows; pass a table"):
            dedup(stream, id_column="id", output=tmp_path / "out")
        assert list(tmp_path.iterdir()) == []


class TestOutput:
    def test_a_run_that_dies_while_it_writes_leaves_nothing(self, table, tmp_path):
        source, home = tmp_path / "in.parquet", tmp_path / "home"
        pq.write_table(table, source)
        home.mkdir()

        def interrupt(stage, done, total):
            if stage == "write":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            dedup(source, id_column="id", output=home / "out", progress=interrupt)
        assert list(home.iterdir()) == []

    def test_an_input_that_fails_in_the_second_pass_leaves_nothing(self, table, tmp_path):
        source, home = tmp_path / "in.parquet", tmp_path / "home"
        pq.write_table(table, source)
        home.mkdir()

        def truncate(stage, done, total):
            if stage == "write":
                source.write_bytes(source.read_bytes()[:1000])

        with pytest.raises((InputError, OutputError)) as error:
            dedup(source, id_column="id", output=home / "out", progress=truncate)
        assert "\n" not in str(error.value)
        assert list(home.iterdir()) == []

    def test_an_earlier_result_stays_when_a_run_dies(self, table, tmp_path):
        dedup(table, id_column="id", output=tmp_path / "out")
        before = (tmp_path / "out" / "report.json").read_bytes()

        def interrupt(stage, done, total):
            if stage == "write":
                raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            dedup(
                table.slice(0, 5),
                id_column="id",
                output=tmp_path / "out",
                progress=interrupt,
                writing=Writing(overwrite=True),
            )
        assert (tmp_path / "out" / "report.json").read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["out"]

    def test_overwrite(self, table, tmp_path):
        out = tmp_path / "out"
        out.mkdir()  # an empty folder is free
        dedup(table, id_column="id", output=out)
        with pytest.raises(OutputError, match="exists already; name another output"):
            dedup(table, id_column="id", output=out)
        dedup(table.slice(0, 5), id_column="id", output=out, writing=Writing(overwrite=True))
        assert len(pq.read_table(out / "documents.parquet")) == 5
        assert [p.name for p in tmp_path.iterdir()] == ["out"]

    def test_overwrite_spares_what_is_not_a_result(self, table, tmp_path):
        (tmp_path / "precious.txt").write_text("x")
        with pytest.raises(OutputError, match="holds other files than a result"):
            dedup(table, id_column="id", output=tmp_path, writing=Writing(overwrite=True))
        assert (tmp_path / "precious.txt").read_text() == "x"

    def test_an_output_that_cannot_be_made(self, table, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(OutputError, match=r"name an output|name another output"):
            dedup(table, id_column="id", output=tmp_path / "file" / "out")


class TestGiantBuckets:
    def test_identical_pages(self):
        """One representative stands for 20,000: no pair is ever a candidate."""
        page = " ".join(WORDS)
        run = dedup(pa.table({"text": [page] * 20_000}), writing=Writing(check=0))
        counts = run.report["counts"]
        assert (counts["kept"], counts["removed_identical"], counts["candidate_pairs"]) == (1, 19_999, 0)
        assert counts["representatives"] == 1
        assert len(run.pairs) == 19_999
        assert run.report["largest_groups"] == [{"id": 0, "size": 20_000}]

    @pytest.mark.parametrize("method", ["exact", "minhash"])
    def test_pages_of_one_template(self, method):
        """5,000 pages that resemble each other by 0.99 have 12.5 million pairs; only those that matter are made."""
        num = 5000
        generator = random.Random(5)
        words = generator.choices(WORDS, k=400)
        texts = [" ".join([*words, f"page{i}"]) for i in range(num)]
        run = dedup(pa.table({"text": texts}), method=method)
        counts, limits = run.report["counts"], run.report["limits"]
        assert counts["representatives"] == num
        assert (counts["kept"], counts["removed_near"]) == (1, num - 1)
        assert run.documents["duplicate_of"].to_pylist()[1:] == [0] * (num - 1)
        # Each page resembles all others: its first 64 partners are the first pages, of which one is kept. Min-hash
        # misses one pair in 1e15.
        if method == "minhash":
            assert theory.miss_probability(396 / 398, *run.recipe.method.filter) * 64 * num < 1e-9
        found = list(zip(run.pairs["id_a"].to_pylist(), run.pairs["id_b"].to_pylist(), strict=True))
        assert found == [(a, b) for a in range(64) for b in range(a + 1, num)]
        assert counts["verified_pairs"] == len(found) <= counts["candidate_pairs"] < 1.1 * len(found)
        # What is not listed was not looked for, and the report does not say that it was counted.
        assert limits["max_partners"] == 64 and not limits["all_counted"]
        assert 0 <= limits["unlisted_pairs"] <= num * (num - 1) // 2 - len(found)

    def test_all_pairs_of_one_template_are_listed_when_asked_for(self):
        texts = [" ".join([*WORDS[:100], f"page{i}"]) for i in range(200)]
        run = dedup(pa.table({"text": texts}), recipe=Recipe(max_partners=None))
        found = list(zip(run.pairs["id_a"].to_pylist(), run.pairs["id_b"].to_pylist(), strict=True))
        assert found == list(itertools.combinations(range(200), 2))
        assert run.report["limits"] == {"max_partners": None, "unlisted_pairs": 0, "all_counted": True}
        few = dedup(pa.table({"text": texts}), recipe=Recipe(max_partners=3))
        assert few.documents.to_pylist() == run.documents.to_pylist()
        found = list(zip(few.pairs["id_a"].to_pylist(), few.pairs["id_b"].to_pylist(), strict=True))
        assert found == [(a, b) for a in range(3) for b in range(a + 1, 200)]


@pytest.mark.parametrize(("method", "check"), [("exact", False), ("minhash", True)])
def test_progress_is_reported(table, method, check):
    """Recall is checked, unless told otherwise, where a pair may be missed."""
    calls = []
    dedup(table, id_column="id", method=method, progress=lambda *call: calls.append(call))
    stages = list(dict.fromkeys(call[0] for call in calls))
    joined = ["index", "join"] if method == "exact" else []
    assert stages == ["sketch", "collide", *joined, "verify", "decide", *(["check"] if check else [])]
    assert max(done for stage, done, _ in calls if stage == "sketch") == len(table)
    assert all(total is None or 0 <= done <= total for _, done, total in calls)


@pytest.mark.parametrize("shingling", ["bag", "circular"])
@pytest.mark.parametrize("w", [1, 3])
def test_other_shinglings_verify_by_their_own_sets(table, shingling, w):
    recipe = Recipe(threshold=0.8).with_(shingling=shingling, shingle_size=w)
    run = dedup(table, id_column="id", recipe=recipe)

    def shingles(text):
        tokens = token_strings(text)
        if shingling == "circular":
            return {tuple(tokens[(i + j) % len(tokens)] for j in range(w)) for i in range(len(tokens))}
        seen, found = {}, set()
        for i in range(max(1, len(tokens) - w + 1)):
            window = tuple(tokens[i : i + w])
            seen[window] = seen.get(window, 0) + 1
            found.add((window, seen[window]))
        return found

    texts = dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
    assert len(run.pairs) > 30
    for pair in run.pairs.to_pylist():
        assert pair["resemblance"] == jaccard(shingles(texts[pair["id_a"]]), shingles(texts[pair["id_b"]]))
