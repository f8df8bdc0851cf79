"""Settings for kinds of text: pairs found, and pairs that are right, for docs/how_to/choose.md.

    python -m benchmarks.choose CORPORA            print the table of all kinds
    python -m benchmarks.choose CORPORA --only titles

Articles and versions have pairs that others named: `edinburgh_2500.truth.parquet`, and the versions of a bill. The
other kinds are made: part of each text is changed at random, and the pair is the text and its changed copy. Texts are
the articles, and for code the functions of this Python's standard library. A pair is found if it is listed, or if both
texts are in one group.
"""

from __future__ import annotations

import argparse
import ast
import keyword
import random
import re
import string
import sysconfig
from collections.abc import Callable, Iterable
from itertools import combinations, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

import neardup_gpu as nd

Pairs = set[frozenset[int]]
Made = tuple[list[str], Pairs]
Kind = Callable[[Path], tuple[list[Any], Pairs]]

NAMES = re.compile(r"\b[A-Za-z_]\w*\b")
WORDS = ((5, 0.8), (5, 0.3), (3, 0.8), (3, 0.3), (2, 0.8), (2, 0.5), (2, 0.3), (1, 0.8), (1, 0.6), (1, 0.5), (1, 0.4))


def words(*settings: tuple[int, float], **others: Any) -> list[dict[str, Any]]:
    """Return settings of shingles and thresholds."""
    return [{"shingle_size": size, "threshold": threshold, **others} for size, threshold in settings]


def within(groups: Iterable[Any]) -> Pairs:
    """Return all pairs of places with equal values."""
    places: dict[Any, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    return {frozenset(pair) for each in places.values() for pair in combinations(each, 2)}


def articles(folder: Path) -> Made:
    """News articles, and the pairs published with them."""
    table = pq.read_table(folder / "edinburgh_2500.parquet")
    rows = {id: row for row, id in enumerate(table["id"].to_pylist())}
    truth = pq.read_table(folder / "edinburgh_2500.truth.parquet").to_pylist()
    return table["text"].to_pylist(), {frozenset((rows[pair["id_a"]], rows[pair["id_b"]])) for pair in truth}


def versions(folder: Path) -> Made:
    """Bills, and the pairs of versions of a bill."""
    table = pq.read_table(folder / "bills_116_small.parquet")
    return table["text"].to_pylist(), within(table["group"].to_pylist())


def copies(texts: list[str], change: Callable[[str], str]) -> Made:
    """Texts and their changed copies."""
    number = len(texts)
    return texts + [change(text) for text in texts], {frozenset((row, row + number)) for row in range(number)}


def scans(folder: Path, share: float) -> Made:
    """Return articles with misread letters, and with one added space for three of them."""
    rng = random.Random(1)

    def misread(text: str) -> str:
        letters = (rng.choice(string.ascii_lowercase) if rng.random() < share else letter for letter in text)
        return "".join(" " if rng.random() < share / 3 else letter for letter in letters)

    return copies(articles(folder)[0][:1000], misread)


def passages(folder: Path, length: int, replaced: int, swapped: int) -> Made:
    """Return parts of articles: one word is left out, some are replaced, and some change places."""
    rng, texts = random.Random(1), [text.split() for text in articles(folder)[0]]
    pool = [word for text in texts[:300] for word in text]

    def edited(text: str) -> str:
        changed = text.split()
        for _ in range(replaced):
            changed[rng.randrange(len(changed))] = rng.choice(pool)
        del changed[rng.randrange(len(changed))]
        for _ in range(swapped):
            place = rng.randrange(len(changed) - 1)
            changed[place : place + 2] = changed[place + 1], changed[place]
        return " ".join(changed)

    return copies([" ".join(text[20 : 20 + length]) for text in texts if len(text) >= 60], edited)


def token_ids(folder: Path) -> tuple[list[list[int]], Pairs]:
    """Return the sentences as ids of byte pairs, 8,000 in all, that were learnt from the articles."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.train_from_iterator(articles(folder)[0], trainers.BpeTrainer(vocab_size=8000, show_progress=False))
    texts, truth = passages(folder, 25, 2, 1)
    return [each.ids for each in tokenizer.encode_batch(texts)], truth


def posts(folder: Path) -> Made:
    """Beginnings of articles in 280 characters, each with a link, and the same as others pass them on.

    A copy names an author in front, ends earlier so that it fits 280 characters, and has another link and a tag.
    """
    rng, texts = random.Random(1), articles(folder)[0]

    def link() -> str:
        return "https://t.co/" + "".join(rng.choices(string.ascii_letters + string.digits, k=10))

    def cut(text: str, most: int) -> str:
        return text if len(text) <= most else text[:most].rsplit(" ", 1)[0]

    def passed_on(text: str) -> str:
        body, tag = text.rsplit(" ", 1)[0], rng.choice(texts[rng.randrange(len(texts))].split())
        return f"RT @{rng.choice(string.ascii_lowercase)}{rng.randrange(10**6)}: {cut(body, 210)}... #{tag} {link()}"

    whole = [cut(" ".join(text.split()), 256) for text in texts]
    return copies([f"{text} {link()}" for text in whole if len(text) > 100], passed_on)


def excerpts(folder: Path) -> Made:
    """Articles, and texts of 60 words of one article in the middle of 60 words of another."""
    rng, texts = random.Random(1), articles(folder)[0][:1500]
    made, truth = list(texts), set()
    for row in range(0, len(texts), 3):
        source, host = texts[row].split(), texts[row + 1].split()
        if len(source) > 150:
            begin = rng.randrange(len(source) - 60)
            truth |= {frozenset((row, len(made))), frozenset((row + 1, len(made)))}
            made.append(" ".join([*host[:30], *source[begin : begin + 60], *host[30:60]]))
    return made, truth


def messages(folder: Path) -> Made:
    """Three messages of each form of twelve words, with four numbers each."""
    rng, made, forms = random.Random(1), [], []
    for number, text in enumerate(articles(folder)[0][:400]):
        form = [word for word in text.split() if word.isalpha()][:12]
        for _ in range(3):
            numbers = [str(rng.randrange(10 ** rng.randrange(1, 7))) for _ in range(4)]
            parts = [*pairwise(range(0, len(form) + 1, 3))]
            made.append(" ".join(" ".join([*form[i:j], n]) for (i, j), n in zip(parts, numbers, strict=False)))
            forms.append(number)
    return made, within(forms)


def functions(share: float) -> Made:
    """Functions of the standard library with a share of their names changed, and a line more for each ten lines."""
    rng, found = random.Random(1), {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and 10 <= (node.end_lineno or 0) - node.lineno <= 80:
                found[ast.get_source_segment(source, node) or ""] = None
    texts = list(found)
    rng.shuffle(texts)
    texts, pool = texts[:2000], re.findall(r"[a-z]{3,}", " ".join(texts[2000:2300]))

    def edited(text: str) -> str:
        names = sorted(set(NAMES.findall(text)) - set(keyword.kwlist))
        new = {name: f"v{rng.randrange(10_000)}" for name in names if rng.random() < share}
        lines = []
        for line in NAMES.sub(lambda match: new.get(match[0], match[0]), text).splitlines():
            lines.append(line)
            if rng.random() < 0.1:
                added = f"# {' '.join(rng.choices(pool, k=6))}", f"log({rng.choice(pool)!r})"
                lines.append(line[: len(line) - len(line.lstrip())] + rng.choice(added))
        return "\n".join(lines)

    return copies(texts, edited)


def code(*settings: tuple[int, float]) -> list[dict[str, Any]]:
    """Return settings of words, and of tokens of Python."""
    return words(*settings) + words(*settings, tokens="code", language="python")


def letters(*settings: tuple[int, float]) -> list[dict[str, Any]]:
    """Return settings of letters."""
    return words(*settings, tokens="letters")


KINDS: dict[str, tuple[Kind, list[dict[str, Any]]]] = {
    "articles": (articles, words((5, 0.8), (5, 0.5), (5, 0.3))),
    "versions": (versions, words((5, 0.9), (5, 0.8), (5, 0.5), (5, 0.3))),
    "sentences": (lambda folder: passages(folder, 25, 2, 1), words(*WORDS)),
    "titles": (lambda folder: passages(folder, 9, 1, 0), words(*WORDS)),
    "token ids": (token_ids, words(*WORDS, tokens="ids")),
    "posts": (posts, words(*WORDS)),
    "excerpts": (
        excerpts,
        [*words((5, 0.8), (5, 0.3)), *words((5, 0.8), (5, 0.3), (3, 0.3), (5, 0.15), method="containment")],
    ),
    **{
        f"code, {share:.0%} of names changed": (
            lambda folder, share=share: functions(share),
            code((5, 0.8), (5, 0.3), (3, 0.5), (3, 0.3), (1, 0.7)),
        )
        for share in (0.1, 0.25)
    },
    "messages": (messages, [*words((5, 0.8), (2, 0.5), (1, 0.5)), *words((5, 0.8), fold="digits")]),
    **{
        f"scans, {100 * share:.0f}% misread": (
            lambda folder, share=share: scans(folder, share),
            [*words((5, 0.8), (5, 0.3), (2, 0.3)), *letters((24, 0.3), (12, 0.3), (12, 0.2))],
        )
        for share in (0.01, 0.03, 0.06)
    },
}
"""How texts and their pairs are made, and the settings to try, by kind."""


def measured(texts: list[Any], truth: Pairs, setting: dict[str, Any]) -> tuple[float, float]:
    """Return the share of pairs that are found, and the share of found pairs that are right."""
    recipe = nd.Recipe(method=setting.get("method", "exact"), threshold=setting["threshold"], max_partners=None)
    of_shingles = {name: setting[name] for name in ("tokens", "shingle_size", "fold", "language") if name in setting}
    result = nd.dedup({"text": texts}, recipe=recipe.with_(**of_shingles))
    listed = zip(result.pairs["id_a"].to_pylist(), result.pairs["id_b"].to_pylist(), strict=True)
    found = within(result.documents["group"].to_pylist()) | {frozenset(pair) for pair in listed}
    return len(found & truth) / len(truth), len(found & truth) / max(1, len(found))


def main() -> None:
    """Print a row for each kind of text and setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path, help="folder of the corpora")
    parser.add_argument("--only", choices=KINDS, help="one kind of text")
    given = parser.parse_args()
    print("| texts | words | setting | found | right |\n|---|---:|---|---:|---:|")
    for kind in [given.only] if given.only else KINDS:
        make, settings = KINDS[kind]
        texts, truth = make(given.corpora)
        length = median(len(text.split() if isinstance(text, str) else text) for text in texts)
        for setting in settings:
            found, right = measured(texts, truth, setting)
            named = ", ".join(f"{name} {value}" for name, value in setting.items())
            print(f"| {kind} | {length:.0f} | {named} | {found:.1%} | {right:.1%} |", flush=True)


if __name__ == "__main__":
    main()
