"""What the models of a tree are told: texts in Markdown files, put together by the modules that ask."""

from functools import cache
from importlib.resources import files
from string import Template


@cache
def wording(name: str) -> Template:
    """A text by its name.

    >>> wording("rules").safe_substitute(today="2026-07-01").startswith("# Rules")
    True
    """
    text = files("foretell.forecasters.tree.prompts").joinpath(f"{name}.md").read_text(encoding="utf-8")
    return Template(text.strip())


def told(*names: str, **values: object) -> str:
    """Several texts, one after the other, with their blanks filled in."""
    return "\n\n".join(wording(name).substitute(values) for name in names)


def sections(*parts: tuple[str, str]) -> str:
    """Headings with their texts; those without a text are left out.

    >>> print(sections(("Claim", "It rains."), ("Background", " ")))
    # Claim
    <BLANKLINE>
    It rains.
    """
    return "\n\n".join(f"# {heading}\n\n{text.strip()}" for heading, text in parts if text.strip())
