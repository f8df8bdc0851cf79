"""Options of the jobs on fingerprints in files, which are flags of `neardup hamming` as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import checks
from .engine.memory import parse_size
from .errors import ParameterError
from .records import dataclass
from .settings import setting

if TYPE_CHECKING:
    from .hamming.files import FingerprintFiles, Paths


@dataclass(frozen=True, kw_only=True)
class FingerprintColumns:
    """How files of fingerprints are read."""

    column: str = setting("simhash", "Column of uint64, or of lists of two for 128 bits.", metavar="NAME")
    id_column: str | None = setting(None, "Column of ids.", metavar="NAME", shown="id, else row numbers")

    def open(self, fingerprints: Paths) -> FingerprintFiles:
        """Open files of fingerprints: Parquet or Arrow IPC, .npy of uint64, or a folder of them."""
        from .hamming.files import open_fingerprints

        return open_fingerprints(fingerprints, column=self.column, id_column=self.id_column)


@dataclass(frozen=True, kw_only=True)
class Radius:
    """Which fingerprints are near."""

    radius: int | None = setting(
        None, "Bits in which two fingerprints may differ.", metavar="K", shown="the recipe's, else 3"
    )


@dataclass(frozen=True, kw_only=True)
class Near(Radius):
    """Which fingerprints of a set are near, and which are compared."""

    bucket_limit: int | None = setting(
        None, "Compare the first N fingerprints of a bucket all with all.", metavar="N", shown="the recipe's, else 512"
    )
    bucket_probe: int | None = setting(
        None, "Compare later ones with the first N of their bucket.", metavar="N", shown="the recipe's, else 32"
    )


@dataclass(frozen=True, kw_only=True)
class NearQueries(Near):
    """Which fingerprints are near some queries, and with which queries they are compared."""

    bucket_limit: int | None = setting(
        None, "Compare with all queries in buckets of up to N.", metavar="N", shown="the recipe's, else 512"
    )
    bucket_probe: int | None = setting(
        None, "In larger buckets, compare with the first N queries.", metavar="N", shown="the recipe's, else 32"
    )


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How many tables an index has, and of how many leading bits."""

    num_tables: int | None = setting(
        None,
        "The most leading bits that N tables can have.",
        metavar="N",
        flag="--tables",
        shown="the cheapest design",
    )
    leading_bits: int | None = setting(None, "The fewest tables that have P leading bits each.", metavar="P")
    table_memory: str | int | None = setting(
        None, "The cheapest tables of at most this size, such as 2GB.", metavar="SIZE", flag="--memory"
    )
    num_queries: int | None = setting(
        None, "Queries expected in the index's life.", metavar="N", flag="--queries", shown="one for each fingerprint"
    )
    compress: bool = setting(False, "Huffman-code the tables, which makes them smaller and queries slower.")

    def __post_init__(self) -> None:
        if sum(option is not None for option in (self.num_tables, self.leading_bits, self.table_memory)) > 1:
            raise ParameterError("num_tables, leading_bits and table_memory each choose the design; give one of them")
        if self.num_queries is not None and (self.num_tables is not None or self.leading_bits is not None):
            raise ParameterError(
                "num_queries chooses among designs; leave it out where num_tables or leading_bits names the design"
            )
        checks.optional(checks.integer, "num_queries", self.num_queries)
        if self.table_memory is not None:
            parse_size(self.table_memory, "table_memory")


@dataclass(frozen=True, kw_only=True)
class QueryColumns(FingerprintColumns):
    """The queries of an index."""

    values: tuple[str, ...] | None = setting(
        None,
        "A query instead of files: 0x and hexadecimal digits, or all 16 (32) digits.",
        metavar="HEX",
        flag="--fingerprint",
    )


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Which matches a query finds."""

    radius: int | None = setting(None, "Bits in which two fingerprints may differ.", metavar="K", shown="the index's")
    nearest: int | None = setting(
        None, "At most N nearest matches for each query.", metavar="N", shown="all within the radius"
    )


@dataclass(frozen=True, kw_only=True)
class Query(QueryColumns, Reach):
    """All options of a query."""

    def __post_init__(self) -> None:
        if self.values and (self.id_column is not None or self.column != "simhash"):
            raise ParameterError(
                "values, column and id_column: columns belong to files of fingerprints; leave them out, or give files"
            )
        checks.optional(checks.integer, "nearest", self.nearest, 1)


def options_of(kind: type[Any], value: Any) -> Any:
    """Return options of a class, which are the usual ones if None is given."""
    return kind() if value is None else checks.instance(kind.__name__.lower(), value, kind)
