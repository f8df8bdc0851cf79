"""Every parameter of every public function, given what is none of its values: one line that names it, or the answer."""

import decimal
import inspect
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu import errors, hamming, papers, theory
from neardup_gpu.data import Pairs, Ragged
from neardup_gpu.hamming import HammingIndex, TableDesign
from neardup_gpu.printable import printable

TEXTS = ["one two three four five six", "one two three four five six", "seven eight nine ten eleven twelve"]
MASKED = np.ma.MaskedArray([1, 2], [True, False])

VALUES = {
    "None": None,
    "text": "abc",
    "empty text": "",
    "lines": "a\nb\x1b[31m",
    "bytes": b"abc",
    "True": True,
    "numpy bool": np.bool_(True),
    "3": 3,
    "numpy 3": np.int64(3),
    "-1": -1,
    "great": 2**70,
    "half": 0.5,
    "numpy half": np.float32(0.5),
    "nan": float("nan"),
    "infinite": float("inf"),
    "complex": 1j,
    "decimal": decimal.Decimal("0.5"),
    "no list": [],
    "list": [1],
    "tuple": ("abc", None),
    "set": {1},
    "dict": {"a": {1}},
    "object": object(),
    "Path": Path("nowhere"),
    "NUL": "a\0b",
    "array": np.array([1, 2]),
    "floats": np.array([0.5, 1.5]),
    "objects": np.array([object()]),
    "matrix": np.zeros((2, 2, 2)),
    "masked": MASKED,
    "iterator": iter([1]),
    "function": lambda *_: None,
    "table": pa.table({"a": [[1]]}),
}

# What may be right, by the kind of a parameter. Everything else has to be refused by its name.
MAY_FIT = {
    "flag": {"True", "numpy bool"},
    "integer": {"3", "numpy 3"},
    "count": {"3", "numpy 3", "great"},
    "number": {"3", "numpy 3", "half", "numpy half", "infinite", "great"},
    "fraction": {"half", "numpy half"},
    "weights": {"3", "numpy 3", "half", "numpy half", "infinite", "great", "array", "floats", "matrix"},
    "sizes": {"3", "numpy 3", "array"},
    "fractions": {"half", "numpy half", "matrix"},
    "size": {"3", "numpy 3", "half", "numpy half"},
    "bytes": {"3", "numpy 3", "half", "numpy half", "great"},
    "bound": {"great"},
    "path": {"text", "lines", "Path"},
    "paths": {"text", "lines", "Path"},
    "name": {"text", "lines", "empty text", "NUL"},
    "utf8": {"text", "lines", "empty text", "NUL", "bytes"},
    "columns": {"text", "lines", "empty text", "NUL", "no list"},
    "names": {"text", "lines", "empty text", "NUL"},
    "choice": set(),
    "filter": set(),
    "own": set(),
    "array": {"no list"},
    "rows": {"list", "array", "no list"},
    "values": {"list", "array", "floats", "objects", "no list", "tuple"},
    "lists": {"no list"},
    "texts": {"no list", "tuple"},
    "progress": {"function", "True"},
    "function": {"function"},
    "words": {"3", "numpy 3", "list", "no list"},
    "ids": {"list", "no list", "array"},
    "chunks": {"no list", "list", "tuple", "set", "iterator", "dict"},
    "source": {"text", "lines", "Path", "table"},
    "json": {"dict"},
    "stored": set(),
    "numbers": {"no list", "list", "array", "set", "iterator"},
    "dtype": set(),
    "any": set(VALUES),
}


def kinds(words):
    """{"a": "flag"} of "a:flag"; a question mark after the kind adds None."""
    return dict(word.split(":") for word in words.split())


COLUMNS = "id_column:name? text_columns:names?"
RUN = "engine:choice progress:progress?"
RECIPE = "recipe:own? method:choice threshold:fraction?"
HOW = "design:own? bucket_limit:count bucket_probe:count backend:choice?"
GROUPS = "shared_groups:count? bucket_limit:count bucket_probe:count"
ANY_TASKS = "seed:count present:array? tasks:any backend:choice?"
KSR = "k:count s:count r:count"


class World:
    """Valid arguments for everything, in a folder of their own."""

    def __init__(self, folder):
        self.table = folder / "d.parquet"
        pq.write_table(pa.table({"id": ["a", "b", "c"], "text": TEXTS, "date": [3, 1, 2]}), self.table)
        self.recipe, self.simhashes = nd.Recipe(method="minhash"), nd.SimHash()
        self.result, self.documents = nd.dedup(self.table, id_column="id"), nd.open_documents(self.table)
        self.tokens = nd.stages.tokenize(TEXTS, self.recipe)
        self.shingles = nd.stages.shingle(self.tokens, self.recipe)
        self.minhash = self.recipe.method
        self.signatures = self.minhash.sketch(self.shingles)
        self.bottomk, self.modm = nd.BottomK(leading=3), nd.ModM(leading=3)
        self.smallest, self.small = self.bottomk.sketch(self.shingles), self.modm.sketch(self.shingles)
        self.features = self.minhash.keys(self.signatures)
        self.pairs = self.minhash.collide(self.features).pairs
        self.verified = nd.stages.verify(self.shingles, self.pairs, 0.8)
        self.frequencies = nd.sketches.Frequencies.of(self.tokens)
        self.frequencies.save(folder / "f.parquet")
        self.words = np.array([1, 3, 2**63], np.uint64)
        self.index = HammingIndex(self.words, 1)
        self.index.save(folder / "i.index")
        nd.sketches.sketch(self.table, folder / "s.parquet", id_column="id")
        nd.sketches.sketch(self.table, folder / "b.parquet", id_column="id", method="bottomk")
        np.save(folder / "w.npy", self.words)
        self.folder, self.stored = folder, self.recipe.to_json()

    def entrances(self):
        """(name, function, valid arguments, kinds of all parameters)."""
        recipe, ksr = {"recipe": self.recipe}, {"k": 6, "s": 14, "r": 2}
        index = {"fingerprints": self.words, "radius": 1}
        near = {**index, "design": TableDesign(64, 1, 20)}
        yield (
            "dedup",
            nd.dedup,
            {"source": self.table, "id_column": "id"},
            f"source:source against:source? {COLUMNS} {RECIPE} keep:name output:path? {RUN} memory:bound? "
            "reading:own? writing:own? workers:own?",
        )
        yield (
            "audit",
            nd.audit,
            {"source": self.table, "kept": {"id": ["a", "c"]}, "id_column": "id"},
            "source:source kept:source removed:source? clusters:source? pairs:source? output:path? "
            "recipe:own? rest:any",
        )
        yield (
            "contaminated",
            nd.contaminated,
            {"source": self.table, "evals": {"set": {"question": ["one of the questions that is asked"]}}},
            f"source:source evals:source {COLUMNS} fields:columns? tokens:choice length:integer? within:columns "
            f"against:source? share:fraction action:choice output:path? {RUN} reading:own? writing:own? workers:own?",
        )
        yield (
            "substrings",
            nd.substrings,
            {"source": self.table},
            f"source:source {COLUMNS} against:source? output:path? {RUN} memory:bound? reading:own? writing:own? "
            "workers:own? settings:any",
        )
        yield (
            "passages",
            nd.passages,
            {"source": self.table},
            f"source:source other:source? {COLUMNS} output:path? {RUN} memory:bound? reading:own? writing:own? "
            "workers:own? settings:any",
        )
        yield (
            "Reading",
            nd.Reading,
            {},
            f"{COLUMNS} html:flag encoding:choice? glob:name? on_error:choice on_duplicate_id:choice "
            "max_document_bytes:count null_values:columns? input_format:choice? delimiter:choice? header:flag",
        )
        yield "Reference", nd.Reference, {"source": self.table}, "source:any name:name? reading:own?"
        yield "Identical", nd.Identical, {}, "key:columns?"
        yield (
            "Writing",
            nd.Writing,
            {},
            "output_format:choice? shard_bytes:bytes? ids_only:flag overwrite:flag report:flag check:count? "
            "counts:flag shared:flag by:name?",
        )
        yield (
            "Workers",
            nd.Workers,
            {},
            "work_dir:path? runner:choice number:count? ray_address:choice? slice_bytes:bytes? partitions:integer? "
            "task_memory:bound spool:flag? keep_work:flag",
        )
        yield (
            "sketch",
            nd.sketches.sketch,
            {"source": self.table, "output": "out.parquet", "id_column": "id", "overwrite": True},
            f"source:source output:path {COLUMNS} method:choice overwrite:flag {RUN} reading:own? recipe:own? "
            "shard_bytes:bytes? workers:own?",
        )
        one = {"text": "To be, or not to be", "recipe": self.recipe}
        yield "sketch_text", nd.sketches.sketch_text, one, "text:utf8 recipe:own html:flag frequencies:own?"
        yield (
            "pairs",
            nd.sketches.pairs,
            {"sketches": self.folder / "s.parquet"},
            f"sketches:paths output:path? threshold:fraction? containment:fraction? r:count? overwrite:flag {RUN}",
        )
        yield (
            "clusters",
            nd.sketches.clusters,
            {"sketches": self.folder / "b.parquet"},
            "sketches:paths output:path? threshold:fraction? representative:choice overwrite:flag progress:progress?",
        )
        bottomk = nd.Recipe(method="bottomk")
        settings = "recipe:own threshold:fraction? representative:choice"
        yield "Clusters", nd.sketches.Clusters, {"recipe": bottomk}, settings
        yield (
            "Clusters.add",
            nd.sketches.Clusters(bottomk).add,
            {"sketches": np.zeros((0, 200), np.uint64)},
            "sketches:array",
        )
        yield (
            "open_documents",
            nd.open_documents,
            {"source": self.table},
            f"source:source {COLUMNS} other_columns:columns reading:own?",
        )
        documents = self.documents
        yield "Documents.batches", documents.batches, {}, "columns:columns max_bytes:count"
        yield "Documents.texts", documents.texts, {"rows": [0]}, "rows:numbers"
        kept = {"folder": "kept", "keep": [True, False, True]}
        yield "Documents.write_kept", documents.write_kept, kept, "folder:path keep:array progress:function?"
        yield "Result.explain", self.result.explain, {"id": "a"}, "id:source full:flag"
        yield "Result.by", self.result.by, {"column": "id"}, "column:name"
        page = "text:flag by:name? overwrite:flag"
        of_page = {"path": "page.html", "overwrite": True}
        yield "Result.write_report", self.result.write_report, of_page, f"path:path {page}"
        stored = {"text": self.stored}
        yield "Recipe.from_json", nd.Recipe.from_json, stored, "text:stored name:any"
        meets = {"other": self.recipe, "name": "a file"}
        yield "Recipe.check_sketches", self.recipe.check_sketches, meets, "other:own name:any"
        yield (
            "tokenize",
            nd.stages.tokenize,
            {"documents": TEXTS, **recipe},
            "documents:texts recipe:own backend:choice?",
        )
        yield "shingle", nd.stages.shingle, {"tokens": self.tokens, **recipe}, "tokens:own recipe:own backend:choice?"
        yield (
            "MinHash.sketch",
            self.minhash.sketch,
            {"elements": self.shingles},
            "elements:own seed:count statistics:any backend:choice?",
        )
        weighted = {"features": Ragged.from_rows([[1, 2, 3]], np.uint64), "weights": [1, 2, 3]}
        yield (
            "MinHash.sketch_weights",
            self.minhash.sketch_weights,
            weighted,
            "features:own weights:array seed:count backend:choice?",
        )
        yield (
            "SimHash.sketch_weights",
            self.simhashes.sketch_weights,
            weighted,
            "features:own weights:array seed:count backend:choice?",
        )
        yield (
            "MinHash.keys",
            self.minhash.keys,
            {"sketches": self.signatures},
            "sketches:array seed:count backend:choice?",
        )
        collide = "seed:count present:array? tasks:own? backend:choice?"
        yield "MinHash.collide", self.minhash.collide, {"keys": self.features}, f"keys:array {collide}"
        of_rows = "elements:own seed:count statistics:any backend:choice?"
        leading = "seed:count backend:any"
        yield "BottomK", nd.BottomK, {}, f"s:count leading:count? recall:fraction? candidates:choice {GROUPS}"
        yield "BottomK.sketch", self.bottomk.sketch, {"elements": self.shingles}, of_rows
        yield "BottomK.keys", self.bottomk.keys, {"sketches": self.smallest}, f"sketches:array {leading}"
        yield "BottomK.collide", self.bottomk.collide, {"keys": self.smallest[:, :3]}, f"keys:array {ANY_TASKS}"
        yield "BottomK.union_sizes", self.bottomk.union_sizes, {"sketches": self.smallest}, "sketches:array"
        yield (
            "ModM",
            nd.ModM,
            {},
            "m:count? adaptive:flag s:count? leading:count? recall:fraction? bucket_limit:count bucket_probe:count",
        )
        yield "ModM.sketch", self.modm.sketch, {"elements": self.shingles}, of_rows
        yield "ModM.keys", self.modm.keys, {"sketches": self.small}, f"sketches:own {leading}"
        yield "ModM.collide", self.modm.collide, {"keys": self.smallest[:, :3]}, f"keys:array {ANY_TASKS}"
        merged = {"sketches": [self.signatures, self.signatures], **recipe}
        yield "merge", nd.sketches.merge, merged, "sketches:own recipe:own"
        yield (
            "SimHash.sketch",
            self.simhashes.sketch,
            {"elements": self.tokens},
            "elements:own seed:count statistics:own? backend:choice?",
        )
        yield (
            "SimHash.collide",
            self.simhashes.collide,
            {"keys": self.words},
            f"keys:rows {collide}".replace("own", "any"),
        )
        yield (
            "verify",
            nd.stages.verify,
            {"shingles": self.shingles, "candidates": self.pairs, "threshold": 0.8},
            "shingles:own candidates:own threshold:fraction backend:choice?",
        )
        yield (
            "stages.join",
            nd.stages.join,
            {"shingles": self.shingles, "threshold": 0.8},
            "shingles:own threshold:fraction measure:choice backend:choice?",
        )
        yield (
            "keep",
            nd.stages.keep,
            {"num_documents": 3, "verified": self.verified, **recipe},
            "num_documents:count verified:own recipe:own pinned:array? backend:choice?",
        )
        yield (
            "suppress",
            nd.papers.suppress,
            {"features": self.features, **recipe},
            "features:array recipe:own present:array?",
        )
        yield (
            "compare",
            nd.compare,
            {"a": "one text", "b": "another"},
            "a:utf8 b:utf8 shingles:own? full:flag",
        )
        yield "Ragged", Ragged, {"values": [1, 2], "offsets": [0, 2]}, "values:values offsets:rows"
        yield "Ragged.from_rows", Ragged.from_rows, {"rows": [[1]], "dtype": np.uint64}, "rows:lists dtype:dtype"
        yield "Pairs", Pairs, {"left": [0], "right": [5]}, "left:rows right:rows"
        yield "Pairs.from_unsorted", Pairs.from_unsorted, {"left": [0], "right": [5]}, "left:rows right:rows"
        yield "Pairs.where", Pairs([0], [1]).where, {"mask": [True]}, "mask:array"
        yield (
            "Recipe",
            nd.Recipe,
            {},
            "shingles:own method:choice threshold:fraction? keep:name cluster:choice max_partners:count? seed:count "
            "only_against:flag unit:choice within:columns length_ratio:fraction? ignore_common:size? ignored:name? "
            "empty:choice",
        )
        yield (
            "Shingles",
            nd.Shingles,
            {},
            "size:count? kind:choice stop_words:path? tokens:function language:choice? drop_words:path? fold:choice? "
            "stem:choice?",
        )
        limits = "bucket_limit:count bucket_probe:count"
        yield (
            "MinHash",
            nd.MinHash,
            {},
            "filter:filter? k:any s:any r:any recall:fraction? bits:count? supershingle_bits:count? "
            "sampler:choice sample_bits:count? candidates:choice weighting:choice frequencies:choice? "
            f"{limits}",
        )
        yield (
            "SimHash",
            nd.SimHash,
            {},
            f"radius:integer bits:count elements:choice weighting:choice frequencies:choice? {limits}",
        )
        yield (
            "Engine",
            nd.Engine,
            {},
            "backend:choice? device:count? gpu_memory:bytes? threads:count? temp_dir:path? batch_bytes:count? "
            "max_comparisons:count?",
        )
        yield (
            "Frequencies",
            nd.sketches.Frequencies,
            {"tokens": [1, 7], "counts": [1, 2], "num_documents": 5, "seed": 1},
            "tokens:words counts:rows num_documents:count seed:count elements:name",
        )
        yield (
            "Frequencies.of",
            nd.sketches.Frequencies.of,
            {"tokens": self.tokens},
            "tokens:own seed:count elements:name backend:choice?",
        )
        yield "Frequencies.weigh", self.frequencies.weigh, {"tokens": [1]}, "tokens:words backend:choice?"
        yield "Frequencies.save", self.frequencies.save, {"path": "f", "overwrite": True}, "path:path overwrite:flag"
        yield "Frequencies.load", nd.sketches.Frequencies.load, {"path": self.folder / "f.parquet"}, "path:path"
        yield from self.of_hamming(index, near)
        yield from self.of_theory(ksr)

    def of_hamming(self, index, near):
        search = "fingerprints:words radius:integer"
        yield (
            "HammingIndex",
            HammingIndex,
            index,
            f"{search} ids:ids? design:own? num_queries:count? compress:flag recipe:json? backend:choice?",
        )
        asked = {"fingerprints": self.words}
        yield "HammingIndex.query", self.index.query, asked, "fingerprints:words radius:integer?"
        yield "HammingIndex.nearest", self.index.nearest, {**asked, "count": 1}, "fingerprints:words count:count"
        yield "HammingIndex.parts", self.index.parts, asked, "fingerprints:words radius:integer? count:count?"
        yield "HammingIndex.save", self.index.save, {"path": "i", "overwrite": True}, "path:path overwrite:flag"
        loaded = inspect.signature(HammingIndex.load).parameters
        check = "check:flag" if "check" in loaded else ""
        path = {"path": self.folder / "i.index"}
        yield "HammingIndex.load", HammingIndex.load, path, f"path:path recipe:json? backend:choice? {check}"
        yield "hamming.pairs", hamming.pairs, near, f"{search} {HOW} collapse:flag"
        scanned = {"chunks": [self.words], "queries": self.words, "radius": 1}
        yield "scan", hamming.scan, scanned, f"chunks:chunks queries:words radius:integer {HOW}"
        yield "join", hamming.join, {**near, "queries": self.words}, f"{search} queries:words {HOW}"
        yield "read_chunks", hamming.read_chunks, {"path": self.folder / "w.npy"}, "path:path chunk_bytes:count"
        yield "blocks", hamming.blocks, {"bits": 64, "number": 3}, "bits:count number:count"
        sizes = {"bits": 64, "radius": 3, "prefix": 20}
        yield "num_tables", hamming.num_tables, sizes, "bits:count radius:integer prefix:integer"
        yield "TableDesign", TableDesign, sizes, "bits:count radius:integer prefix:integer"
        yield (
            "cost",
            hamming.cost,
            {"design": TableDesign(64, 3, 20), "num_fingerprints": 10, "num_queries": 3},
            "design:own num_fingerprints:number num_queries:number probe:number",
        )
        yield (
            "choose",
            hamming.choose,
            {"num_fingerprints": 1000, "radius": 3, "num_queries": 10},
            "num_fingerprints:count radius:integer num_queries:number bits:count probe:number memory:number "
            "bucket_limit:number all_with_all:count",
        )

    def of_theory(self, ksr):
        at = {"threshold": 0.8, **ksr}
        of_weights = {"resemblance": 0.5, "a": 7, "b": 8}
        yield "l1", papers.l1, of_weights, "resemblance:fractions a:weights b:weights"
        yield "parse_filter", theory.parse_filter, {"text": "6,14,2"}, "text:filter"
        yield "check_filter", theory.check_filter, ksr, KSR
        yield "pass_probability", theory.pass_probability, {"x": 0.8, **ksr}, f"x:fractions {KSR} bits:count?"
        yield "miss_probability", theory.miss_probability, {"x": 0.8, **ksr}, f"x:fractions {KSR} bits:count?"
        yield "inverse", theory.inverse, {"probability": 0.8, **ksr}, f"probability:fractions {KSR}"
        yield "half_point", theory.half_point, ksr, KSR
        yield "half_s", papers.half_s, {"threshold": 0.8, "k": 6, "r": 2}, "threshold:fraction k:count r:count"
        yield "slope_s", papers.slope_s, {"threshold": 0.8}, "threshold:fraction"
        yield "slope_threshold", papers.slope_threshold, {"s": 3}, "s:count"
        yield "error_areas", papers.error_areas, at, f"threshold:fraction {KSR}"
        yield "false_candidates", theory.false_candidates, at, f"threshold:fraction {KSR}"
        yield "filter_cost", theory.filter_cost, at, f"threshold:fraction {KSR}"
        chosen = {"threshold": 0.8}
        yield "choose_filter", theory.choose_filter, chosen, "threshold:fraction recall:fraction max_samples:count"
        yield "expected_collisions", papers.expected_collisions, {"size": 3, "bits": 32}, "size:count bits:count"
        yield "collision_error", papers.collision_error, {"union_size": 3, "bits": 32}, "union_size:weights bits:count"
        of = {"samples": 100, "resemblance": 0.8}
        yield "standard_error", papers.standard_error, of, "resemblance:fractions samples:count"
        kept = {"resemblance": 0.8, "bits": 1}
        yield "bbit_share", theory.bbit_share, kept, "resemblance:fractions bits:count"
        yield "bbit_resemblance", theory.bbit_resemblance, {"share": 0.8, "bits": 1}, "share:fractions bits:count"
        yield "bbit_error", papers.bbit_error, {**kept, "samples": 9}, "resemblance:fractions samples:count bits:count"
        yield "choose_segments", theory.choose_segments, {"threshold": 0.8}, "threshold:fraction recall:fraction"
        within = "samples:count resemblance:fractions error:fractions"
        yield "within_probability", papers.within_probability, {**of, "error": 0.1}, within
        exceed = "samples:count resemblance:fractions estimate:fractions"
        yield "exceed_probability", papers.exceed_probability, {**of, "estimate": 0.1}, exceed
        yield "sample_variance", papers.sample_variance, of, "resemblance:fractions samples:count"
        bottomk = {"resemblance": 0.8, "s": 50, "union_size": 100}
        yield "bottomk_variance", papers.bottomk_variance, bottomk, "resemblance:fractions s:count union_size:count"
        modm = {"share": 0.8, "modulus": 16, "size": 100}
        yield "modm_variance", papers.modm_variance, modm, "share:fractions modulus:count size:count"
        bbit = "resemblance:fractions samples:count bits:count"
        yield "bbit_variance", papers.bbit_variance, {**of, "bits": 2}, bbit
        wanted = "error:fraction failure:fraction resemblance:fraction?"
        yield "samples_for", papers.samples_for, {"error": 0.1}, wanted
        yield "expected_insertions", papers.expected_insertions, {"size": 30, "s": 5}, "size:count s:count"
        yield "fingerprint_bits", papers.fingerprint_bits, {"documents": 30}, "documents:count"
        accidental = "documents:count k:count r:count bits:count"
        yield "accidental_pairs", theory.accidental_pairs, {"documents": 30, "k": 6, "r": 2}, accidental
        yield "rabin_bound", papers.rabin_bound, {"num_bits": 400, "bits": 40}, "num_bits:count bits:count"
        yield "hoeffding", papers.hoeffding, {"trials": 10}, "trials:count failure:fraction"
        interval = {"mean": 0.5, "trials": 10, "failure": 0.01}
        yield "mean_interval", theory.mean_interval, interval, "mean:fractions trials:count failure:fraction"
        sizes = {"size_a": 30, "size_b": 33, "threshold": 0.8}
        yield "least_overlap", theory.least_overlap, sizes, "size_a:integer size_b:integer threshold:fraction"
        one = {"size": 30, "threshold": 0.8}
        yield "prefix_lengths", theory.prefix_lengths, one, "size:integer threshold:fraction"
        cost = {**one, "counts": [1, 3]}
        yield "prefix_cost", papers.prefix_cost, cost, "size:integer threshold:fraction counts:rows"
        of = {"resemblance": 0.6, "size": 20, "other": 28}
        words = "resemblance:fractions size:sizes other:weights"
        yield "containment_from_resemblance", papers.containment_from_resemblance, of, words
        accidents = "num_shingles:integer shingle_size:integer word_bytes:integer"
        yield "expected_accidents", papers.expected_accidents, {"num_shingles": 10**9}, accidents


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("world"))


ATTRIBUTES = (
    *(
        "table",
        "recipe",
        "simhashes",
        "minhash",
        "tokens",
        "shingles",
        "signatures",
        "bottomk",
        "modm",
        "smallest",
        "small",
        "features",
        "pairs",
        "verified",
        "words",
    ),
    *("folder", "frequencies", "index", "result", "documents", "stored"),
)


def all_parameters():
    """(function, parameter) of every entrance; names only, as arguments are made where tests run."""
    made = World.__new__(World)
    anything = type("Any", (), dict.fromkeys(("__truediv__", "__getattr__", "__getitem__"), lambda *_: None))()
    made.__dict__ |= dict.fromkeys(ATTRIBUTES, anything)
    return [(name, each) for name, _, _, words in made.entrances() for each in kinds(words)]


def outcome(function, arguments):
    """What is given back, generators emptied; or the message, which is one line whatever went wrong.

    With a message comes what the error's fields say it is about: a parameter, or a file.
    """
    try:
        found = function(**arguments)
        return list(found) if inspect.isgenerator(found) else found, None
    except errors.NeardupError as error:
        message = str(error)
        assert message and message.isprintable() and len(message) < 400, message
        assert error.path is None or printable(error.path) in message, (message, error.path)
        return error.parameter or error.path, message


ALSO_NAMED = {
    "chunks": ["a chunk"],
    "prefix": ["leading bits"],
    "text": ["filter", "recipe"],
    "other": ["recipe"],
    "dtype": ["rows[0]"],
    "statistics": ["frequencies"],
    "size": ["shingle_size"],
    "kind": ["shingling"],
}


@pytest.fixture(scope="module")
def entrances(world):
    """{name: (function, valid arguments, kinds of all parameters)}."""
    return {name: found for name, *found in world.entrances()}


@pytest.mark.parametrize("entrance", dict(all_parameters()))
def test_valid_arguments_are_taken(entrances, entrance, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, arguments, _ = entrances[entrance]
    assert outcome(function, arguments)[1] is None


@pytest.mark.parametrize(("entrance", "parameter"), all_parameters(), ids=lambda value: value)
def test_whatever_a_parameter_is_given(entrances, entrance, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, arguments, words = entrances[entrance]
    kind = kinds(words)[parameter]
    fits = MAY_FIT[kind.removesuffix("?")] | ({"None"} if kind.endswith("?") else set())
    if parameter == "rest":
        return
    for label, value in VALUES.items():
        if isinstance(value, type(iter([]))):
            value = iter([1])
        found, message = outcome(function, {**arguments, parameter: value})
        if label not in fits:
            assert message is not None, f"{label} passed as {parameter}: {found!r}"
            assert found is not None, f"{label} passed as {parameter}: the error of {message!r} has no fields"
            named = {parameter, parameter.replace("_", " "), parameter.rstrip("s"), *ALSO_NAMED.get(parameter, ())}
            assert kind.startswith("source") or any(name in message for name in named), f"{label}: {message}"


def test_every_public_function_and_parameter_is_tried(world):
    names = [name for name, *_ in world.entrances()]
    assert len(set(names)) == len(names), "two entrances share a name, so that only the first would be tried"
    tried = {function: name for name, function, *_ in world.entrances()}
    for name, function, _, words in world.entrances():
        assert set(kinds(words)) == set(inspect.signature(function).parameters), name
    modules = (nd, nd.sketches, nd.stages, theory, hamming, papers)
    public = [getattr(module, name) for module in modules for name in module.__all__]
    missed = {each.__name__ for each in public if inspect.isfunction(each) and each not in tried}
    assert missed <= {"choose_filter"}
