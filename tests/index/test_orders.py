"""The postings of each segment follow the order of shingles that its index uses."""

import json
import random

import pytest
from grids import pairs_of
from growing import same_as_dedup, table
from postings import assert_tables_are_those_of_the_entries

import neardup_gpu as nd
from neardup_gpu.cli.app import run
from neardup_gpu.index import adding, writer
from neardup_gpu.index.snapshot import Snapshot

RECIPE = nd.Recipe(method="exact", shingles=nd.Shingles(2), threshold=0.8)


def sixteen_words(number: int, seed: int = 1) -> dict[str, str]:
    """Texts of 16 words: the words of later ones differ from those of earlier ones, so that orders differ."""
    choose, found = random.Random(seed), {}
    for i in range(number):
        words = [f"w{int(choose.paretovariate(0.5)) % (20 + i)}" for _ in range(16)]
        found[f"d{i}"] = " ".join(words)
        if i % 5 == 4:
            words = found[f"d{choose.randrange(i)}"].split()
            words[choose.randrange(16)] = "other"
            found[f"d{i}"] = " ".join(words)
    return found


@pytest.mark.parametrize(("commits", "threads"), pairs_of([9, 17, 65, 66], [2, 1]))
def test_one_add_of_many_commits_misses_nothing(commits: int, threads: int, tmp_path) -> None:
    live = sixteen_words(20 * commits)
    with nd.Index.create(tmp_path / "x", recipe=RECIPE, engine=nd.Engine(backend="cpu", threads=threads)) as index:
        index.add(table(list(live), list(live.values())), id_column="id", commit_every=20)
        assert_tables_are_those_of_the_entries(index)
        found = index.query(table(list(live), list(live.values())), id_column="id")
        answers = set(zip(found["query_id"].to_pylist(), found["id"].to_pylist(), strict=True))
        assert not [id for id in live if (id, id) not in answers]
        same_as_dedup(index, live)
        index.check()


def test_an_order_may_be_chosen_while_each_commit_of_an_add_is_under_way(tmp_path) -> None:
    """Also where the index had segments before, and where documents are replaced."""
    live = sixteen_words(100)
    with nd.Index.create(tmp_path / "x", recipe=RECIPE, engine="cpu") as index:
        for number in range(7):
            some = dict(list(live.items())[number * 10 : number * 10 + 10])
            index.add(table(list(some), list(some.values())), id_column="id")
        some = dict(list(live.items())[70:]) | {f"d{i}": f"now {i} is another text" for i in range(0, 70, 9)}
        index.add(table(list(some), list(some.values())), id_column="id", commit_every=10, replace=True)
        live |= some
        order = list(dict.fromkeys([id for id in live if id not in some] + list(some)))
        assert_tables_are_those_of_the_entries(index)
        same_as_dedup(index, {id: live[id] for id in order})


def test_a_segment_of_another_order_is_refused(tmp_path) -> None:
    """The file of another index's order, with right checksums, in the place of the index's own."""
    for name, seed in (("x", 1), ("y", 2)):
        live = sixteen_words(40, seed)
        with nd.Index.create(tmp_path / name, recipe=RECIPE, engine="cpu") as index:
            index.add(table(list(live), list(live.values())), id_column="id")
            places = index._opened.manifest.segments
    (number,) = {place.order for place in places}
    path = f"segments/{number:08}"
    (tmp_path / "x" / path).write_bytes((tmp_path / "y" / path).read_bytes())
    with nd.Index.open(tmp_path / "x", engine="cpu") as index:
        assert len(index) == 40
        for call in (
            lambda: index.query("to be"),
            lambda: index.query(table(["a"], ["to be"]), id_column="id"),
            index.decide,
            index.check,
            lambda: index.add(table(["a"], ["to be"]), id_column="id"),
        ):
            with pytest.raises(
                nd.errors.DamagedError, match=r"follow another order than those .* `neardup index compact --re"
            ):
                call()


@pytest.fixture
def wrong(tmp_path, monkeypatch):
    """An index as `add` left it when the postings of a segment under way followed the order before the last one."""
    monkeypatch.setattr(adding, "following", lambda new, *_: new)
    monkeypatch.setattr(writer, "order_of", order_without_a_check)
    monkeypatch.setattr(writer, "header_of", lambda _: {})
    live = sixteen_words(340)
    for i in range(180, 340, 2):  # near-duplicates of the documents of the ninth commit
        live[f"d{i}"] = " ".join(["other", *live[f"d{160 + i // 2 % 20}"].split()[1:]])
    with nd.Index.create(tmp_path / "x", recipe=RECIPE, engine="cpu") as index:
        monkeypatch.setattr(adding, "order_of", order_without_a_check)
        monkeypatch.setattr(Snapshot, "order", property(lambda snapshot: order_without_a_check(snapshot.segments)))
        index.add(table(list(live), list(live.values())), id_column="id", commit_every=20)
    monkeypatch.undo()
    return tmp_path / "x", live


def order_without_a_check(segments):
    return next((each.order for each in segments if each.order is not None), None)


def test_check_finds_wrong_postings_and_a_rebuild_repairs_them(wrong) -> None:
    folder, live = wrong
    with nd.Index.open(folder, engine="cpu") as index:
        found = index.query(table(list(live), list(live.values())), id_column="id")
        answers = set(zip(found["query_id"].to_pylist(), found["id"].to_pylist(), strict=True))
        assert [id for id in live if (id, id) not in answers]
        with pytest.raises(AssertionError):
            same_as_dedup(index, live)
        for everything in (False, True):
            with pytest.raises(nd.errors.DamagedError, match=r"posting table is not that .* `neardup index compact"):
                index.check(all=everything)
        index.compact(rebuild=True)
        assert index.check(all=True)["compared"] == index.info()["entries"]
        assert_tables_are_those_of_the_entries(index)
        found = index.query(table(list(live), list(live.values())), id_column="id")
        answers = set(zip(found["query_id"].to_pylist(), found["id"].to_pylist(), strict=True))
        assert not [id for id in live if (id, id) not in answers]
        same_as_dedup(index, live)
        same_as_dedup(index, live, keep="longest")
        index.add(table(["e"], [live["d170"] + " more"]), id_column="id")
        same_as_dedup(index, live | {"e": live["d170"] + " more"})


def test_the_commands_that_check_and_rebuild(wrong, capsys) -> None:
    folder, live = wrong
    for words in (["index", "check", f"{folder}"], ["index", "check", f"{folder}", "--all"]):
        with pytest.raises(nd.errors.DamagedError, match="`neardup index compact --rebuild`"):
            run(words)
    assert run(["index", "compact", f"{folder}", "--rebuild"]) == 0
    assert run(["index", "check", f"{folder}", "--all", "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["compared"] == said["entries"] and said["documents"] == len(live)
