"""Take arrays and columns of other libraries, and give ours to them. Nothing is copied or moved to another device.

There are three protocols. The public functions accept objects that speak one of them:

``__dlpack__``                  an array of numbers: PyTorch, JAX, CuPy, NumPy
``__cuda_array_interface__``    an array of numbers on a GPU: Numba, CuPy, numeric cuDF Series
``__arrow_c_device_array__``    a column of strings or of lists of numbers: pylibcudf, pyarrow, `Ragged`, cuDF's Series

Work that the owner of an array has begun on its own CUDA stream is waited for: by the current stream of CuPy for DLPack
and Arrow, by the host for the CUDA array interface, as CuPy does.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from neardup_gpu.kernels import _launch
from neardup_gpu.kernels._ragged import sums_before

from .errors import ArgumentTypeError, NeardupError, ParameterError

CPU = 1
HOST = (CPU, 3)
"""Devices of DLPack and Arrow whose memory the host reads: the CPU's, and page-locked memory of the host."""

CUDA = (2, 13)
"""Devices whose memory a GPU of NVIDIA reads: its own memory, and managed memory."""

NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8", "f": "f4", "g": "f8"}
"""NumPy's types of numbers, by Arrow's letters for them."""

OFFSETS = {"u": "i4", "z": "i4", "+l": "i4", "U": "i8", "Z": "i8", "+L": "i8"}
"""Types of offsets, by Arrow's letters for strings, binaries and lists."""


# ------------------------------------------------------------------------------------------------------------ arrays


def array(name: str, value: Any) -> Any:
    """Return the array of an object that speaks DLPack or the CUDA array interface, or None if it speaks neither.

    The result is CuPy's if the memory is a GPU's. An object whose memory is the host's, and that NumPy can read, is
    left to NumPy: the result is None.
    """
    try:
        speaks = hasattr(value, "__dlpack__")
        where = int(value.__dlpack_device__()[0]) if speaks else None
        if where in HOST:
            return None if hasattr(value, "__array__") else np.from_dlpack(value)
        if not speaks and not hasattr(value, "__cuda_array_interface__"):
            return None
        if speaks and where not in CUDA:
            raise ParameterError(
                f"{name}: an array on a device of type {where} of DLPack; give one of NVIDIA's", parameter=name
            )
        xp = _launch.namespace()
        if isinstance(value, xp.ndarray):
            return _of_this_device(name, value)
        return _of_this_device(name, xp.from_dlpack(value) if speaks else xp.asarray(value))
    except NeardupError:
        raise
    except Exception as error:  # whatever class exports itself may raise any exception
        raise ArgumentTypeError(f"{name}: {_why_not(value, error)}", parameter=name) from None


def _why_not(value: Any, error: Exception) -> str:
    return f"{type(value).__name__} cannot be read as an array ({' '.join(str(error).split()) or type(error).__name__})"


def _of_this_device(name: str, found: Any) -> Any:
    """Return an array of CuPy after checking that its memory is on the current device."""
    if _launch.simulated() or not found.size:
        return found
    import cupy

    memory, current = cupy.cuda.runtime.pointerGetAttributes(found.data.ptr), _launch.current_device()
    if memory.type == 0:  # CUDA does not know the address
        raise ParameterError(f"{name}: the array's memory is not a GPU's; has it been freed?", parameter=name)
    if memory.device != current:
        raise ParameterError(
            f"{name}: the array is on device {memory.device}, but device {current} is the current one; "
            f"copy it there, or call this within `with cupy.cuda.Device({memory.device}):`",
            parameter=name,
        )
    return found


# ----------------------------------------------------------------------------------------------------------- columns


class Schema(ctypes.Structure):
    """Arrow's `ArrowSchema`: the type of a column."""


class Column(ctypes.Structure):
    """Arrow's `ArrowArray`: the length and the buffers of a column."""


class DeviceColumn(ctypes.Structure):
    """Arrow's `ArrowDeviceArray`: a column, its device, and the event after which it may be read."""


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
Column._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Column))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
DeviceColumn._fields_ = [
    ("array", Column),
    ("device_id", ctypes.c_int64),
    ("device_type", ctypes.c_int32),
    ("sync_event", ctypes.c_void_p),
    ("reserved", ctypes.c_int64 * 3),
]


def is_column(value: Any) -> bool:
    """Return whether an object speaks Arrow's device interface, or is a Series of cuDF, whose column does."""
    return hasattr(value, "__arrow_c_device_array__") or hasattr(value, "to_pylibcudf")


def on_gpu(value: Any) -> bool:
    """Return whether an object is a column in the memory of a GPU."""
    return hasattr(value, "to_pylibcudf") or (is_column(value) and _exported("", value)[1].device_type not in HOST)


def rows(name: str, value: Any) -> tuple[Any, Any]:
    """Return the values and the offsets of a column of strings, binaries or lists of numbers; nulls are empty rows."""
    schema, column, owner = _exported(name, value)
    kind = (schema.format or b"").decode()
    if schema.dictionary or kind not in OFFSETS:
        what = "a dictionary" if schema.dictionary else f"an array of format {kind!r}"
        raise ArgumentTypeError(
            f"{name}: {what} of Arrow; give an array of strings or of lists of numbers", parameter=name
        )
    memory, array, of_offsets = _ColumnMemory(name, column, owner), column.array, np.dtype(OFFSETS[kind])
    if array.length:
        found = memory.read(array.buffers[1], array.offset, array.length + 1, of_offsets)
        offsets = found.astype(np.int64, copy=False)
    else:
        offsets = memory.module.zeros(1, np.int64)
    end = int(offsets[-1])
    if not kind.startswith("+"):
        return _without_nulls(memory, array, memory.read(array.buffers[2], 0, end, np.dtype(np.uint8)), offsets)
    inner, letter = array.children[0].contents, schema.children[0].contents.format or b""
    if letter.decode() not in NUMBERS or inner.null_count > 0:
        what = "lists with nulls among their values" if letter.decode() in NUMBERS else "lists of other things"
        raise ArgumentTypeError(f"{name}: {what}; give lists of numbers", parameter=name)
    if end > inner.length:
        raise ParameterError(
            f"{name}: the offsets end at {end:,}, but there are {inner.length:,} values", parameter=name
        )
    values = memory.read(inner.buffers[1], inner.offset, end, np.dtype(NUMBERS[letter.decode()]))
    return _without_nulls(memory, array, values, offsets)


def _without_nulls(memory: _ColumnMemory, array: Any, values: Any, offsets: Any) -> tuple[Any, Any]:
    """Return the values and the offsets of rows; null rows, which may have values in Arrow, become empty."""
    if array.null_count == 0 or array.length == 0 or not array.buffers[0]:
        return values, offsets
    xp = memory.module
    first = array.offset // 8
    bits = memory.read(array.buffers[0], first, -(-(array.offset + array.length) // 8) - first, np.dtype(np.uint8))
    valid = xp.unpackbits(bits, bitorder="little")[array.offset % 8 :][: array.length].astype(bool)
    sizes = offsets[1:] - offsets[:-1]
    if not ((sizes > 0) & ~valid).any():
        return values, offsets
    of_row = xp.searchsorted(offsets, xp.arange(int(offsets[0]), len(values)), side="right") - 1
    return values[int(offsets[0]) :][valid[of_row]], sums_before(xp.where(valid, sizes, 0))


def _exported(name: str, value: Any) -> tuple[Any, Any, Any]:
    """Return the type and the column that an object exports, and what keeps them alive."""
    try:
        if not hasattr(value, "__arrow_c_device_array__"):
            value = value.to_pylibcudf()[0]
        capsules = value.__arrow_c_device_array__()
        kinds = ((Schema, b"arrow_schema"), (DeviceColumn, b"arrow_device_array"))
        found = [kind.from_address(pointer_in(held, of)) for held, (kind, of) in zip(capsules, kinds, strict=True)]
    except Exception as error:  # whatever class exports itself may raise any exception
        raise ArgumentTypeError(f"{name}: {_why_not(value, error)}", parameter=name) from None
    return found[0], found[1], (value, capsules)


def pointer_in(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name))


class _ColumnMemory:
    """The memory of an exported column: reads buffers of it as arrays, where they are."""

    def __init__(self, name: str, column: Any, owner: Any) -> None:
        self.name, self.owner, self.on_host = name, owner, column.device_type in HOST
        if not self.on_host and column.device_type not in CUDA:
            raise ParameterError(
                f"{name}: a column on a device of type {column.device_type} of Arrow; give one of NVIDIA's",
                parameter=name,
            )
        self.module = np if self.on_host else _launch.namespace()
        if column.sync_event and not self.on_host and not _launch.simulated():
            import cupy

            event = ctypes.c_void_p.from_address(column.sync_event).value
            cupy.cuda.runtime.streamWaitEvent(cupy.cuda.get_current_stream().ptr, event)

    def read(self, address: int | None, first: int, length: int, dtype: np.dtype) -> Any:
        """Return `length` numbers of a buffer from its number `first` on."""
        if length <= 0 or not address:
            if length > 0:
                raise ParameterError(
                    f"{self.name}: a buffer is missing; has the column been freed?", parameter=self.name
                )
            return self.module.empty(0, dtype)
        buffer = _Buffer(address + first * dtype.itemsize, length, dtype, self.owner, self.on_host)
        if self.on_host:
            return np.asarray(buffer)
        return _of_this_device(self.name, self.module.asarray(buffer))


class _Buffer:
    """A buffer as NumPy and CuPy read it, by their array interfaces; it keeps the owner alive."""

    def __init__(self, address: int, length: int, dtype: np.dtype, owner: Any, read_only: bool) -> None:
        self.owner = owner
        described = {"shape": (length,), "typestr": dtype.str, "data": (address, read_only), "version": 3}
        self.__array_interface__ = self.__cuda_array_interface__ = described


# ------------------------------------------------------------------------------------------------------------ export


def export(values: Any, offsets: Any, requested_schema: Any = None) -> tuple[Any, Any]:
    """Return rows as the two capsules of Arrow's device interface: a large list of numbers, which is not copied.

    A GPU's memory is freed after the receiver of the capsules has released the column. pyarrow makes the structures
    and later releases them; the offsets and the device, which it would read, are entered afterwards.
    """
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        inner = pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)], 0)
        buffers = [None, pa.py_buffer(offsets)]
        column = pa.Array.from_buffers(pa.large_list(inner.type), len(offsets) - 1, buffers, 0, children=[inner])
        return column.__arrow_c_device_array__(requested_schema)
    event, recorded = ctypes.c_void_p(), None
    if not _launch.simulated():
        import cupy

        recorded = cupy.cuda.Event(disable_timing=True)
        recorded.record()
        event.value = recorded.ptr
    owner = (values, offsets, event, recorded)
    content = pa.foreign_buffer(_launch.address_of(values), values.nbytes, owner)
    inner = pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, content], 0)
    no_offsets = [None, pa.py_buffer(bytes(8))]
    column = pa.Array.from_buffers(pa.large_list(inner.type), 0, no_offsets, 0, children=[inner])
    capsules = column.__arrow_c_device_array__()
    made = DeviceColumn.from_address(pointer_in(capsules[1], b"arrow_device_array"))
    made.array.length, made.array.buffers[1] = len(offsets) - 1, _launch.address_of(offsets)
    made.device_type, made.device_id = CUDA[0], _launch.current_device()
    made.sync_event = ctypes.addressof(event) if event.value else None
    return capsules
