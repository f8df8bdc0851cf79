"""Look queries up in sorted tables: what the kernel `probe` and `neardup_gpu/index/probing.py` share.

Possibly only some blocks of a table are known to be right. Then a look-up also marks the blocks that decide its answer,
and the caller checks these blocks before it uses the answer.
"""

from __future__ import annotations

import contextlib

import numpy as np

from ._cpu import alone, is_alone, jit, num_threads, parallel
from ._search import lower_bound
from ._table_search import array_at, better_guess, bytes_at, first_guess, near, run_end
from ._tables import sorted_tables

FEW = 64
"""Queries that one thread answers sooner than several threads can begin."""

AT_ONCE = 32
"""Queries that are looked up side by side: no look-up waits for another, so the memory is read at the same time."""

ROUNDS = 3
"""Guesses of where a key is. The error of each guess is about the root of the error of the guess before."""

SOON = 1 << 12
"""Keys that one thread looks up sooner than several threads begin while the process has other work."""

DENSE = 16
"""Entries per query, up to which a table is read from end to end."""

BLOCK_WORDS = 1 << 13
"""Words of 8 bytes in a block of an array."""


@jit()
def _mark_blocks(first, last, sound, wanted):
    """Mark the blocks of the words from the first to the last one, unless they are sound; the last mark says whether
    any block is marked."""
    if len(sound) > 0:
        for block in range(first // BLOCK_WORDS, last // BLOCK_WORDS + 1):
            if sound[block] == np.uint8(0):
                wanted[block] = wanted[len(sound)] = np.uint8(1)


@jit()
def _find_runs(keys, rows, table, query_keys, numbers, dense, first, stop, guesses, sound, wanted, runs, size):
    """Write the runs of a table whose keys are queried; return where the next run is to be written.

    A run is (query, table, first place, place after the last one), limited to the rows that are looked for. `guesses`
    say where keys of the table may be, or are empty; `dense` says whether the table is read from end to end.
    """
    sound_keys, sound_rows = sound
    wanted_keys, wanted_rows = wanted
    there, entries = keys[table], np.int64(keys.shape[1])
    start, guessed = np.int64(-1), len(guesses) > 0
    if not guessed:
        guesses = np.empty(min(AT_ONCE, len(query_keys)), np.int64)
    for place in range(len(query_keys) if entries > 0 else 0):
        key, query, at = query_keys[place], numbers[place], place % AT_ONCE
        if dense and start >= np.int64(0):
            while start < entries and there[start] < key:
                start += np.int64(1)
        elif guessed:
            start = near(keys, table, key, guesses[place])
        else:
            if at == 0:
                some = min(AT_ONCE, len(query_keys) - place)
                for i in range(some):
                    guesses[i] = first_guess(entries, query_keys[place + i])
                for _ in range(ROUNDS):
                    for i in range(some):
                        guesses[i] = better_guess(keys, table, query_keys[place + i], guesses[i])
            start = near(keys, table, key, guesses[at])
        stops = start
        if start < entries and there[start] == key:
            stops = run_end(keys, table, start, key)
        if len(sound_keys) > 0:  # the entries of a run and its neighbours show that it is the whole run
            word = table * entries
            _mark_blocks(
                word + max(start - np.int64(1), np.int64(0)),
                word + min(start, entries - np.int64(1)),
                sound_keys,
                wanted_keys,
            )
            if stops > start:
                _mark_blocks(
                    word + stops - np.int64(1), word + min(stops, entries - np.int64(1)), sound_keys, wanted_keys
                )
                _mark_blocks(
                    (word + start) >> np.int64(1), (word + stops - np.int64(1)) >> np.int64(1), sound_rows, wanted_rows
                )
        if stops > start:
            low = lower_bound(rows[table], start, stops, first[query])
            high = lower_bound(rows[table], low, stops, stop[query])
            if low < high:
                runs[size, 0], runs[size, 1], runs[size, 2], runs[size, 3] = query, table, low, high
                size += np.int64(1)
    return size


@parallel(
    "uint64[:, ::1], uint32[:, ::1], uint64[:, ::1], uint32[:, ::1], int64[::1], int64[::1], int64[::1], "
    "(uint8[::1], uint8[::1]), (uint8[::1], uint8[::1]), int64[:, ::1], int64[:, ::1]"
)
def _find_all_runs(lower, upper, keys, rows, query_keys, numbers, num_keys, first, stop, sound, wanted, runs, sizes):
    """Find the runs of pieces of each table's queries in parallel; each piece writes from a place of its own on."""
    pieces, nothing = sizes.shape[1], np.empty(0, np.int64)
    for task in range(lower, upper):
        table, piece = task // pieces, task % pieces
        begin, end = piece * num_keys[table] // pieces, (piece + 1) * num_keys[table] // pieces
        some, theirs = query_keys[table, begin:end], numbers[table, begin:end]
        dense = keys.shape[1] <= DENSE * num_keys[table]
        size = table * query_keys.shape[1] + begin
        sizes[table, piece] = (
            _find_runs(keys, rows, table, some, theirs, dense, first, stop, nothing, sound, wanted, runs, size) - size
        )


@jit()
def _sum_up(numbers):
    """Put the sum of the numbers before each in its place."""
    before = np.int64(0)
    for i in range(len(numbers)):
        before, numbers[i] = before + numbers[i], before


@jit("int64[:, ::1], int64[:, ::1], int64[::1], int64, int64[::1]")
def _by_query(runs, sizes, num_keys, width, ends):
    """Group runs by query, in the order of tables; the runs of query i end before ends[i]."""
    pieces, number = sizes.shape[1], np.int64(0)
    for size in sizes.ravel():
        number += size
    grouped = np.empty((number, 3), np.int64)
    for place in range(2):
        for table in range(len(sizes)):
            for piece in range(pieces):
                begin = table * width + piece * num_keys[table] // pieces
                for at in range(begin, begin + sizes[table, piece]):
                    query = runs[at, 0]
                    if place == 0:
                        ends[query] += 1
                    else:
                        grouped[ends[query], 0], grouped[ends[query], 1], grouped[ends[query], 2] = (
                            runs[at, 1],
                            runs[at, 2],
                            runs[at, 3],
                        )
                        ends[query] += 1
        if place == 0:
            _sum_up(ends)
    return grouped


@jit("uint32[:, ::1], uint8[::1]")
def keep_allowed(rows, allowed):
    """Return tables with the allowed rows alone, and where each place of the tables is in them.

    A run from `start` to `stop` of table t has its allowed rows from places[t, start] to places[t, stop].
    """
    tables, entries = rows.shape
    kept, places = np.empty((tables, entries), np.uint32), np.empty((tables, entries + 1), np.uint32)
    for table in range(tables):
        size = np.int64(0)
        for at in range(entries):
            places[table, at] = size
            row = np.int64(rows[table, at])
            kept[table, size] = row
            size += row < len(allowed) and allowed[row] != np.uint8(0)
        places[table, entries] = size
    return kept, places


@jit("int64, int64[:, ::1], int64[::1], int64[::1], uint8[::1]")
def _should_copy(num_entries, runs, ends, most, allowed):
    """Return whether to copy the allowed rows of tables takes fewer steps than to pass over the others in each run."""
    length = np.int64(0)
    for run in range(len(runs)):
        length += runs[run, 2] - runs[run, 1]
    if length <= num_entries:
        return False
    others, steps = np.int64(0), np.int64(0)
    for each in allowed:
        others += each == np.uint8(0)
    for query in range(len(ends) if others > 0 else 0):
        for run in range(ends[query - 1] if query > 0 else np.int64(0), ends[query]):
            steps += min(runs[run, 2] - runs[run, 1], max(most[query], np.int64(0)) + others)
    return steps > num_entries


@jit("uint32[:, ::1], int64[:, ::1], uint8[::1]")
def _copy_allowed(rows, runs, allowed):
    """Return tables with the allowed rows alone, and move the runs there."""
    kept, places = keep_allowed(rows, allowed)
    for run in range(len(runs)):
        for column in range(1, 3):
            runs[run, column] = places[runs[run, 0], runs[run, column]]
    return kept


@jit()
def _first_allowed(rows, table, place, stop, allowed):
    """Return the first place from `place` on and before `stop` whose row is allowed, or `stop`."""
    while place < stop:
        row = np.int64(rows[table, place])
        if row < len(allowed) and allowed[row] != np.uint8(0):
            break
        place += np.int64(1)
    return place


@jit()
def _merge(rows, runs, r, most, allowed, found, place):
    """Merge the runs of a query; return the number of rows that share enough tables.

    These rows are written to `found` from `place` on, unless `place` is negative.
    """
    number, nowhere = np.int64(0), np.int64(1) << np.int64(40)
    if len(runs) < r or most <= 0:
        return number
    heads = runs[:, 1].copy()
    for run in range(len(runs)):
        heads[run] = _first_allowed(rows, runs[run, 0], heads[run], runs[run, 2], allowed)
    while number < most:
        least = nowhere
        for run in range(len(runs)):
            if heads[run] < runs[run, 2]:
                least = min(least, np.int64(rows[runs[run, 0], heads[run]]))
        if least == nowhere:
            break
        shared = np.int64(0)
        for run in range(len(runs)):
            if heads[run] < runs[run, 2] and np.int64(rows[runs[run, 0], heads[run]]) == least:
                heads[run] = _first_allowed(rows, runs[run, 0], heads[run] + np.int64(1), runs[run, 2], allowed)
                shared += np.int64(1)
        if shared >= r:
            if place >= np.int64(0):
                found[place + number] = least
            number += np.int64(1)
    return number


@parallel(
    "uint32[:, ::1], int64[:, ::1], int64[::1], int64, int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1]"
)
def _merge_all(lower, upper, rows, runs, ends, r, most, allowed, found, places, counts):
    """Count the rows of each query, or write them if `places` are given."""
    for query in range(lower, upper):
        begin = ends[query - 1] if query > 0 else np.int64(0)
        if begin < ends[query]:
            place = places[query] if len(places) else np.int64(-1)
            counts[query] = _merge(rows, runs[begin : ends[query]], r, most[query], allowed, found, place)


@jit(
    "uint64[:, ::1], uint32[:, ::1], uint64[:, ::1], uint32[:, ::1], int64[::1], int64, int64[::1], "
    "int64[::1], int64[::1], uint8[::1], (uint8[::1], uint8[::1])"
)
def _probe_few(keys, rows, query_keys, numbers, num_keys, r, first, stop, most, allowed, sound):
    """Return the rows, the offsets and the wanted blocks of `find_rows`, all on one thread."""
    (tables, width), queries = query_keys.shape, len(first)
    runs, sizes = np.empty((tables * width, 4), np.int64), np.zeros((tables, 1), np.int64)
    wanted = np.zeros(len(sound[0]) + 1, np.uint8), np.zeros(len(sound[1]) + 1, np.uint8)
    some, entries = np.int64(0), np.int64(keys.shape[1])
    guesses = np.empty((tables, width), np.int64)  # of all tables side by side
    for step in range(1 + ROUNDS if entries > 0 else 0):
        for table in range(tables):
            for query in range(num_keys[table]):
                key = query_keys[table, query]
                if step == 0:
                    guesses[table, query] = first_guess(entries, key)
                else:
                    guesses[table, query] = better_guess(keys, table, key, guesses[table, query])
    for table in range(tables):
        begin, size = table * width, num_keys[table]
        some_keys, theirs = query_keys[table, :size], numbers[table, :size]
        dense = entries <= DENSE * size
        sizes[table, 0] = (
            _find_runs(
                keys, rows, table, some_keys, theirs, dense, first, stop, guesses[table], sound, wanted, runs, begin
            )
            - begin
        )
        some += sizes[table, 0]
    offsets = np.zeros(queries + 1, np.int64)
    if some == 0:
        return np.empty(0, np.int64), offsets, wanted
    ends = np.zeros(queries, np.int64)
    grouped = _by_query(runs, sizes, num_keys, width, ends)
    if _should_copy(np.int64(rows.size), grouped, ends, most, allowed):
        rows = _copy_allowed(rows, grouped, allowed)
    found = np.empty(0, np.int64)
    for place in range(2):
        for query in range(queries):
            begin = ends[query - 1] if query > 0 else np.int64(0)
            at = offsets[query] if place == 1 else np.int64(-1)
            count = _merge(rows, grouped[begin : ends[query]], r, most[query], allowed, found, at)
            if place == 0:
                offsets[query + 1] = offsets[query] + count
        if place == 0:
            found = np.empty(offsets[queries], np.int64)
    return found, offsets, wanted


_SOUND = np.empty(0, np.uint8), np.empty(0, np.uint8)


def sort_queries(queries):
    """Sort the keys of queries for each table, so that several arrays of tables can be searched for them.

    Returns
    -------
    keys : array of uint64, shape (k, queries)
        Ascending for each table.
    numbers : array of uint32, shape (k, queries)
        The query that each key belongs to.
    sizes : array of int64, shape (k,)
        How many keys each table is searched for, in its first places.
    """
    sizes = np.full(queries.shape[1], len(queries), np.int64)
    if len(queries) == 1:
        return queries.reshape(-1, 1), np.zeros((queries.shape[1], 1), np.uint32), sizes
    return *sorted_tables(queries, np.arange(len(queries), dtype=np.uint32)), sizes


def find_rows(table, queries, r, first, stop, most, allowed, sound=_SOUND):
    """Find the first rows that share keys with each query, in tables with possibly damaged blocks.

    Parameters
    ----------
    table : (array of uint64, array of uint32)
        `keys` and `rows` of `probe.reference`. Damaged blocks may hold anything: the answer is then useless, but the
        search does no harm.
    r, first, stop, most, allowed :
        As in `probe.reference`.
    queries : (array of uint64, array of uint32, array of int64)
        The answer of `sort_queries`, or what `bloom` leaves of it.
    sound : (array of uint8, array of uint8)
        For each block of the keys, and of the rows, whether it is known to be right. Empty arrays mean that all are.

    Returns
    -------
    found, offsets :
        As in `probe.reference`.
    wanted : (array of uint8, array of uint8)
        For each block, whether it has to be verified before the answer is used; and last, whether any block has to be.
    """
    keys, rows = table
    r, number, (tables, width) = np.int64(r), len(first), queries[0].shape
    if is_alone() or number <= FEW:
        return _probe_few(keys, rows, *queries, r, first, stop, most, allowed, sound)
    soon = int(queries[2].sum()) <= SOON
    pieces = 1 if soon else max(1, min(width // FEW, -(-4 * num_threads() // tables)))
    runs, sizes = np.empty((tables * width, 4), np.int64), np.empty((tables, pieces), np.int64)
    wanted = np.zeros(len(sound[0]) + 1, np.uint8), np.zeros(len(sound[1]) + 1, np.uint8)
    with alone() if soon else contextlib.nullcontext():
        _find_all_runs(sizes.size, keys, rows, *queries, first, stop, sound, wanted, runs, sizes)
    if not sizes.any():
        return np.empty(0, np.int64), np.zeros(number + 1, np.int64), wanted
    ends = np.zeros(number, np.int64)
    grouped = _by_query(runs, sizes, queries[2], width, ends)
    return *merge_runs(rows, grouped, ends, r, most, allowed), wanted


def without_others(rows, tables, starts, stops, ends, most, allowed):
    """Return tables with the allowed rows alone, and where runs lie in them, if that takes fewer steps; otherwise what
    was given.

    Parameters
    ----------
    rows : array of uint32, shape (k, entries)
    tables, starts, stops : arrays of int64
        The table of each run, the first place and the place after the last one; of shapes that broadcast to that of
        `starts`.
    ends : array of int64, shape (queries,)
        The runs of query i, counted in C order, end before ends[i].
    most, allowed :
        As in `probe.reference`.

    Returns
    -------
    rows, starts, stops
    """
    if (stops - starts).sum() <= rows.size:
        return rows, starts, stops
    runs = np.stack([np.broadcast_to(tables, starts.shape), starts, stops], axis=-1).reshape(-1, 3)
    if not _should_copy(rows.size, runs, ends, most, allowed):
        return rows, starts, stops
    kept = _copy_allowed(rows, runs, allowed)
    return kept, *(np.ascontiguousarray(runs[:, column]).reshape(starts.shape) for column in (1, 2))


def merge_runs(rows, runs, ends, r, most, allowed):
    """Merge the runs of all queries: return the rows and the offsets of `probe.reference`. The runs are changed."""
    offsets, nothing = np.zeros(len(ends) + 1, np.int64), np.empty(0, np.int64)
    if len(runs) == 0:
        return nothing, offsets
    if _should_copy(rows.size, runs, ends, most, allowed):
        rows = _copy_allowed(rows, runs, allowed)
    counts = np.zeros(len(ends), np.int64)
    _merge_all(len(ends), rows, runs, ends, r, most, allowed, nothing, nothing, counts)
    np.cumsum(counts, out=offsets[1:])
    found = np.empty(int(offsets[-1]), np.int64)
    if len(found):
        _merge_all(len(ends), rows, runs, ends, r, most, allowed, found, offsets[:-1], counts)
    return found, offsets


@jit("int64[:, ::1], uint64[::1], int64, boolean[::1], int64[:, ::1]")
def tables_with_keys(addresses, query, r, found, unread):
    """Write which items of a list of tables have r keys of a query; return the number of unread blocks.

    `addresses` are those of `index.probing.TableList`. `unread` gets (item, block) for each block that decides the
    answer and is not known to be right; a block may be written twice.
    """
    number, tables, size = len(addresses), len(query), np.int64(0)
    guesses = np.empty((number, tables), np.int64)  # for all tables side by side
    for step in range(1 + ROUNDS):
        for item in range(number):
            entries = addresses[item, 1]
            keys = array_at(addresses[item, 0], tables, entries)
            for table in range(tables if entries > 0 else 0):
                if step == 0:
                    guesses[item, table] = first_guess(entries, query[table])
                else:
                    guesses[item, table] = better_guess(keys, table, query[table], guesses[item, table])
    for item in range(number):
        entries, common = addresses[item, 1], np.int64(0)
        keys = array_at(addresses[item, 0], tables, entries)
        sound = bytes_at(addresses[item, 2], addresses[item, 3])
        for table in range(tables if entries > 0 else 0):
            start = near(keys, table, query[table], guesses[item, table])
            common += np.int64(start < entries and keys[table, start] == query[table])
            for place in range(2 if len(sound) > 0 else 0):  # the neighbours show that a key is not there
                neighbour = max(np.int64(0), min(start - np.int64(1) + np.int64(place), entries - np.int64(1)))
                block = (table * entries + neighbour) // np.int64(BLOCK_WORDS)
                if sound[block] == np.uint8(0):
                    unread[size, 0], unread[size, 1] = item, block
                    size += np.int64(1)
        found[item] = common >= r
    return size


@parallel("uint64[:, ::1], uint32[:, ::1], int64[:, ::1]")
def count_earlier(lower, upper, keys, rows, sizes):
    """Count the entries of each piece of a table that have the same key as the entry before."""
    pieces, entries = sizes.shape[1], keys.shape[1]
    for task in range(lower, upper):
        table, piece = task // pieces, task % pieces
        begin, end = piece * entries // pieces, (piece + 1) * entries // pieces
        size = np.int64(0)
        for place in range(max(begin, np.int64(1)), end):
            size += keys[table, place] == keys[table, place - 1]
        sizes[table, piece] = size


@jit("uint64[:, ::1], uint32[:, ::1], int64, int64[::1]")
def write_earlier_runs(keys, rows, number, ends):
    """Write where the runs of each row end; return (table, first place, place after the last one) of each run."""
    runs = np.empty((number, 3), np.int64)
    for step in range(2):
        for table in range(len(keys)):
            start = np.int64(0)
            for place in range(1, keys.shape[1]):
                if keys[table, place] != keys[table, start]:
                    start = np.int64(place)
                    continue
                row = rows[table, place]
                if step == 1:
                    runs[ends[row], 0], runs[ends[row], 1], runs[ends[row], 2] = table, start, place
                ends[row] += 1
        if step == 0:
            _sum_up(ends)
    return runs


@jit("uint32[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1]")
def runs_of_rows(rows, runs, ends, wanted, first):
    """Return the runs of some rows, limited to rows from `first` on, and where the runs of each row end."""
    size = np.int64(0)
    for row in wanted:
        size += ends[row] - (ends[row - 1] if row > 0 else np.int64(0))
    found, theirs, size = np.empty((size, 3), np.int64), np.empty(len(wanted), np.int64), np.int64(0)
    for query in range(len(wanted)):
        row = wanted[query]
        for run in range(ends[row - 1] if row > 0 else np.int64(0), ends[row]):
            low = lower_bound(rows[runs[run, 0]], runs[run, 1], runs[run, 2], first[query])
            if low < runs[run, 2]:
                found[size, 0], found[size, 1], found[size, 2] = runs[run, 0], low, runs[run, 2]
                size += np.int64(1)
        theirs[query] = size
    return found[:size], theirs
