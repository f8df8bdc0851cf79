"""Parts that the commands of an index share."""

from __future__ import annotations

from typing import Annotated, Any

from ...records import dataclass
from ...settings import setting
from ..options import OUTPUT, Output, argument, flags

NewIndex = Annotated[str, argument("INDEX", "Folder of the index to create.")]
IndexFolder = Annotated[str, argument("INDEX", "Folder that `neardup index create` made.")]


@dataclass(frozen=True, kw_only=True)
class Said(Output):
    """How a result is printed that is written into the index itself."""

    output: str | None = setting(None, "The index.", flag="")
    overwrite: bool = setting(False, "Never.", flag="")


SaidFlags: Any = flags(OUTPUT, Said)


def names_in(columns: list[str]) -> list[str]:
    """Names of columns that were given by a flag, with commas between them or each by a flag of its own."""
    return [name for each in columns for name in each.split(",")]
