"""Pages made to stop a crawl, and invisible characters made to hide a copy."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

from .judge import case

DEDUP = ["dedup", "pages", "-o", "out"]
BY_TREES = [*DEDUP, "--html", "tree"]


def pages(box, tangled):
    """A tangled page among ordinary ones, two of which are copies."""
    box.write("pages/tangled.html", tangled)
    for name, text in (("a", "one two three"), ("b", "one two three"), ("c", "four five six seven")):
        box.write(f"pages/{name}.html", f"<title>t</title><p>{text}</p>")


def counted(num):
    def then(box, ended):
        counts = json.loads((box / "out" / "report.json").read_text())["counts"]
        assert counts["stripped_pages"] == num
        assert counts["removed_identical"] + counts["removed_same_words"] == 1  # texts may differ in line breaks
        assert ("too tangled to parse" in ended.output) == (num > 0)

    return then


def numbered(pattern, num):
    return "".join(pattern.replace("#", str(i)) for i in range(num))


@case(status=0, writes="out", then=counted(1))
def div_closed_by_another_name(box):
    pages(box, "<div></x>" * 40_000)
    return BY_TREES


@case(status=0, writes="out", then=counted(1))
def bold_in_a_table_that_ends(box):
    pages(box, "<table>" + "<b>x</table>" * 300_000)
    return BY_TREES


@case(status=0, writes="out", then=counted(1))
def a_tag_of_a_million_attributes(box):
    pages(box, f"<a {numbered('a#=1 ', 1_000_000)}>x")
    return BY_TREES


@case(status=0, writes="out", then=counted(1))
def fonts_that_every_paragraph_opens_again(box):
    pages(box, numbered("<p><font size=#>x", 20_000))
    return BY_TREES


@case(status=0, writes="out", then=counted(1))
def a_hundred_thousand_options(box):
    pages(box, "<select>" + "<option>x" * 100_000)
    return BY_TREES


@case(status=0, writes="out", then=counted(1))
def a_hundred_thousand_html_tags(box):
    pages(box, numbered("<html a#=1>", 100_000))
    return BY_TREES


@case(status=0, writes="out", then=counted(1))
def tags_hidden_by_utf_16(box):
    pages(box, ("<div>" * 200_000).encode("utf-16"))
    return BY_TREES


@case(status=0, writes="out", then=counted(1))
def tags_hidden_by_shifts_of_iso_2022_jp(box):
    pages(box, b"<meta charset=iso-2022-jp>" + b"<div>\x1b$B</div>\x1b(B" * 50_000)
    return BY_TREES


@case(status=0, writes="out", then=counted(1))
def tags_in_a_parquet_column(box):
    texts = ["<p>one two three", "<div>" * 200_000, "<b>one two</b> three"]
    pq.write_table(pa.table({"text": texts}), box / "d.parquet")
    return ["dedup", "d.parquet", "--html", "tree", "-o", "out"]


@case(status=0, writes="out", then=counted(0))
def tangled_pages_without_trees(box):
    pages(box, "<div></x>" * 40_000 + "<table>" + "<b>x</table>" * 100_000 + f"<a {numbered('a#=1 ', 100_000)}>")
    return DEDUP


@case(status=0, writes="out", then=counted(0))
def a_megabyte_of_opening_brackets(box):
    pages(box, "<" * (1 << 20))
    return BY_TREES


@case(status=0, writes="out", then=counted(0))
def a_comment_without_end(box):
    pages(box, "<!--" + "<!-- -" * 200_000)
    return DEDUP


@case(status=0, writes="out", then=counted(0))
def entities_without_end(box):
    pages(box, "&#" * 300_000 + "&" * 300_000 + "&notit;" * 100_000)
    return DEDUP


@case(status=0, writes="out", then=counted(0))
def bytes_of_no_encoding(box):
    pages(box, b"<p>\xff\x00\x80" * 100_000 + b"<meta charset=utf-7>+ADw-")
    return DEDUP


@case(status=0, writes="out", then=counted(0))
def a_large_page_in_order(box):
    pages(box, "<table>" + "<tr><td>a<b>b</b><td><a href=x>c</a>" * 40_000 + "</table>")
    return DEDUP


def hidden(character):
    """Two documents that look alike; one has an invisible character in each word."""
    words = "one two three four five six seven eight nine ten"
    return [{"id": "a", "text": words}, {"id": "b", "text": f"{character}".join(words)}]


def removed_one(box, ended):
    assert json.loads((box / "out" / "report.json").read_text())["counts"]["removed_same_words"] == 1


@case(status=0, writes="out", then=removed_one)
def a_grapheme_joiner_in_each_word(box):
    box.lines("d.jsonl", *hidden("\u034f"))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", then=removed_one)
def a_variation_selector_in_each_word(box):
    box.lines("d.jsonl", *hidden("\ufe0f"))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", then=removed_one)
def a_filler_in_each_word(box):
    box.lines("d.jsonl", *hidden("\u3164"))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", then=removed_one)
def a_tag_character_in_each_word(box):
    box.lines("d.jsonl", *hidden("\U000e0041"))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", then=removed_one)
def a_zero_width_space_in_each_word(box):
    box.lines("d.jsonl", *hidden("\u200b"))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]
