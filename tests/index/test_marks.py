"""Marks: which segments they cover as an index grows, and that nothing is lost by them."""

import numpy as np
import pytest
from growing import Texts, recipe_of, same_as_dedup, table

import neardup_gpu as nd
from neardup_gpu.index import marks as module
from neardup_gpu.index.marks import Marks
from neardup_gpu.index.segments import Segment
from neardup_gpu.kernels._probing import sort_queries
from neardup_gpu.methods.finding.contract import SortedQueries

RANDOM = np.random.default_rng(5)


def segment(first: int, number: int) -> Segment:
    """Entries from a sequence number on, with two tables."""
    keys = np.sort(RANDOM.integers(0, 2**64, (2, number), np.uint64), axis=1)
    rows = np.tile(np.arange(number, dtype=np.uint32), (2, 1))
    sequence = first + np.arange(number)
    return Segment.in_memory({"sequence": sequence, "founders": sequence, "x_keys": keys, "x_rows": rows}, "integer")


def joined(*parts: Segment) -> Segment:
    """What a merge makes of neighbours."""
    found = segment(parts[0].first, sum(part.num_entries for part in parts))
    found.arrays["x_keys"] = np.sort(np.concatenate([part.arrays["x_keys"] for part in parts], axis=1), axis=1)
    return found


def asking(segments: list[Segment], others: int) -> SortedQueries:
    """All keys of some segments, and other keys."""
    keys = [each.arrays["x_keys"].T for each in segments]
    queries = np.concatenate([*keys, RANDOM.integers(0, 2**64, (others, 2), np.uint64)])
    return SortedQueries(*sort_queries(queries))


def left(marks: Marks, segments: list[Segment], others: int = 100) -> tuple[int, int]:
    """Looks for all that is there: all keys of the covered segments are left; (first covered, how many are left)."""
    found, number = marks.drop_absent("x", asking(segments, others), segments)
    for keys, size, column in zip(found[0], found[2], range(2), strict=True):
        for each in segments[number:]:
            assert np.isin(each.arrays["x_keys"][column], keys[:size]).all()
    return number, int(found[2].sum())


def test_what_is_added_is_covered_and_older_ones_when_it_pays() -> None:
    marks = Marks()
    assert marks.drop_absent("x", asking([], 3), [])[1] == 0
    segments = [segment(0, 50_000), segment(50_000, 3000)]
    few = asking(segments[1:], 0)
    for asked, covered in ((10, 2), (180, 1), (1000, 1), (2200, 0)):  # 16 entries for each that is asked
        some = SortedQueries(few.keys[:, :asked].copy(), few.numbers[:, :asked].copy(), np.full(2, asked))
        assert marks.drop_absent("x", some, segments)[1] == covered
    segments.append(segment(53_000, 500))
    assert left(marks, segments)[0] == 0


def test_merged_segments_are_covered(monkeypatch) -> None:
    """Also one of which a part was added since the last look."""
    monkeypatch.setattr(module, "WORTH", 0)
    marks, first = Marks(), segment(0, 300)
    assert left(marks, [first])[0] == 1
    some = [segment(300 + 100 * i, 100) for i in range(4)]
    assert left(marks, [first, *some])[0] == 1
    assert left(marks, [first, *some[:1], joined(*some[1:3]), some[3]])[0] == 1
    together = joined(*some, segment(700, 100))
    assert left(marks, [first, together])[0] == 1
    segments = [joined(first, together), segment(800, 3)]
    assert left(marks, segments)[0] == 1
    monkeypatch.setattr(module, "WORTH", 16)
    assert left(marks, segments)[0] == 0


@pytest.mark.parametrize("expected", [0, 100_000])
def test_there_are_more_of_them_as_an_index_grows(expected: int) -> None:
    marks, segments = Marks(expected), list[Segment]()
    for i in range(20):
        segments.append(segment(1000 * i, 1000))
        number, some = left(marks, segments, 10_000)
        assert number == 0
        assert some - 2 * 1000 * len(segments) < 0.04 * 20_000  # of others; 0.012 by `test_probe.py`


def test_too_many_keys_are_not_marked(monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_KEYS", 5000)
    marks, segments = Marks(), [segment(0, 2000)]
    asked = asking(segments, 1000)
    assert marks.drop_absent("x", asked, segments)[1] == 0
    segments.append(segment(2000, 1000))
    for _ in range(2):
        found, number = marks.drop_absent("x", asked, segments)
        assert found is asked and number == 2


def test_inputs_are_merged_before_anything_is_looked_up_of_the_last(tmp_path) -> None:
    """Eight files of a document each are merged; the next ones have copies and near-duplicates of all of them."""
    texts = Texts(41).some(60)
    paths = []
    for i, text in enumerate([*texts, *reversed(texts)]):
        paths.append(tmp_path / f"{i:03}.jsonl")
        paths[-1].write_text(f'{{"id": "d{i}", "text": "{text}"}}\n')
    live = {f"d{i}": text for i, text in enumerate([*texts, *reversed(texts)])}
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(max_partners=2), engine="cpu") as index:
        added = index.add([str(path) for path in paths], id_column="id")
        assert added.documents == len(live) and index.info()["segments"] < 20
        same_as_dedup(index, live)
        index.add(table(["e"], [texts[0]]), id_column="id")
        same_as_dedup(index, live | {"e": texts[0]})
