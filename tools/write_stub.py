"""Write every `__init__.pyi`: the typed Python interface, made from the requests, and what each package offers.

    python tools/write_stub.py

A test compares the files with what this script makes, so that a new field or name cannot be forgotten.
"""

import collections.abc
from importlib import import_module
from inspect import Parameter
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import foretell
from foretell.interface import offered_names
from foretell.operations.requests.asking import NumberRange
from foretell.operations.table import OPERATIONS, PYTHON_NAMES, operation_signature
from foretell.scoring.bootstrap_options import BootstrapOptions

PLAN = "RunPlan"
"""What an operation with `plan=True` returns."""
SOURCE = Path(__file__).parents[1] / "src"
HEAD = '''"""The Python interface with its types. Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal, overload

from foretell.models.model import Model
from foretell.runs.settings import Settings

HOMES: Mapping[str, str]
'''


def stubs() -> dict[Path, str]:
    """The text of every stub."""
    packages = [".".join(path.parent.relative_to(SOURCE).parts) for path in SOURCE.rglob("__init__.py")]
    offering = [package for package in sorted(packages) if hasattr(import_module(package), "HOMES")]
    texts = {package: _offer(package) for package in offering if package != "foretell"} | {"foretell": _whole()}
    return {SOURCE.joinpath(*package.split("."), "__init__.pyi"): text for package, text in texts.items()}


def _offer(package: str) -> str:
    """The names that a package offers, each from its home, and what it defines itself."""
    module = import_module(package)
    lines = [
        f"from {home} import {name} as {name}" for name, home in sorted(offered_names(module.HOMES).items(), key=_place)
    ]
    own = {name: type(value) for name, value in vars(module).items() if name.isupper() and name != "HOMES"}
    lines += sorted({f"from {kind.__module__} import {kind.__name__}" for kind in own.values()})
    lines += ["", *(f"{name}: {kind.__name__}" for name, kind in own.items())] if own else []
    return "\n".join(['"""Made by tools/write_stub.py: do not edit."""', "# ruff: noqa", "", *lines, ""])


def _place(name_and_home: tuple[str, str]) -> tuple[str, str]:
    return name_and_home[1], name_and_home[0]


def _whole() -> str:
    plain = {name: home for name, home in offered_names(foretell.HOMES).items() if name not in PYTHON_NAMES}
    imports = [f"from {home} import {name} as {name}" for name, home in sorted(plain.items(), key=_place)]
    functions = [_function(name) for name in sorted(PYTHON_NAMES)]
    names = "".join(f'    "{name}",\n' for name in foretell.__all__)
    return "\n".join([HEAD.rstrip(), *imports, "", f"__all__ = [\n{names}]", "", *functions])


def _function(name: str) -> str:
    """The function of an operation; one that may only plan has an overload for that."""
    operation = OPERATIONS[PYTHON_NAMES[name]]
    returned = [_type(one) for one in _alternatives(operation.function.__annotations__["return"])]
    if PLAN not in returned:
        return "\n".join([*_signature(name, " | ".join(returned)), *_document(name), ""])
    others = " | ".join(one for one in returned if one != PLAN)
    *first, last = _signature(name, PLAN, plan="Literal[True]")
    planned = ["@overload", *first, f"{last} ..."]
    return "\n".join(
        [*planned, "@overload", *_signature(name, others, plan="Literal[False] = False"), *_document(name), ""]
    )


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _signature(name: str, returned: str, plan: str = "") -> list[str]:
    lines, keyword_only = [f"def {name}("], False
    for parameter in operation_signature(OPERATIONS[PYTHON_NAMES[name]].request).parameters.values():
        if parameter.kind is Parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            lines.append("    *,")
        written = "Settings | None" if parameter.name == "settings" else _type(parameter.annotation)
        default = "" if parameter.default is Parameter.empty else f" = {_default(parameter.default)}"
        stated = plan if plan and parameter.name == "plan" else f"{written}{default}"
        lines.append(f"    {parameter.name}: {stated},")
    return [*lines, f") -> {returned}:"]


def _document(name: str) -> list[str]:
    operation = OPERATIONS[PYTHON_NAMES[name]]
    title = (operation.function.__doc__ or "").partition("\n")[0]
    told = [(name, _told(field.description)) for name, field in operation.request.model_fields.items()]
    arguments = [f"        {name}: {text}" for name, text in told if text]
    return [f'    """{title}', "", "    Args:", *arguments, '    """'] if arguments else [f'    """{title}"""']


def _told(description: str | None) -> str:
    """A field's description as one line of a docstring."""
    return " ".join((description or "").split()).replace("\\", "/").replace('"', "'")


def _default(value: Any) -> str:
    return repr(value).replace("'", '"') if isinstance(value, str | int | float | bool | tuple | NoneType) else "..."


WRITTEN: dict[Any, str] = {
    Path: "str | Path",
    NumberRange: "str | tuple[float, float] | tuple[float, float, str]",
    BootstrapOptions: "str | Mapping[str, Any]",
    NoneType: "None",
    None: "None",
    Any: "Any",
}
"""Type → how users write its values."""


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(_type(one) for one in arguments))
    if origin is Literal:
        return f"Literal[{', '.join(repr(one).replace(chr(39), chr(34)) for one in arguments)}]"
    if origin is tuple and Ellipsis in arguments:
        return f"Sequence[{_type(arguments[0])}]"
    if origin is tuple:
        return f"tuple[{', '.join(map(_type, arguments))}]"
    if origin is list:
        return f"list[{', '.join(map(_type, arguments))}]"
    if origin in (dict, collections.abc.Mapping):
        return f"Mapping[{', '.join(map(_type, arguments))}]"
    if origin is collections.abc.Callable:
        return "Callable[..., Any]"
    return WRITTEN.get(annotation) or annotation.__name__


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
