"""A sorted table of fingerprints with the bits of a mask moved to the top: what near fingerprints are looked for in.

Source: Manku, Jain and Das Sarma 2007, section 3; `hamming` says what tables are for.
Cost: a radix sort, 24 bytes per row.
"""

from __future__ import annotations

import numpy as np

from ._bits import as_integers, in_columns, permuted_on_device, permuted_words, plan
from ._launch import check_rows, namespace, on_device
from ._sort import order_of, radix_sort


def reference(fingerprints, mask, whole):
    """One table, from the definition: the first 64 bits of the permuted fingerprints in order, and their rows.

    Parameters
    ----------
    fingerprints : array of uint64, shape (rows,) or (rows, 2)
    mask : uint64, or array of uint64, shape (2,)
        The bits that lead.
    whole : bool
        Whether all 64 bits decide the order, or only those that lead. What ties keeps the order of rows.

    Returns
    -------
    words : array of uint64, shape (rows,)
    rows : array of uint32, shape (rows,)
    """
    (mask,), num_bits = as_integers(np.asarray(mask)[None]), 64 * fingerprints.ndim
    places = sorted(range(num_bits), key=lambda place: (not mask >> place & 1, -place))  # highest permuted bit first
    num_sorted = 64 if whole else mask.bit_count()
    table = []
    for row, value in enumerate(as_integers(fingerprints)):
        bits = "".join(str(value >> place & 1) for place in places[:64])
        table.append((bits[:num_sorted], row, int(bits, 2)))
    table.sort()
    return np.array([word for _, _, word in table], np.uint64), np.array([row for _, row, _ in table], np.uint32)


def cpu(fingerprints, mask, whole):
    """As `reference`: by radix sort, 11 bits at a time."""
    check_rows(len(fingerprints), "fingerprints")
    prepared = plan(mask.reshape(1, *mask.shape))
    words = permuted_words(np.ascontiguousarray(in_columns(fingerprints)), prepared.moves[0])
    return radix_sort(words, 64 if whole else int(prepared.tops[0]).bit_count())


def gpu(fingerprints, mask, whole):
    """As `reference`: one thread a fingerprint, then a radix sort."""
    check_rows(len(fingerprints), "fingerprints")
    xp, prepared = namespace(), plan(mask.reshape(1, *mask.shape))
    words = permuted_on_device(xp, in_columns(on_device(fingerprints)), prepared.moves[0])
    order, _ = order_of(words, 64 if whole else int(prepared.tops[0]).bit_count())
    return words[order], order
