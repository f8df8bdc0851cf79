"""Masks of the bytes of a page at which its tokenizer has something to do, 64 bytes at a time."""

from ._cpu import intrinsic
from ._utf8 import mask_of_block


def _among(builder, block, text, characters):
    """Whether each byte is one of some characters."""
    found = [builder.icmp_unsigned("==", text, block.constant(ord(each))) for each in characters]
    while len(found) > 1:
        found.append(builder.or_(found.pop(0), found.pop(0)))
    return found[0]


@intrinsic
def text_mask(typingctx, array, index):
    """Return a mask of 64 bits: bit i is set if array[index + i] is <, & or U+0000."""
    return mask_of_block(array, lambda builder, block, text: _among(builder, block, text, "<&\0"))


@intrinsic
def end_mask(typingctx, array, index, other, another):
    """Bit i: array[index + i] is a space, >, or one of two other bytes."""

    def emit(builder, block, text, *others):
        found = _among(builder, block, text, "\t\n\f\r >")
        for each in others:
            found = builder.or_(found, builder.icmp_unsigned("==", text, each))
        return found

    return mask_of_block(array, emit, 2)


@intrinsic
def byte_mask(typingctx, array, index, byte):
    """Bit i: array[index + i] is this byte."""
    return mask_of_block(array, lambda builder, block, text, byte: builder.icmp_unsigned("==", text, byte), 1)
