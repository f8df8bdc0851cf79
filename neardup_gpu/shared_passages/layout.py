"""The documents of one or two inputs in one order, so that the sources of each document come before it.

Documents are numbered: those of the second input, if there is one, and then those of the first input. A *rank* is a
place in the order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import Ragged, large_tables, numpy_of, one_array
from ..documents.compared import one_order
from ..engine.arrays import apart
from ..errors import InputError
from ..keep_rule import Key
from ..repeated_passages.corpus import TokenCorpus, joined_tokens
from ..results.by_value import Grouping
from ..stages.priority import rows_by_priority
from .settings import PassageSettings


class DocumentLayout(NamedTuple):
    """All documents, in an order in which each comes after those that may be its sources.

    num_sources : int or None
        The documents of the second input, which have the first numbers; None if there is no second input.
    order : array of int64, shape (documents,)
        The number of the document of each rank.
    tokens : Ragged of uint64
        By rank.
    rows : array of int64
        The first token of each document, and of each part between seams; then the number of tokens.
    dates : array of int64, shape (documents,) or None
        By number. Equal for equal dates, ascending with them; -1 for a document without a date.
    groups : Grouping or None
        By number: the values that the report counts by.
    """

    num_sources: int | None
    order: np.ndarray
    tokens: Ragged
    rows: np.ndarray
    dates: np.ndarray | None
    groups: Grouping | None

    @property
    def limits(self) -> np.ndarray:
        """For each rank, the token before which all of its sources lie; 0 for a document that has none."""
        begins = self.tokens.offsets[:-1]
        if self.num_sources is None:
            return begins
        limit = self.tokens.offsets[self.num_sources]
        return np.where(begins < limit, 0, limit) * (np.arange(len(begins)) >= self.num_sources)


def lay_out(corpora: list[TokenCorpus], settings: PassageSettings, by: str | None, backend: str) -> DocumentLayout:
    """Put the documents of one input, or of two, the sources first, into an order.

    Parameters
    ----------
    corpora : list of TokenCorpus
        Their tokens are written over if only documents of equal values are compared.
    settings : PassageSettings
    by : str or None
    backend : str

    Raises
    ------
    InputError
        If dates have no order.
    """
    for corpus in corpora:
        if corpus.words is not None:
            apart(corpus.tokens, corpus.words)
    number = sum(len(corpus.tokens) for corpus in corpora)
    order, dates = np.arange(number), None
    if settings.date is not None:
        by_date, dates = _by_date(settings.date, corpora)
        order = order if len(corpora) > 1 else by_date
    num_sources = None
    if len(corpora) > 1:
        ordered, num_sources = joined_tokens(corpora), len(corpora[0].tokens)
    else:
        ordered = corpora[0] if settings.date is None else corpora[0].in_order(order, backend)
    groups = None if by is None else Grouping.of(by, pa.chunked_array(ordered.values, pa.large_string()))
    rows = np.unique(np.concatenate([ordered.tokens.offsets, ordered.bars]))
    return DocumentLayout(num_sources, order, ordered.tokens, rows, dates, groups)


def _by_date(name: str, corpora: list[TokenCorpus]) -> tuple[np.ndarray, np.ndarray]:
    """Return the documents from the earliest to the latest, those without a date last, and a number per date.

    Raises
    ------
    InputError
        If the column has different types or orders in two inputs, or its values have no order.
    """
    columns = [corpus.columns[name] for corpus in corpora if name in corpus.columns]
    try:
        tables = [pa.table({name: column}) for column in columns]
        column: Any = pa.concat_tables(large_tables(*tables), promote_options="permissive")[name] if tables else None
    except pa.ArrowTypeError:
        kinds = sorted({str(column.type) for column in columns})
        raise InputError(f"date {name}: the column holds {' and '.join(kinds)}; give both inputs one type") from None
    column = pa.nulls(0) if column is None else one_array(column)
    orders = [corpus.categories[name] for corpus in corpora if name in corpus.categories]
    categories = {name: one_order(orders, name)} if orders else None
    none = np.zeros(len(column), np.int64)
    order = rows_by_priority(Key(name, name, False), none, {name: column}, categories, parameter="date")
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = numpy_of(pc.fill_null(column.indices, -1)).astype(np.int64)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    first = np.full(len(order) + 1, len(order))
    np.minimum.at(first, codes, ranks)
    return order, np.where(codes < 0, -1, first[codes])
