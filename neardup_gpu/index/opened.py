"""An index that is open: its folder, the snapshot that is held of it, and the writer, once something is written."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from neardup_gpu.kernels._cpu import alone as kernels_alone

from ..engine.host import HostRuntime
from ..engine.settings import Engine
from ..engine.threads import on_threads
from ..errors import DamagedError, ParameterError
from ..methods import check_able
from ..methods.finding.contract import Finder
from ..recipe import Recipe
from . import manifest as manifests
from .locking import WriterLock
from .manifest import Held, Manifest
from .merging import Merges
from .segments import SEGMENT, Segment
from .snapshot import Snapshot, on_host, order_of
from .validity import misses
from .writer import Writer

if TYPE_CHECKING:
    from ..engine.contract import Runtime


class Opened:
    """The objects that all calls of an open index share.

    Parameters
    ----------
    folder : Path
    engine : Engine
    """

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder, self.engine = folder, engine
        self._stack = contextlib.ExitStack()
        self._refreshing = threading.Lock()
        self._writer: Writer | None = None
        self._held: Held | None = None
        self.state: tuple[Manifest, list[Segment]] = Manifest(0, ""), []
        self._snapshot: tuple[tuple[Manifest, list[Segment]], Snapshot] | None = None
        self._merges: Merges | None = None
        self._closed, self._process = False, os.getpid()
        self._load()

    @property
    def manifest(self) -> Manifest:
        """The manifest of the snapshot."""
        return self.state[0]

    def _load(self) -> None:
        """Take the newest snapshot; segments that are as they were stay mapped."""
        held = Held(self.folder)
        try:
            manifest = held.manifest
            recipe = Recipe.from_json(manifest.recipe, f"{self.folder}")
            same_folder = self._held is not None and self._held.is_in_place()
            known = {each.place: each for each in self.state[1]} if same_folder else {}
            kind = manifest.id_kind or "integer"
            segments = [known.get(each) or Segment.load(self.folder, each, kind) for each in manifest.segments]
            check_able(recipe.method, "finder", "cannot find candidates in an index")
            finder: Finder = recipe.method.finder(recipe, manifest.keeps)
            for segment in (each for each in segments if each.place not in known):
                lacks = misses(segment, finder, recipe, manifest.keeps, manifest.columns)
                if lacks is not None:
                    raise DamagedError(
                        f"{self.folder}: a segment lacks the array {lacks!r} in the form of its recipe; {SEGMENT.again}"
                    )
        except BaseException:
            held.close()
            raise
        if self._held is not None:
            self._held.close()
        self._held, self.recipe, self.finder, self.state = held, recipe, finder, (manifest, segments)

    def refresh(self) -> None:
        """Take the newest snapshot, unless this process writes and has it."""
        self.check_open()
        with self._refreshing:  # of several threads, one after another
            if self._writer is None and (self._held is None or not self._held.is_newest()):
                self._load()

    def close(self) -> None:
        """Let go of the index; a writer lets others write."""
        self._closed = True
        self.state, self._snapshot, self._writer = (self.manifest, []), None, None
        self._merges = None
        if self._held is not None:
            self._held.close()
            self._held = None
        self._stack.close()

    def check_open(self) -> None:
        """Raise ParameterError if the index was closed, or opened by a process that this one was forked from."""
        if self._closed:
            raise ParameterError(f"{self.folder}: the index is closed; open it again")
        self.check_process()

    def check_process(self) -> None:
        """Raise ParameterError if the index was opened before this process was forked."""
        if os.getpid() != self._process:
            raise ParameterError(
                f"{self.folder}: the index was opened by process {self._process}, from which this one was forked; "
                "open the index again in this process"
            )

    def check_files(self) -> None:
        """Check that the index is open, and that its files are there and as large as they were.

        A file that is cut while it is read ends the process, as the system sends a signal (SIGBUS); so whoever cuts one
        between this look and the reading can still do that.

        Raises
        ------
        ParameterError
            As `check_open` does.
        InputError, DamagedError
            If a file was cut, or may have been removed.
        """
        self.check_open()
        if self._held is not None:
            self._held.check()
        for segment in self.state[1]:
            segment.check_size()

    def snapshot(self, runtime: Runtime) -> tuple[Manifest, Snapshot]:
        """The manifest and its segments, which belong together whatever another thread refreshes meanwhile."""
        state, backend = self.state, on_host(runtime.backend)
        known = self._snapshot
        if known is None or known[0] is not state or known[1].backend != backend:
            order_of(state[1])  # refuses postings that follow another order
            known = self._snapshot = state, Snapshot(state[1], backend)
        return state[0], known[1]

    @contextlib.contextmanager
    def running(self) -> Iterator[Runtime]:
        """Compute in the block."""
        self.check_files()
        with on_threads(self.engine.threads), self.engine.start() as runtime:
            yield runtime

    @contextlib.contextmanager
    def alone(self) -> Iterator[Runtime]:
        """Compute in the block on the thread that calls, which starts no others: any number of threads may."""
        self.check_files()
        with kernels_alone():
            yield HostRuntime(on_host(self.engine.resolve()))

    def write(self) -> Writer:
        """The writer; this process becomes the one that writes.

        Raises
        ------
        OutputError
            If another process is, or the folder cannot be written.
        """
        self.check_open()
        with self._refreshing:
            if self._writer is None:
                with contextlib.ExitStack() as stack:  # lets go of the lock if the rest fails
                    lock = stack.enter_context(WriterLock(self.folder))
                    manifests.make_folders(self.folder)
                    self._load()
                    self._writer = writer = Writer(self.folder, self.manifest, self.state[1], lock)
                    stack.callback(setattr, self, "_writer", None)
                    self.state = writer.manifest, writer.segments
                    writer.clean()
                    self._stack.push(stack.pop_all())
            else:  # which may have committed something and failed afterwards
                self.state = self._writer.manifest, self._writer.segments
        return self._writer

    def go_on_merging(self) -> None:
        """Merge from now on until `close`, in a second thread, instead of to the end of each call that adds."""
        if self._merges is None:
            writer = self.write()
            merges = Merges(writer, lambda: self.committed(writer), beside=True, outlives=True)
            self._merges = self._stack.enter_context(merges)

    def merging(self, writer: Writer, beside: bool) -> contextlib.AbstractContextManager[Merges]:
        """Merge what is due while documents are added in the block."""
        if self._merges is not None:
            return contextlib.nullcontext(self._merges)
        return Merges(writer, lambda: self.committed(writer), beside)

    def committed(self, writer: Writer) -> None:
        """Go on with what the writer has committed, and remove what it has made superfluous."""
        self.state = writer.manifest, writer.segments
        if self._held is not None:
            self._held.close()
            self._held = None
        writer.clean()
