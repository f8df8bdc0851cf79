"""How the corpora's gold was made, and where its rule for tokens is not ours.

Gold takes `\\w+` of the lower-cased text. The two rules coincide on ASCII; a document that has a word on which they do
not may have other resemblances than gold says.
"""

import functools
import re

import numpy as np
import pyarrow.parquet as pq
from rule import shingles_of, stated
from witnesses import fold, token_strings

# Documents with a word on which the two rules differ: soft hyphens in the bills (ours reads through, `\w+` divides),
# fractions, superscripts and ligatures (ours writes them out), Chinese (ours takes each character alone).
DIFFERING = {"django_docs": 5, "bills_116_small": 236, "winps_docs": 4, "manpages": 55, "bills_116": 866}

CHUNK = re.compile(r"[0-9A-Za-z_]*[^\x00-\x7f][0-9A-Za-z_\x80-\U0010ffff]*")


@functools.cache
def gold_words(chunk):
    """The words of a stretch without ASCII dividers by gold's rule, if ours are the same but for folding; else None."""
    words = re.findall(r"\w+", chunk.lower())
    folded = [fold(word) for word in words]
    same = folded == token_strings(chunk) and not any(
        f.isascii() and f != w for f, w in zip(folded, words, strict=True)
    )
    return words if same else None


def differing(texts):
    """Whether each text has a word on which the rules differ, or that folds like another word of the corpus."""
    chunks = [set() if text.isascii() else set(CHUNK.findall(text)) for text in texts]
    spellings = {}
    for chunk in set().union(*chunks):
        for word in gold_words(chunk) or ():
            spellings.setdefault(fold(word), set()).add(word)
    wrong = {
        chunk
        for chunk in set().union(*chunks)
        if gold_words(chunk) is None or any(len(spellings[fold(word)]) > 1 for word in gold_words(chunk))
    }
    return np.array([not wrong.isdisjoint(mine) for mine in chunks], bool)


cached_tokens = functools.cache(token_strings)


def words(text):
    """`token_strings` of a long text: a divider in ASCII divides whatever is on its sides."""
    if text.isascii():
        return re.findall(r"\w+", text.lower())
    found, at = [], 0
    for chunk in CHUNK.finditer(text):
        found += re.findall(r"\w+", text[at : chunk.start()].lower())
        found += cached_tokens(chunk[0])
        at = chunk.end()
    return found + re.findall(r"\w+", text[at:].lower())


def counted_pairs(sets, threshold, some):
    """{(row, row): resemblance} of all pairs at the threshold with one of some rows, by counting what sets share.

    `sets` are gone through once; `some` is {row: set} of those rows.
    """
    number, holders = {}, []
    for row, mine in some.items():
        for shingle in mine:
            if number.setdefault(shingle, len(holders)) == len(holders):
                holders.append([])
            holders[number[shingle]].append(row)
    holders = [np.array(rows, np.int32) for rows in holders]
    sizes, shared = [], []
    for row, mine in enumerate(sets):
        sizes.append(len(mine))
        met = [holders[number[shingle]] for shingle in mine if shingle in number]
        if met:
            count = np.bincount(np.concatenate(met))
            others = np.flatnonzero(count)
            shared.append(np.stack([np.full(len(others), row), others, count[others]]))
    sizes, (row, other, count) = np.array(sizes), np.concatenate([np.zeros((3, 0), int), *shared], axis=1)
    resemblance = count / (sizes[row] + sizes[other] - count)
    there = (row != other) & (resemblance >= threshold)
    left, right = np.minimum(row, other)[there].tolist(), np.maximum(row, other)[there].tolist()
    return dict(zip(zip(left, right, strict=True), resemblance[there].tolist(), strict=True))


class Corpus:
    """A corpus in input order, and V of its documents at 0.5, {(row, row): resemblance}.

    V is gold's, and counted where one of two documents has words on which the rules differ; or counted throughout, if
    `by_gold` is False. Documents that are not the first with their tokens are in no pair.
    """

    def __init__(self, folder, name, by_gold=True):
        self.path = folder / f"{name}.parquet"
        table = pq.read_table(self.path, columns=["id", "text"])
        self.ids, texts = table["id"].to_pylist(), table["text"].to_pylist()
        tokens = [words(text) for text in texts]
        self.differs = differing(texts)
        # One string for all words of a document takes less memory; no token holds a space.
        self.tokens = [(" ".join(mine),) if mine else () for mine in tokens]
        seen = {}
        self.representative = [seen.setdefault(mine, row) for row, mine in enumerate(self.tokens)]
        rows = [row for row, first in enumerate(self.representative) if row == first and tokens[row]]
        some = [place for place, row in enumerate(rows) if self.differs[row] or not by_gold]
        sets = (shingles_of(tokens[row]) for row in rows)
        counted = counted_pairs(sets, 0.5, {place: shingles_of(tokens[rows[place]]) for place in some})
        self.every = {(rows[a], rows[b]): resemblance for (a, b), resemblance in counted.items()}
        if by_gold:
            for (a, b), resemblance in self.gold().items():
                first = self.representative[a] == a and self.representative[b] == b
                if first and not self.differs[a] and not self.differs[b]:
                    self.every[a, b] = resemblance

    def gold(self):
        """{(row, row): resemblance} of the gold file."""
        row_of = {id_: row for row, id_ in enumerate(self.ids)}
        table = pq.read_table(self.path.with_suffix(".gold.parquet"))
        columns = (table[column].to_pylist() for column in ("id_a", "id_b", "jaccard"))
        return {tuple(sorted((row_of[a], row_of[b]))): value for a, b, value in zip(*columns, strict=True)}

    def expected(self, recipe):
        """What `dedup` gives for it, by the rule."""

        def find(ranks):
            row_of = {rank: row for row, rank in enumerate(ranks)}
            at_least = ((pair, value) for pair, value in self.every.items() if value >= recipe.threshold)
            return {(row_of[a], row_of[b]): value for (a, b), value in at_least}

        return stated(self.ids, self.tokens, 0, recipe, find)
