"""Which segments are merged, and how often each document is written."""

from neardup_gpu.index.manifest import SegmentPlace
from neardup_gpu.index.merging import RATIO, num_due, tier


def grown(batches: list[int]) -> tuple[list[int], int]:
    """Documents of each segment after some batches, and documents that were written."""
    sizes: list[int] = []
    written = 0
    for batch in batches:
        sizes.append(batch)
        written += batch
        while number := num_due([SegmentPlace(0, 0, 0, size, size, 0, 0) for size in sizes]):
            sizes[-number:] = [sum(sizes[-number:])]
            written += sizes[-1]
        of_tiers = [tier(size) for size in sizes]
        assert max(map(of_tiers.count, of_tiers)) < RATIO
    return sizes, written


def test_a_document_is_written_once_for_each_tier() -> None:
    for batches, most in ((100, 3), (1000, 4)):
        sizes, written = grown([10_000] * batches)
        assert sum(sizes) == 10_000 * batches and written <= most * sum(sizes)


def test_small_pieces_do_not_stay_small() -> None:
    sizes, written = grown([1] * 5000)
    assert len(sizes) <= 5 * (RATIO - 1) and written <= 6 * 5000


def test_a_large_segment_is_not_merged_with_a_few_small_ones() -> None:
    sizes, _ = grown([1_000_000, *[10] * 7])
    assert sizes == [1_000_000, *[10] * 7]
    assert grown([1_000_000, *[10] * 8])[0] == [1_000_000, 80]
