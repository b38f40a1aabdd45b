"""A round of ForecastBench handed in: one checked file, to be put into the folder that the benchmark gave the team."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from foretell.arena.exports.forecastbench import (
    NEEDED_PERCENT,
    Coverage,
    Sender,
    build_submission,
    check_submission,
    round_of,
)
from foretell.arena.submission.checks import newest
from foretell.arena.submission.submission import Item, Outcome, Outgoing, Submission
from foretell.questions.forecast import Forecast
from foretell.questions.problems import InputError
from foretell.questions.question import Question
from foretell.sources.whole_file import write_whole

PLATFORM = "forecastbench"
NAMED = 3


def files_of(folder: Path, day: str) -> dict[str, bytes]:
    """Files of a round that are in a folder already, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob(f"{day}.*.json"))}


@dataclass(frozen=True, kw_only=True)
class RoundSubmitter:
    """Plans and writes the one file of a sender for a round."""

    sender: Sender
    folder: Path
    now: datetime
    found: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Files of the round that are in the folder already."""
    reasoning: bool = False
    incomplete: bool = False
    """Write it although too much is missing to be ranked."""
    platform: str = PLATFORM

    def plan(self, forecasts: Sequence[Forecast], questions: Sequence[Question]) -> Submission:
        """One file, or why there is none; `questions` is the whole set of the round."""
        day = round_of(questions)
        name = self.sender.file_name(day)
        problems = [*self._timing(day), *_of_another_day(forecasts, day), *self._rivals(name)]
        body, notes = dict[str, Any](), list[str]()
        try:
            body = build_submission(newest(forecasts), questions, self.sender, reasoning=self.reasoning)
            coverages = check_submission(body, questions)
            notes += [str(coverage) for coverage in coverages]
            problems += self._short(coverages)
        except InputError as error:
            problems.append(str(error))
        item = Item(
            question=f"{PLATFORM}/{day}#{self.sender.number}",
            part="file",
            content=body,
            title=name,
            problems=tuple(problems),
            notes=tuple(notes),
            standing=name in self.found and self.found[name] == written(body),
            record=record(name, body) if body else None,
        )
        return Submission(platform=PLATFORM, account=self.sender.organization, items=(item,))

    def requests(self, items: Sequence[Item]) -> list[Outgoing]:
        """The file."""
        return [Outgoing(method="WRITE", address=str(self.folder / item.title), body=item.content) for item in items]

    async def stands(self, items: Sequence[Item]) -> list[bool]:
        """Whether the file is there with just this content."""
        return [self._there(item.kept) for item in items]

    async def send(self, items: Sequence[Item]) -> list[Outcome]:
        """Write it, whole or not at all."""
        for item in items:
            write_whole(self.folder / item.title, written(item.content))
        return [Outcome(item=item, state="taken", answer={"file": str(self.folder / item.title)}) for item in items]

    def _timing(self, day: str) -> list[str]:
        opens = datetime.combine(date.fromisoformat(day), time.min, UTC)
        if self.now < opens:
            return [f"the round of {day} begins on that day"]
        if self.now.date() > opens.date():
            late = f"the round of {day} was closed at the end of that day (UTC)"
            return [f"{late}; foretell export forecastbench writes such a file for study"]
        return []

    def _rivals(self, name: str) -> list[str]:
        """Other files of the round that stand in the way: a model counts once, and a name belongs to one model."""
        found: list[str] = []
        for other, text in self.found.items():
            organization, model = _signed(text)
            if other == name and model != self.sender.model:
                found.append(f"{name} holds another model, {model!r}: take another --number")
            elif other != name and (organization, model) == (self.sender.organization, self.sender.model):
                found.append(f"{other} holds this model already: one file for a model")
        return found

    def _short(self, coverages: Sequence[Coverage]) -> list[str]:
        if self.incomplete:
            return []
        short = [coverage.kind for coverage in coverages if not coverage.enough]
        return [f"less than {NEEDED_PERCENT} % of the {kind} forecasts: it would not be ranked" for kind in short]

    def _there(self, kept: Mapping[str, Any]) -> bool:
        path = self.folder / str(kept["file"])
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == kept["sha256"]


def written(body: Mapping[str, Any]) -> bytes:
    """The file's bytes."""
    return json.dumps(body, ensure_ascii=False, indent=1).encode()


def record(name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """What the ledger keeps: every number, the file's own hash, and no reasons."""
    rows = [[row["source"], row["id"], row["resolution_date"], row["forecast"]] for row in body["forecasts"]]
    signed = {field: body[field] for field in ("organization", "model", "model_organization", "question_set")}
    return {"file": name, "sha256": hashlib.sha256(written(body)).hexdigest(), **signed, "forecasts": rows}


def _of_another_day(forecasts: Sequence[Forecast], day: str) -> list[str]:
    stray = [forecast for forecast in forecasts if forecast.as_of.at.date().isoformat() != day]
    tested = sum(forecast.as_of.mode == "backtest" for forecast in forecasts)
    problems = [f"{tested} forecasts were made in a backtest, not live"] if tested else []
    if stray:
        named = ", ".join(f"{one.question_id} ({one.as_of.at.date()})" for one in stray[:NAMED])
        problems.append(f"{len(stray)} forecasts were made as of another day than {day}: {named}")
    return problems


def _signed(text: bytes) -> tuple[Any, Any]:
    """Organization and model of a file; what cannot be read is nobody's."""
    try:
        body = json.loads(text)
    except ValueError:
        return None, None
    return (body.get("organization"), body.get("model")) if isinstance(body, dict) else (None, None)
