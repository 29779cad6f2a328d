"""The dataclasses whose methods are made later behave as those of the standard library do."""

import copy
import dataclasses
import inspect
import pickle
import re
import subprocess
import sys
from dataclasses import field
from pathlib import Path
from typing import Any

import pytest

from jitlab.support import lazy_dataclass


def family(dataclass):
    """Classes of every kind that the package has."""

    @dataclass(frozen=True)
    class Point:
        """A point."""

        x: int
        y: float = 0.5
        tags: list = field(default_factory=list, compare=False, repr=False)

    @dataclass(frozen=True)
    class Named(Point):
        """A point with a name."""

        name: str = "p"

    @dataclass
    class Counter:
        """What may change."""

        n: int
        doubled: int = field(init=False)

        def __post_init__(self):
            self.doubled = 2 * self.n

    @dataclass(eq=False)
    class Identity:
        """Known by identity."""

        value: int = 3

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Slots:
        """Without a dictionary."""

        a: int
        b: Any = None

    @dataclass(frozen=True)
    class Empty:
        """Without fields."""

    @dataclass(frozen=True)
    class Own:
        """With methods of its own."""

        a: int

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

    return Point, Named, Counter, Identity, Slots, Empty, Own


KINDS = (family(dataclasses.dataclass), family(lazy_dataclass.dataclass))


def outcome(f):
    try:
        return f()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "program",
    [
        lambda k: repr(k[0](1)),
        lambda k: repr(k[0](1, tags=[3])),
        lambda k: (k[0](1).tags is k[0](1).tags, k[0](1).tags),
        lambda k: (k[0](1) == k[0](1, tags=[4]), k[0](1) != k[0](2), k[0](1) == k[1](1), k[1](1) == k[1](1, name="q")),
        lambda k: (hash(k[0](1)) == hash(k[0](1)), hash(k[1](2)) == hash((2, 0.5, "p")), hash(k[5]()) == hash(())),
        lambda k: setattr(k[0](1), "x", 2),
        lambda k: setattr(k[1](1), "other", 2),
        lambda k: delattr(k[0](1), "x"),
        lambda k: k[0](),
        lambda k: k[0](1, z=3),
        lambda k: k[4](1),
        lambda k: (repr(k[2](4)), k[2](4) == k[2](4), k[2].__hash__),
        lambda k: hash(k[2](4)),
        lambda k: (k[3]() == k[3](), hash(k[3]()) is not None, repr(k[3]())),
        lambda k: (repr(k[4](a=1)), k[4](a=1, b=2) == k[4](a=1, b=2), hasattr(k[4](a=1), "__dict__")),
        lambda k: repr(copy.copy(k[4](a=1, b=[2]))),
        lambda k: repr(copy.deepcopy(k[1](1, name="copied"))),
        lambda k: repr(dataclasses.replace(k[1](1, name="n"), x=5)),
        lambda k: dataclasses.asdict(k[1](1)),
        lambda k: [list(map(str, dataclasses.fields(kind))) for kind in k],
        lambda k: [vars(kind).get("__slots__") for kind in k],
        lambda k: [vars(kind).get("b") for kind in k if kind is not k[4]],
        lambda k: [kind.__doc__ for kind in k],
        lambda k: k[4](a=1, c=2),
        lambda k: (repr(k[6](1)), k[6](1) == k[6](2), hash(k[6](1))),
        lambda k: (k[5]() == k[5](), repr(k[5]())),
        lambda k: [kind.__match_args__ for kind in k],
        lambda k: [list(inspect.signature(kind).parameters) for kind in k],
        lambda k: [p.default for p in inspect.signature(k[1]).parameters.values() if p.name != "tags"],
        lambda k: inspect.signature(k[0]).parameters["y"].annotation,
        lambda k: (float("nan"),) * 2 == (0, 0) or k[3](value=1).value,
    ],
)
def test_it_behaves_as_the_standard_one(program):
    standard, lazy = (outcome(lambda kinds=kinds: program(kinds)) for kinds in KINDS)
    assert standard == lazy


def test_a_recursive_object_has_a_text():
    node = KINDS[1][2](1)
    node.n = node
    assert repr(node).count("...") == 1


def test_the_constructor_is_made_once():
    @lazy_dataclass.dataclass
    class Late:
        """Of the test."""

        a: int = 1

    assert isinstance(vars(Late)["__init__"], lazy_dataclass.Late)
    assert Late().a == Late(a=1).a == 1
    made = vars(Late)["__init__"]
    assert inspect.isfunction(made) and Late().a == 1 and vars(Late)["__init__"] is made


@lazy_dataclass.dataclass(frozen=True, slots=True)
class Pickled:
    """At the module's level, so that it can be found."""

    a: int


def test_each_constructor_of_the_package_is_compiled_already():
    """In a process of its own: what tests define has shapes of its own."""
    script = Path(__file__).parents[1] / "scripts" / "constructors.py"
    if not script.exists():
        pytest.skip("the scripts are not part of this copy")
    program = f"import runpy; made = runpy.run_path({str(script)!r}); print(made['page']() == made['FILE'].read_text())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr or "python scripts/constructors.py writes the file anew"


def test_a_shape_that_the_package_does_not_have_is_compiled():
    names = [f"field_{number}" for number in range(40)]
    made = lazy_dataclass.dataclass(type("Wide", (), {"__annotations__": dict.fromkeys(names, int)}))
    wide = made(*range(40))
    assert [getattr(wide, name) for name in names] == [*range(40)]
    assert inspect.signature(made).parameters.keys() == {*names}


def test_a_frozen_object_of_slots_can_be_pickled():
    assert pickle.loads(pickle.dumps(Pickled(3))) == Pickled(3)


def test_the_package_takes_no_other():
    """Those of the library took half of the import."""
    package = Path(lazy_dataclass.__file__).parents[1]
    taken = [
        path.name
        for path in package.rglob("*.py")
        if re.search(r"from dataclasses import.*\bdataclass\b|dataclasses\.dataclass\(", path.read_text())
    ]
    assert taken == ["lazy_dataclass.py"]
