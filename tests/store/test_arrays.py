"""Files of named arrays, such as an index's: no damage is answered from, and only what is read is compared."""

import copy
import json
import os

import numpy as np
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st

from neardup_gpu import Recipe, SimHash
from neardup_gpu.errors import DamagedError, InputError, NeardupError
from neardup_gpu.hamming import HammingIndex, TableDesign
from neardup_gpu.hamming.storage import INDEX
from neardup_gpu.kernels import hamming_probe, huffman_probe
from neardup_gpu.store import arrays
from neardup_gpu.store.arrays import BLOCK_BYTES, ArraysFile, ArraysFormat
from neardup_gpu.store.checksums import checksum


def fingerprints(number, num_words=1, seed=5):
    """Random, of which each third is near the one before and each fifth the same as the one before."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 2**64, (number, num_words), np.uint64)
    found[1::3] = found[0::3][: len(found[1::3])] ^ np.uint64(5)
    found[4::5] = found[3::5][: len(found[4::5])]
    return found[:, 0] if num_words == 1 else found


def saved(path, number=60, num_words=1, compress=False, ids=True, repeats=True, **options):
    values = fingerprints(number, num_words)
    if not repeats:
        values = np.unique(values, axis=0)
    named = [f"id {row}" for row in range(len(values))] if ids else None
    options = {"recipe": Recipe(method=SimHash(bits=64 * num_words)), **options}
    HammingIndex(values, 3, named, compress=compress, **options).save(path, overwrite=True)
    return values


def rebuilt(path, text):
    """Put another text in the head of a file; the checksums are right."""
    data = path.read_bytes()
    fields = arrays._PREAMBLE
    preamble = np.frombuffer(data[: fields.itemsize], fields)[0].copy()
    old, blocks = int(preamble["text"]), int(preamble["blocks"])
    start = fields.itemsize + old + -old % 8
    checksums, start = data[start : start + 8 * blocks], start + 8 * blocks
    start += -start % 4096
    head = text + bytes(-len(text) % 8) + checksums
    head += bytes(-(fields.itemsize + len(head)) % 4096)
    preamble["text"], preamble["head"] = len(text), checksum(head)
    preamble["preamble"] = checksum(preamble.tobytes()[:-8])
    path.write_bytes(preamble.tobytes() + head + data[start:])


def answers(index, queries):
    ids, distances = index.query(queries)
    return ids.offsets.tolist(), ids.values.tolist(), distances.values.tolist()


SHELF = ArraysFormat(b"BOOKSHLF", 1, "a shelf of books", "fill one", "fill the shelf again")


def test_any_named_arrays_are_a_file(tmp_path, monkeypatch):
    """Of whatever kind: what they mean is the caller's, who names the kind in messages."""
    monkeypatch.setattr(arrays, "AT_ONCE", 0)
    path, other = tmp_path / "shelf", tmp_path / "other"
    books = {
        "pages": np.arange(100_000, dtype=np.uint32).reshape(-1, 2),
        "title_offsets": np.arange(0, 600_000, 2),
        "titles": np.full(600_000, ord("x"), np.uint8),
        "none": np.zeros(0, np.int64),
    }
    SHELF.write(path, {"owner": "us"}, books)
    file = ArraysFile(path, SHELF)
    assert file.header["owner"] == "us" and list(file.arrays) == list(books) and SHELF.matches(path)
    for name, array in books.items():
        assert file.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(file.arrays[name], array)
    before = file.num_left
    file.verify_rows("title_offsets", "titles", np.array([3, 290_000]))
    assert before - file.num_left == 4 and file.num_left > 0
    file.verify("pages", np.array([0, 99_999]), np.array([1, 100_000]))
    assert before - file.num_left == 6
    file.verify_all()
    assert file.num_left == 0
    saved(other)
    assert not SHELF.matches(other)
    with pytest.raises(InputError, match="other: is not a shelf of books; fill one"):
        ArraysFile(other, SHELF)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedError, match="was cut short; fill the shelf again"):
        ArraysFile(path, SHELF)


@pytest.mark.parametrize("kind", ["plain", "compressed", "128 bits", "without ids"])
def test_a_flipped_bit_anywhere_is_damage(tmp_path, kind):
    path = tmp_path / "index"
    options = {"compressed": {"compress": True}, "128 bits": {"num_words": 2}, "without ids": {"ids": False}}
    saved(path, **options.get(kind, {}))
    data = bytearray(path.read_bytes())
    for at in [*range(48), *range(48, len(data), 61)]:
        data[at] ^= 1 << at % 8
        path.write_bytes(data)
        with pytest.raises(DamagedError) as error:
            HammingIndex.load(path)
        assert "\n" not in str(error.value) and str(path) in str(error.value)
        data[at] ^= 1 << at % 8


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("num_words", [1, 2])
@pytest.mark.parametrize("repeats", [False, True])
def test_what_is_read_block_by_block_is_never_answered_from_when_damaged(
    tmp_path, monkeypatch, num_words, compress, repeats
):
    """Each answer is the undamaged index's, or there is none: one query, some, many; a bit anywhere in the arrays."""
    monkeypatch.setattr(arrays, "AT_ONCE", 0)
    monkeypatch.setattr(hamming_probe, "_FEW", 4)
    monkeypatch.setattr(huffman_probe, "_FEW", 4)
    path, rng = tmp_path / "index", np.random.default_rng(1)
    design = TableDesign(64 * num_words, 3, 16)
    values = saved(path, 30_000, num_words, compress, repeats=repeats, design=design)
    queries = np.concatenate([values[::3000], values[::4000] ^ np.uint64(1 << 60)])
    expected = answers(HammingIndex.load(path), queries)
    assert len(expected[1]) > len(queries) / 2
    data = path.read_bytes()
    file = ArraysFile(path, INDEX)
    noticed = 0
    for flip in range(80):
        name = list(file.arrays)[flip % len(file.arrays)]
        place = file._places[name]
        at = int(rng.integers(place.start, place.stop))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :])
        index = HammingIndex.load(path)
        try:
            for first in range(0, len(queries), 2):
                some = slice(first, first + 1 + flip % 2)
                ids, distances = index.query(queries[some])
                for row in range(len(ids)):
                    start, stop = expected[0][first + row], expected[0][first + row + 1]
                    assert ids[row].tolist() == expected[1][start:stop], (name, at)
                    assert distances[row].tolist() == expected[2][start:stop]
        except DamagedError:
            noticed += 1
        with pytest.raises(DamagedError):
            HammingIndex.load(path, check=True)
        with pytest.raises(DamagedError):
            HammingIndex.load(path).save(tmp_path / "copy")
    assert noticed > 5


def test_an_index_opens_and_answers_without_reading_all_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "AT_ONCE", 1 << 16)
    path = tmp_path / "index"
    values = saved(path, 300_000, ids=False, repeats=False)
    index = HammingIndex.load(path)
    before = index.file.num_left
    assert before * BLOCK_BYTES > 0.9 * path.stat().st_size
    assert index.query(int(values[7]))[1].tolist()[0] == 0
    assert before - 5 * index.design.num_tables <= index.file.num_left < before
    index.query(values)
    assert index.file.num_left == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "made by an earlier version"),
        ({"version": 9}, "made by a later version"),
        ({"magic": b"PARQUET1"}, "is not an index"),
        ({"byte_order": 0x04030201}, "in another byte order"),
    ],
)
def test_files_of_another_kind_or_version_say_so(tmp_path, change, message):
    """Their checksum is of what they are, or there is none: so this is no damage."""
    path = tmp_path / "index"
    saved(path)
    data = bytearray(path.read_bytes())
    preamble = np.frombuffer(bytes(data[: arrays._PREAMBLE.itemsize]), arrays._PREAMBLE)[0].copy()
    for name, value in {**change, "preamble": 0}.items():
        preamble[name] = value
    path.write_bytes(preamble.tobytes() + data[arrays._PREAMBLE.itemsize :])
    with pytest.raises(InputError, match=message) as error:
        HammingIndex.load(path)
    assert not isinstance(error.value, DamagedError)


def test_files_of_another_length_are_refused(tmp_path):
    path = tmp_path / "index"
    saved(path)
    data = path.read_bytes()
    for size in (8, 15, 47, 48, 50, 4095, 4096, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(DamagedError, match="was cut short"):
            HammingIndex.load(path)
    path.write_bytes(data + b"x")
    with pytest.raises(DamagedError, match="has changed"):
        HammingIndex.load(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is not an index"):
        HammingIndex.load(path)
    for missing in (tmp_path / "elsewhere", tmp_path):
        with pytest.raises(InputError):
            HammingIndex.load(missing)


def test_headers_that_lie(tmp_path):
    path = tmp_path / "index"
    saved(path)
    told, good = ArraysFile(path, INDEX).header, path.read_bytes()
    words, rows = told["arrays"]["words"], told["arrays"]["rows"]
    design = {**told["design"], "bits": 128}
    lies = [
        {},
        [],
        5,
        {**told, "design": {"bits": 64, "radius": 3, "prefix": 99}},
        {**told, "design": design, "masks": ["0" * 32] * TableDesign(**design).num_tables},
        {**told, "arrays": None},
        {**told, "arrays": {}},
        {**told, "arrays": {**told["arrays"], "words": ["|O", words[1]]}},
        {**told, "arrays": {**told["arrays"], "words": [">u8", words[1]]}},
        {**told, "arrays": {**told["arrays"], "words": [words[0], [-1, 5]]}},
        {**told, "arrays": {**told["arrays"], "words": [words[0], [True, 5]]}},
        {**told, "arrays": {**told["arrays"], "words": [words[0], [2.0**62, 2.0**62]]}},
        {**told, "arrays": {**told["arrays"], "rows": [words[0], rows[1]]}},
        {**told, "arrays": {**told["arrays"], "others": rows}},
        {**told, "num_fingerprints": 7},
        {**told, "num_fingerprints": float(told["num_fingerprints"])},
        {**told, "ids": "integer"},
        {**told, "ids": ["string"]},
        {**told, "recipe": None},
        {**told, "recipe": [1]},
        {key: value for key, value in told.items() if key != "ids"},
        {**told, "radius": 9},
        {**told, "radius": True},
        {**told, "radius": float("nan")},
    ]
    for header in lies:
        path.write_bytes(good)
        rebuilt(path, json.dumps(header).encode())
        with pytest.raises(InputError, match=r"its header cannot be read|another design|values that it cannot have"):
            HammingIndex.load(path)
    for text in (b"}", b"[" * 100_000, b"\xff\xfe", b'{"design": 1e400', b"9" * 5000):
        path.write_bytes(good)
        rebuilt(path, text)
        with pytest.raises(InputError, match="its header cannot be read"):
            HammingIndex.load(path)


STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 1, 2, 3, 63, 64, 65, 127, 128, 2**31, 2**32, 2**63, 2**64]),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["<u8", "<u4", ">u8", "|u1", "<i8", "O", "string", "integer", "1e400"]),
    st.lists(st.integers(-3, 70), max_size=4),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def places(value, at=()):
    """Where everything in a JSON value is."""
    yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from places(each, (*at, key))


@pytest.fixture(scope="module")
def sound_index(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "index"
    values = saved(path, 40)
    return path, values, answers(HammingIndex.load(path), values)


@settings(max_examples=fewer(400), deadline=None)
@given(data=st.data())
def test_mutated_headers_are_refused_or_harmless(sound_index, data):
    """A NeardupError of one line, or the right answers: whatever a header says under a right checksum."""
    path, values, expected = sound_index
    good = path.read_bytes()
    header = ArraysFile(path, INDEX).header
    mutated = copy.deepcopy(header)
    for _ in range(data.draw(st.integers(1, 2))):
        *above, key = data.draw(st.sampled_from([at for at in places(mutated) if at]))
        holder = mutated
        for step in above:
            holder = holder[step]
        what = data.draw(st.sampled_from(["replace", "remove", "add"]))
        if what == "replace":
            holder[key] = data.draw(STRANGE)
        elif what == "remove":
            del holder[key]
        elif isinstance(holder, dict):
            holder[data.draw(st.text(max_size=4))] = data.draw(STRANGE)
        else:
            holder.append(data.draw(STRANGE))
    try:
        rebuilt(path, json.dumps(mutated).encode())
        index = HammingIndex.load(path)
        found = answers(index, values)
    except NeardupError as error:
        assert "\n" not in str(error)
    else:
        if mutated.get("radius") == header["radius"]:
            assert found[0] == expected[0] and found[2] == expected[2]
        repr(index), index._repr_html_()
    finally:
        path.write_bytes(good)


def test_arrays_are_filled_in_any_order_by_calls_that_write_less(tmp_path, monkeypatch):
    """Some systems write no more than 2 GB at a time."""
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, place: write(file, bytes(data[:1000]), place))
    words, rows = np.arange(700, dtype=np.uint64), np.arange(24, dtype=np.uint32).reshape(2, 12)
    with SHELF.filled(tmp_path / "x", {}, {"words": (np.uint64, (700,)), "rows": (np.uint32, (2, 12))}) as filling:
        filling.put("rows", rows[1], 12)
        filling.put("words", words[500:], 500)
        filling.put("words", np.arange(500))  # of another type
        filling.put("rows", rows[:1])
        filling.put("rows", rows[:0], 24)
        for values, start in ((words, 1), (words[:1], -1), (words[:1], 700)):
            with pytest.raises(ValueError, match="words has 700 values"):
                filling.put("words", values, start)
        assert filling.arrays["rows"][1, 3] == 15
    file = ArraysFile(tmp_path / "x", SHELF)
    file.verify_all()
    assert (file.arrays["words"] == words).all() and (file.arrays["rows"] == rows).all()


def test_what_is_half_filled_is_no_file(tmp_path):
    with pytest.raises(KeyError), SHELF.filled(tmp_path / "x", {}, {"words": (np.uint64, (3,))}) as filling:
        filling.put("words", np.ones(2))
        filling.put("rows", np.ones(2))
    assert not (tmp_path / "x").exists()
