"""Scans chunk by chunk and joins in memory: crowds of queries, and files of .npy."""

import numpy as np
import pytest
from near import brute, crowded, planted, rows_of

from neardup_gpu import hamming
from neardup_gpu.errors import InputError
from neardup_gpu.hamming import members

pytestmark = pytest.mark.quick


def test_of_very_many_identical_queries_the_first_are_named_and_the_others_counted():
    queries = np.array([7] * 10 + [8] + [6] * 9 + [2**40], np.uint64)
    options = {"bucket_limit": 9, "bucket_probe": 4}
    found = hamming.join(np.array([7, 2**50, 6, 7], np.uint64), queries, 1, **options)
    sevens, sixes = list(range(4)), list(range(11, 20))
    expected = [(row, query, 0) for row in (0, 3) for query in sevens]
    expected += [(row, query, 1) for row in (0, 3) for query in sixes]
    expected += [(2, query, 1) for query in sevens] + [(2, query, 0) for query in sixes]
    assert rows_of(found) == sorted(expected)
    assert (found.num_large, found.num_uncompared) == (3, 3 * 6)
    whole = hamming.join(np.zeros(5000, np.uint64), np.zeros(700, np.uint64), 3)
    assert len(whole.row) == 5000 * 32 and whole.query.max() == 31
    assert (whole.num_large, whole.num_uncompared) == (5000, 5000 * 668)


@pytest.mark.parametrize("num_words", [1, 2])
@pytest.mark.parametrize("part", [1, 100, 2**22])
def test_crowds_of_queries_are_scanned_in_parts(num_words, part, monkeypatch):
    queries = crowded(num_words)
    values = np.concatenate([queries[:7], queries[-30:], queries[:3]])
    chunks = [values[:10], values[:0], values[10:]]
    options = {"bucket_limit": 50, "bucket_probe": 20}
    whole = list(hamming.scan(chunks, queries, 2, **options))
    assert len(whole) == 3
    monkeypatch.setattr(members, "PART", part)
    parts = list(hamming.scan(chunks, queries, 2, **options))
    assert (len(parts) > 20) == (part == 1) and (len(parts) > 3) == (part < 2**22)
    assert all(len(found.row) <= part or len(set(found.row)) == 1 for found in parts)
    assert [match for found in parts for match in rows_of(found)] == [m for found in whole for m in rows_of(found)]
    for field in ("num_large", "num_uncompared"):
        assert sum(getattr(each, field) for each in parts) == sum(getattr(each, field) for each in whole) > 0
    assert rows_of(hamming.join(values, queries, 2, bucket_limit=1000)) == brute(values, queries, 2)


@pytest.mark.parametrize("num_words", [1, 2])
def test_what_is_found_at_a_time_is_bounded(num_words, monkeypatch):
    """A scan, and the answers of an index, come in parts that follow the number of matches, and are the same."""
    values = planted(np.random.default_rng(4), 6, num_words)
    queries, index = values[::2], hamming.HammingIndex(values, 3)
    whole = hamming.join(values, queries, 3), index.query(queries)
    monkeypatch.setattr(members, "FIRST", 2)
    monkeypatch.setattr(members, "PART", 20)
    parts = list(hamming.scan([values], queries, 3))
    assert len(parts) > 5 and max(len(each.row) for each in parts) < len(whole[0].row)
    assert [match for each in parts for match in rows_of(each)] == rows_of(whole[0])
    answers = [np.concatenate(columns) for columns in zip(*index.parts(queries), strict=True)]
    assert np.array_equal(np.bincount(answers[0], minlength=len(queries)), np.diff(whole[1][0].offsets))


@pytest.mark.parametrize("num_words", [1, 2])
def test_chunks_of_a_file_are_scanned_one_after_another(tmp_path, num_words):
    generator = np.random.default_rng(2)
    values, queries = planted(generator, 3, num_words), planted(generator, 3, num_words)
    values = np.concatenate([values, queries[-40:], values[:9]])
    queries = np.concatenate([queries, queries[:5]])
    np.save(tmp_path / "existing.npy", values)
    chunks = list(hamming.read_chunks(tmp_path / "existing.npy", chunk_bytes=8 * num_words * 100 + 7))
    assert [len(chunk) for chunk in chunks] == [100] * (len(values) // 100) + [len(values) % 100]
    assert np.array_equal(np.concatenate(chunks), values)
    found = list(hamming.scan(chunks, queries, 3))
    assert len(found) == len(chunks)
    assert [match for part in found for match in rows_of(part)] == brute(values, queries, 3)
    assert list(hamming.scan([], queries, 3)) == []


def test_files_that_hold_no_fingerprints(tmp_path):
    path = tmp_path / "x.npy"
    with pytest.raises(InputError, match="no such file"):
        list(hamming.read_chunks(path))
    path.write_text("text")
    with pytest.raises(InputError, match="cannot be read as"):
        list(hamming.read_chunks(path))
    np.save(path, np.zeros(5))
    with pytest.raises(InputError, match="holds float64"):
        list(hamming.read_chunks(path))
    for shape in ((4, 3), (2, 2, 2), ()):
        np.save(path, np.zeros(shape, np.uint64))
        with pytest.raises(InputError, match=r"fingerprints are uint64 of shape \(rows,\) or \(rows, 2\)"):
            list(hamming.read_chunks(path))
    np.save(path, np.zeros((4, 2), np.uint64, order="F"))
    with pytest.raises(InputError, match="column by column"):
        list(hamming.read_chunks(path))
    np.save(path, np.zeros((50, 2), np.uint64))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="ends 3 fingerprints early"):
        list(hamming.read_chunks(path))
    np.save(path, np.zeros(500, np.uint64))
    path.write_bytes(path.read_bytes()[:-80])
    with pytest.raises(InputError, match="ends 10 fingerprints early"):
        list(hamming.read_chunks(path))
    np.save(path, np.arange(5, dtype=">u8"))
    assert [chunk.tolist() for chunk in hamming.read_chunks(path)] == [[0, 1, 2, 3, 4]]
