"""How functions of the compiled modules are called: their arguments are borrowed, and threads take turns.

Numba counts references to an array in each function that is given it, by instructions that other processors wait for:
half of the time of a function for 64 bytes of text. Whoever calls a kernel holds its arrays until it returns, so that
functions need not count. No kernel returns an array that it was given.

Python puts a thread to sleep that finds its global lock taken. On a virtual machine it takes 30 microseconds and more
to wake it, in which another thread computes for a whole text, and then finds the lock taken, too: two threads that
sketch texts would get less done than one. So a thread that comes out of compiled code first takes the turn, by looking
again and again at a word in memory that names the thread whose turn it is; the next word says how often. A thread gives
its turn back when it enters compiled code again, and lets the lock go, and before it waits for others (`_turn.rest`). A
thread that has waited for a while takes the turn nevertheless, so that nobody waits for long for a thread that does
something else.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.boxing import unbox_array
from numba.core.pythonapi import NativeValue, PythonAPI, _unboxers
from numba.core.types import Array

from ._cpu import intrinsic, types
from ._processor import is_x86

_WORD = ir.IntType(64)
_NOBODY = ir.Constant(_WORD, 0)


def change() -> None:
    """Make all functions that this process compiles from now on borrow their arguments, and wait for their turn."""
    _borrow_arrays()
    _wait_for_turns()


def _borrow_arrays() -> None:
    def borrow(kind: Any, array: Any, c: Any) -> NativeValue:
        counted = unbox_array(kind, array, c)
        if c.context.enable_nrt:
            with c.builder.if_then(c.builder.not_(counted.is_error)):
                c.context.nrt.decref(c.builder, kind, counted.value)
        borrowed = c.context.make_array(kind)(c.context, c.builder, value=counted.value)
        borrowed.meminfo = ir.Constant(borrowed.meminfo.type, None)
        return NativeValue(borrowed._getvalue(), is_error=counted.is_error)

    _unboxers.functions[Array] = borrow


def _wait_for_turns() -> None:
    save, restore = PythonAPI.save_thread, PythonAPI.restore_thread

    def save_thread(self: PythonAPI) -> Any:
        state, builder = save(self), self.builder
        me = builder.ptrtoint(state, _WORD)
        builder.cmpxchg(builder.load(_place(builder.module)), me, _NOBODY, "acq_rel", "acquire")
        return state

    def restore_thread(self: PythonAPI, state: Any) -> None:
        builder = self.builder
        turn, me, before = builder.load(_place(builder.module)), builder.ptrtoint(state, _WORD), builder.block
        most = builder.load(builder.gep(turn, [ir.Constant(_WORD, 1)]))
        look, wait, over, taken = (builder.append_basic_block(name) for name in ("look", "wait", "over", "taken"))
        builder.branch(look)
        builder.position_at_end(look)
        tries = builder.phi(_WORD)
        tries.add_incoming(_NOBODY, before)
        exchange = builder.cmpxchg(turn, _NOBODY, me, "acq_rel", "acquire")
        builder.cbranch(builder.extract_value(exchange, 1), taken, wait)
        builder.position_at_end(wait)
        if is_x86():
            pause = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, pause, "llvm.x86.sse2.pause"), [])
        following = builder.add(tries, ir.Constant(_WORD, 1))
        tries.add_incoming(following, wait)
        builder.cbranch(builder.icmp_unsigned("<", following, most), look, over)
        builder.position_at_end(over)
        builder.store_atomic(me, turn, "release", 8)
        builder.branch(taken)
        builder.position_at_end(taken)
        restore(self, state)

    PythonAPI.save_thread, PythonAPI.restore_thread = save_thread, restore_thread


@intrinsic
def _set_place(typingctx, address):
    def codegen(context, builder, signature, args):
        builder.store(builder.inttoptr(args[0], _WORD.as_pointer()), _place(builder.module))
        return context.get_dummy_value()

    return types.none(types.int64), codegen


def use_turn(address):
    """Let a module's functions use the two words at an address, which all modules share."""
    _set_place(address)


def _place(module: Any) -> Any:
    """Return the module's variable that holds the address of the turn: at first, of two words of its own."""
    if "neardup_place" not in module.globals:
        turn = _variable(module, "neardup_turn", ir.Constant(ir.ArrayType(_WORD, 2), [0, 0]))
        _variable(module, "neardup_place", turn.bitcast(_WORD.as_pointer()))
    return module.globals["neardup_place"]


def _variable(module: Any, name: str, value: Any) -> Any:
    made = ir.GlobalVariable(module, value.type, name)
    made.linkage, made.initializer = "linkonce_odr", value
    return made
