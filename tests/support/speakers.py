"""Objects of other libraries, reduced to the protocol by which they give their memory."""

import ctypes

from neardup_gpu.interchange import DeviceColumn, pointer_in


class Column:
    """A column that speaks Arrow's device interface and nothing else, like pylibcudf's.

    Parameters
    ----------
    array : pyarrow.Array
        Its content, whose memory is taken for the device's.
    device, number : int
        Type of the device (1 is the CPU, 2 is CUDA), and its number.
    changes : dict
        Fields of the exported `ArrowArray`, by name, that get another value; buffers by their number.
    event : int
        The event after which the column may be read; 0 for none.
    """

    def __init__(self, array, device=1, number=-1, changes=(), event=0):
        self.array, self.device, self.number, self.changes = array, device, number, dict(changes)
        self.event = ctypes.c_void_p(event)

    def __arrow_c_device_array__(self, requested_schema=None, **options):
        capsules = self.array.__arrow_c_device_array__(requested_schema)
        exported = DeviceColumn.from_address(pointer_in(capsules[1], b"arrow_device_array"))
        exported.device_type, exported.device_id = self.device, self.number
        exported.sync_event = ctypes.addressof(self.event) if self.event.value else None
        for name, value in self.changes.items():
            if isinstance(name, int):
                exported.array.buffers[name] = value
            else:
                setattr(exported.array, name, value)
        return capsules


class Series:
    """A Series of cuDF: its column comes from `to_pylibcudf`, and it turns into no array of the host."""

    def __init__(self, array, **options):
        self.column = Column(array, device=2, number=0, **options)

    def to_pylibcudf(self):
        return self.column, {}

    def __array__(self, *rest, **options):
        raise TypeError("implicit conversion to a host NumPy array is not allowed")


class Tensor:
    """An array that speaks DLPack and nothing else.

    Parameters
    ----------
    array : array
    device : tuple of int, optional
        What it says that its device is.
    error : Exception, optional
        What exporting raises.
    """

    def __init__(self, array, device=None, error=None):
        self.array, self.device, self.error = array, device, error

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if self.error is not None:
            raise self.error
        return self.array.__dlpack__(**options)
