"""Probing tables of buckets: for each simhash, the first rows within the radius, in the order of their numbers.

A table has a mask. Its keys are the bits of the rows' simhashes that the mask names, at the top of a word; its entries
are sorted by key, and among equal keys by row. The entries of a key are a bucket. The masks of a design
(`neardup_gpu.hamming`) are such that two simhashes within the radius agree under one of them. The result is the
first such rows. At most that many have to be found in each of a query's buckets: a crowd of simhashes within
one another's radius costs a query no more than others do.

A row that agrees with the query under an earlier mask is passed over in a bucket, as it was met before, or that bucket
had rows enough before it.

Source: Manku, Jain and Das Sarma 2007, section 3; `hamming_probe.py` has tables of sorted words instead, which are
looked at faster, and in no order of rows.
Cost: a query looks into each table by interpolation, and then at the simhash of each entry of its bucket, until it has
found enough; twice, as rows are counted before they are written. Where buckets have many rows that are not allowed,
they are read from a copy of the tables without such rows.
"""

import numpy as np

from ._bits import as_integers, count_bits, in_columns, permuted_words, plan
from ._cpu import jit, num_threads, parallel
from ._probing import without_others
from ._ragged import of_rows
from ._sort import in_order
from ._table_search import find_all


def buckets(simhashes, masks):
    """The key of each simhash in each table: uint64, shape (tables, simhashes)."""
    made, columns = plan(masks), np.ascontiguousarray(in_columns(simhashes))
    found = np.empty((len(made.tops), len(columns)), np.uint64)
    for table, top in enumerate(made.tops):
        np.bitwise_and(permuted_words(columns, made.moves[table]), top, out=found[table])
    return found


def reference(keys, rows, masks, simhashes, queries, radius, first, stop, most, allowed):
    """The first rows within the radius of each query, from the definition.

    Parameters
    ----------
    keys : array of uint64, shape (tables, entries)
        As `buckets` gives, ascending.
    rows : array of uint32, shape (tables, entries)
        Their rows; ascending among equal keys, and each once.
    masks : array of uint64, shape (tables,) or (tables, 2)
        Of at most 64 bits each.
    simhashes : array of uint64, shape (all rows,) or (all rows, 2)
    queries : array of uint64, shape (queries,) or (queries, 2)
    radius : int
        Bits in which a row and a query may differ.
    first, stop : arrays of int64, shape (queries,)
        Rows from the first on and before the second are looked for.
    most : array of int64, shape (queries,)
        Most rows that are wanted of each.
    allowed : array of uint8, shape (all rows,)
        Rows that are 0 there are passed over.

    Returns
    -------
    found : array of int64
        Query by query, ascending.
    offsets : array of int64, shape (queries + 1,)
        Where those of each begin.
    """
    values, found = as_integers(simhashes), []
    bounds = zip(as_integers(queries), first.tolist(), stop.tolist(), most.tolist(), strict=True)
    for query, low, high, wanted in bounds:
        near = set()
        for table, mask in zip(rows.tolist(), as_integers(masks), strict=True):
            for row in table:
                differ = values[row] ^ query
                if differ & mask == 0 and differ.bit_count() <= radius and low <= row < high and allowed[row]:
                    near.add(row)
        found.append(sorted(near)[: max(0, wanted)])
    return of_rows(found, np.int64)


@jit()
def _scan_buckets(rows, starts, ends, simhashes, queries, masks, query, radius, most, allowed, found, place):
    """How many rows a query finds in its buckets, with more than it wants; written from `place` on unless negative."""
    number, words = np.int64(0), queries.shape[1]
    for table in range(starts.shape[1]):
        here = np.int64(0)
        for at in range(starts[query, table], ends[query, table]):
            if here >= most:
                break
            row = np.int64(rows[table, at])
            bits = np.uint64(0)
            for word in range(words):
                bits += count_bits(simhashes[row, word] ^ queries[query, word])
            if bits > radius or allowed[row] == np.uint8(0):
                continue
            new = True
            for earlier in range(table):
                differ = np.uint64(0)
                for word in range(words):
                    differ |= (simhashes[row, word] ^ queries[query, word]) & masks[earlier, word]
                if differ == np.uint64(0):
                    new = False
                    break
            if new:
                if place >= 0:
                    found[place + number] = np.uint64(query) << np.uint64(32) | np.uint64(row)
                number += 1
                here += 1
    return number


@parallel(
    "uint32[:, ::1], int64[:, ::1], int64[:, ::1], uint64[:, ::1], uint64[:, ::1], uint64[:, ::1], uint64, "
    "int64[::1], uint8[::1], uint64[::1], int64[::1], int64[::1]"
)
def _scan_all(begin, end, rows, starts, ends, simhashes, queries, masks, radius, most, allowed, found, places, counts):
    """Count what each query finds, or write it, if there is a place for each."""
    for query in range(begin, end):
        place = places[query] if len(places) else np.int64(-1)
        counts[query] = _scan_buckets(
            rows, starts, ends, simhashes, queries, masks, query, radius, most[query], allowed, found, place
        )


def cpu(keys, rows, masks, simhashes, queries, radius, first, stop, most, allowed):
    """As `reference`; queries in parallel. What they find in all tables is sorted, and cut where they have enough."""
    words = np.ascontiguousarray(buckets(queries, masks).T)
    starts, ends = np.empty(words.shape, np.int64), np.empty(words.shape, np.int64)
    parts = min(len(words), 4 * num_threads())
    find_all(parts, keys, rows, words, first, stop, starts, ends, parts)
    ends_of_runs = np.arange(1, len(words) + 1) * len(masks)
    rows, starts, ends = without_others(rows, np.arange(len(masks)), starts, ends, ends_of_runs, most, allowed)
    columns = [np.ascontiguousarray(in_columns(each)) for each in (simhashes, queries, masks)]
    looked = rows, starts, ends, *columns, np.uint64(radius), most, allowed
    counts = np.empty(len(words), np.int64)
    _scan_all(len(queries), *looked, np.empty(0, np.uint64), np.empty(0, np.int64), counts)
    places = np.cumsum(counts) - counts
    packed = np.empty(int(counts.sum()), np.uint64)
    if len(packed):
        _scan_all(len(queries), *looked, packed, places, counts)
        packed, _ = in_order(packed)
    query = (packed >> np.uint64(32)).astype(np.int64)
    fits = np.arange(len(packed)) - np.repeat(places, counts) < most[query]
    found = (packed[fits] & np.uint64(2**32 - 1)).astype(np.int64)
    return found, np.append(0, np.cumsum(np.minimum(counts, np.maximum(0, most)))).astype(np.int64)
