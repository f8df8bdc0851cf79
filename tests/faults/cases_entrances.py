"""Arguments of public functions that are none, and odd ones that are right."""

from .judge import case

MADE_UP = """
from neardup_gpu.stages import Verified
recipe, near = nd.Recipe(method='minhash'), nd.Recipe(method=nd.SimHash())
minima, bits = recipe.method, near.method
tokens = shingles = nd.stages.Ragged(np.array([1, 2, 3, 1, 2, 9], np.uint64), np.array([0, 3, 5, 6]))
signatures, features = np.zeros((3, 140), np.uint32), np.arange(60, dtype=np.uint64).reshape(3, 20)
pairs = nd.stages.Pairs(np.array([0]), np.array([1]))
verified = Verified(pairs, np.ones(1))
"""

COMPUTED = """
recipe, near = nd.Recipe(method='minhash'), nd.Recipe(method=nd.SimHash())
minima = recipe.method
words = "amend the title of the united states code to improve the care of veterans".split()
texts = [" ".join(words), " ".join(words + ["now"]), " ".join(words[::-1])]
tokens = nd.stages.tokenize(texts, recipe)
shingles = nd.stages.shingle(tokens, recipe)
signatures = minima.sketch(shingles)
features = minima.keys(signatures)
verified = nd.stages.verify(shingles, nd.stages.Pairs(np.array([0]), np.array([1])), 0.5)
"""


def refuses(statements, *says, documents=False, before=MADE_UP, **options):
    """A case of statements of which the last one is refused."""

    def make(function):
        def prepared(box):
            if documents:
                box.documents("d.jsonl")
            return f"{before}\n{statements}\nraise SystemExit('went through')"

        prepared.__name__, prepared.__module__ = function.__name__, function.__module__
        case(says=says, **options)(prepared)
        return function

    return make


def allows(statements, **options):
    """A case of statements that hold, of what the stages make of texts."""
    said = "as it should be"
    return refuses(f"{statements}\nprint({said!r})\nraise SystemExit(0)", said, status=0, before=COMPUTED, **options)


# --------------------------------------------------------------------------------------------- the recipe of a stage


@refuses("nd.MinHash().sketch(shingles)", "filter: none is chosen yet", "give k and s")
def minima_by_a_method_without_a_filter(): ...


@refuses("nd.Recipe(method=nd.SimHash)", "method")
def a_class_as_a_method(): ...


@refuses("nd.Recipe(method='minhash', shingles=5)", "shingles: 5; give a Shingles")
def a_number_as_shingles(): ...


@refuses("minima.keys(signatures[:, :35].copy())", "sketches: uint32 of shape (3, 35)", "(rows, 140)")
def signatures_of_fewer_samples_than_the_recipe(): ...


@refuses("minima.keys(signatures.astype(np.uint64))", "sketches: uint64", "uint32")
def signatures_of_more_bits_than_the_recipe(): ...


@refuses("minima.collide(features[:, :5].copy())", "keys: uint64 of shape (3, 5)", "(rows, 20)")
def features_of_fewer_groups_than_the_recipe(): ...


@refuses("bits.collide(bits.with_(bits=128).sketch(tokens))", "keys: uint64 of shape (3, 2)", "(rows,)")
def simhashes_of_more_bits_than_the_recipe(): ...


@refuses("nd.stages.shingle(tokens, recipe.describe())", "recipe: a dict; give a Recipe")
def a_recipe_as_a_report_shows_it(): ...


@refuses(
    "import pandas as pd\nnd.dedup('d.jsonl', recipe=pd.DataFrame({'a': [1, 2]}))",
    "recipe: a DataFrame",
    documents=True,
)
def what_prints_as_several_lines_as_recipe(): ...


# ------------------------------------------------------------------------------------------------- rows beyond the end


@refuses(
    "nd.stages.keep(3, Verified(nd.stages.Pairs([0], [10**6]), np.ones(1)), recipe)",
    "row 1,000,000",
    "3 rows",
)
def decisions_about_a_row_far_beyond_the_end(): ...


@refuses("nd.stages.keep(1, verified, recipe.with_(cluster='components'))", "verified.pairs", "row 1", "1 rows")
def components_of_fewer_documents_than_pairs_name(): ...


@refuses("nd.stages.verify(shingles, nd.stages.Pairs([0], [99]), 0.8)", "candidates: a pair names row 99")
def candidates_that_name_a_row_beyond_the_end(): ...


@refuses("nd.stages.keep(3, verified, recipe, pinned=np.ones(1, bool))", "pinned: bool of shape (1,)", "(3,)")
def fewer_pinned_than_documents(): ...


@refuses("nd.stages.keep(3, verified, recipe, pinned=[0, 1, 2])", "pinned: int64", "bool")
def pinned_documents_by_their_numbers(): ...


@refuses("minima.collide(features, present=np.ones(2, bool))", "present: bool of shape (2,)", "(3,)")
def fewer_present_than_documents(): ...


@refuses("bits.collide(np.arange(3, dtype=np.uint64), present=np.ones(9, bool))", "present: bool of shape (9,)")
def more_present_than_simhashes(): ...


@refuses("pairs.where(np.zeros(3, bool))", "mask: bool of shape (3,)")
def a_mask_of_other_pairs(): ...


@refuses("nd.stages.keep(-1, verified, recipe)", "num_documents must be between 0 and 2**32 - 2, got -1")
def fewer_documents_than_none(): ...


@refuses("nd.stages.keep(2**32, verified, recipe)", "num_documents must be between 0 and 2**32 - 2, got 4294967296")
def more_documents_than_rows_can_be_counted(): ...


# ------------------------------------------------------------------------------------------- numbers that are none


@refuses("nd.stages.verify(shingles, pairs, float('nan'))", "threshold must be between 0 and 1, got nan")
def a_threshold_that_nothing_passes(): ...


@refuses(
    "nd.stages.keep(3, Verified(pairs, np.array([np.nan])), recipe)",
    "verified.resemblance[0] must be between 0 and 1, got nan",
)
def a_resemblance_that_is_no_number(): ...


@refuses("nd.stages.keep(3, Verified(pairs, np.ones(7)), recipe)", "verified.resemblance: float64 of shape (7,)")
def more_resemblances_than_pairs(): ...


@refuses("nd.stages.keep(3, pairs, recipe)", "verified: a Pairs; give a Verified")
def pairs_that_were_not_verified(): ...


@refuses("nd.hamming.HammingIndex([1, 2], 10**5000)", "radius must be between 0 and 63, got an integer of 16,610 bits")
def an_integer_too_long_to_be_printed(): ...


@refuses("nd.dedup('d.jsonl', engine=nd.Engine(gpu_memory='9' * 400))", "memory", "is not a size", documents=True)
def more_memory_than_a_float_can_hold(): ...


@refuses("nd.dedup('d.jsonl', engine=nd.Engine(batch_bytes=0))", "batch_bytes must be >= 1, got 0", documents=True)
def batches_without_text(): ...


@refuses(
    "nd.dedup('d.jsonl', engine=nd.Engine(threads=1.0))", "threads must be a whole number, got 1.0", documents=True
)
def a_thread_and_a_bit(): ...


# ------------------------------------------------------------------------------------------ arrays of another make


@refuses(
    "nd.stages.shingle(nd.stages.Ragged(tokens.values.astype(np.int64), tokens.offsets), recipe)",
    "tokens: a Ragged of int64",
)
def fingerprints_that_are_signed(): ...


@refuses("nd.stages.Ragged.from_rows([[1], [-1]], np.uint64)", "rows[1]: int64 of shape (1,)", "uint64")
def a_negative_number_as_a_fingerprint(): ...


@refuses("nd.stages.Ragged.from_rows([[1.5]], np.uint64)", "rows[0]: float64")
def a_fraction_as_a_fingerprint(): ...


@refuses("nd.stages.Ragged(np.arange(4), [0, 3, 2])", "Ragged offsets must not decrease")
def rows_that_end_before_they_begin(): ...


@refuses("nd.stages.Ragged(np.arange(4), np.array([0, 2**63], np.uint64))", "Ragged offsets: uint64")
def offsets_beyond_64_bits(): ...


@refuses("nd.stages.Pairs([0, 0], [1, 1])", "sorted and unique; Pairs.from_unsorted does both")
def a_pair_twice(): ...


@refuses("nd.stages.Pairs.from_unsorted([0, 1], [1])", "2 and 1")
def a_pair_without_its_other_half(): ...


@refuses("minima.keys(np.ma.masked_equal(signatures, 0))", "sketches: a masked array")
def signatures_of_which_some_are_masked(): ...


@refuses("nd.hamming.HammingIndex(np.array([1.0, 2.0]), 1)", "fingerprints: float64 of shape (2,)")
def fingerprints_that_became_floats(): ...


@refuses("nd.hamming.HammingIndex([1, 2], 1, ids={'a', 'b'})", "ids")
def ids_without_an_order(): ...


@refuses("nd.hamming.HammingIndex([1, 2], 1).query(True)", "fingerprint must be a whole number, got True")
def a_truth_as_a_fingerprint(): ...


@refuses(
    "nd.hamming.scan(np.arange(9, dtype=np.uint64), [1], 1)",
    "chunks must be a list or a generator of arrays",
    "got an ndarray",
)
def an_array_where_several_are_expected(): ...


@refuses("nd.sketches.Frequencies([7, 3], [1, 1], 2, 1)", "tokens: not ascending")
def frequencies_out_of_order(): ...


@refuses("nd.sketches.Frequencies([3, 7], [1, 5], 2, 1)", "counts[1] must be between 1 and 2, got 5")
def a_token_in_more_documents_than_there_are(): ...


# ----------------------------------------------------------------------------------------------- words and switches


@refuses("nd.stages.tokenize([1, 2], recipe)", "documents: 1 is not a text")
def numbers_as_texts(): ...


@refuses(
    "nd.stages.tokenize(['ab', 'c\\ud800d'], recipe)", "documents", "is not Unicode text; give such texts as bytes"
)
def half_a_character(): ...


@refuses("nd.stages.tokenize(b'one text', recipe)", "documents: b'one text'; give a list of str")
def bytes_of_one_text(): ...


@case(says="overwrite: 'no'; give True or False")
def a_no_that_python_takes_for_yes(box):
    box.result("out")
    return "nd.dedup('d.jsonl', output='out', writing=nd.Writing(overwrite='no'))"


@refuses(
    "nd.open_documents('d.jsonl', reading=nd.Reading(html='no'))",
    "html: 'no'; give True, False or 'tree'",
    documents=True,
)
def another_no_that_python_takes_for_yes(): ...


@refuses("nd.dedup('d.jsonl', threshold='0.8')", "threshold must be a number, got '0.8'", documents=True)
def a_threshold_in_quotes(): ...


@refuses("nd.dedup('d.jsonl', text_columns={'text'})", "text_columns: a set", documents=True)
def columns_without_an_order(): ...


@refuses("nd.dedup('d.jsonl', output=b'out')", "output: b'out' is not a path", documents=True)
def an_output_in_bytes(): ...


@refuses("nd.dedup('d.jsonl', recipe=recipe, threshold=np.array([0.8, 0.9]))", "recipe and threshold", documents=True)
def an_array_as_a_threshold_beside_a_recipe(): ...


@refuses(
    "nd.dedup('d.jsonl', engine=nd.Engine(backend=[]))",
    "backend a list is not one of reference, cpu, gpu",
    documents=True,
)
def nothing_in_a_list_as_a_backend(): ...


@refuses(
    "nd.dedup('d.jsonl', progress='yes')", "progress: str given; pass True for bars, or a function", documents=True
)
def a_progress_that_cannot_be_called(): ...


@refuses("nd.sketches.pairs([])", "sketches: none given")
def pairs_of_nothing(): ...


@refuses(
    "nd.dedup('d.jsonl', method=nd.SimHash(weighting='tfidf', frequencies={1: 2}))",
    "frequencies: a dict; give a Frequencies",
    documents=True,
)
def frequencies_as_a_dict(): ...


# -------------------------------------------------------------------------------- what would take days, or all memory


@refuses("nd.hamming.TableDesign(128, 32, 60).masks", "no more than 10,000 tables can be used", max_seconds=5)
def more_tables_than_can_be_listed(): ...


@refuses("nd.hamming.TableDesign(10**9, 3, 2)", "bits must be between 1 and 512, got 1000000000", max_seconds=5)
def a_design_of_a_billion_bits(): ...


@refuses("nd.papers.expected_collisions(5, 10**11)", "bits must be between 1 and 1000, got 100000000000", max_seconds=5)
def collisions_of_100_billion_bits(): ...


@refuses("nd.papers.within_probability(10**12, 0.5, 0.4)", "got 1000000000000", max_seconds=5)
def a_sum_of_a_trillion_terms(): ...


@refuses("nd.theory.pass_probability(0.5, 5, 10**400, 1)", "1 <= s <= 1,048,576", max_seconds=5)
def groups_beyond_all_numbers(): ...


# ----------------------------------------------------------------------------------------------- odd, and right


@allows("found = nd.stages.Pairs([0], [1])\nassert (found.left.dtype, found.right.tolist()) == (np.int64, [1])")
def pairs_of_lists(): ...


@allows(
    "odd = nd.stages.Ragged(tokens.values.astype('>u8'), tokens.offsets.astype('>i8'))\n"
    "assert nd.stages.shingle(odd, recipe).values.tolist() == shingles.values.tolist()\n"
    "found = minima.keys(signatures.astype('>u4'))\nassert (found == features).all()"
)
def arrays_of_the_other_byte_order(): ...


@allows(
    "spread = np.repeat(signatures, 2, axis=1)[:, ::2]\nturned = np.asfortranarray(signatures)\n"
    "for odd in (spread, turned):\n    assert (minima.keys(odd) == features).all()\n"
    "wide = nd.stages.Ragged(np.repeat(shingles.values, 2)[::2], shingles.offsets)\n"
    "assert (minima.sketch(wide) == signatures).all()"
)
def arrays_that_are_not_contiguous(): ...


@allows(
    "for array in (tokens.values, tokens.offsets, signatures, features):\n    array.flags.writeable = False\n"
    "assert nd.stages.shingle(tokens, recipe).values.tolist() == shingles.values.tolist()\n"
    "assert (minima.keys(signatures) == features).all()\n"
    "assert len(minima.collide(features).pairs) == 1"
)
def arrays_that_cannot_be_written_to(): ...


@allows(
    "none = nd.stages.tokenize([], recipe)\nsets = nd.stages.shingle(none, recipe)\nrows = minima.sketch(sets)\n"
    "groups = minima.keys(rows)\nfound = minima.collide(groups)\n"
    "kept = nd.stages.keep(0, nd.stages.verify(sets, found.pairs, 0.8), recipe)\n"
    "assert rows.shape == (0, 140) and groups.shape == (0, 20) and len(kept) == 0"
)
def no_documents_at_all(): ...


@allows(
    "import pandas as pd, polars as pl\nwanted = tokens.values.tolist()\n"
    "for column in (pd.Series(texts), pl.Series(texts), np.array(texts), pa.chunked_array([texts[:1], texts[1:]])):\n"
    "    assert nd.stages.tokenize(column, recipe).values.tolist() == wanted"
)
def columns_of_texts_of_other_libraries(): ...


@allows(
    "three, design = np.int8(3), nd.hamming.TableDesign\n"
    "assert design(np.int64(64), three, np.uint8(20)) == design(64, 3, 20)\n"
    "assert nd.stages.keep(three, verified, recipe, pinned=[False] * 3).tolist() == [0, 0, 2]\n"
    "assert nd.hamming.HammingIndex([1, 2**64 - 1], three).query(np.uint64(2**64 - 1))[0].tolist() == [1]\n"
    "assert nd.papers.hoeffding(np.int64(9)) == nd.papers.hoeffding(9)\n"
    "assert len(nd.dedup('d.jsonl', writing=nd.Writing(check=three, overwrite=np.bool_(False))).kept) == 5",
    documents=True,
)
def integers_of_numpy(): ...


@allows("assert len(set(nd.__all__)) == len(nd.__all__)\nfor name in nd.__all__:\n    getattr(nd, name)")
def every_public_name(): ...
