"""Masks of the bytes of a page at which its tokenizer has something to do, 64 bytes at a time."""

from ._cpu import intrinsic, ir, types
from ._utf8 import mask_of_block
from ._vectors import Vectors


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
def name_mask(typingctx, array, index):
    """Bit i: array[index + i] ends the name of a tag."""
    return mask_of_block(array, lambda builder, block, text: _among(builder, block, text, "\t\n\f\r />"))


@intrinsic
def attribute_mask(typingctx, array, index):
    """Bit i: array[index + i] ends the name of an attribute."""
    return mask_of_block(array, lambda builder, block, text: _among(builder, block, text, "\t\n\f\r />="))


@intrinsic
def value_mask(typingctx, array, index):
    """Bit i: array[index + i] ends the value of an attribute that has no quotes."""
    return mask_of_block(array, lambda builder, block, text: _among(builder, block, text, "\t\n\f\r >"))


@intrinsic
def byte_mask(typingctx, array, index, byte):
    """Bit i: array[index + i] is this byte."""

    def codegen(context, builder, signature, args):
        block = Vectors(context, builder, 8, 64)
        loaded = block.load(signature.args[0], args[0], args[1])
        wanted = block.splat(builder.trunc(args[2], ir.IntType(8)))
        return block.mask(builder.icmp_unsigned("==", loaded, wanted))

    return types.uint64(array, types.int64, types.int64), codegen
