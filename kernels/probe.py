"""Probing sorted tables: for each query, the rows of several tables that share at least r keys with it.

Table t holds (key, row), sorted by key and among equal keys by row. A row shares table t with a query if the table has
the row under the query's key of that number. What is asked for are the first rows, in ascending order, that share at
least r of the k tables: the entries of one key are a run of ascending rows, so the k runs of a query are merged, and
the merging ends with the last row that is wanted.

Source: the pair tables of Manasse 2012, 3.1 and 6.1, asked by documents that come later.
Cost: queries are sorted for each table. Where they are many the table is read beside them; else they are looked up by
interpolation, as fingerprints are uniform, some side by side. Then the entries of runs are read up to the last row that
is wanted, twice: they are counted before they are written.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np

from ._cpu import alone, is_alone, jit, num_threads, parallel
from ._launch import Device, cuda, kernel, namespace, on_device
from ._table_search import array_at, better_guess, bytes_at, first_guess, first_row, near, run_end
from ._tables import sorted_tables

FEW = 64
"""Queries that one thread answers sooner than several are told what to do."""

AT_ONCE = 32
"""Queries that are looked up side by side: nothing waits for what is read of another, so the memory is read at once."""

ROUNDS = 3
"""Guesses of where a key is, of which each is off by about the root of what the one before is off by."""

SOON = 1 << 12
"""Keys that one thread looks up sooner than several have begun, where others of the process are at work."""

DENSE = 16
"""Entries a query, up to which a table is read from one to the next."""

BLOCK_WORDS = 1 << 13
"""Words of 8 bytes in a block of a file, of which each has a checksum."""


def reference(keys, rows, queries, r, first, stop, most, allowed):
    """The first rows that share keys with each query, from the definition.

    Parameters
    ----------
    keys : array of uint64, shape (k, entries)
        The keys of each table, ascending.
    rows : array of uint32, shape (k, entries)
        Their rows; ascending among equal keys, and each once.
    queries : array of uint64, shape (queries, k)
    r : int
        Tables that have to be shared, from 1 to k.
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
    tables = []
    for some_keys, some_rows in zip(keys.tolist(), rows.tolist(), strict=True):
        runs: dict[int, list[int]] = {}
        for key, row in zip(some_keys, some_rows, strict=True):
            runs.setdefault(key, []).append(row)
        tables.append(runs)
    found = []
    for query, low, high, wanted in zip(queries.tolist(), first.tolist(), stop.tolist(), most.tolist(), strict=True):
        shared: dict[int, int] = {}
        for key, table in zip(query, tables, strict=True):
            for row in table.get(key, []):
                shared[row] = shared.get(row, 0) + 1
        some = sorted(row for row, count in shared.items() if count >= r and low <= row < high and allowed[row])
        found.append(some[: max(0, wanted)])
    return np.array([row for some in found for row in some], np.int64), np.cumsum([0, *map(len, found)], dtype=np.int64)


@jit()
def _want(first, last, sound, wanted):
    """Mark the blocks that hold the words from the first to the last one, and behind all that there are some, unless
    they are sound."""
    if len(sound) > 0:
        for block in range(first // BLOCK_WORDS, last // BLOCK_WORDS + 1):
            if sound[block] == np.uint8(0):
                wanted[block] = wanted[len(sound)] = np.uint8(1)


@jit()
def _bits(key):
    """The bits of a key in its word: three, some of which may be one."""
    low = np.uint64(63)
    first, second, third = key & low, (key >> np.uint64(6)) & low, (key >> np.uint64(12)) & low
    return (np.uint64(1) << first) | (np.uint64(1) << second) | (np.uint64(1) << third)


@parallel()
def _mark(begin, end, keys, shift, marks):
    """Set the marks of each key of each table."""
    for table in range(begin, end):
        for key in keys[table]:
            marks[table, np.int64(key >> shift)] |= _bits(key)


@parallel("uint64[:, ::1], uint64, uint64[:, ::1], uint32[:, ::1], uint64[:, ::1], uint32[:, ::1], int64[::1]")
def _marked(begin, end, marks, shift, keys, numbers, some, theirs, sizes):
    """Copy the queries whose marks are set, and how many each table has."""
    for table in range(begin, end):
        size = np.int64(0)
        for place in range(sizes[table]):
            key = keys[table, place]
            bits = _bits(key)
            some[table, size], theirs[table, size] = key, numbers[table, place]
            size += np.int64(marks[table, np.int64(key >> shift)] & bits == bits)
        sizes[table] = size


def _shift(marks):
    return np.uint64(65 - marks.shape[1].bit_length())


def mark(keys, marks):
    """Mark the keys of tables, so that most others are told from them without a look at the tables.

    That is a filter of Bloom's in blocks of a word: a key's highest bits say which word, its lowest bits which three of
    the word's bits. Words are read in order, as queries are, and there are few of them, where to look into a large
    table is to wait for the memory. Of n keys in w words other keys have all marks with a probability of about
    (1 - exp(-3 n / 64 w))**3, a little more as words are not filled alike: at 16 bits a key about 1%.

    Source: Putze, Sanders and Singler, Cache-, hash- and space-efficient Bloom filters, WEA 2007.

    Parameters
    ----------
    keys :
        As of `reference`.
    marks : array of uint64, shape (k, words), words a power of two, at least two
        In which those of the keys are set.
    """
    _mark(len(keys), keys, _shift(marks), marks)


def marked(asked, marks):
    """What is asked for but those keys whose marks are not set: they are in none of the tables that were marked.

    Parameters
    ----------
    asked :
        As of `of_file`.
    marks :
        As of `mark`.

    Returns
    -------
    asked
        Like the one given.
    """
    keys, numbers, sizes = asked
    some, theirs, sizes = np.empty_like(keys), np.empty_like(numbers), sizes.copy()
    _marked(len(keys), marks, _shift(marks), keys, numbers, some, theirs, sizes)
    return some, theirs, sizes


@jit()
def _find(keys, rows, table, asked, numbers, dense, first, stop, guesses, sound, wanted, runs, size):
    """Write the runs of a table that some queries have; returns where the next one is to be written.

    A run is (query, table, first place, place behind the last one), of the rows that are looked for. `guesses` say
    where keys of the table may be, if there are any; `dense` is whether the table is read from one to the next.
    """
    sound_keys, sound_rows = sound
    wanted_keys, wanted_rows = wanted
    there, entries = keys[table], np.int64(keys.shape[1])
    start, guessed = np.int64(-1), len(guesses) > 0
    if not guessed:
        guesses = np.empty(min(AT_ONCE, len(asked)), np.int64)
    for place in range(len(asked) if entries > 0 else 0):
        key, query, at = asked[place], numbers[place], place % AT_ONCE
        if dense and start >= np.int64(0):
            while start < entries and there[start] < key:
                start += np.int64(1)
        elif guessed:
            start = near(keys, table, key, guesses[place])
        else:
            if at == 0:
                some = min(AT_ONCE, len(asked) - place)
                for i in range(some):
                    guesses[i] = first_guess(entries, asked[place + i])
                for _ in range(ROUNDS):
                    for i in range(some):
                        guesses[i] = better_guess(keys, table, asked[place + i], guesses[i])
            start = near(keys, table, key, guesses[at])
        stops = start
        if start < entries and there[start] == key:
            stops = run_end(keys, table, start, key)
        if len(sound_keys) > 0:  # what is read of a run and beside it shows that it is the key's
            word = table * entries
            _want(
                word + max(start - np.int64(1), np.int64(0)),
                word + min(start, entries - np.int64(1)),
                sound_keys,
                wanted_keys,
            )
            if stops > start:
                _want(word + stops - np.int64(1), word + min(stops, entries - np.int64(1)), sound_keys, wanted_keys)
                _want(
                    (word + start) >> np.int64(1), (word + stops - np.int64(1)) >> np.int64(1), sound_rows, wanted_rows
                )
        if stops > start:
            low = first_row(rows, table, start, stops, first[query])
            high = first_row(rows, table, low, stops, stop[query])
            if low < high:
                runs[size, 0], runs[size, 1], runs[size, 2], runs[size, 3] = query, table, low, high
                size += np.int64(1)
    return size


@parallel(
    "uint64[:, ::1], uint32[:, ::1], uint64[:, ::1], uint32[:, ::1], int64[::1], int64[::1], int64[::1], "
    "(uint8[::1], uint8[::1]), (uint8[::1], uint8[::1]), int64[:, ::1], int64[:, ::1]"
)
def _find_all(lower, upper, keys, rows, asked, numbers, asking, first, stop, sound, wanted, runs, sizes):
    """Pieces of the queries of each table in parallel, of which each writes its runs behind its own beginning."""
    pieces, nothing = sizes.shape[1], np.empty(0, np.int64)
    for task in range(lower, upper):
        table, piece = task // pieces, task % pieces
        begin, end = piece * asking[table] // pieces, (piece + 1) * asking[table] // pieces
        some, theirs = asked[table, begin:end], numbers[table, begin:end]
        dense = keys.shape[1] <= DENSE * asking[table]
        size = table * asked.shape[1] + begin
        sizes[table, piece] = (
            _find(keys, rows, table, some, theirs, dense, first, stop, nothing, sound, wanted, runs, size) - size
        )


@jit("int64[:, ::1], int64[:, ::1], int64[::1], int64, int64[::1]")
def _by_query(runs, sizes, asking, width, ends):
    """Bring runs together by their query, in the order of tables: (those of query i are before ends[i])."""
    pieces, number = sizes.shape[1], np.int64(0)
    for size in sizes.ravel():
        number += size
    grouped = np.empty((number, 3), np.int64)
    for place in range(2):
        for table in range(len(sizes)):
            for piece in range(pieces):
                begin = table * width + piece * asking[table] // pieces
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
            before = np.int64(0)
            for query in range(len(ends)):
                before, ends[query] = before + ends[query], before
    return grouped


@jit()
def _merge(rows, runs, r, most, allowed, found, place):
    """Merge the runs of a query; returns how many rows there are.

    They are written to `found` from `place` on, unless that is negative.
    """
    number, nowhere = np.int64(0), np.int64(1) << np.int64(40)
    if len(runs) < r:
        return number
    heads = runs[:, 1].copy()
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
                heads[run] += np.int64(1)
                shared += np.int64(1)
        if shared >= r and least < len(allowed) and allowed[least] != np.uint8(0):
            if place >= np.int64(0):
                found[place + number] = least
            number += np.int64(1)
    return number


@parallel(
    "uint32[:, ::1], int64[:, ::1], int64[::1], int64, int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1]"
)
def _merge_all(lower, upper, rows, runs, ends, r, most, allowed, found, places, counts):
    """Count the rows of each query, or write them, if there is a place for each."""
    for query in range(lower, upper):
        begin = ends[query - 1] if query > 0 else np.int64(0)
        if begin < ends[query]:
            place = places[query] if len(places) else np.int64(-1)
            counts[query] = _merge(rows, runs[begin : ends[query]], r, most[query], allowed, found, place)


@jit(
    "uint64[:, ::1], uint32[:, ::1], uint64[:, ::1], uint32[:, ::1], int64[::1], int64, int64[::1], "
    "int64[::1], int64[::1], uint8[::1], (uint8[::1], uint8[::1])"
)
def _probe_few(keys, rows, asked, numbers, asking, r, first, stop, most, allowed, sound):
    """All of it on one thread: rows that are found, where those of each query begin, and blocks that are wanted."""
    (tables, width), queries = asked.shape, len(first)
    runs, sizes = np.empty((tables * width, 4), np.int64), np.zeros((tables, 1), np.int64)
    wanted = np.zeros(len(sound[0]) + 1, np.uint8), np.zeros(len(sound[1]) + 1, np.uint8)
    some, entries = np.int64(0), np.int64(keys.shape[1])
    guesses = np.empty((tables, width), np.int64)  # of all tables side by side
    for step in range(1 + ROUNDS if entries > 0 else 0):
        for table in range(tables):
            for query in range(asking[table]):
                key = asked[table, query]
                if step == 0:
                    guesses[table, query] = first_guess(entries, key)
                else:
                    guesses[table, query] = better_guess(keys, table, key, guesses[table, query])
    for table in range(tables):
        begin, size = table * width, asking[table]
        some_keys, theirs = asked[table, :size], numbers[table, :size]
        dense = entries <= DENSE * size
        sizes[table, 0] = (
            _find(keys, rows, table, some_keys, theirs, dense, first, stop, guesses[table], sound, wanted, runs, begin)
            - begin
        )
        some += sizes[table, 0]
    offsets = np.zeros(queries + 1, np.int64)
    if some == 0:
        return np.empty(0, np.int64), offsets, wanted
    ends = np.zeros(queries, np.int64)
    grouped = _by_query(runs, sizes, asking, width, ends)
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


def in_order(queries):
    """The keys of queries table by table, ascending, and whose they are: what `of_file` asks for, of several files.

    Returns
    -------
    keys : array of uint64, shape (k, queries)
    numbers : array of uint32, shape (k, queries)
    sizes : array of int64, shape (k,)
        How many there are of each table, in its first places.
    """
    sizes = np.full(queries.shape[1], len(queries), np.int64)
    if len(queries) == 1:
        return queries.reshape(-1, 1), np.zeros((queries.shape[1], 1), np.uint32), sizes
    return *sorted_tables(queries, np.arange(len(queries), dtype=np.uint32)), sizes


def of_file(keys, rows, asked, r, first, stop, most, allowed, sound=_SOUND):
    """As `cpu`, of tables that lie in a file, of which not everything was compared with its checksums.

    Parameters
    ----------
    keys, rows, r, first, stop, most, allowed :
        As of `reference`. Where the file is damaged they may be anything: what is found then is of no use, but it is
        found without harm.
    asked : (array of uint64, array of uint32, array of int64)
        What `in_order` makes of the queries, or `marked` leaves of that.
    sound : (array of uint8, array of uint8)
        Of each block of the keys, and of the rows, whether it was compared; without any nothing has to be.

    Returns
    -------
    found, offsets :
        As of `reference`.
    wanted : (array of uint8, array of uint8)
        Of each block, whether it has to be compared before what was found is used; and last, whether any has to be.
    """
    r, queries, (tables, width) = np.int64(r), len(first), asked[0].shape
    if is_alone() or queries <= FEW:
        return _probe_few(keys, rows, *asked, r, first, stop, most, allowed, sound)
    soon = int(asked[2].sum()) <= SOON
    pieces = 1 if soon else max(1, min(width // FEW, -(-4 * num_threads() // tables)))
    runs, sizes = np.empty((tables * width, 4), np.int64), np.empty((tables, pieces), np.int64)
    wanted = np.zeros(len(sound[0]) + 1, np.uint8), np.zeros(len(sound[1]) + 1, np.uint8)
    with alone() if soon else contextlib.nullcontext():
        _find_all(sizes.size, keys, rows, *asked, first, stop, sound, wanted, runs, sizes)
    if not sizes.any():
        return np.empty(0, np.int64), np.zeros(queries + 1, np.int64), wanted
    ends = np.zeros(queries, np.int64)
    grouped = _by_query(runs, sizes, asked[2], width, ends)
    return *_merged(rows, grouped, ends, r, most, allowed), wanted


class Together(NamedTuple):
    """Tables of several files that are asked at once, which `together` gives.

    about : array of int64, shape (files, 4)
        Address of the keys, entries of a table; address of what says which blocks were compared, and number of blocks.
    held : object
        What keeps the memory at these addresses.
    """

    about: np.ndarray
    held: Any


def together(files):
    """The tables of files as `sharing` reads them.

    Parameters
    ----------
    files : list of (array of uint64, array of uint8)
        The keys of each, as of `reference` and of k tables, and of their blocks whether each was compared, which may
        change later; no blocks where nothing has to be.
    """
    about = [(keys.ctypes.data, keys.shape[1], sound.ctypes.data, len(sound)) for keys, sound in files]
    if not all(each.flags.c_contiguous for some in files for each in some):
        raise ValueError("tables that are asked at once have to lie in one piece each")
    return Together(np.array(about, np.int64).reshape(-1, 4), files)


@jit("int64[:, ::1], uint64[::1], int64, boolean[::1], int64[:, ::1]")
def _sharing(about, query, r, shared, unread):
    """Write whether r tables of each file have the query's keys, and (file, block) that has to be compared before that
    is used; returns how many of these there are, some twice."""
    files, tables, size = len(about), len(query), np.int64(0)
    guesses = np.empty((files, tables), np.int64)  # of all tables of all files side by side
    for step in range(1 + ROUNDS):
        for file in range(files):
            entries = about[file, 1]
            keys = array_at(about[file, 0], tables, entries)
            for table in range(tables if entries > 0 else 0):
                if step == 0:
                    guesses[file, table] = first_guess(entries, query[table])
                else:
                    guesses[file, table] = better_guess(keys, table, query[table], guesses[file, table])
    for file in range(files):
        entries, common = about[file, 1], np.int64(0)
        keys, sound = array_at(about[file, 0], tables, entries), bytes_at(about[file, 2], about[file, 3])
        for table in range(tables if entries > 0 else 0):
            start = near(keys, table, query[table], guesses[file, table])
            common += np.int64(start < entries and keys[table, start] == query[table])
            for place in range(2 if len(sound) > 0 else 0):  # what is beside it shows that a key is not there
                beside = max(np.int64(0), min(start - np.int64(1) + np.int64(place), entries - np.int64(1)))
                block = (table * entries + beside) // np.int64(BLOCK_WORDS)
                if sound[block] == np.uint8(0):
                    unread[size, 0], unread[size, 1] = file, block
                    size += np.int64(1)
        shared[file] = common >= r
    return size


def sharing(files, query, r):
    """Which of several files have r of one query's keys in their tables: the others need not be asked for its rows.

    A file by itself is asked in some microseconds, of which most are spent on giving arrays to compiled code, and on
    waiting for memory that all can be waited for at once.

    Parameters
    ----------
    files : Together
    query : array of uint64, shape (k,)
    r : int

    Returns
    -------
    shared : array of bool, shape (files,)
    unread : array of int64, shape (n, 2)
        File and block that have to be compared before the answer is used, some twice.
    """
    number = len(files.about)
    shared, unread = np.zeros(number, np.bool_), np.empty((2 * number * len(query), 2), np.int64)
    size = _sharing(files.about, query, np.int64(r), shared, unread)
    return shared, unread[:size]


@parallel("uint64[:, ::1], uint32[:, ::1], int64[:, ::1]")
def _count_within(lower, upper, keys, rows, sizes):
    """How many entries of each piece of a table have an earlier one of the same key."""
    pieces, entries = sizes.shape[1], keys.shape[1]
    for task in range(lower, upper):
        table, piece = task // pieces, task % pieces
        begin, end = piece * entries // pieces, (piece + 1) * entries // pieces
        size = np.int64(0)
        for place in range(max(begin, np.int64(1)), end):
            size += keys[table, place] == keys[table, place - 1]
        sizes[table, piece] = size


@jit("uint64[:, ::1], uint32[:, ::1], int64, int64[::1]")
def _runs_within(keys, rows, number, ends):
    """Write behind which run each row's runs end; returns (table, first place, place behind the last one) of each."""
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
            before = np.int64(0)
            for row in range(len(ends)):
                before, ends[row] = before + ends[row], before
    return runs


def within(keys, rows, number):
    """The runs of earlier rows that rows of tables share keys with, each with those before itself: for `of_runs`.

    Parameters
    ----------
    keys, rows :
        As of `reference`.
    number : int
        Of all rows.

    Returns
    -------
    runs : array of int64, shape (runs, 3)
        Table, first place and place behind the last one; row by row.
    ends : array of int64, shape (number,)
        Behind which run those of each row end.
    """
    tables, entries = keys.shape
    sizes = np.zeros((tables, max(1, min(64, entries // 4096))), np.int64)
    _count_within(sizes.size, keys, rows, sizes)
    ends = np.zeros(number, np.int64)
    if not sizes.any():
        return np.empty((0, 3), np.int64), ends
    return _runs_within(keys, rows, int(sizes.sum()), ends), ends


@jit("uint32[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1]")
def _of_asked(rows, runs, ends, asked, first):
    """The runs of some rows, of the rows from the first on that are looked for."""
    size = np.int64(0)
    for row in asked:
        size += ends[row] - (ends[row - 1] if row > 0 else np.int64(0))
    found, theirs, size = np.empty((size, 3), np.int64), np.empty(len(asked), np.int64), np.int64(0)
    for query in range(len(asked)):
        row = asked[query]
        for run in range(ends[row - 1] if row > 0 else np.int64(0), ends[row]):
            low = first_row(rows, runs[run, 0], runs[run, 1], runs[run, 2], first[query])
            if low < runs[run, 2]:
                found[size, 0], found[size, 1], found[size, 2] = runs[run, 0], low, runs[run, 2]
                size += np.int64(1)
        theirs[query] = size
    return found[:size], theirs


def of_runs(rows, runs, ends, asked, r, first, most, allowed):
    """What `reference` finds of rows that ask for those before themselves, by what `within` gives.

    Parameters
    ----------
    asked : array of int64, shape (queries,)
        The rows that ask.
    rows, r, first, most, allowed, and what is returned :
        As of `reference`.
    """
    grouped, theirs = _of_asked(rows, runs, ends, asked, first)
    return _merged(rows, grouped, theirs, np.int64(r), most, allowed)


def _merged(rows, runs, ends, r, most, allowed):
    """Merge the runs of all queries."""
    offsets, nothing = np.zeros(len(ends) + 1, np.int64), np.empty(0, np.int64)
    if len(runs) == 0:
        return nothing, offsets
    counts = np.zeros(len(ends), np.int64)
    _merge_all(len(ends), rows, runs, ends, r, most, allowed, nothing, nothing, counts)
    np.cumsum(counts, out=offsets[1:])
    found = np.empty(int(offsets[-1]), np.int64)
    if len(found):
        _merge_all(len(ends), rows, runs, ends, r, most, allowed, found, offsets[:-1], counts)
    return found, offsets


def cpu(keys, rows, queries, r, first, stop, most, allowed):
    """As `reference`; pieces of the queries of each table in parallel, whose keys ascend, as those of the table do."""
    return of_file(keys, rows, in_order(queries), r, first, stop, most, allowed)[:2]


@Device
def _key_place(keys, table, low, high, key, behind):
    """Place of the first key of a table that is not below a key, or of the first one behind it."""
    while low < high:
        middle = (low + high) >> 1
        if keys[table, middle] < key or (behind and keys[table, middle] == key):
            low = middle + 1
        else:
            high = middle
    return low


@Device
def _merge_heads(rows, heads, ends, query, r, most, allowed, found, place):
    """As `_merge`, of the runs of all tables, which moves the `heads` of a query."""
    number, tables = np.int64(0), heads.shape[1]
    while number < most:
        least = np.int64(1) << np.int64(40)
        for table in range(tables):
            if heads[query, table] < ends[query, table]:
                least = min(least, np.int64(rows[table, heads[query, table]]))
        if least == np.int64(1) << np.int64(40):
            break
        shared = np.int64(0)
        for table in range(tables):
            if heads[query, table] < ends[query, table] and np.int64(rows[table, heads[query, table]]) == least:
                heads[query, table] += np.int64(1)
                shared += np.int64(1)
        if shared >= r and allowed[least] != np.uint8(0):
            if place >= np.int64(0):
                found[place + number] = least
            number += np.int64(1)
    return number


_first_row_on_device = Device(first_row.py_func)


@kernel("void(uint64[:,::1], uint32[:,::1], uint64[:,::1], int64[::1], int64[::1], int64[:,::1], int64[:,::1])")
def _find_each(keys, rows, queries, first, stop, starts, ends):
    """One thread a query and table, by bisection."""
    at = np.int64(cuda.grid(1))
    if at < queries.shape[0] * queries.shape[1]:
        query = at // queries.shape[1]
        table = at - query * queries.shape[1]
        key = queries[query, table]
        start = _key_place(keys, table, np.int64(0), np.int64(keys.shape[1]), key, False)
        end = _key_place(keys, table, start, np.int64(keys.shape[1]), key, True)
        start = _first_row_on_device(rows, table, start, end, first[query])
        starts[query, table] = start
        ends[query, table] = _first_row_on_device(rows, table, start, end, stop[query])


@kernel(
    "void(uint32[:,::1], int64[:,::1], int64[:,::1], int64, int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1])"
)
def _merge_each(rows, heads, ends, r, most, allowed, found, places, counts):
    """One thread a query."""
    query = cuda.grid(1)
    if query < len(counts):
        counts[query] = _merge_heads(rows, heads, ends, query, r, most[query], allowed, found, places[query])


def gpu(keys, rows, queries, r, first, stop, most, allowed):
    """As `reference`; a thread for each query and table, then one for each query."""
    xp = namespace()
    keys, rows, queries, allowed = on_device(keys), on_device(rows), on_device(queries), on_device(allowed)
    first, stop, most = on_device(first), on_device(stop), on_device(most)
    starts, ends = xp.empty(queries.shape, np.int64), xp.empty(queries.shape, np.int64)
    _find_each.threads(queries.size, keys, rows, queries, first, stop, starts, ends)
    counts, found = xp.zeros(len(queries), np.int64), xp.empty(1, np.int64)
    places = xp.full(len(queries), -1, np.int64)
    _merge_each.threads(len(queries), rows, starts.copy(), ends, r, most, allowed, found, places, counts)
    offsets = xp.zeros(len(queries) + 1, np.int64)
    offsets[1:] = xp.cumsum(counts)
    found, places = xp.empty(int(offsets[-1]), np.int64), offsets[:-1].copy()
    if len(found):
        _merge_each.threads(len(queries), rows, starts, ends, r, most, allowed, found, places, counts)
    return found, offsets
