"""An index by the exact join: no pair at the threshold is missed, however documents come."""

import json
import random
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from growing import Texts, as_in_an_index, same_as_dedup, table

import neardup_gpu as nd
from neardup_gpu.cli.app import run
from neardup_gpu.index.segments import SEGMENT
from neardup_gpu.methods.finding.order import Order
from neardup_gpu.store.arrays import ArraysFormat

pytestmark = pytest.mark.quick


def exact(threshold: float = 0.5, max_partners: int | None = 64, shingling: str = "set") -> nd.Recipe:
    shingles = nd.Shingles(2, shingling)
    return nd.Recipe(method="exact", shingles=shingles, threshold=threshold, max_partners=max_partners)


RECIPES = [exact(), exact(0.3, 2), exact(0.8, None, "bag"), exact(0.6, 1, "circular")]


@pytest.mark.parametrize("case", range(len(RECIPES)))
def test_batches_are_joined_as_all_at_once(case: int, tmp_path) -> None:
    texts, folder = Texts(case), tmp_path / "index"
    live: dict[str, str] = {}
    with nd.Index.create(folder, recipe=RECIPES[case], engine="cpu") as index:
        while len(live) < 200:
            number = texts.random.choice([1, 2, 5, 20, 100])
            ids, some = [f"d{len(live) + i}" for i in range(number)], texts.some(number)
            index.add(table(ids, some), id_column="id", commit_every=texts.random.choice([1, 7, 1000]))
            live |= dict(zip(ids, some, strict=True))
            if texts.random.random() < 0.2:
                index.compact()
        same_as_dedup(index, live)
        same_as_dedup(index, live, keep="longest")
        same_as_dedup(index, live, cluster="components")
        gone = texts.random.sample(sorted(live), len(live) // 6)
        index.remove(gone)
        live = {id: text for id, text in live.items() if id not in gone}
        same_as_dedup(index, live)
        ids, some = [f"e{i}" for i in range(20)], texts.some(20)
        index.add(table(ids, some), id_column="id")
        live |= dict(zip(ids, some, strict=True))
        same_as_dedup(index, live)
        index.compact()
        same_as_dedup(index, live, cluster="components")
    with nd.Index.open(folder, engine="cpu") as index:
        same_as_dedup(index, live, keep="longest")
        index.check()


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """An index that began with an empty and a short document, and the texts that live in it, by id."""
    folder, texts = tmp_path_factory.mktemp("grown") / "index", Texts(5, words=40)
    live = dict(enumerate(["", "to be", *texts.some(150)]))
    with nd.Index.create(folder, recipe=exact(0.4), engine="cpu") as index:
        for start, stop in pairwise([0, 1, 2, 40, 41, 100, 152]):
            index.add(table(list(range(start, stop)), [live[id] for id in range(start, stop)]), id_column="id")
        index.remove(list(range(5, 150, 10)))
    return folder, {id: text for id, text in live.items() if id % 10 != 5 or id > 150}


def shingles_of(text: str) -> set:
    words = text.replace(".", " ").split()
    return {tuple(words[i : i + 2]) for i in range(max(1, len(words) - 1))} if words else set()


@pytest.mark.parametrize("threshold", [0.4, 0.7, 1.0])
def test_a_query_finds_every_document_at_its_threshold(threshold: float, grown) -> None:
    folder, live = grown
    texts = Texts(6, words=40)
    texts.made = [text for text in live.values() if shingles_of(text)]
    queries = [*texts.some(40), *list(live.values())[:10], "nothing of it"]
    with nd.Index.open(folder, engine="cpu") as index:
        found = index.query(table([str(i) for i in range(len(queries))], queries), id_column="id", threshold=threshold)
        answers: dict[str, list] = {}
        for match in found.to_pylist():
            answers.setdefault(match["query_id"], []).append((match["id"], match["resemblance"]))
        for number, text in enumerate(queries):
            mine, expected = shingles_of(text), []
            for id, other in live.items():
                theirs = shingles_of(other)
                if mine & theirs and (value := len(mine & theirs) / len(mine | theirs)) >= threshold:
                    expected.append((-value, id))
            assert answers.get(str(number), []) == [(id, -value) for value, id in sorted(expected)]
        assert sum(map(len, answers.values())) > 20
        if threshold == 0.4:
            with nd.Index.open(folder, engine="reference") as slow:
                assert slow.query(queries[3]).equals(index.query(queries[3]))


def test_a_crowd_with_much_in_common(tmp_path) -> None:
    """Pages of one template, which come one by one at first: the order learns what is common."""
    choose = random.Random(3)
    template = " ".join(f"t{i}" for i in range(30))
    pages = [f"{template} {' '.join(f'w{choose.randrange(400)}' for _ in range(40))}" for _ in range(150)]
    pages += [page.replace("t3 ", "x ") for page in choose.sample(pages, 50)]
    live = {f"p{i}": page for i, page in enumerate(pages)}
    with nd.Index.create(tmp_path / "x", recipe=exact(0.8, 3), engine="cpu") as index:
        index.add(table(list(live)[:20], pages[:20]), id_column="id", commit_every=1)
        index.add(table(list(live)[20:], pages[20:]), id_column="id", commit_every=40)
        same_as_dedup(index, live)
        index.compact()
        same_as_dedup(index, live)
        counters, _ = Order.load(order_file(index)).table
        assert np.count_nonzero(counters > 140) == 29  # the shingles of the template
        assert index.query(pages[0], threshold=0.9)["id"].to_pylist()[0] == "p0"


def order_file(index: nd.Index):
    (number,) = {place.order for place in index._opened.manifest.segments} - {None}
    return index._opened.folder / "segments" / f"{number:08}"


def test_the_order_is_frozen(tmp_path) -> None:
    texts = Texts(4).some(60)
    with nd.Index.create(tmp_path / "x", recipe=exact(), engine="cpu") as index:
        index.add(table([0], [""]), id_column="id")
        assert {place.order for place in index._opened.manifest.segments} == {None}
        assert index.query("to be or not")["id"].to_pylist() == []
        index.add(table([1, 2], texts[:2]), id_column="id")
        before = order_file(index).read_bytes()
        for number in range(3, 7):
            index.add(table([number], [texts[number]]), id_column="id")
        assert order_file(index).read_bytes() == before
        with nd.Index.open(tmp_path / "x", engine="cpu") as reader:
            held = order_file(reader)
            index.compact()  # all postings are made again, in an order of all shingles
            assert order_file(index) != held and order_file(index).read_bytes() != before
            answer = reader.query(texts[1])
            assert answer.num_rows and held.exists()
            assert reader.refresh().query(texts[1]).equals(answer)
        index.add(table([100], [texts[7]]), id_column="id")
        assert not held.exists()
        index.remove([0, *range(1, 7), 100])
        index.compact()
        assert index.info()["segments"] == 0
        index.add(table([0, 1], texts[:2]), id_column="id")
        same_as_dedup(index, dict(enumerate(texts[:2])))


@pytest.mark.parametrize("harm", ["flipped", "cut", "gone"])
def test_a_damaged_order_is_an_error(harm: str, tmp_path) -> None:
    with nd.Index.create(tmp_path / "x", recipe=exact(), engine="cpu") as index:
        index.add(table([0, 1], ["to be or not to be", "to be or not to go"]), id_column="id")
        path = order_file(index)
    data = bytearray(path.read_bytes())
    data[-5000] ^= 1
    path.unlink()
    if harm != "gone":
        path.write_bytes(data if harm == "flipped" else data[:-4096])
    if harm != "flipped":
        with pytest.raises(nd.errors.InputError, match=path.name):
            nd.Index.open(tmp_path / "x", engine="cpu")
        return
    with nd.Index.open(tmp_path / "x", engine="cpu") as index:
        for call in (
            index.check,
            lambda: index.query("to be or not"),
            lambda: index.add(table([2], ["to be"]), id_column="id"),
        ):
            with pytest.raises(nd.errors.InputError, match=path.name):
                call()
        assert len(index) == 2


def test_a_disk_that_is_full_after_the_order_was_written(tmp_path, monkeypatch) -> None:
    documents = table([0, 1], ["to be or not to be", "to be or not to go"])
    with nd.Index.create(tmp_path / "x", recipe=exact(), engine="cpu") as index:
        write = ArraysFormat.write_to

        def full(kind, *arguments):
            if kind is SEGMENT:
                raise OSError(28, "No space left on device")
            write(kind, *arguments)

        monkeypatch.setattr(ArraysFormat, "write_to", full)
        with pytest.raises(
            nd.errors.OutputError, match="No space left on device; the index is as it was committed last"
        ):
            index.add(documents, id_column="id")
        monkeypatch.undo()
        assert len(index) == 0 and len(list((tmp_path / "x/segments").iterdir())) == 1
        index.add(documents, id_column="id")
        assert len(list((tmp_path / "x/segments").iterdir())) == 2
        same_as_dedup(index, dict(zip(*documents.values(), strict=True)))


def test_what_is_refused(grown, tmp_path) -> None:
    folder, live = grown
    with nd.Index.open(folder, engine="cpu") as index:
        with pytest.raises(nd.errors.ParameterError, match=r"threshold 0\.39: this index finds pairs at 0\.4 or above"):
            index.query("to be", threshold=0.39)
        with pytest.raises(nd.errors.InputError, match="is in the index already"):
            index.add(table([next(iter(live))], ["to be"]), id_column="id")
        with pytest.raises(nd.errors.RecipeMismatchError, match=r"made with threshold = 0\.4, but 0\.5 is needed"):
            nd.Index.open(folder, recipe=exact(0.5))
    with pytest.raises(nd.errors.ParameterError, match="choose exact, minhash or simhash"):
        nd.Index.create(tmp_path / "x", method="containment")
    with pytest.raises(nd.errors.ParameterError, match="keep and cluster"):
        nd.Index.create(tmp_path / "x", recipe=exact().with_(keep="longest"))
    with pytest.raises(nd.errors.ParameterError, match="only_against: an index has no reference set"):
        nd.Index.create(tmp_path / "x", recipe=exact().with_(only_against=True))
    assert not (tmp_path / "x").exists()


def test_the_commands_of_an_exact_index(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    texts = Texts(9).some(40)
    pq.write_table(
        nd.dedup({"text": texts}, engine="cpu", writing=nd.Writing(check=0)).documents.append_column("text", [texts]),
        "a.parquet",
    )
    assert run(["index", "create", "x", "--method", "exact", "--threshold", "0.7", "--json"]) == 0
    assert run(["index", "add", "x", "a.parquet", "--id-column", "id", "--commit-every", "9", "--quiet"]) == 0
    assert run(["index", "decide", "x", "-o", "found", "--quiet"]) == 0
    assert run(["dedup", "a.parquet", "--id-column", "id", "--threshold", "0.7", "-o", "all", "--quiet"]) == 0
    for name in ("documents", "pairs"):
        found, expected = (pq.read_table(f"{folder}/{name}.parquet") for folder in ("found", "all"))
        assert found.num_rows and found.to_pylist() == as_in_an_index(expected.select(found.column_names))
    capsys.readouterr()
    assert run(["index", "info", "x", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recipe"]["method"] == "exact"
    assert run(["index", "check", "x"]) == 0
    for words, message in (
        (
            ["query", "x", "--text", "to be", "--threshold", "0.6"],
            "threshold 0.6: this index finds pairs at 0.7 or above",
        ),
        (["create", "y", "--method", "exact", "--sampler", "fast"], "--sampler"),
        (["create", "y", "--method", "exact", "--threshold", "0"], "--threshold"),
    ):
        with pytest.raises(nd.NeardupError, match=message):
            run(["index", *words])


def test_a_snapshot_reads_its_order_after_it_was_replaced(tmp_path) -> None:
    texts = Texts(11)
    with nd.Index.create(
        tmp_path / "x", engine="cpu", recipe=nd.Recipe(shingles=nd.Shingles(2), method="exact", threshold=0.5)
    ) as writer:
        writer.add({"text": texts.some(20)})
        with nd.Index.open(tmp_path / "x", engine="cpu") as reader:
            text, state, path = texts.some(1)[0], reader._opened.state, order_file(reader)
            writer.add({"text": texts.some(20)})
            writer.compact()
            reader.refresh()  # lets go of the files of the first snapshot, which the next commit removes
            writer.add({"text": texts.some(1)})
            assert not path.exists()
            assert reader._opened.state is not state
            reader._opened.state = state  # as another thread has it that began to ask before
            assert set(reader.query(text)["id"].to_pylist()) <= set(range(20))
