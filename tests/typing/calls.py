"""Calls as users write them. Type checkers have to refuse the lines that end in `# wrong`, and no others.

Nothing here is run.
"""
# ruff: noqa: B018

from pathlib import Path
from typing import Any, assert_type

import numpy as np

import neardup_gpu as nd
from neardup_gpu import hamming, papers, theory
from neardup_gpu.documents import Documents
from neardup_gpu.errors import ArgumentTypeError, NeardupError
from neardup_gpu.report_page.page import Page

# Jobs

result = nd.dedup("bills.parquet", id_column="id", threshold=0.8)
assert_type(result, nd.Result)
nd.dedup(
    ["a.jsonl", Path("b.jsonl")],
    text_columns=["title", "text"],
    output=Path("out"),
    method=nd.MinHash(filter=(6, 14, 2)),
)
nd.dedup({"text": ["one", "two"]}, progress=True)
nd.dedup(
    "a",
    recipe=nd.Recipe(method=nd.SimHash(radius=3)),
    progress=lambda stage, done, total: None,
    engine=nd.Engine(gpu_memory="20GB"),
)
assert_type(repr(result), str)
report: dict[str, Any] = result.report
assert_type(result.report["counts"], Any)
assert_type(result.write_report("report.html", text=False), Page)
assert_type(nd.sketches.sketch("a.parquet", "s.parquet", method=nd.MinHash(recall=0.95)), dict[str, Any])
assert_type(nd.sketches.sketch_text("one", nd.Recipe(method="minhash"), html=True), dict[str, Any])
nd.sketches.sketch_text(["one"], nd.Recipe())  # wrong
nd.sketches.pairs(["a.parquet", Path("b.parquet")], threshold=0.9, r=2)
assert_type(nd.open_documents("a.parquet"), Documents)
assert_type(nd.open_documents("a.parquet", reading=nd.Reading(html="tree")), Documents)
nd.sketches.clusters(["a.parquet", Path("b.parquet")], threshold=0.9, representative="commonest")

assert_type(nd.contaminated("a.parquet", ["evals"], length=13, action="cut", output="out").report, dict[str, Any])
nd.contaminated("a.parquet", "evals", engine=nd.Engine(threads=2), writing=nd.Writing(overwrite=True))
nd.contaminated("a.parquet", "evals", lenght=13)  # wrong
nd.contaminated("a.parquet", "evals", length="13")  # wrong

nd.dedup("a", threshold="0.8")  # wrong
nd.dedup("a", threshhold=0.8)  # wrong
nd.dedup("a", writing=nd.Writing(check="all"))  # wrong
nd.dedup("a", recipe=nd.Recipe(max_partners="all"))  # wrong
nd.dedup("a", method=nd.MinHash)  # wrong
nd.dedup("a", recipe={"threshold": 0.8})  # wrong
nd.dedup("a", progress=lambda: None)  # wrong
nd.dedup("a", writing=nd.Writing(overwrite="yes"))  # wrong
nd.sketches.sketch("a.parquet", output=3)  # wrong
nd.sketches.pairs(3)  # wrong
nd.sketches.pairs("s.parquet", r=0.5)  # wrong
nd.open_documents("a", reading=nd.Reading(html="yes"))  # wrong
nd.open_documents("a", reading=nd.Reading(on_error="ignore"))  # wrong
nd.dedup("a", engine="cuda")  # wrong
nd.dedup("a", method="min-hash")  # wrong
nd.sketches.clusters("s.parquet", representative=3)  # wrong
result.keeps  # wrong
nd.dedupe("a")  # wrong

# Stages

recipe = nd.Recipe(threshold=0.8, method=nd.MinHash(filter="altavista"))
assert_type(recipe, nd.Recipe)
shortest = nd.MinHash(k=20, s=7)
assert_type(shortest, nd.MinHash)
tokens = nd.stages.tokenize(["one two three"], recipe)
assert_type(tokens, nd.stages.Ragged)
shingles = nd.stages.shingle(tokens, recipe, backend="cpu")
signatures = shortest.sketch(shingles, seed=recipe.seed)
keys = shortest.keys(signatures, seed=recipe.seed)
candidates = shortest.collide(keys, seed=recipe.seed, present=np.ones(1, bool))
assert_type(candidates, nd.stages.Candidates)
assert_type(candidates.pairs, nd.stages.Pairs)
verified = nd.stages.verify(shingles, candidates.pairs, 0.8)
assert_type(verified, nd.stages.Verified)
nd.stages.keep(1, verified, recipe)
assert_type(nd.sketches.Clusters(recipe, threshold=0.5).add(signatures), nd.sketches.Joined)
near = nd.SimHash(radius=3)
near.collide(near.keys(near.sketch(tokens)))
near.sketch_weights(tokens, [1, 2, 3])
methods: list[nd.stages.Join | nd.stages.Sketch] = [nd.Exact(), shortest, near, nd.stages.METHODS["minhash"]()]
frequencies = nd.sketches.Frequencies.of(tokens, seed=recipe.seed)
assert_type(frequencies, nd.sketches.Frequencies)

shortest.sketch([[1, 2]])  # wrong
shortest.sketch(tokens, recipe)  # wrong
near.sketch(tokens, statistics=5)  # wrong
shortest.collide(keys, recipe)  # wrong
near.keys()  # wrong
nd.stages.verify(shingles, candidates, 0.8)  # wrong
nd.stages.verify(shingles, candidates.pairs)  # wrong
nd.stages.keep("1", verified, recipe)  # wrong
nd.stages.keep(1, verified.pairs, recipe)  # wrong
nd.Recipe(method="minhash", unit="line", within="source")
assert_type(recipe.within, tuple[str, ...])
nd.Recipe(method="minhsh")  # wrong
nd.Recipe(threshold="high")  # wrong
nd.Recipe(nd.Shingles(5))  # wrong
nd.SimHash(3)  # wrong
nd.Recipe(cluster="connected")  # wrong
nd.Shingles(kind="bags")  # wrong
nd.MinHash(weighting="idf")  # wrong
nd.MinHash(s="7")  # wrong
nd.Engine(threads="2")  # wrong
recipe.threshold = 0.9  # wrong
frequencies.num_documents.lower()  # wrong

# Containers

assert_type(nd.stages.Pairs.from_unsorted([3, 1], [2, 0]), nd.stages.Pairs)
assert_type(nd.stages.Ragged.from_rows([[1], [2, 3]], np.uint64), nd.stages.Ragged)
assert_type(len(tokens), int)

nd.stages.Ragged.from_rows([[1]])  # wrong
tokens["first"]  # wrong

# Fingerprints

words = np.array([7, 8, 2**63], np.uint64)
index = nd.hamming.HammingIndex(words, 1, ids=["a", "b", "c"])
nd.hamming.HammingIndex([7, 8], 1, compress=True, recipe=recipe)
ids, distances = index.query(5)
assert_type(ids.dtype, np.dtype[Any])
rows, _ = index.query(words, radius=1)
assert_type(rows, nd.stages.Ragged)
assert_type(index.nearest([5, 6], 3)[0], nd.stages.Ragged)
index.save(Path("i.index"), overwrite=True)
assert_type(nd.hamming.HammingIndex.load("i.index"), nd.hamming.HammingIndex)
assert_type(hamming.pairs(words, 3), nd.hamming.NearPairs)
assert_type(nd.hamming.join(words, words, 3), nd.hamming.Matches)
assert_type(nd.hamming.TableDesign(64, 3, 20).num_tables, int)

nd.hamming.HammingIndex(words)  # wrong
nd.hamming.HammingIndex("words", 1)  # wrong
index.query(words, radius="1")  # wrong
index.query(5)[0].offsets  # wrong
index.nearest(words)  # wrong
hamming.pairs(words, 3, design=3)  # wrong
hamming.join(words, None, 3)  # wrong
nd.hamming.TableDesign(64, 3)  # wrong

# Mathematics

assert_type(theory.pass_probability(0.9, 6, 14, 2), float)
assert_type(theory.pass_probability(np.array([0.9]), 6, 14, 2), np.ndarray)
assert_type(nd.theory.choose_filter(0.8), tuple[int, int, int])
papers.l1(np.array([0.5, 1.0]), 7, 8)
assert_type(theory.least_overlap(30, 33, 0.8), int)
assert_type(theory.prefix_lengths(1000, 0.8), theory.PrefixLengths)
assert_type(papers.prefix_cost(40, 0.8, [1, 3]).postings, float)
assert_type(papers.expected_accidents(10**9), float)

theory.pass_probability("0.9", 6, 14, 2)  # wrong
theory.choose_filter(0.8, samples=100)  # wrong
theory.pass_probability(0.9, np.array([6]), 14, 2)  # wrong
theory.prefix_lengths(1000)  # wrong

# Errors

try:
    nd.dedup("a")
except nd.errors.ParameterError as error:
    assert_type(error, nd.errors.ParameterError)
except (ArgumentTypeError, nd.errors.DamagedError, NeardupError):
    pass

nd.InputErrors  # wrong
