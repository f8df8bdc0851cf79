"""Visible text: pages of HTML to what a reader sees of them, in one pass and without a tree.

    A page is read as the HTML Standard's tokenizer reads it. Text stays, with its character references replaced; tags,
    comments and declarations go. A newline stands where a tag of a block element or of a cell was, or <br>, <hr> or
    <option>; tags of other elements leave nothing. A block's tag leaves two newlines if the text before it ends without
    one, so that blocks are paragraphs. What <script>, <style>, <noscript>, <iframe>, <noframes>,
    <datalist> and <template> hold is left out.

The tokenizer has to know from the tree that a parser builds whether it is in <svg> or <math>, where <style> holds tags
and <![CDATA[ begins text. So the kernel keeps a part of the tree: a stack of at most `DEEPEST` open <svg>, <math> and
elements within them that hold HTML; the element that hides text; how many tables are open. Where a tag ends foreign
content (<p> in <svg>), it also ends what hides text there.

This part does not always decide where a parser ends foreign content or hidden text. A page is *doubtful*, and the
caller takes its text from a parser's tree, where

- hidden text reaches the end of the page, unless it is that of an element without markup, such as <script>, in HTML;
- an element that hides text holds another tag: <style> or <script> in <svg> or <math> any tag at all, <datalist> any
  tag but <option>;
- in <svg> or <math> stands an end tag of HTML such as </div> or </b>, </template>, an element that hides text or holds
  no markup in HTML (but <style>, <script> and <title> that do not close themselves), <font>, <annotation-xml>, or a
  <![CDATA[ that is shown, holds tags or does not end;
- what holds HTML within them holds a <![CDATA[, or any tag but its own end tag (<foreignObject> may hold tags);
- such an element, <svg> or <math> is not the innermost one when its end tag comes, or `DEEPEST` of them are open;
- <frameset> begins.

Of 36,000 damaged pages, at most one in a thousand loses a word that the tree shows, or shows one that the tree hides
(benchmarks/results/html_mutations.json). The words are those of the tree on each of the 24,025 pages of two corpora, of
manuals and of API documentation; no page is doubtful. What remains are errors of the page:

- Text in a table, but in none of its cells, stays where it is; a parser moves it before the table.
- A block's tag divides words even where a parser ignores it: an end tag such as </div> where no such element is open,
  or <form> in <form>.
- An end tag that ends other elements with it, such as </object> in <object><p>, divides as that tag does, not as those.
- </g>, </switch> and other end tags of <svg> do not end a <foreignObject> that its own end tag does not end.
- In <template>, elements without markup hold none even after <col>, where a parser ignores them.
- Bytes that are not UTF-8 stay, for `tokens` to count; they are replaced before in all that `documents` reads.

Source: HTML Standard, 13.2.5 (tokenization) and 13.2.6.5 (foreign content). Cost: linear in the bytes, whatever they
are: none is read more than a bounded number of times. Text and attributes are passed over 64 bytes at a time, and
documents are read in parallel.

There is no version for a GPU, because the meaning of a byte depends on all bytes before it. A load that hits the
first-level cache takes 30 cycles or more, so at 2 GHz a thread reads at most 60 MB/s. A batch of 32 MiB of API
documentation has 1,300 pages, where an H100 has room for 270,000 threads. The longest page has 0.7 MB in most batches:
this page alone would take 22 ms, and in this time two cores at the measured 0.8 GB/s each read the whole batch. Also,
pages would cross the bus with their markup.
"""

import html.entities
import re

import numpy as np

from . import _html_names as tags
from ._cpu import jit, parallel, shares
from ._html_names import element_slot, hash_on, tables
from ._html_vectors import byte_mask, end_mask, text_mask
from ._ragged import sums_before
from ._utf8 import copy_block, load_word, lower_eight
from ._vectors import trailing_zeros

DEEPEST = 12
"""Elements of foreign content that are kept apart when they nest."""

MOST_GROWN = 3
"""Bytes of text at most for a byte of a page: U+0000 may become U+FFFD."""

# ------------------------------------------------------------------------------------------------------ the definition

_TAG = re.compile(
    rb"<(?P<slash>/?)(?P<name>[A-Za-z][^\t\n\f\r />]*+)"
    rb"(?:[\t\n\f\r ]++|/(?!>)|[^\t\n\f\r />][^\t\n\f\r />=]*+"  # between attributes, or the name of one
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+"
    rb"""(?:"[^"]*+"|'[^']*+'|(?=>)|[^\t\n\f\r >"'][^\t\n\f\r >]*+)|(?![\t\n\f\r ]*+=)))*+"""
    rb"(?P<closed>/?)>"
)
_NO_TAG = re.compile(rb"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:[!?]|/(?=[^A-Za-z]))[^>]*+>?|</?[A-Za-z].*", re.DOTALL)
_REFERENCE = re.compile(rb"&(?:#(?:[xX](?P<hex>[0-9a-fA-F]+)|(?P<decimal>[0-9]+));?|(?P<name>[0-9A-Za-z]+;?))")
_IN_SCRIPT = re.compile(rb"(?=(<!--|-->|</?script[\t\n\f\r />]))", re.IGNORECASE)


def _referred(found):
    """Return what a character reference stands for, or its own bytes if it is not a reference."""
    if found["name"] is None:
        digits, base = (found["hex"], 16) if found["hex"] else (found["decimal"], 10)
        digits = digits.lstrip(b"0")
        number = int(digits or b"0", base) if len(digits) < 9 else 0x110000
        if 128 <= number < 160:
            text = bytes([number]).decode("cp1252", "replace")
            return (chr(number) if text == "\ufffd" else text).encode()
        if number == 0 or number > 0x10FFFF or 0xD800 <= number < 0xE000:
            number = 0xFFFD
        return chr(number).encode()
    name = found["name"].decode()
    for length in range(len(name), 0, -1):
        text = html.entities.html5.get(name[:length])
        if text is not None:
            return text.encode() + name[length:].encode()
    return found[0]


def tokens(page, i=0, mode="data", name=b"", foreign=False):
    """The tokens of a page from i on, until one after which the reader may have to go on in another mode.

    Parameters
    ----------
    page : bytes
    i : int
    mode : str
        "data", "rcdata", "raw", "script" or "plaintext".
    name : bytes
        In "rcdata", "raw" and "script": of the element that its end tag ends.
    foreign : bool
        Whether <![CDATA[ begins text.

    Yields
    ------
    (kind, value, closes itself), i
        ("text", bytes, False), ("comment", bytes, False), ("start", name, bool) or ("end", name, bool), and where the
        token ends. Declarations, and tags that the page ends within, are comments.
    """
    end = len(page)
    if mode == "script":
        escaped = doubly = False
        for found in _IN_SCRIPT.finditer(page, i):
            what = found[1].lower()
            if what == b"<!--":
                escaped = True
            elif what == b"-->":
                escaped = doubly = False
            elif what.startswith(b"</"):
                if not doubly:
                    end = found.start()
                    break
                doubly = False
            else:
                doubly = doubly or escaped
    elif mode in ("rcdata", "raw"):
        found = re.compile(rb"</" + re.escape(name) + rb"(?=[\t\n\f\r />])", re.IGNORECASE).search(page, i)
        end = found.start() if found else end
    if mode != "data":
        held = _REFERENCE.sub(_referred, page[i:end]) if mode == "rcdata" else page[i:end]
        yield ("text", held.replace(b"\0", "\ufffd".encode()), False), end
        i = end
    while i < len(page):
        if page[i] != ord("<"):
            end = page.find(b"<", i)
            end = len(page) if end < 0 else end
            held = _REFERENCE.sub(_referred, page[i:end])
            yield ("text", held.replace(b"\0", "\ufffd".encode() if foreign else b""), False), end
        elif foreign and page.startswith(b"<![CDATA[", i):
            end = page.find(b"]]>", i + 9)
            held = page[i + 9 :] if end < 0 else page[i + 9 : end]
            end = len(page) if end < 0 else end + 3
            yield ("text", held.replace(b"\0", "\ufffd".encode()), False), end
        elif found := _TAG.match(page, i):
            end = found.end()
            yield ("end" if found["slash"] else "start", found["name"].lower(), bool(found["closed"])), end
        elif found := _NO_TAG.match(page, i):
            end = found.end()
            yield ("comment", found[0], False), end
        else:
            end = i + 1
            yield ("text", b"<", False), end
        i = end


def reference(text, offsets):
    """Return the text of each page that a reader sees, straight from the definition.

    Parameters
    ----------
    text : array of uint8, shape (n,)
        UTF-8, one page after another. Bytes that are not UTF-8 stay as they are.
    offsets : array of int64, shape (documents + 1,)

    Returns
    -------
    values : array of uint8
        UTF-8.
    offsets : array of int64, shape (documents + 1,)
        Empty pages have no text.
    doubtful : array of bool, shape (documents,)
        Whether a parser's tree may hide text of the page that is in `values`, or show text that is not.
    """
    values, new_offsets, doubtful = bytearray(), [0], []
    for start, stop in zip(offsets[:-1], offsets[1:], strict=True):
        seen, is_doubtful = _read_page(text[start:stop].tobytes())
        values += seen
        new_offsets.append(len(values))
        doubtful.append(is_doubtful)
    return np.frombuffer(bytes(values), np.uint8), np.array(new_offsets, np.int64), np.array(doubtful, np.bool_)


def _read_page(page):
    """Return the text of a page, and whether a parser's tree may hide or show other text."""
    seen = bytearray()
    hidden, shown = [], 0  # open elements of the name that hides text, and how much was seen before them
    stack = []  # numbers of <svg>, <math> and what holds HTML in them
    num_tables = i = 0
    going, doubtful = True, False
    in_option = False  # whether an <option> is open in the <datalist> that hides text
    mode, name = "data", b""
    while going:
        going = False
        foreign = bool(stack) and stack[-1] in (tags.SVG, tags.MATH)
        for (what, value, closes_itself), end in tokens(page, i, mode, name, foreign):
            if what == "text":
                seen += value
                doubtful |= (
                    page.startswith(b"<![CDATA[", i)
                    and mode == "data"
                    and (not hidden or not page[i:end].endswith(b"]]>") or b"<" in value)
                )
                i = end
                continue
            i = end
            if what == "comment":
                doubtful |= bool(stack) and value.startswith(b"<![CDATA[")
                continue
            going, mode, name = True, "data", value
            kind = tags.CLASS_OF.get(value.decode("latin-1"), 0)
            number, divides = kind >> tags.NUMBER, bool(kind & (tags.STARTS if what == "start" else tags.ENDS))
            ends_hidden = what == "end" and hidden and number == hidden[-1]
            if hidden and hidden[-1] != tags.TEMPLATE and not ends_hidden:
                doubtful |= number != tags.OPTION or (what == "end" and not in_option)
                in_option = what == "start"
            if what == "end" and stack and 0 < number <= tags.LAST_FOREIGN and number != stack[-1]:
                doubtful = True
            if stack and stack[-1] > tags.FOREIGN_OBJECT and not (what == "end" and number == stack[-1]):
                doubtful = True
            if (
                foreign
                and what == "end"
                and (kind & (tags.ENDS | tags.BREAKS_OUT | tags.IN_TABLE) or number == tags.TEMPLATE)
            ):
                doubtful = True
            if foreign and what == "start" and (kind & tags.UNCERTAIN or (kind & tags.HIDES and closes_itself)):
                doubtful = True
            doubtful |= bool(kind & tags.NEEDS_TREE and what == "start")
            leaves = what == "end" and foreign and number == stack[-1]
            if foreign and kind & (tags.BREAKS_OUT if what == "start" else tags.ENDS_FOREIGN):
                while stack and stack[-1] in (tags.SVG, tags.MATH):
                    stack.pop()
                foreign, leaves = False, True
            if leaves and hidden and hidden[-1] < tags.DATALIST:  # an element of foreign content
                del seen[shown:]
                hidden = []
            if (
                kind & (tags.IN_TABLE | tags.TABLE)
                and not num_tables
                and not foreign
                and (kind & tags.IN_TABLE or what == "end")
            ):
                divides = False
            if divides:
                seen += b"\n\n" if kind & tags.PARAGRAPH and seen and seen[-1:] != b"\n" else b"\n"
            if kind & tags.TABLE:
                num_tables = max(0, num_tables + (1 if what == "start" else -1))
            if what == "end":
                if stack and number == stack[-1]:
                    stack.pop()
                if ends_hidden:
                    hidden.pop()
                    if not hidden:
                        del seen[shown:]
                break
            holds_html = kind & tags.INTEGRATES and foreign and (number <= tags.IN_SVG) == (stack[-1] == tags.SVG)
            if (kind & tags.FOREIGN or holds_html) and not closes_itself:
                if len(stack) < DEEPEST:
                    stack.append(number)
                else:
                    doubtful = True
            if (
                kind & tags.HIDES
                and not (foreign and closes_itself)
                and (foreign or not kind & (tags.RAW | tags.SCRIPT))
            ):
                if not hidden:
                    shown, in_option = len(seen), False
                if not hidden or hidden[-1] == number != tags.DATALIST:
                    hidden.append(number)
            elif not foreign:
                modes = {tags.RAW: "raw", tags.RCDATA: "rcdata", tags.SCRIPT: "script", tags.PLAINTEXT: "plaintext"}
                mode = next((mode for flag, mode in modes.items() if kind & flag), "data")
                if kind & tags.HIDES:
                    _, i = next(tokens(page, i, mode, name))
                    mode = "data"
            break
    return (seen[:shown] if hidden else seen), doubtful or bool(hidden)


# ------------------------------------------------------------------------ what the CPU does 64 bytes at a time, or not


@jit()
def _copy_text(text, i, stop, out, at):
    """Copy text up to <, & or U+0000: (where that is, or `stop`, and where the copy ends)."""
    while i + 64 <= len(text) and i < stop:
        mask = text_mask(text, i)
        copy_block(text, i, out, at)
        length = min(trailing_zeros(mask), stop - i)
        i += length
        at += length
        if length < 64:
            return i, at
    while i < stop and text[i] != ord("<") and text[i] != ord("&") and text[i] != 0:
        out[at] = text[i]
        i += 1
        at += 1
    return i, at


@jit()
def _find(text, i, stop, byte):
    """Return the next place of the byte, or `stop`."""
    while i + 64 <= len(text) and i < stop:
        mask = byte_mask(text, i, byte)
        if mask != np.uint64(0):
            return min(i + trailing_zeros(mask), stop)
        i += 64
    while i < stop and text[i] != byte:
        i += 1
    return min(i, stop)


@jit()
def _end(text, i, stop, other, another):
    """Return where the next space, > or one of two other bytes is, or `stop`: the end of a name, or of a value."""
    while i + 64 <= len(text) and i < stop:
        mask = end_mask(text, i, other, another)
        if mask != np.uint64(0):
            return min(i + trailing_zeros(mask), stop)
        i += 64
    while i < stop and not _is_space(text[i]) and text[i] != ord(">") and text[i] != other and text[i] != another:
        i += 1
    return min(i, stop)


@jit()
def _first_bytes(length):
    """The bits of the first bytes of a word, 1 to 8 of them."""
    return np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * length)


@jit()
def _name(text, i, stop):
    """The name text[i:stop] in lower case as two words; zeros where it has more than 16 bytes, none, or U+0000 last."""
    length = stop - i
    if length < 1 or length > 16 or text[stop - 1] == 0:
        return np.uint64(0), np.uint64(0)
    if i + 16 <= len(text):
        low = lower_eight(load_word(text, i)) & _first_bytes(min(length, 8))
        if length <= 8:
            return low, np.uint64(0)
        return low, lower_eight(load_word(text, i + 8)) & _first_bytes(length - 8)
    low, high = np.uint64(0), np.uint64(0)
    for j in range(length):
        byte = np.uint64(_lower(text[i + j]))
        if j < 8:
            low |= byte << np.uint64(8 * j)
        else:
            high |= byte << np.uint64(8 * j - 64)
    return low, high


# -------------------------------------------------------------------------------------------------------- the automaton


@jit()
def _lower(byte):
    return byte | 0x20 if ord("A") <= byte <= ord("Z") else byte


@jit()
def _is_letter(byte):
    return ord("a") <= (byte | 0x20) <= ord("z")


@jit()
def _is_digit(byte):
    return ord("0") <= byte <= ord("9")


@jit()
def _is_space(byte):
    return byte == 32 or (9 <= byte <= 13 and byte != 11)


@jit()
def _digit(byte):
    """Value of a hexadecimal digit; 16 for any other byte."""
    if _is_digit(byte):
        return np.int64(byte) - 48
    small = np.int64(byte) | 0x20
    return small - 87 if 97 <= small <= 102 else 16


@jit()
def _after(text, i, stop, byte):
    """Return the place after the next such byte, or `stop`."""
    return min(_find(text, i, stop, byte) + 1, stop)


@jit()
def _after_spaces(text, i, stop):
    while i < stop and _is_space(text[i]):
        i += 1
    return i


@jit()
def _put_code(out, at, code):
    """Write a code point as UTF-8: where it ends."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | (code >> 6)
        out[at + 1] = 0x80 | (code & 63)
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | (code >> 12)
        out[at + 1] = 0x80 | ((code >> 6) & 63)
        out[at + 2] = 0x80 | (code & 63)
        return at + 3
    out[at] = 0xF0 | (code >> 18)
    out[at + 1] = 0x80 | ((code >> 12) & 63)
    out[at + 2] = 0x80 | ((code >> 6) & 63)
    out[at + 3] = 0x80 | (code & 63)
    return at + 4


@jit()
def _refer(text, i, stop, out, at, references, spelled, windows):
    """Write what the ampersand at i begins: (where the text goes on, where what was written ends)."""
    j = i + 1
    if j < stop and text[j] == ord("#"):
        base = 10
        j += 1
        if j < stop and (text[j] == ord("x") or text[j] == ord("X")):
            base = 16
            j += 1
        first, code = j, 0
        while j < stop and _digit(text[j]) < base:
            code = min(code * base + _digit(text[j]), 0x110000)
            j += 1
        if j > first:
            if j < stop and text[j] == ord(";"):
                j += 1
            if 128 <= code < 160:
                code = windows[code - 128]
            elif code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
                code = 0xFFFD
            return j, _put_code(out, at, code)
    else:
        value = 0
        while j < stop and j <= i + tags.LONGEST and (_is_letter(text[j]) or _is_digit(text[j])):
            value = hash_on(value, text[j])
            j += 1
        found, length = 0, j - i - 1
        if length > 0 and j < stop and text[j] == ord(";"):
            found = _look_up(text, i + 1, length + 1, hash_on(value, ord(";")), references, spelled)
            j += 1
        if found == 0:
            length = min(length, tags.LONGEST_OPEN)
            while length > 1 and found == 0:
                value = 0
                for k in range(length):
                    value = hash_on(value, text[i + 1 + k])
                found = _look_up(text, i + 1, length, value, references, spelled)
                j = i + 1 + length
                length -= 1
        if found != 0:
            place = (found & 0xFFFFF) + ((found >> 20) & 0xFF)
            for k in range(found >> 28):
                out[at + k] = spelled[place + k]
            return j, at + (found >> 28)
    out[at] = ord("&")
    return i + 1, at + 1


@jit()
def _look_up(text, i, length, value, references, spelled):
    """The entry of a name of that hash; 0 if there is none."""
    slot = value & (tags.REFERENCE_SLOTS - 1)
    while references[slot] != 0:
        found = references[slot]
        if (found >> 20) & 0xFF == length:
            place, same = found & 0xFFFFF, 0
            while same < length and spelled[place + same] == text[i + same]:
                same += 1
            if same == length:
                return found
        slot = (slot + 1) & (tags.REFERENCE_SLOTS - 1)
    return np.int64(0)


@jit()
def _class_of(low, high, names, classes):
    """The class of the element of that name; 0 if it has none."""
    slot = element_slot(low, high)
    while classes[slot] != 0:
        if names[2 * slot] == low and names[2 * slot + 1] == high:
            return classes[slot]
        slot = (slot + 1) & (tags.SLOTS - 1)
    return np.int64(0)


@jit()
def _after_attributes(text, i, stop):
    """Return where the tag ends whose name ends at i, whether it closes itself, and the number of its attributes.

    The end is after `stop` if nothing ends the tag.
    """
    closes_itself, attributes = False, 0
    while i < stop:
        byte = text[i]
        if byte == ord(">"):
            return i + 1, closes_itself, attributes
        if byte == ord("/") or _is_space(byte):
            closes_itself = byte == ord("/")
            i += 1
            continue
        closes_itself = False
        attributes += 1
        i = _end(text, i + 1, stop, ord("/"), ord("="))  # an equals sign may begin a name
        value = _after_spaces(text, i, stop)
        if value >= stop or text[value] != ord("="):
            i = value
            continue
        i = _after_spaces(text, value + 1, stop)
        if i < stop and (text[i] == ord('"') or text[i] == ord("'")):
            i = _find(text, i + 1, stop, np.int64(text[i])) + 1
        else:
            i = _end(text, i, stop, ord(">"), ord(">"))
    return stop + 1, closes_itself, attributes


@jit()
def _ends_with(text, i, stop, low, high, length):
    """Whether the name of that length at i is this one, and ends there."""
    j = i + length
    if j >= stop or not (_is_space(text[j]) or text[j] == ord("/") or text[j] == ord(">")):
        return False
    other_low, other_high = _name(text, i, j)
    return other_low == low and other_high == high


@jit()
def _begins_comment(text, i, stop):
    return i + 3 < stop and text[i + 1] == ord("!") and text[i + 2] == ord("-") and text[i + 3] == ord("-")


@jit()
def _after_declaration(text, i, stop):
    """Return the place after a comment, a doctype or the like that begins at i."""
    if not _begins_comment(text, i, stop):
        return _after(text, i + 2, stop, ord(">"))
    j = i + 4
    while j < stop:
        j = _find(text, j, stop, ord(">"))
        if j >= stop:
            break
        if text[j - 1] == ord("-") and text[j - 2] == ord("-"):  # <!--> is whole, and so is <!--->
            return j + 1
        if j >= i + 7 and text[j - 1] == ord("!") and text[j - 2] == ord("-") and text[j - 3] == ord("-"):
            return j + 1
        j += 1
    return stop


@jit()
def _begins_section(text, i, stop):
    """Whether <![CDATA[ is at i."""
    if i + 9 > stop or text[i + 1] != ord("!") or text[i + 2] != ord("[") or text[i + 8] != ord("["):
        return False
    if text[i + 3] != ord("C") or text[i + 4] != ord("D") or text[i + 5] != ord("A"):
        return False
    return text[i + 6] == ord("T") and text[i + 7] == ord("A")


@jit()
def _copy_section(text, i, stop, out, at):
    """Copy the text of the <![CDATA[ that ends at i.

    Returns (where the page goes on, where the copy ends, whether the section ends and holds no tags).
    """
    plain = True
    while i < stop:
        if text[i] == ord("]") and i + 2 < stop and text[i + 1] == ord("]") and text[i + 2] == ord(">"):
            return i + 3, at, plain
        plain = plain and text[i] != ord("<")
        if text[i] == 0:
            at = _put_code(out, at, 0xFFFD)
        else:
            out[at] = text[i]
            at += 1
        i += 1
    return i, at, False


@jit()
def _copy_held(text, i, stop, out, at, low, high, length, refers, references, spelled, windows):
    """Copy what an element without markup holds, up to the end tag of its name; the length 0 if nothing ends it."""
    while True:
        i, at = _copy_text(text, i, stop, out, at)
        if i >= stop:
            return i, at
        if text[i] == 0:
            at = _put_code(out, at, 0xFFFD)
            i += 1
        elif text[i] == ord("&") and refers:
            i, at = _refer(text, i, stop, out, at, references, spelled, windows)
        else:
            closing = length > 0 and text[i] == ord("<") and i + 1 < stop and text[i + 1] == ord("/")
            if closing and _ends_with(text, i + 2, stop, low, high, length):
                return i, at
            out[at] = text[i]
            i += 1
            at += 1


@jit()
def _after_held(text, i, stop, low, high, length):
    """Return where the end tag of an element without markup begins, or `stop`."""
    while True:
        i = _find(text, i, stop, ord("<"))
        if i >= stop:
            return stop
        if i + 1 < stop and text[i + 1] == ord("/") and _ends_with(text, i + 2, stop, low, high, length):
            return i
        i += 1


@jit()
def _after_script(text, i, stop, low, high):
    """Return where the end tag of a script begins, or `stop`; in a comment, <script> may hide one."""
    escaped = doubly = False
    while True:
        if not escaped:
            i = _find(text, i, stop, ord("<"))
        if i >= stop:
            return stop
        if text[i] == ord(">") and escaped and text[i - 1] == ord("-") and text[i - 2] == ord("-"):
            escaped = doubly = False
        elif text[i] == ord("<"):
            if not escaped and _begins_comment(text, i, stop):
                escaped = True
                i += 4
                continue
            if i + 1 < stop and text[i + 1] == ord("/"):
                if _ends_with(text, i + 2, stop, low, high, 6):
                    if not doubly:
                        return i
                    doubly = False
            elif escaped and _ends_with(text, i + 1, stop, low, high, 6):
                doubly = True
        i += 1


@jit()
def _holds_html(kind, top):
    """Whether an element of this class holds HTML in an element with the number `top`."""
    number = kind >> tags.NUMBER
    return kind & tags.INTEGRATES != 0 and 0 < top <= tags.MATH and (number <= tags.IN_SVG) == (top == tags.SVG)


@jit()
def _broken_out(stack):
    """The stack without the <svg> and <math> on top of it. A number takes five bits, the one on top the lowest."""
    while stack & 31 == tags.SVG or stack & 31 == tags.MATH:
        stack >>= 5
    return stack


@jit()
def _needs_tree(kind, closing, closes_itself, top, hidden):
    """Return whether a parser may end foreign content or hidden text elsewhere because of this tag.

    `top` is the number on top of the stack, and `hidden` is as in `_visible`.
    """
    number, hider = kind >> tags.NUMBER, hidden & 31
    foreign = top in (tags.SVG, tags.MATH)
    in_option = hidden != hider  # of a <datalist>
    if (
        hider not in (0, tags.TEMPLATE)
        and not (closing and number == hider)
        and (number != tags.OPTION or (closing and not in_option))
    ):
        return True
    if top > tags.FOREIGN_OBJECT and not (closing and number == top):
        return True
    if closing:
        if 0 < number <= tags.LAST_FOREIGN and top != 0 and number != top:
            return True
        return foreign and (kind & (tags.ENDS | tags.BREAKS_OUT | tags.IN_TABLE) != 0 or number == tags.TEMPLATE)
    if foreign and (kind & tags.UNCERTAIN != 0 or (kind & tags.HIDES != 0 and closes_itself)):
        return True
    return kind & tags.NEEDS_TREE != 0


@jit()
def _visible(text, i, stop, out, at, names, classes, references, spelled, windows):
    """Write the text of the page text[i:stop] to out[at:]: (where it ends, whether a tree may have other text)."""
    hidden = 0  # number of the element that hides text; from bit 5 on, how many <template> or <option> are open in it
    shown = stack = tables = 0  # where the text ended before it; numbers of open elements; how many tables are open
    first, doubtful = at, False
    while True:
        i, at = _copy_text(text, i, stop, out, at)
        if i >= stop:
            break
        foreign = stack & 31 == tags.SVG or stack & 31 == tags.MATH
        if text[i] != ord("<"):
            if text[i] == ord("&"):
                i, at = _refer(text, i, stop, out, at, references, spelled, windows)
            else:
                if foreign:
                    at = _put_code(out, at, 0xFFFD)
                i += 1
            continue
        following = np.int64(text[i + 1]) if i + 1 < stop else 0
        start, closing = i + 1, False
        if following == ord("/") and i + 2 < stop:
            start, closing = i + 2, True
            following = np.int64(text[i + 2])
            if not _is_letter(following):
                i = _after(text, start, stop, ord(">"))
                continue
        if not _is_letter(following):
            if following == ord("!") and foreign and _begins_section(text, i, stop):
                i, at, plain = _copy_section(text, i + 9, stop, out, at)
                doubtful = doubtful or not plain or hidden == 0
            elif following == ord("!") or following == ord("?"):
                doubtful = doubtful or (stack != 0 and _begins_section(text, i, stop))
                i = _after_declaration(text, i, stop)
            else:
                out[at] = ord("<")
                i += 1
                at += 1
            continue
        end = _end(text, start, stop, ord("/"), ord("/"))
        low, high = _name(text, start, end)
        kind = _class_of(low, high, names, classes)
        i, closes_itself, _ = _after_attributes(text, end, stop)
        if i > stop:
            break
        if kind == 0 and hidden == 0 and stack == 0:
            continue
        if hidden != 0 or stack != 0 or kind & tags.NEEDS_TREE != 0:
            doubtful = doubtful or _needs_tree(kind, closing, closes_itself, stack & 31, hidden)
            if kind >> tags.NUMBER == tags.OPTION and hidden & 31 == tags.DATALIST:
                hidden = tags.DATALIST if closing else tags.DATALIST | 32
        number, divides = kind >> tags.NUMBER, kind & (tags.ENDS if closing else tags.STARTS) != 0
        leaves = closing and foreign and number == stack & 31
        if foreign and kind & (tags.ENDS_FOREIGN if closing else tags.BREAKS_OUT) != 0:
            stack, foreign, leaves = _broken_out(stack), False, True
        if leaves and 0 < hidden & 31 < tags.DATALIST:  # an element of foreign content
            hidden, at = 0, shown
        if (
            kind & (tags.IN_TABLE | tags.TABLE) != 0
            and tables == 0
            and not foreign
            and (kind & tags.IN_TABLE != 0 or closing)
        ):
            divides = False
        if divides:
            for _ in range(2 if kind & tags.PARAGRAPH != 0 and at > first and out[at - 1] != ord("\n") else 1):
                out[at] = ord("\n")
                at += 1
        if kind & tags.OWN == 0:
            continue
        if kind & tags.TABLE != 0:
            tables = max(0, tables - 1) if closing else tables + 1
        if closing:
            if number != 0 and stack & 31 == number:
                stack >>= 5
            if hidden != 0 and number == hidden & 31:
                hidden = 0 if number == tags.DATALIST else max(0, hidden - 32)
                at = shown if hidden == 0 else at
            continue
        if (kind & tags.FOREIGN != 0 or _holds_html(kind, stack & 31)) and not closes_itself:
            if stack >> 5 * (DEEPEST - 1) == 0:
                stack = stack << 5 | number
            else:
                doubtful = True
        if kind & tags.HIDES != 0 and (foreign or kind & (tags.RAW | tags.SCRIPT) == 0):
            if not (foreign and closes_itself):
                if hidden == 0:
                    hidden, shown = number, at
                elif hidden & 31 == number and number != tags.DATALIST:
                    hidden += 32
        elif not foreign and kind & tags.HIDES != 0:
            if kind & tags.SCRIPT != 0:
                i = _after_script(text, i, stop, low, high)
            else:
                i = _after_held(text, i, stop, low, high, end - start)
        elif not foreign and kind & (tags.RAW | tags.RCDATA | tags.PLAINTEXT) != 0:
            length = 0 if kind & tags.PLAINTEXT != 0 else end - start
            refers = kind & tags.RCDATA != 0
            i, at = _copy_held(text, i, stop, out, at, low, high, length, refers, references, spelled, windows)
    return (shown if hidden != 0 else at), doubtful or hidden != 0


@parallel(
    "uint8[::1], int64[::1], int64[::1], uint8[::1], int64[::1], boolean[::1], uint64[::1], int64[::1], "
    "int64[::1], uint8[::1], int64[::1]"
)
def _fill(lower, upper, text, offsets, bounds, room, lengths, doubtful, names, classes, references, spelled, windows):
    """Write the text of each run of documents to its own place in `room`, its lengths and which pages are doubtful."""
    for part in range(lower, upper):
        at = _place(offsets, bounds, part)
        for d in range(bounds[part], bounds[part + 1]):
            begin = at
            at, doubtful[d] = _visible(
                text, offsets[d], offsets[d + 1], room, at, names, classes, references, spelled, windows
            )  # fmt: skip
            lengths[d] = at - begin


@jit()
def _place(offsets, bounds, part):
    """Return where the text of a run of documents is written. It may grow, and 64 bytes after it are overwritten."""
    return MOST_GROWN * (offsets[bounds[part]] - offsets[0]) + 64 * part


@parallel("int64[::1], int64[::1], uint8[::1], int64[::1], uint8[::1]")
def _gather(begin, end, offsets, bounds, room, new_offsets, values):
    for part in range(begin, end):
        start, stop = new_offsets[bounds[part]], new_offsets[bounds[part + 1]]
        place = _place(offsets, bounds, part)
        values[start:stop] = room[place : place + stop - start]


def cpu(text, offsets):
    """As `reference`; documents in parallel, and 64 bytes at a time outside the names of tags."""
    bounds = shares(offsets)
    room = np.empty(MOST_GROWN * int(offsets[-1] - offsets[0]) + 64 * len(bounds), np.uint8)  # touched as it is filled
    lengths, doubtful = np.empty(len(offsets) - 1, np.int64), np.empty(len(offsets) - 1, np.bool_)
    _fill(len(bounds) - 1, text, offsets, bounds, room, lengths, doubtful, *tables())
    new_offsets = sums_before(lengths)
    values = np.empty(new_offsets[-1], np.uint8)
    _gather(len(bounds) - 1, offsets, bounds, room, new_offsets, values)
    return values, new_offsets, doubtful
