"""Define the documents and the machines of a plan, from whose classes the command line makes its flags."""

from __future__ import annotations

from typing import Any

from .. import checks
from ..engine.memory import parse_size
from ..errors import ParameterError
from ..records import dataclass
from ..settings import setting


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The documents of a job, and what is assumed of them.

    Parameters
    ----------
    documents : float
        A whole number, at least 1.
    text_bytes : int or str
        The size of their text, such as "50TB".
    against_documents : float, default 0
        Documents of a reference set.
    against_bytes : int or str, default 0
        Their text.
    units : float, optional
        Number of parts of all documents of the input, if parts are compared. Parts of a reference set are assumed to be
        as long. All settings that follow then count parts in place of documents, except `id_bytes` and `place_bytes`.
    copies : float, default 0.2
        Share of the documents that have the same words as others.
    pairs : float, optional
        Pairs of near-duplicates that are not copies; a tenth of the documents unless given.
    token_bytes : float, default 6
        Of text for each token.
    containers : float, optional
        By containment, postings of documents as containing ones, in addition to those as contained ones; the same
        number by default.
    check : int, default 0
        Documents that are sampled to check the recall.
    near : float, default 10
        Possible partners of a sampled document.
    id_bytes : int, default 8
    place_bytes : int, default 48
        What ids, names of files and rows take of each document.
    """

    documents: float = setting(None, "Number of documents, such as 1e10.", metavar="N")
    text_bytes: Any = setting(None, "Size of their text, such as 50TB.", metavar="SIZE", flag="--text")
    units: float | None = setting(
        None, "With --unit: number of parts of all documents, to which the numbers below then apply.", metavar="N"
    )
    copies: float = setting(0.2, "Share of the documents that have the same words as others.", metavar="X")
    pairs: float | None = setting(
        None, "Number of pairs of near-duplicates that are not copies.", metavar="N", shown="a tenth of the documents"
    )
    against_documents: float = setting(0, "Number of documents in the reference set.", metavar="N", shown="none")
    against_bytes: Any = setting(
        0, "Size of the text in the reference set.", metavar="SIZE", flag="--against-text", shown="none"
    )
    containers: float | None = setting(
        None,
        "For containment: number of postings of containing documents.",
        metavar="N",
        shown="the number for contained documents",
    )
    check: int = setting(0, "Number of documents sampled to estimate the recall.", metavar="N", shown="none")
    near: float = setting(10.0, "Number of possible near-duplicates per sampled document.", metavar="N")
    token_bytes: float = setting(6.0, "Bytes of text per word.", metavar="X")
    id_bytes: int = setting(8, "Bytes per id.", metavar="N")
    place_bytes: int = setting(48, "Bytes per id with the name of its file and its row.", metavar="N")

    def __post_init__(self) -> None:
        for name, flag, example in (("documents", "--documents", "1e10"), ("text_bytes", "--text", "50TB")):
            if getattr(self, name) is None:
                raise ParameterError(f"{name} must be given, for example {flag} {example}")
        most = 2.0**48
        if checks.number("documents", self.documents, 1, most) != int(self.documents):
            raise ParameterError(f"documents must be a whole number, got {self.documents}")
        if checks.number("against_documents", self.against_documents, 0, most) != int(self.against_documents):
            raise ParameterError(f"against_documents must be a whole number, got {self.against_documents}")
        if checks.optional(checks.number, "units", self.units, 1, most) not in (None, int(self.units or 0)):
            raise ParameterError(f"units must be a whole number, got {self.units}")
        for name, least in (("text_bytes", 1), ("against_bytes", 0)):
            vars(self)[name] = _bytes_of(name, getattr(self, name), least)
        if (self.against_documents == 0) != (self.against_bytes == 0):
            missing = "against_bytes" if self.against_bytes == 0 else "against_documents"
            raise ParameterError(f"{missing}: is needed for a reference set, which has documents and text")
        checks.optional(checks.number, "containers", self.containers, 0, most)
        checks.integer("check", self.check, 0, 10**6)
        checks.number("near", self.near, 0, most)
        checks.fraction("copies", self.copies, one=False, hint="0.2 is a fifth")
        checks.optional(checks.number, "pairs", self.pairs, 0, most)
        checks.number("token_bytes", self.token_bytes, 1, 1000)
        checks.integer("id_bytes", self.id_bytes, 1, 1000)
        checks.integer("place_bytes", self.place_bytes, 1, 10_000)

    @property
    def compared(self) -> tuple[int, int]:
        """Documents or parts of the input, and those of the input and the reference set together."""
        if self.units is None:
            return int(self.documents), int(self.documents + self.against_documents)
        return int(self.units), int(self.units) + round(self.units * self.against_bytes / self.text_bytes)

    @property
    def all_bytes(self) -> int:
        """Text of the input and of the reference set."""
        return self.text_bytes + self.against_bytes


@dataclass(frozen=True, kw_only=True)
class Machines:
    """The machines and workers that the tasks run on.

    Parameters
    ----------
    nodes, cores : int
        Machines, and cores of each; a core runs a task.
    disk, network : int or str
        Bytes a second of each machine, reading and writing together.
    open_seconds : float
        To open a file and to find a partition in it.
    """

    nodes: int = setting(1, "Number of machines.", metavar="N")
    cores: int = setting(2, "Number of cores per machine.", metavar="N")
    disk: Any = setting("1GB", "Disk bandwidth per machine and second.", metavar="SIZE")
    network: Any = setting("1GB", "Network bandwidth per machine and second.", metavar="SIZE")
    open_seconds: float = setting(0.001, "Time to open a file of the work folder.", metavar="X")

    def __post_init__(self) -> None:
        checks.integer("nodes", self.nodes, 1, 10**6)
        checks.integer("cores", self.cores, 1, 10**4)
        for name in ("disk", "network"):
            vars(self)[name] = _bytes_of(name, getattr(self, name), 1)
        checks.number("open_seconds", self.open_seconds, 0, 1000)


def _bytes_of(name: str, value: Any, least: int) -> int:
    """Return a number of bytes that is given as such, or as a size with its unit."""
    return parse_size(value, name) if isinstance(value, str) else checks.integer(name, value, least)
