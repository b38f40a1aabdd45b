"""Shows docstrings and classes on the page of the Python reference as readers know them; mkdocs.yml names this file."""

import re
from typing import Any

from griffe import Class, Decorator, ExprCall, ExprKeyword, ExprName, Extension, Module, Object

EXAMPLE = re.compile(r"(?m)^>>> (?:.*\n?)*?(?=^\s*$|\Z)")
"""From a prompt to the next empty line."""


class Examples(Extension):
    """Turns the doctests of a docstring into blocks of code."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Fence what stands behind prompts."""
        if obj.docstring is not None:
            text = obj.docstring.value
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)

    def on_class_instance(self, *, cls: Class, **_: Any) -> None:
        """Show a class made by `frozen` as the dataclass that it is, with the parameters of its fields."""
        for place, made in enumerate(cls.decorators):
            if made.callable_path == "foretell.frozen.frozen":
                options = [ExprKeyword("kw_only", "False" if "kw_only=False" in str(made.value) else "True")]
                value = ExprCall(ExprName("dataclasses.dataclass"), options)
                cls.labels.add("dataclass")
                cls.decorators[place] = Decorator(value, lineno=made.lineno, endlineno=made.endlineno)

    def on_module_members(self, *, mod: Module, **_: Any) -> None:
        """Show a function of a stub that has only overloads by the last one, which has the docstring."""
        for name, functions in mod.overloads.items():
            if name not in mod.members:
                mod.set_member(name, functions[-1])
