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
    all_fields: Any = fields(kind)  # pyright: ignore[reportArgumentType]
    assert not hasattr(kind, "__post_init__"), kind
    assert all(part.default_factory is MISSING and part.init and part.kw_only for part in all_fields), kind
    defaults = {f"_{part.name}": part.default for part in all_fields if part.default is not MISSING}
    parameters = [f"{part.name}=_{part.name}" if f"_{part.name}" in defaults else part.name for part in all_fields]
    lines = [f"def __init__(self, *, {', '.join(parameters)}):", " values = self.__dict__"]
    lines += [f" values[{part.name!r}] = {part.name}" for part in all_fields]
    exec("\n".join(lines), namespace := dict[str, Any](defaults))  # As `dataclass` itself does.
    namespace["__init__"].__qualname__ = f"{kind.__qualname__}.__init__"
    namespace["__init__"].__annotations__ = kind.__init__.__annotations__
    kind.__init__ = namespace["__init__"]
    return kind
