"""Adding a plug-in takes one or two files and one line; errors in one are reported in one line."""

from pathlib import Path

import pytest

from foretell import plugins
from foretell.data.search.web import BraveSearch
from foretell.questions.errors import InputError
from foretell.runs.settings import KEYS, load_settings
from plugins.conftest import Install, example_files, example_points

FILES = {
    "forecasters": ["forecaster.py"],
    "models": ["models.py"],
    "search_engines": ["search.py"],
    "series": ["series.py"],
    "markets": ["market.py", "settlements.py"],
    "datasets": ["dataset.py"],
    "tools": ["tool.py"],
    "grounders": ["grounder.py"],
    "metrics": ["metric.py"],
}
"""What a package needs to add one plug-in of each kind."""


@pytest.mark.parametrize("kind", FILES)
def test_one_line_and_one_or_two_files_add_a_plug_in(kind: str, install: Install) -> None:
    line = example_points()[kind]
    install(
        {name: text for name, text in example_files().items() if name in ["__init__.py", *FILES[kind]]}, {kind: line}
    )
    assert len(line) == 1
    (name,) = line
    assert plugins.added(kind) == [name]
    assert plugins.load(kind, name) is not None
    assert name in plugins.Names(kind)


@pytest.mark.parametrize("kind", [kind for kind, rows in plugins.BUILT_IN.items() if rows])
def test_every_built_in_name_can_be_loaded(kind: str) -> None:
    for name in plugins.BUILT_IN[kind]:
        assert plugins.load(kind, name) is not None


@pytest.mark.parametrize("kind", ["search_engines", "series"])
def test_every_adapter_states_its_facts(kind: str) -> None:
    silent = [name for name in plugins.BUILT_IN[kind] if not getattr(plugins.load(kind, name), "facts", "")]
    assert silent == []


def test_a_broken_package_is_named_and_does_not_break_the_others(install: Install) -> None:
    rows = {"bad": "foretell_example.bad:X", "brave": "foretell_example.bad:Y"}
    install({"__init__.py": "", "bad.py": "import no_such_module_at_all"}, {"search_engines": rows})
    with pytest.raises(InputError) as caught:
        plugins.load("search_engines", "bad")
    assert "of the package foretell-example cannot be loaded: ModuleNotFoundError" in str(caught.value)
    assert "fix or uninstall foretell-example" in str(caught.value)
    assert plugins.load("search_engines", "brave").name == "brave", "a built-in name cannot be taken"


@pytest.mark.parametrize(
    ("kind", "plugin", "wanted"),
    [
        ("metrics", len, "must be a Metric, not len"),
        ("markets", {"name": "x"}, "must be a Market, not a dict"),
        ("synthesis_rules", str, "must be a SynthesisRule or a ModelFreeRule, not str"),
        ("search_engines", str, "must be a class with a method 'search', not str"),
        ("series", 3, "must be a class with a method 'fetch', not a int"),
        ("forecasters", 0.3, "must be a class or a function, not a float"),
    ],
)
def test_a_plug_in_of_the_wrong_shape_is_refused_in_one_line(kind: str, plugin: object, wanted: str) -> None:
    with pytest.raises(InputError) as caught:
        plugins.register(kind, "mine", plugin)
    assert wanted in str(caught.value)


def test_objects_of_a_program_are_registered_by_name() -> None:
    with pytest.raises(InputError, match="no kind of plug-in 'engines'"):
        plugins.register("engines", "x", object())
    with pytest.raises(InputError, match="taken among search_engines"):
        plugins.register("search_engines", "brave", object())
    plugins.register("search_engines", "mine", BraveSearch)
    try:
        assert plugins.load("search_engines", "mine") is BraveSearch
        assert "mine" in plugins.Names("search_engines")
    finally:
        plugins.unregister("search_engines", "mine")
    with pytest.raises(InputError, match="no search engine is called 'mine'"):
        plugins.load("search_engines", "mine")


def test_keys_are_declared_by_the_plug_ins(tmp_path: Path) -> None:
    assert KEYS["google"] == ("GOOGLE_API_KEY", "GEMINI_API_KEY")
    assert "gdelt" not in KEYS
    assert {"openai", "brave", "fred", "metaculus", "prophet_arena", "compat"} <= set(KEYS)
    settings = load_settings({"FORETELL_HOME": str(tmp_path), "GEMINI_API_KEY": "sk-canary", "EXA_API_KEY": ""})
    assert settings.key("google") == "sk-canary"
    assert settings.services == ("google",)
    assert "canary" not in repr(settings)


def test_a_broken_package_does_not_stop_services_that_need_no_plug_in(install: Install) -> None:
    install({"__init__.py": "", "bad.py": "import no_such_module_at_all"}, {"tools": {"bad": "foretell_example.bad:X"}})
    assert "bad" not in KEYS
    assert "openai" in set(KEYS)
