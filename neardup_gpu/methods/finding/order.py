"""The order of shingles that prefixes are taken in: frozen when an index gets its first shingles.

Shingles are ordered by (count, shingle), where the count is that of a table of counters which many shingles share
(`kernels/rarity.py`), made of the first documents and never changed: so all entries and all queries use one order,
which is all that correctness asks for. A shingle that was not seen then is among the rarest, unless others share its
counter. Counters begin at 2, as `kernels/prefixes.py` skips what is counted once: here any shingle may come again.

The table is a file of its own among the segments, which the manifest names with each segment whose postings follow it.
Where all segments are merged into one, no other posting follows it: as long as that is of few shingles, their postings
are made again, in an order that is made of all of them. So an index that began with one document is soon as fast as one
that began with many.

An order has an id, the checksum of its table. The headers of its file and of each segment whose postings follow it
record the id as "order". A segment that records another id than its order has is refused (`Snapshot.order`). Segments
of earlier versions record no id.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neardup_gpu.kernels import gather, rarity
from neardup_gpu.kernels._cached import cached_property

from ...data import Ragged
from ...records import dataclass
from ...store.arrays import ArraysFile, ArraysFormat, Limits
from ...store.checksums import checksum

ORDER = ArraysFormat(
    magic=b"NEARDUPO",
    version=1,
    name="an order of shingles of an index",
    advice="neardup index create makes an index",
    again="make the index again from its documents",
)

MOST_BITS = 22
"""A table has at most 2**22 counters, which take 4.25 MiB."""

MOST_COUNTED = 1 << 22
"""Most shingles that are counted, about; of more, those of every second entry, or every third, and so on."""

FEWEST = 2
"""The place where counters begin."""


def _limits_of(arrays: dict[str, np.ndarray]) -> dict[str, Limits]:
    """Check the shapes of a table of counters; return the limits of its values.

    Raises
    ------
    KeyError, ValueError
        If it is not such a table.
    """
    counters, beyond = arrays["counters"], arrays["beyond"]
    bits = len(counters).bit_length() - 1
    sound = counters.shape == (1 << bits,) and rarity.FEWEST_BITS <= bits <= MOST_BITS
    if not sound or beyond.shape != (1 << (bits - rarity.SHARED_BITS),):
        raise ValueError("counters")
    if (counters.dtype, beyond.dtype) != (np.uint8, np.uint32):
        raise ValueError("counters")
    return {"counters": Limits(FEWEST, 255)}


def header_of(order_id: str | None) -> dict[str, str]:
    """Return the header of a file that records the id of an order, if there is one."""
    return {} if order_id is None else {"order": order_id}


@dataclass
class Order:
    """An order of all shingles.

    file : ArraysFile or None
        What it is mapped from; None for one that is in memory alone.
    made : tuple of arrays or None
        The table, if it is in memory.
    """

    file: ArraysFile | None = None
    made: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(cls, sets: Ragged) -> Order:
        """The order in which the shingles that some sets have come last, the commonest last of all."""
        step = -(-len(sets.values) // MOST_COUNTED)
        values = sets.values
        if step > 1:
            values, _ = gather.cpu(sets.values, sets.offsets, np.arange(0, len(sets), step))
        bits = min(max(rarity.FEWEST_BITS, (len(values) - 1).bit_length()), MOST_BITS)
        counters, beyond = rarity.cpu(values, bits)
        lifted = np.minimum(counters, rarity.MOST - FEWEST) + np.uint8(FEWEST)
        return cls(made=(lifted, beyond))

    @classmethod
    def load(cls, path: Path) -> Order:
        """Map the file of an order: it may vanish from its folder as soon as there is another one.

        Raises
        ------
        InputError, DamagedError
            If it is not there, or its header is not as it was written.
        """
        return cls(ArraysFile(path, ORDER, at_once=0, inside=True, limits=_limits_of))

    @cached_property
    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """Its counters, as the kernel `prefixes` takes them.

        Raises
        ------
        DamagedError
            If its file is not as it was written.
        """
        if self.made is not None:
            return self.made
        assert self.file is not None
        self.file.verify_all()
        return self.file.arrays["counters"], self.file.arrays["beyond"]

    @cached_property
    def id(self) -> str:
        """The checksum of its table, 16 hexadecimal digits, as the header of its file records it.

        Raises
        ------
        DamagedError
            If its file is of an earlier version, which records no id, and its table is not as it was written.
        """
        if self.file is not None and "order" in self.file.header:
            return str(self.file.header["order"])
        return f"{checksum(*(np.ascontiguousarray(each) for each in self.table)):016x}"

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The content of its file."""
        return dict(zip(("counters", "beyond"), self.table, strict=True))
