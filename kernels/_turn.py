"""Whose turn it is to take Python's lock after compiled code: see `_calls.py`."""

from __future__ import annotations

from array import array

from ._processor import most_threads

TRIES = min(4000, 8000 // most_threads())
"""How often a thread looks whether it is its turn: on two processors for 200 microseconds, if a pause of the processor
takes 50 ns. Where there are many, threads more often look for a turn whose owner is asleep."""

turn = array("q", [0, TRIES, *(14 * [0])])
"""The thread whose turn it is, 0 for none, and `TRIES`. All modules of compiled code use these two words. The other
words keep what changes often off their cache line."""


def rest() -> None:
    """Give back this thread's turn, as it is about to wait for other threads.

    If another thread has the turn, it may have to wait for the lock asleep.
    """
    turn[0] = 0
