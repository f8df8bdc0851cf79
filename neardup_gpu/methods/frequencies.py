"""Document frequencies: in how many of some documents each token or shingle occurs, which TF-IDF weighs them by."""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import counts as counts_kernel, log_weights, lookup, occurrences as occurrences_kernel
from neardup_gpu.kernels._cached import cached_property

from .. import checks
from ..data import Ragged, arrow, as_ragged
from ..definitions import METADATA_KEY, checked_settings, settings_of, versions
from ..engine.arrays import fetched
from ..engine.choice import kernel, to_host
from ..engine.pieces import spans
from ..errors import DamagedError, InputError, NeardupError, ParameterError
from ..records import dataclass
from ..report import count
from ..store.checksums import changed
from ..store.outputs import new_file
from ..store.parquet import read_table, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine.contract import Backend, Runtime
    from ..recipe import Recipe

_DOCUMENTS_KEY = b"neardup_gpu_documents"


@dataclass(frozen=True, eq=False)
class Frequencies:
    """In how many of some documents each token, or each shingle, occurs.

    Parameters
    ----------
    tokens : array of uint64, shape (m,)
        Fingerprints of tokens or of shingles, ascending, each once.
    counts : array of int64, shape (m,)
        Number of documents that hold each.
    num_documents : int
        Number of documents with tokens.
    seed : int
        Seed of the recipe that the tokens were fingerprinted by.
    elements : str, default "tokens"
        What was counted; of shingles what `Recipe.elements` says.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not as described above.

    Examples
    --------
    >>> Frequencies([5, 9], [2, 1], num_documents=2, seed=1).counts
    array([2, 1])
    """

    tokens: np.ndarray
    counts: np.ndarray
    num_documents: int
    seed: int
    elements: str = "tokens"

    def __post_init__(self) -> None:
        tokens = checks.array("tokens", self.tokens, np.uint64)
        counts = checks.array("counts", self.counts, np.int64, (len(tokens),), convert=True, hint="one for each token")
        num_documents = checks.integer("num_documents", self.num_documents, 0, 2**62)
        seed = checks.integer("seed", self.seed, 0, 2**64 - 1)
        if not (tokens[1:] > tokens[:-1]).all():
            raise ParameterError("tokens: not ascending, or one is there twice; sort them and their counts")
        checks.numbers_between("counts", counts, 1, num_documents, "a token counts the documents that hold it")
        for name, value in (("tokens", to_host(tokens)), ("counts", to_host(counts))):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "elements", checks.text("elements", self.elements))
        object.__setattr__(self, "num_documents", num_documents)
        object.__setattr__(self, "seed", seed)

    @classmethod
    def of(
        cls, tokens: Ragged, *, seed: int = 1, elements: str = "tokens", backend: Backend | None = None
    ) -> Frequencies:
        """Count the documents that hold each token.

        Parameters
        ----------
        tokens : Ragged of uint64
            Tokens or shingles of each document.
        seed : int in [0, 2**64), default 1
            Seed of the recipe that made the tokens.
        elements : str, default "tokens"
            What they are; of shingles what `Recipe.elements` says.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        Frequencies
            The frequencies in the given documents.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If `tokens` is not a Ragged of uint64, or `seed` is not a seed.

        Examples
        --------
        >>> tokens = Ragged.from_rows([[5, 5, 9], [5]], np.uint64)
        >>> found = Frequencies.of(tokens)
        >>> found.tokens, found.counts
        (array([5, 9], dtype=uint64), array([2, 1]))
        """
        tokens = as_ragged("tokens", tokens, np.uint64)
        held, counts = map(to_host, occurrences(counted(tokens, backend)[0], backend))
        return cls(held, counts, int((tokens.sizes > 0).sum()), checks.seed(seed), elements)

    @cached_property
    def digest(self) -> str:
        """32 hexadecimal digits that identify the frequencies in a recipe."""
        of = "" if self.elements == "tokens" else f"{self.elements} "
        found = hashlib.blake2b(f"{of}{self.num_documents} {self.seed} ".encode(), digest_size=16)
        for array, dtype in ((self.tokens, "<u8"), (self.counts, "<i8")):
            found.update(np.ascontiguousarray(array, dtype).data)
        return found.hexdigest()

    @cached_property
    def _inverse(self) -> np.ndarray:
        return log_weights.inverse(self.counts, self.num_documents)

    @cached_property
    def _absent(self) -> int:
        return int(log_weights.inverse(np.zeros(1, np.int64), self.num_documents)[0])

    def weigh(self, tokens: Any, *, backend: Backend | None = None) -> Any:
        """The inverse document frequency of each token.

        Parameters
        ----------
        tokens : array of uint64, shape (n,)
            Fingerprints.
        backend : "reference", "cpu" or "gpu", default None
            Where to run; on a GPU if there is one, unless given.

        Returns
        -------
        array of int64, shape (n,)
            In 256ths. Tokens that no counted document holds weigh most.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If `tokens` is not an array of uint64 of one dimension.

        Examples
        --------
        >>> tokens = Ragged.from_rows([[5, 5, 9], [5]], np.uint64)
        >>> everywhere, once, never = Frequencies.of(tokens).weigh(np.array([5, 9, 1], np.uint64))
        >>> bool(everywhere < once < never)
        True
        """
        tokens = checks.array("tokens", tokens, np.uint64)
        return kernel(lookup, backend)(tokens, self.tokens, self._inverse, self._absent)

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        documents = count(self.num_documents, "document")
        return f"Frequencies({len(self):,} {self.elements} of {documents}, {self.digest})"

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write a Parquet file of two columns, token and documents; 16 bytes per token before compression.

        Parameters
        ----------
        path : path
            Where to write.
        overwrite : bool, default False
            Whether to replace a file that is there.

        Raises
        ------
        OutputError
            If it exists and is not to be overwritten, or cannot be written.
        ParameterError, ArgumentTypeError
            If `path` is not a path, or `overwrite` is not a bool.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Frequencies([5, 9], [2, 1], 2, 1).save(f"{folder}/f.parquet")
        ...     Frequencies.load(f"{folder}/f.parquet").num_documents
        2
        """
        path, overwrite = checks.path("path", path), checks.flag("overwrite", overwrite)
        with new_file(path, overwrite) as file:
            self.write(file)

    def write(self, file: Path) -> None:
        """Like `save`, to a file that does not exist yet.

        Parameters
        ----------
        file : Path
            Where to write.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Frequencies([5, 9], [2, 1], 2, 1).write(Path(folder, "f.parquet"))
        ...     Frequencies.load(Path(folder, "f.parquet")).num_documents
        2
        """
        made_by = {"method": "simhash", "weighting": "tfidf", "frequencies": self.digest, "seed": self.seed}
        if self.elements != "tokens":
            made_by |= {"method": "minhash", "elements": self.elements}
        stored = json.dumps({**made_by, **versions()}).encode()
        metadata = {METADATA_KEY: stored, _DOCUMENTS_KEY: str(self.num_documents).encode()}
        table = pa.table({"token": arrow(self.tokens), "documents": arrow(self.counts)})
        write_table(table.replace_schema_metadata(metadata), file)

    @classmethod
    def load(cls, path: str | Path) -> Frequencies:
        """Read the file that `save` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Frequencies
            What was saved.

        Raises
        ------
        InputError
            If there is no such file, or it holds something else.
        DamagedError
            If it is not as it was written.
        RecipeMismatchError
            If it was made under other definitions.
        ParameterError, ArgumentTypeError
            If `path` is not a path.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Frequencies([5, 9], [2, 1], 2, 1).save(f"{folder}/f.parquet")
        ...     Frequencies.load(f"{folder}/f.parquet").counts
        array([2, 1])
        """
        path = checks.path("path", path)
        table = read_table(path)
        made_by = checked_settings(settings_of(table.schema, str(path)), str(path))
        stored = (table.schema.metadata or {}).get(_DOCUMENTS_KEY)
        kinds = [("token", pa.uint64()), ("documents", pa.int64())]
        if (
            stored is None
            or made_by.get("method") not in ("simhash", "minhash")
            or not table.schema.equals(pa.schema(kinds))
        ):
            way = "`neardup sketch --weighting tfidf` writes them"
            raise InputError(f"{path}: holds no document frequencies; {way}")
        if not re.fullmatch(rb"\d{1,18}", stored) or any(column.null_count for column in table.columns):
            raise changed(path)
        tokens, counts = (table[name].combine_chunks().to_numpy() for name in table.column_names)
        try:
            found = cls(tokens, counts, int(stored), made_by["seed"], made_by.get("elements", "tokens"))
        except (KeyError, NeardupError, ValueError) as error:
            raise DamagedError(f"{path}: has changed since it was written ({error}); make it again") from None
        if found.digest != made_by.get("frequencies"):
            raise changed(path)
        return found


class FrequencyCounter:
    """Counts documents by token, batch after batch."""

    def __init__(self) -> None:
        self._tables: list[tuple[np.ndarray, np.ndarray]] = []
        self._num_documents = 0

    def add(self, occurrences: tuple[np.ndarray, np.ndarray], num_documents: int) -> None:
        """Count a batch: the number of its documents that hold each token, and the number that have tokens.

        Earlier counts are merged with batches when the batches together have become as long."""
        self._tables.append(occurrences)
        self._num_documents += num_documents
        if sum(len(table[0]) for table in self._tables[1:]) > len(self._tables[0][0]):
            self._tables = [occurrences_kernel.merge(self._tables)]

    @property
    def num_held(self) -> int:
        """How many elements and counts are held, some of them perhaps several times."""
        return sum(len(table[0]) for table in self._tables)

    def take(self) -> tuple[np.ndarray, np.ndarray]:
        """All elements that were counted, ascending, and their counts; they are counted from 0 again."""
        none = np.empty(0, np.uint64), np.empty(0, np.int64)
        tables, self._tables = self._tables, []
        return occurrences_kernel.merge([none, *tables])

    def result(self, seed: int, elements: str) -> Frequencies:
        """The frequencies of all documents that were counted."""
        return Frequencies(*self.take(), self._num_documents, seed, elements)


def counted(elements: Ragged, backend: str | None) -> tuple[Ragged, Any]:
    """Each document's distinct elements, and how often it has each: int64, shape (distinct elements,)."""
    values, offsets, counts = kernel(counts_kernel, backend)(elements.values, elements.offsets)
    return Ragged._trusted(values, offsets), counts


def occurrences(distinct: Ragged, backend: str | None) -> tuple[Any, Any]:
    """All distinct elements of some documents, and the number of documents that hold each."""
    return kernel(occurrences_kernel, backend)(distinct.values)


class FrequencyPass:
    """Buffer for TF-IDF: distinct tokens or shingles and their counts, kept until document frequencies are known.

    It takes 16 bytes for each that is distinct in its document.
    """

    def __init__(self, folder: Any, runtime: Runtime) -> None:
        self._runtime = runtime
        self._tokens = runtime.spool(folder, runtime.shares.spool // 4)
        self._counts = runtime.spool(folder, runtime.shares.spool // 4)
        self._counter = FrequencyCounter()

    def measure(self, elements: Ragged, backend: Backend) -> Any:
        """Count the tokens of some documents; has no effect on the buffer."""
        distinct, counts = counted(elements, backend)
        held, documents = occurrences(distinct, backend)
        return distinct, counts, held, documents

    def on_host(self, measured: Any) -> list[Any]:
        """Return the arrays of the result of `measure` that `add` wants in host memory."""
        return list(measured[2:])

    def add(self, measured: Any) -> None:
        """Keep the result of `measure`."""
        distinct, counts = measured[:2]
        held, documents = fetched(self.on_host(measured))
        self._counter.add((held, documents), int((np.diff(to_host(distinct.offsets)) > 0).sum()))
        self._tokens.append(distinct)
        self._counts.append(Ragged._trusted(counts.view(np.uint64), distinct.offsets))

    def finish(self, recipe: Recipe, report: Any) -> tuple[Frequencies, Iterator[np.ndarray]]:
        """The document frequencies, and the sketches of the documents, some at a time, in host memory."""
        frequencies = self._counter.result(recipe.seed, recipe.elements)
        return frequencies, self._sketches(recipe, frequencies, report)

    def _sketches(self, recipe: Recipe, frequencies: Frequencies, report: Any) -> Iterator[np.ndarray]:
        offsets, backend = self._tokens.offsets, self._runtime.backend
        weigh = partial(recipe.method.sketch_counted, frequencies=frequencies, seed=recipe.seed, backend=backend)
        bounds = list(spans(8 * np.diff(offsets), self._runtime.shares.sorted)) or [(0, 0)]
        for first, last in bounds:
            rows = np.arange(first, last)
            tokens, counts = self._tokens.gather(rows), self._counts.gather(rows)
            yield to_host(self._runtime.run(weigh, tokens, counts.values.view(np.int64)))
            report(last, len(offsets) - 1)

    def close(self) -> None:
        """Forget the tokens."""
        for spool in (self._tokens, self._counts):
            spool.__exit__()
