"""Tokens of source code by eye, and comments of 20 languages beside those that pygments finds."""

import re

import numpy as np
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment

from neardup_gpu.kernels import code
from neardup_gpu.text import comments, languages

pytestmark = pytest.mark.quick

Q = np.uint64(0x1234_5678_9ABC_DEF1 | 1 << 63)
BOTH = pytest.mark.parametrize("function", [code.reference, code.cpu], ids=["reference", "cpu"])
NUMBERS = {"": comments.UNKNOWN, **{language: number for number, language in enumerate(comments.RULES, 1)}}

SAMPLES = {
    "c": "int a = '\"'; // it's \\\n  still \"here\"\nchar *s = \"/* no */ // \\\" no\"; /* it's */ b; c = '\\'';",
    "cpp": 'auto s = R"(" // no)"; int n = 1\'000\'000; // yes\nchar c = \'"\'; /* " */ f("//");',
    "csharp": 'var a = @"c:\\"; // yes\nvar b = "\\"//"; char c = \'\\\'\'; /* \' */ d();',
    "css": 'a { content: "/* no */" } /* it\'s "here" */ b { color: red; }',
    "dart": "var a = \"//\"; /* one */ b = ''' // no\n\"'''; // yes\nc();",
    "go": "a := `\\`; b := \"//\" // yes\nc := '\"' /* it's */ + d",
    "java": 'String a = "/*"; char b = \'"\'; // it\'s\nString c = """\n // no " \n"""; /** doc " */ d();',
    "javascript": "#!/usr/bin/env node\nlet a = '//', b = `/* ${c} */ \\` '`; // it's\nd(\"\\\"//\"); /* ` */ e();",
    "kotlin": 'val a = """ // no """; val b = "//" // yes\nval c = \'"\' /* one */ + d',
    "lua": 'a = [[ -- no ]] -- yes\n--[[ it\'s\n here ]] b = "--" --[==[ ]] ]==] c = [=[ ]] -- ]=]',
    "php": "<p>it's // # here</p><?php $a = '//'; # it's\n$b = \"/*\"; // yes\n/* ' */ c(); ?> don't <?php d();",
    "python": "a = '#' # it's\nb = '''\n# no '\"'''\nc = r'\\'#' # yes\nd = \"\\\"#\"",
    "r": "a <- '#' # it's\nb <- \"it's # no\n# no\" # yes\n`c # d` <- e",
    "ruby": 'a = \'#\' # it\'s\n=begin\n it\'s "here"\n=end\nb = "\\"#" # yes\nc',
    "rust": "fn f<'a>(b: &'a str) -> char { // it's\n '\"' } let c = r#\"\\\"#; /* 1 /* 2 */ 3 */ let d = \"//\";",
    "scala": 'val a = """\\"""; val b = "//" // it\'s\nval c = \'"\' /* one /* two */ still */ + d',
    "shell": "a='#' # it's\necho b#c \"\\\"#\" ${d#e} it\\'s # yes\necho $'\\'#' ;# yes\nf",
    "sql": "select '--', 'it''s' -- it's\nfrom \"a--b\" /* ' */ where c = 1",
    "swift": 'let a = "//" // it\'s\nlet b = """\n// no "\n""" /* one /* two */ still */ + c',
    "typescript": "let a: string = '//'; // it's\nlet b = `/*`; /* ' */ c<D>(e);",
}
"""Text of each language, with quotes in comments and signs of comments in strings.

pygments does not nest the comments of Dart and Kotlin, and lets a backslash escape a quote in raw strings of Kotlin.
"""

LEXERS = {"shell": "bash"}
"""What pygments calls languages that it does not call so."""


def run(function, text, language="", places=False):
    raw = text if isinstance(text, bytes) else text.encode()
    data, offsets = np.frombuffer(raw, np.uint8), np.array([0, len(raw)])
    return function(data, offsets, Q, np.array([NUMBERS[language]], np.uint8), *comments.table(), places)


def tokens(function, text, language=""):
    """Return the bytes of the tokens, by their places."""
    raw = text if isinstance(text, bytes) else text.encode()
    *_, begins, ends = run(function, text, language, True)
    return [raw[begin:end].decode("utf-8", "replace") for begin, end in zip(begins, ends, strict=True)]


def by_pygments(text, language):
    """Return the tokens of a text without the comments that pygments finds."""
    lexer = get_lexer_by_name(LEXERS.get(language, language), stripnl=False, ensurenl=False)
    parts = [
        " " if kind in Comment and kind not in Comment.Preproc else value for kind, value in lexer.get_tokens(text)
    ]
    return re.findall(r"[0-9A-Za-z_\x80-\U0010ffff]+|[!-~]", "".join(parts))


@BOTH
def test_identifiers_numbers_and_operators_are_tokens(function):
    assert tokens(function, "Foo_1 +=bär(2.5);\n\t") == ["Foo_1", "+", "=", "bär", "(", "2", ".", "5", ")", ";"]


@BOTH
def test_case_is_kept_and_nothing_is_decomposed(function):
    values, *_ = run(function, "foo Foo é e\u0301 foo")
    assert len(set(values.tolist())) == 4 and values[0] == values[-1]


@BOTH
def test_comments_of_an_unknown_language_are_code(function):
    assert tokens(function, "a # b") == ["a", "#", "b"]
    assert tokens(function, "a # b", "python") == ["a"]


@BOTH
def test_a_border_divides_and_is_no_token(function):
    assert tokens(function, b"a\xed\xb0\x80\nb\xed\xb0\x80") == ["a", "b"]
    assert len(run(function, b"\xed\xb0\x80\n\xed\xb0\x80")[0]) == 0


@BOTH
def test_bytes_that_are_not_utf8_are_counted_and_kept(function):
    values, _, invalid = run(function, b"caf\xe9 caf\xe8 // \xff", "c")
    assert (len(values), len(set(values.tolist())), invalid) == (2, 2, 3)


@BOTH
def test_comments_and_strings_that_do_not_end(function):
    assert tokens(function, "a /* b", "c") == ["a"]
    assert tokens(function, "a '''b # c", "python") == ["a", "'", "'", "'", "b", "#", "c"]
    assert tokens(function, "a 'b\nc # d", "python") == ["a", "'", "b", "c"]
    assert tokens(function, 'a "b\\', "python") == ["a", '"', "b", "\\"]


@BOTH
def test_nested_comments_and_raw_strings(function):
    assert tokens(function, "a /* b /* c */ d */ e", "dart") == ["a", "e"]
    assert tokens(function, 'a """\\""" // b', "kotlin") == ["a", *'"""\\"""']


def test_there_are_twenty_languages():
    assert tuple(comments.RULES) == languages.LANGUAGES == tuple(SAMPLES) and len(SAMPLES) == 20


@BOTH
@pytest.mark.parametrize("language", SAMPLES)
def test_comments_are_those_of_pygments(function, language):
    assert tokens(function, SAMPLES[language], language) == by_pygments(SAMPLES[language], language)


PIECES = {
    "python": ["#", "'", '"', '"""', "'''", "\\\\", "\n", "a", "1", " ", "\\'"],
    "java": ["//", "/*", "*/", '"', "\\\\", "\n", "'a'", "'\\''", "a", "1", " "],
    "css": ["/*", "*/", "a", "{", "}", ":", ";", " ", "\n", "1"],
    "sql": ["--", "/*", "*/", "'", "\n", "a", "1", " ", ","],
}


@pytest.mark.parametrize("language", PIECES)
@settings(max_examples=fewer(100), deadline=None)
@given(data=st.data())
def test_closed_comments_and_strings_in_any_order(language, data):
    """Whole comments and strings, whose contents are signs of other ones, between words."""
    inside = st.lists(st.sampled_from(["a", " ", *PIECES[language]]), max_size=4).map("".join)
    parts = []
    for _ in range(data.draw(st.integers(1, 5))):
        opening, closing, flags = data.draw(st.sampled_from(comments.RULES[language]))
        content = data.draw(inside)
        for sign in filter(None, (closing, opening, "'", '"', "\\", *("\n\r" if flags & comments.LINE else ""))):
            content = content.replace(sign, "")
        if not flags & comments.LETTER and content.replace("*/", "").replace("/*", "") == content:
            parts.append(f"x{opening} {content} {closing or chr(10)} y ")
    text = "".join(parts) + "z"
    assert tokens(code.cpu, text, language) == by_pygments(text, language)


@pytest.mark.parametrize(
    ("name", "language"),
    [("a/b.py", "python"), ("B.JAVA", "java"), ("x.tar.gz", None), ("x.c.gz", "c"), ("Makefile", None), ("c", None)],
)
def test_the_language_of_a_file(name, language):
    assert languages.language_of(name) == language


def test_the_languages_of_documents():
    named = comments.numbers_of(["a.py", 3, None, "b.rs", "c"], None, 5)
    assert named.tolist() == [NUMBERS["python"], 0, 0, NUMBERS["rust"], 0]
    assert comments.numbers_of(["a.py"], "go", 1).tolist() == [NUMBERS["go"]]
    assert comments.numbers_of(None, None, 2).tolist() == [0, 0]
