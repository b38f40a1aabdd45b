"""A faster `__init__` for frozen dataclasses of which every model call creates several."""

from dataclasses import MISSING, fields
from typing import Any, TypeVar

T = TypeVar("T")


def quick_init(kind: type[T]) -> type[T]:
    """Give a frozen dataclass with keyword fields an `__init__` that stores them directly, in half the time.

    >>> from dataclasses import dataclass
    >>> @quick_init
    ... @dataclass(frozen=True, kw_only=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(x=1)
    Point(x=1, y=0)
    """
    every: Any = fields(kind)  # pyright: ignore[reportArgumentType]
    assert not hasattr(kind, "__post_init__"), kind
    assert all(one.default_factory is MISSING and one.init and one.kw_only for one in every), kind
    defaults = {f"_{one.name}": one.default for one in every if one.default is not MISSING}
    given = [f"{one.name}=_{one.name}" if f"_{one.name}" in defaults else one.name for one in every]
    lines = [f"def __init__(self, *, {', '.join(given)}):", " values = self.__dict__"]
    lines += [f" values[{one.name!r}] = {one.name}" for one in every]
    exec("\n".join(lines), made := dict[str, Any](defaults))  # As `dataclass` itself does.
    made["__init__"].__qualname__ = f"{kind.__qualname__}.__init__"
    made["__init__"].__annotations__ = kind.__init__.__annotations__
    kind.__init__ = made["__init__"]
    return kind
