"""What a reader sees, from any markup whatever."""

import os
import random
import re
import time
from pathlib import Path

import mutated_pages
import pytest
from grids import fewer
from hypothesis import example, given, settings, strategies as st
from selectolax.lexbor import LexborHTMLParser

from neardup_gpu.documents.html import Markup, read_page, without_markup
from neardup_gpu.kernels._markup import MAX_OPEN, is_tame

BOTH = pytest.mark.parametrize("tree", [False, True], ids=["text", "tree"])


def visible_text(markup: bytes | str) -> str:
    return read_page(markup).text


@BOTH
@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("", []),
        ("plain words", ["plain", "words"]),
        ("<title>Page</title>body", ["Page", "body"]),
        ("<p>one</p>two", ["one", "two"]),
        ("one<div>two</div>three", ["one", "two", "three"]),
        ("two<b>fold</b><i>ed</i>", ["twofolded"]),
        ("<a href=x>a</a><span>b</span><custom-element>c</custom-element>", ["abc"]),
        ("soft<wbr>break", ["softbreak"]),
        ("in<!-- a comment -->side", ["inside"]),
        ("a<br>b<br/>c<hr>d", ["a", "b", "c", "d"]),
        ("<ul><li>a<li>b</ul>c", ["a", "b", "c"]),
        ("<dl><dt>a<dd>b</dl>c", ["a", "b", "c"]),
        ("<table><caption>t</caption><tr><th>a<td>b<tr><td>c</table>d", ["t", "a", "b", "c", "d"]),
        ("<figure>a<figcaption>b</figcaption></figure>c", ["a", "b", "c"]),
        ("<select><optgroup label=x><option>a<option>b</select>c", ["a", "b", "c"]),
        ("<details><summary>a</summary>b</details>c", ["a", "b", "c"]),
        ("<h1>a</h1>b<pre>c\nd</pre>e<textarea>f</textarea>g", ["a", "b", "c", "d", "e", "f", "g"]),
        ("a<script>if (x<p) '</p>'</script>b<style>p {}</style>c", ["abc"]),
        ("<noscript><p>turn it on</p></noscript>a", ["a"]),
        ("<template><p>later</p></template>a<iframe>b</iframe><datalist><option>c</datalist>", ["a"]),
        ("caf&eacute; &#x41;&#66; R&amp;D &lt;p&gt; &amp;lt;", ["café", "AB", "R&D", "<p>", "&lt;"]),
        ("a&nbsp;b", ["a", "b"]),
        ("<p", []),
        ("a < b", ["a", "<", "b"]),
        ("</div></p>a</table>", ["a"]),
    ],
)
def test_words(markup, words, tree):
    assert read_page(markup, tree).text.split() == words
    assert read_page(markup.encode(), tree).text.split() == words


@BOTH
@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("a<svg><style>b<p>c</p>d", ["a", "c", "d"]),
        ("<div><svg><style>a{}</div>b", ["b"]),
        ("<table><tr><td>a<svg><style>b</td><td>c</table>d", ["a", "c", "d"]),
        ("a<math><style>b<div>c</div>d", ["a", "c", "d"]),
        ("<svg><script>a<p>b</p>", ["b"]),
        ("<svg><style><![CDATA[a]]><p>b", ["b"]),
        ("<svg><style>a</style>b</svg>c", ["bc"]),
        ("<div>a<datalist><option>b</div>c", ["a", "c"]),
        ("<p>a<datalist><option>b<p>c", ["a", "c"]),
        ("<li>a<datalist><li>b</datalist>c", ["a", "bc"]),
        ("<div><datalist><option>a</div>b</datalist>c", ["bc"]),
        ("<div><datalist><option>a", []),
        ("<svg><template>a</template></svg>b", ["ab"]),
        ("<svg><desc>a</svg><style>b<i>c</i></style>d", ["ad"]),
        ("<svg>" * 20 + "a" + "</svg>" * 20 + "<style>b<i>c</style>d", ["ad"]),
        ("<math><annotation-xml encoding=text/html><style>a<i>b</style>c", ["c"]),
        ("<frameset>a</frameset>b", []),
        ("a<template>b", ["a"]),
        ("a<template><svg></template><style><i></style>b", ["ab"]),
        ("<svg><style>&lt;meta charset=koi8-r>" + "<p>é", ["é"]),
    ],
)
def test_hidden_text_ends_where_a_parser_ends_it(markup, words, tree):
    assert read_page(markup, tree).text.split() == words


@pytest.mark.parametrize("kind", ["grafted", "written"])
def test_damaged_pages_keep_the_words_of_the_tree(kind):
    originals = [mutated_pages.written_page(random.Random(number)) for number in range(20)]
    counts, found = mutated_pages.compare(kind, 300, 5, originals, visible_text)
    assert found == []
    assert counts["same"] > 250


def test_the_texts_of_a_batch_stay_in_order():
    hostile = "<svg><style>e" + "<div>" * 5000 + "f"  # doubtful, but no parser may read it
    pages = ["a", "<div><datalist>b</div>c", "d", "", hostile, "<svg><style>g<p>h", "i"]
    texts = without_markup([Markup(page.encode()) for page in pages])
    assert [text.split() for text in texts] == [[b"a"], [b"c"], [b"d"], [], [b"f"], [b"h"], [b"i"]]


@BOTH
@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("<meta charset=windows-1251><p>Привет".encode("cp1251"), ["Привет"]),
        ('<meta http-equiv="Content-Type" content="text/html; charset=shift_jis">日本'.encode("shift_jis"), ["日本"]),
        ("日本".encode(), ["日本"]),
        ("\ufeff日本".encode(), ["日本"]),
        ("<p>日本".encode("utf-16"), ["日本"]),
        (b"<meta charset=nonsense>caf\xc3\xa9", ["café"]),
        (b"<p>caf\xe9", ["café"]),
        ("a\ud800b", ["a\ufffdb"]),
        ("<meta charset=iso-2022-jp><p>日本".encode("iso-2022-jp"), ["日本"]),
        ("<meta charset=gb2312><p>镕".encode("gb18030"), ["镕"]),
        (b"<meta charset=x-user-defined><p>caf\xe9", ["café"]),
        ("<meta charset=utf-16><p>日本".encode(), ["日本"]),
        ("<!-- charset=koi8-r --><meta charset=windows-1251><p>Привет".encode("cp1251"), ["Привет"]),
        ("<p title='charset=koi8-r'>日本".encode(), ["日本"]),
        ("<meta name=charset content=koi8-r><p>日本".encode(), ["日本"]),
    ],
)
def test_encodings(markup, words, tree):
    assert read_page(markup, tree).text.split() == words


def repeated(pattern, num):
    """The pattern `num` times, each with its number in the place of "#"."""
    return "".join(pattern.replace("#", str(i)) for i in range(num))


HOSTILE = {
    "deep": "<div>",
    "deep lists": "<ul><li>",
    "deep, closed by another name": "<div></x>",
    "closed where it is not in scope": "<div><table></div>",
    "closed in a comment": "<div><!--</div>-->",
    "closed in an attribute": "<div a='></div>'>",
    "closed in a script": "<div><script><!--<script></script></div>--></script>",
    "closed in a style that is none": "<svg><style><g></style>",
    "a list of terms and items": "<dd><li>",
    "formatting outside of its table": "<b>x</table>",
    "formatting in each paragraph": "<p><font size=#>x",
    "anchors that hold blocks": "<a><div>",
    "options": "<option>x",
    "attributes of html": "<html a#=1>",
    "attributes of body": "<body a#=1>",
    "self-closing elements after a drawing": "<svg><p></svg><g/>",
    "drawings": "<svg><g>",
    "drawings with styles": "<svg><style>",
    "lists of data": "<datalist><option>",
    "formulas": "<math><mi>",
    "frames": "<frameset><xmp><frameset>",
    "templates": "<template><div>",
    "sections of a selection": "<select><xmp></select><div>",
}
BEFORE = {"formatting outside of its table": "<table>", "options": "<select>", "attributes of body": "<body>"}


@BOTH
@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_length(name, tree):
    """A megabyte takes at most 60 s: by the parser alone, each of these takes minutes to hours."""
    start = time.process_time()
    page = BEFORE.get(name, "") + repeated(HOSTILE[name], (1 << 20) // len(HOSTILE[name])) + "end"
    read = read_page(page, tree)
    assert time.process_time() - start < 60
    assert not read.parsed or len(read.text) < len(page)


@BOTH
def test_a_tag_of_a_million_attributes(tree):
    start = time.process_time()
    assert read_page("<a " + repeated("a#=1 ", 1_000_000) + ">end", tree) == ("end", not tree)
    assert time.process_time() - start < 60


def deepest(page):
    """How many elements lie within one another in the tree of a parser."""
    node = LexborHTMLParser(page, scripting=True).root
    most, depth = 0, 1
    while node is not None:
        most = max(most, depth)
        if node.child is not None:
            node, depth = node.child, depth + 1
            continue
        while node is not None and node.next is None:
            node, depth = node.parent, depth - 1
        node = None if node is None or depth < 1 else node.next
    return most


NAMES = re.findall(
    r"\S+",
    "div p b a font table tr td tbody caption li ul dd dl select option optgroup svg math g path title desc mi style "
    "foreignObject script xmp template button object form h1 x rt noscript textarea iframe frameset head html br hr",
)
TOKENS = st.one_of(
    st.sampled_from(NAMES).map("<{}>".format),
    st.sampled_from(NAMES).map("</{}>".format),
    st.sampled_from(NAMES).map("<{}/>".format),
    st.sampled_from(NAMES).map("<{} a='></div>'>".format),
    st.sampled_from(["<!--", "-->", "--!>", "<!-->", "<![CDATA[", "]]>", "<!x", "<?", "</", "<", ">", "'", '"', "x"]),
)


@settings(max_examples=fewer(150), deadline=None)
@example("", "<svg/><object/>")
@given(st.lists(TOKENS, max_size=3).map("".join), st.lists(TOKENS, min_size=1, max_size=7).map("".join))
def test_no_page_nests_deeper_than_the_automaton_says(before, pattern):
    """What nests deeper with each repetition is taken for tame only as long as it is not deep."""
    growth = (deepest(before + pattern * 60) - deepest(before + pattern * 30)) / 30
    if growth > 0:
        page = before + pattern * int(1.6 * MAX_OPEN / growth + 1)
        assert not is_tame(page.encode()) or deepest(page) < 1.6 * MAX_OPEN


def test_attributes_and_comments_end_where_the_standard_says():
    deep = "<div>" * (MAX_OPEN + 1)
    hidden = ["<!--" + deep + "-->", "<!--" + deep + "--!>", "<!--" + deep, f"<p a='{deep}'>", f'<p a = "{deep}">']
    hidden += [
        f"<script>{deep}</script>",
        f"<title>{deep}",
        f"<plaintext>{deep}",
        f"<p a=x{deep.replace('>', '')}>",
        "<p a'='>" + deep,
    ]
    shown = [
        "<!-->" + deep,
        "<!--->" + deep,
        "<!x>" + deep,
        "</ >" + deep,
        "<p '>" + deep,
        "<p a=b'>" + deep,
        "<1" + deep,
    ]
    shown += ["<script></script >" + deep, "<script></scriptx></script>" + deep]
    assert [is_tame(page.encode()) for page in hidden] == [True] * len(hidden)
    assert [is_tame(page.encode()) for page in shown] == [False] * len(shown)


@pytest.mark.parametrize("encoding", ["utf-16", "iso-2022-jp"])
def test_an_encoding_cannot_hide_tags(encoding):
    page = "<meta charset=iso-2022-jp>" + "<div>" * 100_000 + "文"
    start = time.process_time()
    assert not read_page(page.encode(encoding), tree=True).parsed
    assert read_page(page.encode(encoding), tree=True).text.strip() == "文"
    assert time.process_time() - start < 60


def test_no_codec_of_python_s_own_is_used():
    """The time of punycode grows with the square of the length."""
    page = b"<meta charset=punycode>" + b"<div>" * 5000 + b"words-abc9"
    assert read_page(page, tree=True) == ("\n" * 5000 + "words-abc9", False)
    assert read_page(page) == ("\n" * 5000 + "words-abc9", True)


def test_what_is_not_parsed_has_the_same_words():
    page = """<title>T&eacute;</title><style>no{}</style><script>if (a<b) "</p>"</script><!-- no -->
    <p title="a>b">One</p>two<b>fold</b> <a href='x>y' id=z>R&amp;D</a><br>three<table><tr><td>four</table>
    <noscript>no</noscript><template>no</template>
    <img alt=no src=x>five<p>six<1 < seven"""
    tangled = page + "<div>" * 5000
    read, of_tangled = read_page(page, tree=True), read_page(tangled, tree=True)
    assert (read.parsed, of_tangled.parsed) == (True, False)
    assert of_tangled.text.split() == read.text.split() == visible_text(page).split() == visible_text(tangled).split()


@BOTH
@pytest.mark.parametrize("part", ["<a", "<a ", "<a<", "<!", "</a", "<a b='", "<a x=<"])
def test_tags_that_nothing_closes_stay_quick(part, tree):
    # Looking for the end anew from each "<" takes hours for a megabyte.
    assert read_page("one" + part * ((1 << 20) // len(part)), tree).text.split() == ["one"]


@BOTH
def test_words_and_charset_stay_where_nothing_is_parsed(tree):
    page = (
        "<!-- charset=koi8-r --><meta charset=windows-1251>"
        + "<div>слово" * 6000
        + "</div>" * 6000
        + "конец<script>нет</script>"
    )
    words = read_page(page.encode("cp1251"), tree).text.split()
    assert words == ["слово"] * 6000 + ["конец"]


@BOTH
def test_a_page_with_many_tags_is_left_as_it_is(tree):
    rows = "<tr><td>a<b>b</b><td>c</tr>" * 5000
    assert read_page(f"<table>{rows}</table>", tree).text.split() == ["ab", "c"] * 5000


@settings(max_examples=fewer(200), deadline=None)
@given(st.one_of(st.binary(max_size=300), st.text("<>/!-&;pbdiv \n\"'=script", max_size=300)))
def test_any_input_gives_text(markup):
    visible_text(markup).encode()
    read_page(markup, tree=True).text.encode()


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize(
    ("markup", "paragraphs"),
    [
        ("<p>a</p>b<div>c<br>d</div>\n<div>e</div> \n <div>f", ["a", "b", "c\nd", "e", "f"]),
        ("<title>t</title><ul><li>a<li>b<ul><li>c</ul></ul>d", ["t", "a", "b", "c", "d"]),
        ("<table><tr><td>a<td>b<tr><td><p>c</table>d<hr>e<b>f</b>", ["a\nb", "c", "d\nef"]),
        ("<math><annotation-xml><div>a</div>b", ["a", "b"]),  # which a parser has to read
    ],
)
def test_blocks_are_paragraphs(markup, paragraphs, tree):
    """Blank lines stand between blocks, also beside loose text."""
    text = read_page(markup, tree=tree).text
    assert [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()] == paragraphs


@pytest.mark.corpus
@pytest.mark.parametrize("corpus", ["installguide_html", "openjdk_html"])
def test_agrees_with_the_corpus(corpus):
    folder = os.environ.get("NEARDUP_CORPORA")
    if folder is None:
        pytest.skip("NEARDUP_CORPORA is not set")
    import pyarrow.parquet as pq

    file = pq.ParquetFile(Path(folder) / f"{corpus}.parquet")
    batch = next(file.iter_batches(200, columns=["text", "html"]))
    for text, html in zip(batch["text"].to_pylist(), batch["html"].to_pylist(), strict=True):
        assert re.findall(r"\w+", visible_text(html)) == re.findall(r"\w+", text)
