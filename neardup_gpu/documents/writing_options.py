"""Define `Writing`: what a job writes, as an argument of `dedup` and as flags of the command."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from .. import checks
from ..engine.memory import parse_size
from ..errors import InputError, ParameterError
from ..records import dataclass
from ..settings import refuse_unused, setting
from .reading_options import SEVERAL

if TYPE_CHECKING:
    from .stream import Documents

OutputFormat = Literal["parquet", "jsonl", "jsonl.gz", "jsonl.zst", "arrow"]
OUTPUT_FORMATS = {
    "parquet": ".parquet",
    "jsonl": ".jsonl",
    "jsonl.gz": ".jsonl.gz",
    "jsonl.zst": ".jsonl.zst",
    "arrow": ".arrow",
}
"""Formats in which any documents can be written, and the extensions of their files."""

_OWN: dict[str, OutputFormat] = {"parquet": "parquet", "memory": "parquet", "ipc": "arrow", "jsonl": "jsonl"}
"""The output format of documents of some formats."""

ROWS = ("output_format", "shard_bytes")
"""The fields of `Writing` that say how kept/ is written."""

DECISIONS = ("ids_only", "report", "check", "counts", "shared")
"""The fields of `Writing` that only `dedup` uses."""


@dataclass(frozen=True, kw_only=True)
class Writing:
    """The files that a job writes into its output, and the contents of its report.

    Parameters
    ----------
    output_format : "parquet", "jsonl", "jsonl.gz", "jsonl.zst" or "arrow", default None
        The format of kept/. If None, it is the format of the input.
    shard_bytes : int or str, default None
        Write kept/ in files of about this size, such as "1GB", which hold the rows of all input files one after
        another. Of a job of tasks, each task writes files of its own, at least one per slice. If None, kept/ has one
        file per input file.
    ids_only : bool, default False
        Write kept_ids.parquet, with the ids of kept documents, instead of kept/. A job of tasks writes kept_ids/ in
        parts.
    overwrite : bool, default False
        Replace the file or folder at `output`.
    report : bool, default False
        Write report.html into `output` as well, a page that shows the result. For this the input is read once more. It
        needs ``pip install 'neardup-gpu[report]'``, and about 600 bytes of memory per document.
    check : int, default None
        Number of documents sampled to estimate the recall, which the report states; 0 for none. If None, it is 200, or
        0 for the exact method and containment, which miss no pair. It has no effect if nothing is verified.
    counts : bool, default False
        Add the columns `copies` and `near` to the table of documents and to kept/: how many documents were removed for
        a kept one, those of the same words (or bytes, or key), and others. They are null for removed documents.
        Lines of JSON get two more members; other rows are written anew, in Parquet if their own format takes no new
        columns. Not with a unit.
    shared : bool, default False
        Add the column `shared` to the table of pairs: the number of shingles that both documents have, by which a pair
        was decided. Not with weights, common shingles that are left out, or where nothing is verified.
    by : str, default None
        A column of the input, or "file". The report counts documents, and near-duplicates between them, by its values;
        see `Result.by`. It changes no decision. The input is read once more for a column.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of range or has another type, or if two options exclude each other.

    Examples
    --------
    >>> Writing(shard_bytes="1GB").shard_bytes
    1000000000
    """

    output_format: OutputFormat | None = setting(
        None,
        f"Format of the kept rows: {', '.join(OUTPUT_FORMATS)}.",
        metavar="FORMAT",
        shown="the input's own",
    )
    shard_bytes: int | str | None = setting(
        None, "Write the kept rows into files of about this size.", metavar="SIZE", shown="one file per input file"
    )
    ids_only: bool = setting(False, "Write the ids of kept documents, kept_ids.parquet, instead of their rows.")
    overwrite: bool = setting(False, "Replace an existing output.")
    report: bool = setting(False, "Also write OUT/report.html, a page that shows the result.")
    check: int | None = setting(
        None,
        "Number of documents sampled to estimate the recall.",
        metavar="N",
        shown="200, none by exact and containment",
    )

    counts: bool = setting(
        False, "Count the copies and near-duplicates that each kept document stands for, in columns copies and near."
    )
    shared: bool = setting(False, "Also write the number of shingles that both documents of a pair have.")
    by: str | None = setting(
        None,
        "Count documents and what is found in them by the values of COLUMN, or by file.",
        metavar="COLUMN",
    )

    def __post_init__(self) -> None:
        checks.optional(checks.text, "by", self.by)
        if self.output_format is not None:
            checks.one_of("output_format", self.output_format, OUTPUT_FORMATS)
        if self.shard_bytes is not None:
            object.__setattr__(self, "shard_bytes", parse_size(self.shard_bytes, "shard_bytes"))
        for name in ("ids_only", "overwrite", "report", "counts", "shared"):
            object.__setattr__(self, name, checks.flag(name, getattr(self, name)))
        check = checks.optional(checks.integer, "check", self.check, 0, hint="0 turns the check of recall off")
        object.__setattr__(self, "check", check)
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


def chosen_writing(writing: Any, function: str, unused: Iterable[str] = ()) -> Writing:
    """Return the options of writing that a function was given, or the usual ones.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a field that the function does not use was given, or the argument has another type.
    """
    found = Writing() if writing is None else checks.instance("writing", writing, Writing)
    refuse_unused(found, function, unused)
    return found


def format_for(writing: Writing, documents: Documents) -> OutputFormat:
    """Return a name of `OUTPUT_FORMATS`: the given output format, or else the format of the documents.

    Raises
    ------
    ParameterError
        If no output format was given and the format of the documents is not in `OUTPUT_FORMATS`.
    """
    refuse_several(documents)
    if writing.output_format is not None:
        return writing.output_format
    own = _OWN.get(documents.format)
    if own is None:
        raise ParameterError(
            f"shard_bytes: {documents.format} is written file by file; name a format by output_format, one of "
            f"{', '.join(OUTPUT_FORMATS)}, or leave shard_bytes out"
        )
    if own == "jsonl" and documents.packing is not None:
        return cast(OutputFormat, f"jsonl{documents.packing}")
    return own


def refuse_several(documents: Documents) -> None:
    """Raise InputError if rows would be written anew whose files have several formats, and so different columns."""
    if documents.format == SEVERAL:
        raise InputError(
            f"{documents.describe()['paths'][0]}: files of several formats are kept each in its own format, so that "
            "rows cannot be written anew; leave that option out, or run on files of one format"
        )


def described(writing: Writing) -> dict[str, object]:
    """Return how the kept rows are written, as far as it was given, for reports."""
    given = {"output_format": writing.output_format, "shard_bytes": writing.shard_bytes, "ids_only": writing.ids_only}
    return {name: value for name, value in given.items() if value}


def rewriting(writing: Writing, documents: Documents) -> Writing:
    """Return settings that write rows anew: in their own format if it is in `OUTPUT_FORMATS`, else as Parquet."""
    refuse_several(documents)
    if writing.ids_only or writing.output_format is not None:
        return writing
    return replace(writing, output_format=format_for(writing, documents) if documents.format in _OWN else "parquet")
