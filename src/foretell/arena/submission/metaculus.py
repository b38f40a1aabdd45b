"""Forecasts handed in to Metaculus: one list of forecasts, then a comment on each post that is to have one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, Literal

from foretell.arena.submission.checks import age, newest, past, unanswered
from foretell.arena.submission.metaculus_content import content
from foretell.arena.submission.metaculus_standing import same
from foretell.arena.submission.submission import Item, Outcome, Outgoing, Submission, split_id
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.sources.http import SourceError
from foretell.sources.market import MarketRef
from foretell.sources.markets.reference import market_ref, split_part
from foretell.sources.posting.metaculus import COMMENT, FORECAST, Account, MetaculusDesk
from foretell.sources.posting.metaculus_asked import Asked
from foretell.sources.posting.poster import Lost, Refused

PLATFORM = "metaculus"
BATCH = 50
Comment = Literal["private", "public"]
Seen = Mapping[str, tuple[Asked, ...] | str]
"""By post: its questions, or why they could not be read."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """How it is to be handed in."""

    comment: Comment | None = None
    """Whether the reasons go along, and who may read them."""
    clip: bool = False
    """Move probabilities that are not taken to the nearest that are."""
    named: Mapping[str, str] = field(default_factory=dict[str, str])
    """Post by question id, for questions that do not say themselves which post they answer."""


def place_of(forecast: Forecast, question: Question | None, wishes: Wishes) -> tuple[str, str | None] | None:
    """The post that a forecast answers, and its part; None where it answers none."""
    if forecast.question_id in wishes.named:
        return split_part(MarketRef(platform=PLATFORM, id=wishes.named[forecast.question_id]))
    platform, own = split_id(forecast.question_id)
    if platform == PLATFORM and own.partition("#")[0].isdigit():
        return split_part(MarketRef(platform=PLATFORM, id=own))
    ref = None if question is None else market_ref(question, question.targets[0])
    if ref is None or ref.platform != PLATFORM:
        return None
    post, part = split_part(ref)
    # An option or a question of the post may stand for the first target; only a question is a part.
    return post, part if question is not None and len(question.targets) == 1 and (part or "").isdigit() else None


async def look(
    desk: MetaculusDesk, forecasts: Sequence[Forecast], questions: Sequence[Question], wishes: Wishes
) -> tuple[Account, Seen]:
    """Whose token it is, and what the posts ask now. Reads, and writes nothing."""
    by_id = {question.id: question for question in questions}
    places = [place_of(forecast, by_id.get(forecast.question_id), wishes) for forecast in newest(forecasts)]
    account, seen = await desk.account(), dict[str, tuple[Asked, ...] | str]()
    for post in dict.fromkeys(place[0] for place in places if place is not None):
        try:
            seen[post] = await desk.asked(post) or "it holds no question that can be forecast"
        except SourceError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            seen[post] = f"Metaculus shows this account no post {post} (status {error.status})"
    return account, seen


@dataclass(frozen=True, kw_only=True)
class MetaculusSubmitter:
    """Plans by what was seen; sends through the desk."""

    desk: MetaculusDesk
    account: Account
    seen: Seen
    now: datetime
    wishes: Wishes = field(default_factory=Wishes)
    platform: str = PLATFORM

    def plan(self, forecasts: Sequence[Forecast], questions: Sequence[Question]) -> Submission:
        """A forecast for every question, and a comment on every post where reasons are to go along."""
        by_id = {question.id: question for question in questions}
        items: list[Item] = []
        for forecast in newest(forecasts):
            items += self._items(forecast, by_id.get(forecast.question_id))
        items += unanswered(forecasts, questions)
        return Submission(platform=PLATFORM, account=self.account.name, items=tuple(items))

    def requests(self, items: Sequence[Item]) -> list[Outgoing]:
        """One list of forecasts in a request, one comment in each."""
        forecasts = [dict(item.content) for item in items if item.part == "forecast"]
        address = self.desk.address(FORECAST)
        sent = [Outgoing(method="POST", address=address, body=batch) for batch in _batches(forecasts)]
        address = self.desk.address(COMMENT)
        comments = [dict(item.content) for item in items if item.part == "comment"]
        return sent + [Outgoing(method="POST", address=address, body=comment) for comment in comments]

    async def stands(self, items: Sequence[Item]) -> list[bool]:
        """Read back: the forecast that counts, the newest comments."""
        posts = {name: split_id(name)[1].partition("#")[0] for name in (item.question for item in items)}
        asked = {
            post: await self.desk.asked(post)
            for post in dict.fromkeys(posts[item.question] for item in items if item.part == "forecast")
        }
        return [
            await self._commented(item.content)
            if item.part == "comment"
            else any(same(one, item.content, self.now) for one in asked[posts[item.question]])
            for item in items
        ]

    async def send(self, items: Sequence[Item]) -> list[Outcome]:
        """Forecasts in lists; a list that is refused is sent again one by one, as nothing of it was taken."""
        if items and items[0].part == "comment":
            return [await self._comment(item) for item in items]
        found: list[Outcome] = []
        for batch in _batches(items):
            sent = await self._forecast(batch)
            if len(batch) > 1 and sent[0].state == "refused":
                sent = [outcome for item in batch for outcome in await self._forecast([item])]
            found += sent
        return found

    def _items(self, forecast: Forecast, question: Question | None) -> list[Item]:
        place = place_of(forecast, question, self.wishes)
        title = "" if question is None else question.text
        if place is None:
            problem = "it is no question of Metaculus"
            name = forecast.question_id
            return [Item(question=name, part="forecast", content={}, title=title, problems=(problem,))]
        post, part = place
        name, seen = f"{PLATFORM}/{post}", self.seen[post]
        chosen = _chosen(seen, part, forecast) if not isinstance(seen, str) else seen
        if isinstance(chosen, str):
            return [Item(question=name, part="forecast", content={}, title=title, problems=(chosen,))]
        items = [self._forecast_item(asked, p, forecast) for asked, p in chosen]
        return items + self._comment_items(items, chosen[0][0], forecast)

    def _forecast_item(self, asked: Asked, p: Mapping[str, float], forecast: Forecast) -> Item:
        made = content(asked, forecast, p, clip=self.wishes.clip)
        closed = asked.closed(self.now)
        shut = [f"the question takes no forecasts: {closed}"] if closed else []
        return Item(
            question=f"{PLATFORM}/{asked.post}" + (f"#{asked.id}" if asked.grouped else ""),
            part="forecast",
            content=made.body,
            title=asked.title,
            problems=(*past(forecast), *shut, *made.problems),
            notes=(*made.notes, *age(forecast, self.now)),
            standing=bool(made.body) and same(asked, made.body, self.now),
        )

    def _comment_items(self, forecasts: Sequence[Item], asked: Asked, forecast: Forecast) -> list[Item]:
        if self.wishes.comment is None:
            return []
        text = forecast.rationale.strip()
        problems = [] if text else ["the forecast gives no reasons"]
        problems += ["its forecast is not sent"] if any(item.problems for item in forecasts) else []
        body = {
            "on_post": asked.post,
            "text": text,
            "is_private": self.wishes.comment == "private",
            # A group has no one forecast that could be shown beside the comment.
            "included_forecast": not asked.grouped,
        }
        return [
            Item(
                question=f"{PLATFORM}/{asked.post}",
                part="comment",
                content=body,
                title=asked.title,
                problems=tuple(problems),
                follows=tuple(item.question for item in forecasts),
            )
        ]

    async def _forecast(self, items: Sequence[Item]) -> list[Outcome]:
        try:
            await self.desk.forecast([item.content for item in items])
        except (Refused, Lost) as error:
            state = "lost" if isinstance(error, Lost) else "refused"
            return [Outcome(item=item, state=state, reason=error.problem) for item in items]
        return [Outcome(item=item, state="taken") for item in items]

    async def _comment(self, item: Item) -> Outcome:
        try:
            number = await self.desk.comment(item.content)
        except (Refused, Lost) as error:
            state = "lost" if isinstance(error, Lost) else "refused"
            return Outcome(item=item, state=state, reason=error.problem)
        return Outcome(item=item, state="taken", answer={"comment": number})

    async def _commented(self, body: Mapping[str, Any]) -> bool:
        shown = await self.desk.comments(body["on_post"], self.account.id, private=body["is_private"])
        return body["text"].strip() in (text.strip() for text in shown.values())


def _batches(entries: Sequence[Any]) -> list[list[Any]]:
    return [list(entries[start : start + BATCH]) for start in range(0, len(entries), BATCH)]


def _chosen(
    seen: tuple[Asked, ...], part: str | None, forecast: Forecast
) -> list[tuple[Asked, Mapping[str, float]]] | str:
    """The questions of the post that a forecast answers, each with its probabilities; or why there are none."""
    by_id = {str(asked.id): asked for asked in seen}
    if part is not None:
        return [(by_id[part], forecast.p)] if part in by_id else f"the post has no question {part}"
    if len(seen) == 1 and not (seen[0].grouped and str(seen[0].id) in forecast.p):
        return [(seen[0], forecast.p)]
    strays = [target for target in forecast.p if target not in by_id]
    if strays or not forecast.p:
        named = f"{strays[0]!r} is none of them" if strays else "the forecast names none of them"
        return f"the post holds {len(seen)} questions ({', '.join(by_id)}), and {named}"
    return [(by_id[target], {target: p}) for target, p in forecast.p.items()]
