"""The same two forecasters on the same rows: one sentence, one interval and one p-value, wherever they are shown.

Every JSON route, every page, every operation and every study that can be given the two is asked; whatever is shaped
like a verdict is collected, so that a new page or command is covered without being named here.
"""

import ast
import csv
import html
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from tests.web.made_arena import fill

import foretell
from foretell import plugins, run
from foretell.api import edit_run, list_runs, resolve_run
from foretell.metrics import Interval
from foretell.operations.table import OPERATIONS
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.scoring.baselines import BASE_RATE
from foretell.scoring.breakdown import verdict_matrix
from foretell.scoring.join import read_table
from foretell.scoring.score import ScoringOptions
from foretell.scoring.verdict import Verdict
from foretell.studies.inputs import load_study
from foretell.studies.scores import CHANGE
from foretell.web.app import create_app

FIRST, SECOND = "bold", "shy"
QUESTIONS = 40
NUMBERS = ("diff", "low", "high", "p", "n", "n_clusters", "says", "sentence")
PHRASES = ("is better than", "is worse than", "which is more than chance", "which could be chance", "Too few to tell ")
"""Words that only the sentence of a verdict may contain."""


def rows() -> list[dict[str, Any]]:
    """Return questions, half of which come true."""
    return [
        {"id": f"q{n:02d}", "text": f"Will {n} happen?", "due": "2026-01-05", "by": f"2026-01-{10 + n % 15}"}
        | {"outcome": str(n * 7 % 3 % 2)}
        for n in range(QUESTIONS)
    ]


def write(path: Path, table: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Return a home with two resolved runs on the same questions, and an arena."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    settings = Settings(home=tmp_path / "home")
    question_rows = [{key: value for key, value in row.items() if key != "outcome"} for row in rows()]
    write(tmp_path / "questions.csv", question_rows)
    outcome_rows = [
        {"question": row["id"], "target": "yes", "due": row["due"], "outcome": row["outcome"]} for row in rows()
    ]
    outcomes = write(tmp_path / "outcomes.csv", outcome_rows)
    for name, p in ((FIRST, 0.1), (SECOND, 0.35)):
        spec = {"questions": "questions.csv", "forecaster": "always", "options": {"p": p}}
        id = run(spec, settings=settings).run
        edit_run(id, name=name, settings=settings)
        resolve_run(id, outcomes=outcomes, settings=settings)
    store = RunStore(settings.store)
    fill(store, events=40)
    store.close()
    return settings


def verdicts_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield everything shaped like a verdict, at any depth."""
    if isinstance(value, Mapping):
        if {"first", "second", "says", "sentence", "diff"} <= value.keys():
            yield value
        for inner in value.values():
            yield from verdicts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from verdicts_in(inner)


def key(verdict: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a verdict compares, with both names in alphabetical order."""
    group = {name: value for name, value in verdict["group"].items() if value != "overall"}
    return (
        *sorted((verdict["first"], verdict["second"])),
        verdict["metric"],
        tuple(sorted(group.items())),
        verdict["n"],
    )


def numbers(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return its numbers and words; if the names were swapped, without the words."""
    if verdict["first"] <= verdict["second"]:
        return {name: verdict[name] for name in NUMBERS}
    turned = {"diff": -verdict["diff"], "p": verdict["p"], "n": verdict["n"], "n_clusters": verdict["n_clusters"]}
    ends = (verdict["low"], verdict["high"])
    return turned | ({"low": -ends[1], "high": -ends[0]} if None not in ends else {"low": None, "high": None})


def other_way(verdict: Mapping[str, Any]) -> str:
    """Return the sentence with the two names swapped, as a heading may have it."""
    values = {name: math.nan if value is None and name in ("low", "high", "p", "p_corrected", "se") else value
             for name, value in verdict.items()}  # fmt: skip
    arguments = {field.name: values[field.name] for field in fields(Verdict) if field.init}
    scores = {
        name: Interval(**{key: math.nan if value is None else value for key, value in verdict[name].items()})
        for name in ("first_score", "second_score")
    }
    return Verdict(**arguments | scores).swapped().sentence


class Collected:
    """All verdicts that were shown, by what they compare."""

    def __init__(self) -> None:
        self.seen: dict[tuple[Any, ...], list[tuple[str, dict[str, Any]]]] = {}
        self.sentences: set[str] = set()

    def add(self, where: str, value: Any) -> int:
        # A gain within a study compares a change, not two forecasters.
        verdicts = [
            verdict for verdict in verdicts_in(plain_data(value)) if (verdict["first"], verdict["second"]) != CHANGE
        ]
        # A summary of a run has the sentence without some of the numbers.
        self.sentences |= set(
            re.findall(r'"sentence": "((?:[^"\\]|\\.)*)"', json.dumps(plain_data(value), ensure_ascii=False))
        )
        for verdict in verdicts:
            self.seen.setdefault(key(verdict), []).append((where, numbers(verdict)))
            self.sentences |= {verdict["sentence"], other_way(verdict)}
        return len(verdicts)

    def check(self) -> None:
        for about, places in self.seen.items():
            where, expected = next(((w, v) for w, v in places if "says" in v), places[0])
            for other, numbers in places:
                for name, value in numbers.items():
                    assert alike(value, expected[name]), f"{about}: {where} {name} {expected[name]}, {other} {value}"


def alike(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=1e-5, abs_tol=1e-9)
    return first == second


def paths(app: FastAPI, arena: str, ids: Mapping[str, str]) -> Iterator[str]:
    """Return every GET route with its parameters filled in; routes with other parameters are left out."""
    parameters = {
        "run": ids[FIRST],
        "arena": arena,
        "entry": "sharp",
        "name": "sharp",
        "question": "q01",
        "event": "kalshi/KX-1",
    }
    two = f"run={ids[FIRST]}&run={ids[SECOND]}"
    for route in app.routes:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()):
            names = re.findall(r"{(\w+)(?::\w+)?}", route.path)
            if set(names) <= parameters.keys() and "stream" not in route.path:
                path = re.sub(r"{(\w+)(?::\w+)?}", lambda match: quote(parameters[match[1]], safe=""), route.path)
                yield f"{path}?{two}"
                if not names:
                    yield f"{path}?arena={arena}&entry=sharp&entry=shy"


def visit(home: Settings, ids: Mapping[str, str], collected: Collected) -> dict[str, str]:
    """Collect what every JSON route shows, and return every page."""
    token, pages = "token-of-the-test-0123456789", dict[str, str]()
    app = create_app(home, token=token)
    with TestClient(app, base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {token}"}) as client:
        for path in paths(app, "made", ids):
            reply = client.get(path)
            kind = reply.headers.get("content-type", "")
            if kind.startswith("application/json"):
                collected.add(path, json.loads(reply.text))
            elif reply.status_code == 200 and "html" in kind:
                pages[path] = reply.text
    return pages


def operate(home: Settings, ids: Mapping[str, str], collected: Collected) -> None:
    """Collect what every operation shows that takes runs or tables and compares with a reference."""
    for name, operation in OPERATIONS.items():
        fields = operation.request.model_fields
        if {"runs", "forecasts", "reference"} <= fields.keys():
            names = {"forecasters": (FIRST, SECOND)} if "forecasters" in fields else {"reference": SECOND}
            result = operation.function(operation.request.read({"runs": (FIRST, SECOND), **names}), settings=home)
            assert collected.add(name, result.to_dict()), f"{name} compares, and shows no verdict"


def study_all(file: Path, collected: Collected) -> None:
    """Collect what every study shows that takes a table."""
    for name in plugins.names("studies"):
        if {"forecasts", "outcomes"} <= load_study(name).options.model_fields.keys():
            try:
                result = foretell.study(name, forecasts=file)
            except (InputError, TypeError):
                continue  # It needs more than a table.
            collected.add(f"study {name}", result.to_dict())


def test_every_outlet_gives_the_same_verdict(home: Settings, tmp_path: Path) -> None:
    collected = Collected()
    ids = {row.row.name: row.id for row in list_runs(settings=home).stored}
    pages = visit(home, ids, collected)
    operate(home, ids, collected)
    table = [
        {"forecaster": name, "question": row["id"], "due": row["due"], "p": p, "outcome": row["outcome"]}
        | {"resolved_on": row["by"]}
        for name, p in ((FIRST, 0.1), (SECOND, 0.35))
        for row in rows()
    ]
    file = write(tmp_path / "table.csv", table)
    study_all(file, collected)
    collected.add("Python compare", foretell.compare([FIRST, SECOND], None, FIRST, SECOND))
    collected.add("Python score", foretell.score([FIRST, SECOND], reference=SECOND))
    collected.add("heat map", verdict_matrix(read_table(file), [FIRST, SECOND], {}, ScoringOptions()))
    assert any(about[:2] == (FIRST, SECOND) for about in collected.seen), "the two are compared"
    assert any("market price" in about for about in collected.seen), "so are entries of an arena"
    collected.check()
    for path, text in pages.items():
        page_text = html.unescape(re.sub(r"<[^>]+>", "", text))
        for sentence in collected.sentences:
            page_text = page_text.replace(sentence, "")
        assert not [
            page_text[max(0, at - 40) : at + 260] for phrase in PHRASES if (at := page_text.find(phrase)) >= 0
        ], path


def test_comparison_with_the_base_rate_is_equal_in_list_page_and_command(home: Settings) -> None:
    verdict = foretell.compare([FIRST], None, FIRST, BASE_RATE).verdicts[0]
    listed = next(row.score for row in list_runs(settings=home).stored if row.row.name == FIRST)
    against = listed["against_base_rate"]
    assert against["sentence"].replace("this run", FIRST) == verdict.sentence
    assert (against["low"], against["high"], against["says"]) == (verdict.low, verdict.high, verdict.says)
    assert against["own"] - against["other"] == pytest.approx(against["estimate"])


SOURCE = Path(foretell.__file__).parent
TESTS = {"compare_paired", "compare_pairs", "compare_means", "p_value", "two_sided_p", "symmetric_p", "stars"}


def test_modules_that_compare_create_a_verdict() -> None:
    """Outside `metrics`, a module that tests a difference turns it into a verdict, and nothing else draws stars."""
    for path in SOURCE.rglob("*.py"):
        module = path.relative_to(SOURCE)
        source = path.read_text(encoding="utf-8")
        if module.parts[0] == "metrics" or not any(test in source for test in TESTS):
            continue
        used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        if used & TESTS:
            assert "Verdict" in used, module
            assert "stars" not in used or module.name == "verdict.py", module


def test_a_verdict_is_the_same_seen_from_both_sides(home: Settings) -> None:
    there = foretell.compare([FIRST, SECOND], None, FIRST, SECOND).verdicts[0]
    back = foretell.compare([FIRST, SECOND], None, SECOND, FIRST).verdicts[0]
    assert isinstance(there, Verdict)
    assert (back.diff, back.p, back.n) == (pytest.approx(-there.diff), pytest.approx(there.p), there.n)
    assert {there.says, back.says} in ({"better", "worse"}, {"could be chance"}, {"no difference that matters"})
