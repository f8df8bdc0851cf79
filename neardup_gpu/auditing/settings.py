"""Define the settings of an audit, as flags and as keywords of `audit`."""

from __future__ import annotations

from typing import Literal, get_args

from .. import checks
from ..records import dataclass
from ..settings import setting

Tool = Literal["curator", "datatrove", "dolma", "duplodocus", "neardup", "text-dedup"]
TOOLS = get_args(Tool)
"""The tools whose output `tool` can name; see tools.py."""

CLOSE = 0.02
"""Pairs that are this close to the threshold are counted apart: another definition of a word may decide them."""

NEAREST_FROM = 0.5
"""The resemblance from which the nearest kept document of a lost one is looked for."""


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """Settings of an audit: how files are read, and how documents are judged.

    Parameters
    ----------
    kept_id_column : str, default None
        The column of ids in the files that the tool wrote. If None, it is that of the corpus.
    by_text : bool, default False
        Match documents by their texts instead of ids: by a digest of the text and, where no text of the corpus has the
        digest, by its words.
    tool : str, default None
        The tool that wrote the files; see `TOOLS`. If None, they hold rows, ids or a column `kept`.
    cluster_column : str, default None
        The column of `clusters` that names the cluster of a document. If None, it is found by its usual names.
    by : str, default None
        A column of the corpus. Everything is counted for each of its values as well.
    sample : int, default None
        Join this many removed and this many kept documents, drawn at random, instead of all.
    ignore_unknown : bool, default False
        Count and name ids that the corpus lacks, and go on.
    nearest_from : float, default 0.5
        The resemblance from which the nearest kept document of a lost one is looked for. A lower value takes longer.
    definitions : bool, default True
        If something is lost or missed, try other definitions of a shingle, to find out whether they explain it.
    """

    kept_id_column: str | None = setting(
        None, "Column of ids in the files of the tool.", metavar="NAME", shown="that of the corpus"
    )
    by_text: bool = setting(False, "Match documents by their texts, for tools that write rows without ids.")
    tool: Tool | None = setting(
        None, f"The tool that wrote the files: {', '.join(TOOLS)}.", metavar="TOOL", flag="--from"
    )
    cluster_column: str | None = setting(
        None, "Column of --clusters that names a document's cluster.", metavar="NAME", shown="found by its usual names"
    )
    by: str | None = setting(None, "Column of the corpus: count everything for each of its values.", metavar="COLUMN")
    sample: int | None = setting(
        None, "Join only N removed and N kept documents, drawn at random, and state intervals.", metavar="N"
    )
    ignore_unknown: bool = setting(False, "Count and name ids that the corpus lacks, and go on.")
    nearest_from: float = setting(
        NEAREST_FROM, "Look for the nearest kept document of a lost one from this resemblance on.", metavar="X"
    )
    definitions: bool = setting(
        True, "Do not try other definitions of a shingle where something is lost or missed.", flag="--no-definitions"
    )

    def __post_init__(self) -> None:
        for name in ("kept_id_column", "cluster_column", "by"):
            checks.optional(checks.text, name, getattr(self, name))
        for name in ("by_text", "ignore_unknown", "definitions"):
            checks.flag(name, getattr(self, name))
        if self.tool is not None:
            checks.one_of("tool", self.tool, TOOLS)
        checks.optional(checks.integer, "sample", self.sample, 1)
        checks.fraction("nearest_from", self.nearest_from, zero=False)
