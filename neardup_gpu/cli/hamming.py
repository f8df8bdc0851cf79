"""The commands `neardup hamming build`, `query`, `join` and `pairs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..printable import printable, shell_path
from ..report import count, row, size, times
from .console import say, say_json, shown_progress
from .options import MATCHING, OUTPUT, Backend, Device, GpuMemory, Json, Overwrite, Quiet, Threads

if TYPE_CHECKING:
    import pyarrow as pa

FINGERPRINTS, DESIGN = "Fingerprints", "Tables"

app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})

FILES = "What `neardup simhash` wrote, other Parquet or Arrow IPC, .npy of uint64, or a folder of these."
Files = Annotated[list[str], typer.Argument(metavar="FINGERPRINTS", help=FILES, show_default=False)]
Column = Annotated[
    str,
    typer.Option(
        "--column",
        metavar="NAME",
        help="Column of uint64, or of lists of two for 128 bits.",
        rich_help_panel=FINGERPRINTS,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id-column",
        metavar="NAME",
        help="Column of ids.",
        show_default="id, else row numbers",
        rich_help_panel=FINGERPRINTS,
    ),
]
Radius = Annotated[
    int | None,
    typer.Option(
        "--radius",
        metavar="K",
        help="Bits in which two may differ.",
        show_default="the recipe's, else 3",
        rich_help_panel=MATCHING,
    ),
]
BucketLimit = Annotated[
    int | None,
    typer.Option(
        "--bucket-limit",
        metavar="N",
        help="Compare all with all in buckets of up to N.",
        show_default="the recipe's, else 512",
        rich_help_panel=MATCHING,
    ),
]
BucketProbe = Annotated[
    int | None,
    typer.Option(
        "--bucket-probe",
        metavar="N",
        help="In larger ones, compare each with the first N.",
        show_default="the recipe's, else 32",
        rich_help_panel=MATCHING,
    ),
]
PairsOutput = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Where the pairs go.", rich_help_panel=OUTPUT)
]


@app.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Find fingerprints that differ in few bits: an index to query, joins of large sets, pairs of one."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def build(
    fingerprints: Files,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where the index goes.", rich_help_panel=OUTPUT)
    ] = "index.hamming",
    column: Column = "simhash",
    id_column: IdColumn = None,
    radius: Radius = None,
    tables: Annotated[
        int | None,
        typer.Option(
            "--tables",
            metavar="N",
            help="The most leading bits that N tables can have.",
            show_default="the cheapest design",
            rich_help_panel=DESIGN,
        ),
    ] = None,
    leading_bits: Annotated[
        int | None,
        typer.Option(
            "--leading-bits",
            metavar="P",
            help="As few tables as have P leading bits each.",
            show_default=False,
            rich_help_panel=DESIGN,
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="The cheapest tables of at most this: 2GB.",
            show_default=False,
            rich_help_panel=DESIGN,
        ),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            "--queries",
            metavar="N",
            help="Queries expected in the index's life.",
            show_default="one a fingerprint",
            rich_help_panel=DESIGN,
        ),
    ] = None,
    compress: Annotated[
        bool,
        typer.Option("--compress", help="Huffman-code the tables: smaller, slower to ask.", rich_help_panel=DESIGN),
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    backend: Backend = None,
    device: Device = None,
    gpu_memory: GpuMemory = None,
    threads: Threads = None,
) -> None:
    """Build an index of fingerprints, to be asked by `neardup hamming query`."""
    from ..hamming import jobs as hamming_files

    with shown_progress(quiet) as progress:
        found = hamming_files.build(
            list(fingerprints),
            output,
            radius=radius,
            num_tables=tables,
            leading_bits=leading_bits,
            memory=memory,
            num_queries=queries,
            compress=compress,
            column=column,
            id_column=id_column,
            overwrite=overwrite,
            backend=backend,
            device=device,
            gpu_memory=gpu_memory,
            threads=threads,
            progress=progress,
        )
    following = f"neardup hamming query {shell_path(output)} --fingerprint {found['example'] or 'HEX'}"
    rows = [
        ("fingerprints", f"{found['fingerprints']:,} of {found['bits']} bits"),
        ("tables", f"{_tables(found)}, radius {found['radius']}"),
        ("a query", f"compares {_words_met(found['words_met'])}, if they are random"),
        ("file", size(found["file_bytes"])),
    ]
    if compress:
        least = f"no code takes fewer than {found['least_bits_a_word']:.1f} if they are random"
        rows.append(("compressed", f"{found['bits_a_word']:.1f} of 64 bits a word of a table; {least}"))
    _say(found, rows, output, following, as_json, quiet)


@app.command()
def query(
    index: Annotated[
        str, typer.Argument(metavar="INDEX", help="What `neardup hamming build` wrote.", show_default=False)
    ],
    fingerprints: Annotated[
        list[str] | None, typer.Argument(metavar="[FINGERPRINTS]", help=FILES, show_default=False)
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--fingerprint",
            metavar="HEX",
            help="Ask for this instead: 0x and hexadecimal digits, or all 16 (32) of them.",
            show_default=False,
            rich_help_panel=FINGERPRINTS,
        ),
    ] = None,
    column: Column = "simhash",
    id_column: IdColumn = None,
    radius: Annotated[
        int | None,
        typer.Option(
            "--radius",
            metavar="K",
            help="Bits in which two may differ.",
            show_default="the index's",
            rich_help_panel=MATCHING,
        ),
    ] = None,
    nearest: Annotated[
        int | None,
        typer.Option(
            "--nearest",
            metavar="N",
            help="The N nearest for each at most.",
            show_default="all within the radius",
            rich_help_panel=MATCHING,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Parquet to write.",
            show_default="they are printed",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    backend: Backend = None,
    device: Device = None,
    gpu_memory: GpuMemory = None,
    threads: Threads = None,
) -> None:
    """Ask an index what is near some fingerprints: query_id, id, distance, the nearest first."""
    from ..hamming import jobs as hamming_files

    show = None if output is not None else _print_lines if as_json else _Table()
    with shown_progress(quiet) as progress:
        found = hamming_files.query(
            index,
            list(fingerprints or []),
            output,
            values=list(values or []),
            radius=radius,
            nearest=nearest,
            column=column,
            id_column=id_column,
            overwrite=overwrite,
            backend=backend,
            device=device,
            gpu_memory=gpu_memory,
            threads=threads,
            progress=progress,
            show=show,
        )
    if output is not None:
        rows = [("matches", _matches(found))]
        _say(found, rows, output, f"neardup info {shell_path(output)}", as_json, quiet)
    elif not as_json and not quiet:
        say(("\n" if found["matches"] else "") + _matches(found))


@app.command()
def join(
    existing: Annotated[str, typer.Argument(metavar="EXISTING", help=f"The large set. {FILES}", show_default=False)],
    queries: Annotated[
        str, typer.Argument(metavar="QUERIES", help="The smaller one, held in memory.", show_default=False)
    ],
    output: PairsOutput = "pairs.parquet",
    column: Column = "simhash",
    id_column: IdColumn = None,
    radius: Radius = None,
    bucket_limit: BucketLimit = None,
    bucket_probe: BucketProbe = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    backend: Backend = None,
    device: Device = None,
    gpu_memory: GpuMemory = None,
    threads: Threads = None,
) -> None:
    """Find what of a set larger than memory is near some queries: id_a (existing), id_b (query), distance."""
    from ..hamming import jobs as hamming_files

    with shown_progress(quiet) as progress:
        found = hamming_files.join(
            existing,
            queries,
            output,
            radius=radius,
            bucket_limit=bucket_limit,
            bucket_probe=bucket_probe,
            column=column,
            id_column=id_column,
            overwrite=overwrite,
            backend=backend,
            device=device,
            gpu_memory=gpu_memory,
            threads=threads,
            progress=progress,
        )
    rows = [
        ("existing", f"{found['existing']:,}"),
        ("queries", f"{found['queries']:,}, {found['matched']:,} of them near some"),
        ("pairs", f"{found['pairs']:,} within {_bits(found['radius'])}"),
        *_uncompared(found),
    ]
    _say(found, rows, output, f"neardup info {shell_path(output)}", as_json, quiet)


@app.command()
def pairs(
    fingerprints: Files,
    output: PairsOutput = "pairs.parquet",
    column: Column = "simhash",
    id_column: IdColumn = None,
    radius: Radius = None,
    bucket_limit: BucketLimit = None,
    bucket_probe: BucketProbe = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    backend: Backend = None,
    device: Device = None,
    gpu_memory: GpuMemory = None,
    threads: Threads = None,
) -> None:
    """Find all pairs of a set that differ in few bits: id_a, id_b, distance."""
    from ..hamming import jobs as hamming_files

    with shown_progress(quiet) as progress:
        found = hamming_files.pairs(
            list(fingerprints),
            output,
            radius=radius,
            bucket_limit=bucket_limit,
            bucket_probe=bucket_probe,
            column=column,
            id_column=id_column,
            overwrite=overwrite,
            backend=backend,
            device=device,
            gpu_memory=gpu_memory,
            threads=threads,
            progress=progress,
        )
    rows = [
        ("fingerprints", f"{found['fingerprints']:,} of {found['bits']} bits"),
        ("identical", f"{found['identical']:,} to an earlier one, each one pair with the first"),
        ("tables", _tables(found)),
        ("pairs", f"{found['pairs']:,} within {_bits(found['radius'])}"),
        *_uncompared(found),
    ]
    _say(found, rows, output, f"neardup info {shell_path(output)}", as_json, quiet)


def _say(
    found: dict[str, Any], rows: list[tuple[str, str]], output: str, following: str, as_json: bool, quiet: bool
) -> None:
    """What was done, on stdout."""
    if as_json:
        say_json({**found, "output": output})
    elif not quiet:
        null = [("left out", f"{count(found['null'], 'row')} whose fingerprint is null")] if found["null"] else []
        every = (*rows, *null, *times(found["timings"]), ("written", output), ("next", following))
        say(*(row(label, text, 12) for label, text in every))


def _words_met(number: float) -> str:
    return f"{number:,.1f} fingerprints" if number >= 0.05 else "next to none"


def _bits(number: int) -> str:
    return count(number, "bit")


def _tables(found: dict[str, Any]) -> str:
    if found["leading_bits"] == 0:
        return "1, compared whole"
    return f"{found['tables']} of {found['leading_bits']} leading bits or more"


def _matches(found: dict[str, Any]) -> str:
    near = f"{found['matches']:,} within {_bits(found['radius'])}"
    return f"{near}, of {found['answered']:,} of {count(found['queries'], 'query')}"


def _uncompared(found: dict[str, Any]) -> list[tuple[str, str]]:
    if not found["large_buckets"]:
        return []
    buckets = count(found["large_buckets"], "large bucket")
    left_out = f"{count(found['uncompared_pairs'], 'pair')} in {buckets}, over all tables"
    return [("uncompared", f"{left_out}; --bucket-limit raises the limit")]


def _print_lines(matches: pa.Table) -> None:
    for match in matches.to_pylist():
        say_json(match, indent=None)


class _Table:
    """Prints matches as columns; those of what comes first are wide enough for it."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def __call__(self, matches: pa.Table) -> None:
        from rich.cells import cell_len

        rows = [[_shown(value) for value in match.values()] for match in matches.to_pylist()]
        if not self._widths:
            rows.insert(0, matches.column_names)
            self._widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for *ids, distance in rows:
            cells = [id + " " * (width - cell_len(id)) for id, width in zip(ids, self._widths, strict=False)]
            lines.append("  ".join([*cells, f"{distance:>{self._widths[-1]}}"]))
        say("\n".join(lines))


def _shown(value: Any) -> str:
    return printable(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))
