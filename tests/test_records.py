"""Our data classes mean what the standard library's do, and each module of the package uses them."""

import copy
import dataclasses
import inspect
import pickle
import re
from pathlib import Path

import pytest

import neardup_gpu
from neardup_gpu import records


def point(dataclass):
    """A data class with each kind of field, made by a decorator."""

    @dataclass(frozen=True)
    class Point:
        """A point."""

        x: int
        y: int = dataclasses.field(default=2, repr=False)
        names: list[str] = dataclasses.field(default_factory=list, compare=False)
        z: int = dataclasses.field(default=0, kw_only=True)
        sum: int = dataclasses.field(init=False)

        def __post_init__(self):
            object.__setattr__(self, "sum", self.x + self.y + self.z)

    Point.__qualname__ = "Point"
    return Point


OURS, STANDARD = point(records.dataclass), point(dataclasses.dataclass)


def test_objects_are_alike():
    for arguments, named in [((1,), {}), ((1, 5), {"z": 3}), ((), {"names": ["a"], "x": 4}), ((1, 2, ["b"]), {})]:
        ours, standard = OURS(*arguments, **named), STANDARD(*arguments, **named)
        assert repr(ours) == repr(standard) and vars(ours) == vars(standard) and hash(ours) == hash(standard)
        assert dataclasses.asdict(ours) == dataclasses.asdict(standard)
        assert ours == OURS(*arguments, **named) == copy.deepcopy(ours) and ours != standard
    assert OURS(1).names is not OURS(1).names
    assert dataclasses.replace(OURS(1), y=7).sum == 8
    assert OURS(1, names=["a"]) == OURS(1) != OURS(2)


@pytest.mark.parametrize(
    ("arguments", "named", "reason"),
    [
        ((), {}, "missing a required argument: 'x'"),
        ((1, 2, [], 4), {}, "too many positional arguments"),
        ((1,), {"x": 2}, "multiple values for argument 'x'"),
        ((1,), {"w": 2}, "got an unexpected keyword argument 'w'"),
        ((1,), {"sum": 2}, "got an unexpected keyword argument 'sum'"),
    ],
)
def test_wrong_arguments(arguments, named, reason):
    with pytest.raises(TypeError):
        STANDARD(*arguments, **named)
    with pytest.raises(TypeError, match=rf"^Point\(\) {re.escape(reason)}$"):
        OURS(*arguments, **named)


def test_frozen():
    point = OURS(1)
    for change in (lambda: setattr(point, "x", 2), lambda: delattr(point, "x"), lambda: setattr(point, "new", 2)):
        with pytest.raises(dataclasses.FrozenInstanceError, match="make a new one by replace"):
            change()
    assert point == OURS(1)


def test_signatures_are_alike():
    assert re.sub(" ->.*", "", str(inspect.signature(OURS))) == re.sub(" ->.*", "", str(inspect.signature(STANDARD)))


def test_what_is_compared():
    plain = records.dataclass(type("Plain", (), {"__annotations__": {"x": int}}))
    assert plain(1) == plain(1) and plain.__hash__ is None
    by_identity = records.dataclass(eq=False, repr=False)(type("ByIdentity", (), {"__annotations__": {"x": int}}))
    assert by_identity(1) != by_identity(1) and len({by_identity(1), by_identity(1)}) == 2
    assert "object at" in repr(by_identity(1))


@pytest.mark.parametrize("dataclass", [records.dataclass, dataclasses.dataclass])
def test_derived_classes(dataclass):
    @dataclass(frozen=True)
    class Derived(OURS):
        w: int = 9

        def __repr__(self):
            return "its own"

    assert repr(Derived(1, w=3)) == "its own" and Derived(1).w == 9 and Derived(1, w=3) != Derived(1)
    assert Derived(1).sum == 3 and Derived(1) != OURS(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Derived(1).w = 4
    with pytest.raises(TypeError, match="non-frozen dataclass from a frozen"):
        dataclass(type("Thawed", (OURS,), {}))


def test_pickle():
    reading = neardup_gpu.Reading(id_column="id")
    assert pickle.loads(pickle.dumps(reading)) == reading


def test_nobody_compiles_data_classes():
    folder = Path(neardup_gpu.__file__).parent
    modules = [path for path in folder.rglob("*.py") if path.name != "records.py"]
    wrong = [path for path in modules if re.search(r"^from dataclasses import .*\bdataclass\b", path.read_text(), re.M)]
    assert len(modules) > 200 and wrong == []
