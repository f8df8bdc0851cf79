"""A cached property that no lock guards."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """Do what functools' property does, without the lock of Python 3.11, which all objects of a class share.

        A process that is forked while another thread holds that lock would wait for it for ever. Without it, two
        threads may both compute a value, and one of the two equal results stays.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


__all__ = ["cached_property"]
