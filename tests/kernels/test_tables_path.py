"""Fingerprints come from carry-less products or from tables, as processors allow: the same bits each way.

A process takes one way. The other one is tried by setting NEARDUP_CLMUL=0, as `.ci/run` does for other versions of
packages.
"""

import pytest

from neardup_gpu.kernels import _processor


@pytest.mark.parametrize(("value", "uses"), [("0", False), ("128", True), (None, True)])
@pytest.mark.parametrize("has", [False, True])
def test_the_switch_switches(value, uses, has, monkeypatch):
    monkeypatch.setattr(_processor, "features", lambda: frozenset({"pclmulqdq"} if has else ()))
    if value is None:
        monkeypatch.delenv("NEARDUP_CLMUL", raising=False)
    else:
        monkeypatch.setenv("NEARDUP_CLMUL", value)
    assert _processor.has_carryless_product() is (uses and has)
