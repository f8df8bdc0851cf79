"""The column of seams: the bytes at which earlier runs cut a text, and the tokens that follow them.

Text on both sides of a seam was not together in any document, so no run of tokens is looked for across it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import Ragged, arrow
from ..engine.choice import to_host
from ..engine.pieces import OfBatch, Span
from ..errors import InputError
from ..recipe import Recipe
from ..records import dataclass
from ..text.raw_text import UNIT_BYTES
from ..text.token_changes import make_tokens
from .batches import some_rows
from .columns import SEAMS
from .edits import Cuts
from .stream import Batch, Documents

_NOTHING = np.empty(0, np.int64)


def find_seams(documents: Documents) -> None:
    """Let all readings of an input, and of its slices, include the column of seams if there is one.

    Raises
    ------
    InputError
        If the input has seams, but its text is made from columns, so that they are not seams of this text.
    """
    if not any(SEAMS in reader.schema.names for reader in documents._readers):
        return
    if documents.extracts_text:
        raise InputError(
            f"the input has a column {SEAMS!r}, which belongs to text that was cut; name that text, usually "
            "extracted_text, with text_columns"
        )
    documents._columns.others.append(SEAMS)


def columns_of_seams(documents: Documents) -> list[str]:
    """Return the column of seams if `find_seams` has found it, or if this is a slice of such an input."""
    return [SEAMS] if SEAMS in documents._columns.others else []


def seams_of(column: pa.Array, sizes: np.ndarray) -> Ragged:
    """Return the places in a column of seams, which is text: numbers with spaces between them.

    Parameters
    ----------
    column : pyarrow.Array
    sizes : array of int64
        The bytes of each text. A seam beyond the end of its text is taken to lie at the end.

    Raises
    ------
    InputError
        If it holds something else.
    """
    wrong = f"column {SEAMS!r}: holds something else than the bytes at which neardup cut text; rename it"
    try:
        texts = pc.fill_null(column.cast(pa.large_string()), "")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(wrong) from None
    if not pc.all(pc.match_substring_regex(texts, r"^([0-9]{1,18}( [0-9]{1,18})*)?$"), min_count=0).as_py():
        raise InputError(wrong)
    parts = pc.split_pattern(pc.filter(texts, pc.not_equal(texts, "")), " ")
    number = np.zeros(len(texts), np.int64)
    number[np.flatnonzero(pc.not_equal(texts, "").to_numpy(zero_copy_only=False))] = pc.list_value_length(parts)
    places = pc.list_flatten(parts).cast(pa.int64()).to_numpy()
    return Ragged._trusted(np.minimum(places, np.repeat(sizes, number)), np.append(0, np.cumsum(number)))


def joined_seams(parts: list[Ragged], num_documents: int) -> Ragged:
    """Join the seams of consecutive documents; without any part, all documents have none."""
    sizes = np.concatenate([each.sizes for each in parts]) if parts else np.zeros(num_documents, np.int64)
    return Ragged._trusted(np.concatenate([_NOTHING, *(each.values for each in parts)]), np.append(0, np.cumsum(sizes)))


@dataclass(frozen=True, eq=False)
class SeamedPiece(OfBatch):
    """Some documents of a batch.

    Parameters
    ----------
    text : Ragged of uint8
        The text of the whole batch, which lies where the backend wants it.
    seams : Ragged of int64 or None
        The seams of the whole batch; None if no column of seams was read.
    """

    text: Ragged
    seams: Ragged | None

    @classmethod
    def of(cls, batch: Batch, text: Ragged, recipe: Recipe) -> SeamedPiece:
        """Return all documents of a batch. If they are lists of integers, seams count these in place of bytes.

        Raises
        ------
        InputError
            If the column of seams holds something else.
        """
        sizes = batch.text.sizes // UNIT_BYTES[recipe.shingles.token_kind.holds]
        seams = seams_of(batch.columns[SEAMS], sizes) if SEAMS in batch.columns else None
        return cls(batch, Span.of_documents(batch.text.offsets, batch.ids), text, seams)

    def bars(self, tokens: Ragged, recipe: Recipe, backend: str) -> np.ndarray:
        """Return the tokens of the piece before which a seam lies: array of int64.

        Parameters
        ----------
        tokens : Ragged of uint64
            The tokens of the documents of the piece.
        recipe : Recipe
            Says what a token is.
        backend : str
        """
        if self.seams is None or len(self.seams.values) == 0:
            return _NOTHING
        first, last = self.span.first, self.span.last
        number = self.seams.sizes[first:last]
        rows = np.flatnonzero(number)
        text = some_rows(self.batch.text, rows + first)
        names = self.batch.ids.take(arrow(rows + first))
        _, offsets, _, begins, _ = make_tokens(text, recipe, "cpu" if backend == "gpu" else backend, names, True)
        number = number[rows]
        places = self.seams.values[self.seams.offsets[first] : self.seams.offsets[last]]
        places = places * UNIT_BYTES[recipe.shingles.token_kind.holds]
        before = np.searchsorted(begins, places + np.repeat(text.offsets[:-1], number))  # begins ascend
        inner = np.clip(before, np.repeat(offsets[:-1], number), np.repeat(offsets[1:], number))
        return inner + np.repeat(to_host(tokens.offsets)[rows] - offsets[:-1], number)


def moved(cuts: Cuts, places: Ragged) -> np.ndarray:
    """Return where places in texts are after spans are cut out: array of int64. Those in a span fall together.

    Parameters
    ----------
    cuts : Cuts
    places : Ragged of int64
        Bytes of each text as it was given.
    """
    number = len(cuts.offsets) - 1
    owner, of_place = np.repeat(np.arange(number), np.diff(cuts.offsets)), np.repeat(np.arange(number), places.sizes)
    before = np.append(0, np.cumsum(cuts.ends - cuts.begins))  # bytes that are cut, in all documents
    beyond = int(max(cuts.ends.max(initial=0), places.values.max(initial=0))) + 1
    following = np.searchsorted(owner * beyond + cuts.begins, of_place * beyond + places.values)
    start = cuts.offsets[of_place]
    overshoot = np.maximum(0, np.append(0, cuts.ends)[following] - places.values)  # of the cut before the place
    overshoot[following == start] = 0
    moved_places: np.ndarray = places.values - (before[following] - before[start]) + overshoot
    return moved_places


def new_seams(cuts: Cuts, seams: Ragged) -> Ragged:
    """Return the bytes of the texts that are left at which text was cut, now or earlier.

    Parameters
    ----------
    cuts : Cuts
    seams : Ragged of int64
        Those of the texts as they were given.
    """
    number = len(cuts.offsets) - 1
    owner, of_seam = np.repeat(np.arange(number), np.diff(cuts.offsets)), np.repeat(np.arange(number), seams.sizes)
    old, new = moved(cuts, seams), moved(cuts, Ragged._trusted(cuts.begins, cuts.offsets))
    beyond = int(max(old.max(initial=0), new.max(initial=0))) + 1
    found = np.unique(np.append(owner * beyond + new, of_seam * beyond + old))
    return Ragged._trusted(found % beyond, np.searchsorted(found, np.arange(number + 1) * beyond))


def seams_as_text(seams: Ragged) -> pa.Array:
    """Return places as text, with spaces between numbers."""
    lists = pa.ListArray.from_arrays(arrow(seams.offsets.astype(np.int32)), arrow(seams.values).cast(pa.string()))
    return pc.binary_join(lists, " ").cast(pa.large_string())
