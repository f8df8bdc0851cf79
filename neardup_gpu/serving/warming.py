"""Load all kernels that requests need, before the service says that it is ready."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ..index import Index


def load_kernels(index: Index, texts: list[str]) -> None:
    """Add, query and remove in a small index of the same kind, with these columns of text, in a temporary folder."""
    info = index.info()
    keeps = {name: info[name] for name in ("containment", "sets", "expected")}
    keeps["keep_tokens"] = info["tokens"] is not None
    of_integers = index.recipe.shingles.token_kind.of_integers
    words = [list(range(8)), list(range(1, 9))] if of_integers else ["to be or not to be", "or not to be that"]
    rows = dict.fromkeys(texts, words) | {name: ["", ""] for name in index.recipe.within}
    with (
        tempfile.TemporaryDirectory(prefix="neardup-") as folder,
        Index.create(Path(folder, "small"), recipe=index.recipe, **keeps) as small,
    ):
        for number in range(2):  # the second one is looked up in files
            small.add({"id": [f"{number}a", f"{number}b"], **rows}, id_column="id", text_columns=texts)
        for each in [rows] if of_integers or index.recipe.within else [rows, words[0]]:
            how: dict[str, Any] = {} if isinstance(each, str) else {"text_columns": texts}
            small.query(each, **how)
            if keeps["containment"] is not None:
                small.query(each, containment=0.5, **how)
            if keeps["keep_tokens"]:
                small.passages(each, length=2, **how)
        small.explain(["0a"])
        small.remove(["0a"])
        small.compact()
