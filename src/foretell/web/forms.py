"""Forms generated from the fields of a request, and requests parsed from submitted forms."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import dedent
from typing import Any, Literal, get_args, get_origin

from pydantic import ConfigDict, create_model
from pydantic.fields import FieldInfo

from foretell.frozen import frozen
from foretell.request import OperationRequest, environment_values, hints, is_list, name_fields, plain_type, title_of

WITHHELD = ("out",)
"""Fields left out of forms, because they write files of any name on the server."""
LONG_TEXT = 400
"""Maximum length of a text field that is shown as a single line."""
FieldKind = Literal["text", "lines", "textarea", "number", "date", "select", "checks", "yes-no"]


@frozen
class FormField:
    """A field of a form."""

    name: str
    label: str
    help: str
    kind: FieldKind
    group: str
    """Name of the collapsed group the field belongs to; empty if the field is always visible."""
    required: bool
    value: str
    """Initial value."""
    choices: tuple[str, ...] = ()
    proposals: tuple[str, ...] = ()
    """Suggested texts; any other text may be typed."""
    attributes: Mapping[str, str]
    """Limits that the browser checks: min, max, step, maxlength."""


def form_fields(
    request: type[OperationRequest],
    *,
    choices: Mapping[str, Sequence[str]] | None = None,
    proposals: Mapping[str, Sequence[str]] | None = None,
    leave_out: Sequence[str] = (),
    required: Sequence[str] = (),
) -> tuple[FormField, ...]:
    """Return the form fields of a request, required ones first.

    Args:
        request: The request class.
        choices: By field, values to choose from if the type does not list them, such as the engines of this machine.
        proposals: By field, suggested texts; any other text may be typed.
        leave_out: Fields that the page asks for in another way.
        required: Fields that this page needs, although the request does not always.
    """
    from_environment = environment_values(request)
    fields = [
        _form_field(request, name, from_environment.get(name), tuple((choices or {}).get(name, ())))
        for name in request.model_fields
        if name not in (*WITHHELD, *leave_out)
    ]
    offered = {name: tuple(texts) for name, texts in (proposals or {}).items()}
    fields = [
        replace(field, proposals=offered.get(field.name, ()), required=field.required or field.name in required)
        for field in fields
    ]
    return tuple(sorted(fields, key=lambda field: not field.required))


def _form_field(request: type[OperationRequest], name: str, named: Any, choices: tuple[str, ...]) -> FormField:
    info = request.model_fields[name]
    kind, options = _kind(info, choices)
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    return FormField(
        name=name,
        label=title_of(name, info),
        help=name_fields(info.description or "", request, titles=True),
        kind=kind,
        group=hints(info).get("group", ""),
        required=info.is_required(),
        value=form_value(default if named is None else named),
        choices=options,
        attributes=_attributes(info, kind),
    )


def _kind(info: FieldInfo, choices: tuple[str, ...]) -> tuple[FieldKind, tuple[str, ...]]:
    annotation = plain_type(info)
    if get_origin(annotation) is Literal:
        optional = () if info.is_required() or info.default is not None else ("",)
        return "select", (*optional, *map(str, get_args(annotation)))
    if choices:
        return ("checks" if is_list(info) else "select"), choices
    if is_list(info) or get_origin(annotation) is tuple or _by_name(annotation):
        return "lines", ()
    if annotation is bool:
        return "yes-no", ()
    if annotation in (int, float):
        return "number", ()
    if hints(info).get("metavar") == "DATE":
        return "date", ()
    return ("textarea" if _limit(info, "max_length", 0) > LONG_TEXT else "text"), ()


def _attributes(info: FieldInfo, kind: FieldKind) -> dict[str, str]:
    attributes = {"step": "any"} if kind == "number" and plain_type(info) is float else {}
    for limit, attribute in (("ge", "min"), ("gt", "min"), ("le", "max"), ("max_length", "maxlength")):
        value = _limit(info, limit, None)
        if value is not None and kind in ("number", "text", "textarea"):
            attributes[attribute] = f"{value:g}" if isinstance(value, float) else str(value)
    return attributes


def _limit(info: FieldInfo, name: str, missing: Any) -> Any:
    return next(
        (getattr(constraint, name) for constraint in info.metadata if getattr(constraint, name, None) is not None),
        missing,
    )


def _by_name(annotation: Any) -> bool:
    origin = get_origin(annotation)
    return isinstance(origin, type) and issubclass(origin, Mapping)


class RequestBody(OperationRequest):
    """The base of the bodies of endpoints. They are built at once, as FastAPI needs them."""

    model_config = ConfigDict(defer_build=False)


def body_of(request: type[OperationRequest], *leave_out: str) -> type[OperationRequest]:
    """Return the request class without some fields, for endpoints whose address already contains them."""
    fields: dict[str, Any] = {
        name: (info.annotation, info) for name, info in request.model_fields.items() if name not in leave_out
    }
    name = request.__name__.removesuffix("Request") + "Body"
    return create_model(name, __base__=RequestBody, __doc__=request.__doc__, **fields)


def probability_text(percentage: str) -> str:
    """Return a percentage that was typed as a probability; other text stays, so that an error can name it.

    >>> probability_text("24.5"), probability_text("much")
    ('0.245', 'much')
    """
    try:
        return f"{float(percentage) / 100:.12g}"
    except ValueError:
        return percentage


def form_value(value: Any) -> str:
    """Format a value for a form field: lists one item per line, mappings as NAME=VALUE lines, booleans as yes or no."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "\n".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    return str(value)


def form_values(request: type[OperationRequest], form: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    r"""Convert a submitted form to values for `OperationRequest.read`; empty fields count as not filled in.

    >>> from foretell.operations.requests.asking import AskRequest
    >>> form_values(AskRequest, {"question": [" Will it? "], "options": ["a\r\nb"], "price": [""], "effort": ["low"]})
    {'question': 'Will it?', 'options': ['a', 'b'], 'effort': 'low'}
    """
    parsed: dict[str, Any] = {}
    for name, texts in form.items():
        info = request.model_fields.get(name)
        lines = [line.strip() for value in texts for line in value.splitlines() if line.strip()]
        if not lines:
            continue
        annotation = None if info is None else plain_type(info)
        if info is not None and _by_name(annotation):
            parsed[name] = {line.partition("=")[0].strip(): line.partition("=")[2].strip() for line in lines}
        elif info is not None and (is_list(info) or get_origin(annotation) is tuple):
            parsed[name] = lines
        else:
            parsed[name] = dedent("\n".join(line for value in texts for line in value.splitlines())).strip()
    return parsed
