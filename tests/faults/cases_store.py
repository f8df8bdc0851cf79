"""What was stored and is read again: indexes, sketches, fingerprints, frequencies, results, recipes; and its order."""

import json
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq

from .judge import case

KEY = b"neardup_gpu"


def rewrite(box, name, change=None, **edits):
    """A Parquet file as another program writes it: its table changed, its recipe's entries edited."""
    path = box / name
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    if edits:
        stored = json.loads(metadata[KEY])
        for key, value in edits.items():
            stored.pop(key) if value is ... else stored.update({key: value})
        metadata[KEY] = json.dumps(stored).encode()
    if change is not None:
        table = change(table)
    pq.write_table(table.replace_schema_metadata(metadata), path)


def with_column(name, values):
    return lambda table: table.set_column(table.column_names.index(name), name, values(table))


def patch(box, name, old, new):
    data = (box / name).read_bytes()
    assert data.count(old) == 1 and len(old) == len(new)
    (box / name).write_bytes(data.replace(old, new))


def answers(box, ended):
    """Whatever the query said has to be what the sound index says: id and distance of the document itself."""
    assert '"distance": 0' in ended.output


# ------------------------------------------------------------------------------------------------------- index files


@case(says="has changed since it was written")
def a_flipped_bit_of_an_index_s_words(box):
    box.index("i.index")
    box.flip("i.index", 8 * 4096 + 5)
    return ["hamming", "query", "i.index", "h.parquet"] if box.simhashes() else []


@case(says="has changed since it was written")
def a_flipped_bit_of_the_last_byte_of_an_index(box):
    box.index("i.index")
    box.flip("i.index", -1)
    return ["hamming", "query", "i.index", "--fingerprint", "0x1"]


@case(says="has changed since it was written")
def a_flipped_bit_between_the_arrays_of_an_index(box):
    box.index("i.index")
    box.flip("i.index", 8 * (2 * 4096 - 1))
    return ["info", "--check", "i.index"]


@case(says="has changed since it was written")
def a_flipped_bit_of_a_compressed_index(box):
    box.index("i.index", "--compress")
    box.flip("i.index", -3 * 8 * 4096)
    return ["hamming", "query", "i.index", "--fingerprint", "0x1"]


@case(says="has changed since it was written")
def a_flipped_bit_of_an_index_s_header(box):
    box.index("i.index")
    patch(box, "i.index", b'"radius": 3, "num_fingerprints"', b'"radius": 1, "num_fingerprints"')
    return ["hamming", "query", "i.index", "--fingerprint", "0x1"]


@case(says="has changed since it was written")
def a_flipped_bit_of_an_index_s_first_byte(box):
    box.index("i.index")
    box.flip("i.index", 0)
    return "nd.hamming.HammingIndex.load('i.index')"


@case(says="has changed since it was written")
def a_version_that_a_flipped_bit_made_an_earlier_one(box):
    box.index("i.index")
    box.flip("i.index", 8 * 12)
    return ["info", "i.index"]


@case(says="has changed since it was written")
def a_flipped_checksum_of_an_index(box):
    box.index("i.index")
    data = (box / "i.index").read_bytes()
    box.flip("i.index", 8 * (data.index(b"}", data.rindex(b'"arrays"')) + 24))
    return ["hamming", "query", "i.index", "--fingerprint", "0x1"]


@case(says="earlier version")
def an_index_of_the_version_before(box):
    header = json.dumps({"design": {}, "masks": []}).encode()
    box.write("i.index", b"NEARDUPH\4\3\2\1\2\0\0\0" + len(header).to_bytes(8, "little") + header + bytes(8192))
    return ["hamming", "query", "i.index", "--fingerprint", "0x1"]


@case(says="was cut short")
def an_index_that_was_cut(box):
    box.index("i.index")
    box.cut("i.index", -4096)
    return ["hamming", "query", "i.index", "--fingerprint", "0x1"]


@case(says="was cut short")
def an_index_of_its_first_twenty_bytes(box):
    box.index("i.index")
    box.cut("i.index", 20)
    return ["info", "i.index"]


@case(says="has changed")
def an_index_with_something_after_it(box):
    box.index("i.index")
    with open(box / "i.index", "ab") as file:
        file.write(b"more")
    return ["info", "i.index"]


@case(says="is not an index")
def parquet_in_place_of_an_index(box):
    box.simhashes("h.parquet")
    return ["hamming", "query", "h.parquet", "--fingerprint", "0x1"]


@case(says="has changed since it was written")
def an_index_whose_header_says_it_is_of_terabytes(box):
    box.index("i.index")
    data = bytearray((box / "i.index").read_bytes())
    data[16:24] = (2**42).to_bytes(8, "little")
    (box / "i.index").write_bytes(data)
    return ["info", "i.index"]


@case(says="has changed since it was written")
def a_damaged_index_that_is_saved_again(box):
    box.index("i.index")
    box.flip("i.index", -1)
    return "nd.hamming.HammingIndex.load('i.index').save('copy.index')"


@case(status=0, says="are as written")
def a_sound_index_that_is_checked(box):
    box.index("i.index")
    return ["info", "--check", "i.index"]


# ------------------------------------------------------------------------------------------------- Parquet artefacts


@case(says="has changed since it was written")
def a_flipped_bit_of_sketches(box):
    box.sketches("s.parquet")
    box.flip("s.parquet", 8 * 600)
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="has changed since it was written")
def a_flipped_bit_of_a_recipe_in_a_footer(box):
    box.sketches("s.parquet")
    data = (box / "s.parquet").read_bytes()
    box.flip("s.parquet", 8 * (data.rindex(b'"seed": 1') + 8))
    return ["info", "s.parquet"]


@case(says="has changed since it was written")
def a_flipped_bit_of_simhashes(box):
    box.simhashes("h.parquet")
    box.flip("h.parquet", 8 * 30)
    return ["hamming", "pairs", "h.parquet", "-o", "p.parquet"]


@case(says="has changed since it was written")
def a_flipped_bit_of_simhashes_that_an_index_is_asked_for(box):
    box.simhashes("h.parquet")
    box.index("i.index")
    box.flip("h.parquet", 8 * 200)
    return ["hamming", "query", "i.index", "h.parquet", "-o", "p.parquet"]


@case(says="has changed since it was written")
def a_flipped_bit_of_document_frequencies(box):
    box.documents("d.jsonl")
    box.run(
        "sketch", "d.jsonl", "--method", "simhash", "--id-column", "id", "--weighting", "tfidf", "-o", "h.parquet", "-q"
    )
    box.flip("h.frequencies.parquet", 8 * 40)
    return [
        "sketch",
        "d.jsonl",
        "--method",
        "simhash",
        "--weighting",
        "tfidf",
        "--frequencies",
        "h.frequencies.parquet",
        "-o",
        "x.parquet",
    ]


@case(says="holds no document frequencies")
def frequencies_that_are_simhashes(box):
    box.documents("d.jsonl")
    box.simhashes("h.parquet")
    return [
        "sketch",
        "d.jsonl",
        "--method",
        "simhash",
        "--weighting",
        "tfidf",
        "--frequencies",
        "h.parquet",
        "-o",
        "x.parquet",
    ]


@case(says="frequencies")
def frequencies_whose_number_of_documents_is_no_number(box):
    box.documents("d.jsonl")
    box.run(
        "sketch", "d.jsonl", "--method", "simhash", "--id-column", "id", "--weighting", "tfidf", "-o", "h.parquet", "-q"
    )
    path = box / "h.frequencies.parquet"
    table = pq.read_table(path)
    metadata = {**table.schema.metadata, b"neardup_gpu_documents": b"many"}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return "nd.sketches.Frequencies.load('h.frequencies.parquet')"


@case(says="frequencies")
def frequencies_whose_counts_are_text(box):
    box.documents("d.jsonl")
    box.run(
        "sketch", "d.jsonl", "--method", "simhash", "--id-column", "id", "--weighting", "tfidf", "-o", "h.parquet", "-q"
    )
    name = "h.frequencies.parquet"
    rewrite(box, name, with_column("documents", lambda table: pa.array(["x"] * len(table))))
    return f"nd.sketches.Frequencies.load('{name}')"


@case(says="has changed since it was written")
def a_flipped_bit_of_a_result_that_is_explained(box):
    box.result("out")
    box.flip("out/documents.parquet", 8 * 30)
    return ["explain", "out", "a0"]


@case(says="cannot be read as Parquet")
def sketches_that_were_cut(box):
    box.sketches("s.parquet")
    box.cut("s.parquet", -30)
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="this folder holds no sketches")
def sketches_that_are_a_folder(box):
    (box / "s.parquet").mkdir()
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(status=0, says="are as written")
def sketches_that_are_checked(box):
    box.sketches("s.parquet")
    return ["info", "--check", "s.parquet"]


@case(says="carries no checksums")
def sketches_of_another_program_that_are_checked(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet")
    return ["info", "--check", "s.parquet"]


@case(status=0, writes="p.parquet")
def sketches_that_another_program_rewrote(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", lambda table: table.append_column("note", pa.array(["x"] * len(table))))
    return ["pairs", "s.parquet", "-o", "p.parquet"]


# ------------------------------------------------------------------------------------- columns and their own recipe


@case(says="its recipe makes")
def seven_samples_in_place_of_all(box):
    box.sketches("s.parquet")
    values = lambda table: pa.array([[1] * 7] * len(table), pa.list_(pa.uint32(), 7))  # noqa: E731
    rewrite(box, "s.parquet", with_column("signature", values))
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="its recipe makes")
def samples_that_are_floats(box):
    box.sketches("s.parquet")

    def values(table):
        width = len(table["signature"][0])
        return pa.array([[0.5] * width] * len(table), pa.list_(pa.float64(), width))

    rewrite(box, "s.parquet", with_column("signature", values))
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="its recipe makes")
def samples_in_lists_of_any_length(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", with_column("signature", lambda t: t["signature"].cast(pa.list_(pa.uint32()))))
    return "nd.sketches.pairs('s.parquet')"


@case(says="its recipe makes")
def a_filter_that_was_edited(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", filter="9,9,3")
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="has nulls, where its recipe makes none")
def a_fingerprint_that_is_null(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", with_column("document_hash", lambda t: pa.nulls(len(t), t["document_hash"].type)))
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="below 0")
def fewer_tokens_than_none(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", with_column("num_tokens", lambda t: pa.array([-5] * len(t))))
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="has to be null where there are no tokens")
def signatures_of_documents_without_tokens(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", with_column("num_tokens", lambda t: pa.array([0] * len(t))))
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="has to be 0 where there are no tokens")
def no_shingles_where_there_are_tokens(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", with_column("num_shingles", lambda t: pa.array([0] * len(t))))
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="no column 'num_shingles', which containment needs; sketch it again")
def containment_without_numbers_of_shingles(box):
    box.sketches("s.parquet", "--method", "modm")
    rewrite(box, "s.parquet", lambda table: table.drop_columns(["num_shingles"]))
    return ["pairs", "s.parquet", "--containment", "0.9", "-o", "p.parquet"]


@case(says="holds no mod-m sketches of its recipe")
def elements_above_their_modulus(box):
    box.sketches("s.parquet", "--method", "modm")
    kind = pa.large_list(pa.uint64())
    rewrite(box, "s.parquet", with_column("elements", lambda t: pa.array([[2**64 - 1]] * len(t), kind)))
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="method minhash finds no containment; choose bottomk or modm")
def containment_of_signatures(box):
    box.sketches("s.parquet")
    return ["pairs", "s.parquet", "--containment", "0.9", "-o", "p.parquet"]


@case(says="containment must be > 0 and <= 1")
def containment_of_nothing(box):
    box.sketches("s.parquet", "--method", "modm")
    return ["pairs", "s.parquet", "--containment", "0", "-o", "p.parquet"]


@case(says="column 'id' has nulls")
def sketches_whose_ids_are_null(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", with_column("id", lambda t: pa.nulls(len(t), pa.string())))
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="more than one column 'id'")
def sketches_with_two_columns_of_ids(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", lambda table: table.append_column("id", table["id"]))
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="its recipe makes")
def simhashes_of_half_their_recipe_s_bits(box):
    box.simhashes("h.parquet")
    rewrite(box, "h.parquet", bits=128)
    return ["hamming", "build", "h.parquet", "-o", "i.index"]


@case(says="its recipe makes")
def simhashes_whose_number_of_tokens_is_text(box):
    box.simhashes("h.parquet")
    rewrite(box, "h.parquet", with_column("num_tokens", lambda t: pa.array(["x"] * len(t))))
    return ["hamming", "pairs", "h.parquet", "-o", "p.parquet"]


@case(says="with a null in them")
def a_word_of_a_simhash_that_is_null(box):
    box.simhashes("h.parquet", "--bits", "128")
    values = lambda t: pa.array([[1, None]] * len(t), pa.list_(pa.uint64(), 2))  # noqa: E731
    rewrite(box, "h.parquet", with_column("simhash", values))
    return ["hamming", "pairs", "h.parquet", "-o", "p.parquet"]


# ----------------------------------------------------------------------------------------------------------- recipes


@case(says="its recipe cannot be read")
def a_recipe_whose_threshold_is_text(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", threshold="0.8")
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="its recipe cannot be read")
def a_recipe_whose_seed_is_true(box):
    box.simhashes("h.parquet")
    rewrite(box, "h.parquet", seed=True)
    return ["hamming", "pairs", "h.parquet", "-o", "p.parquet"]


@case(says="its recipe cannot be read")
def a_recipe_whose_threshold_is_no_number(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", threshold=float("nan"))
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="its recipe cannot be read")
def a_recipe_of_a_billion_samples(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", filter="6,1000000000,2")
    return ["pairs", "s.parquet", "-o", "p.parquet"]


@case(says="its recipe cannot be read")
def a_recipe_with_an_entry_that_nobody_knows(box):
    box.simhashes("h.parquet")
    rewrite(box, "h.parquet", ngram=3)
    return ["hamming", "build", "h.parquet", "-o", "i.index"]


@case(says="its recipe cannot be read")
def a_recipe_without_its_seed(box):
    box.sketches("s.parquet")
    rewrite(box, "s.parquet", seed=...)
    return "nd.sketches.pairs('s.parquet')"


@case(says="its recipe cannot be read")
def a_recipe_nested_too_deep_to_show(box):
    table = pa.table({"id_a": ["a"]}).replace_schema_metadata({KEY: b"[" * 200_000})
    pq.write_table(table, box / "p.parquet")
    return ["info", "p.parquet"]


@case(status=0, says="\\x1b", hides="\x1b")
def a_recipe_that_would_steer_a_terminal(box):
    box.simhashes("h.parquet")
    rewrite(box, "h.parquet", keep="\x1b[31mred")
    return ["info", "h.parquet"]


@case(says="threshold must be a number, got '0.8'")
def a_threshold_given_as_text(box):
    return "nd.Recipe(threshold='0.8')"


@case(says="seed must be a whole number")
def a_seed_that_is_an_array_of_many_lines(box):
    return "nd.Recipe(seed=np.zeros((300, 300)))"


# --------------------------------------------------------------------------------------------------- result folders


@case(status=0, says="are as written")
def a_result_that_is_checked(box):
    box.result("out")
    return ["info", "--check", "out"]


@case(says="has changed since it was written")
def a_flipped_bit_of_a_kept_row(box):
    box.result("out")
    (kept,) = (path for path in (box / "out/kept").rglob("*") if path.is_file())
    box.flip(str(kept.relative_to(box.path)), 77)
    return ["info", "--check", "out"]


@case(says="is missing, report.json lists it")
def a_result_without_its_pairs(box):
    box.result("out")
    os.unlink(box / "out/pairs.parquet")
    return ["info", "--check", "out"]


@case(says="has changed since it was written")
def a_count_in_a_report_that_was_edited(box):
    box.result("out")
    text = (box / "out/report.json").read_text()
    (box / "out/report.json").write_text(re.sub(r'"kept": \d+', '"kept": 4', text, count=1))
    return ["info", "--check", "out"]


@case(says="there is no readable report.json")
def a_report_that_is_a_list(box):
    box.result("out")
    (box / "out/report.json").write_text("[1, 2]")
    return ["info", "out"]


@case(says="report.json: has changed since it was written")
def a_report_without_its_counts(box):
    box.result("out")
    report = json.loads((box / "out/report.json").read_text())
    (box / "out/report.json").write_text(json.dumps({**report, "counts": [], "recall": 5}))
    return ["info", "out"]


@case(says="report.json: has changed since it was written")
def a_report_that_does_not_say_what_was_read(box):
    box.result("out")
    report = json.loads((box / "out/report.json").read_text())
    (box / "out/report.json").write_text(json.dumps({**report, "input": {"paths": None}}))
    return ["explain", "out", "a5"]


@case(says="report.json: has changed since it was written")
def documents_of_a_result_without_a_column(box):
    box.result("out")
    rewrite(box, "out/documents.parquet", lambda table: table.drop_columns(["kept"]))
    return ["explain", "out", "a0"]


@case(says="not a finished result")
def a_page_of_a_folder_that_is_no_result(box):
    box.documents("d.jsonl")
    return ["report", "."]


@case(says="has changed since it was written")
def a_page_of_a_result_with_a_flipped_bit(box):
    box.result("out")
    box.flip("out/pairs.parquet", 8 * 30)
    return ["report", "out"]


@case(says="report.json: has changed since it was written")
def a_page_of_a_report_without_its_limits(box):
    box.result("out")
    report = json.loads((box / "out/report.json").read_text())
    (box / "out/report.json").write_text(json.dumps({**report, "limits": None}))
    return ["report", "out"]


@case(status=0, says="Texts are not shown: ", writes="page.html")
def a_page_of_a_result_whose_input_was_cut(box):
    box.result("out")
    box.cut("d.jsonl", -200)
    return "from neardup_gpu.report_page import of_folder\nprint(of_folder('out', output='page.html').html)"


# ------------------------------------------------------------------------------------------ order, repeats, numbers


def _two_sketches(box, command, *options):
    rows = box.rows(8)
    box.lines("a.jsonl", *rows[:5])
    box.lines("b.jsonl", *rows[3:7], rows[7])
    for name, some in (("a", rows[:4]), ("b", rows[4:])):
        box.lines(f"{name}.jsonl", *some)
        box.run(command, f"{name}.jsonl", "--id-column", "id", "-o", f"{name}.parquet", "-q", *options)


def _same_pairs(first, second):
    def then(box, ended):
        assert (box / first).read_bytes() == (box / second).read_bytes()
        assert pq.read_table(box / first).num_rows > 0

    return then


@case(status=0, writes="ba.parquet", then=_same_pairs("ab.parquet", "ba.parquet"))
def sketches_named_in_the_other_order(box):
    _two_sketches(box, "sketch")
    box.run("pairs", "a.parquet", "b.parquet", "-o", "ab.parquet", "-q")
    return ["pairs", "b.parquet", "a.parquet", "-o", "ba.parquet", "-q"]


@case(status=0, writes="ba.parquet", then=_same_pairs("ab.parquet", "ba.parquet"))
def simhashes_named_in_the_other_order_and_otherwise(box):
    _two_sketches(box, "sketch", "--method", "simhash")
    box.run("hamming", "pairs", "a.parquet", "b.parquet", "--radius", "20", "-o", "ab.parquet", "-q")
    b, a = str(box / "b.parquet"), "./a.parquet"
    return ["hamming", "pairs", b, a, "--radius", "20", "-o", "ba.parquet", "-q"]


@case(status=0, writes="aa.parquet", then=_same_pairs("one.parquet", "aa.parquet"))
def the_same_sketches_named_twice(box):
    box.sketches("s.parquet")
    (box / "link.parquet").symlink_to("s.parquet")
    box.run("pairs", "s.parquet", "-o", "one.parquet", "-q")
    return ["pairs", "s.parquet", "link.parquet", "./s.parquet", "-o", "aa.parquet", "-q"]


@case(says=("is there more than once", "s.parquet and t.parquet"))
def two_sketches_of_the_same_ids(box):
    box.sketches("s.parquet")
    box.sketches("t.parquet")
    return ["pairs", "t.parquet", "s.parquet", "-o", "p.parquet"]


@case(says="4,294,967,296 rows")
def more_documents_than_32_bits_number(box):
    return "nd.MinHash(k=6, s=14, r=2).collide(np.broadcast_to(np.uint64(0), (2**32, 6)))"


@case(says="4,294,967,296 rows")
def more_fingerprints_than_32_bits_number(box):
    return "nd.hamming.HammingIndex(np.broadcast_to(np.uint64(0), 2**32), 3)"


@case(says="method minhash makes no clusters; choose bottomk")
def clusters_of_other_sketches(box):
    box.sketches("s.parquet")
    return ["clusters", "s.parquet", "-o", "c.parquet"]


@case(says="s.parquet: column 'smallest' holds no bottom-k sketches")
def clusters_of_sketches_that_are_out_of_order(box):
    box.sketches("s.parquet", "--method", "bottomk", "--sketch-size", "4")
    backwards = with_column("smallest", lambda t: pa.array([[4, 3, 2, 1]] * len(t), t["smallest"].type))
    rewrite(box, "s.parquet", backwards)
    return ["clusters", "s.parquet", "-o", "c.parquet"]
