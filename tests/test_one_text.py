"""One text by itself: what it gives is the row that `sketch` writes, whoever calls."""

import threading

import numpy as np
import pyarrow.parquet as pq
import pytest
from flat import flat

from neardup_gpu import BottomK, Exact, MinHash, ModM, Recipe, Shingles, SimHash
from neardup_gpu.errors import ArgumentTypeError, ParameterError
from neardup_gpu.jobs.one_text import TextSketcher
from neardup_gpu.kernels import _cpu, tokens
from neardup_gpu.sketches import Frequencies, sketch, sketch_text
from neardup_gpu.stages import Ragged, shingle, tokenize

TEXTS = [
    "To be, or not to be: that is the question. " * 30,
    "Whether 'tis nobler in the mind to suffer the slings and arrows of outrageous fortune",
    "Ünïcode a\u0301\u0323 ﬁne 漢字仮名 ไทย — 3.14!",
    "one",
    "a a a a a a a",
    "",
    "...",
    " ".join(f"w{i * 7919 % 1000}" for i in range(3000)),
    "half a pair \ud800 of surrogates",
    "<p>one</p>two<b>fold</b> &amp; more <script>none</script>",
]
METHODS = {
    "minhash": MinHash(),
    "64 bits, bing": MinHash(filter="bing", bits=64),
    "fast": MinHash(sampler="fast"),
    "packed": MinHash(sample_bits=2),
    "segments": MinHash(sample_bits=1, candidates="segments"),
    "tf": MinHash(weighting="tf"),
    "log": MinHash(weighting="log"),
    "bottomk": BottomK(s=50),
    "groups": BottomK(candidates="groups"),
    "modm": ModM(),
    "adaptive": ModM(adaptive=True),
    "at most 5": ModM(s=5),
    "simhash": SimHash(),
    "simhash of shingles": SimHash(bits=128, elements="shingles", weighting="tf"),
}
SHINGLES = (Shingles(), Shingles(3, "bag"), Shingles(4, "circular"), Shingles(2, "spots"))


def written(folder, texts, recipe, **options):
    """The columns of a file of sketches, as Python's values; `sketch` is the oracle."""
    flat(sketch, texts=texts, output=folder / "s.parquet", recipe=recipe, overwrite=True, engine="cpu", **options)
    table = pq.read_table(folder / "s.parquet")
    assert len(table) == len(texts)
    return table.drop_columns(["id"]).to_pylist()


def plain(row):
    return {
        name: value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value for name, value in row.items()
    }


@pytest.mark.parametrize("kind", SHINGLES, ids=lambda kind: kind.kind)
@pytest.mark.parametrize("name", METHODS)
def test_a_text_has_the_row_of_a_file(name, kind, tmp_path):
    method = METHODS[name]
    if kind.kind == "bag" and method.measure.weighted:
        pytest.skip("bags have no weights")
    recipe = Recipe(method=method, shingles=kind, seed=7 if kind.kind == "circular" else 1)
    wanted = written(tmp_path, TEXTS, recipe)
    found = [sketch_text(text, recipe) for text in TEXTS]
    assert [list(row) for row in found] == [list(row) for row in wanted]
    assert [plain(row) for row in found] == wanted


@pytest.mark.parametrize("name", ["minhash", "simhash"])
def test_so_has_one_weighted_by_documents(name, tmp_path):
    method = MinHash(weighting="tfidf") if name == "minhash" else SimHash(weighting="tfidf")
    recipe = Recipe(method=method)
    divided = tokenize(TEXTS[:8], recipe)
    counted = {"minhash": (shingle(divided, recipe), recipe.elements), "simhash": (divided, "tokens")}[name]
    frequencies = Frequencies.of(counted[0], elements=counted[1])
    wanted = written(tmp_path, TEXTS, recipe, frequencies=frequencies)
    named, _ = recipe.with_statistics(frequencies)
    for each in (recipe, named):
        assert [plain(sketch_text(text, each, frequencies=frequencies)) for text in TEXTS] == wanted
        with pytest.raises(ParameterError, match=r"^frequencies: "):
            sketch_text(TEXTS[0], each)


def test_html(tmp_path):
    recipe = Recipe(method="minhash")
    pages = [TEXTS[-1], "<title>a</title>plain & <i>sim</i>ple", ""]
    for html in (True, "tree"):
        wanted = written(tmp_path, pages, recipe, html=html)
        assert [plain(sketch_text(page, recipe, html=html)) for page in pages] == wanted
    latin = '<meta charset="latin-1"><p>caf\xe9 au lait'.encode("latin-1")
    assert written(tmp_path, [latin], recipe, html=True) == [plain(sketch_text(latin, recipe, html=True))]


def test_bytes(tmp_path):
    recipe = Recipe(method="minhash")
    texts = ["Ünï".encode(), b"not \xff UTF-8 \xc3", b""]
    assert written(tmp_path, texts, recipe) == [plain(sketch_text(text, recipe)) for text in texts]


def test_shapes_and_types():
    text = TEXTS[0]
    row = sketch_text(text, Recipe(method=MinHash(filter="altavista")))
    assert type(row["num_tokens"]) is type(row["num_shingles"]) is int
    about = {name: (value.dtype, value.shape) for name, value in row.items() if isinstance(value, np.ndarray)}
    assert about == {"document_hash": ("u8", (2,)), "signature": ("u4", (84,)), "supershingles": ("u8", (6,))}
    assert sketch_text(text, Recipe(method=ModM()))["elements"].dtype == np.uint64
    assert isinstance(sketch_text(text, Recipe(method=SimHash()))["simhash"], np.uint64)


def test_what_is_refused():
    recipe = Recipe(method="minhash")
    for text in (None, 3, [TEXTS[0]]):
        with pytest.raises(ArgumentTypeError, match=r"^text: "):
            sketch_text(text, recipe)
    with pytest.raises(ParameterError, match="exact"):
        sketch_text("a", Recipe(method=Exact()))
    with pytest.raises(ArgumentTypeError, match=r"^recipe"):
        sketch_text("a", "minhash")
    with pytest.raises(ArgumentTypeError, match=r"^html"):
        sketch_text("a", recipe, html=3)
    with pytest.raises(ArgumentTypeError, match=r"^frequencies"):
        sketch_text("a", recipe, frequencies="f.parquet")
    with pytest.raises(ParameterError, match=r"^frequencies: only the weighting 'tfidf'"):
        sketch_text("a", recipe, frequencies=Frequencies([5], [1], num_documents=1, seed=1))


def test_threads_that_sketch_at_once():
    """As those of a service do."""
    recipe = Recipe(method="minhash")
    texts = [f"{text} {i}" for i in range(20) for text in TEXTS[:4]]
    alone = [plain(sketch_text(text, recipe)) for text in texts]
    found = {}

    def work(part):
        found[part] = [plain(sketch_text(text, recipe)) for text in texts]

    threads = [threading.Thread(target=work, args=(part,)) for part in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[part] == alone for part in range(8))
    assert not _cpu.is_alone()


def test_what_is_known_of_a_text():
    """As an index takes it: sketches and keys as of one document."""
    recipe = Recipe(method="minhash")
    found = TextSketcher(recipe).features(TEXTS[0])
    shingles = shingle(tokenize([TEXTS[0]], recipe), recipe)
    made = recipe.method.sketch(shingles)
    assert (found.sketch == made).all() and (found.keys == recipe.method.keys(made)).all()
    assert found.num_tokens == len(tokenize([TEXTS[0]], recipe).values)


class TestStagesOfLists:
    """Lists of str take a way without Arrow; the results are those of a column."""

    @pytest.mark.parametrize("texts", [[], [""], TEXTS[:8], ["a", "", "b c"], TEXTS[:8] * 50], ids=len)
    def test_tokens(self, texts):
        import pyarrow as pa

        recipe = Recipe()
        found, wanted = tokenize(texts, recipe), tokenize(pa.array(texts, pa.string()), recipe)
        assert (found.values == wanted.values).all() and (found.offsets == wanted.offsets).all()
        assert found.values.dtype == np.uint64 and found.offsets.dtype == np.int64

    def test_entries_that_are_no_text(self):
        recipe = Recipe()
        assert tokenize(["to be", None], recipe).sizes.tolist() == [2, 0]
        with pytest.raises(ArgumentTypeError, match="3 is not a text"):
            tokenize(["to be", 3], recipe)
        with pytest.raises(ParameterError, match="is not Unicode text"):
            tokenize(["half \ud800"], recipe)

    def test_what_is_little_is_done_by_the_thread_that_calls(self, monkeypatch):
        seen = []

        def watched(*_):
            seen.append(_cpu.is_alone())
            return np.empty(0, np.uint64), np.zeros(2, np.int64), 0

        monkeypatch.setattr(tokens, "cpu", watched)
        few, many = Ragged(np.zeros(10, np.uint8), [0, 10]), Ragged(np.zeros(1 << 20, np.uint8), [0, 1 << 20])
        for text, backend in ((few, None), (many, None), (few, "cpu")):
            tokenize(text, Recipe(), backend=backend)
        assert seen == [True, False, False]
