"""An index against a dictionary of texts, by random steps; Hypothesis finds the shortest way to a difference."""

import os
import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from grids import fewer
from growing import same_as_dedup, value_of, valued
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from index_steps import KINDS, STEPS_OF_A_RUN, take_steps

import neardup_gpu as nd

# Few words, so that many documents resemble one another.
TEXTS = st.one_of(
    st.lists(st.sampled_from("abcd"), max_size=7).map(" ".join),
    st.sampled_from(["a b c d a c b d", "a b c d a c b c", "a b c d a c b a", "b b c d a c b d", ""]),
)


class Growing(RuleBasedStateMachine):
    """The index, and what it should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.live: dict[str, str] = {}
        self.number = 0

    @initialize(
        most=st.sampled_from([1, 2, None]),
        method=st.sampled_from(
            [
                nd.MinHash(filter=(4, 1, 1)),
                nd.MinHash(filter=(4, 1, 2)),
                nd.SimHash(radius=16, bucket_limit=3),
                nd.Exact(),
            ]
        ),
        verified=st.booleans(),
    )
    def create(self, most: int | None, method: nd.MinHash | nd.SimHash | nd.Exact, verified: bool) -> None:
        self.is_exact = method.name == "exact"
        threshold = 0.5 if verified or method.name != "simhash" else None
        recipe = nd.Recipe(method=method, shingles=nd.Shingles(2), threshold=threshold, max_partners=most)
        self.index = nd.Index.create(self.folder / "x", recipe=recipe, columns="value", engine="cpu")

    @rule(
        texts=st.lists(TEXTS, min_size=1, max_size=12), commit_every=st.sampled_from([1, 3, 100]), output=st.booleans()
    )
    def add(self, texts: list[str], commit_every: int, output: bool) -> None:
        ids = [f"d{self.number + i}" for i in range(len(texts))]
        self.number += len(texts)
        file = self.folder / f"{self.number}.parquet" if output else None
        self.index.add(valued(ids, texts), id_column="id", commit_every=commit_every, output=file)
        self.live |= dict(zip(ids, texts, strict=True))
        if file is not None:
            for each in pq.read_table(file).to_pylist():
                assert each["kept"] == (each["duplicate_of"] is None) and each["group"] in self.live
                assert each["duplicate_of"] in (None, each["group"])

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from(sorted(self.live)), min_size=1, max_size=4, unique=True))
        texts = [data.draw(st.one_of(st.just(self.live[id]), TEXTS)) for id in ids]
        self.index.add(valued(ids, texts), id_column="id", replace=True)
        self.live = {id: text for id, text in self.live.items() if id not in ids} | dict(zip(ids, texts, strict=True))

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from(sorted(self.live)), min_size=1, max_size=6, unique=True))
        assert self.index.remove(ids).documents == len(ids)
        for id in ids:
            del self.live[id]

    @rule(before=st.integers(0, 5))
    def remove_before(self, before: int) -> None:
        gone = [id for id in self.live if (value_of(id) or before) < before]
        assert self.index.remove(before=before, column="value").documents == len(gone)
        for id in gone:
            del self.live[id]

    @rule()
    def compact(self) -> None:
        self.index.compact()

    @rule()
    def reopen(self) -> None:
        self.index.close()
        self.index = nd.Index.open(self.folder / "x", engine="cpu")

    @rule(how=st.sampled_from([{}, {}, {"keep": "longest"}, {"cluster": "components"}, {"keep": "value:desc"}]))
    def decide(self, how: dict[str, str]) -> None:
        assert len(self.index) == len(self.live)
        same_as_dedup(self.index, self.live, valued, **how)

    @rule(text=TEXTS)
    def query(self, text: str) -> None:
        found = self.index.query(text, columns="value")
        one = _shingles(text)
        for match in found.to_pylist():
            other = _shingles(self.live[match["id"]])
            assert match["value"] == value_of(match["id"])
            if match["exact"]:
                assert match["resemblance"] == len(one & other) / len(one | other) >= 0.5
            else:
                assert match["low"] <= match["cosine"] <= match["high"] and match["distance"] <= 16
        if self.is_exact and one:
            sets = {id: _shingles(each) for id, each in self.live.items()}
            near = {id for id, each in sets.items() if each and len(one & each) / len(one | each) >= 0.5}
            assert set(found["id"].to_pylist()) == near
        same = [id for id, each in self.live.items() if text.split() and each.split() == text.split()]
        assert found["id"].to_pylist()[: len(same)] == same or not same or set(same) <= set(found["id"].to_pylist())

    def teardown(self) -> None:
        if hasattr(self, "index"):
            self.index.check()
            self.index.close()
        shutil.rmtree(self.folder)


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[i : i + 2]) for i in range(max(1, len(words) - 1))} if words else set()


def test_an_index_is_a_dictionary_of_texts() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    checks = settings(
        max_examples=fewer(25), stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(Growing, settings=checks)


def test_random_steps_equal_brute_force(tmp_path: Path) -> None:
    """Take 40 steps of each kind of index, or NEARDUP_OPERATIONS steps of all; some add by 9, 17 and 65 commits."""
    take_steps(int(os.environ.get("NEARDUP_OPERATIONS", STEPS_OF_A_RUN * len(KINDS))), tmp_path)
