"""The commonest shingles are named in the words of a document."""

import re

import numpy as np
import pyarrow as pa
import pytest
from flat import flat

from neardup_gpu import Engine, NeardupError, Recipe, Shingles, dedup
from neardup_gpu.results import commonest
from neardup_gpu.stages import shingle, tokenize

TEXTS = [
    "To be, or NOT to be: that is the question",
    "one two",
    "caf\u00e9 -- \u6f22\u5b57\u304c \u3042\u308b, 3.14 x_y",
    "soft\u00adhyphen  and\n\nlines ... of \ufb01ne words here",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", ["set", "bag", "circular"])
def test_the_words_of_a_shingle_have_its_tokens(text, kind):
    recipe = Recipe(shingles=Shingles(3, kind))
    tokens = tokenize([text], recipe, backend="cpu")
    fingerprints = shingle(tokens, recipe, backend="cpu")[0]
    for place, fingerprint in enumerate(fingerprints.tolist()):
        words = commonest.words_of(fingerprint, text, recipe)
        mine = tokenize([words], recipe, backend="cpu").values
        wanted = tokens.values[(place + np.arange(min(3, len(tokens.values)))) % len(tokens.values)]
        assert set(wanted.tolist()) <= set(mine.tolist())
    assert commonest.words_of(5, text, recipe) is None
    assert commonest.words_of(5, "", recipe) is None


@pytest.mark.parametrize("text", TEXTS)
def test_the_words_of_a_spot_are_its_tokens(text):
    """Or those of a shingle, in a text without spots."""
    recipe = Recipe(shingles=Shingles(1, "spots", ["to", "or", "words", "x_y"]))
    spots = {
        TEXTS[0]: ["to be", "or NOT", "to be"],
        TEXTS[1]: ["one", "two"],
        TEXTS[2]: ["caf\u00e9", "\u6f22", "\u5b57", "\u304c", "\u3042", "\u308b", "3", "14", "x_y"],
        TEXTS[3]: ["words here"],
    }[text]
    fingerprints = shingle(tokenize([text], recipe, backend="cpu"), recipe, backend="cpu")[0]
    found = [commonest.words_of(fingerprint, text, recipe) for fingerprint in fingerprints.tolist()]
    named = tokenize([" ".join(words.split()) for words in found], recipe, backend="cpu")
    wanted = tokenize(spots, recipe, backend="cpu")
    assert len(named) == len(wanted)
    assert all(set(wanted[i].tolist()) <= set(named[i].tolist()) for i in range(len(wanted)))


def texts(number=150):
    """Texts of few sentences, all of whose shingles are frequent."""
    sentences = [" ".join(f"s{i}w{j}" for j in range(6)) for i in range(10)]
    return [". ".join(sentences[i] for i in sorted({k % 10, k // 10 % 10, k * 7 % 10, 3})) for k in range(number)]


def told(source, **options):
    with pytest.raises(NeardupError, match=r"^more than 50 comparisons; most are for the shingles ") as error:
        flat(dedup, source, threshold=0.3, max_comparisons=50, **options)
    return str(error.value)


def test_a_stream_is_not_read_again():
    table = pa.table({"text": texts()})
    assert told(table).count('"') == 6
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert "for the shingles among the rarest of " in told(stream)
    assert "method='minhash'" in told(table)


def test_the_document_may_be_of_the_reference_set():
    table = pa.table({"text": texts()})
    assert told(pa.table({"text": [f"{text} more" for text in texts()]}), against=table).count('"') == 6


def test_the_number_is_that_of_documents_that_have_the_shingle():
    found = told(pa.table({"text": texts()}))
    for words, number in re.findall(r'"([^"]+)" \(among the rarest of (\d+) documents\)', found):
        assert int(number) <= sum(words.strip(".") in text for text in dict.fromkeys(texts()))


def test_shingles_are_still_there_if_documents_repeat_them():
    """Sets are smaller than such shingles, and are not written over them, since the message reads these once more."""
    repeated = [f"{text}. {text}. {text}" for text in texts()]
    found = re.findall(r'"([^"]+)" \(among the rarest of (\d+) documents\)', told(pa.table({"text": repeated})))
    assert len(found) == 3
    for words, number in found:
        assert int(number) <= sum(words.strip(".") in text for text in dict.fromkeys(repeated))


def test_by_containment_the_number_is_that_of_all_documents_that_have_it():
    table = pa.table({"text": [*(" ".join([f"a{i} b{i} c{i}"] * 20 + ["x y"]) for i in range(50)), "x y"]})
    with pytest.raises(NeardupError, match=r'most are for the shingles "x y" \(in 51 documents\); allow more'):
        dedup(table, engine=Engine(max_comparisons=1), recipe=Recipe(shingles=Shingles(2), method="containment"))


def test_enough_comparisons_change_nothing():
    free, bounded = (
        dedup({"text": texts()}, threshold=0.5, engine=Engine(max_comparisons=most)) for most in (None, 10**9)
    )
    assert free.documents.equals(bounded.documents)
    assert free.pairs.equals(bounded.pairs)
