"""The public names: all there, each in its home, and nothing loaded before it is used."""

import inspect
import pydoc
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest

import foretell

LIGHT = """
import sys
import foretell
dir(foretell)
heavy = {"numpy", "scipy", "duckdb", "pydantic", "click", "yaml", "aiohttp", "rich", "inspect_ai", "mcp", "matplotlib"}
print(sorted(heavy & set(sys.modules)), sum(name.startswith("foretell") for name in sys.modules))
"""


@pytest.mark.parametrize("module", ["foretell", "foretell.types", "foretell.metrics"])
def test_every_public_name_can_be_imported_and_is_listed(module: str) -> None:
    package = import_module(module)
    for name in package.__all__:
        assert getattr(package, name) is not None, name
    assert set(package.__all__) <= set(dir(package))


def test_every_name_is_documented() -> None:
    text = pydoc.render_doc(foretell, renderer=pydoc.plaintext)
    for name in foretell.__all__:
        assert inspect.getdoc(getattr(foretell, name)), name
        assert name in text, name


def test_docstrings_speak_of_parameters() -> None:
    for name in foretell.__all__:
        written = inspect.getdoc(getattr(foretell, name)) or ""
        assert not re.search(r"(?<!\w)--[a-z]|may be repeated|repeat for each", written), name


def test_a_name_of_an_earlier_version_says_where_it_is_now() -> None:
    with pytest.raises(AttributeError, match=r"it is now foretell\.types\.AskResult"):
        foretell.AskResult  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue]


def test_modules_with_more_names_need_no_import_of_their_own() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import foretell as f; print(f.types.AgentOptions.__name__, f.metrics.brier.__name__)"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert told.stdout.split() == ["AgentOptions", "brier"]
    public = {name for name in dir(foretell) if not name.startswith("_")}
    assert public == {*foretell.__all__, "metrics", "types"}


def test_every_public_function_has_parameters_with_types_and_names_them() -> None:
    for name in foretell.__all__:
        thing = getattr(foretell, name)
        if inspect.isclass(thing):
            continue
        parameters = inspect.signature(thing).parameters
        written = inspect.getdoc(thing) or ""
        for each in parameters.values():
            assert each.annotation is not each.empty, (name, each.name)
            assert each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL), (name, each.name)
            assert name in REFER or f"    {each.name}:" in written, (name, each.name)
        if name not in REFER:
            returns = inspect.signature(thing).return_annotation
            assert (returns in (None, "None")) or "\nReturns:\n" in written, name
            assert name in NEVER_FAIL or "\nRaises:\n" in written, name


REFER = ("abacktest",)
"""An awaited form that names its function."""
NEVER_FAIL = ("combine_trials", "list_trees")


def test_fields_of_public_classes_are_documented() -> None:
    for name in foretell.__all__:
        thing = getattr(foretell, name)
        if inspect.isclass(thing):
            written = inspect.getdoc(thing) or ""
            fields = thing.__match_args__ if name == "Agent" else inspect.signature(thing).parameters
            assert [each for each in fields if f"    {each}:" not in written] == [], name


def test_the_version_is_that_of_the_distribution() -> None:
    assert foretell.__version__ == version("foretell")


def test_a_misspelt_keyword_names_the_nearest_parameter() -> None:
    with pytest.raises(TypeError, match=r"score\(\) got an unexpected keyword argument 'metrik'; did you mean"):
        foretell.score([], metrik="brier")  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"compare\(\) got an unexpected keyword argument 'bogus'"):
        foretell.compare([], None, "a", "b", bogus=3)  # pyright: ignore[reportCallIssue]


def test_importing_costs_nothing():
    told = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.split() == ["[]", "2"], "foretell and the module that loads its names"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'guess'"):
        foretell.guess  # noqa: B018 - the access itself is the test
    assert not hasattr(foretell, "guess")
