"""Fingerprints come from carry-less products or from tables, as processors allow: the same bits each way.

A process takes one way. The other one is tried by setting NEARDUP_CLMUL=0, as `.ci/run` does for other versions of
packages.
"""

import pytest

from neardup_gpu.kernels import _processor


@pytest.mark.parametrize(
    ("features", "usual", "of_128_bits"),
    [(frozenset(), 0, 0), (_processor.HASWELL, 1, 1), (_processor.ICE_LAKE, 4, 1)],
    ids=["none", "haswell", "ice lake"],
)
def test_the_switch_switches(features, usual, of_128_bits, monkeypatch):
    monkeypatch.setattr(_processor, "features", lambda: features)
    for value, products in (("0", 0), ("128", of_128_bits), ("", usual)):
        monkeypatch.setenv("NEARDUP_CLMUL", value)
        assert _processor.carryless_products() == products
    monkeypatch.delenv("NEARDUP_CLMUL")
    assert _processor.carryless_products() == usual
