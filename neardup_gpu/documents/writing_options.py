"""Define how the kept documents are written: parameters of `dedup`, and flags of the command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import checks
from ..engine.memory import parse_size
from ..errors import ParameterError
from ..settings import setting

if TYPE_CHECKING:
    from .stream import Documents

OUTPUT_FORMATS = {
    "parquet": ".parquet",
    "jsonl": ".jsonl",
    "jsonl.gz": ".jsonl.gz",
    "jsonl.zst": ".jsonl.zst",
    "arrow": ".arrow",
}
"""Formats in which any documents can be written, and the extensions of their files."""


@dataclass(frozen=True, kw_only=True)
class Writing:
    """How the kept documents are written; see `dedup`."""

    output_format: str | None = setting(
        None,
        f"Format of the kept rows: {', '.join(OUTPUT_FORMATS)}.",
        metavar="FORMAT",
        shown="the input's own",
    )
    shard_bytes: int | str | None = setting(
        None, "Write the kept rows into files of about this size.", metavar="SIZE", shown="one file per input file"
    )
    ids_only: bool = setting(False, "Write the ids of kept documents, kept_ids.parquet, instead of their rows.")

    def __post_init__(self) -> None:
        if self.output_format is not None:
            checks.one_of("output_format", self.output_format, OUTPUT_FORMATS)
        if self.shard_bytes is not None:
            object.__setattr__(self, "shard_bytes", parse_size(self.shard_bytes, "shard_bytes"))
        object.__setattr__(self, "ids_only", checks.flag("ids_only", self.ids_only))
        if self.ids_only and self.rewrites:
            what = "output_format" if self.output_format is not None else "shard_bytes"
            raise ParameterError(f"{what}: no rows are written with ids_only; leave out one of them")

    @property
    def rewrites(self) -> bool:
        """Whether kept rows are written in another way than file by file in their own format."""
        return self.output_format is not None or self.shard_bytes is not None

    @property
    def most_bytes(self) -> int | None:
        """Maximum bytes per file before the next file begins."""
        return None if self.shard_bytes is None else int(self.shard_bytes)

    def format_for(self, documents: Documents) -> str:
        """Return a name of `OUTPUT_FORMATS`: the given output format, or else the format of the documents.

        Raises
        ------
        ParameterError
            If no output format was given and the format of the documents is not in `OUTPUT_FORMATS`.
        """
        if self.output_format is not None:
            return self.output_format
        own = {"parquet": "parquet", "memory": "parquet", "ipc": "arrow", "jsonl": "jsonl"}.get(documents.format)
        if own is None:
            raise ParameterError(
                f"shard_bytes: {documents.format} is written file by file; name a format by output_format, one of "
                f"{', '.join(OUTPUT_FORMATS)}, or leave shard_bytes out"
            )
        if own == "jsonl" and documents.packing is not None:
            return f"jsonl{documents.packing}"
        return own

    def describe(self) -> dict[str, object]:
        """Return the settings that were given, for reports."""
        given = {"output_format": self.output_format, "shard_bytes": self.shard_bytes, "ids_only": self.ids_only}
        return {name: value for name, value in given.items() if value}
