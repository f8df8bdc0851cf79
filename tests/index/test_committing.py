"""Commits beside the thread that adds: what goes on meanwhile, what fails, and what is there after an interrupt."""

import logging
import threading
from collections.abc import Iterator

import pytest
from growing import Texts, recipe_of, same_as_dedup, table

import neardup_gpu as nd
from neardup_gpu.index import adding
from neardup_gpu.index.committing import Commits
from neardup_gpu.index.writer import Writer

TEXTS = Texts(51).some(24)
LIVE = {f"d{i}": text for i, text in enumerate(TEXTS)}


@pytest.fixture
def index(tmp_path) -> Iterator[nd.Index]:
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(max_partners=2), engine="cpu") as made:
        yield made


def at_change(monkeypatch, number: int, act) -> list[str]:
    """Do something before a commit is made; the threads that made them."""
    change, threads = Writer.change, list[str]()

    def counted(*arguments, **options):
        threads.append(threading.current_thread().name)
        if len(threads) == number:
            act()
        change(*arguments, **options)

    monkeypatch.setattr(Writer, "change", counted)
    return threads


def test_documents_are_looked_up_while_those_before_are_written(index, monkeypatch) -> None:
    """A commit waits until the search for what the next documents resemble is done."""
    searched, of, number = threading.Event(), adding.segment_of, []

    def search(*arguments):
        found = of(*arguments)
        number.append(0)
        if len(number) == 2:
            searched.set()
        return found

    monkeypatch.setattr(adding, "segment_of", search)
    threads = at_change(monkeypatch, 1, lambda: searched.wait(60))
    index.add(table(list(LIVE), TEXTS), id_column="id", commit_every=8)
    assert searched.is_set() and set(threads) == {"neardup-commit_0"}
    same_as_dedup(index, LIVE)
    assert not any(each.name.startswith("neardup-commit") for each in threading.enumerate())


def test_a_commit_that_fails_ends_the_adding(index, monkeypatch) -> None:
    def full() -> None:
        raise nd.errors.OutputError("full")

    at_change(monkeypatch, 2, full)
    with pytest.raises(nd.errors.OutputError, match=r"^full$"):
        index.add(table(list(LIVE), TEXTS), id_column="id", commit_every=8)
    assert len(index) == 8
    monkeypatch.undo()
    index.add(table(list(LIVE)[8:], TEXTS[8:]), id_column="id", commit_every=8)
    same_as_dedup(index, LIVE)


def test_an_error_beside_another_is_told(index, monkeypatch, caplog) -> None:
    ids = [*LIVE][:16]
    ids[12] = "d0"
    begun = threading.Event()

    def fail() -> None:
        begun.wait(60)
        raise nd.errors.OutputError("the disk has failed")

    end = Commits.__exit__
    monkeypatch.setattr(Commits, "__exit__", lambda *given: (begun.set(), end(*given))[1])
    at_change(monkeypatch, 1, fail)
    with caplog.at_level(logging.WARNING), pytest.raises(nd.errors.InputError, match="id 'd0' stands for several"):
        index.add(table(ids, TEXTS[:16]), id_column="id", commit_every=8)
    assert "the disk has failed" in caplog.text and len(index) == 0


def test_what_is_being_written_is_written_after_an_interrupt(index, monkeypatch) -> None:
    of, number = adding.segment_of, []

    def search(*arguments):
        number.append(0)
        if len(number) == 3:
            raise KeyboardInterrupt
        return of(*arguments)

    monkeypatch.setattr(adding, "segment_of", search)
    with pytest.raises(KeyboardInterrupt):
        index.add(table(list(LIVE), TEXTS), id_column="id", commit_every=8)
    assert len(index) == 16
    monkeypatch.undo()
    index.add(table(list(LIVE)[16:], TEXTS[16:]), id_column="id")
    same_as_dedup(index, LIVE)


def test_documents_of_a_commit_that_is_being_made_are_found_and_refused(index, monkeypatch) -> None:
    """Ids, words and near-duplicates."""
    ids = [f"e{i}" for i in range(24)]
    texts = [f"{text} end" for text in TEXTS[:8]] + TEXTS[:8] + TEXTS[:8]
    threads = at_change(monkeypatch, 0, None)
    index.add(table(ids, texts), id_column="id", commit_every=8)
    same_as_dedup(index, dict(zip(ids, texts, strict=True)))
    with pytest.raises(nd.errors.InputError, match="id 'f1' stands for several documents"):
        index.add(table(["f0", "f1", "f2", "f1"], TEXTS[:4]), id_column="id", commit_every=2)
    assert len(threads) == 4 and len(index) == 26


def test_one_thread_commits_by_itself(index, monkeypatch) -> None:
    index.close()
    threads = at_change(monkeypatch, 0, None)
    with nd.Index.open(index.folder, engine=nd.Engine(backend="cpu", threads=1)) as alone:
        alone.add(table(list(LIVE), TEXTS), id_column="id", commit_every=8)
        same_as_dedup(alone, LIVE)
    assert set(threads) == {"MainThread"}


def test_what_comes_before_an_error_is_committed(index, monkeypatch) -> None:
    """Of what is sketched side by side nothing is lost where the input ends in an error."""
    pieces = adding.Adding._pieces

    def cut(*arguments):
        yield from pieces(*arguments)
        raise nd.errors.InputError("cut")

    monkeypatch.setattr(adding.Adding, "_pieces", cut)
    with pytest.raises(nd.errors.InputError, match=r"^cut$"):
        index.add(table(list(LIVE), TEXTS), id_column="id", commit_every=3)
    assert len(index) == 24
    same_as_dedup(index, LIVE)
