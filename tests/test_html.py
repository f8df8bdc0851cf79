"""visible_text: what a reader sees, from any markup whatever."""

import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from neardup_gpu.html import visible_text


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
def test_words(markup, words):
    assert visible_text(markup).split() == words
    assert visible_text(markup.encode()).split() == words


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("<meta charset=windows-1251><p>Привет".encode("cp1251"), ["Привет"]),
        ('<meta http-equiv="Content-Type" content="text/html; charset=shift_jis">日本'.encode("shift_jis"), ["日本"]),
        ("日本".encode(), ["日本"]),
        ("\ufeff日本".encode(), ["日本"]),
        ("<p>日本".encode("utf-16"), ["日本"]),
        (b"<meta charset=nonsense>caf\xc3\xa9", ["café"]),
        (b"<p>caf\xe9", ["caf\ufffd"]),
        ("a\ud800b", ["a\ufffdb"]),
    ],
)
def test_encodings(markup, words):
    assert visible_text(markup).split() == words


@pytest.mark.parametrize("tag", ["<div>", "<ul><li>", "<b>", "<x>", "<table><tr><td>", "<p>", "<font><p>", "<svg>"])
def test_deep_nesting_stays_quick(tag):
    # Unlimited, 100,000 nested <div> take 16 s and a million half an hour.
    start = time.perf_counter()
    text = visible_text(tag * 100_000 + "end")
    assert time.perf_counter() - start < 10
    assert text.split() == ["end"]


@pytest.mark.parametrize("part", ["<a", "<a ", "<a<", "<!", "</a", "<a b='", "<a x=<"])
def test_tags_that_nothing_closes_stay_quick(part):
    # Looking for the end anew from each "<" takes hours for a megabyte.
    assert visible_text("one" + part * ((1 << 20) // len(part))).split() == ["one"]


def test_an_attribute_cannot_hide_a_tag_from_the_limit():
    start = time.perf_counter()
    assert visible_text("<div a=<>" * 100_000 + "end").split() == ["end"]
    assert time.perf_counter() - start < 10


def test_flattening_keeps_words_and_charset():
    page = "<meta charset=windows-1251>" + "<div>слово" * 6000 + "</div>" * 6000 + "конец<script>нет</script>"
    words = visible_text(page.encode("cp1251")).split()
    assert words == ["слово"] * 6000 + ["конец"]


def test_a_page_with_many_tags_is_left_as_it_is():
    rows = "<tr><td>a<b>b</b><td>c</tr>" * 5000
    assert visible_text(f"<table>{rows}</table>").split() == ["ab", "c"] * 5000


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=300), st.text("<>/!-&;pbdiv \n\"'=script", max_size=300)))
def test_any_input_gives_text(markup):
    visible_text(markup).encode()


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
