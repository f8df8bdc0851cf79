"""Options as arguments: every entrance takes the same classes, and readers get the same object."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import neardup_gpu as nd

ENTRANCES = [nd.open_documents, nd.dedup, nd.sketches.sketch, nd.Index.add, nd.Index.query]
CLASSES = [nd.Reading, nd.Writing, nd.Engine, nd.Workers]


@pytest.mark.parametrize("entrance", ENTRANCES, ids=lambda entrance: entrance.__qualname__)
def test_every_entrance_takes_the_options_of_reading(entrance):
    parameters = inspect.signature(entrance).parameters
    assert {"source", "id_column", "text_columns", "reading"} <= set(parameters)
    assert not {each.name for each in dataclasses.fields(nd.Reading)} - {"id_column", "text_columns"} & set(parameters)


def test_dedup_has_fifteen_parameters():
    assert list(inspect.signature(nd.dedup).parameters) == [
        *("source", "id_column", "text_columns", "method", "threshold", "keep", "against", "output", "engine"),
        *("memory", "progress", "reading", "writing", "recipe", "workers"),
    ]


@pytest.mark.parametrize("kind", CLASSES)
def test_options_are_frozen_and_refuse_unknown_fields(kind):
    made = kind()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, dataclasses.fields(kind)[0].name, None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        kind(colour="red")


def test_an_option_that_is_given_twice_is_refused():
    table = {"id": [1], "text": ["a"], "body": ["b"]}
    for name, value in (("id_column", "id"), ("text_columns", "text")):
        with pytest.raises(nd.errors.ParameterError, match=f"^reading and {name}: "):
            nd.open_documents(table, **{name: value}, reading=nd.Reading(**{name: value}))
    for given in ({"threshold": 0.5}, {"method": "minhash"}, {"keep": "longest"}):
        with pytest.raises(nd.errors.ParameterError, match=f"^recipe and {next(iter(given))}: the recipe holds that"):
            nd.dedup(table, recipe=nd.Recipe(), **given)
    chosen = nd.open_documents(table, id_column="id", reading=nd.Reading(text_columns="body"))
    assert (chosen.id_column, chosen.texts([0])) == ("id", {0: "b"})


@pytest.mark.parametrize("name", ["reading", "writing", "engine", "recipe", "workers"])
def test_options_of_another_type_are_refused(name):
    with pytest.raises(nd.errors.ArgumentTypeError, match=f"^{name}: "):
        nd.dedup({"text": ["a"]}, **{name: 3})


def test_what_tasks_exclude(tmp_path):
    workers, texts = nd.Workers(work_dir=tmp_path / "work", number=1), {"text": ["a", "b"]}
    cases = [
        ({"workers": workers}, "^output: tasks write their result into a folder"),
        ({"workers": workers, "output": tmp_path / "out", "memory": "2GB"}, "^memory and work_dir: "),
        ({"workers": nd.Workers(number=1), "output": tmp_path / "out"}, "^work_dir: tasks need a folder to work in"),
        ({"memory": "2GB", "engine": nd.Engine(max_comparisons=3)}, "^max_comparisons and memory: "),
    ]
    for given, says in cases:
        with pytest.raises(nd.errors.ParameterError, match=says) as caught:
            nd.dedup(texts, **given)
        assert "\n" not in str(caught.value)
    counted = nd.dedup(texts, method=nd.MinHash(weighting="tfidf")).frequencies
    weighed = nd.MinHash(weighting="tfidf", frequencies=counted)
    with pytest.raises(nd.errors.ParameterError, match=r"^frequencies: tasks read them from a file; write them, and"):
        nd.dedup(texts, method=weighed, output=tmp_path / "out", workers=workers)
    assert not list(tmp_path.iterdir())


def test_a_result_of_tasks_reads_its_tables_when_they_are_used(tmp_path):
    texts, workers = (
        {"text": ["to be or not to be"] * 2 + ["the question"]},
        nd.Workers(work_dir=tmp_path / "w", number=1),
    )
    found = nd.dedup(texts, output=tmp_path / "out", workers=workers)
    expected = nd.dedup(texts)
    assert found.report["counts"] == {**expected.report["counts"], "comparisons": found.report["counts"]["comparisons"]}
    again = nd.dedup(texts, output=tmp_path / "out", workers=workers, writing=nd.Writing(overwrite=True))
    with pytest.raises(nd.errors.InputError, match="holds another result by now"):
        _ = found.documents
    assert again.documents.select(["id", "kept"]).equals(expected.documents.select(["id", "kept"]))
    assert again.pairs.num_rows == expected.pairs.num_rows and again.skipped is None
    assert again.explain(1).duplicate_of == 0
