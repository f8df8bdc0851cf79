"""Simhashes from documents to decisions: the whole job, files of simhashes, document frequencies, the command line.

The witness computes simhashes and decisions from the texts with Python's integers and sets; only tokens' fingerprints
are the package's, by its reference.
"""

import itertools
import json
import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from flat import flat
from grids import ALL
from versions import corpus, decisions, families
from witnesses import greedy, jaccard, shingle_set

from neardup_gpu import Engine, Index, Recipe, Shingles, SimHash, Workers, cli, dedup
from neardup_gpu.arrow_versions import has_null_lists
from neardup_gpu.definitions import METADATA_KEY, mix64
from neardup_gpu.errors import InputError, OutputError, ParameterError, RecipeMismatchError
from neardup_gpu.recipe import choose_recipe
from neardup_gpu.sketches import Frequencies, pairs, sketch
from neardup_gpu.stages import Ragged, shingle, tokenize

STEP = 0x9E3779B97F4A7C15


def features_of(texts, recipe):
    """Each text's features with repeats, as lists of integers."""
    tokens = tokenize([text or "" for text in texts], recipe, backend="reference")
    rows = tokens if recipe.method.elements == "tokens" else shingle(tokens, recipe, backend="reference")
    return [rows[i].tolist() for i in range(len(rows))]


def floor_log(n):
    """floor(256 log2 n): the length in bits of n**256, less 1."""
    return (n**256).bit_length() - 1


def tie_of(hashes):
    """The word that decides the tied bits of a document, from the hashes of its features."""
    return mix64(min(mix64((h + STEP) % 2**64) for h in hashes))


def simhashes_of(rows, recipe):
    """Each row's simhash as one integer, the second word above the first; None without features."""
    holders = Counter(f for row in rows for f in set(row))
    num = sum(1 for row in rows if row)
    weigh = {
        "tf": lambda f, tf: tf,
        "log": lambda f, tf: 256 + floor_log(tf),
        "tfidf": lambda f, tf: tf * (256 + floor_log(num + 1) - floor_log(holders[f] + 1)),
    }[recipe.method.weighting]
    found = []
    for row in rows:
        totals = [0] * recipe.method.bits
        for f, tf in Counter(row).items():
            h = mix64(f) | mix64((f + STEP) % 2**64) << 64
            for i in range(recipe.method.bits):
                totals[i] += weigh(f, tf) * (1 if h >> i & 1 else -1)
        if not row:
            found.append(None)
            continue
        tie = tie_of([mix64(f) for f in row]) | tie_of([mix64((f + STEP) % 2**64) for f in row]) << 64
        bits = (tie >> i & 1 if total == 0 else total > 0 for i, total in enumerate(totals))
        found.append(sum(bit << i for i, bit in enumerate(bits)))
    return found


def witness(table, recipe, order=None):
    """What a greedy run decides: {id: (duplicate_of, resemblance, distance)} of what goes, and all near pairs."""
    ids, texts = table["id"].to_pylist(), table["text"].to_pylist()
    rows = features_of(texts, recipe)
    simhash = simhashes_of(rows, recipe)
    order = [row for row in (range(len(table)) if order is None else order) if simhash[row] is not None]
    tokens = features_of(texts, Recipe(method=SimHash()))
    sets = {row: shingle_set(texts[row] or "") for row in order}

    def distance(a, b):
        return (simhash[a] ^ simhash[b]).bit_count()

    def resemblance(a, b):
        if recipe.threshold is None:
            return 1.0 if tokens[a] == tokens[b] else None
        return jaccard(sets[a], sets[b])

    near = [
        (i, j)
        for i, j in itertools.combinations(range(len(order)), 2)
        if distance(order[i], order[j]) <= recipe.method.radius
        and (recipe.threshold is None or resemblance(order[i], order[j]) >= recipe.threshold)
    ]
    stay = greedy(len(order), near)
    gone = {}
    for i, row in enumerate(order):
        if not stay[i]:
            mates = [a + b - i for a, b in near if i in (a, b) and stay[a + b - i]]
            if recipe.threshold is None:
                best = min(mates, key=lambda j: (distance(row, order[j]), j))
            else:
                best = min(mates, key=lambda j: (-resemblance(row, order[j]), j))
            keeper = order[best]
            gone[ids[row]] = ids[keeper], resemblance(row, keeper), distance(row, keeper)
    return gone, {(ids[order[i]], ids[order[j]]): distance(order[i], order[j]) for i, j in near}


def check(table, result, order=None):
    """A run's decisions are the witness's, and its pairs are near and complete, except those of exact duplicates."""
    gone, near = witness(table, result.recipe, order)
    rows = result.documents.to_pylist()
    assert [row["id"] for row in rows] == table["id"].to_pylist()
    assert {
        row["id"]: (row["duplicate_of"], row["resemblance"], row["distance"]) for row in rows if not row["kept"]
    } == gone
    for row in rows:
        assert row["group"] == (row["id"] if row["kept"] else row["duplicate_of"])
        if row["kept"]:
            assert (row["duplicate_of"], row["resemblance"], row["distance"]) == (None, None, None)
    pairs = result.pairs.to_pylist()
    found = {(pair["id_a"], pair["id_b"]): pair["distance"] for pair in pairs}
    assert len(found) == len(pairs)
    assert found.items() <= near.items()
    tokens = dict(
        zip(table["id"].to_pylist(), features_of(table["text"].to_pylist(), Recipe(method=SimHash())), strict=True)
    )
    copies = {b for a, b in found if tokens[a] == tokens[b]}
    assert all(a in copies or b in copies for a, b in near.keys() - found.keys())


RECIPES = {
    "usual": Recipe(method=SimHash()),
    "plain": Recipe(method=SimHash(weighting="tf")),
    "wide": Recipe(method=SimHash(radius=8, weighting="log")),
    "shingles": Recipe(method=SimHash(radius=6, elements="shingles"), shingles=Shingles(2, "bag")),
    "tfidf": Recipe(method=SimHash(radius=6, weighting="tfidf")),
    "long": Recipe(method=SimHash(radius=9, bits=128, weighting="log")),
    "exact": Recipe(method=SimHash(radius=0)),
    "verified": Recipe(method=SimHash(radius=8), threshold=0.7),
    "verified tfidf": Recipe(method=SimHash(radius=10, weighting="tfidf"), threshold=0.5),
    "verified long": Recipe(method=SimHash(radius=12, bits=128), threshold=0.8),
}


@pytest.fixture(scope="module")
def table():
    return corpus(families(num=25, seed=3, lengths=(1, 3, 8, 60, 150)))


def run(table, recipe, **options):
    return flat(dedup, table, id_column="id", recipe=recipe, **options)


class TestDecisions:
    @pytest.mark.parametrize("name", RECIPES)
    def test_as_the_witness_decides(self, table, name):
        result = run(table, RECIPES[name])
        check(table, result)
        assert result.report["counts"]["removed"] > 10

    @pytest.mark.parametrize("name", ["wide", "verified tfidf"])
    @pytest.mark.parametrize("keep", ["longest", "unique:desc"])
    def test_priority(self, table, name, keep):
        result = run(table, RECIPES[name].with_(keep=keep))
        if keep == "longest":
            sizes = [len(row) for row in features_of(table["text"].to_pylist(), Recipe(method=SimHash()))]
            order = sorted(range(len(table)), key=lambda row: (-sizes[row], row))
        else:
            unique = table["unique"].to_pylist()
            order = sorted(range(len(table)), key=lambda row: -unique[row])
        check(table, result, order)

    @pytest.mark.parametrize("name", ["plain", "tfidf", "verified long"])
    @pytest.mark.parametrize("options", [{"batch_bytes": 300}, {"engine": Engine(threads=1)}, {"engine": "reference"}])
    def test_the_same_bits(self, table, name, options):
        assert decisions(run(table, RECIPES[name], **options)) == decisions(run(table, RECIPES[name]))

    def test_tokens_are_weighed_in_parts(self, table, monkeypatch):
        expected = decisions(run(table, RECIPES["tfidf"]))
        monkeypatch.setattr("neardup_gpu.engine.memory.HOST_BYTES", 8 * 100)
        assert decisions(run(table, RECIPES["tfidf"])) == expected

    @pytest.mark.parametrize("name", ["wide", "verified"])
    def test_components(self, table, name):
        result = run(table, RECIPES[name].with_(cluster="components"))
        ids = table["id"].to_pylist()
        _, near = witness(table, result.recipe)
        group = {i: i for i in ids}

        def root(i):
            while group[i] != i:
                i = group[i]
            return i

        for a, b in near:
            first, second = sorted((root(a), root(b)), key=ids.index)
            group[second] = first
        assert result.documents["group"].to_pylist() == [root(i) for i in ids]

    @pytest.mark.parametrize("name", ["wide", "tfidf", "verified"])
    def test_against_a_reference_set(self, table, name):
        """Greedy over the reference set, all of which stays, and the rest."""
        half = len(table) // 2
        reference, rest = table.slice(0, half), table.slice(half)
        result = run(rest, RECIPES[name], against=reference)
        _, near = witness(table, result.recipe)
        rank = {id: row for row, id in enumerate(table["id"].to_pylist())}
        stay = set(reference["id"].to_pylist())
        for id in rest["id"].to_pylist():
            if not any(b == id and a in stay for a, b in near):
                stay.add(id)
        rows = result.documents.to_pylist()
        assert {row["id"] for row in rows if row["kept"]} == stay - set(reference["id"].to_pylist())
        for row in rows:
            if not row["kept"]:
                ends = tuple(sorted((row["id"], row["duplicate_of"]), key=rank.__getitem__))
                assert near[ends] == row["distance"]
                assert row["in_reference"] == (rank[row["duplicate_of"]] < half)
        assert any(row["in_reference"] for row in rows)

    def test_a_crowd_of_one_simhash(self):
        """700 orders of the same words have one simhash: one stays, and the pairs that buckets leave out are counted.

        Verified, all stay, and nothing is left out.
        """
        words = [" ".join(order) for order in itertools.islice(itertools.permutations("abcdefg"), 700)]
        crowd = pa.table({"id": list(range(700)), "text": words})
        found = run(crowd, Recipe(method=SimHash(bucket_limit=10, bucket_probe=2)))
        assert found.documents["duplicate_of"].to_pylist() == [None, *[0] * 699]
        assert found.documents["distance"].to_pylist() == [None, *[0] * 699]
        assert found.documents["resemblance"].null_count == 700
        limits = found.report["limits"]
        assert limits["large_buckets"] > 0
        assert len(found.pairs) + limits["uncompared_pairs"] / limits["large_buckets"] == 700 * 699 / 2
        verified = run(crowd, Recipe(method=SimHash(bucket_limit=10, bucket_probe=2), threshold=0.9))
        assert verified.report["counts"]["kept"] == 700
        assert verified.report["limits"] == {"max_partners": 64, "unlisted_pairs": 0, "all_counted": True}

    def test_documents_of_equal_simhash_and_different_words_are_all_paired(self, tmp_path, caplog):
        """By the job, by tasks and by an index: three orders of the same words, a copy of one, and a near text."""
        order = ["to", "be", "or", "not", "that", "is", "the", "question"]
        texts = [
            " ".join(order * 6),
            " ".join(order[::-1] * 6),
            " ".join(order[::-1] * 6),
            " ".join(order[3:] * 6 + order[:3] * 6),
            " ".join([*order * 6, "indeed"]),
        ]
        table = pa.table({"id": list("abcde"), "text": texts})
        recipe = Recipe(method=SimHash(radius=20))
        found = run(table, recipe)
        assert found.report["counts"]["representatives"] == 4
        assert found.report["limits"]["uncompared_pairs"] == 0
        distances = {(pair["id_a"], pair["id_b"]): pair["distance"] for pair in found.pairs.to_pylist()}
        representatives = "abde"
        assert distances.keys() == {("b", "c"), *itertools.combinations(representatives, 2)}
        assert [distances[pair] for pair in (("a", "b"), ("a", "d"), ("b", "d"))] == [0, 0, 0]
        resemblances = {(pair["id_a"], pair["id_b"]): pair["resemblance"] for pair in found.pairs.to_pylist()}
        assert {pair for pair, value in resemblances.items() if value == 1} == {("b", "c")}
        pq.write_table(table, tmp_path / "in.parquet")
        tasks = Workers(work_dir=str(tmp_path / "work"), number=1)
        dedup(tmp_path / "in.parquet", output=tmp_path / "out", workers=tasks, id_column="id", recipe=recipe)
        in_tasks = pq.read_table(tmp_path / "out" / "pairs")
        assert in_tasks.to_pylist() == found.pairs.to_pylist()
        with Index.create(tmp_path / "index", recipe=recipe, engine="cpu") as index:
            index.add(table, id_column="id")
            of_index = index.decide().pairs  # an index knows no texts, so its kinds differ
            assert of_index.drop("kind").to_pylist() == found.pairs.drop("kind").to_pylist()
        sketch(table, tmp_path / "sketches.parquet", id_column="id", recipe=recipe)
        assert pairs(tmp_path / "sketches.parquet").select(["id_a", "id_b"]).to_pylist() == [
            {"id_a": "a", "id_b": other} for other in "bcde"
        ]
        assert "6 further pairs are not listed: documents with equal sketches are paired with the first" in caplog.text

    def test_crowds_are_limited_and_counted_unless_they_are_verified(self):
        """Pages of one template, of near simhashes: the limit leaves pairs out; verified, every near pair is listed."""
        words = [f"t{i}" for i in range(60)]
        texts = [" ".join([*words, *(f"page{i}x{j}" for j in range(6))]) for i in range(200)]
        pages, method = pa.table({"id": list(range(200)), "text": texts}), SimHash(weighting="tf", radius=3)
        limited = method.with_(bucket_limit=10, bucket_probe=2)
        found = run(pages, Recipe(method=limited))
        simhashes = simhashes_of(features_of(texts, found.recipe), found.recipe)
        assert len(set(simhashes)) < len(simhashes)
        expected = limited.collide(np.array(simhashes, np.uint64))
        assert found.report["counts"]["representatives"] == len(simhashes)
        assert found.report["counts"]["candidate_pairs"] == len(expected.pairs)
        assert found.report["limits"] == {
            "bucket_limit": 10,
            "bucket_probe": 2,
            "large_buckets": expected.large_buckets,
            "uncompared_pairs": expected.uncompared_pairs,
        }
        near = sum((a ^ b).bit_count() <= 3 for a, b in itertools.combinations(simhashes, 2))
        assert 0 < near - len(expected.pairs) <= expected.uncompared_pairs

        verified = run(pages, Recipe(method=limited, threshold=0.7, max_partners=None))
        gone, near = witness(pages, verified.recipe)
        assert {row["id"] for row in verified.removed.to_pylist()} == gone.keys()
        listed = {(pair["id_a"], pair["id_b"]): pair["distance"] for pair in verified.pairs.to_pylist()}
        assert listed == near and len(near) > 1000
        assert verified.report["limits"] == {"max_partners": None, "unlisted_pairs": 0, "all_counted": True}

    @pytest.mark.parametrize("bits", [64, 128])
    def test_documents_in_large_buckets_are_crowded(self, bits):
        method = SimHash(bits=bits, bucket_limit=10, bucket_probe=2)
        words = np.random.default_rng(4).integers(0, 2**64, (2000, 2), np.uint64)
        words[:30] = 7
        keys, present = words if bits == 128 else words[:, 0].copy(), np.arange(2000) != 3
        crowded = method.collide(keys, present=present).crowded
        assert crowded.shape == (2000,) and not crowded[3]
        assert crowded[:30].sum() == 29
        assert not method.with_(bucket_limit=2000).collide(keys, present=present).crowded.any()


class TestFrequencies:
    def test_counted_ones_are_kept_with_the_result(self, table, tmp_path):
        result = run(table, RECIPES["tfidf"], output=tmp_path / "out")
        rows = features_of(table["text"].to_pylist(), Recipe(method=SimHash()))
        holders = Counter(f for row in rows for f in set(row))
        frequencies = result.frequencies
        assert dict(zip(frequencies.tokens.tolist(), frequencies.counts.tolist(), strict=True)) == holders
        assert (np.diff(frequencies.tokens.astype(object)) > 0).all()
        assert frequencies.num_documents == sum(1 for row in rows if row)
        assert result.recipe.method.frequencies == frequencies.digest
        tokens = tokenize([text or "" for text in table["text"].to_pylist()], result.recipe)
        assert Frequencies.of(tokens, seed=result.recipe.seed).digest == frequencies.digest
        loaded = Frequencies.load(tmp_path / "out" / "frequencies.parquet")
        assert loaded.digest == frequencies.digest and len(loaded) == len(holders)
        again = run(table, RECIPES["tfidf"], frequencies=tmp_path / "out" / "frequencies.parquet")
        assert decisions(again) == decisions(result)
        assert again.recipe == result.recipe

    def test_of_other_documents(self, table):
        """Tokens that they lack weigh most: log2((N + 1) / 1)."""
        frequencies = run(table, RECIPES["tfidf"]).frequencies
        found = frequencies.weigh(np.array([frequencies.tokens[0], frequencies.tokens[0] + np.uint64(1)], np.uint64))
        n = frequencies.num_documents
        seen = 256 + floor_log(n + 1) - floor_log(int(frequencies.counts[0]) + 1)
        assert found.tolist() == [seen, 256 + floor_log(n + 1)]

    def test_digest_depends_on_everything(self):
        tokens, counts = np.array([3, 9], np.uint64), np.array([1, 2])
        digests = {
            Frequencies(tokens, counts, 5, 1).digest,
            Frequencies(tokens, counts, 6, 1).digest,
            Frequencies(tokens, counts, 5, 2).digest,
            Frequencies(tokens, counts[::-1], 5, 1).digest,
            Frequencies(tokens + np.uint64(1), counts, 5, 1).digest,
        }
        assert len(digests) == 5

    def test_refused(self, table, tmp_path):
        recipe = RECIPES["tfidf"]
        frequencies = run(table, recipe).frequencies
        frequencies.save(tmp_path / "f.parquet")
        with pytest.raises(OutputError, match="exists already"):
            frequencies.save(tmp_path / "f.parquet")
        with pytest.raises(RecipeMismatchError, match="seed = 1, but 2 is needed"):
            run(table, recipe.with_(seed=2), frequencies=tmp_path / "f.parquet")
        with pytest.raises(ParameterError, match="made with the document frequencies 00"):
            run(table, recipe.with_(frequencies="0" * 32))
        with pytest.raises(ParameterError, match="weighting 'log' takes no document frequencies; 'tfidf' does"):
            SimHash(frequencies=frequencies)
        with pytest.raises(ParameterError, match="frequencies is not a setting of a recipe whose method is exact"):
            Recipe().with_(frequencies=frequencies)
        one = Ragged.from_rows([[1]], np.uint64)
        with pytest.raises(ParameterError, match="needs them"):
            recipe.method.sketch(one, seed=recipe.seed)
        with pytest.raises(ParameterError, match="only the weighting"):
            Recipe(method=SimHash()).method.sketch(one, seed=1, statistics=frequencies)
        with pytest.raises(RecipeMismatchError, match="digest"):
            recipe.with_(frequencies="0" * 32).method.sketch(one, seed=1, statistics=frequencies)
        changed = pq.read_table(tmp_path / "f.parquet")
        pq.write_table(changed.slice(1), tmp_path / "g.parquet")
        with pytest.raises(InputError, match="has changed"):
            Frequencies.load(tmp_path / "g.parquet")
        with pytest.raises(InputError, match="no such file"):
            Frequencies.load(tmp_path / "h.parquet")
        sketch(table, tmp_path / "s.parquet", id_column="id", method="simhash")
        with pytest.raises(InputError, match="no document frequencies"):
            Frequencies.load(tmp_path / "s.parquet")


class TestFiles:
    @pytest.mark.parametrize("name", ["plain", "tfidf", "long", "shingles"])
    def test_columns(self, table, name, tmp_path):
        recipe = RECIPES[name]
        counts = sketch(table, tmp_path / "s.parquet", id_column="id", recipe=recipe)
        stored = pq.read_table(tmp_path / "s.parquet")
        sizes = ["num_shingles"] if name == "shingles" else []
        assert stored.column_names == ["id", "num_tokens", *sizes, "simhash"]
        rows = features_of(table["text"].to_pylist(), recipe)
        expected = simhashes_of(rows, recipe)
        if recipe.method.bits == 128:
            words = [None if s is None else [s % 2**64, s >> 64] for s in expected]
            pair = pa.list_(pa.uint64(), 2) if has_null_lists() else pa.large_list(pa.uint64())
            assert stored["simhash"].type == pair
        else:
            words = expected
            assert stored["simhash"].type == pa.uint64()
        assert stored["simhash"].to_pylist() == words
        assert None in words
        found = Recipe.of(stored.schema, "s")
        assert found.with_(frequencies=None) == recipe
        assert counts["recipe"] == found.describe()
        assert counts["empty"] == words.count(None)
        has_table = (tmp_path / "s.frequencies.parquet").exists()
        assert has_table == (name == "tfidf") == ("frequencies" in counts)
        if has_table:
            assert Frequencies.load(tmp_path / "s.frequencies.parquet").digest == found.method.frequencies

    def test_frequencies_make_files_that_meet(self, table, tmp_path):
        half = len(table) // 2
        recipe = RECIPES["tfidf"]
        sketch(table, tmp_path / "all.parquet", id_column="id", recipe=recipe)
        options = {"recipe": recipe, "frequencies": tmp_path / "all.frequencies.parquet"}
        flat(sketch, table.slice(half), tmp_path / "half.parquet", id_column="id", **options)
        assert not (tmp_path / "half.frequencies.parquet").exists()
        whole, part = pq.read_table(tmp_path / "all.parquet"), pq.read_table(tmp_path / "half.parquet")
        assert part["simhash"].to_pylist() == whole["simhash"].to_pylist()[half:]
        mine, theirs = (Recipe.of(each.schema, "") for each in (whole, part))
        mine.check_sketches(theirs, "half")
        with pytest.raises(RecipeMismatchError, match="weighting = log,"):
            mine.check_sketches(Recipe(method=SimHash()), "other")
        with pytest.raises(RecipeMismatchError, match="method = minhash"):
            mine.check_sketches(Recipe(method="minhash"), "other")

    def test_nothing_is_half_written(self, table, tmp_path):
        (tmp_path / "s.frequencies.parquet").write_text("mine")
        with pytest.raises(OutputError, match="frequencies"):
            sketch(table, tmp_path / "s.parquet", id_column="id", recipe=RECIPES["tfidf"])
        assert [path.name for path in tmp_path.iterdir()] == ["s.frequencies.parquet"]

    @pytest.mark.parametrize("name", ["wide", "long", "tfidf"])
    def test_their_pairs_are_those_of_a_job(self, table, name, tmp_path):
        """With the distance and, from it, the cosine of weights: one estimate and interval for each distance.

        Of documents with one simhash the first one stands for all.
        """
        recipe = RECIPES[name]
        sketch(table, tmp_path / "s.parquet", id_column="id", recipe=recipe)
        found = pairs(tmp_path / "s.parquet").to_pylist()
        bits = recipe.method.bits
        for pair in found:
            assert math.isclose(pair["cosine"], math.cos(math.pi * pair["distance"] / bits), abs_tol=1e-12)
            assert pair["low"] <= pair["cosine"] <= pair["high"]
        near = {(pair["id_a"], pair["id_b"]): pair["distance"] for pair in found}
        ids, simhashes = (pq.read_table(tmp_path / "s.parquet")[name].to_pylist() for name in ("id", "simhash"))
        present = [row for row in range(len(ids)) if simhashes[row] is not None]
        stands_for = {ids[row]: simhashes.index(simhashes[row]) for row in present}
        expected = {}
        for pair in run(table, recipe, check=0).pairs.to_pylist():
            a, b = sorted((stands_for[pair["id_a"]], stands_for[pair["id_b"]]))
            if a < b:
                expected[ids[a], ids[b]] = pair["distance"]
        expected |= {(ids[stands_for[ids[row]]], ids[row]): 0 for row in present if stands_for[ids[row]] < row}
        assert near == expected
        assert len(near) == len(found) > 10


SHARES = [
    ("bills_116_small", 3, (1402, "99.7%", "70.5%")),
    ("bills_116_small", 10, (8491, "88.0%", "23.1%")),
    ("manpages", 3, (4328, "96.0%", "53.2%")),
]


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "radius", "shares"),
    SHARES if ALL else SHARES[:1],
)
def test_how_many_intervals_hold_the_cosine(name, radius, shares, corpora, tmp_path):
    """The shares of docs/concepts/simhash.md, counted over all pairs that are listed: nothing is sampled."""
    table = pq.read_table(f"{corpora}/{name}.parquet", columns=["id", "text"])
    recipe = Recipe(method=SimHash(radius=radius))
    sketch(table, tmp_path / "s.parquet", id_column="id", recipe=recipe)
    found = pairs(tmp_path / "s.parquet")
    row = {id: number for number, id in enumerate(table["id"].to_pylist())}
    tokens = tokenize(table["text"].to_pylist(), recipe)
    rows = sorted({row[id] for side in ("id_a", "id_b") for id in found[side].to_pylist()})
    weights = {i: {f: 1 + math.log2(n) for f, n in Counter(tokens[i].tolist()).items()} for i in rows}
    norms = {i: math.sqrt(sum(w * w for w in of.values())) for i, of in weights.items()}
    sets = {i: set(shingle(Ragged.from_rows([tokens[i]], np.uint64), recipe).values.tolist()) for i in rows}
    of_cosine = of_resemblance = 0
    for pair in found.to_pylist():
        a, b = row[pair["id_a"]], row[pair["id_b"]]
        cosine = sum(w * weights[b].get(f, 0) for f, w in weights[a].items()) / norms[a] / norms[b]
        resemblance = len(sets[a] & sets[b]) / len(sets[a] | sets[b]) if sets[a] | sets[b] else 1
        of_cosine += pair["low"] - 1e-9 <= cosine <= pair["high"] + 1e-9
        of_resemblance += pair["low"] - 1e-9 <= resemblance <= pair["high"] + 1e-9
    assert (len(found), *(f"{each / len(found):.1%}" for each in (of_cosine, of_resemblance))) == shares


class TestRecipes:
    def test_round_trip(self):
        for recipe in RECIPES.values():
            assert Recipe.from_json(recipe.to_json()) == recipe
            schema = pa.schema([], {METADATA_KEY: recipe.to_json().encode()})
            assert Recipe.of(schema, "x") == recipe

    def test_shingles_depend_on_their_size_tokens_do_not(self):
        Recipe(method=SimHash(), shingles=Shingles(3)).check_sketches(
            Recipe(method=SimHash(), shingles=Shingles(5)), "x"
        )
        with pytest.raises(RecipeMismatchError, match="shingle_size = 5"):
            Recipe(method=SimHash(elements="shingles"), shingles=Shingles(3)).check_sketches(
                Recipe(method=SimHash(elements="shingles"), shingles=Shingles(5)), "x"
            )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"radius": 33}, "radius must be between 0 and 32, got 33"),
            ({"radius": -1}, "radius must be between 0 and 32, got -1"),
            ({"bits": 32}, "bits 32"),
            ({"elements": "words"}, "elements 'words'"),
            ({"weighting": "idf"}, "weighting 'idf'"),
            ({"weighting": "tfidf", "elements": "shingles"}, "for tokens"),
            ({"frequencies": "00"}, "no document frequencies"),
            ({"threshold": 0.0}, "threshold must be .*got 0"),
        ],
    )
    def test_impossible_ones(self, change, message):
        with pytest.raises(ParameterError, match=message):
            Recipe(method=SimHash()).with_(**change)

    def test_choice(self):
        made = Recipe(method=SimHash(radius=5), threshold=0.9)
        assert choose_recipe(None, "exact", method=SimHash(radius=5), threshold=0.9) == made
        simhash = choose_recipe(None, "exact", method="simhash")
        assert simhash == Recipe(method=SimHash()) == Recipe(method="simhash")
        assert choose_recipe(None, "exact", method="exact") == Recipe()
        assert choose_recipe(None, "minhash", method="minhash") == Recipe(method="minhash")
        for usual in ("exact", "minhash"):  # as a caller's own default, it is not given beside the recipe
            assert choose_recipe(made, usual, method=usual) is made
        with pytest.raises(
            ParameterError,
            match="'md5' is not one of exact, containment, identical, minhash, bottomk, modm, simhash",
        ):
            choose_recipe(None, "exact", method="md5")
        for other in ({"radius": 3}, {"recall": 0.9}):
            method = "minhash" if "radius" in other else "simhash"
            with pytest.raises(
                ParameterError, match=f"{min(other)} is not a setting of a recipe whose method is {method}"
            ):
                Recipe(method=method).with_(**other)
        with pytest.raises(ParameterError, match="recipe and method: the recipe holds that"):
            dedup(corpus(["a"]), recipe=Recipe(method=SimHash()), method=SimHash(radius=3))


class TestCheckOfRecall:
    def test_only_what_is_verified_is_checked(self, table):
        assert run(table, RECIPES["wide"]).report["recall"] == {"expected": None, "sampled": None}

    def test_of_all_documents_it_is_the_share_of_pairs_found(self, table):
        """With every document sampled: for each with duplicates the share of its pairs that the radius finds."""
        recipe = Recipe(method=SimHash(radius=4), threshold=0.5)
        sampled = run(table, recipe, check=10_000).report["recall"]["sampled"]
        texts = [text or "" for text in table["text"].to_pylist()]
        by_tokens = dict(zip(map(tuple, features_of(texts, recipe)), texts, strict=True))
        distinct = list(by_tokens.values())
        sets = [shingle_set(text) for text in distinct]
        simhash = simhashes_of(features_of(distinct, recipe), recipe)
        shares = []
        for i in range(len(sets)):
            mates = [j for j in range(len(sets)) if j != i and sets[i] and jaccard(sets[i], sets[j]) >= 0.5]
            if mates:
                shares.append(sum((simhash[i] ^ simhash[j]).bit_count() <= 4 for j in mates) / len(mates))
        assert sampled["with_duplicates"] == len(shares)
        assert math.isclose(sampled["recall"], sum(shares) / len(shares), rel_tol=1e-12)
        assert sampled["recall"] < 1
        assert sampled["recall"] <= sampled["one_removed"]["share"] <= 1


class TestCommand:
    @pytest.fixture
    def parquet(self, table, tmp_path):
        pq.write_table(table, tmp_path / "in.parquet")
        return tmp_path / "in.parquet"

    def call(self, capsys, *arguments):
        status = cli.main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    def test_dedup(self, parquet, table, tmp_path, capsys):
        out = tmp_path / "out"
        command = ["dedup", parquet, "--id-column", "id", "--method", "simhash", "--radius", "8", "--weighting", "log"]
        status, said, _ = self.call(capsys, *command, "-o", out)
        assert status == 0
        assert "8 of 64 bits (tokens, log)" in said and "by their simhash alone" in said
        stored = pq.read_table(out / "documents.parquet")
        assert stored.drop(["file", "row"]).to_pylist() == run(table, RECIPES["wide"]).documents.to_pylist()
        assert json.loads((out / "report.json").read_text())["recipe"]["method"] == "simhash"
        farthest = pc.max(stored["distance"]).as_py()
        assert 3 < farthest <= 8
        gone = stored.filter(pc.equal(stored["distance"], farthest))["id"]
        status, said, _ = self.call(capsys, "explain", out, gone[0])
        assert (status, f"{farthest} of 64 bits" in said, "not verified: by their distance" in said) == (0, True, True)
        status, said, _ = self.call(capsys, "info", out)
        assert status == 0 and "8 of 64 bits" in said

    def test_verified(self, parquet, tmp_path, capsys):
        command = ["dedup", parquet, "--id-column", "id", "--method", "simhash", "--radius", "8", "--dry-run", "--json"]
        options: list[list] = [[], ["--verify"], ["--threshold", 0.6]]
        reports = [json.loads(self.call(capsys, *command, *more)[1]) for more in options]
        assert [report["recipe"]["threshold"] for report in reports] == [None, 0.8, 0.6]
        assert reports[0]["counts"]["removed_unverified"] > 0
        assert reports[1]["counts"]["removed_unverified"] == reports[2]["counts"]["removed_unverified"] == 0
        assert reports[1]["counts"]["removed"] < reports[2]["counts"]["removed"]

    def test_simhash(self, parquet, tmp_path, capsys):
        target = tmp_path / "s.parquet"
        command = ["sketch", "--method", "simhash", parquet, "--id-column", "id", "-o", target, "--weighting", "tfidf"]
        status, said, _ = self.call(capsys, *command)
        assert status == 0
        assert "neardup pairs" in said
        for path, kind in ((target, "sketches"), (tmp_path / "s.frequencies.parquet", "frequencies")):
            status, said, _ = self.call(capsys, "info", path)
            assert (status, said.split()[0]) == (0, kind)
        known = ["--overwrite", "--frequencies", tmp_path / "s.frequencies.parquet"]
        status, said, _ = self.call(capsys, *command, *known)
        assert status == 0

    def test_info_of_an_index(self, parquet, tmp_path, capsys):
        self.call(capsys, "sketch", "--method", "simhash", parquet, "--id-column", "id", "-o", tmp_path / "s.parquet")
        assert (
            self.call(capsys, "hamming", "build", tmp_path / "s.parquet", "-o", tmp_path / "i", "--radius", 4)[0] == 0
        )
        status, said, _ = self.call(capsys, "info", tmp_path / "i", "--json")
        found = json.loads(said)
        assert (status, found["kind"], found["counts"]["radius"]) == (0, "index", 4)
        assert found["recipe"]["method"] == "simhash"
        status, said, _ = self.call(capsys, "info", tmp_path / "i")
        assert status == 0 and said.startswith("index  ")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--radius", 3], "--radius is for --method simhash"),
            (["--verify"], "--verify is for --method simhash"),
            (["--weighting", "log"], "--weighting is for --method minhash or simhash"),
            (["--method", "simhash", "--recall", 0.9], "--recall is for --method minhash, bottomk or modm"),
            (["--method", "simhash", "--supershingle-bits", 16], "--supershingle-bits is for --method minhash"),
            (["--method", "simhash", "--bits", 32], "--bits 32"),
            (["--method", "md5"], "md5"),
            (["--method", "simhash", "--weighting", "tfidf", "--frequencies", "none.parquet"], "none.parquet: no such"),
        ],
    )
    def test_errors(self, parquet, options, message, capsys):
        status, said, complaint = self.call(capsys, "dedup", parquet, "--dry-run", *options)
        assert (status, said) == (2, "")
        assert message in complaint and complaint.count("\n") == 1
