"""How much of the future the leakage filter lets through, and how many clean texts it drops, on synthetic texts.

The texts are made from templates over kinds, languages and date formats, and stored beside this module. Rules were
tuned on one part of them; the other part, which includes whole kinds, is only used for judging.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from typing import Literal

from foretell.frozen import frozen
from foretell.metrics.bootstrap import Interval, share_interval
from foretell.models.model import ModelSettings
from foretell.models.names import ModelName
from foretell.number_text import percent
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Cost
from foretell.questions.question import Question, Target
from foretell.report.study import StudyTable, table, with_cost, words
from foretell.report.study_result import StudyResult
from foretell.studies.inputs import StudyModels, evenly_spaced
from foretell.tools.content_filter import ContentFilter, Excerpt, LeakVerdict, ModelContentFilter
from foretell.tools.dates.find import find_dates
from foretell.tools.dates.stamps import is_after
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import Refusal, SourceItem

CUTOFF = AsOf.day("2024-04-01")
PUBLISHED = datetime(2024, 3, 10, 9, 30, tzinfo=UTC)
"""Publication date that every text claims, truly or not."""
ASKED = Question(
    id="leaks/1",
    source="own",
    text="Will the bank cut its rate by 31 December 2024?",
    due=datetime(2024, 4, 1, tzinfo=UTC),
    targets=(Target(id="yes"),),
)
TITLE = "The bank and its rates"
ADDRESS = "https://news.example.org/bank-and-rates"
PROSE_MARK = "$PROSE"
"""Placeholder in the stored texts for a shared paragraph of prose, which is in the first line of their file."""

Part = Literal["tuned", "judged"]


@frozen
class LeakCase:
    """One text, and whether it is a leak that must be stopped."""

    kind: str
    wording: str
    """The part that is the same in all variants that differ only by their date."""
    part: Part
    """`tuned` if rules were tuned on it, `judged` if not."""
    leak: bool
    dated: bool = True
    """Whether something in it shows when it was written; if not, only its meaning does."""
    title: str = TITLE
    text: str
    url: str = ADDRESS

    @property
    def item(self) -> SourceItem:
        """The text as a search would return it."""
        return SourceItem(title=self.title, url=self.url, text=self.text, published=PUBLISHED, dating="published")

    def refused_by_rules(self) -> bool:
        """Return whether the rules alone stop it."""
        return isinstance(LeakageRules(as_of=CUTOFF, question=ASKED).admit(self.item, "web_search"), Refusal)


def leak_cases() -> list[LeakCase]:
    """Read the stored texts."""
    lines = files("foretell.studies.audit").joinpath("leak_cases.jsonl").read_text(encoding="utf-8").splitlines()
    prose = json.loads(lines[0])["prose"]
    cases: list[LeakCase] = []
    for line in lines[1:]:
        row = json.loads(line)
        cases.append(LeakCase(**{**row, "text": row["text"].replace(PROSE_MARK, prose)}))
    return cases


# A stand-in for the filter's model.

_SENTENCE = pattern(r"(?<=[.!?;])\s+(?=[A-Z\"'({])|\n+")
_DONE = pattern(
    r"\b(?:was|were|won|lost|beat|rose|fell|held|cut|struck|came|left|lifted|signed|walked|made|took|went|said"
    r"|\w{2,}ed)\b",
    re.IGNORECASE,
)
_AHEAD = pattern(
    r"\b(?:will|would|may|might|could|shall|if|is to|are to|due|set (?:for|to)|scheduled|planned|expected|expects?"
    r"|opens?|starts?|ends?|expires?|matures|until|forecast|forecasts|outlook|odds|poll|usually|any year|expect"
    r"|weather like|ahead of)\b",
    re.IGNORECASE,
)


def tells_nothing_late(title: str, text: str, as_of: AsOf) -> bool:
    """Return whether no sentence reports, as done, something about a day after the cutoff.

    It uses a few rules about tense and dates, which do not show how well a model reads.
    """
    return not any(_reports_later_day(sentence, as_of) for sentence in _SENTENCE.split(f"{title}\n{text}"))


def _reports_later_day(sentence: str, as_of: AsOf) -> bool:
    late = any(all(is_after(day, as_of) for day in date.readings) for date in find_dates(sentence))
    return late and bool(_DONE.search(sentence)) and not _AHEAD.search(sentence)


class TenseFilter:
    """Stand-in for the filter: no model, only a handful of rules about tense."""

    async def judge(self, excerpts: Sequence[Excerpt], as_of: AsOf, question: str) -> list[LeakVerdict]:
        """Return one verdict per excerpt, in order."""
        return [
            LeakVerdict(
                word="KEEP" if tells_nothing_late(excerpt.title, excerpt.text, as_of) else "DROP", reason="by tense"
            )
            for excerpt in excerpts
        ]


# The audit of filters.

ADVICE = (
    "A leak is stopped if a rule or the filter refuses it. Rules alone work with any filter, even one that keeps "
    "everything. Tuned: wordings that rules were tuned on. Judged: other wordings, and whole kinds that no rule was "
    "ever changed for.",
    "The texts and the rules have the same authors, so shares on real pages may be lower. The stand-in uses tense and "
    "dates only. A very small model drops or keeps almost at random. To test the filter that you use, name it as the "
    "model.",
)
CAPTION = "Tuned and judged: rules alone. Stand-in and models: rules and filter; for a model, of the texts it judged."
MODEL_TEXTS = 200
"""Number of texts that each model is asked about if no other number is given."""
SMALL_REPLY = 200
"""Maximum number of tokens in a reply of a model on this machine."""
BATCHES_AT_ONCE = 4
"""Number of requests in flight; the timeout of one runs while it waits in the queue of a local model."""
MODEL_SECONDS = 600.0
"""Timeout for a batch, in seconds: a local model may be slow, and a late answer would count as a drop."""
COLUMNS = (words("must"), words("tuned"), words("judged"), words("stand-in"))


RULES = "rules"
"""Name to use instead of a model: tests only the rules and the stand-in."""


async def audit_filters(
    open_model: Callable[[str], AbstractAsyncContextManager[StudyModels]], models: Sequence[str], limit: int | None
) -> StudyResult:
    """Return what the rules alone, the rules with a stand-in and the rules with each model stop of synthetic texts.

    Each model is asked about at most `limit` texts, evenly spaced (default: 200).
    """
    cases = leak_cases()
    refused = [case.refused_by_rules() for case in cases]
    stand_in = await _stopped(TenseFilter(), cases, refused)
    by_model: dict[str, dict[int, bool]] = {}
    silent: list[str] = []
    spent: list[Cost] = []
    places = evenly_spaced(range(len(cases)), limit or MODEL_TEXTS)
    for name in (name for name in models if name != RULES):
        async with open_model(name) as setup:
            content_filter = _leak_filter(setup)
            counted = _Counted(content_filter)
            at_once = BATCHES_AT_ONCE * content_filter.batch
            by_model[name] = await _ask_model(setup, counted, cases, refused, places, at_once)
            silent += counted.notes(name)
            spent.append(setup.cost)
    result = leak_study(StoppedTexts(cases=cases, refused=refused, stand_in=stand_in, by_model=by_model))
    result = replace(result, sentences=(*result.sentences, *silent))
    return with_cost(result, spent[-1], models=list(by_model), limit=len(places)) if spent else result


@dataclass
class _Counted:
    """A filter that counts how many texts it was asked about, and on how many it gave no clear verdict."""

    content_filter: ContentFilter
    asked: int = 0
    silent: int = 0

    async def judge(self, excerpts: Sequence[Excerpt], as_of: AsOf, question: str) -> list[LeakVerdict]:
        verdicts = await self.content_filter.judge(excerpts, as_of, question)
        self.asked += len(verdicts)
        self.silent += sum(verdict.failed or verdict.unclear for verdict in verdicts)
        return verdicts

    def notes(self, name: str) -> list[str]:
        if not self.silent:
            return []
        return [
            f"{name} gave no clear verdict on {self.silent} of the {self.asked} texts it was asked about: too late, "
            "failed or unreadable. They count as dropped, as in a run, so its column does not show how well it reads."
        ]


def _leak_filter(setup: StudyModels) -> ModelContentFilter:
    # Very small models get one text at a time and a constrained reply format; otherwise they may never stop.
    small = ModelName.read(setup.name).provider == "local"
    return ModelContentFilter(
        model=setup.model,
        name=setup.name,
        seconds=MODEL_SECONDS,
        settings=ModelSettings(max_tokens=SMALL_REPLY if small else None),
        marked=True,
        batch=1 if small else ModelContentFilter.batch,
        held=small,
    )


async def _ask_model(
    setup: StudyModels,
    content_filter: ContentFilter,
    cases: Sequence[LeakCase],
    refused: Sequence[bool],
    places: Sequence[int],
    at_once: int,
) -> dict[int, bool]:
    """Return, for the cases at `places`, whether the rules or a model as the filter stop them."""
    model = {place: refused[place] for place in places}
    remaining = [place for place in places if not refused[place]]
    setup.progress(0, len(remaining))
    for start in range(0, len(remaining), at_once):
        part = remaining[start : start + at_once]
        stopped = await _stopped(content_filter, [cases[place] for place in part], [False] * len(part))
        model |= dict(zip(part, stopped, strict=True))
        setup.progress(start + len(part), len(remaining))
    return model


async def _stopped(content_filter: ContentFilter, cases: Sequence[LeakCase], refused: Sequence[bool]) -> list[bool]:
    open_places = [place for place, done in enumerate(refused) if not done]
    remaining = [cases[place] for place in open_places]
    excerpts = [Excerpt(title=case.title, text=case.text, url=case.url) for case in remaining]
    verdicts = await content_filter.judge(excerpts, CUTOFF, ASKED.text)
    stopped = list(refused)
    for place, verdict in zip(open_places, verdicts, strict=True):
        stopped[place] = not verdict.keeps
    return stopped


TextGroup = tuple[str, Callable[[LeakCase], bool]]
"""What must happen to the texts of a group, and which texts belong to it."""


@frozen
class StoppedTexts:
    """The texts, and which of them were stopped."""

    cases: Sequence[LeakCase]
    refused: Sequence[bool]
    """Stopped by the rules alone."""
    stand_in: Sequence[bool]
    """Stopped by the rules or the stand-in for the filter."""
    by_model: Mapping[str, Mapping[int, bool]]
    """Stopped by the rules or a model as the filter, by model and place of the text."""

    def row(self, is_member: Callable[[LeakCase], bool]) -> tuple[str, ...]:
        """Return how many of the wanted texts were stopped, as the columns of a table."""
        tuned, judged = (
            _tally(self.cases, self.refused, lambda case, part=part: is_member(case) and case.part == part)
            for part in ("tuned", "judged")
        )
        counts = [tuned, judged, _tally(self.cases, self.stand_in, is_member)]
        for stopped_by_place in self.by_model.values():
            counts.append(
                _tally([self.cases[place] for place in stopped_by_place], list(stopped_by_place.values()), is_member)
            )
        return tuple(f"{stopped} of {n}" if n else "–" for stopped, n in counts)

    def table(self, title: str, row_header: str, rows: Mapping[str, TextGroup], caption: str = "") -> StudyTable:
        """Build a table with a row for every group of texts."""
        names = [model.partition(":")[2].rsplit("/", 1)[-1] or model for model in self.by_model]
        counts = {name: (must, *self.row(is_member)) for name, (must, is_member) in rows.items()}
        return table(title, row_header, (*COLUMNS, *map(words, names)), counts, caption=caption)


def _share(interval: Interval) -> str:
    return f"{percent(interval.estimate, 1)} ({percent(interval.low, 1)} to {percent(interval.high, 1)})"


def leak_study(texts: StoppedTexts) -> StudyResult:
    """Study what was stopped, by kind and overall."""
    dated = _tally(texts.cases, texts.refused, lambda case: case.leak and case.dated and case.part == "judged")
    false = _tally(texts.cases, texts.refused, lambda case: not case.leak)
    recall, drops = share_interval(*dated), share_interval(*false)
    assert recall is not None
    assert drops is not None
    leaks_by_kind = {case.kind: case.leak for case in reversed(texts.cases)}
    kinds: dict[str, TextGroup] = {
        kind: ("drop" if leaks_by_kind[kind] else "keep", lambda case, kind=kind: case.kind == kind)
        for kind in dict.fromkeys(case.kind for case in texts.cases)
    }
    return StudyResult(
        name="audit",
        title="What gets past the leakage filter",
        sentences=(
            f"Rules alone stop {_share(recall)} of {dated[1]} dated leaks that only judge, "
            f"and drop {_share(drops)} of {false[1]} clean texts.",
        ),
        tables=(
            texts.table("Stopped, in all", "Texts", TOTALS),
            texts.table("Stopped, by kind", "Kind", kinds, caption=CAPTION),
        ),
        settings={"cutoff": str(CUTOFF), "cases": len(texts.cases)},
        how_to_read=ADVICE,
    )


TOTALS: Mapping[str, TextGroup] = {
    "leaks with a date": ("drop", lambda case: case.leak and case.dated),
    "leaks without a date": ("drop", lambda case: case.leak and not case.dated),
    "clean texts": ("keep", lambda case: not case.leak),
}


def _tally(
    cases: Sequence[LeakCase], stopped: Sequence[bool], is_member: Callable[[LeakCase], bool]
) -> tuple[int, int]:
    """Return how many of the wanted texts were stopped, and how many there are."""
    chosen = [done for case, done in zip(cases, stopped, strict=True) if is_member(case)]
    return sum(chosen), len(chosen)
