"""What reaches the terminal: names, ids and arguments that would steer it, figures that round to a lie, progress."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq

from .judge import case

ESCAPE = "\x1b[2J\x1b]0;owned\x07"
TURNED = "exe.\u202efdp"
OTHER = "\x9b31m\x7f\u200b\u2028"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def shows_nothing_hidden(box, ended):
    """More than the judge asks of every case: C1 controls, turned directions and zero widths are escaped, too."""
    assert not HIDDEN.search(ended.output + ended.errors), ended


def is_json(box, ended):
    shows_nothing_hidden(box, ended)
    json.loads(ended.output)


def hostile(box, name="d.jsonl"):
    """Documents of which ids steer the terminal; the last is a near-duplicate of the first."""
    rows = box.rows()
    for row, mark in zip(rows, (ESCAPE, TURNED, OTHER, "[red]", "\r\nneardup: done", ESCAPE + "9"), strict=True):
        row["id"] += mark
    box.lines(name, *rows)
    return rows


def documents(box, texts, name="d.jsonl"):
    box.lines(name, *({"id": f"a{i}", "text": text} for i, text in enumerate(texts)))


def unlike(num):
    return [" ".join(f"w{i}x{j}" for j in range(8)) for i in range(num)]


# Arguments


@case(says=r"\x1b[2J", then=shows_nothing_hidden)
def a_missing_input_whose_name_clears_the_screen(box):
    return ["dedup", f"missing{ESCAPE}.parquet", "-o", "out"]


@case(says=r"\u202e", then=shows_nothing_hidden)
def a_missing_input_whose_name_turns_the_direction(box):
    return ["dedup", f"{TURNED}.parquet", "-o", "out"]


@case(says=r"\xff", then=shows_nothing_hidden)
def a_missing_input_whose_name_is_not_utf8(box):
    return ["dedup", "missing\udcff\udc9b.parquet", "-o", "out"]


@case(says="there is no command", then=shows_nothing_hidden)
def a_command_that_forges_a_second_line(box):
    return [f"x\nneardup: all is well{ESCAPE}"]


@case(says=r"\x9b31m", then=shows_nothing_hidden)
def an_option_of_c1_controls(box):
    return ["dedup", "d.jsonl", f"--{OTHER}"]


@case(says="--threshold", then=shows_nothing_hidden)
def a_number_that_is_an_escape(box):
    return ["dedup", "d.jsonl", "-o", "out", "--threshold", ESCAPE]


@case(says="--check", then=shows_nothing_hidden)
def an_integer_that_is_an_escape(box):
    return ["dedup", "d.jsonl", "-o", "out", "--check", f"{OTHER}1"]


@case(says=r"\u202e", then=shows_nothing_hidden)
def a_filter_that_turns_the_direction(box):
    return ["curve", "--filter", TURNED]


@case(says=r"\x1b", then=shows_nothing_hidden)
def a_keep_rule_that_is_an_escape(box):
    box.documents()
    return ["dedup", "d.jsonl", "-o", "out", "--keep", ESCAPE]


@case(says=r"\x1b", then=shows_nothing_hidden)
def a_glob_that_is_an_escape(box):
    box.documents("in/d.jsonl")
    return ["dedup", "in", "-o", "out", "--glob", f"*{ESCAPE}"]


@case(says=r"\x1b", environment={"NEARDUP_BACKEND": ESCAPE}, then=shows_nothing_hidden)
def a_backend_of_the_environment_that_is_an_escape(box):
    box.documents()
    return ["dedup", "d.jsonl", "-o", "out"]


@case(says="gpu", then=shows_nothing_hidden)
def a_gpu_memory_that_is_an_escape(box):
    box.documents()
    return ["dedup", "d.jsonl", "-o", "out", "--gpu-memory", ESCAPE]


@case(says=r"\x9b", then=shows_nothing_hidden)
def a_fingerprint_that_is_a_c1_control(box):
    box.index()
    return ["hamming", "query", "i.index", "--fingerprint", OTHER]


@case(says=r"\x1b", then=shows_nothing_hidden)
def a_picture_whose_name_is_an_escape(box):
    return ["curve", "-o", f"{ESCAPE}.doc"]


# Names and columns


@case(says=r"\x1b[2J", then=shows_nothing_hidden)
def a_broken_file_whose_name_clears_the_screen(box):
    box.write(f"in/{ESCAPE}.jsonl", '{"text": "one two three"}\n{"text": \n')
    return ["dedup", "in", "-o", "out"]


@case(says=r"\n", then=shows_nothing_hidden)
def a_broken_file_whose_name_has_two_lines(box):
    box.write("in/one\ntwo.parquet", "no parquet")
    return ["dedup", "in", "-o", "out"]


@case(says=r"\x1b", then=shows_nothing_hidden)
def columns_that_steer_the_terminal(box):
    box.lines("d.jsonl", {ESCAPE: "one", TURNED: "two", OTHER: "three"})
    return ["dedup", "d.jsonl", "-o", "out", "--text-column", "body"]


@case(says=r"\u202e", then=shows_nothing_hidden, writes="d.parquet")
def columns_of_parquet_that_turn_the_direction(box):
    return (
        f"pq.write_table(pa.table({{{TURNED!r}: [1], 'text': ['a']}}), 'd.parquet')\n"
        "nd.dedup('d.parquet', id_column='b')"
    )


@case(says=r"\x1b", then=shows_nothing_hidden)
def an_id_column_that_is_an_escape(box):
    box.documents()
    return ["dedup", "d.jsonl", "-o", "out", "--id-column", ESCAPE]


@case(says=r"\x1b", then=shows_nothing_hidden)
def duplicate_ids_that_clear_the_screen(box):
    box.lines("d.jsonl", *({"id": ESCAPE, "text": text} for text in unlike(3)))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(says="JSON", then=shows_nothing_hidden)
def a_line_whose_error_repeats_its_content(box):
    box.write("d.jsonl", b'{"text": "a"}\n{"text": "\x1b[2J\x9b" \xe2\x80\xae]}\n')
    return ["dedup", "d.jsonl", "-o", "out"]


@case(status=0, writes="o\x1b[2J", says="next", then=shows_nothing_hidden)
def an_output_whose_name_clears_the_screen(box):
    box.documents()
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "o\x1b[2J"]


@case(status=0, writes=f"s{TURNED}.parquet", says=r"$'s", then=shows_nothing_hidden)
def sketches_whose_name_turns_the_direction(box):
    box.documents()
    return ["sketch", "d.jsonl", "-o", f"s{TURNED}.parquet"]


@case(status=0, writes="-p.parquet", says="neardup info ./-p.parquet")
def an_output_whose_name_is_an_option(box):
    box.simhashes()
    return ["hamming", "pairs", "h.parquet", "--output=-p.parquet"]


# Ids and words of documents


@case(status=0, says=(r"a0\x1b[2J", "neardup explain out $'a5\\033[2J"), writes="out", then=shows_nothing_hidden)
def ids_that_clear_the_screen(box):
    hostile(box)
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", then=is_json)
def a_report_of_hostile_ids_is_json(box):
    hostile(box)
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", "--json"]


@case(status=0, then=is_json)
def an_explanation_of_hostile_words_is_json(box):
    rows = hostile(box)
    rows[5]["text"] += f" {ESCAPE} {TURNED} {OTHER}"
    box.lines("d.jsonl", *rows)
    box.run("dedup", "d.jsonl", "--id-column", "id", "-o", "out", "-q")
    return ["explain", "out", rows[5]["id"], "--json"]


@case(status=0, says=(r"\x1b[2J", "[bold]words[/bold]", ":smile:"), then=shows_nothing_hidden)
def words_that_steer_the_terminal_and_look_like_markup(box):
    rows = box.rows()
    rows[5]["text"] += f" {ESCAPE} {TURNED} {OTHER} [bold]words[/bold] [/] [link=x] :smile:"
    box.lines("d.jsonl", *rows)
    box.run("dedup", "d.jsonl", "--id-column", "id", "-o", "out", "-q", "--threshold", "0.4")
    return ["explain", "out", "a5"]


@case(says=r"\x1b", then=shows_nothing_hidden)
def an_unknown_id_that_clears_the_screen_among_hostile_ones(box):
    hostile(box)
    box.run("dedup", "d.jsonl", "--id-column", "id", "-o", "out", "-q")
    return ["explain", "out", f"a{ESCAPE}"]


@case(says="no document", then=shows_nothing_hidden)
def an_unknown_id_that_is_not_utf8(box):
    box.result()
    return ["explain", "out", "a\udcff"]


@case(status=0, says="was kept", then=shows_nothing_hidden, writes=("b.parquet", "out"))
def an_id_of_bytes_that_are_not_utf8(box):
    box.documents()
    return (
        "ids = pa.array([b'a\\xff', b'b\\x1b', b'c'], pa.binary())\n"
        "pq.write_table(pa.table({'id': ids, 'text': ['one two three', 'one two three', 'other']}), 'b.parquet')\n"
        "nd.dedup('b.parquet', id_column='id', output='out')\n"
        "from neardup_gpu.cli import main\nassert main(['explain', 'out', 'a\\udcff']) == 0"
    )


@case(status=0, says=r"q\x1b", then=shows_nothing_hidden)
def matches_whose_ids_steer_the_terminal(box):
    ids = ["q\x1b[2J", "漢字\n"]
    pq.write_table(pa.table({"simhash": pa.array([5, 5], pa.uint64()), "id": ids}), box / "q.parquet")
    box.run("hamming", "build", "q.parquet", "--id-column", "id", "-o", "q.index", "-q")
    box.run("hamming", "query", "q.index", "q.parquet", "-q")  # compiles what has to be compiled
    return ["hamming", "query", "q.index", "q.parquet", "--id-column", "id"]


@case(status=0, environment={"PYTHONIOENCODING": "ascii"}, fresh=True, says=r"\u6f22", writes="out")
def an_encoding_without_the_ids(box):
    box.lines("d.jsonl", *({"id": f"漢{i}", "text": text} for i, text in enumerate([*unlike(2), *unlike(1)])))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, environment={"PYTHONIOENCODING": "latin-1"}, fresh=True, then=is_json)
def an_encoding_without_the_ids_as_json(box):
    box.lines("d.jsonl", *({"id": f"漢{i}", "text": text} for i, text in enumerate([*unlike(2), *unlike(1)])))
    return ["dedup", "d.jsonl", "--id-column", "id", "--dry-run", "--json"]


@case(says="report.json: has changed since it was written", then=shows_nothing_hidden)
def a_report_that_was_edited(box):
    out = box.result()
    report = json.loads((out / "report.json").read_text())
    report["counts"]["documents"] = 0
    report["largest_groups"] = [{"id": ESCAPE}]
    (out / "report.json").write_text(json.dumps(report))
    return ["info", "out"]


@case(status=0, says=r"\x1b", then=shows_nothing_hidden, writes="hostile.parquet")
def an_artefact_whose_metadata_steers_the_terminal(box):
    return (
        "schema = pa.schema([('id_a\\x1b[2J\\u202e', pa.int64())])\n"
        "from neardup_gpu.definitions import METADATA_KEY\n"
        'schema = schema.with_metadata({METADATA_KEY: b\'{"w\\\\u001b": "\\\\u001b[2J\\\\u202e"}\'})\n'
        "pq.write_table(schema.empty_table(), 'hostile.parquet')\n"
        "from neardup_gpu.cli import main\nassert main(['info', 'hostile.parquet']) == 0"
    )


# In Python, too


@case(says=r"\x1b[2J", then=shows_nothing_hidden)
def an_error_of_the_library_whose_message_repeats_a_name(box):
    return f"nd.dedup({f'{ESCAPE}{TURNED}.parquet'!r})"


@case(status=0, says=r"\x1b", then=shows_nothing_hidden)
def a_record_of_the_log_that_repeats_a_name(box):
    return (
        "import logging\nlogging.basicConfig(level=logging.INFO)\nimport neardup_gpu.log\n"
        "logging.getLogger('neardup_gpu').warning('skipped %s', 'a\\x1b[2J\\u202e\\n.bin')"
    )


@case(status=0, says="&lt;script&gt;", hides="<script>", then=shows_nothing_hidden)
def a_result_in_a_notebook_whose_ids_are_markup(box):
    return (
        "ids = ['<script>\\x1b', '<b>\\u202e', 'c']\n"
        "texts = ['one two three', 'one two three', 'other']\n"
        "print(nd.dedup(pa.table({'id': ids, 'text': texts}), id_column='id')._repr_html_())"
    )


@case(says="progress: str given; pass True")
def progress_that_is_a_word(box):
    box.documents()
    return "nd.dedup('d.jsonl', progress='yes')"


# Figures


@case(status=0, says=("kept       49 (100.0%)", "removed    0 (0.0%)"))
def all_of_49_documents_kept(box):
    documents(box, unlike(49))
    return ["dedup", "d.jsonl", "--dry-run"]


@case(status=0, says=("(99.95%)", "1 (0.05%): 1 identical, 0 same words, 0 near"))
def one_of_2000_documents_removed(box):
    documents(box, [*unlike(1999), unlike(1)[0]])
    return ["dedup", "d.jsonl", "--dry-run", "--check", "0"]


@case(status=0, hides="e+0", says=">99.9999%")
def a_curve_without_powers_of_ten(box):
    return ["curve"]


@case(status=0, hides=("e+0", "-0.0%"))
def a_curve_of_a_steep_filter(box):
    return ["curve", "--filter", "64,1,1", "--threshold", "0.99999"]


def only_certainty_is_100_percent(box, ended):
    rows = [line.split() for line in ended.output.splitlines() if re.match(r" +\d\S* +\S+% +\S+% +\S+%$", line)]
    assert len(rows) > 20
    for resemblance, candidates, missed, _ in rows:
        assert (candidates == "100.0%") == (resemblance == "1.0") == (missed == "0.0%"), (resemblance, candidates)


@case(status=0, then=only_certainty_is_100_percent)
def a_curve_that_is_certain_of_nothing_but_equality(box):
    return ["curve", "--filter", "6,14,2", "--threshold", "0.999999"]


@case(status=0, says="1 invalid UTF-8 byte", hides="UTF-8 bytes")
def one_invalid_byte_is_singular(box):
    box.write("in/a.txt", b"caf\xe9 au lait")
    box.write("in/b.txt", b"something else")
    return ["dedup", "in", "--dry-run"]


def knows_how_long_writing_took(box, ended):
    report = json.loads((box / "out" / "report.json").read_text())
    assert report["timings"]["write"] > 0
    assert report["seconds"] >= report["timings"]["write"] + report["timings"]["sketch"]
    assert report["seconds"] <= ended.seconds


@case(status=0, writes="out", then=knows_how_long_writing_took)
def a_report_that_includes_its_own_writing(box):
    box.documents()
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, says="compiled apart")
def what_is_compiled_meanwhile_is_no_part_of_a_stage(box):
    box.documents()
    return (
        "import numba\nfrom neardup_gpu.kernels import _numba\n"
        "times = nd.dedup('d.jsonl', progress=lambda *_: numba.njit(lambda x: x + 1)(1.5)).report['timings']\n"
        "print('compiled apart' if times['compile'] > 0.01 else times)"
    )


# Progress


def a_line_a_stage(box, ended):
    labels = [line.partition(":")[0] for line in ended.errors.splitlines()]
    assert labels[:6] == ["sketching", "finding candidates", "indexing", "joining", "joining", "verifying"]
    assert re.match(r"sketching: 6 documents in \d", ended.errors)


@case(status=0, then=a_line_a_stage, writes="out")
def a_log_of_stages_without_a_terminal(box):
    box.documents()
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


def silent(box, ended):
    assert ended.output + ended.errors == ""


@case(status=0, then=silent, writes="out")
def silence_where_it_is_asked_for(box):
    box.documents()
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", "--quiet"]


@case(status=0, environment={"FORCE_COLOR": "", "NO_COLOR": "1", "COLUMNS": "3", "TERM": "dumb"}, writes="out")
def a_pipe_of_a_narrow_terminal_without_colours(box):
    hostile(box)
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, says="sketching: 6 documents")
def the_library_logs_its_stages(box):
    box.documents()
    return "import logging\nlogging.basicConfig(level=logging.INFO)\nnd.dedup('d.jsonl')"


@case(status=0, then=silent)
def the_library_prints_nothing_unasked(box):
    box.documents()
    return "nd.dedup('d.jsonl', output=None)"


@case(status=0, says=("sketching", "6 / 6"), hides=ESCAPE)
def bars_without_a_terminal(box):
    box.documents()
    return "nd.dedup('d.jsonl', progress=True)"
