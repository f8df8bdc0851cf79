"""Files of sketches: their order decides nothing, and columns that do not fit their recipe are refused in one line."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu import MinHash, Recipe, SimHash, hamming
from neardup_gpu.definitions import METADATA_KEY
from neardup_gpu.errors import DamagedError, InputError, NeardupError, RecipeMismatchError, ResourceError
from neardup_gpu.hamming import jobs as hamming_files
from neardup_gpu.kernels import _launch as launch, common_runs, hamming_table, pairtables
from neardup_gpu.kernels._launch import MOST_ROWS, check_rows
from neardup_gpu.results import sketch_files
from neardup_gpu.store import parquet as tables

RECIPE = Recipe(method=MinHash(filter=(3, 2, 1)))


def documents(first, number):
    """Of which each second has the text of the one before, and the last is empty."""
    texts = [" ".join(f"word{(i // 2) * 7 + j}" for j in range(20)) for i in range(first, first + number - 1)]
    return pa.table({"id": [f"d{i}" for i in range(first, first + number)], "text": [*texts, ""]})


@pytest.fixture
def sketched(tmp_path):
    path = tmp_path / "s.parquet"
    nd.sketches.sketch(documents(0, 9), path, id_column="id", recipe=RECIPE)
    return path


def rewritten(path, column=None, array=None, **recipe):
    """The file as another program writes it: with another column, or under an edited recipe, and without checksums."""
    table = pq.read_table(path)
    metadata = table.schema.metadata
    if recipe:
        metadata = {METADATA_KEY: metadata[METADATA_KEY].replace(*(each.encode() for each in recipe["edit"]))}
    if column is not None and array is None:
        table = table.drop_columns([column])
    elif column is not None:
        table = table.set_column(table.column_names.index(column), column, array)
    pq.write_table(table.replace_schema_metadata(metadata), path)


def lists(values, width, mask=None):
    return pa.FixedSizeListArray.from_arrays(pa.array(values), width, mask=mask)


LAST = pa.array([False] * 8 + [True])
WRONG = {
    "7 samples instead of 6": ("signature", lists(np.zeros(63, np.uint32), 7, LAST)),
    "samples of 64 bits": ("signature", lists(np.zeros(54, np.uint64), 6, LAST)),
    "samples as floats": ("signature", lists(np.zeros(54, np.float32), 6, LAST)),
    "signed samples": ("signature", lists(np.zeros(54, np.int32), 6, LAST)),
    "lists of any length": ("signature", pa.array([[1, 2, 3, 4, 5, 6]] * 8 + [None], pa.list_(pa.uint32()))),
    "a sample that is null": ("signature", pa.array([[1, 2, 3, 4, 5, None]] * 8 + [None], pa.list_(pa.uint32(), 6))),
    "no signature where there are tokens": ("signature", pa.nulls(9, pa.list_(pa.uint32(), 6))),
    "a signature where there are no tokens": ("signature", lists(np.zeros(54, np.uint32), 6)),
    "2 supershingles instead of 3": ("supershingles", lists(np.zeros(18, np.uint64), 2, LAST)),
    "supershingles as text": ("supershingles", pa.array(["x"] * 9)),
    "one word of a document hash": ("document_hash", pa.array(np.zeros(9, np.uint64))),
    "a document hash that is null": ("document_hash", lists(np.zeros(18, np.uint64), 2, LAST)),
    "fewer tokens than none": ("num_tokens", pa.array([-1] * 8 + [0])),
    "tokens that are null": ("num_tokens", pa.array([None] * 8 + [0], pa.int64())),
    "tokens of 32 bits": ("num_tokens", pa.array([1] * 8 + [0], pa.int32())),
    "an id that is null": ("id", pa.array(["a"] * 8 + [None])),
    "ids as floats": ("id", pa.array(np.arange(9.0))),
    "ids as lists": ("id", pa.array([[i] for i in range(9)])),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_columns_that_do_not_fit_the_recipe(sketched, wrong):
    column, array = WRONG[wrong]
    rewritten(sketched, column, array)
    with pytest.raises(DamagedError, match=r"s\.parquet: .*; sketch it again") as error:
        nd.sketches.pairs(sketched)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "edit", [("3,2,1", "3,14,1"), ("3,2,1", "6,1,1"), ('"bits": 32', '"bits": 64'), ("3,2,1", "3,2"), ("minhash", "x")]
)
def test_an_edited_recipe_that_the_columns_do_not_fit(sketched, edit):
    rewritten(sketched, edit=edit)
    with pytest.raises((DamagedError, RecipeMismatchError), match=r"s\.parquet: "):
        nd.sketches.pairs(sketched)


def test_supershingles_of_another_type_than_the_recipe_s(sketched):
    rewritten(sketched, edit=('"supershingle_bits": 64', '"supershingle_bits": 16'))
    with pytest.raises(DamagedError, match=r"is .*uint64.*, its recipe makes .*uint16"):
        nd.sketches.pairs(sketched)


def test_a_file_that_another_program_rewrote_is_read(sketched):
    """Whatever it called the values of lists, and with columns of its own."""
    expected = nd.sketches.pairs(sketched)
    table = pq.read_table(sketched)
    kind = pa.list_(pa.field("of_its_own", pa.uint32()), 6)
    again = table.set_column(table.column_names.index("signature"), "signature", table["signature"].cast(kind))
    again = again.append_column("note", pa.array(["x"] * 9)).select(again.column_names[::-1])
    pq.write_table(again.replace_schema_metadata(table.schema.metadata), sketched, use_compliant_nested_type=False)
    assert nd.sketches.pairs(sketched).equals(expected)
    nd.sketches.sketch(documents(100, 3), sketched.with_name("t.parquet"), id_column="id", recipe=RECIPE)
    assert len(nd.sketches.pairs([sketched, sketched.with_name("t.parquet")])) == len(expected) + 1


@pytest.mark.parametrize("bits", [64, 128])
def test_simhashes_of_other_bits_than_their_recipe_s(tmp_path, bits):
    path = tmp_path / "h.parquet"
    nd.sketches.sketch(documents(0, 9), path, id_column="id", recipe=Recipe(method=SimHash(bits=bits)))
    rewritten(path, edit=(f'"bits": {bits}', f'"bits": {192 - bits}'))
    with pytest.raises(DamagedError, match=r"column 'simhash' is .*, its recipe makes .*; sketch it again"):
        hamming_files.pairs(path, tmp_path / "p.parquet")


def test_the_order_of_files_and_repeats_of_them_change_no_byte(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, first in (("a", 0), ("b", 5), ("c", 9)):
        table = documents(first, 5).slice(0, 4 if name == "b" else 5)
        nd.sketches.sketch(table, f"{name}.parquet", id_column="id", recipe=RECIPE)
        nd.sketches.sketch(table, f"{name}.h.parquet", id_column="id", recipe=Recipe(method=SimHash()))
    os.link("a.parquet", "z.parquet")
    (tmp_path / "link.parquet").symlink_to("b.parquet")
    for suffix, run in (("parquet", nd.sketches.pairs), ("h.parquet", hamming_files.pairs)):
        a, b, c = (f"{name}.{suffix}" for name in "abc")
        orders = [[a, b, c], [c, b, a], [b, str(tmp_path / c), f"./{a}", a], [a, b, c, c, str(tmp_path / b)]]
        if run is nd.sketches.pairs:
            orders.append([c, "z.parquet", "link.parquet", b, a])
        found = []
        for number, order in enumerate(orders):
            run(order, f"{number}.{suffix}.found")
            found.append((tmp_path / f"{number}.{suffix}.found").read_bytes())
        assert len(set(found)) == 1
        assert pq.read_table(tmp_path / f"0.{suffix}.found").num_rows > 3


def test_an_index_does_not_depend_on_the_order_of_its_files(tmp_path):
    for name, first in (("a", 0), ("b", 5)):
        nd.sketches.sketch(
            documents(first, 5), tmp_path / f"{name}.parquet", id_column="id", recipe=Recipe(method=SimHash())
        )
    for number, order in enumerate(["ab", "ba", "bab"]):
        hamming_files.build([tmp_path / f"{name}.parquet" for name in order], tmp_path / f"{number}.index")
    assert len({(tmp_path / f"{number}.index").read_bytes() for number in range(3)}) == 1


def test_repeated_ids_name_the_files(sketched):
    other = sketched.with_name("t.parquet")
    nd.sketches.sketch(documents(4, 5), other, id_column="id", recipe=RECIPE)
    with pytest.raises(InputError, match=r"s\.parquet and .*t\.parquet: id 'd4' is there more than once"):
        nd.sketches.pairs([other, sketched])


@pytest.mark.parametrize("kind", ["sketches", "simhashes"])
def test_a_flipped_bit_anywhere_in_parquet_is_damage(tmp_path, kind):
    """But in the marker, whose loss says that there are no checksums: then the answer is the right one."""
    path = tmp_path / "s.parquet"
    recipe = RECIPE if kind == "sketches" else Recipe(method=SimHash())
    nd.sketches.sketch(documents(0, 9), path, id_column="id", recipe=recipe)

    def answer():
        if kind == "sketches":
            return nd.sketches.pairs(path).to_pylist()
        (tmp_path / "p.parquet").unlink(missing_ok=True)
        hamming_files.pairs(path, tmp_path / "p.parquet")
        return pq.read_table(tmp_path / "p.parquet").to_pylist()

    expected, data = answer(), bytearray(path.read_bytes())
    unmarked = 0
    for at in range(0, len(data), 7 if kind == "sketches" else 41):
        data[at] ^= 1 << at % 8
        path.write_bytes(data)
        try:
            assert answer() == expected
            unmarked += 1
            assert data.find(b"NEARDUPC") < 0
        except InputError as error:  # where the end cannot be found, nothing says that this was a file of ours
            assert isinstance(error, DamagedError) or at >= len(data) - 8
        data[at] ^= 1 << at % 8
    assert unmarked <= 2


def test_tables_that_are_no_parquet_of_ours(tmp_path):
    path = tmp_path / "x.parquet"
    for data in (b"", b"PAR1", b"PAR1" * 4, b"x" * 100, b"PAR1" + b"\xff" * 50 + b"\x08\0\0\0PAR1"):
        path.write_bytes(data)
        with pytest.raises(InputError, match="cannot be read as Parquet"):
            tables.read_table(path)
    with pytest.raises(InputError, match="no such file"):
        tables.read_table(tmp_path / "missing.parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        tables.read_table(tmp_path)


class TestRows:
    """More rows than 32 bits number; arrays of one value that is nowhere stored stand for them."""

    MANY = np.broadcast_to(np.uint64(0), MOST_ROWS + 1)
    WIDE = np.broadcast_to(np.uint64(0), (MOST_ROWS + 1, 6))

    def test_the_limit(self):
        check_rows(MOST_ROWS, "rows")
        with pytest.raises(
            ResourceError, match="documents: 4,294,967,295 rows, and there may be 4,294,967,294; divide"
        ):
            check_rows(MOST_ROWS + 1, "documents")

    def test_documents(self):
        for recipe in (RECIPE, Recipe(method=SimHash())):
            with pytest.raises(ResourceError, match="documents: 4,294,967,295 rows"):
                recipe.method.collide(self.WIDE if recipe.method.name == "minhash" else self.MANY, seed=recipe.seed)
        with pytest.raises(ResourceError):
            pairtables.cpu(self.WIDE, None, 2, np.uint64(5), 64, 16)

    def test_fingerprints(self):
        for run in (
            lambda: hamming.pairs(self.MANY, 3),
            lambda: hamming.join(self.MANY, [1], 3),
            lambda: hamming.join([1], self.MANY, 3),
            lambda: nd.hamming.HammingIndex(self.MANY, 3),
            lambda: nd.hamming.HammingIndex([1], 3).query(self.MANY),
            lambda: nd.hamming.HammingIndex(np.broadcast_to(np.uint64(0), (MOST_ROWS + 1, 2)), 3, compress=True),
            lambda: hamming_table.cpu(self.MANY, np.uint64(7), True),
        ):
            with pytest.raises(ResourceError, match="4,294,967,295 rows") as error:
                run()
            assert isinstance(error.value, NeardupError)

    def test_tokens_to_look_for(self):
        with pytest.raises(ResourceError, match="tokens to look for: 4,294,967,295 rows"):
            common_runs.prepare(self.MANY, np.array([0, len(self.MANY)]), np.array([2]))

    def test_files_are_counted_before_they_are_read(self, sketched, monkeypatch):
        monkeypatch.setattr(launch, "MOST_ROWS", 8)
        monkeypatch.setattr(sketch_files, "read_table", lambda path: pytest.fail("it was read"))
        with pytest.raises(ResourceError, match="sketches: 9 rows, and there may be 8"):
            nd.sketches.pairs(sketched)
        path = sketched.with_name("h.parquet")
        monkeypatch.undo()
        nd.sketches.sketch(documents(0, 9), path, id_column="id", recipe=Recipe(method=SimHash()))
        monkeypatch.setattr(launch, "MOST_ROWS", 8)
        with pytest.raises(ResourceError, match="fingerprints: 9 rows"):
            hamming_files.pairs(path, sketched.with_name("p.parquet"))
        pq.write_table(documents(0, 9), sketched.with_name("d.parquet"))
        monkeypatch.setattr("neardup_gpu.stages.sketching.count_tokens", lambda *_: pytest.fail("it was read"))
        for given in (documents(0, 9), sketched.with_name("d.parquet")):
            with pytest.raises(ResourceError, match="documents: 9 rows"):
                nd.dedup(given, id_column="id")
