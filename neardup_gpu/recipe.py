"""Define `Recipe`: all settings that change results."""

from __future__ import annotations

import json
import numbers
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from . import checks
from .definitions import Material, checked_settings, material, settings_of, unreadable, versions
from .errors import ArgumentTypeError, ParameterError, RecipeMismatchError
from .keep_rule import checked_rule
from .log import log
from .methods import METHODS, MethodName, as_method, check_sketches
from .methods.contract import Join, Sketch
from .records import Converted, dataclass
from .text import stop_words as lists, token_kinds
from .text.languages import LANGUAGES
from .text.unit_options import UNIT_SETTINGS, Unit

if TYPE_CHECKING:
    import pyarrow as pa


Shingling = Literal["set", "bag", "circular", "spots"]
Clustering = Literal["greedy", "components"]
Empty = Literal["kept", "equal"]
SHINGLINGS, CLUSTERINGS = get_args(Shingling), get_args(Clustering)
KEPT, EQUAL = EMPTY = get_args(Empty)

_UNUSUAL: dict[str, Any] = {
    "only_against": False,
    "within": (),
    "length_ratio": None,
    "ignore_common": None,
    "ignored": None,
    "empty": KEPT,
}
"""Settings that are described only if they differ from these values."""


@dataclass(frozen=True)
class Shingles:
    """The kind of shingles that represent a document.

    Parameters
    ----------
    size : int from 1 to 64, default None
        Number of tokens in a shingle. If None, it is 24 letters, 1 line, 1 chunk, or 5 tokens of another kind. For
        spots, it is the number of tokens after the stop word, usually 2 or 3.
    kind : "set", "bag", "circular" or "spots", default "set"
        How shingles are made:

        - "set": a shingle counts once, however often it occurs.
        - "bag": repeats count.
        - "circular": shingles continue from the end of a text at its beginning.
        - "spots": stop words, each with the next `size` words that are not stop words (SpotSigs). A document without
          spots has shingles.
    stop_words : str, path or list of str, default None
        For spots only: a language ("da", "de", "en", "es", "fr", "it", "nl", "pt", "ru", "sv"), a file of words in
        UTF-8, or the words themselves; "en" if None.
    tokens : str or callable, default "words"
        What a token is:

        - "words": a word, without its case.
        - "letters": a letter of the words, which one space divides. For text with misread or divided words.
        - "lines": the words of a line.
        - "code": an identifier, number or operator of source code, with its case. Comments are left out.
        - "ids": an integer. Documents are lists of integers, such as a language model's token ids.
        - "chunks": the bytes between two cuts that move with the content, 128 on average. Documents are files of any
          kind, as they are, or values of a column.
        - a function: what it returns for a list of str, a list of str or of int for each. Tasks need a function that
          can be pickled. The recipe knows it by its name and its source, whatever the state of an object is.
    language : str, default None
        For code only: the language of all documents, such as "python". If None, the name of each file says it, which is
        the document's id. If that does not say it, comments count as code.
    drop_words : str, path or list of str, default None
        For words only: words that are left out before shingles are made. A list is given like `stop_words`. A document
        that has no other words keeps them all.
    fold : str or list of str, default None
        For words, letters and lines: differences that vanish before texts are divided, with commas between them:

        - "marks": vowel signs of Arabic and tatweel, points of Hebrew, accents of Latin letters.
        - "hyphens": words that a hyphen divides at the end of a line are joined. Not for lines.
        - "digits": each run of digits is the same number.
    stem : str, default None
        For the words of the method "simhash" only: the code of a language, such as "en", by whose rules words become
        their stems. Needs the extra `stem`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.
    InputError
        If a file of stop words cannot be read.

    Examples
    --------
    >>> Shingles(3, "bag")
    Shingles(size=3, kind='bag', stop_words=None, tokens='words', language=None, drop_words=None, fold=None, stem=None)
    >>> Shingles(tokens="letters").size
    24
    >>> Shingles(2, "spots").stop_words
    'en'
    """

    size: int = None  # type: ignore[assignment]  # __post_init__ chooses a number
    kind: Shingling = "set"
    stop_words: Any = None
    tokens: Any = "words"
    language: str | None = None
    drop_words: Any = None
    fold: Any = None
    stem: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", token_kinds.chosen(self.tokens))
        usual, noun = self.token_kind.size, self.token_kind.noun
        size = usual if self.size is None else self.size
        size = checks.integer("shingle_size", size, 1, 64, f"shingles have 1 to 64 tokens, {usual} is usual")
        if size < self.token_kind.least:
            log.warning(
                "shingle_size %d: so few %ss are in many texts by chance; give %d or more",
                *(size, noun, self.token_kind.least),
                extra={"once": True},
            )
        object.__setattr__(self, "size", size)
        if self.language is not None:
            if self.tokens != "code":
                raise ParameterError("language: only tokens='code' has one; give that as well, or leave it out")
            object.__setattr__(self, "language", checks.one_of("language", self.language, LANGUAGES))
        object.__setattr__(self, "kind", checks.one_of("shingling", self.kind, SHINGLINGS))
        if self.kind == "spots" and self.tokens != "words":
            raise ParameterError(f"shingling 'spots' and tokens {str(self.tokens)!r}: spots are of words")
        if self.kind == "spots":
            object.__setattr__(
                self, "stop_words", lists.chosen(lists.USUAL if self.stop_words is None else self.stop_words)
            )
        elif self.stop_words is not None:
            raise ParameterError("stop_words: only spots have them; give shingling='spots' as well, or leave them out")
        if self.drop_words is not None:
            if self.tokens != "words":
                raise ParameterError(
                    f"drop_words and tokens {str(self.tokens)!r}: only words are dropped; leave one out"
                )
            object.__setattr__(self, "drop_words", lists.chosen(self.drop_words, "drop_words"))
        if self.fold is not None:
            object.__setattr__(self, "fold", token_kinds.chosen_folds(self.fold, self.tokens))
        if self.stem is not None:
            from .text.stemming import chosen as chosen_stem

            if self.tokens != "words" or self.kind == "spots":
                what = f"tokens {str(self.tokens)!r}" if self.tokens != "words" else "shingling 'spots'"
                raise ParameterError(f"stem and {what}: only plain words have stems; leave one out")
            object.__setattr__(self, "stem", chosen_stem(self.stem))

    @property
    def token_kind(self) -> token_kinds.TokenKind | token_kinds.OwnTokens:
        """The kind of token, which makes the tokens."""
        return self.tokens if isinstance(self.tokens, token_kinds.OwnTokens) else token_kinds.KINDS[self.tokens]

    def describe_tokens(self) -> dict[str, Any]:
        """Return the settings that tokens depend on, by the names that files and flags use.

        Returns
        -------
        dict
            tokens, language, fold, stem with the version of PyStemmer, and drop_words with your own list, without those
            that have their usual values.

        Examples
        --------
        >>> Shingles().describe_tokens(), Shingles(tokens="code", language="c").describe_tokens()
        ({}, {'tokens': 'code', 'language': 'c'})
        """
        named = {
            "tokens": str(self.tokens),
            "language": self.language,
            "fold": ",".join(self.fold or ()),
            "stem": self.stem,
        }
        named |= {} if self.drop_words is None else lists.described(self.drop_words, "drop_words")
        return {name: value for name, value in named.items() if value not in ("words", None, "")}

    def describe(self) -> dict[str, Any]:
        """Return the settings by the names that messages, files and flags use.

        Returns
        -------
        dict
            shingle_size, shingling, and the settings of `describe_tokens`. For spots also stop_words, a name and a
            hash, and your own list if you gave one.

        Examples
        --------
        >>> Shingles(3).describe()
        {'shingle_size': 3, 'shingling': 'set'}
        """
        plain = {**self.describe_tokens(), "shingle_size": self.size, "shingling": self.kind}
        return plain if self.stop_words is None else {**plain, **lists.described(self.stop_words)}


_RENAMED = {"size": "shingle_size", "kind": "shingling"}
SHINGLE_SETTINGS = {_RENAMED.get(each.name, each.name): each.name for each in fields(Shingles)}
"""The fields of `Shingles` by the names that messages, files and flags use."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All settings that change results. Runs with equal recipes over equal documents make equal decisions.

    Parameters
    ----------
    shingles : Shingles, default Shingles(5, "set")
        The shingles that decide resemblance. Methods that take shingles sketch them.
    method : Join, Sketch, or a name in `METHODS`, default "exact"
        How candidates are found. If the method has no filter yet, one is chosen for the threshold.
    threshold : float in (0, 1], default None
        Minimum resemblance, or containment, for which a document is removed. If None, it is 0.8, or 0.9 for the method
        containment. For simhash, None means that nothing is verified, and the distance decides.
    keep : str, default "first"
        Priority: "first" (input order), "longest" (most tokens), or a column, as "date", "date:asc" or "date:desc".
        Several keys have commas between them. The next one decides between documents that are equal in all before it.
    cluster : "greedy" or "components", default "greedy"
        Which documents are removed:

        - "greedy": a document is removed exactly when it has a pair with a document that is already kept.
        - "components": each connected component of pairs keeps its first document.
    max_partners : int, default 64
        Pairs of a document are listed with at most `max_partners` documents of better priority and, if it is removed,
        with at most `max_partners` kept documents. None lists all pairs. The number does not change which documents
        are kept. A removed document names the listed kept document that it resembles most. The setting has no effect if
        nothing is verified: then the bucket limit bounds the pairs.
    seed : int in [0, 2**64), default 1
        Seed for all random constants.
    only_against : bool, default False
        Remove a document of the input only because of a document of the reference set. Documents of the input are not
        compared with one another, so copies within the input are kept.
    unit : Unit or str, default Unit()
        What is compared, such as "paragraph", and what of it is cut. If units are not documents and the method is
        "exact", the threshold is 1 unless it is given. At threshold 1, only units of equal tokens are found.
    within : str or sequence of str, default ()
        Columns, also with commas between them. Only documents that have equal values in all of them are compared, as if
        each value were a job of its own. A document without a value is compared with nothing.
    length_ratio : float in (0, 1], default None
        Compare two documents only if the shorter one has at least this share of the tokens of the longer one.
    ignore_common : int or float, default None
        For exact and containment: leave out all shingles that more documents have than this number or, below 1, than
        this share of all documents. A document of such shingles alone is never removed. With `within`, the documents of
        each value are counted by themselves.
    ignored : str, default None
        The digest of the shingles that were left out, which the recipe of a result holds.
    empty : "kept" or "equal", default "kept"
        What happens to documents that are empty or nothing but white space:

        - "kept": all are kept.
        - "equal": they count as identical, so that one is kept.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.

    Examples
    --------
    >>> Recipe().method
    Exact()
    >>> Recipe(method="minhash", threshold=0.9).method.filter
    Filter(k=11, s=10, r=1)
    """

    shingles: Shingles = Shingles()
    method: Converted[MethodName | Join | Sketch, Any] = Converted("exact")
    threshold: float | None = None
    keep: str = "first"
    cluster: Clustering = "greedy"
    max_partners: int | None = 64
    seed: int = 1
    only_against: bool = False
    unit: Converted[str | Unit, Unit] = Converted(Unit())
    within: Converted[str | Sequence[str], tuple[str, ...]] = Converted(())
    length_ratio: float | None = None
    ignore_common: int | float | None = None
    ignored: str | None = None
    empty: Empty = "kept"

    def __post_init__(self) -> None:
        method = as_method(self.method)
        unit = Unit(self.unit) if isinstance(self.unit, str) else checks.instance("unit", self.unit, Unit)
        usual = 1.0 if unit.divides and method == as_method("exact") else method.usual_threshold
        threshold = usual if self.threshold is None else self.threshold
        within = checks.columns("within", self.within, none=True)
        plain: dict[str, Any] = {
            "shingles": checks.instance("shingles", self.shingles, Shingles),
            "threshold": None
            if threshold is None
            else checks.fraction("threshold", threshold, zero=False, hint=f"{method.usual_threshold or 0.8} is usual"),
            "keep": checked_rule(checks.text("keep", self.keep)),
            "cluster": checks.one_of("cluster", self.cluster, CLUSTERINGS),
            "max_partners": checks.optional(checks.integer, "max_partners", self.max_partners, 1, 2**31 - 1),
            "seed": checks.seed(self.seed),
            "only_against": checks.flag("only_against", self.only_against),
            "unit": unit,
            "within": tuple(",".join(within).split(",")) if within else (),
            "length_ratio": checks.optional(checks.fraction, "length_ratio", self.length_ratio, zero=False),
            "ignore_common": checks.optional(_most_documents, "ignore_common", self.ignore_common),
            "ignored": checks.optional(checks.text, "ignored", self.ignored),
            "empty": checks.one_of("empty", self.empty, EMPTY),
        }
        plain["method"] = method.settled(plain["threshold"])
        vars(self).update(plain)
        if self.shingles.tokens == "letters" and self.method.elements == "tokens":
            raise ParameterError(
                "tokens 'letters' and elements 'tokens': all texts have the same letters; give elements='shingles'"
            )
        if self.shingles.stem is not None and method.name != "simhash":
            raise ParameterError(f"stem and method {method.name!r}: only words of simhash are stemmed; leave one out")
        if self.shingles.kind == "bag" and self.method.measure.weighted:
            raise ParameterError("shingling 'bag' and weighting: a bag numbers repeats already; leave one of them out")
        if self.within and self.method.measure.weighted and self.method.needs_statistics:
            raise ParameterError(
                "within and weighting 'tfidf': weights are those of all documents; give weighting 'log', or leave "
                "within out"
            )
        if self.only_against and self.cluster == "components":
            raise ParameterError(
                "only_against and cluster 'components': components join documents of the input; leave one of them out"
            )

        if self.ignore_common is not None:
            if not isinstance(self.method, Join):
                raise ParameterError(
                    f"ignore_common and method {self.method.name}: only exact and containment compare shingles alone; "
                    "leave one of them out"
                )
            if self.within and not isinstance(self.ignore_common, int):
                raise ParameterError(
                    f"ignore_common {self.ignore_common:g} and within: the documents of each value are counted by "
                    "themselves, so a share differs from value to value; give a number of documents"
                )
            if self.unit.divides:
                raise ParameterError(
                    f"ignore_common and unit '{self.unit}': shingles are counted in whole documents; leave one out"
                )
        if self.unit.divides and (kind := self.shingles.token_kind).holds != "text":
            raise ParameterError(
                f"unit '{self.unit}' and tokens '{self.shingles.tokens}': {kind.place}s have no "
                f"{self.unit.boundaries}; leave one out"
            )
        self._check_effects()

    def _check_effects(self) -> None:
        """Raise ParameterError for settings that would have no effect, because of the method or of the unit."""
        by_equality, by_key, unit = self.method.equal_by is not None, bool(self.method.equal_by), self.unit
        given = {
            "shingle_size": self.shingles.size != self.shingles.token_kind.size,
            "shingling": self.shingles.kind != "set",
            "fold": self.shingles.fold is not None,
            "drop_words": self.shingles.drop_words is not None,
            "length_ratio": self.length_ratio is not None,
            "ignore_common": self.ignore_common is not None,
            "cluster": self.cluster != "greedy",
            "method": self.method != as_method("exact"),
            "key": by_key,
            "empty": self.empty != "kept",
        }
        compared = ("shingle_size", "shingling", "length_ratio", "cluster")
        equal_units = f"at threshold 1 only equal {unit}s are found"
        unused: list[tuple[bool, str, tuple[str, ...], str, str]] = [
            (unit.divides, f"unit '{unit}'", ("empty",), f"a document without text has no {unit}s", ""),
            (unit.divides, f"unit '{unit}'", ("key",), "parts of documents have no key", ""),
            (by_key, "key", ("empty",), "documents are compared by it, whatever their text", ""),
            (
                by_equality,
                f"method {self.method.name}",
                (*compared, "ignore_common", "fold", "drop_words"),
                "only equal documents are found",
                "",
            ),
            (
                self.only_equal and not by_equality,
                f"unit '{unit}'",
                ("method", *compared),
                equal_units,
                ", or give a lower threshold",
            ),
        ]
        for holds, what, names, why, otherwise in unused:
            if holds and (found := [name for name in names if given[name]]):
                raise ParameterError(f"{what} and {found[0]}: {why}; leave {found[0]} out{otherwise}")

    @property
    def only_equal(self) -> bool:
        """Whether only equal units are found: of equal tokens, or as the method says."""
        return self.method.equal_by is not None or (self.unit.divides and self.threshold == 1.0)

    @property
    def compared_columns(self) -> list[str]:
        """The columns whose values say which documents may be compared, or which are equal."""
        return list(dict.fromkeys([*self.within, *(self.method.equal_by or ())]))

    @property
    def verifies(self) -> bool:
        """Whether candidates are verified, which is the case if there is a threshold and units may be near."""
        return self.threshold is not None and not self.only_equal

    def measure_by(self, statistics: Any) -> Any:
        """Return the measure of pairs, by the statistics that the recipe names.

        Parameters
        ----------
        statistics : Frequencies or None
            Those that weigh, or the shingles that were left out.

        Returns
        -------
        Measure
            That of the method.

        Examples
        --------
        >>> Recipe().measure_by(None).name
        'resemblance'
        """
        measure: Any = self.method.measure
        return measure.knowing(statistics) if self.ignored is None else measure.without(statistics)

    @property
    def elements(self) -> str:
        """Describe the elements that the method sketches. Frequencies of other elements cannot be used with it."""
        noun = f"{self.shingles.token_kind.noun}s" if self.shingles.tokens != "words" else "tokens"
        if self.shingles.tokens == "code" or not isinstance(self.shingles.tokens, str):
            noun = " ".join((str(self.shingles.tokens), *filter(None, [self.shingles.language])))
        if self.shingles.drop_words is not None:
            noun += f" without {self.shingles.describe_tokens()['drop_words']}"
        if self.shingles.fold is not None:
            noun += f" with fold {','.join(self.shingles.fold)}"
        if self.shingles.stem is not None:
            noun += f" with stem {self.shingles.stem}"
        if self.method.elements == "tokens":
            return noun
        stop_words = self.shingles.stop_words
        by = "" if stop_words is None else f" by stop words {lists.described(stop_words)['stop_words']}"
        return f"{self.shingles.kind} shingles of {self.shingles.size} {noun}{by}"

    @property
    def expected_recall(self) -> float | None:
        """Share of the pairs exactly at the threshold that become candidates; None if theory does not say."""
        return self.method.expected_recall(self.threshold)

    @property
    def material(self) -> Material:
        """The random constants for the fingerprints of tokens, shingles and documents."""
        return material(self.seed)

    def describe(self) -> dict[str, Any]:
        """Return all settings as plain values, the version of the definitions and the hash of the Unicode table.

        Returns
        -------
        dict
            Ready for JSON.

        Examples
        --------
        >>> Recipe(method="simhash").describe()["radius"]
        3
        """
        own = {name: getattr(self, name) for name in ("threshold", "keep", "cluster", "max_partners", "seed")}
        unusual = {name: getattr(self, name) for name, usual in _UNUSUAL.items() if getattr(self, name) != usual}
        own |= {name: ",".join(value) if isinstance(value, tuple) else value for name, value in unusual.items()}
        own |= self.unit.describe()
        method = {"method": self.method.name, **self.method.describe()}
        return {**method, **self.shingles.describe(), **own, **versions()}

    def to_json(self) -> str:
        """Return the settings of `describe` as JSON.

        Returns
        -------
        str
            JSON that `from_json` reads.

        Examples
        --------
        >>> Recipe.from_json(Recipe(threshold=0.9).to_json()).threshold
        0.9
        """
        return json.dumps(self.describe())

    @classmethod
    def from_json(cls, text: str | bytes, name: str = "recipe") -> Self:
        """Read the recipe that `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            The JSON that `to_json` returned.
        name : str, default "recipe"
            Where the text was read, for error messages.

        Returns
        -------
        Recipe
            Equal to the recipe that was written.

        Raises
        ------
        RecipeMismatchError
            If it was written under other definitions or another Unicode table, or is not a recipe.
        ArgumentTypeError
            If it is not text.

        Examples
        --------
        >>> Recipe.from_json(Recipe(seed=7).to_json()) == Recipe(seed=7)
        True
        """
        checks.instance("text", text, (str, bytes), "that Recipe.to_json gave")
        stored = checked_settings(text, name)
        kind = METHODS.get(str(stored.pop("method", None)))
        own = {each.name for each in fields(cls)} - {"shingles", "method", "unit"}
        stored = _UNUSUAL | stored
        shingles = set(Shingles().describe())
        if kind is None or not own | shingles <= set(stored):
            raise unreadable(name)
        settings = {key: value for key, value in stored.items() if key not in own | shingles | set(versions())}
        try:
            kind_of_tokens = token_kinds.restored(settings.pop("tokens", "words"))
            others: dict[str, Any] = {name: lists.restored(settings, name) for name in lists.SETTINGS}
            others |= {name: settings.pop(name) for name in ("language", "fold", "stem") if name in settings}
            made_of = Shingles(stored["shingle_size"], stored["shingling"], tokens=kind_of_tokens, **others)
            unit = Unit(**{name: settings.pop(name) for name in UNIT_SETTINGS if name in settings})
            method = kind.from_settings(settings)
            found = cls(shingles=made_of, method=method, unit=unit, **{key: stored[key] for key in own})
        except (KeyError, ValueError, TypeError) as error:
            known = isinstance(error, (ArgumentTypeError, ParameterError))
            raise unreadable(name, str(error) if known else "") from None
        described = found.describe()
        for words in lists.SETTINGS:
            theirs, ours = str(stored.get(words))[:60], described.get(words)
            if ours is not None and theirs != ours:
                raise RecipeMismatchError(
                    f"{name}: made with {words} {theirs!r}, this version has {ours}; make it again"
                )
        stored = {name: value for name, value in stored.items() if name not in _UNUSUAL or value != _UNUSUAL[name]}
        if described != {**stored, "method": method.name}:
            raise unreadable(name)
        return found

    @classmethod
    def of(cls, schema: pa.Schema, name: str) -> Self:
        """Read the recipe in an artefact's schema metadata.

        Parameters
        ----------
        schema : pyarrow.Schema
            The schema of a table or file that this package wrote.
        name : str
            Where the schema was read, for error messages.

        Returns
        -------
        Recipe
            The stored recipe.

        Raises
        ------
        InputError
            If the metadata holds no recipe.
        RecipeMismatchError
            If it was written under other definitions or another Unicode table, or is not a recipe.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> Recipe.of(dedup({"text": ["to be", "or not"]}, recipe=Recipe(seed=7)).documents.schema, "result").seed
        7
        """
        return cls.from_json(settings_of(schema, name), name)

    def with_statistics(self, given: Any) -> tuple[Self, Any]:
        """Return the recipe that names the given statistics, and the statistics themselves.

        Parameters
        ----------
        given : Frequencies, path or None
            Statistics of documents, or the file that holds them.

        Returns
        -------
        recipe, statistics
            The unchanged recipe and None, if nothing is given.

        Raises
        ------
        ParameterError, RecipeMismatchError
            If the method takes no statistics, needs other statistics, or names statistics that were not given.

        Examples
        --------
        >>> Recipe().with_statistics(None)[1] is None
        True
        """
        method, statistics = self.method.with_statistics(given, self.seed)
        if statistics is not None and statistics.elements != self.elements:
            name = given if isinstance(given, (str, Path)) else "frequencies"
            raise RecipeMismatchError(
                f"{name}: counts {statistics.elements}, but {self.elements} are needed; make it again"
            )
        return replace(self, method=method), statistics

    def sketching(self) -> dict[str, Any]:
        """Return the settings that sketches depend on. Two sketches can be compared exactly if these settings agree.

        Returns
        -------
        dict
            Settings by name.

        Raises
        ------
        ParameterError
            If the method keeps no sketches.

        Examples
        --------
        >>> Recipe(method="minhash", keep="longest").sketching() == Recipe(method="minhash").sketching()
        True
        """
        check_sketches(self.method)
        of_shingles = self.method.elements == "shingles"
        shingles = self.shingles.describe() if of_shingles else self.shingles.describe_tokens()
        own = {"seed": self.seed, **({"within": ",".join(self.within)} if self.within else {})}
        unit = {"unit": self.unit.unit} if self.unit.divides else {}
        return {"method": self.method.name, **self.method.sketching(), **shingles, **unit, **own, **versions()}

    def check_sketches(self, other: Recipe, name: str) -> None:
        """Check that sketches made with another recipe can be compared with sketches made with this recipe.

        Parameters
        ----------
        other : Recipe
            The recipe of the other sketches.
        name : str
            Where the other sketches are, for error messages.

        Raises
        ------
        RecipeMismatchError
            If the recipes differ in a setting that sketches depend on. The message names the first one.
        ParameterError
            If the method of one of the recipes keeps no sketches.
        ArgumentTypeError
            If `other` is not a Recipe.

        Examples
        --------
        >>> Recipe(method="modm").check_sketches(Recipe(method="modm", keep="longest"), "sketches.parquet")
        """
        checks.instance("other", other, Recipe)
        mine, theirs = self.sketching(), other.sketching()
        for key in dict.fromkeys(("method", "tokens", *mine, *theirs)):
            usual = {"tokens": "words", "unit": "document"}.get(key)
            if theirs.get(key) != mine.get(key):
                made, needed = (each.get(key, usual) for each in (theirs, mine))
                raise RecipeMismatchError(f"{name}: made with {key} = {made}, but {needed} is needed; sketch it again")

    def with_(self, **changes: Any) -> Self:
        """A copy with some settings changed, of the recipe, of its shingles or of its method.

        All others stay, also what was chosen for a threshold; to choose a filter anew, pass `filter=None` as well.

        Parameters
        ----------
        **changes : settings by name
            Fields of the recipe or of its method, and `shingle_size`, `shingling`, `stop_words`, `tokens`,
            `language`, `drop_words`, `fold` and `stem`. Other tokens come with their usual settings, unless you give
            these as well.

        Returns
        -------
        Recipe
            A copy.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If a setting is unknown, out of its range or of another type.

        Examples
        --------
        >>> Recipe(method="minhash").with_(shingle_size=3, bucket_limit=100).shingles.size
        3
        """
        own = {each.name for each in fields(self)}
        shingles = {field: changes.pop(name) for name, field in SHINGLE_SETTINGS.items() if name in changes}
        if "tokens" in shingles:
            shingles = {"size": None, "language": None, "drop_words": None, "fold": None, "stem": None, **shingles}
        if "kind" in shingles:  # which other shinglings do not have
            shingles.setdefault("stop_words", None)
        of_method = {name: changes.pop(name) for name in list(changes) if name not in own}
        if shingles:
            made_of = checks.instance("shingles", changes.get("shingles", self.shingles), Shingles)
            changes["shingles"] = replace(made_of, **shingles)
        if of_method:
            method: Any = as_method(changes.get("method", self.method))
            unknown = set(of_method) - {each.name for each in fields(method)}
            if unknown:
                name = min(unknown)
                reason = method.refused.get(name)
                why = f": {reason}" if reason else ""
                raise ParameterError(
                    f"{name} is not a setting of a recipe whose method is {method.name}{why}", parameter=name
                )
            changes["method"] = method.with_(**of_method)
        return replace(self, **changes)


def _most_documents(name: str, value: Any) -> int | float:
    """Return a number of documents, or a share of all documents below 1."""
    if isinstance(value, numbers.Real) and 0 < value < 1:  # type: ignore[operator]
        return float(value)
    return checks.integer(name, value, 1, 2**62, "give a number of documents, or a share below 1")


def check_reference(recipe: Recipe, against: Any) -> None:
    """Raise ParameterError if settings are given that concern a reference set alone, and there is none."""
    if against is not None:
        return
    if recipe.method.direction != "in":
        raise ParameterError(
            f"direction {recipe.method.direction}: says how to compare with a reference set; give against, or leave it "
            "out"
        )
    if recipe.only_against:
        raise ParameterError("only_against: removes what resembles a reference set; give against, or leave it out")


def token_recipe(tokens: str, length: int = 1) -> Recipe:
    """Return the recipe by which passages are found, which are runs of at least `length` tokens of a kind."""
    least = token_kinds.KINDS[tokens].least  # shingles of fewer tokens are warned of
    return Recipe(shingles=Shingles(max(least, min(64, length)), tokens=tokens))


def choose_recipe(recipe: Any, usual: str, *, units: bool = False, **given: Any) -> Recipe:
    """Return the recipe, or make one of the settings that functions take directly.

    Parameters
    ----------
    recipe : Recipe or None
    usual : str
        The method if none is given.
    units : bool, default False
        Whether a recipe may compare parts of documents.
    **given : settings by name
        Fields of `Recipe`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a setting is impossible or of another type, or is given together with a recipe.
    """
    if recipe is None:
        return Recipe(**given)
    if checks.instance("recipe", recipe, Recipe).unit.divides and not units:
        raise ParameterError(f"recipe: unit '{recipe.unit}' is for dedup; give recipe.with_(unit='document')")
    usual_values = {each.name: each.default for each in fields(Recipe)} | {"method": usual}
    for name, value in given.items():
        if not (isinstance(value, type(usual_values[name])) and value == usual_values[name]):
            raise ParameterError(f"recipe and {name}: the recipe holds that; leave one out, or give recipe.with_(...)")
    return recipe
