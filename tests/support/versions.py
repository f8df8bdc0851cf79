"""Small corpora of seeded edits: families of versions of a text, and columns to rank them by."""

import math
import random

import pyarrow as pa

WORDS = [f"{a}{b}{c}" for a in "bdfgklmnpr" for b in "aeiou" for c in ("", "st", "nd", "x", "m")] + [
    "漢字",
    "été",
    "हिन्दी",
]


def edited(text, edits, generator):
    """A text with some of its words replaced, dropped or doubled."""
    words = text.split()
    for _ in range(edits):
        at = generator.randrange(len(words))
        words[at : at + 1] = generator.choice([[generator.choice(WORDS)], [], [words[at], generator.choice(WORDS)]])
        words = words or ["end"]
    return " ".join(words)


def families(num=40, seed=1, lengths=(1, 3, 8, 60, 150, 400)):
    """Texts that come in families of 1 to 6 versions; some are exact copies, some differ in case and spaces only."""
    generator = random.Random(seed)
    texts = []
    for _ in range(num):
        text = " ".join(generator.choices(WORDS, k=generator.choice(lengths)))
        versions = [text]
        for _ in range(generator.randrange(6)):
            kind = generator.random()
            if kind < 0.15:
                versions.append(versions[-1])
            elif kind < 0.3:
                versions.append(f" {versions[0].upper()} .")
            else:
                versions.append(edited(versions[-1], generator.randrange(1, 8), generator))
        texts += versions
    texts += ["", " ,. ", "", "one", "ONE!"]
    generator.shuffle(texts)
    return texts


def corpus(texts=None, seed=1):
    """A table with ids, texts and columns to rank by; every column has nulls."""
    texts = families(seed=seed) if texts is None else texts
    generator = random.Random(seed)
    num = len(texts)
    dates = [f"20{generator.randrange(10, 25)}-0{generator.randrange(1, 9)}" for _ in range(num)]
    scores = [generator.choice([None, math.nan, 1.5, generator.random()]) for _ in range(num)]
    return pa.table(
        {
            "id": [f"doc-{i}" for i in range(num)],
            "text": texts,
            "date": pa.array([None if generator.random() < 0.2 else date for date in dates]),
            "score": pa.array(scores, pa.float64(), from_pandas=False),
            "unique": generator.sample(range(10 * num), num),
        }
    )


def decisions(result):
    """What was decided, as plain rows, ids first; where documents lie is no decision."""
    places = [name for name in ("file", "row") if name in result.documents.column_names]
    return result.documents.drop(places).to_pylist(), result.pairs.to_pylist()
