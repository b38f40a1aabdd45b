"""Whether news bears on a question: a small model judges texts that are data, never instructions."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from foretell.data.untrusted import for_prompt
from foretell.forecasters.forecaster import Context, prompt_template
from foretell.forecasters.tree.grow.prompting import TEXT, StructuredRequest, TreeQuestion, sections
from foretell.frozen import frozen
from foretell.models.structured_output import UnusableReply, closed_object
from foretell.questions.as_of import UtcDatetime
from foretell.questions.question import Question

LONGEST_TEXT = 2_000
"""Maximum characters of a text in a prompt."""
LONGEST_WHY = 300


@frozen
class NewsText:
    """A text that was found, as a model reads it."""

    text: str
    url: str = ""
    published: UtcDatetime | None = None

    def as_data(self, id: str) -> dict[str, str]:
        """Return the text for a JSON list, so that it can pose neither as an instruction nor as another text."""
        data = {"id": id, "text": for_prompt(self.text)[:LONGEST_TEXT]}
        if self.url:
            data["address"] = for_prompt(self.url)[:400]
        if self.published is not None:
            data["published"] = self.published.date().isoformat()
        return data


@frozen
class NewsVerdict:
    """Whether a text bears on the question, and the reason in a few words."""

    bears: bool
    why: str = ""


def text_ids(texts: Sequence[NewsText]) -> list[str]:
    """Return an id for each text, with a hash of all of them, so that no text can contain the id of another."""
    joined = "\0".join(f"{text.text}\0{text.url}" for text in texts)
    mark = sha256(joined.encode("utf-8", "replace")).hexdigest()[:8]
    return [f"n{place}-{mark}" for place in range(1, len(texts) + 1)]


def listed_texts(texts: Sequence[NewsText]) -> str:
    """Return the texts with their ids as JSON."""
    data = [text.as_data(id) for id, text in zip(text_ids(texts), texts, strict=True)]
    return json.dumps(data, ensure_ascii=False, indent=1)


async def judge_news(
    question: Question, texts: Sequence[NewsText], context: Context, *, slot: str
) -> tuple[NewsVerdict, ...]:
    """Return the verdict of the role `filter` on each text, in order. Raises `ModelError` if they cannot be used."""
    ids = text_ids(texts)
    verdict = closed_object({"id": {"type": "string", "enum": ids}, "bears": {"type": "boolean"}, "why": TEXT})
    request = StructuredRequest(
        role="filter",
        slot=slot,
        system=prompt_template("news/prompts", "bears").substitute(),
        user=sections(
            *TreeQuestion(question=question, as_of=context.as_of, whole=True).sections(), ("Texts", listed_texts(texts))
        ),
        schema=closed_object({"verdicts": {"type": "array", "items": verdict}}),
    )
    return await request.ask(context, lambda answer: _verdicts(answer, ids))


def _verdicts(answer: Mapping[str, Any], ids: Sequence[str]) -> tuple[NewsVerdict, ...]:
    stated: dict[str, NewsVerdict] = {}
    for row in answer["verdicts"]:
        if row["id"] in stated:
            raise UnusableReply(f"{row['id']} has two verdicts")
        stated[row["id"]] = NewsVerdict(bears=row["bears"], why=" ".join(row["why"].split())[:LONGEST_WHY])
    if missing := [id for id in ids if id not in stated]:
        raise UnusableReply(f"there is no verdict for {', '.join(missing)}")
    return tuple(stated[id] for id in ids)
