"""The index: its answers, ids, crowds of identical fingerprints, and its file."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from near import answers, brute, crowded, planted, rows_of

from neardup_gpu import Recipe, SimHash, hamming
from neardup_gpu.errors import InputError, NeardupError, OutputError, ParameterError, RecipeMismatchError
from neardup_gpu.hamming import HammingIndex, TableDesign, members, tables
from neardup_gpu.hamming.storage import INDEX
from neardup_gpu.kernels import huffman_encode
from neardup_gpu.store import outputs
from neardup_gpu.store.arrays import ArraysFile


def saved(folder, recipe=None, num_words=1, compress=False):
    index = HammingIndex(planted(np.random.default_rng(3), 3, num_words), 3, recipe=recipe, compress=compress)
    index.save(folder / "index")
    return index, folder / "index"


def forged(path, **arrays):
    """Replace some arrays of an index; the checksums are right."""
    file = ArraysFile(path, INDEX)
    arrays = {name: array.copy() for name, array in (file.arrays | arrays).items()}  # which the file may not be
    INDEX.write(path, file.header, arrays)


@pytest.mark.parametrize("ids", [["a", "bb", "ccc"], [2**63, 1, 2], np.array([b"x", b"y", b"z"]), None])
def test_answers_are_the_callers_ids(ids, tmp_path):
    index = HammingIndex([7, 8, 2**63], 1, ids)
    index.save(tmp_path / "index")
    for each in (index, HammingIndex.load(tmp_path / "index")):
        found, distance = each.query(5)
        assert found.tolist() == [0 if ids is None else ids[0]] and distance.tolist() == [1]
        found, distance = each.query([2**63 + 1, 3, 100])
        assert [len(row) for row in (found[0], found[1], found[2])] == [1, 1, 0]
        assert found[0].tolist() == [2 if ids is None else ids[2]]


def test_integers_ask_an_index_of_128_bits(tmp_path):
    index = HammingIndex([(1, 5), (2**63, 1), (1, 4)], 1, ["a", "b", "c"])
    index.save(tmp_path / "index")
    for each in (index, HammingIndex.load(tmp_path / "index")):
        ids, distances = each.query((1 << 64) + 5)
        assert ids.tolist() == ["a", "c"] and distances.tolist() == [0, 1]
        ids, distances = each.query([1 << 127, 5])
        assert [ids[0].tolist(), ids[1].tolist()] == [["b"], ["a"]] and distances[1].tolist() == [1]
        with pytest.raises(ParameterError, match=r"fingerprint must be between 0 and 2\*\*128"):
            each.query(2**128)


def test_nearest():
    index = HammingIndex([0, 1, 3, 7, 0], 3)
    ids, distances = index.nearest(0, 3)
    assert ids.tolist() == [0, 4, 1] and distances.tolist() == [0, 0, 1]
    ids, distances = index.nearest(np.array([7, 2**60, 2**64 - 1], np.uint64), 2)
    assert [ids[i].tolist() for i in range(3)] == [[3, 2], [0, 4], []]
    assert [distances[i].tolist() for i in range(3)] == [[0, 1], [1, 1], []]
    with pytest.raises(ParameterError, match="count must be >= 1, got 0"):
        index.nearest(0, 0)


def test_a_query_has_at_most_the_radius_of_the_index():
    index = HammingIndex([0, 1, 3, 7], 2)
    assert index.query(0, 1)[0].tolist() == [0, 1]
    with pytest.raises(ParameterError, match="radius must be between 0 and 2, got 3"):
        index.query(0, 3)
    for wrong in (-1, 2**64):
        with pytest.raises(ParameterError, match="fingerprint must be between 0 and 2"):
            index.query(wrong)


def test_ids_that_do_not_fit():
    with pytest.raises(ParameterError, match="ids must be one for each of 3 fingerprints, got 2"):
        HammingIndex([1, 2, 3], 1, ids=["a", "b"])
    for wrong in ([1.5, 2, 3], [None, "a", "b"], np.array([1.0, 2.0, 3.0]), [2**64, 1, 2], np.zeros((3, 2), int)):
        with pytest.raises(ParameterError, match="one integer or one string"):
            HammingIndex([1, 2, 3], 1, ids=wrong)
    for wrong, says in (
        (["a", "b", b"c"], "both strings and bytes"),
        (["a", "b", 3], "one integer or one string"),
        (pa.array(["a", None, "b"]), "with nulls"),
        (pa.array([1.0, 2.0, 3.0]), "double"),
        (pa.array([[b"a"]] * 3), "list<"),
        (["a", "b", "\ud800"], "not valid Unicode"),
    ):
        with pytest.raises(ParameterError, match=f"ids.*{says}"):
            HammingIndex([1, 2, 3], 1, ids=wrong)


EXACT = ["", "a\0", "a", "\0\0", "ü€", "x" * 4000, "a\0\0"]


@pytest.mark.parametrize(
    "ids",
    [
        EXACT,
        np.array(EXACT, object),
        [text.encode() for text in EXACT],
        pa.array(EXACT),
        pa.array(EXACT, pa.large_string()),
        pa.array(EXACT, pa.string_view()),
        pa.array(EXACT).dictionary_encode(),
        pa.array(["more", *EXACT, "more"]).slice(1, len(EXACT)),
        pa.chunked_array([EXACT[:3], EXACT[3:]]),
        pa.array([b"a\0", b"b\0", b"\0\0", b"cc", b"dd", b"ee", b"ff"], pa.binary(2)),
        pa.array([text.encode() for text in EXACT]),
        pa.array([text.encode() for text in EXACT], pa.binary_view()),
        np.array([-5, 3, 2, 7, 100, -128, 0], np.int8),
        np.array([-5, 3, 2, 7, 100, -128, 0], ">i4"),
        pa.array([9, 8, 7, 6, 5, 4, 2**64 - 1], pa.uint64()).slice(0, 7),
    ],
    ids=lambda ids: str(getattr(ids, "type", getattr(ids, "dtype", type(ids[0]).__name__)))[:20],
)
def test_ids_stay_what_they_are(ids, tmp_path):
    wanted = ids if isinstance(ids, list) else (ids.to_pylist() if hasattr(ids, "to_pylist") else ids.tolist())
    values = np.uint64(1) << np.arange(0, 63, 9, dtype=np.uint64)
    index = HammingIndex(values, 0, ids)
    index.save(tmp_path / "index")
    integers = isinstance(wanted[0], int)
    for each in (index, HammingIndex.load(tmp_path / "index")):
        found = [each.query(int(value))[0] for value in values]
        assert [one.tolist() for one in found] == [[id] for id in wanted]
        assert [type(one[0]) for one in each.query(values)[0]] == [type(one[0]) for one in found]
        rows = np.array([5, 0, 5])
        assert each.ids.arrow(rows).to_pylist() == [wanted[row] for row in rows]
        if integers:
            assert found[0].dtype == np.dtype(getattr(ids, "dtype", np.uint64)).newbyteorder("=")
        else:
            size = sum(len(id.encode() if isinstance(id, str) else id) for id in wanted)
            assert sum(array.nbytes for array in each.ids.arrays.values()) == 8 * (len(wanted) + 1) + size


def test_damaged_ids_are_not_answered(tmp_path):
    values = np.array([0, 2**32 - 1, 2**63], np.uint64)
    for name, new in (
        ("id_offsets", np.array([0, 2**40, 4, 6], np.int64)),
        ("id_offsets", np.array([-9, 2, 4, 6], np.int64)),
        ("id_offsets", np.array([5, 2, 4, 6], np.int64)),
        ("id_values", np.full(6, 255, np.uint8)),
    ):
        index, path = HammingIndex(values, 1, ["ab", "cd", "ef"]), tmp_path / "index"
        index.save(path, overwrite=True)
        forged(path, **{name: new})
        if name == "id_offsets":
            with pytest.raises(InputError, match="its array 'id_offsets' holds values that it cannot have"):
                HammingIndex.load(path)
            continue
        broken = HammingIndex.load(path)
        for ask in (broken.query, lambda row, broken=broken: broken.ids.arrow(np.array([row]))):
            with pytest.raises(InputError, match="the index is damaged: its ids are not valid"):
                ask(0)


@pytest.mark.parametrize("num_words", [1, 2])
@pytest.mark.parametrize("part", [1, 100, 1000, 2**22])
@pytest.mark.parametrize("compress", [False, True])
def test_crowds_are_answered_in_parts_as_by_brute_force(num_words, part, compress, tmp_path, monkeypatch):
    monkeypatch.setattr(members, "PART", part)
    values = crowded(num_words)
    queries = np.concatenate([values[:8], values[[0, 0, 3]], values[-20:]])
    expected = [(query, distance, row) for row, query, distance in brute(values, queries, 2)]
    index = HammingIndex(values, 2, compress=compress)
    assert len(index) == len(values) > len(index.tables) + 300
    index.save(tmp_path / "index")
    for each in (index, HammingIndex.load(tmp_path / "index")):
        assert len(each) == len(values)
        for count in (None, 1, 2, 30, 1000):
            wanted = [
                match
                for query in range(len(queries))
                for match in sorted(match for match in expected if match[0] == query)[:count]
            ]
            parts = list(each.parts(queries, count=count))
            assert [m for q, r, d in parts for m in zip(q.tolist(), d.tolist(), r.tolist(), strict=True)] == wanted
            assert all(len(q) <= part or len(set(q)) == 1 for q, _, _ in parts)
            ids, distances = each.query(queries) if count is None else each.nearest(queries, count)
            asking = np.repeat(np.arange(len(queries)), ids.sizes).tolist()
            assert list(zip(asking, distances.values.tolist(), ids.values.tolist(), strict=True)) == wanted


def test_the_nearest_of_a_crowd_are_taken_before_it_is_expanded(monkeypatch):
    sizes_of, expand = [], members.Members.expand

    def watched(members, numbers, sizes):
        sizes_of.append(int(sizes.sum()))
        return expand(members, numbers, sizes)

    monkeypatch.setattr(members.Members, "expand", watched)
    index = HammingIndex(np.full(30_000, 7, np.uint64), 3, np.arange(30_000, dtype=np.int16))
    ids, _ = index.nearest(np.full(500, 5, np.uint64), 1)
    assert ids.values.tolist() == [0] * 500 and ids.values.dtype == np.int16 and sum(sizes_of) == 500
    assert index.num_bytes < 30_000 * 7


@pytest.mark.parametrize("name", ["member_offsets", "members"])
def test_damaged_members_are_not_answered(tmp_path, name):
    index, path = saved(tmp_path)
    old = getattr(index.members, {"member_offsets": "offsets", "members": "rows"}[name])
    for new in (np.full_like(old, np.iinfo(old.dtype).max), np.zeros_like(old) if name == "member_offsets" else None):
        if new is not None:
            index.save(path, overwrite=True)
            forged(path, **{name: new})
            with pytest.raises(InputError, match="holds values that it cannot have"):
                HammingIndex.load(path).query(planted(np.random.default_rng(3), 3))


@pytest.mark.parametrize("recipe", [Recipe(), {"weights": {1}}, 5, "tf"])
def test_recipes_of_no_simhashes(recipe, tmp_path):
    with pytest.raises(NeardupError, match="recipe must be a Recipe of method simhash or a JSON-serialisable dict"):
        HammingIndex([1, 2], 1, recipe=recipe)
    _, path = saved(tmp_path)
    with pytest.raises(NeardupError, match="recipe must be a Recipe of method simhash or a JSON-serialisable dict"):
        HammingIndex.load(path, recipe)


def test_fewer_queries_than_none():
    with pytest.raises(ParameterError, match="num_queries must be >= 0, got -5"):
        HammingIndex([1, 2], 1, num_queries=-5)


def test_it_says_what_it_is():
    index = HammingIndex([1, 2, 3], 1, recipe={"weights": "<tf>"})
    assert "3 fingerprints" in repr(index)
    shown = index._repr_html_()
    assert "&lt;tf&gt;" in shown and "radius" in shown and len(index) == 3


@pytest.mark.parametrize("num_words", [1, 2])
def test_an_index_comes_back_from_its_file(tmp_path, num_words):
    index, path = saved(tmp_path, {"tokens": 5}, num_words)
    again = HammingIndex.load(path, {"tokens": 5})
    assert (again.design, again.radius, again.recipe) == (index.design, 3, {"tokens": 5})
    before, after = index.tables.arrays, again.tables.arrays
    assert list(after) == list(before) == ["words", "rows", *["fingerprints"] * (num_words - 1)]
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
    header = ArraysFile(path, INDEX).header
    assert list(header["arrays"]) == [*before, "member_offsets", "members"] and header["ids"] is None
    distinct = len(index.tables)
    assert index.num_bytes == again.num_bytes
    assert index.num_bytes == index.design.memory(distinct) + 8 * (distinct + 1) + 4 * len(index)
    assert (tmp_path / "index").stat().st_mode & 0o777 == 0o644 or sys.platform == "win32"
    assert [entry.name for entry in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("compress", [False, True])
def test_an_index_without_fingerprints_comes_back(tmp_path, compress):
    HammingIndex([], 3, compress=compress).save(tmp_path / "index")
    index = HammingIndex.load(tmp_path / "index")
    assert len(index) == 0 and index.query(5)[0].tolist() == []


@pytest.mark.parametrize("num_words", [1, 2])
@pytest.mark.parametrize("prefix", [16, 25, 28, 31])
def test_a_compressed_index_answers_as_another(tmp_path, prefix, num_words):
    """Queries one by one, a few and many, from memory and from its file, and the tables of each design."""
    values = planted(np.random.default_rng(8), 3, num_words)
    design = TableDesign(64 * num_words, 3, prefix)
    plain = HammingIndex(values, 3, design=design)
    HammingIndex(values, 3, design=design, compress=True).save(tmp_path / "index")
    for index in (HammingIndex(values, 3, design=design, compress=True), HammingIndex.load(tmp_path / "index")):
        assert index.tables.compressed and not plain.tables.compressed
        for queries in (values, values[:3], values[:0]):
            for found, expected in zip(index.query(queries), plain.query(queries), strict=True):
                np.testing.assert_array_equal(found.values, expected.values)
                np.testing.assert_array_equal(found.offsets, expected.offsets)
        for value in values[:20]:
            one = int(value) if num_words == 1 else int(value[0]) << 64 | int(value[1])
            for found, expected in zip(index.query(one), plain.query(one), strict=True):
                assert found.tolist() == expected.tolist()
    assert "bits a word" in index._repr_html_()


def test_tables_compressed_one_by_one_are_those_compressed_together():
    values = np.random.default_rng(9).integers(0, 2**64, 1 << 14, np.uint64)
    plain, small = (HammingIndex(values, 3, design=TableDesign(64, 3, 16), compress=c) for c in (False, True))
    for name, array in huffman_encode.cpu(plain.tables.arrays["words"])._asdict().items():
        np.testing.assert_array_equal(small.tables.arrays[name], array)
    assert plain.tables.bits_a_word == 64 > small.tables.bits_a_word
    assert plain.members is None  # what is saved of who has which fingerprint is saved where there are repeats
    assert plain.num_bytes - small.num_bytes == round(4 * (1 << 14) * (64 - small.tables.bits_a_word) / 8)


def test_a_damaged_compressed_index_says_so(tmp_path):
    index, path = saved(tmp_path, compress=True)
    blocks = index.tables.arrays["blocks"].copy()
    blocks[0, 1:].view(np.uint8)[:] = ord("U")
    forged(path, blocks=blocks)
    broken = HammingIndex.load(path)
    with pytest.raises(InputError, match="index is damaged"):
        broken.query(planted(np.random.default_rng(3), 3, 1))


@pytest.mark.parametrize("num_words", [1, 2])
def test_rows_that_an_index_lacks_are_not_answered(tmp_path, num_words):
    index, path = saved(tmp_path, num_words=num_words)
    forged(path, rows=np.full_like(index.tables.arrays["rows"], 2**32 - 1))
    with pytest.raises(InputError, match="holds values that it cannot have"):
        HammingIndex.load(path).query(planted(np.random.default_rng(3), 3, num_words))


def test_an_index_replaces_an_index_only(tmp_path):
    index, path = saved(tmp_path)
    with pytest.raises(OutputError, match="exists already"):
        index.save(path)
    index.save(path, overwrite=True)
    path.write_text("dear diary")
    with pytest.raises(OutputError, match="was not written by neardup"):
        index.save(path, overwrite=True)
    assert path.read_text() == "dear diary"


def test_nothing_is_left_of_an_index_that_could_not_be_written(tmp_path, monkeypatch):
    index, path = saved(tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr(outputs, "sync", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OutputError, match="nothing was written"):
        index.save(path, overwrite=True)
    assert path.read_bytes() == before and [entry.name for entry in tmp_path.iterdir()] == ["index"]


def test_foreign_recipes_are_refused(tmp_path):
    _, path = saved(tmp_path, {"weights": "tf", "w": 5})
    with pytest.raises(RecipeMismatchError, match="made with weights = 'tf', but 'log' is needed"):
        HammingIndex.load(path, {"weights": "log", "w": 5})
    with pytest.raises(RecipeMismatchError, match="made with w = 5, but None is needed"):
        HammingIndex.load(path, {"weights": "tf"})


def test_simhashes_of_a_foreign_recipe_are_refused(tmp_path):
    """The radius and who is kept are not what simhashes depend on; the weighting is."""
    recipe = Recipe(method=SimHash(weighting="log", radius=3))
    _, path = saved(tmp_path, recipe)
    again = HammingIndex.load(path, recipe.with_(radius=5, keep="longest", shingle_size=7))
    assert again.recipe == recipe.describe() and len(again) > 0
    with pytest.raises(RecipeMismatchError, match="made with weighting = 'log', but 'tf' is needed"):
        HammingIndex.load(path, Recipe(method=SimHash(weighting="tf")))


def test_tables_of_another_design_are_refused(tmp_path):
    _, path = saved(tmp_path)
    file = ArraysFile(path, INDEX)
    first, *others = file.header["masks"]
    for masks in ([first[::-1].replace("0", "1"), *others], [first, first, *others], []):
        INDEX.write(path, {**file.header, "masks": masks}, {name: a.copy() for name, a in file.arrays.items()})
        with pytest.raises(RecipeMismatchError, match="another design"):
            HammingIndex.load(path)


@pytest.mark.launches
@pytest.mark.parametrize("num_words", [1, 2])
def test_an_index_on_a_gpu_keeps_its_tables_there_if_they_fit(num_words, monkeypatch):
    values = planted(np.random.default_rng(6), 2, num_words, 20)
    for room in (0, 2**30):
        monkeypatch.setattr(tables, "most_rows", lambda row_bytes, room=room: max(1, room))
        index = HammingIndex(values, 2, backend="gpu")
        assert answers(index, values[:20], 2) == brute(values, values[:20], 2)
        assert (index.tables._resident is None) == (room == 0)
        assert rows_of(hamming.join(values, values[:20], 2, backend="gpu")) == brute(values, values[:20], 2)
