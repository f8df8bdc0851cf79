"""Define the columns by which each tool says which documents it kept, removed and joined in clusters.

Checked against the output of text-dedup 0.4.0, datatrove 0.10.1 and dolma 1.2.1. For NeMo Curator 1.4 and duplodocus
the layouts are those of their documentation and sources; they were not run.
"""

from __future__ import annotations

from ..records import dataclass

OURS = ("group", "cluster", "cluster_id", "label")
"""Usual names of a column of clusters."""


@dataclass(frozen=True)
class ToolLayout:
    """The columns in the files of a tool.

    Parameters
    ----------
    ids : tuple of str, default ("id",)
        Columns of ids. The first one that a file has counts.
    clusters : tuple of str
        Columns that name the cluster of a document.
    spans : str, default None
        A column of JSON objects, in which lists that are not empty mark a document as a duplicate.
    place : str, default None
        A column of numbers. A document is kept if its number is 0 or null.
    alone : int, default None
        The value of a cluster column for documents outside all clusters.
    """

    ids: tuple[str, ...] = ("id",)
    clusters: tuple[str, ...] = OURS
    spans: str | None = None
    place: str | None = None
    alone: int | None = None


LAYOUTS = {
    "curator": ToolLayout(ids=("_curator_dedup_id", "id"), clusters=("_duplicate_group_id", "group")),
    "datatrove": ToolLayout(clusters=("metadata.minhash_cluster_id", "minhash_cluster_id"), alone=-1),
    "dolma": ToolLayout(spans="attributes"),
    "duplodocus": ToolLayout(clusters=("metadata.minhash.cc_id",), place="metadata.minhash.cc_idx"),
    "neardup": ToolLayout(clusters=("group",)),
    "text-dedup": ToolLayout(ids=("id", "__INDEX__", "idx"), clusters=("__CLUSTER__",)),
}
"""The layout of each tool's files.

NeMo Curator writes FuzzyDuplicateIds/ with the ids to remove, and its connected components with a group id. The ids are
`_curator_dedup_id`, or row numbers in the order in which it read the files. datatrove writes the kept rows. With
save_cluster_id and load_cluster_ids, their metadata has a cluster id. dolma writes attributes, in which spans cover
duplicates. duplodocus writes the kept rows or annotates all rows with the number of a document's component and the
document's place in it. text-dedup writes the kept rows as a dataset of Hugging Face's, without clusters.
"""
