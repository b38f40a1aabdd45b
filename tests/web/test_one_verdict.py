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
from foretell.metrics import Interval
from foretell.operations import OPERATIONS, edit_run, list_runs, resolve_run
from foretell.questions import InputError
from foretell.questions.codec import plain_data
from foretell.runs import RunStore, Settings
from foretell.scoring import BASE_RATE, Verdict, read_table, verdict_matrix
from foretell.scoring.score import ScoringOptions
from foretell.studies import load_study
from foretell.studies.scores import CHANGE
from foretell.web import create_app

FIRST, SECOND = "bold", "shy"
QUESTIONS = 40
NUMBERS = ("diff", "low", "high", "p", "n", "n_clusters", "says", "sentence")
PHRASES = ("is better than", "is worse than", "which is more than chance", "which could be chance", "Too few to tell ")
"""What only the sentence of a verdict may say."""


def rows() -> list[dict[str, Any]]:
    """Questions about one thing each, half of which come true."""
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
    """Two resolved runs on the same questions, and an arena."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    settings = Settings(home=tmp_path / "home")
    asked = [{key: value for key, value in row.items() if key != "outcome"} for row in rows()]
    write(tmp_path / "questions.csv", asked)
    known = [{"question": row["id"], "target": "yes", "due": row["due"], "outcome": row["outcome"]} for row in rows()]
    outcomes = write(tmp_path / "outcomes.csv", known)
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
    """Everything shaped like a verdict, however deep."""
    if isinstance(value, Mapping):
        if {"first", "second", "says", "sentence", "diff"} <= value.keys():
            yield value
        for inner in value.values():
            yield from verdicts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from verdicts_in(inner)


def key(found: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a verdict is about; of two directions, the alphabetical one."""
    group = {name: value for name, value in found["group"].items() if value != "overall"}
    return (*sorted((found["first"], found["second"])), found["metric"], tuple(sorted(group.items())), found["n"])


def numbers(found: Mapping[str, Any]) -> dict[str, Any]:
    """Its numbers and words; of two directions, those of the alphabetical one are compared without the words."""
    if found["first"] <= found["second"]:
        return {name: found[name] for name in NUMBERS}
    turned = {"diff": -found["diff"], "p": found["p"], "n": found["n"], "n_clusters": found["n_clusters"]}
    ends = (found["low"], found["high"])
    return turned | ({"low": -ends[1], "high": -ends[0]} if None not in ends else {"low": None, "high": None})


def other_way(found: Mapping[str, Any]) -> str:
    """The sentence with the two names exchanged, as a heading may have it."""
    given = {name: math.nan if value is None and name in ("low", "high", "p", "p_corrected", "se") else value
             for name, value in found.items()}  # fmt: skip
    known = {one.name: given[one.name] for one in fields(Verdict) if one.init}
    scores = {
        name: Interval(**{key: math.nan if value is None else value for key, value in found[name].items()})
        for name in ("first_score", "second_score")
    }
    return Verdict(**known | scores).swapped().sentence


class Collected:
    """All verdicts that were shown, by what they are about."""

    def __init__(self) -> None:
        self.seen: dict[tuple[Any, ...], list[tuple[str, dict[str, Any]]]] = {}
        self.sentences: set[str] = set()

    def add(self, where: str, value: Any) -> int:
        # A gain within a study is about a change, not about two forecasters.
        found = [one for one in verdicts_in(plain_data(value)) if (one["first"], one["second"]) != CHANGE]
        # A summary of a run has the sentence without all of the numbers.
        self.sentences |= set(
            re.findall(r'"sentence": "((?:[^"\\]|\\.)*)"', json.dumps(plain_data(value), ensure_ascii=False))
        )
        for one in found:
            self.seen.setdefault(key(one), []).append((where, numbers(one)))
            self.sentences |= {one["sentence"], other_way(one)}
        return len(found)

    def check(self) -> None:
        for about, places in self.seen.items():
            where, expected = next(((w, v) for w, v in places if "says" in v), places[0])
            for other, found in places:
                for name, value in found.items():
                    assert alike(value, expected[name]), f"{about}: {where} {name} {expected[name]}, {other} {value}"


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-9)
    return one == other


def paths(app: FastAPI, arena: str, ids: Mapping[str, str]) -> Iterator[str]:
    """Every GET route, with its parameters filled in; routes that need others are left out."""
    known = {
        "run": ids[FIRST],
        "arena": arena,
        "entry": "sharp",
        "name": "sharp",
        "question": "q01",
        "event": "kalshi/KX-1",
    }
    two = f"run={ids[FIRST]}&run={ids[SECOND]}&first={ids[FIRST]}&second={ids[SECOND]}"
    for route in app.routes:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()):
            names = re.findall(r"{(\w+)(?::\w+)?}", route.path)
            if set(names) <= known.keys() and "stream" not in route.path:
                path = re.sub(r"{(\w+)(?::\w+)?}", lambda match: quote(known[match[1]], safe=""), route.path)
                yield f"{path}?{two}"
                if not names:
                    yield f"{path}?arena={arena}&first=sharp&second=shy"


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
            made = operation.function(operation.request.read({"runs": (FIRST, SECOND), **names}), settings=home)
            assert collected.add(name, made.to_dict()), f"{name} compares, and shows no verdict"


def study_all(file: Path, collected: Collected) -> None:
    """Collect what every study shows that takes a table."""
    for name in plugins.names("studies"):
        if {"forecasts", "outcomes"} <= load_study(name).options.model_fields.keys():
            try:
                made = foretell.study(name, forecasts=file)
            except (InputError, TypeError):
                continue  # It needs more than a table.
            collected.add(f"study {name}", made.to_dict())


def test_every_outlet_gives_one_verdict(home: Settings, tmp_path: Path) -> None:
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
    assert any("crowd price" in about for about in collected.seen), "so are entries of an arena"
    collected.check()
    for path, text in pages.items():
        shown = html.unescape(re.sub(r"<[^>]+>", "", text))
        for sentence in collected.sentences:
            shown = shown.replace(sentence, "")
        assert not [shown[max(0, at - 40) : at + 260] for phrase in PHRASES if (at := shown.find(phrase)) >= 0], path


def test_a_run_beside_its_base_rate_reads_the_same_in_list_page_and_command(home: Settings) -> None:
    found = foretell.compare([FIRST], None, FIRST, BASE_RATE).verdicts[0]
    listed = next(row.score for row in list_runs(settings=home).stored if row.row.name == FIRST)
    against = listed["against_base_rate"]
    assert against["sentence"].replace("this run", FIRST) == found.sentence
    assert (against["low"], against["high"], against["says"]) == (found.low, found.high, found.says)
    assert against["own"] - against["other"] == pytest.approx(against["estimate"])


SOURCE = Path(foretell.__file__).parent
TESTS = {"compare_paired", "compare_pairs", "compare_means", "p_value", "two_sided_p", "symmetric_p", "stars"}


def test_whoever_compares_makes_a_verdict() -> None:
    """Outside `metrics`, a module that tests a difference turns it into a verdict, and nothing else draws stars."""
    for path in SOURCE.rglob("*.py"):
        module = path.relative_to(SOURCE)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if module.parts[0] != "metrics" and used & TESTS:
            assert "Verdict" in used, module
            assert "stars" not in used or module.name == "verdict.py", module


def test_a_verdict_is_the_same_seen_from_both_sides(home: Settings) -> None:
    there = foretell.compare([FIRST, SECOND], None, FIRST, SECOND).verdicts[0]
    back = foretell.compare([FIRST, SECOND], None, SECOND, FIRST).verdicts[0]
    assert isinstance(there, Verdict)
    assert (back.diff, back.p, back.n) == (pytest.approx(-there.diff), pytest.approx(there.p), there.n)
    assert {there.says, back.says} in ({"better", "worse"}, {"could be chance"}, {"no difference that matters"})
