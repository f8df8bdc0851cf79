"""Sets of candidates that are compared a block at a time."""

import numpy as np
import pytest
from flat import flat

import neardup_gpu
from neardup_gpu.engine import memory
from neardup_gpu.index import comparing


def texts(number: int, seed: int) -> list[str]:
    """Six texts in turn, each time with another word changed."""
    random = np.random.default_rng(seed)
    stems = [[f"w{kind}x{place}" for place in range(50 + 10 * kind)] for kind in range(6)]
    found = []
    for document in range(number):
        words = list(stems[document % 6])
        words[random.integers(len(words))] = f"changed{seed}x{document}"
        found.append(" ".join(words))
    return found


@pytest.mark.parametrize(
    "asked", [{}, {"nearest": 2}, {"containment": 0.7}, {"containment": 0.7, "direction": "of"}], ids=str
)
def test_blocks_change_no_answer(tmp_path, monkeypatch, asked):
    """With room for two sets or so, what is found is the same, in many blocks; no block holds more than that."""
    with neardup_gpu.Index.create(tmp_path / "index", threshold=0.6, containment=2) as index:
        index.add({"text": texts(60, 0)}, commit_every=25)
    queries = texts(30, 1)
    sizes: list[list[int]] = []

    def watched(measure, prepared, left, right, least, backend):
        sizes.append(prepared.sizes.tolist())
        return worth(measure, prepared, left, right, least, backend)

    worth = comparing.worth
    monkeypatch.setattr(comparing, "worth", watched)

    def answers():
        sizes.clear()
        with neardup_gpu.Index.open(tmp_path / "index") as index:
            return flat(index.query, texts=queries, **asked), [
                flat(index.query, query, **asked) for query in queries[:3]
            ]

    whole, each = answers()
    assert len(whole) > 50 and len(sizes) == 4
    room = 250
    monkeypatch.setattr(memory, "HOST_BYTES", 8 * room)
    monkeypatch.setattr(comparing, "FEW", 0)
    small, small_each = answers()
    assert small.equals(whole) and all(one.equals(other) for one, other in zip(each, small_each, strict=True))
    assert len(sizes) > 20 and max(map(sum, sizes)) <= room
