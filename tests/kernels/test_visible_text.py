"""Visible text: the tokenizer against html5lib's tests, and pages against what the HTML Standard says of them.

html5lib-tests is looked for beside the folder of corpora that NEARDUP_CORPORA names.
"""

import json
import os
import re
from html.entities import html5
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from neardup_gpu.kernels import visible_text as kernel

BACKENDS = pytest.mark.parametrize("backend", ["reference", "cpu"])


def read(backend, *pages):
    """Return the text of each page and which pages are doubtful, from one call."""
    raw = [page.encode() for page in pages]
    offsets = np.cumsum([0, *map(len, raw)], dtype=np.int64)
    values, ends, doubtful = getattr(kernel, backend)(np.frombuffer(b"".join(raw), np.uint8), offsets)
    texts = [values[start:stop].tobytes().decode() for start, stop in zip(ends[:-1], ends[1:], strict=True)]
    return texts, doubtful.tolist()


def seen(backend, *pages):
    """Return the text of each page, from one call."""
    return read(backend, *pages)[0]


PAGES = {
    # tags and attributes
    "one<b a='>' c=\"<p>\" d=e/>two": "onetwo",
    "a<b x=>b": "ab",
    "a<b =c='>'>'>b": "a'>b",
    "a<b\f/\r/ c>b</b d='>'>c": "abc",
    "a<b 'c>d'>e": "ad'>e",
    "a < b <> <1 </ x>c": "a < b <> <1 c",
    "a</>b</": "ab</",
    "a<": "a<",
    "a<b c='d": "a",
    "<DIV>a</Div>": "\na\n\n",
    # comments and declarations
    "a<!-->b<!--->c<!-- -- - -->d<!--x--!>e": "abcde",
    "a<!--b--!c-->d<!---!>e-->f": "adf",
    "<!doctype html><?php a>b<!x>c<![CDATA[d]]>e": "bce",
    "a<!--b": "a",
    # elements without markup
    "a<script>b</scriptx></SCRIPT >c": "ac",
    "a<script><!--<script></script>b--></script>c": "ac",
    "a<script><!--<script>--></script>b": "ab",
    "a<script><!--></script>b": "ab",
    "a<style></p>b</style>c<iframe><b></iframe>d<noscript>e</noscript>f": "acdf",
    "<title>a<b>&amp;</titl></title>c": "\na<b>&</titl>\n\nc",
    "<textarea>a</textarea/>b<xmp>&lt;<i></xmp>": "\na\n\nb\n\n&lt;<i>\n\n",
    "<noembed><i></noembed>a<plaintext>b</plaintext>&lt;": "<i>ab</plaintext>&lt;",
    "a<title>b": "a\n\nb",
    # character references
    "&amp;lt; &lt &ltx &notit; &notin; &nGt; &bogus; &": "&lt; < <x ¬it; ∉ ≫⃒ &bogus; &",
    "&#65;&#x42&#X43;&#;&#x;&#xg;&#0;&#xD800;&#x110000;": "ABC&#;&#x;&#xg;\ufffd\ufffd\ufffd",
    "&#128;&#x81;&#159;&#00000000000000000000000065;&#99999999999999999999;": "€\x81ŸA\ufffd",
    "&CounterClockwiseContourIntegral;&CounterClockwiseContourIntegra;": "∳&CounterClockwiseContourIntegra;",
    "a\0&am\0p;<title>\0</title>": "a&amp;\n\n\ufffd\n\n",
    # what divides, and what does not
    "a<p>b</p>c<br>d<br/>e</br>f<hr>g</hr>h": "a\n\nb\n\nc\nd\ne\nf\ngh",
    "<table><tr><td>a</td><th>b</table>c": "\n\n\na\nb\n\nc",
    "a<td>b</td><caption>c</table>d": "abcd",
    "<ul><li>a<li>b</ul><span>c</span>d": "\n\na\n\nb\n\ncd",
    # hidden elements
    "a<datalist><option>b</datalist>c<template>d<template>e</template>f</template>g": "acg",
    "a<template>b<datalist>c</template>d</datalist>e": "ade",
    "a<template>b": "a",
    # foreign content
    "a<svg><style>b<g>c</g></style><title>d<b>e</b></title>f</svg>g": "a\n\nde\n\nfg",
    "<svg><p>a<style>b</style>": "\na",
    "<svg><foreignObject><style>a</style>b<svg><style>c</style></svg></foreignObject><style>d<i>e</style>f": "bef",
    "<math><mi><style>a</style></mi><desc><style>b<i>c</style></math>d": "cd",
    "<svg><desc></svg><style>a</style>": "",
    "a<svg><style>b<p>c": "a\n\nc",
    "a<svg><style>b</svg>c<style>d<p>": "ac",
    "a<math><style>b</p>c</style>d": "a\n\ncd",
    "<template><svg><style>a<p>b</template>c": "c",
    "<svg>a</p>b<style>c</style>": "a\n\nb",
    "<svg><script/>a<![CDATA[b<c]]>d\0</svg>e<![CDATA[f]]>": "ab<cd\ufffde",
    "<svg><![CDATA[a]]]>b\0]]": "a]b\ufffd]]",
    "": "",
}


@BACKENDS
def test_pages(backend):
    assert dict(zip(PAGES, seen(backend, *PAGES), strict=True)) == PAGES


CERTAIN = [
    "a<b<p></div></table></svg></template></datalist>",
    "<p>a<br>b<table>c<td>d<style><p></style><script><p></script><noscript><p></noscript>",
    "<p>a<style>b",  # the tokenizer alone hides the rest
    "<svg><style>a</style><script>b</script><title>c &amp; d</title><g><desc>e</desc></g></svg>",
    "<svg><style><![CDATA[ a > b ]]></style></svg><![CDATA[",
    "<svg><foreignObject><div><style><b></style></div></foreignObject></svg>",
    "<svg><g><p>the paragraph ends the drawing<style><b></style>",
    "<math><mi>x</mi><mrow><mtext>y</mtext></mrow></math>",
    "<datalist><option>a</option><option>b</datalist>",
    "<template><div></template><style><b></style><template>a<template></template>b</div></template>",
]
"""Pages whose hidden text ends where the kernel says."""

DOUBTFUL = [
    "<svg><style>a<p>b</p></style>",
    "<svg><style>a",
    "<svg><style/></svg>",
    "<svg><script>a<b></script>",
    "<svg><style><![CDATA[a<b]]></style>",
    "<svg><style><![CDATA[a</style>",
    "<svg><![CDATA[a]]></svg>",
    "<svg><font>a",
    "<svg><noscript>",
    "<svg><iframe>",
    "<svg><template>",
    "<svg><datalist>",
    "<svg><textarea>",
    "<math><annotation-xml>",
    "<div><svg></div>",
    "<table><td><svg></td>",
    "<b><svg></b>",
    "<math><svg></math>",
    "<svg><desc></svg>",
    "<svg><title>a<i>",
    "<math><ms></mrow>",
    "<svg><desc>" * 7,
    "<datalist><p>",
    "<datalist></x>",
    "<datalist><option>",
    "<select><option><datalist></option></datalist>",
    "<svg><foreignObject><![CDATA[",
    "<template>",
    "<template><svg></template>",
    "<frameset>",
]
"""Pages of which a parser may hide less or more."""


@BACKENDS
def test_pages_that_a_tree_may_read_otherwise_are_doubtful(backend):
    doubtful = read(backend, *CERTAIN, *DOUBTFUL)[1]
    assert dict(zip(CERTAIN + DOUBTFUL, doubtful, strict=True)) == dict.fromkeys(CERTAIN, False) | dict.fromkeys(
        DOUBTFUL, True
    )


@BACKENDS
def test_all_named_character_references(backend):
    pages = [f"&{name}" for name in html5]
    assert seen(backend, *pages) == list(html5.values())


@BACKENDS
def test_foreign_content_may_nest_deeper_than_is_kept_apart(backend):
    deep = "<svg><desc>" * 50 + "a" + "</desc></svg>" * 50 + "b<style>c</style>d"
    assert seen(backend, deep) == ["abd"]


HOSTILE = [
    "<",
    "</",
    "<a",
    "<a b='",
    "<!--",
    "<!-- -",
    "&",
    "&#",
    "&a",
    "<svg>",
    "<template>",
    "<script><!--",
    "<title>",
]
HOSTILE += [
    "</a<",
    "<a=",
    "<svg><![CDATA[",
    "]]",
    "<p>",
    "<title></titl",
    "<script></scrip",
    "<style></",
    "<table>",
    "\0",
    "<svg><style>",
    "<svg><style><![CDATA[",
    "<math><mi>",
    "<datalist><option>",
    "<template><svg>",
]


def test_any_page_takes_linear_time():
    """16 times the length takes at most 64 times as long, of what is not measured in microseconds."""

    def taken(part, size):
        text = np.frombuffer((part * (size // len(part))).encode(), np.uint8)
        start = process_time()
        kernel.cpu(text, np.array([0, len(text)], np.int64))
        return process_time() - start

    for part in HOSTILE:
        assert taken(part, 1 << 20) < 64 * taken(part, 1 << 16) + 0.1, part


# ------------------------------------------------------------------------------------------------------ html5lib-tests

MODES = {
    "Data state": "data",
    "PLAINTEXT state": "plaintext",
    "RCDATA state": "rcdata",
    "RAWTEXT state": "raw",
    "Script data state": "script",
    "CDATA section state": "section",
}


def unescaped(value):
    if isinstance(value, str):
        return re.sub(r"\\u([0-9A-Fa-f]{4})", lambda found: chr(int(found[1], 16)), value)
    if isinstance(value, list):
        return [unescaped(each) for each in value]
    return {unescaped(key): unescaped(each) for key, each in value.items()} if isinstance(value, dict) else value


def simplified(tokens):
    """Texts, names of tags, and whether start tags close themselves; no text next to another."""
    found = []
    for token in tokens:
        if token[0] == "Character" and found and found[-1][0] == "Character":
            found[-1] = ("Character", found[-1][1] + token[1])
        elif token[0] == "StartTag":
            found.append(("StartTag", token[1], len(token) > 3))
        elif token[0] in ("EndTag", "Character"):
            found.append(tuple(token[:2]))
    return [token for token in found if token[0] != "Character" or token[1]]


def our_tokens(page, mode, name):
    if mode == "section":
        tokens = kernel.tokens(b"<![CDATA[" + page, foreign=True)
    else:
        tokens = kernel.tokens(page, 0, mode, name or b"\xff")
    words = {"text": "Character", "start": "StartTag", "end": "EndTag", "comment": "Comment"}
    return simplified(
        (words[what], value.decode().replace("\0", "\ufffd" if what != "text" else "\0"), {}, *[True] * closed)
        for (what, value, closed), _ in tokens
    )


def html5lib_tests():
    folder = os.environ.get("NEARDUP_CORPORA")
    folder = folder and Path(folder).parent / "html5lib-tests" / "tokenizer"
    if not folder or not folder.is_dir():
        pytest.skip("there is no html5lib-tests beside the corpora")
    for path in sorted(folder.glob("*.test")):
        for test in json.loads(path.read_text()).get("tests", []):
            if test.get("doubleEscaped"):
                test |= unescaped({"input": test["input"], "output": test["output"]})
            for state in test.get("initialStates", ["Data state"]):
                if state == "Script data state" and test.get("lastStartTag", "script") != "script":
                    continue  # a script ends by no other name
                if re.search("[\ud800-\udfff]", test["input"]) is None:  # UTF-8 has none
                    yield test, MODES[state]


def test_the_tokens_are_those_of_html5lib():
    number = 0
    for test, mode in html5lib_tests():
        number += 1
        page = test["input"].replace("\r\n", "\n").replace("\r", "\n").encode()
        # The tokenizer leaves U+0000 to the tree builder here, which leaves it out of HTML and replaces it in <svg>.
        instead = {"data": "", "section": "\ufffd"}.get(mode, "\0")
        output = [["Character", t[1].replace("\0", instead)] if t[0] == "Character" else t for t in test["output"]]
        assert our_tokens(page, mode, test.get("lastStartTag", "").encode()) == simplified(output), test["description"]
    assert number > 7000


def test_pages_of_html5lib_agree():
    before = {"rcdata": "<title>", "raw": "<xmp>", "script": "a<script>", "plaintext": "<plaintext>", "data": "<svg>"}
    pages = [before.get(mode, "") + test["input"] for test, mode in html5lib_tests()]
    pages += [test["input"] for test, _ in html5lib_tests()]
    assert read("cpu", *pages) == read("reference", *pages)
