"""Formulas, samplers and the suppression of search results that the papers describe and jobs do not use.

The pages under `docs/papers` say where each part comes from.
"""

from .estimates import (
    bbit_error,
    bbit_variance,
    bottomk_variance,
    collision_error,
    exceed_probability,
    expected_collisions,
    expected_insertions,
    fingerprint_bits,
    hoeffding,
    modm_variance,
    rabin_bound,
    sample_variance,
    samples_for,
    standard_error,
    within_probability,
)
from .filter_curves import error_areas, half_s, slope_s, slope_threshold
from .prefix_costs import PrefixCost, expected_accidents, prefix_cost
from .set_sizes import containment_from_resemblance, l1
from .suppression import suppress

__all__ = [
    "PrefixCost",
    "bbit_error",
    "bbit_variance",
    "bottomk_variance",
    "collision_error",
    "containment_from_resemblance",
    "error_areas",
    "exceed_probability",
    "expected_accidents",
    "expected_collisions",
    "expected_insertions",
    "fingerprint_bits",
    "half_s",
    "hoeffding",
    "l1",
    "modm_variance",
    "prefix_cost",
    "rabin_bound",
    "sample_variance",
    "samples_for",
    "slope_s",
    "slope_threshold",
    "standard_error",
    "suppress",
    "within_probability",
]


def __dir__() -> list[str]:
    return __all__
