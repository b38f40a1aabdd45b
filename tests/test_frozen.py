"""Values made by `frozen` behave as those of a frozen dataclass."""

import copy
import inspect
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, get_type_hints

import pytest

from foretell.frozen import frozen

Make = Callable[[type[Any]], type[Any]]
standard: Make = dataclass(frozen=True, kw_only=True)


@frozen
class Sample:
    """A value of this module, so that it can be pickled."""

    name: str
    numbers: tuple[int, ...] = (1, 2)
    notes: dict[str, str] = field(default_factory=dict[str, str])
    secret: str = field(default="", repr=False, compare=False)


def kind(make: Make) -> type[Any]:
    class Value:
        kinds: ClassVar[int] = 3
        x: int
        y: int = 2
        places: list[int] = field(default_factory=list[int], compare=False)
        hidden: str = field(default="h", repr=False)
        size: int = field(init=False, default=7)
        doubled: int = field(init=False, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "doubled", 2 * self.x)

    return make(Value)


def result_of(call: Callable[[], object]) -> object:
    try:
        return call()
    except (TypeError, FrozenInstanceError) as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "call",
    [
        lambda kind: repr(kind(x=1)),
        lambda kind: repr(kind(x=1, y=3, places=[4])),
        lambda kind: kind(x=1) == kind(x=1, places=[9]),
        lambda kind: kind(x=1) == kind(x=1, hidden="other"),
        lambda kind: kind(x=1).__eq__(1),
        lambda kind: hash(kind(x=1)),
        lambda kind: len({kind(x=1), kind(x=1), kind(x=2)}),
        lambda kind: kind(x=1).doubled,
        lambda kind: replace(kind(x=1), x=5).doubled,
        lambda kind: asdict(kind(x=1)),
        lambda kind: [(part.name, part.kw_only) for part in fields(kind)],
        lambda kind: is_dataclass(kind) and kind.__dataclass_params__.frozen,
        lambda kind: str(inspect.signature(kind)),
        lambda kind: kind(),
        lambda kind: kind(1),
        lambda kind: kind(x=1, z=2),
        lambda kind: kind(x=1, size=2),
        lambda kind: kind(x=1).places is kind(x=1).places,
        lambda kind: setattr(kind(x=1), "x", 2),
        lambda kind: setattr(kind(x=1), "new", 2),
        lambda kind: delattr(kind(x=1), "x"),
        lambda kind: copy.copy(kind(x=1)) == kind(x=1),
        lambda kind: kind(x=float("nan")) == kind(x=float("nan")),
        lambda kind: [kind(x=1), get_type_hints(kind.__init__)][1],
        lambda kind: kind.__init__.__qualname__,
    ],
)
def test_a_frozen_value_does_what_a_frozen_dataclass_does(call: Callable[[type[Any]], object]):
    ours, theirs = kind(frozen), kind(standard)
    assert result_of(lambda: call(ours)) == result_of(lambda: call(theirs))


def test_methods_are_compiled_when_they_are_first_called():
    value = kind(frozen)
    assert "compile_now" in vars(vars(value)["__init__"])
    value(x=1)
    assert "compile_now" not in vars(vars(value)["__init__"])
    assert "compile_now" in vars(vars(value)["__hash__"])


def test_fields_are_read_when_they_are_first_asked_for():
    value = kind(frozen)
    assert not isinstance(vars(value)["__dataclass_fields__"], dict)
    assert is_dataclass(value)
    assert isinstance(vars(value)["__dataclass_fields__"], dict)


def test_threads_that_ask_for_fields_at_once_get_the_same():
    for _ in range(20):
        value = kind(frozen)
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(lambda kind=value: kind(x=1).places) for _ in range(8)]
        assert [made.result() for made in asked] == [[]] * 8


def test_fields_of_a_base_are_not_those_of_a_class_below_it():
    @frozen
    class Base:
        x: int = 1

    class Plain(Base):
        y: int = 2

    assert [part.name for part in fields(Plain)] == ["x"]
    assert Plain(x=3).x == 3


def test_a_value_that_inherits_has_the_fields_of_both():
    @frozen
    class Base:
        x: int = 1

    @frozen
    class Child(Base):
        y: int = 2

    @dataclass(frozen=True, kw_only=True)
    class Standard(Base):
        z: int = 3

    assert repr(Base()) == repr(Base(x=1))
    assert Child(x=5).x == 5
    assert Child() == Child(x=1, y=2)
    assert Child() != Base()
    assert hash(Child()) == hash((1, 2))
    assert Standard(x=4).x == 4
    with pytest.raises(FrozenInstanceError):
        Child().y = 3
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):
        dataclass(type("Open", (Base,), {}))


def test_a_class_of_its_own_below_a_frozen_one_keeps_its_signature():
    @frozen
    class Base:
        x: int = 1

    class Child(Base):
        def __init__(self, name: str) -> None:
            super().__init__(x=len(name))

    assert Child("four").x == 4
    assert str(inspect.signature(Child)) == "(name: str) -> None"
    assert str(inspect.signature(Base)) == "(*, x: int = 1) -> None"


def test_methods_that_a_class_writes_itself_stay():
    @frozen
    class Point:
        x: float

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Point) and abs(self.x - other.x) < 0.1

        def __repr__(self) -> str:
            return f"<{self.x}>"

    @frozen
    class Hashed:
        x: int

        def __hash__(self) -> int:
            return 12

    assert Point(x=1.0) == Point(x=1.05)
    assert hash(Point(x=1.0)) == hash((1.0,))
    assert repr(Point(x=1.0)) == "<1.0>"
    assert hash(Hashed(x=1)) == 12


def test_values_without_eq_are_equal_only_to_themselves():
    @frozen(eq=False)
    class Named:
        x: int

    one = Named(x=1)
    assert one == one
    assert one != Named(x=1)
    assert len({one, Named(x=1)}) == 2


def test_fields_may_be_positional():
    @frozen(kw_only=False)
    class Pair:
        left: int
        right: int = 2
        last: int = field(default=3, kw_only=True)

    assert Pair(1) == Pair(1, 2, last=3)
    assert Pair.__match_args__ == ("left", "right")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    with pytest.raises(TypeError, match="positional"):
        Pair(1, 2, 3)  # pyright: ignore[reportCallIssue]


def test_a_frozen_value_can_be_pickled_and_copied():
    sample = Sample(name="a", notes={"b": "c"}, secret="d")
    for again in (pickle.loads(pickle.dumps(sample)), copy.deepcopy(sample)):
        assert again == sample
        assert again.secret == "d"
    assert repr(sample) == "Sample(name='a', numbers=(1, 2), notes={'b': 'c'})"


def test_a_value_that_holds_itself_has_a_text():
    sample = Sample(name="a", notes=(notes := {}))
    notes["self"] = sample
    assert repr(sample) == "Sample(name='a', numbers=(1, 2), notes={'self': ...})"


def test_threads_may_create_the_first_values_together():
    @frozen
    class Value:
        x: int
        y: int = 1

    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda x: Value(x=x % 2), range(400)))
    assert set(values) == {Value(x=0), Value(x=1)}


def test_names_for_patterns_are_known_before_the_first_use() -> None:
    @frozen(kw_only=False)
    class Place:
        town: str
        street: str = ""

    assert Place.__match_args__ == ("town", "street")
    match Place("Oslo", "Gate"):
        case Place(town, street):
            assert (town, street) == ("Oslo", "Gate")
