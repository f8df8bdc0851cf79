"""Every result depends on these values: the version of the definitions, and the random constants drawn from a seed."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from . import __version__
from .checks import shown
from .errors import InputError, RecipeMismatchError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

DEFINITIONS = 6
"""Version of the definitions of token, shingle, sketch and decision; raised when any of them changes a result."""

METADATA_KEY = b"neardup_gpu"
"""The key under which Parquet and Arrow files hold the recipe that made them, as JSON."""

TELLING = {
    "documents": "duplicate_of",
    "pairs": "id_a",
    "clusters": "founder",
    "matches": "query_id",
    "sketches": "num_tokens",
    "frequencies": "token",
    "spans": "source_begin",
    "skipped": "reason",
    "hits": "share_of_item",
    "evals": "longest_run",
}
"""A column by which each kind of table that carries a recipe is known."""


# ----------------------------------------------------------------------------------------------- what files hold of it


def versions() -> dict[str, Any]:
    """The version of the definitions and the hash of the Unicode table."""
    from neardup_gpu.kernels._unicode_table import DIGEST

    return {"definitions": DEFINITIONS, "unicode_table": DIGEST}


def report_head(kind: str, settings: Any, *names: str) -> tuple[dict[str, Any], dict[bytes, bytes]]:
    """Return the first entries of the report of a search, and the metadata of its tables, which hold the recipe.

    Parameters
    ----------
    kind : str
    settings : dataclass
    *names : str
        The settings that are the recipe.
    """
    recipe = {name: getattr(settings, name) for name in names} | versions()
    head = {"version": __version__, "kind": kind, "recipe": recipe, "settings": asdict(settings)}
    return head, {METADATA_KEY: json.dumps(recipe).encode()}


def stored_settings(text: str | bytes, name: str) -> dict[str, Any]:
    """Read the settings that a file holds as JSON of plain values; `name` says in errors where they were read.

    Raises
    ------
    RecipeMismatchError
        If they cannot be read.
    """
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError):
        raise unreadable(name) from None
    if not isinstance(stored, dict) or any(isinstance(value, dict | list) for value in stored.values()):
        raise unreadable(name)
    return stored


def checked_settings(text: str | bytes, name: str) -> dict[str, Any]:
    """Read settings, and check that they were written under the definitions of this version.

    Raises
    ------
    RecipeMismatchError
        If they cannot be read, or were written under other definitions or another Unicode table.
    """
    stored = stored_settings(text, name)
    for key, here in versions().items():
        found = stored.get(key)
        if found is None:
            raise unreadable(name)
        if type(found) is not type(here) or found != here:
            value = found[:60] if isinstance(found, str) else shown(found)
            raise RecipeMismatchError(f"{name}: made under {key} {value}, this version has {here}; make it again")
    return stored


def settings_of(schema: pa.Schema, name: str) -> bytes:
    """Read the JSON in an artefact's schema metadata.

    Raises
    ------
    InputError
        If there is none.
    """
    stored = (schema.metadata or {}).get(METADATA_KEY)
    if stored is None:
        raise InputError(f"{name}: holds no recipe; it was not written by neardup")
    return stored


def unreadable(name: str, why: str = "") -> RecipeMismatchError:
    """Make the error for settings that cannot be read."""
    return RecipeMismatchError(f"{name}: its recipe cannot be read{f' ({why})' if why else ''}; make it again")


# --------------------------------------------------------------------------------------------------- random constants


def mix64(z: int) -> int:
    """SplitMix64's finaliser on Python integers."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def draw(seed: int, purpose: str, index: int) -> int:
    """The random 64-bit integer of (seed, purpose, index): output `index` of SplitMix64 started from a key of the
    first two."""
    key = mix64(seed)
    for byte in purpose.encode():
        key = mix64(key ^ byte)
    return mix64((key + (index + 1) * 0x9E3779B97F4A7C15) % 2**64)


@cache
def one_draw(seed: int, purpose: str) -> np.uint64:
    """The one random integer of a seed and a purpose."""
    import numpy as np

    return np.uint64(draw(seed, purpose, 0))


USUAL_SEED = 1
"""The default seed of a recipe. `draw_polynomial` drew the polynomials below from it."""

DRAWN = {
    "tokens": 0xA21B33B22041349E,
    "lines": 0xB057E0D99DF34C2D,
    "shingles": 0xF49FB87D3CFF2C7E,
    "bags": 0xA92E21936EDA43CD,
    "supershingles": 0xA12F39AEBE0289D3,
    "pair keys": 0x92285DAD1C48E73A,
    "documents 0": 0xCD0693F3FB435E1E,
    "documents 1": 0xEB796F2E55134932,
}
"""By purpose, for the usual seed: drawing them takes longer than a small job does otherwise."""


@cache
def polynomial(seed: int, purpose: str) -> np.uint64:
    """The q of the primitive polynomial x**64 + q of a seed and a purpose."""
    import numpy as np

    found = DRAWN.get(purpose) if seed == USUAL_SEED else None
    return np.uint64(draw_polynomial(seed, purpose) if found is None else found)


def draw_polynomial(seed: int, purpose: str) -> int:
    """Draw the q of a primitive polynomial x**64 + q; about one draw in 64 is primitive."""
    import numpy as np

    from neardup_gpu.kernels._gf2 import first_primitive

    index = 0
    while True:
        block = [draw(seed, f"polynomial {purpose}", index + i) | 1 << 63 for i in range(64)]
        found = first_primitive(np.array(block, np.uint64))
        if found >= 0:
            return block[found]
        index += 64


class Material(NamedTuple):
    """The random constants that tokens, shingles and documents are fingerprinted by, as kernels take them.

    tokens, shingles, bags : uint64
        Moduli of Rabin fingerprints, one for each use, as a fingerprint of fingerprints must not reuse one.
    documents : array of uint64, shape (2,)
        Moduli of `document_hash`.
    """

    tokens: np.uint64
    shingles: np.uint64
    bags: np.uint64
    documents: np.ndarray


@cache
def material(seed: int) -> Material:
    """Draw the constants of a seed."""
    import numpy as np

    documents = np.array([polynomial(seed, "documents 0"), polynomial(seed, "documents 1")], np.uint64)
    return Material(polynomial(seed, "tokens"), polynomial(seed, "shingles"), polynomial(seed, "bags"), documents)
