"""Leases: who works in a place of a store, where nothing can be locked.

A small file says who has the place, and when that was last renewed. Who finds none, or one that was not renewed for
`LEASE` seconds, writes its own, waits a moment and reads it again: of several that begin at once, the one that wrote
last has the place, and the others are refused. Who has it renews it every quarter of that time, and ends when it finds
another one's there.

Stores without conditional writes allow no more than that. Who is held up for longer than a moment between reading and
writing takes a place that somebody has already: both work until the other one renews. Clocks of different machines are
compared: where they differ by more than `LEASE`, a lease may be taken over that is in use. So what is done in a place
has to be right if two do it at once; tasks write the same bits, and make again what is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time

from ..errors import NeardupError, OutputError
from .places import NoSuchFileError, Place

LEASE = 60.0
"""Seconds for which a lease holds unless it is renewed."""

MOMENT = 1.0
"""Seconds between writing a lease and reading it again."""


class Lease(contextlib.AbstractContextManager):
    """A lease of a place, in the block; it is given back at the end.

    Parameters
    ----------
    place : Place
    name : str
        Of the file.

    Raises
    ------
    OutputError
        If somebody else has the place, or if the lease cannot be read or written.
    """

    def __init__(self, place: Place, name: str) -> None:
        self._place, self._name, self._owner = place, name, secrets.token_hex(16)
        self._ended, self._lost = threading.Event(), ""
        self._renewed = 0.0
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> Lease:
        self._refuse_others()
        try:
            self._write()
            time.sleep(min(MOMENT, LEASE / 4))
            self._refuse_others()
            self._thread.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        with contextlib.suppress(NeardupError):  # what is left holds for a while only
            if self._other() is None:
                self._place.remove(self._name)

    def check(self) -> None:
        """See that the lease still holds.

        Raises
        ------
        OutputError
            If somebody else has taken the place, or if it could not be renewed in time.
        """
        if self._lost:
            raise OutputError(f"{self._place}: {self._lost}; run the same again when no other run works there")

    def _refuse_others(self) -> None:
        other = self._other()
        if other is None:
            return
        where, age = other
        if age < LEASE:
            raise OutputError(
                f"{self._place}: another run works in this folder ({where}, {max(0, age):.0f} s ago); wait for it, or "
                f"name another work_dir; if it was killed, run the same again in {LEASE - age:.0f} s"
            )

    def _other(self) -> tuple[str, float] | None:
        """Who else has the place, in words, and the seconds since that was renewed; None if nobody has."""
        try:
            text = self._place.read_text(self._name)
        except NoSuchFileError:
            return None
        try:
            found = json.loads(text)
            owner, where, age = found["owner"], str(found["where"]), time.time() - float(found["renewed"])
        except (KeyError, TypeError, ValueError):
            raise OutputError(
                f"{self._place}: its file {self._name} says of no run that it works there; remove that file, or name "
                "another work_dir"
            ) from None
        return None if owner == self._owner else (where, age)

    def _write(self) -> None:
        now = time.time()
        where = f"process {os.getpid()} of {socket.gethostname()}"
        self._place.write_text(self._name, json.dumps({"owner": self._owner, "where": where, "renewed": now}))
        self._renewed = now

    def _renew(self) -> None:
        while not self._ended.wait(LEASE / 4):
            try:
                if (other := self._other()) is not None:
                    self._lost = f"another run works in this folder by now ({other[0]})"
                    return
                self._write()
            except NeardupError as error:
                if time.time() - self._renewed > LEASE:
                    self._lost = f"the lease of this folder could not be renewed for {LEASE:.0f} s ({error})"
                    return
