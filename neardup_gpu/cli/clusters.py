"""The command `neardup clusters`."""

from __future__ import annotations

from typing import Annotated, Any

from ..methods import names_with
from ..printable import shell_path
from ..records import dataclass
from ..settings import setting
from .console import say_written, shown_progress
from .options import MATCHING, OUTPUT, Output, argument, flags, given

_METHODS = " or ".join(names_with("stream"))


@dataclass(frozen=True, kw_only=True)
class Joining:
    """When a document joins a cluster."""

    threshold: float | None = setting(
        None, "Minimum estimated resemblance to a cluster's representative.", metavar="X", shown="the sketches'"
    )
    representative: str = setting(
        "first", "A cluster's first document, or the commonest elements of all.", metavar="first|commonest"
    )


@dataclass(frozen=True, kw_only=True)
class ClustersFile(Output):
    """The file of clusters to write."""

    output: str = setting("clusters.parquet", "File to write the clusters to.", metavar="FILE", flag="--output -o")


JoiningFlags: Any = flags(MATCHING, Joining)
ClustersFlags: Any = flags(OUTPUT, ClustersFile)


def clusters(
    *sketches: Annotated[str, argument("SKETCHES", f"Files that `neardup sketch --method {_METHODS}` wrote.")],
    joining: JoiningFlags = None,
    written: ClustersFlags = None,
) -> None:
    """Put sketched documents into clusters: each joins the one that it resembles most, or founds another."""
    import numpy as np

    from ..jobs import greedy_clusters

    shown = ClustersFile(**given(written))
    with shown_progress(shown) as progress:
        found = greedy_clusters.clusters(
            list(sketches), shown.output, **given(joining), overwrite=shown.overwrite, progress=progress
        )
    sizes = np.bincount(found["cluster"].drop_null().to_numpy())
    counts = {
        "documents": found.num_rows,
        "empty": found["cluster"].null_count,
        "clusters": len(sizes),
        "of_one": int((sizes == 1).sum()),
        "largest": int(sizes.max(initial=0)),
    }
    say_written(counts, None, shown, f"neardup info {shell_path(shown.output)}")
