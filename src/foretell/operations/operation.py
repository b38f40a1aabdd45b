"""Operations as Python functions: the fields of the request are the parameters."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, TypeVar

from foretell.request import OperationRequest, hints

Result = TypeVar("Result")


def operation(kind: type[OperationRequest]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Let a function of a request be called with the request, or with its fields as parameters.

    The positional parameters are those that the command line takes as arguments. `settings` goes beside them.

    Args:
        kind: The request that the function answers.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        signature = operation_signature(kind)

        @wraps(function)
        def called(*given: Any, **fields: Any) -> Result:
            if given and isinstance(given[0], kind):
                return function(*given, **fields)
            values = signature.bind(*given, **fields).arguments
            settings = values.pop("settings", None)
            return function(kind.read(values), settings)

        called.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue]
        return called

    return decorate


def operation_signature(kind: type[OperationRequest]) -> Signature:
    """The parameters that a request's fields make, with types and defaults."""
    found: list[Parameter] = []
    for name, info in kind.model_fields.items():
        place = Parameter.POSITIONAL_OR_KEYWORD if hints(info).get("argument") else Parameter.KEYWORD_ONLY
        default = Parameter.empty if info.is_required() else info.get_default(call_default_factory=True)
        found.append(Parameter(name, place, default=default, annotation=info.annotation))
    settings = Parameter("settings", Parameter.KEYWORD_ONLY, default=None)
    return Signature([*sorted(found, key=lambda one: (one.kind, one.default is not Parameter.empty)), settings])
