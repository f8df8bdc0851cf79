"""Look up the weight of each feature in a table of weights.

    weight[i] = table_weights[j] where table[j] = features[i], and a common weight for features that the table lacks

Source: TF-IDF's inverse document frequencies as a table, see `log_weights`.
Cost: a bisection a feature: on the CPU among a few entries, as the upper bits of a feature say where it would be.
"""

import numpy as np

from ._cpu import parallel
from ._launch import namespace
from ._search import lower_bound


def reference(features, table, table_weights, absent):
    """Each feature's weight, straight from the definition.

    Parameters
    ----------
    features : array of uint64
    table : array of uint64, shape (m,)
        Ascending, each once.
    table_weights : array of int64, shape (m,)
    absent : int
        The weight of features that the table lacks.

    Returns
    -------
    array of int64, of the shape of `features`
    """
    weight_of = dict(zip(table.tolist(), table_weights.tolist(), strict=True))
    return np.array([weight_of.get(f, absent) for f in features.tolist()], np.int64)


@parallel("uint64[::1], uint64[::1], int64[::1], int64, uint64, int64[::1], int64[::1]", least=4096)
def _look_up(begin, end, features, table, table_weights, absent, shift, begins, weights):
    for i in range(begin, end):
        f = features[i]
        upper = f >> shift
        stop = begins[upper + np.uint64(1)]
        low = lower_bound(table, begins[upper], stop, f)
        weights[i] = table_weights[low] if low < stop and table[low] == f else absent


def cpu(features, table, table_weights, absent):
    """As `reference`; features in parallel, by bisection among those that agree in some upper bits.

    The number of bits is such that there is about one beginning per feature, or per place in the table.
    """
    bits = max(1, min(len(table), len(features)).bit_length())
    shift = np.uint64(64 - bits)
    begins = np.searchsorted(table, np.arange(2**bits, dtype=np.uint64) << shift)
    weights = np.empty(len(features), np.int64)
    _look_up(len(features), features, table, table_weights, absent, shift, np.append(begins, len(table)), weights)
    return weights


def gpu(features, table, table_weights, absent):
    """As `reference`; features in parallel, by bisection."""
    xp = namespace()
    features, table, table_weights = xp.asarray(features), xp.asarray(table), xp.asarray(table_weights)
    if len(table) == 0:
        return xp.full(len(features), absent, np.int64)
    place = xp.minimum(xp.searchsorted(table, features), len(table) - 1)
    return xp.where(table[place] == features, table_weights[place], np.int64(absent))
