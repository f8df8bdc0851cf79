"""Greedy clusters of a stream of sketches: `Clusters` takes them as they come, `clusters` takes sketch files."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa

from .. import checks
from ..data import arrow, one_array, taken
from ..definitions import METADATA_KEY
from ..engine.clock import Clock, Progress, with_bars
from ..errors import ParameterError
from ..kernels._launch import to_host
from ..kernels.groups import EMPTY
from ..methods import check_able
from ..recipe import Recipe
from ..results.sketch_files import array_of, arrays_of, distinct_files, read_sketches
from ..stages.conditions import WITHIN
from ..store.outputs import new_file
from ..store.parquet import write_table

Representative = Literal["first", "commonest"]
REPRESENTATIVES = get_args(Representative)
AT_ONCE = 1 << 12
"""Sketches between two reports of progress."""


class Joined(NamedTuple):
    """Which clusters some sketches joined.

    Parameters
    ----------
    cluster : array of int64, shape (sketches,)
        Numbers in the order of founding; -1 for documents without shingles, which are in no cluster.
    estimate : array of float64, shape (sketches,)
        Estimated resemblance to the cluster's representative, as it was then; 1 for founders, NaN in no cluster.
    founded : array of bool, shape (sketches,)
        Whether the sketch founded its cluster.

    Examples
    --------
    >>> from neardup_gpu import BottomK
    >>> clusters = Clusters(Recipe(method=BottomK(s=3, leading=1)))
    >>> clusters.add(np.array([[5, 6, 7]], np.uint64)).founded
    array([ True])
    """

    cluster: np.ndarray
    estimate: np.ndarray
    founded: np.ndarray


class Clusters:
    """Greedy clusters of bottom-k sketches, which are taken in turn, as they come.

    Each sketch joins the cluster whose representative it resembles most, of equally near ones the earliest, if the
    estimated resemblance is at least the threshold; otherwise it founds a cluster. So the order of the sketches is part
    of the definition: another order gives other clusters. Nothing is taken back.

    Unlike `dedup` it needs no text and no second look at a document: what is kept is a representative of each cluster,
    and an index of their elements. Unlike pairs, members are near a representative, not near one another.

    Parameters
    ----------
    recipe : Recipe
        The recipe of the sketches, whose method has to be bottom-k.
    threshold : float in (0, 1], default None
        Least estimated resemblance to a representative; the recipe's unless given.
    representative : "first" or "commonest", default "first"
        - "first": a cluster's first sketch. It never changes.
        - "commonest": the m elements that most of the cluster's sketches have, the smaller ones first among equally
          common ones; m is the lower median of the sketches' numbers of elements. The elements change with each
          member: they follow what a cluster has become, may drift, and take longer.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not as described above.

    Notes
    -----
    Estimates are |u n A n B| / |u|, u the s smallest of the union of a sketch and a representative. For first members
    that is unbiased. The commonest elements are not the sketch of a document, so nothing is claimed about the
    resemblance to them.

    Time: about s steps of the index for a sketch, 2 s for each cluster that it may join, and at most one step of some
    nanoseconds for each other cluster, which data takes whose documents all share many elements. One thread.

    Memory: about 8 s bytes for a cluster, 8 for each of its elements, and 32 to 64 for each element that no other
    cluster has. Commonest elements take 16 s more for a cluster, and 34 to 68 for each element of its members.

    Source: Broder 1997, section 4.4.

    Examples
    --------
    >>> recipe = Recipe(method="bottomk", threshold=0.5)
    >>> sketches = np.full((4, 200), 2**64 - 1, np.uint64)
    >>> sketches[:3, :4] = [[1, 2, 3, 4], [7, 8, 9, 10], [1, 2, 3, 5]]
    >>> clusters = Clusters(recipe)
    >>> clusters.add(sketches[:2])
    Joined(cluster=array([0, 1]), estimate=array([1., 1.]), founded=array([ True,  True]))
    >>> clusters.add(sketches[2:])
    Joined(cluster=array([ 0, -1]), estimate=array([0.6, nan]), founded=array([False, False]))
    >>> clusters.sizes, clusters.founders
    (array([2, 1]), array([0, 1]))
    """

    def __init__(
        self, recipe: Recipe, *, threshold: float | None = None, representative: Representative = "first"
    ) -> None:
        method = checks.instance("recipe", recipe, Recipe).method
        check_able(method, "stream", "makes no clusters", "recipe: ")
        given = recipe.threshold if threshold is None else threshold
        self.recipe = recipe
        self.threshold = checks.fraction("threshold", given, zero=False)
        self.representative = checks.one_of("representative", representative, REPRESENTATIVES)
        self._stream = method.stream(self.threshold, self.representative == "commonest")
        self._num_sketches = 0
        self._founders: list[np.ndarray] = []

    def __len__(self) -> int:
        return self._stream.num_clusters

    def add(self, sketches: Any) -> Joined:
        """Put more sketches into clusters, one after another.

        Parameters
        ----------
        sketches : array of uint64, shape (sketches, s)
            What `BottomK.sketch` gives: each row ascending without repeats, filled up with 2**64 - 1.

        Returns
        -------
        Joined
            The cluster of each, the resemblance to its representative, and whether it founded it.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If the array is not as described above.
        ResourceError
            If there would be more elements than the index can number.

        Examples
        --------
        >>> from neardup_gpu import BottomK
        >>> clusters = Clusters(Recipe(method=BottomK(s=3, leading=1)))
        >>> clusters.add(np.array([[5, 6, 7], [5, 6, 7]], np.uint64)).cluster
        array([0, 0])
        """
        shape, hint = (None, self._stream.s), "as BottomK.sketch gives"
        rows = to_host(checks.array("sketches", sketches, np.uint64, shape, hint=hint))
        wrong = (rows[:, 1:] <= rows[:, :-1]) & (rows[:, 1:] != EMPTY)
        if wrong.any():
            row = int(wrong.any(axis=1).argmax())
            raise ParameterError(f"sketches[{row}]: not ascending without repeats; give what BottomK.sketch gives")
        before = len(self)
        cluster, shared, size = self._stream.add(rows)
        new = np.unique(cluster, return_index=True)
        founded = np.zeros(len(rows), bool)
        founded[new[1][new[0] >= before]] = True
        self._founders.append(self._num_sketches + np.flatnonzero(founded))
        self._num_sketches += len(rows)
        return Joined(cluster, np.where(size > 0, shared / np.maximum(size, 1), np.nan), founded)

    @property
    def representatives(self) -> np.ndarray:
        """The representative of each cluster as it is now: uint64, shape (clusters, s), in the form of sketches."""
        return self._stream.representatives.copy()

    @property
    def sizes(self) -> np.ndarray:
        """Members of each cluster: int64, shape (clusters,)."""
        return self._stream.sizes.copy()

    @property
    def founders(self) -> np.ndarray:
        """The founder of each cluster, as its number among all sketches that were added: int64, shape (clusters,)."""
        return np.concatenate([np.zeros(0, np.int64), *self._founders])


@with_bars
def clusters(
    sketches: str | Path | list[str | Path],
    output: str | Path | None = None,
    *,
    threshold: float | None = None,
    representative: Representative = "first",
    overwrite: bool = False,
    progress: Progress | bool | None = None,
) -> pa.Table:
    """Put sketched documents into greedy clusters, without the text: `Clusters`, for files of bottom-k sketches.

    Parameters
    ----------
    sketches : path or list of paths
        What `sketch` wrote with the method "bottomk", all under one recipe. Documents are taken in the order of the
        files' paths, and of a file in its own, which decides the clusters.
    output : path, default None
        A Parquet file for the table.
    threshold : float in (0, 1], default None
        Least estimated resemblance to a representative; the recipe's unless given.
    representative : "first" or "commonest", default "first"
        A cluster's first sketch, or the elements that most of its sketches have, as `Clusters` describes.
    overwrite : bool, default False
        Replace the file that is at `output`.
    progress : bool or callable, default None
        True shows bars, on stderr or in a notebook. A function is called with a stage's name, the number of items done
        and their total. The log has a line for each stage either way.

    Returns
    -------
    pyarrow.Table
        id; cluster int64; estimate, the resemblance to the cluster's representative when the document joined; founder,
        the id of the cluster's first document. The last three are null for documents without shingles.

    Raises
    ------
    InputError, RecipeMismatchError
        If a file cannot be read, or was made by another recipe than the first.
    ParameterError, ArgumentTypeError
        If an argument is not as described above, or the sketches are not bottom-k.

    Examples
    --------
    >>> import tempfile
    >>> from neardup_gpu.sketches import sketch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = f"{folder}/s.parquet"
    ...     report = sketch({"text": ["to be or not to be"] * 2 + [""]}, file, method="bottomk")
    ...     clusters(file).to_pylist()[1:]  # doctest: +NORMALIZE_WHITESPACE
    [{'id': 1, 'cluster': 0, 'estimate': 1.0, 'founder': 0},
     {'id': 2, 'cluster': None, 'estimate': None, 'founder': None}]
    """
    paths = checks.paths("sketches", sketches)
    output, overwrite = checks.optional(checks.path, "output", output), checks.flag("overwrite", overwrite)
    threshold = checks.optional(checks.fraction, "threshold", threshold, zero=False)
    checks.one_of("representative", representative, REPRESENTATIVES)
    clock = Clock(progress)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(new_file(output, overwrite, distinct_files(paths))) if output is not None else None
        with clock.stage("read"):
            table, recipe = read_sketches(paths, settings=("threshold",) if threshold is None else ())
            check_able(recipe.method, "stream", "makes no clusters", f"{paths[0]}: ")
            empty = Clusters(recipe, threshold=threshold, representative=representative)
            there, held, *_ = arrays_of(table, recipe, paths)
            rows = np.full((len(table), empty._stream.s), EMPTY)
            rows[there] = held
            of_one_group = [np.arange(len(rows))]
            if recipe.within:
                words = array_of(table[WITHIN])
                order = np.argsort(words, kind="stable")
                of_one_group = np.split(order, np.flatnonzero(np.diff(words[order])) + 1)
        with clock.stage("cluster"):
            founder, estimate, done = np.full(len(rows), -1), np.full(len(rows), np.nan), 0
            for members in of_one_group:
                found = Clusters(recipe, threshold=threshold, representative=representative)
                for first in range(0, len(members), AT_ONCE):
                    some = members[first : first + AT_ONCE]
                    joined = found.add(rows[some])
                    estimate[some] = joined.estimate
                    founder[some] = np.append(members[found.founders], -1)[joined.cluster]
                    done += len(some)
                    clock.report("cluster", done, len(rows))
            nowhere = founder < 0
            ids, cluster = one_array(table["id"]), np.searchsorted(np.unique(founder[~nowhere]), founder)
            columns = {"id": ids, "cluster": arrow(cluster, nowhere), "estimate": arrow(estimate, nowhere)}
            about = {**recipe.describe(), "threshold": empty.threshold, "representative": empty.representative}
            of_units = {name: table[name] for name in recipe.unit.columns}
            if of_units:
                of_units["founder_unit"] = taken(one_array(table["unit"]), arrow(founder, nowhere))
            made = pa.table({**columns, "founder": taken(ids, arrow(founder, nowhere)), **of_units})
            made = made.replace_schema_metadata({METADATA_KEY: json.dumps(about).encode()})
        if file is not None:
            with clock.stage("write"):
                write_table(made, file)
    return made
