"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

DOCUMENTS, MATCHING, DECIDING, OUTPUT, RUNNING = (
    "Documents",
    "What counts as a near-duplicate",
    "Who is kept",
    "Output",
    "Running",
)

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="Parquet, JSON lines (.gz, .zst), Arrow IPC, a folder of these or of text or HTML files, a glob, a URI.",
        show_default=False,
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--text-column",
        metavar="NAME",
        help="Column of text; several are joined.",
        show_default="text, else the only one",
        rich_help_panel=DOCUMENTS,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id-column",
        metavar="NAME",
        help="Column of ids, unique.",
        show_default="paths of files, else row numbers",
        rich_help_panel=DOCUMENTS,
    ),
]
Html = Annotated[
    bool, typer.Option("--html", help="The text is HTML: compare what is visible.", rich_help_panel=DOCUMENTS)
]
Glob = Annotated[
    str | None,
    typer.Option(
        "--glob", metavar="PATTERN", help="Which files of a folder to read: '*.py'.", rich_help_panel=DOCUMENTS
    ),
]
OnError = Annotated[
    str,
    typer.Option(
        "--on-error",
        metavar="WHAT",
        help="At a row that cannot be read: stop, or skip it and list it in skipped.parquet.",
        rich_help_panel=DOCUMENTS,
    ),
]
MaxDocumentBytes = Annotated[
    int,
    typer.Option(
        "--max-document-bytes",
        metavar="N",
        help="Longest line of JSON lines, and longest text or HTML file.",
        show_default="1 GiB",
        rich_help_panel=DOCUMENTS,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="X",
        help="Least resemblance, above 0 to 1.",
        show_default="0.8",
        rich_help_panel=MATCHING,
    ),
]
Recall = Annotated[
    float | None,
    typer.Option(
        "--recall",
        metavar="X",
        help="Share of the pairs at the threshold to find.",
        show_default="0.99",
        rich_help_panel=MATCHING,
    ),
]
FilterText = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="K,S,R",
        help="R of K features of S samples must agree; or altavista, bands, bing.",
        show_default="chosen for --recall",
        rich_help_panel=MATCHING,
    ),
]
ShingleSize = Annotated[
    int, typer.Option("--shingle-size", metavar="W", help="Words in a shingle.", rich_help_panel=MATCHING)
]
Shingling = Annotated[
    str, typer.Option("--shingling", metavar="KIND", help="set, bag or circular.", rich_help_panel=MATCHING)
]
Bits = Annotated[
    int | None,
    typer.Option(
        "--bits", metavar="L", help="Bits of a sample: 32 or 64.", show_default="32", rich_help_panel=MATCHING
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        metavar="KIND",
        help="What a simhash summarises: tokens or shingles.",
        show_default="tokens",
        rich_help_panel=MATCHING,
    ),
]
Weighting = Annotated[
    str | None,
    typer.Option(
        "--weighting",
        metavar="KIND",
        help="Weight of a feature: tf, log or tfidf.",
        show_default="log",
        rich_help_panel=MATCHING,
    ),
]
FrequenciesFile = Annotated[
    str | None,
    typer.Option(
        "--frequencies",
        metavar="FILE",
        help="Document frequencies for tfidf, from an earlier run.",
        show_default="counted",
        rich_help_panel=MATCHING,
    ),
]
TempDir = Annotated[
    str | None,
    typer.Option("--temp-dir", metavar="DIR", help="For temporary files.", rich_help_panel=RUNNING),
]
FeatureBits = Annotated[
    int | None,
    typer.Option(
        "--feature-bits",
        metavar="B",
        help="Bits of a feature: 64 or 16.",
        show_default="64; 16 for bing",
        rich_help_panel=MATCHING,
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Random constants are drawn from it.", rich_help_panel=MATCHING)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.", rich_help_panel=OUTPUT)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.", rich_help_panel=OUTPUT)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.", rich_help_panel=OUTPUT)]
Backend = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="NAME",
        help="gpu, cpu or reference; the same result.",
        show_default="gpu if there is one",
        rich_help_panel=RUNNING,
    ),
]
Device = Annotated[
    int | None,
    typer.Option("--device", metavar="N", help="Which GPU.", show_default="0", rich_help_panel=RUNNING),
]
GpuMemory = Annotated[
    str | None,
    typer.Option(
        "--gpu-memory",
        metavar="SIZE",
        help="GPU memory to use: 20GB, 20GiB.",
        show_default="80% of what is free",
        rich_help_panel=RUNNING,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", help="Processors to use.", show_default="all", rich_help_panel=RUNNING),
]
