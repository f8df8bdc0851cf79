"""dedup_in_tasks: the order of the stages, and the report of what they found.

The driver holds names of files and counts, and nothing for each document.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import __version__, checks
from ..definitions import versions
from ..documents import open_documents
from ..documents.slices import slices_of
from ..engine.clock import Clock, Progress, with_bars
from ..engine.memory import parse_size
from ..engine.settings import Engine, as_engine
from ..errors import InputError, OutputError, ParameterError
from ..log import log
from ..recipe import Recipe
from ..report import count
from ..store.outputs import new_folder
from ..store.places import Place
from . import candidates, copies, crowds, naming, pairs, ranking, results, sketching
from .columns import name_of
from .layout import Layout
from .scale_out import ScaleOut
from .work import Shared, Stage, Work

if TYPE_CHECKING:
    from ..documents import Documents
    from ..documents.slices import Slice
    from .contract import Workers


class Source(NamedTuple):
    """The slices of all documents, a reference set before the input."""

    slices: list[Slice]
    num_known: int

    @property
    def numbers(self) -> range:
        return range(len(self.slices))


class Candidates(NamedTuple):
    """What the stages for candidates found."""

    stage: Stage
    limits: dict[str, int]


def run(work: Work, source: Source, max_comparisons: int | None) -> dict[str, Any]:
    """Do all stages; returns the counts and all else that a report says of a job."""
    recipe = work.shared.recipe
    sketched = _sketch(work, source)
    layout = _layout(sketched, source, work.shared)
    order = _rank(work, sketched, layout)
    before = [sketched, *order]
    of_tokens = _copies(work, "copies", "hashes", layout, before)
    same = of_tokens if recipe.verifies else _copies(work, "same", "same", layout, before)
    before = [*before, same]
    waiting = sketched.total("present") - same.total("copies")
    found = (_by_keys if recipe.method.sketches else _by_shingles)(work, source, layout, sketched, same, waiting, before)
    verified = _verify(work, source, layout, found, before)
    crowd = _join_crowds(work, source, layout, found, verified, before, max_comparisons)
    named = _name(work, layout, same, verified, crowd, before)
    return _result(work, source, layout, Made(sketched, of_tokens, same, found, verified, crowd, named, before))
