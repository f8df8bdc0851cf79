"""LLVM code for what Numba has no words for: vectors of integers, counts of bits in one instruction, and copies.

An intrinsic makes a `Vectors` of its own width and lanes, which emits loads, stores and constants; arithmetic between
them is the builder's.
"""

from ._cpu import intrinsic, ir, types


class Vectors:
    """Emits code for vectors of integers that lie one after another in arrays, at any multiple of an integer's size.

    Parameters
    ----------
    context, builder
        As an intrinsic's code generator is given them.
    bits : int
        Of each integer.
    lanes : int
        Integers in a vector. LLVM divides it among as many registers as the processor needs.
    """

    def __init__(self, context, builder, bits, lanes):
        self.context, self.builder, self.lanes = context, builder, lanes
        self.integer = ir.IntType(bits)
        self.type = ir.VectorType(self.integer, lanes)

    def load(self, kind, array, index):
        """array[index:index + lanes], of an array of Numba's type `kind`."""
        return self.builder.load(self._address(kind, array, index), align=self.integer.width // 8)

    def store(self, vector, kind, array, index):
        """array[index:index + lanes] = vector"""
        self.builder.store(vector, self._address(kind, array, index), align=self.integer.width // 8)

    def constant(self, value):
        """The same known integer in every lane."""
        return ir.Constant(self.type, [value] * self.lanes)

    def splat(self, integer):
        """The same computed integer in every lane."""
        undefined = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(undefined, integer, ir.IntType(32)(0))
        return self.shuffle(first, undefined, [0] * self.lanes)

    def shuffle(self, a, b, numbers):
        """Select lanes by their numbers: `a` has the numbers from 0 on, then `b`."""
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), numbers))

    def mask(self, condition):
        """An integer whose bit i says whether a condition holds in lane i."""
        return self.builder.bitcast(condition, ir.IntType(self.lanes))

    def _address(self, kind, array, index):
        data = self.context.make_array(kind)(self.context, self.builder, array).data
        return self.builder.bitcast(self.builder.gep(data, [index]), self.type.as_pointer())


@intrinsic
def trailing_zeros(typingctx, value):
    """Position of the lowest set bit of a uint64; 64 for 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.int64(types.uint64), codegen


@intrinsic
def population(typingctx, value):
    """Number of set bits of a uint64."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def copy_bytes(typingctx, target, place, source, begin, size):
    """target[place:place + size] = source[begin:begin + size], for arrays of bytes that do not overlap."""

    def codegen(context, builder, signature, args):
        def address(number):
            array = context.make_array(signature.args[number])(context, builder, args[number])
            return builder.gep(array.data, [args[number + 1]])

        to = address(0)
        copy = builder.module.declare_intrinsic("llvm.memcpy", [to.type, to.type, ir.IntType(64)])
        builder.call(copy, [to, address(2), args[4], ir.IntType(1)(0)])
        return context.get_dummy_value()

    return types.none(target, types.int64, source, types.int64, types.int64), codegen
