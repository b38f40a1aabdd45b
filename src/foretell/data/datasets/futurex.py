"""FutureX: questions for agents, with options, or answered in words, lists and numbers (Zeng et al. 2025, 2508.11987).

The rows are those of FutureX-Past, with `ground_truth` and `std`, or of FutureX-Online, without. The options are in the
prompt, as lettered lines or as boxed alternatives. The set says when an event ends but not when it is asked about:
resolved rows are asked as of the day before, open ones now.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, cast

from foretell.data.datasets.dataset import DatasetRequest, FileFormat
from foretell.data.datasets.free_form import FREE_FORM, HOW_TO_ANSWER, RIGHT_TARGET
from foretell.data.datasets.published import PublishedSetBuilder, day_before, need_moment, read_published
from foretell.data.datasets.question_files import YES
from foretell.data.datasets.question_set import QuestionSet
from foretell.data.datasets.rows import Row, columns_of
from foretell.patterns import pattern
from foretell.questions.codec import parse_json, parse_literal
from foretell.questions.errors import InputError
from foretell.questions.question import Exclusivity, Question, Target
from foretell.questions.resolution import Reference

SOURCE = "futurex"
COLUMNS = frozenset({"id", "prompt", "end_time", "level"})
BEIJING = timezone(timedelta(hours=8))
"""Times without a zone are in this one."""
LEVELS = (1, 2, 3, 4)
SINGLE_CHOICE = 1
_INTRODUCTION = pattern(r"^.*?The event to be predicted:\s*[\"“]*\s*", re.DOTALL)
_OPTION = pattern(r"^\s*([A-Z])\.\s+(?:the outcome be\s+)?(.+?)[\s\"”]*$", re.MULTILINE)
_BOXED_OR = pattern(r"^.*\\boxed\{[^{}]+\}\s+or\s+\\boxed\{.*$", re.MULTILINE)
_BOXED = pattern(r"\\boxed\{([^{}]+)\}")
_AROUND = pattern(r"\s*\(resolved around\s+([^()]+(?:\([^()]*\))?)\s*\)\.?", re.IGNORECASE)
SEVERAL_RIGHT = "single choices with several right options, left without an outcome"


def read_futurex(request: DatasetRequest) -> QuestionSet:
    """Read the questions with their outcomes; those without options are asked for an answer and its probability."""
    return read_published(request.path, lambda row, set_builder: _add(row, request.now, set_builder))


def options_of(prompt: str) -> dict[str, str]:
    r"""Return the options that a prompt lists, letter or name → text; empty if it asks for an answer of one's own.

    >>> options_of('… "Who wins?\nA. the outcome be Alpha\nB. the outcome be Beta"\nIMPORTANT: …')
    {'A': 'Alpha', 'B': 'Beta'}
    >>> options_of(r"End with \boxed{Yes} or \boxed{No}."), options_of(r"End with \boxed{YOUR_PREDICTION}.")
    ({'Yes': 'Yes', 'No': 'No'}, {})
    """
    event = prompt.partition("IMPORTANT")[0]
    lettered = {letter: text.strip() for letter, text in _OPTION.findall(event)}
    if len(lettered) > 1 and list(lettered) == [chr(ord("A") + place) for place in range(len(lettered))]:
        return lettered
    line = _BOXED_OR.search(prompt)
    names = list(dict.fromkeys(name.strip() for name in _BOXED.findall(line[0]))) if line else []
    examples = any("," in name or re.fullmatch(r"[A-Z]|[A-Z_]{4,}", name) for name in names)
    return {} if examples or len(names) < 2 else {name: name for name in names}


def right_answers(row: Row) -> tuple[str, ...]:
    """Return the right answers of a row: a list in JSON or as Python prints it, or a single value."""
    value: Any = row.get("ground_truth")
    if isinstance(value, str) and value.strip().startswith("["):
        text = value.strip()
        for parse in (parse_json, parse_literal):
            try:
                value = parse(text)
                break
            except (InputError, ValueError):
                continue
        if isinstance(value, str):
            raise row.problem("ground_truth", f"{text[:40]!r} is not a list", "write ['A'] or a single value")
    items = cast("list[Any]", value) if isinstance(value, list | tuple) else [] if value is None else [value]
    return tuple(text for item in items if (text := str(item).strip()))


def _add(row: Row, now: datetime, set_builder: PublishedSetBuilder) -> None:
    prompt, ends, right = row.need_text("prompt"), need_moment(row, "end_time", BEIJING), right_answers(row)
    level = row.real("level")
    if level not in LEVELS:
        raise row.problem("level", f"{row.text('level') or 'nothing'} is not a level from 1 to 4")
    options = options_of(prompt)
    event, rules = _event(prompt, bool(options))
    targets, exclusivity = _targets(options, ends, level == SINGLE_CHOICE)
    question = row.reading(
        "prompt",
        lambda: Question(
            id=f"{SOURCE}/{row.need_text('id')}",
            source=SOURCE,
            text=event,
            due=now if ends > now and not right else day_before(ends),
            targets=targets,
            subtype=f"level {level:g}" if options else FREE_FORM,
            criteria=rules if options else f"{rules}\n\n{HOW_TO_ANSWER}".strip(),
            exclusivity=exclusivity,
            closes_at=ends if ends > now and not right else None,
        ),
    )
    outcomes = _outcomes(row, options, right, set_builder) if options and right else {}
    set_builder.add(row, question, outcomes, ends if right else None)
    if right:
        reference = Reference(
            question_id=question.id, answers=right, spread=row.real("std"), options=bool(options), level=int(level)
        )
        set_builder.references.append(reference)


def _event(prompt: str, listed: bool) -> tuple[str, str]:
    """Return the event and the rules of a prompt, without its options and what it says about the form of the answer.

    "Resolved around" a day becomes a rule in the future tense, because the event is open when it is asked about.
    """
    body = _INTRODUCTION.sub("", prompt.partition("IMPORTANT")[0], count=1)
    around = _AROUND.search(body)
    body = _AROUND.sub("", _OPTION.sub("", body) if listed else body).strip()
    event, _, rest = body.partition("\n")
    rules = [rest.strip(' \n"”'), f"It is expected to resolve around {around[1].strip()}." if around else ""]
    return event.strip(' "”'), "\n\n".join(filter(None, rules))


def _targets(options: Mapping[str, str], ends: datetime, single: bool) -> tuple[tuple[Target, ...], Exclusivity]:
    if not options:
        return (RIGHT_TARGET,), "independent"
    if {name.lower() for name in options} == {"yes", "no"}:
        return (Target(id=YES, resolves_at=ends),), "independent"
    targets = tuple(Target(id=name, label=label, resolves_at=ends) for name, label in options.items())
    return targets, "exactly one" if single else "independent"


def _outcomes(
    row: Row, options: Mapping[str, str], right: tuple[str, ...], set_builder: PublishedSetBuilder
) -> dict[str, int | None]:
    names = {text.casefold(): name for name, label in options.items() for text in (label, name)}
    unknown = [answer for answer in right if answer.casefold() not in names]
    if unknown:
        raise row.problem("ground_truth", f"{unknown[0][:40]!r} is not one of the options {', '.join(options)}")
    true = {names[answer.casefold()] for answer in right}
    if {name.lower() for name in options} == {"yes", "no"}:
        return {YES: int("yes" in {name.lower() for name in true})}
    if row.real("level") == SINGLE_CHOICE and len(true) > 1:
        set_builder.counts[SEVERAL_RIGHT] += 1
        return dict.fromkeys(options)
    return {name: int(name in true) for name in options}


futurex = FileFormat(read=read_futurex, recognises=lambda path: columns_of(path) >= COLUMNS)
"""The data set `futurex:FILE`, and any file with its columns."""
