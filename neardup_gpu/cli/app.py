"""The command `neardup`. Whatever is slow to import is imported where it is used, so that help is instant."""

from __future__ import annotations

from collections.abc import Callable
from math import nextafter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import __version__
from ..errors import ParameterError
from ..printable import shell_path
from ..report import beside, count, heading, percent, recipe_lines, row, shorten, size, summary, times
from . import hamming as hamming_cli
from .console import Place, notes, say, say_json, shown_progress, stdout
from .options import (
    DECIDING,
    DOCUMENTS,
    MATCHING,
    OUTPUT,
    RUNNING,
    Backend,
    Bits,
    Device,
    FeatureBits,
    Features,
    FilterText,
    FrequenciesFile,
    Glob,
    GpuMemory,
    Html,
    IdColumn,
    Inputs,
    Json,
    MaxDocumentBytes,
    OnError,
    Overwrite,
    Quiet,
    Recall,
    Seed,
    ShingleSize,
    Shingling,
    TempDir,
    TextColumns,
    Threads,
    Threshold,
    Weighting,
)
from .process import main as main

if TYPE_CHECKING:
    import pyarrow as pa

    from ..recipe import AnyRecipe

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(hamming_cli.app, name="hamming")

DRAWN_BY = "neardup curve"
"""What pictures say of themselves, so that they are known again."""

ClickException: Any = typer.BadParameter.__mro__[2]
"""Root of the usage errors, whether typer brings its own click or uses the installed one."""


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Find near-duplicate documents: which resemble each other, how much, which one stays and why the others go."""
    if version:
        say(f"neardup {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def dedup(
    inputs: Inputs,
    text_column: TextColumns = None,
    id_column: IdColumn = None,
    html: Html = False,
    glob: Glob = None,
    on_error: OnError = "stop",
    max_document_bytes: MaxDocumentBytes = 1 << 30,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="REFERENCE",
            help="Remove what resembles these documents too; they are left untouched.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="minhash or simhash.", rich_help_panel=MATCHING)
    ] = "minhash",
    threshold: Threshold = None,
    recall: Recall = None,
    filter: FilterText = None,
    radius: Annotated[
        int | None,
        typer.Option(
            "--radius",
            metavar="K",
            help="Bits in which near simhashes may differ.",
            show_default="3",
            rich_help_panel=MATCHING,
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Remove near simhashes only if resemblance reaches --threshold; min-hash always does.",
            rich_help_panel=MATCHING,
        ),
    ] = False,
    features: Features = None,
    weighting: Weighting = None,
    frequencies: FrequenciesFile = None,
    shingle_size: ShingleSize = 5,
    shingling: Shingling = "set",
    bits: Annotated[
        int | None,
        typer.Option(
            "--bits",
            metavar="L",
            help="Bits of a sample, 32 or 64; of a simhash, 64 or 128.",
            show_default="32; 64",
            rich_help_panel=MATCHING,
        ),
    ] = None,
    feature_bits: FeatureBits = None,
    seed: Seed = 1,
    keep: Annotated[
        str,
        typer.Option(
            "--keep", metavar="RULE", help="first, longest, or a column: date, date:desc.", rich_help_panel=DECIDING
        ),
    ] = "first",
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="RULE", help="greedy or components.", rich_help_panel=DECIDING)
    ] = "greedy",
    bucket_limit: Annotated[
        int | None,
        typer.Option(
            "--bucket-limit",
            metavar="N",
            help="Compare all with all in buckets of up to N documents.",
            show_default="64; 512 by simhash",
            rich_help_panel=MATCHING,
        ),
    ] = None,
    bucket_probe: Annotated[
        int | None,
        typer.Option(
            "--bucket-probe",
            metavar="N",
            help="In larger ones, compare each with the first N.",
            show_default="16; 32 by simhash",
            rich_help_panel=MATCHING,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Folder to write, whole or not at all.", rich_help_panel=OUTPUT
        ),
    ] = None,
    overwrite: Overwrite = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decide, but write nothing.", rich_help_panel=OUTPUT)
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Stages, pairs and recipe as well.", rich_help_panel=OUTPUT)
    ] = False,
    backend: Backend = None,
    device: Device = None,
    gpu_memory: GpuMemory = None,
    threads: Threads = None,
    temp_dir: TempDir = None,
    check: Annotated[
        int, typer.Option("--check", metavar="N", help="Documents sampled to estimate recall.", rich_help_panel=RUNNING)
    ] = 200,
) -> None:
    """Remove near-duplicates: OUT gets the rows that stay, and for each other one what it duplicates and how much."""
    if output is None and not dry_run:
        raise ParameterError("say where the result goes with --output OUT, or only decide with --dry-run")
    if method == "minhash":
        options = {"radius": radius, "verify": verify or None, "features": features, "weighting": weighting}
        _only_for("simhash", **options, frequencies=frequencies)
    else:
        _only_for("minhash", recall=recall, filter=filter, feature_bits=feature_bits)
        threshold = 0.8 if verify and threshold is None else threshold
    recipe = _recipe(
        method,
        threshold,
        recall,
        filter,
        radius,
        w=shingle_size,
        shingling=shingling,
        bits=bits,
        feature_bits=feature_bits,
        features=features,
        weighting=weighting,
        seed=seed,
        keep=keep,
        cluster=cluster,
        bucket_limit=bucket_limit,
        bucket_probe=bucket_probe,
    )
    from .. import pipeline

    with shown_progress(quiet) as progress:
        result = pipeline.dedup(
            _source(inputs),
            text_columns=text_column or None,
            id_column=id_column,
            html=html,
            glob=glob,
            on_error=on_error,
            max_document_bytes=max_document_bytes,
            against=against,
            recipe=recipe,
            frequencies=frequencies,
            output=None if dry_run else output,
            overwrite=overwrite,
            backend=backend,
            device=device,
            gpu_memory=gpu_memory,
            threads=threads,
            temp_dir=temp_dir,
            check=check,
            progress=progress,
        )
    where = None if dry_run else output
    if as_json:
        say_json({**result.report, "output": where})
    elif not quiet:
        example = None if where is None else _telling_example(result.documents)
        say(*summary(result.report, stdout().width, output=where, example=example, verbose=verbose))


@app.command()
def sketch(
    inputs: Inputs,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where the sketches go.", rich_help_panel=OUTPUT)
    ] = "sketches.parquet",
    text_column: TextColumns = None,
    id_column: IdColumn = None,
    html: Html = False,
    glob: Glob = None,
    on_error: OnError = "stop",
    max_document_bytes: MaxDocumentBytes = 1 << 30,
    threshold: Threshold = None,
    recall: Recall = None,
    filter: FilterText = None,
    shingle_size: ShingleSize = 5,
    shingling: Shingling = "set",
    bits: Bits = None,
    feature_bits: FeatureBits = None,
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    backend: Backend = None,
    device: Device = None,
    gpu_memory: GpuMemory = None,
    threads: Threads = None,
) -> None:
    """Summarise documents by fixed-size sketches, to be compared by `neardup pairs`."""
    options: Any = {"w": shingle_size, "shingling": shingling, "bits": bits, "feature_bits": feature_bits, "seed": seed}
    recipe = _recipe("minhash", threshold, recall, filter, **options)
    from .. import pipeline

    with shown_progress(quiet) as progress:
        counts = pipeline.sketch(
            _source(inputs),
            output,
            text_columns=text_column or None,
            id_column=id_column,
            html=html,
            glob=glob,
            on_error=on_error,
            max_document_bytes=max_document_bytes,
            recipe=recipe,
            overwrite=overwrite,
            backend=backend,
            device=device,
            gpu_memory=gpu_memory,
            threads=threads,
            progress=progress,
        )
    _say_counts(counts, output, as_json, quiet, f"neardup pairs {shell_path(output)}")


@app.command()
def simhash(
    inputs: Inputs,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where the simhashes go.", rich_help_panel=OUTPUT)
    ] = "simhashes.parquet",
    text_column: TextColumns = None,
    id_column: IdColumn = None,
    html: Html = False,
    glob: Glob = None,
    on_error: OnError = "stop",
    max_document_bytes: MaxDocumentBytes = 1 << 30,
    bits: Annotated[
        int, typer.Option("--bits", metavar="L", help="Bits of a simhash: 64 or 128.", rich_help_panel=MATCHING)
    ] = 64,
    features: Features = None,
    weighting: Weighting = None,
    frequencies: FrequenciesFile = None,
    shingle_size: ShingleSize = 5,
    shingling: Shingling = "set",
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    backend: Backend = None,
    device: Device = None,
    gpu_memory: GpuMemory = None,
    threads: Threads = None,
    temp_dir: TempDir = None,
) -> None:
    """Summarise documents by 64 or 128 bits, alike where they are alike, to be compared by `neardup hamming`."""
    options: Any = {"features": features, "weighting": weighting, "bits": bits, "seed": seed}
    recipe = _recipe("simhash", **options, w=shingle_size, shingling=shingling)
    from .. import pipeline

    with shown_progress(quiet) as progress:
        counts = pipeline.sketch(
            _source(inputs),
            output,
            text_columns=text_column or None,
            id_column=id_column,
            html=html,
            glob=glob,
            on_error=on_error,
            max_document_bytes=max_document_bytes,
            recipe=recipe,
            frequencies=frequencies,
            temp_dir=temp_dir,
            overwrite=overwrite,
            backend=backend,
            device=device,
            gpu_memory=gpu_memory,
            threads=threads,
            progress=progress,
        )
    _say_counts(counts, output, as_json, quiet, f"neardup hamming pairs {shell_path(output)}")


@app.command()
def pairs(
    sketches: Annotated[
        list[str], typer.Argument(metavar="SKETCHES", help="What `neardup sketch` wrote.", show_default=False)
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where the pairs go.", rich_help_panel=OUTPUT)
    ] = "pairs.parquet",
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="X",
            help="Least estimated resemblance.",
            show_default="all candidates",
            rich_help_panel=MATCHING,
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
    """Find pairs among sketches: the estimated resemblance of each, with its interval."""
    from .. import pipeline

    if threshold is not None and not 0 <= threshold <= 1:
        raise ParameterError(f"threshold {threshold} is outside 0 to 1; 0.8 is usual")
    with shown_progress(quiet) as progress:
        found = pipeline.find_pairs(
            list(sketches),
            output,
            threshold=threshold,
            overwrite=overwrite,
            backend=backend,
            device=device,
            gpu_memory=gpu_memory,
            threads=threads,
            progress=progress,
        )
    _say_counts({"pairs": found.num_rows}, output, as_json, quiet, f"neardup info {shell_path(output)}")


@app.command()
def explain(
    out: Annotated[str, typer.Argument(metavar="OUT", help="A folder that `neardup dedup` wrote.", show_default=False)],
    id: Annotated[str, typer.Argument(metavar="ID", help="A document.", show_default=False)],
    full: Annotated[bool, typer.Option("--full", help="Show all words, also those that agree.")] = False,
    as_json: Json = False,
) -> None:
    """Say why a document was removed: the kept one, their resemblance, and the words in which they differ."""
    from .. import explanation as explaining

    with notes():
        found = explaining.explain(out, id, full=full)
    if as_json:
        say_json(found.to_dict())
    else:
        place = stdout()
        say(explaining.render(found, width=place.width, colour=place.colour))


@app.command()
def curve(
    filter: FilterText = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", metavar="X", help="Choose a filter for it.", show_default="0.8")
    ] = None,
    recall: Annotated[
        float | None, typer.Option("--recall", metavar="X", help="Share to find at the threshold.", show_default="0.99")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Draw it: .svg, .png or .pdf.", rich_help_panel=OUTPUT),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Show how likely a filter makes two documents candidates, by their resemblance."""
    from .. import checks, theory

    if filter is not None and threshold is None:
        if recall is not None:
            raise ParameterError("--filter and --recall: the filter decides the recall; leave one of them out")
        k, s, r = theory.parse_filter(filter)
    else:
        threshold = 0.8 if threshold is None else threshold
        checks.fraction("threshold", threshold, zero=False)
        if filter is not None:
            _only_filter(recall)
            k, s, r = theory.parse_filter(filter)
        else:
            k, s, r = theory.choose_filter(threshold, 0.99 if recall is None else recall)
    if output is not None:
        _draw(output, (k, s, r), threshold, overwrite)
    levels = sorted({*(i / 20 for i in range(1, 21)), 0.975, 0.99, *([] if threshold is None else [threshold])})
    passing = [(x, theory.pass_probability(x, k, s, r), theory.miss_probability(x, k, s, r)) for x in levels]
    half = theory.half_point(k, s, r)
    if as_json:
        points = [{"resemblance": x, "pass": p, "miss": m} for x, p, m in passing]
        shape = {"filter": f"{k},{s},{r}", "samples": k * s, "threshold": threshold, "half_point": half}
        say_json({**shape, "points": points, "output": output})
        return
    meaning = f": {r} of {k} features agree, each of {count(s, 'sample')}; half at {half:.4f}"
    parts: list[Any] = [beside((f"filter {k},{s},{r}", "bold"), meaning)]
    if threshold is not None:
        parts.append(f"recall at resemblance {threshold}: {percent(theory.pass_probability(threshold, k, s, r))}")
    parts += ["", *_picture(lambda x: theory.pass_probability(x, k, s, r), threshold, stdout()), ""]
    parts.append(heading(f"{'resemblance':>11}  {'candidates':>12}  {'missed':>12}"))
    for x, p, m in passing:
        almost = nextafter(1, 0)  # where one of the two is above 0, the other is no more than this
        candidates, missed = percent(min(p, almost) if m else p), percent(min(m, almost) if p else m)
        line = f"{x:>11}  {candidates:>12}  {missed:>12}"
        parts.append(heading(line) if x == threshold else line)
    if output is not None:
        parts += ["", row("written", output)]
    say(*parts)


@app.command()
def info(
    path: Annotated[
        str, typer.Argument(metavar="FILE", help="Any file that neardup wrote, or a result folder.", show_default=False)
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Compare every byte with the checksums that were written with it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the recipe and the counts of any artefact."""
    from .. import info as artefact
    from ..store.artefacts import using_report

    found = artefact.describe(Path(path))
    if check:
        found["checked"] = artefact.check(Path(path))
    if as_json:
        say_json(found)
        return
    width = stdout().width
    parts: list[Any] = [beside((found["kind"], "bold"), f"  {shorten(str(path), width - len(found['kind']) - 2)}")]
    if "report" in found:
        with using_report(found["folder"]):
            parts += ["", *summary(found["report"], width, output=found["folder"], verbose=True)]
    else:
        parts += [f"  {name.replace('_', ' '):14} {value:,}" for name, value in found["counts"].items()]
        if "columns" in found:
            parts.append(beside(f"  {'columns':14} {', '.join(found['columns'])}"))
        if found["recipe"]:
            parts += ["", heading("recipe"), *recipe_lines(found["recipe"])]
    if check:
        parts += ["", f"checked: {found['checked']} are as written"]
    say(*parts)


def _say_counts(counts: dict[str, Any], output: str, as_json: bool, quiet: bool, following: str) -> None:
    if as_json:
        say_json({**counts, "output": output})
    elif not quiet:
        numbers = {name.replace("_", " "): value for name, value in counts.items() if isinstance(value, int)}
        rows = [(name, size(value) if name == "text bytes" else f"{value:,}") for name, value in numbers.items()]
        if "timings" in counts:
            rows += times(counts["timings"], None, counts["text_bytes"])
        say(*(row(label, text, 12) for label, text in (*rows, ("written", output), ("next", following))))


@app.command()
def selftest(
    backend: Backend = None,
    device: Device = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="Random inputs are drawn from it.",
            show_default="another each time",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check every kernel against its definition on this machine, and time it. Exit status 1 on any difference."""
    from rich.console import Console

    from .. import selftest as testing

    with notes(stages=False), Console(stderr=True).status("") as status:

        def show(row: dict[str, Any]) -> None:
            status.stop()  # which gives back stdout
            if row["kernel"] == first:
                say(testing.header())
            say(testing.render_row(row))
            status.start()

        first = next(iter(testing.kernel_modules()))
        found = testing.run(
            backend,
            device=device,
            seed=seed,
            progress=lambda name: status.update(f"testing {name}"),
            report=None if as_json else show,
        )
    if as_json:
        say_json(found)
    else:
        say("", testing.conclusion(found))
    if not found["agrees"]:
        raise typer.Exit(1)


def _recipe(
    method: str,
    threshold: float | None = None,
    recall: float | None = None,
    filter: str | None = None,
    radius: int | None = None,
    **rest: Any,
) -> AnyRecipe:
    from ..recipe import choose_recipe

    if filter is not None:
        _only_filter(recall)
    given = {name: value for name, value in rest.items() if value is not None}
    return choose_recipe(method, threshold, recall, filter, radius, **given)


def _only_for(method: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise ParameterError(f"--{name.replace('_', '-')} is for --method {method}; leave it out")


def _only_filter(recall: float | None) -> None:
    if recall is not None:
        raise ParameterError("--filter and --recall: the filter decides the recall; leave one of them out")


def _source(inputs: list[str]) -> str | list[str]:
    return inputs[0] if len(inputs) == 1 else inputs


def _telling_example(documents: pa.Table) -> str | None:
    """Id of the removed document that resembles its kept one least, so that its diff is worth a look."""
    import pyarrow as pa
    import pyarrow.compute as pc

    removed = documents.select(["id", "kept", "resemblance"]).filter(pc.invert(documents["kept"]))
    if removed.num_rows == 0:
        return None
    least = pc.min(removed["resemblance"])
    row = 0 if not least.is_valid else pc.index(removed["resemblance"], least).as_py()
    found = removed["id"][row]
    if pa.types.is_binary(found.type) or pa.types.is_large_binary(found.type):
        return found.as_py().decode("utf-8", "surrogateescape")
    return str(found.as_py())


def _picture(height_at: Callable[[float], float], threshold: float | None, place: Place) -> list[Any]:
    """The curve over 0 to 1, drawn with characters."""
    from rich.text import Text

    rows, columns = 12, min(64, place.width - 8)
    heights = [height_at((i + 0.5) / columns) for i in range(columns)]
    marked = -1 if threshold is None else min(columns - 1, int(threshold * columns))
    blocks, mark = (" ▁▂▃▄▅▆▇█", "│") if place.blocks else ("    #####", "|")
    lines: list[Any] = []
    for level in reversed(range(rows)):
        label = {rows - 1: "100%", rows // 2 - 1: "50%", 0: "0%"}.get(level, "")
        line = Text(f"{label:>5} ")
        for i, height in enumerate(heights):
            cell = blocks[min(8, max(0, round((height * rows - level) * 8)))]
            line.append(mark if i == marked and cell == " " else cell, "yellow" if i == marked else "cyan")
        lines.append(line)
    axis = [" "] * (columns + 4)
    for tenth in range(0, 11, 2):
        at = round(tenth / 10 * columns)
        axis[at : at + 3] = f"{tenth / 10:.1f}"
    return [*lines, f"{'':5} {''.join(axis)}"]


def _draw(output: str, filter: tuple[int, int, int], threshold: float | None, overwrite: bool) -> None:
    path = Path(output)
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise ParameterError(f"{path}: name a picture that ends in .svg, .png or .pdf")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ParameterError(
            f"{path}: drawing needs matplotlib; install it with: pip install 'neardup_gpu[notebook]'"
        ) from None
    from .. import theory
    from ..store.outputs import new_file

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    levels = [i / 400 for i in range(401)]
    axes.plot(levels, [theory.pass_probability(x, *filter) for x in levels])
    if threshold is not None:
        axes.axvline(threshold, linestyle=":", color="grey")
    axes.set(
        xlabel="resemblance",
        ylabel="probability of becoming candidates",
        title=f"filter {','.join(map(str, filter))}",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    key = "Software" if path.suffix.lower() == ".png" else "Creator"
    with notes(), new_file(output, overwrite, is_ours=_is_drawn) as file:
        figure.savefig(file, metadata={key: DRAWN_BY})


def _is_drawn(path: Path) -> bool:
    """Whether a picture was drawn by `neardup curve`."""
    return path.stat().st_size < 1 << 20 and DRAWN_BY.encode() in path.read_bytes()
