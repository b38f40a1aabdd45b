"""Messages to Python programs name calls of functions where messages to a terminal name commands."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import foretell
from foretell.python_calls import in_python, name_calls
from foretell.types import RunProgress

SOURCE = Path(foretell.__file__).parent
FOR_OTHERS = ("cli", "mcp", "practice", "web", "operations/requests", "operations/templates")
"""Parts whose texts no Python program gets."""
STANDS_FOR = "autumn7"
"""What a message may insert, such as the name of a run."""


def own_texts() -> dict[str, str]:
    """Return the texts of the source that name a command → the file."""
    texts = dict[str, str]()
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if place.startswith(FOR_OTHERS):
            continue
        source = path.read_text(encoding="utf-8")
        if "foretell " not in source:
            continue
        tree = ast.parse(source)
        docstrings = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        skipped = docstrings | inner
        for node in ast.walk(tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else STANDS_FOR for part in node.values)
                text = "".join(map(str, parts))
            else:
                text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if re.search(r"\bforetell [a-z]", text):
                texts[text] = place
    return texts


def calls(text: str) -> list[ast.Call]:
    """Return the calls that a text names."""
    named = [ast.parse(call, mode="eval").body for call in re.findall(r"`(foretell\.\w+\(.*?\))`", text)]
    return [call for call in named if isinstance(call, ast.Call)]


def problems(call: ast.Call) -> list[str]:
    """Return what is wrong with a call: an unknown function or parameter, or a word of the sentence as a value."""
    assert isinstance(call.func, ast.Attribute)
    function = getattr(foretell, call.func.attr, None)
    if function is None:
        return [f"there is no {call.func.attr}"]
    known = inspect.signature(function).parameters
    wrong = [f"{word.arg} is no parameter" for word in call.keywords if word.arg not in known]
    places = [name for name, part in known.items() if part.kind is part.POSITIONAL_OR_KEYWORD]
    wrong += ["has too many arguments"] if len(call.args) > len(places) else []
    values: list[Any] = [part.value for part in ast.walk(call) if isinstance(part, ast.Constant)]
    words = {"proposed", "open", "forecastbench", "any"}
    return wrong + [
        f"{value} is a word of the sentence"
        for value in values
        if isinstance(value, str) and value.isalpha() and value.islower() and value not in words
    ]


def test_every_command_in_a_message_becomes_a_call_that_can_be_made() -> None:
    texts = own_texts()
    assert len(texts) > 80
    named = {text: calls(name_calls(text)) for text in texts}
    assert sum(map(len, named.values())) > 40
    wrong = {
        name_calls(text): found
        for text, made in named.items()
        if (found := [p for call in made for p in problems(call)])
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("foretell runs lists them", "`foretell.list_runs()` lists them"),
        ("start it with `foretell run SPEC`.", "start it with `foretell.run(SPEC)`."),
        ("foretell run 'my run' --again", '`foretell.run("my run", again=True)`'),
        (
            "see foretell tree log x.json --diff 3.., and edit",
            'see `foretell.tree_log("x.json", diff="3..")`, and edit',
        ),
        ("run foretell tree update FILE --trials 5.", "run `foretell.update_tree(FILE, trials=5)`."),
        ("foretell doctor --repair removes it", "foretell doctor --repair removes it"),
        ("'foretell runs' is not a number; use --low 3", "'foretell runs' is not a number; use `low=3`"),
        ("the run's name is '--low', so give --name", "the run's name is '--low', so give `name`"),
        (r"""'a \'--low\' "b"' is not known; give --name""", r"""'a \'--low\' "b"' is not known; give `name`"""),
    ],
)
def test_commands_become_calls_and_quoted_text_stays(text: str, expected: str) -> None:
    assert in_python(text) == expected


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.toml").write_text("network = false\n", encoding="utf-8")
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_errors_and_results_of_functions_name_calls() -> None:
    with pytest.raises(foretell.InputError, match=r"\(`foretell\.list_runs\(\)` lists them\)"):
        foretell.show("autumn")
    with pytest.raises(foretell.InputError, match=r"`foretell\.list_runs\(\)` lists them"):
        foretell.score("autumn")
    done = foretell.run({"questions": {"dataset": "demo", "limit": 2}, "forecaster": "knn"})
    for text in (str(done), done._repr_html_().replace("&quot;", '"')):  # pyright: ignore[reportPrivateUsage]
        assert f'Answers and scores: `foretell.show("{done.run}")`' in text


@pytest.mark.parametrize("name", ["RUN", "SPEC --low 3", "see 'RUN' or FILE"])
def test_a_name_in_capitals_stays_as_it_was_written(name: str) -> None:
    with pytest.raises(foretell.InputError) as raised:
        foretell.show(name)
    assert str(raised.value).startswith(f"no run is named {name!r}, and no run's id begins with it")


def test_the_text_of_a_user_stays_as_it_was_written() -> None:
    question = "Will foretell runs lists them, or --low 3 be printed?"
    asked = foretell.ask(question, closes="2099-07-01", model=lambda prompt: {"probability": 0.4, "reason": "Rain."})
    assert asked.run
    assert "see foretell runs; --low" in str(foretell.edit_run(asked.run, note="see foretell runs; --low"))
    assert question in str(foretell.list_runs())
    assert question in str(foretell.show(asked.run))


def test_progress_is_reported_once_per_step_and_ends_at_the_total() -> None:
    steps = list[RunProgress]()
    foretell.run({"questions": {"dataset": "demo", "limit": 6}, "forecaster": "prior"}, progress=steps.append)
    assert [step.done for step in steps] == list(range(7))
    assert {step.total for step in steps} == {6}
