"""Two ways to get candidates' shingles: a spool of everybody's, or a second pass over the input for theirs.

This is the part `verification`, by min-hash; `exact` needs everybody's. Both end in equal results.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neardup_gpu import Engine, Recipe, open_documents
from neardup_gpu.documents.sources import Sources
from neardup_gpu.engine.clock import Clock
from neardup_gpu.engine.contract import Runtime
from neardup_gpu.methods.measures import RESEMBLANCE
from neardup_gpu.stages import Ragged, Verified, shingle, tokenize
from neardup_gpu.stages.decisions import identical
from neardup_gpu.stages.joining import SpooledRows
from neardup_gpu.stages.sketching import Sketched, Sketcher
from neardup_gpu.stages.verification import verify_spooled

from .measure import THRESHOLD, Bench, Skip, figure, ratio


def part(bench: Bench) -> list[dict]:
    """Two ways to get candidates' shingles: a spool of everybody's, or a second pass over the input for theirs."""
    names = [name for name in ("bills_116", "winps_docs") if (bench.corpora / f"{name}.parquet").exists()]
    if not names:
        raise Skip("no corpus bills_116 or winps_docs; name the folder of the corpora with --corpora")
    return [row for name in names for row in _verification(bench, name, bench.shuffled(name))]


def _verification(bench: Bench, name: str, path: Path) -> list[dict]:
    recipe = Recipe(method="minhash", threshold=THRESHOLD)
    designs: dict[str, Callable[[Path, Recipe], tuple]] = {"spool": _by_spool, "second pass": _by_second_pass}
    runs: dict[str, list[dict]] = {design: [] for design in designs}
    answers = {}
    for _ in range(bench.repeat + 1):  # the first is dropped
        for design, run in designs.items():
            seconds, answers[design], known = run(path, recipe)
            runs[design].append({"seconds": seconds, **known})
    one, other = answers.values()
    assert np.array_equal(one.pairs.left, other.pairs.left) and np.array_equal(one.resemblance, other.resemblance)
    figures = []
    for design, done in runs.items():
        last = done[-1]
        context = {"corpus": name, "rows": "shuffled", "disk_mb": round(last["disk"] / 1e6, 1)}
        context["rows_in_candidates"] = round(last["share"], 4)
        parts = {part: [run["seconds"][part] for run in done[1:]] for part in last["seconds"]}
        figures += [figure(f"{design}: {part}", seconds, "s", **context) for part, seconds in parts.items()]
    totals = [[sum(run["seconds"].values()) for run in done[1:]] for done in runs.values()]
    for design, total in zip(runs, totals, strict=True):
        figures.append(figure(f"{design}: in all", total, "s", corpus=name, rows="shuffled"))
    figures.append(ratio("second pass over spool", totals[1], totals[0], corpus=name, rows="shuffled"))
    return figures


def _candidates(sketched: Sketched, recipe: Recipe, runtime: Runtime) -> tuple[np.ndarray, Any]:
    """Rows of one document of each token sequence, and candidate pairs of their places."""
    rows = np.flatnonzero(sketched.num_tokens > 0)
    first = identical(sketched.document_hashes, rows, runtime)
    own = rows[first == np.arange(len(rows))]
    return own, recipe.method.collide(sketched.keys[own], seed=recipe.seed).pairs


def _by_spool(path: Path, recipe: Recipe) -> tuple[dict[str, float], Verified, dict]:
    """All shingles go to a temporary file as the text streams by; candidates are gathered from it."""
    clock = Clock(None)
    with Engine(backend="cpu").start() as runtime, runtime.spool(None) as spool:
        sketched = Sketcher(recipe, runtime, clock, spool=spool).sketch_all(Sources(open_documents(path)))
        with clock.stage("collide"):
            own, pairs = _candidates(sketched, recipe, runtime)
        with clock.stage("gather and verify"):
            verified = verify_spooled(SpooledRows(spool, own), pairs, RESEMBLANCE, recipe.threshold, clock, runtime)
        share = len(np.unique([pairs.left, pairs.right])) / sketched.counts.documents
        return clock.seconds, verified, {"disk": 8 * spool.num_values, "share": share}


def _by_second_pass(path: Path, recipe: Recipe) -> tuple[dict[str, float], Verified, dict]:
    """The text is read again and candidates' documents are shingled again; theirs alone go to the temporary file, so
    that memory is as bounded as with the other design."""
    clock = Clock(None)
    with Engine(backend="cpu").start() as runtime:
        sketched = Sketcher(recipe, runtime, clock).sketch_all(Sources(open_documents(path)))
        with clock.stage("collide"):
            own, pairs = _candidates(sketched, recipe, runtime)
        with runtime.spool(None) as spool:
            wanted = np.unique(np.concatenate([pairs.left, pairs.right]))
            rows = own[wanted]
            with clock.stage("read and shingle again"):
                for batch in open_documents(path).batches():
                    first, last = np.searchsorted(rows, [batch.first_row, batch.first_row + batch.num_rows])
                    if first < last:
                        chosen = _select(batch.text, rows[first:last] - batch.first_row)
                        spool.append(shingle(tokenize(chosen, recipe, backend="cpu"), recipe, backend="cpu"))
            with clock.stage("gather and verify"):
                place = np.zeros(len(own), np.int64)
                place[wanted] = np.arange(len(wanted))
                spooled = SpooledRows(spool, place)
                verified = verify_spooled(spooled, pairs, RESEMBLANCE, recipe.threshold, clock, runtime)
            return (
                clock.seconds,
                verified,
                {"disk": 8 * spool.num_values, "share": len(rows) / sketched.counts.documents},
            )


def _select(text: Ragged, rows: np.ndarray) -> Ragged:
    """Some rows, copied."""
    return Ragged.from_rows([text[int(row)] for row in rows], np.uint8)
