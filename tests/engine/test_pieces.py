"""What memory that runs out for pieces of one kind says of those of another: nothing."""

import numpy as np

from neardup_gpu.engine.gpu import GpuRuntime
from neardup_gpu.engine.pieces import Numbers


def test_tables_that_do_not_fit_leave_blocks_of_pairs_whole(monkeypatch):
    runtime = GpuRuntime(1 << 20, None, {})
    monkeypatch.setattr(runtime, "release", lambda: None)
    failed = []

    def run(piece):
        if piece.kind == "tables" and not failed:
            failed.append(piece)
            raise MemoryError
        return len(piece.numbers)

    assert list(runtime.map(run, [Numbers(range(15), "tables")])) == [7, 4, 4]
    assert list(runtime.map(run, [Numbers(np.arange(100_000), "pairs")])) == [100_000]
    assert list(runtime.map(run, [Numbers(range(15), "tables")])) == [7, 4, 4]
