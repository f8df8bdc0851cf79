"""Leases of places, whose time goes fast here.

The places are folders, where files are written and read as wholes, as objects of a store are: readers of one file in
fsspec's memory share its position, so that threads disturb one another there.
"""

import json
import threading
import time

import pytest

from neardup_gpu.errors import OutputError
from neardup_gpu.store import leases
from neardup_gpu.store.leases import Lease
from neardup_gpu.store.places import Place


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setattr(leases, "LEASE", 4.0)
    monkeypatch.setattr(leases, "MOMENT", 0.05)
    return Place.of(tmp_path / "work")


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def renewed(place):
    return json.loads(place.read_text("lock"))["renewed"]


def says_that_it_is_lost(lease):
    try:
        lease.check()
    except OutputError as error:
        return str(error)
    return ""


def test_one_at_a_time(place):
    with Lease(place, "lock") as lease:
        before = renewed(place)
        with (
            pytest.raises(OutputError, match=r"work: another run works in this folder \(process \d+ of .* in \d s$"),
            Lease(place, "lock"),
        ):
            pass
        wait_for(lambda: renewed(place) > before)  # it is renewed, and so holds for longer than a lease
        lease.check()
    assert not place.exists("lock")
    with Lease(place, "lock"):
        pass


def test_what_a_killed_run_left_is_taken_over_in_time(place):
    left = {"owner": "killed", "where": "process 7 of elsewhere", "renewed": time.time() - 1}
    place.write_text("lock", json.dumps(left))
    with pytest.raises(OutputError, match=r"process 7 of elsewhere, \d s ago\).* if it was killed, run the same"):
        Lease(place, "lock").__enter__()
    assert json.loads(place.read_text("lock")) == left
    place.write_text("lock", json.dumps({**left, "renewed": time.time() - 4.5}))
    with Lease(place, "lock") as lease:
        lease.check()
    assert not place.exists("lock")


def test_who_is_overtaken_learns_it_and_leaves_the_lease(place):
    other = json.dumps({"owner": "other", "where": "process 7 of elsewhere", "renewed": time.time() + 100})
    with Lease(place, "lock") as lease:
        wait_for(lambda: place.write_text("lock", other) or says_that_it_is_lost(lease))
        assert "another run works in this folder by now (process 7 of elsewhere)" in says_that_it_is_lost(lease)
    assert place.read_text("lock") == other


def test_a_store_that_does_not_answer_any_more(place, monkeypatch):
    with Lease(place, "lock") as lease:
        monkeypatch.setattr(Place, "read_text", refused)
        wait_for(lambda: says_that_it_is_lost(lease))
        assert "could not be renewed for 4 s (no answer)" in says_that_it_is_lost(lease)


def refused(*_):
    raise OutputError("no answer")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"owner": 1, "where": 2, "renewed": "x"}'])
def test_a_file_of_somebody_else(place, text):
    place.write_text("lock", text)
    with pytest.raises(OutputError, match="its file lock says of no run that it works there; remove that file"):
        Lease(place, "lock").__enter__()
    assert place.read_text("lock") == text


def test_of_some_that_begin_at_once_one_has_it(place, monkeypatch):
    monkeypatch.setattr(leases, "MOMENT", 1.0)
    barrier, held, refusals = threading.Barrier(6), [], []

    def begin():
        barrier.wait()
        try:
            lease = Lease(place, "lock").__enter__()
        except OutputError as error:
            refusals.append(error)
        else:
            held.append(lease)

    threads = [threading.Thread(target=begin) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refusals)) == (1, 5)
    held[0].__exit__()
