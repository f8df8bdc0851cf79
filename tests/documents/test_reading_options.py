"""Options of reading: every entrance takes them, and they reach every reader in one object."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import neardup_gpu as nd
from neardup_gpu.documents.reading_options import Reading
from neardup_gpu.documents.skipped import Policy

ENTRANCES = [nd.open_documents, nd.dedup, nd.dedup_in_tasks, nd.sketch, nd.Index.add, nd.Index.query]
NOT_OF_QUERIES = {"on_error", "max_document_bytes", "null_values"}  # queries are read to the end or not at all


@pytest.mark.parametrize("entrance", ENTRANCES, ids=lambda entrance: entrance.__qualname__)
def test_every_entrance_takes_every_option(entrance):
    parameters = inspect.signature(entrance).parameters
    options = {each.name: each.default for each in dataclasses.fields(Reading)}
    if entrance is nd.Index.query:
        options = {name: default for name, default in options.items() if name not in NOT_OF_QUERIES}
    assert {name: parameters[name].default for name in options if name in parameters} == options


def test_what_readers_receive_are_options():
    """Readers receive a `Policy`, whose fields are options, but for the one that `html` decides."""
    options = {each.name: each.default for each in dataclasses.fields(Reading)}
    received = {each.name: each.default for each in dataclasses.fields(Policy) if each.name != "tree"}
    assert received == {name: options[name] for name in received}
