"""The tables of an index: whatever builds them, asks them or compares them with their checksums."""

from __future__ import annotations

from typing import Any

import numpy as np

from neardup_gpu.kernels import hamming_probe, hamming_table, huffman_encode, huffman_probe
from neardup_gpu.kernels._huffman import BLOCK_BITS, SYMBOLS, HuffmanTables, information_bits
from neardup_gpu.kernels._launch import most_rows, on_device, to_host
from neardup_gpu.kernels.hamming import NO_LIMIT

from ..engine.choice import kernel, resolve
from ..errors import DamagedError
from ..methods.table_design import TableDesign
from ..store.arrays import ArraysFile


class HammingTables:
    """Sorted tables of distinct fingerprints, plain or compressed, in memory or mapped from a file.

    Parameters
    ----------
    arrays : dict of str to array
        words, uint64, shape (tables, n):
            The sorted words of each table; or in their place, compressed, the arrays of `_huffman.HuffmanTables`.
        rows, uint32, shape (tables, n):
            The row of each word.
        fingerprints, uint64, shape (n, 2):
            For 128 bits alone, row by row; of 64 bits, a word of a table is the whole fingerprint.
    file : ArraysFile, optional
        The file that they are mapped from. What decides an answer is compared with its checksums before.
    """

    def __init__(self, arrays: dict[str, np.ndarray], file: ArraysFile | None = None) -> None:
        self.arrays, self._file = arrays, file
        self._resident: dict[str, Any] | None = None

    @classmethod
    def build(cls, values: np.ndarray, design: TableDesign, compress: bool, backend: str | None) -> HammingTables:
        """Build the tables of a design one after another; each is compressed before the next is built."""
        num_tables, n = design.num_tables, len(values)
        rows = np.empty((num_tables, n), np.uint32)
        words = np.empty((0 if compress else num_tables, n), np.uint64)
        encoded = []
        for number, mask in enumerate(design.array):
            table, order = kernel(hamming_table, backend)(values, mask, True)
            rows[number] = to_host(order)
            if compress:
                encoded.append([to_host(array) for array in kernel(huffman_encode, backend)(table[None])])
            else:
                words[number] = to_host(table)
        arrays = {**(_concatenated(encoded, n) if compress else {"words": words}), "rows": rows}
        return cls(arrays if values.ndim == 1 else {**arrays, "fingerprints": values})

    @property
    def compressed(self) -> bool:
        """Whether the words are compressed."""
        return "words" not in self.arrays

    @property
    def _names(self) -> tuple[str, ...]:
        """Names of the arrays that a probe reads first."""
        return (*(HuffmanTables._fields if self.compressed else ("words",)), "rows")

    @property
    def bits_a_word(self) -> float:
        """Bits of a word in a table, without its row, on average."""
        taken = sum(self.arrays[name].nbytes for name in self._names[:-1])
        return 8 * taken / max(1, self.arrays["rows"].size)

    @property
    def least_bits_a_word(self) -> float:
        """The fewest bits that a word can take in any code, if fingerprints are random."""
        return information_bits(len(self)) / max(1, len(self))

    def __len__(self) -> int:
        return self.arrays["rows"].shape[1]

    def fit(self, design: TableDesign, num_fingerprints: int) -> bool:
        """Whether the arrays have the dtypes and shapes of a design's tables of `num_fingerprints` fingerprints."""
        num_tables, n = design.num_tables, num_fingerprints
        num_blocks = len(self.arrays.get("blocks", ()))
        known: dict[str, tuple[Any, tuple[int, ...]]] = {
            "words": (np.uint64, (num_tables, n)),
            "lengths": (np.uint8, (num_tables, SYMBOLS)),
            "offsets": (np.int64, (num_tables + 1,)),
            "blocks": (np.uint64, (num_blocks, BLOCK_BITS // 64)),
            "keys": (np.uint64, (num_blocks,)),
            "firsts": (np.int64, (num_blocks + 1,)),
            "rows": (np.uint32, (num_tables, n)),
            "fingerprints": (np.uint64, (n, 2)),
        }
        wanted = (*self._names, *(["fingerprints"] if design.bits == 128 else []))
        return set(self.arrays) == set(wanted) and all(
            (array.dtype, array.shape) == known[name] for name, array in self.arrays.items()
        )

    def probe(
        self, masks: np.ndarray, queries: np.ndarray, radius: int, backend: str | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find all (query, row, distance) within the radius, in lexicographic order.

        Raises
        ------
        DamagedError
            If the tables are damaged, as far as that decides the answer.
        """
        where = resolve(backend)
        if self._file is not None:
            self._file.check_size()
        self._verify(masks, queries, radius, on_cpu=where == "cpu")
        arrays = self._on_device() if where == "gpu" else self.arrays
        tables, whole = [arrays[name] for name in self._names], arrays.get("fingerprints")
        probe = kernel(huffman_probe if self.compressed else hamming_probe, backend)
        try:
            found = probe(*tables, masks, queries, radius, NO_LIMIT, 0, whole)
        except ValueError as error:
            raise DamagedError(f"the index is damaged: {error}; build it again") from None
        query, row, distance = map(to_host, found[:3])
        return query, row, distance

    def _on_device(self) -> dict[str, Any]:
        """The arrays, copied to the device once if they take less than half of its free memory; else as they are, and
        each probe copies what it needs."""
        if self._resident is None:
            if most_rows(1) < sum(array.nbytes for array in self.arrays.values()):
                return self.arrays
            self._resident = {name: on_device(array) for name, array in self.arrays.items()}
        return self._resident

    def _verify(self, masks: np.ndarray, queries: np.ndarray, radius: int, on_cpu: bool) -> None:
        """Compare the bytes that a probe will read with their checksums; all bytes for many queries or on a GPU."""
        if self._file is None or self._file.num_left == 0:
            return
        few = 2 * len(masks) * len(queries) < self._file.num_left  # more queries touch most of the unverified bytes
        verify_touched = self._verify_compressed if self.compressed else self._verify_plain
        if few and on_cpu and verify_touched(self._file, masks, queries, radius):
            return
        for name in self.arrays:
            self._file.verify(name)

    def _verify_plain(self, file: ArraysFile, masks: np.ndarray, queries: np.ndarray, radius: int) -> bool:
        """Compare the bytes that decide the answer with their checksums; False if there are too many queries."""
        found = hamming_probe.touched(self.arrays["words"], masks, queries, radius)
        if found is None:
            return False
        starts, stops, near = found
        file.verify("words", starts, stops)
        file.verify("rows", near, near + 1)
        if "fingerprints" in self.arrays:
            row = self.arrays["rows"].reshape(-1)[near].astype(np.int64)
            file.verify("fingerprints", 2 * row, 2 * row + 2)
        return True

    def _verify_compressed(self, file: ArraysFile, masks: np.ndarray, queries: np.ndarray, radius: int) -> bool:
        """Like `_verify_plain`, for compressed tables."""
        file.verify("lengths")
        file.verify("offsets")
        offsets, blocks, keys, firsts = (self.arrays[name] for name in ("offsets", "blocks", "keys", "firsts"))
        found = huffman_probe.touched(offsets, blocks, keys, masks, queries)
        if found is None:
            return False
        starts, stops = found
        file.verify("keys", starts, stops)
        file.verify("blocks", starts * blocks.shape[1], stops * blocks.shape[1])
        file.verify("firsts", starts, stops + 1)
        file.verify("rows", firsts[starts], firsts[stops])
        return True


def _concatenated(encoded: list[list[np.ndarray]], num_words: int) -> dict[str, np.ndarray]:
    """Join tables of `num_words` words, compressed one by one, as if they had been compressed together."""
    lengths, _, blocks, keys, firsts = zip(*encoded, strict=True)
    starts = [array[:-1] + number * num_words for number, array in enumerate(firsts)]
    return HuffmanTables(
        np.concatenate(lengths),
        np.cumsum([0, *map(len, blocks)]).astype(np.int64),
        np.concatenate(blocks),
        np.concatenate(keys),
        np.concatenate([*starts, np.array([len(encoded) * num_words], np.int64)]),
    )._asdict()
