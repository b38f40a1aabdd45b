"""What was sent to tournaments from this machine, question by question: the forecast, its comment, and the receipts."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.questions.errors import InputError
from foretell.tournaments.ledger import LEDGER_FILE, LedgerEntry, SubmissionLedger
from foretell.tournaments.state import TournamentState

LONGEST_CONTENT = 200
"""Maximum length of what is sent, in characters, if it is neither a probability nor a text."""


@frozen
class SentAnswer:
    """The latest forecast that was sent for a question."""

    platform: str
    account: str
    question: str
    """Its id."""
    title: str = ""
    run: str = ""
    """The run that asked it last; empty if that is not known."""
    at: str
    """When it was sent."""
    forecast: str = ""
    comment: str = ""
    """The text of its comment; empty if none was sent."""
    private: bool = False
    """Whether only the account can read the comment."""
    problems: tuple[str, ...] = ()
    """Parts without a receipt, or with that of a refusal."""


def sent_answers(home: Path, most: int) -> list[SentAnswer]:
    """Return what was sent last from a home, newest first, according to its ledger; empty if it has none."""
    path = home / LEDGER_FILE
    if not path.is_file():
        return []
    entries, _, _ = SubmissionLedger(path).read()
    receipts = {int(entry.content["intention"]): entry for entry in entries if entry.kind != "intention"}
    parts, asked = dict[tuple[str, str, str], dict[str, LedgerEntry]](), _asked(home)
    for entry in entries:
        if entry.kind == "intention":
            question, part = entry.question, entry.part
            group = question.partition("#")[0]
            # The parts of a group that was asked as one question are sent one by one.
            if question not in asked and group != question and group in asked:
                question, part = group, f"{part} of {question}"
            parts.setdefault((entry.platform, entry.account, question), {})[part] = entry
    latest = sorted(parts.items(), key=lambda item: max(entry.number for entry in item[1].values()), reverse=True)
    return [_answer(*key, sent, receipts, asked.get(key[2], ("", "", ""))) for key, sent in latest[:most]]


def _asked(home: Path) -> dict[str, tuple[str, str, str]]:
    """Return the text of each question, the run that asked it last and its answer, as the tournaments recorded them."""
    asked: dict[str, tuple[str, str, str]] = {}
    for path in sorted((home / "tournaments").glob("*/state.json")):
        with suppress(InputError, TypeError, KeyError):
            for visit in TournamentState.read(path).visits:
                for row in visit.get("rows", ()):
                    asked[str(row["question"])] = (
                        str(row["text"]),
                        str(visit.get("run", "")),
                        str(row.get("answer", "")) if row.get("sent") else "",
                    )
    return asked


def _answer(
    platform: str,
    account: str,
    question: str,
    sent: Mapping[str, LedgerEntry],
    receipts: Mapping[int, LedgerEntry],
    asked: tuple[str, str, str],
) -> SentAnswer:
    comment: Mapping[str, Any] = sent["comment"].content if "comment" in sent else {}
    grouped = any(entry.question != question for entry in sent.values())
    return SentAnswer(
        platform=platform,
        account=account,
        question=question,
        title=asked[0],
        run=asked[1],
        at=max(entry.at for entry in sent.values()),
        forecast=asked[2]
        if grouped and asked[2]
        else "; ".join(content_in_words(entry.content, asked[2]) for part, entry in sent.items() if part != "comment"),
        comment=str(comment.get("text", "")),
        private=bool(comment.get("is_private")),
        problems=tuple(filter(None, (_problem(part, entry, receipts) for part, entry in sent.items()))),
    )


def _problem(part: str, entry: LedgerEntry, receipts: Mapping[int, LedgerEntry]) -> str:
    receipt = receipts.get(entry.number)
    if receipt is None:
        return f"{part}: no receipt"
    return "" if receipt.kind == "receipt" else f"{part}: {receipt.kind} {receipt.content.get('how', '')}".strip()


def content_in_words(content: Mapping[str, Any], answer: str = "") -> str:
    """Return the probabilities in what was sent; of anything else the answer in words, or else the beginning.

    >>> content_in_words({"question": 9101, "probability_yes": 0.32864})
    '33 %'
    >>> content_in_words({"probability_yes_per_category": {"Red": 0.6, "Blue": 0.4}})
    'Red 60 %, Blue 40 %'
    >>> content_in_words({"continuous_cdf": [0.0, 0.5, 1.0]}, "5.4 cm (8 in 10: 3.4 cm to 7.4 cm)")
    '5.4 cm (8 in 10: 3.4 cm to 7.4 cm)'
    """
    for value in content.values():
        if isinstance(value, float) and 0 <= value <= 1:
            return percent(value)
        numbers = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
        if numbers and all(isinstance(p, float | int) and 0 <= p <= 1 for p in numbers.values()):
            ranked: Sequence[tuple[str, float]] = sorted(numbers.items(), key=lambda item: -float(item[1]))
            return ", ".join(f"{name} {percent(float(p))}" for name, p in ranked)
    if answer:
        return answer
    text = json.dumps(dict(content), ensure_ascii=False)
    return text if len(text) <= LONGEST_CONTENT else f"{text[:LONGEST_CONTENT]}…"
