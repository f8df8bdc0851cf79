"""Find values that are stored one after another, each after its length in 4 bytes, the lowest byte first.

    places[0] = place,    places[i + 1] = places[i] + 4 + length at places[i]
    value i = data[places[i] + 4:places[i + 1]]

Source: the encoding PLAIN of byte arrays in Apache Parquet (Encodings.md of apache/parquet-format).
Cost: one load for each value; serial, as each length says where the next one is.
"""

import numpy as np

from ._cpu import jit

BEYOND = "a value is longer than its data"


def reference(data, place, count):
    """Find values, straight from the definition.

    Parameters
    ----------
    data : array of uint8
    place : int
        Of the length of the first value.
    count : int

    Returns
    -------
    array of int64, shape (count + 1,)

    Raises
    ------
    ValueError
        If a value is longer than what is left of the data.
    """
    places = [place]
    for _ in range(count):
        prefix = data[places[-1] : places[-1] + 4].tolist()
        end = places[-1] + 4 + int.from_bytes(prefix, "little")
        if len(prefix) < 4 or end > len(data):
            raise ValueError(BEYOND)
        places.append(end)
    return np.array(places, np.int64)


@jit("uint8[::1], int64, int64[::1]")
def _walk(data, place, places):
    """Fill the places; return whether all values lie within the data."""
    places[0] = place
    for i in range(1, len(places)):
        if place + 4 > len(data):
            return False
        length = data[place] | data[place + 1] << 8 | data[place + 2] << 16 | data[place + 3] << 24
        place += 4 + length
        if place > len(data):
            return False
        places[i] = place
    return True


def cpu(data, place, count):
    """As `reference`."""
    places = np.empty(count + 1, np.int64)
    if not _walk(data, place, places):
        raise ValueError(BEYOND)
    return places
