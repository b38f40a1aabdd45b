"""Metaculus posts as events: a question with one yes, a choice of options, or a group of yes-or-no questions.

Numeric, discrete and date questions, conditional pairs and notebooks are recognised and skipped, with the reason.
"""

from collections.abc import Mapping

from foretell.questions.clock import AsOf
from foretell.questions.question import Question, Target
from foretell.questions.snapshot import Snapshot
from foretell.sources.http import SourceError
from foretell.sources.listing import Ledger, ListedEvent, Listing, Status, Wanted, live
from foretell.sources.markets.catalogue import Page, Unsupported, about, listed
from foretell.sources.markets.fields import amount, iso, moment, text, words
from foretell.sources.markets.known_fields import METACULUS_POST, METACULUS_QUESTION
from foretell.sources.markets.metaculus import MetaculusClient
from foretell.sources.markets.recurrence import template
from foretell.sources.markets.standing import Standing, standing
from foretell.sources.payload import Payload

PAGE = 100
SHOWN_IN_LISTS = 3
"""Of larger groups the list shows the community prediction of the first few questions only."""
FILTERS: Mapping[Status, str] = {"unopened": "upcoming", "open": "open", "closed": "closed", "resolved": "resolved"}
STATUS: Mapping[str, Status] = {
    "upcoming": "unopened",
    "approved": "unopened",
    "draft": "unopened",
    "pending": "unopened",
    "open": "open",
    "closed": "closed",
    "pending_resolution": "closed",
    "resolved": "resolved",
    "rejected": "closed",
    "deleted": "closed",
}


class MetaculusEvents:
    """Posts by post id. Targets: `yes`; the labels of a choice; the question ids of a group."""

    platform = "metaculus"
    key = "id"

    def __init__(self, client: MetaculusClient, *, tournaments: tuple[str, ...] = ()) -> None:
        """`tournaments` limits the list to these, by slug or number."""
        self._client = client
        self._tournaments = tournaments

    def events(self, wanted: Wanted) -> Listing:
        """Posts, the newest first."""
        return listed(self, wanted)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """One post."""
        live(as_of)
        with about(f"metaculus post {id}"):
            row = await self._client.post(id)
            try:
                return _event(row, as_of, Ledger())
            except Unsupported as error:
                raise SourceError(f"metaculus post {id} cannot be asked: {error}", url=row.url) from None

    async def page(self, wanted: Wanted, cursor: str) -> Page:
        """One page of posts."""
        passed = int(cursor or "0")
        query = [
            ("statuses", FILTERS[wanted.status]),
            ("limit", str(PAGE)),
            ("offset", str(passed)),
            ("order_by", "-published_at"),
            ("with_cp", "true"),
            ("include_descriptions", "true"),
            *(("tournaments", name) for name in self._tournaments),
        ]
        if wanted.closes_after is not None:
            # Nothing is resolved before it closes.
            query.append(("scheduled_resolve_time__gte", wanted.closes_after.isoformat()))
        answer = await self._client.read("/posts/", query)
        more = answer.present("next") is not None
        return Page(rows=answer.need("results").items(), following=str(passed + PAGE) if more else None)

    async def parsed(self, row: Payload, wanted: Wanted, ledger: Ledger) -> ListedEvent:
        """A post, read by itself where the list keeps something back."""
        if len(_group(row)) > SHOWN_IN_LISTS:
            row = await self._client.post(row.need("id").name())
        return _event(row, wanted.as_of, ledger)


def _event(row: Payload, as_of: AsOf, ledger: Ledger) -> ListedEvent:
    ledger.know(row.value, METACULUS_POST, "post")
    single, group = row.get("question"), _group(row)
    for question in [single, *group] if single is not None else group:
        ledger.know(question.value, METACULUS_QUESTION, "question")
    parts = _parts(row, single, group, as_of)
    event = standing(parts, exclusive=single is not None and single.need("type").text() == "multiple_choice")
    rules = row.need("group_of_questions") if single is None else single
    title = row.need("title").text().strip()
    category, tags = _filed(row)
    people = amount(row, "nr_forecasters")
    post = row.need("id").name()
    return ListedEvent(
        question=Question(
            id=f"metaculus/{post}",
            source=MetaculusEvents.platform,
            text=title,
            due=as_of.at,
            targets=tuple(one.target for one in event.asked),
            category=category,
            criteria="\n\n".join(filter(None, [text(rules, "resolution_criteria"), words(rules, "fine_print")])),
            background=words(rules, "description"),
            exclusive=event.exclusive,
            opens_at=min((at for one in event.asked if (at := moment(one.row, "open_time"))), default=None),
            closes_at=max((iso(one.row.need("scheduled_close_time")) for one in event.asked), default=None),
            url=f"https://www.metaculus.com/questions/{post}/",
        ),
        status=event.status,
        recurrence=template(title),
        traders=None if people is None else int(people),
        tags=tags,
        finished=event.finished,
    )


def _group(row: Payload) -> list[Payload]:
    group = row.get("group_of_questions")
    return [] if group is None else group.need("questions").items()


def _parts(row: Payload, single: Payload | None, group: list[Payload], as_of: AsOf) -> list[Standing]:
    """The targets of a post."""
    if single is not None:
        kind = single.need("type").text()
        if kind == "multiple_choice":
            return _options(single, as_of)
        return [_yes(single, as_of, id="yes", label="Yes")]
    if group:
        return [_yes(one, as_of, id=one.need("id").name(), label=_label(one)) for one in group]
    for other in ("conditional", "notebook"):
        if row.get(other) is not None:
            raise Unsupported(f"a {other} has no yes-or-no targets of its own")
    row.need("question")
    raise Unsupported("it holds no question")


def _yes(question: Payload, as_of: AsOf, *, id: str, label: str) -> Standing:
    kind = question.need("type").text()
    if kind != "binary":
        raise Unsupported(f"a question of type {kind} has no yes-or-no targets")
    crowd = _crowd(question, as_of)
    target = Target(
        id=id,
        label=label,
        resolves_at=moment(question, "scheduled_resolve_time"),
        # Old answers give no and yes, new ones only yes.
        snapshot=Snapshot(at=as_of.at, last_price=crowd[-1]) if crowd else None,
    )
    return Standing(row=question, target=target, status=_status(question), lost=words(question, "resolution") == "no")


def _options(question: Payload, as_of: AsOf) -> list[Standing]:
    """The options that can still be chosen; a community prediction also counts those taken away."""
    labels = [item.text() for item in question.need("options").items()]
    ever = question.get("all_options_ever")
    counted = [item.text() for item in ever.items()] if ever is not None else labels
    crowd = _crowd(question, as_of)
    told = next((dict(zip(names, crowd, strict=True)) for names in (counted, labels) if len(names) == len(crowd)), {})
    ends, status = moment(question, "scheduled_resolve_time"), _status(question)
    return [
        Standing(
            row=question,
            target=Target(
                id=label,
                label=label,
                resolves_at=ends,
                snapshot=Snapshot(at=as_of.at, last_price=p) if (p := told.get(label)) is not None else None,
            ),
            status=status,
        )
        for label in labels
    ]


def _crowd(question: Payload, as_of: AsOf) -> list[float | None]:
    """The community prediction of now; empty while it is hidden, or from this account."""
    revealed = moment(question, "cp_reveal_time")
    weighted = question.get("aggregations")
    for step in ("recency_weighted", "latest", "centers"):
        weighted = weighted.get(step) if weighted is not None else None
    if weighted is None or (revealed is not None and not as_of.admits(revealed)):
        return []
    return [None if item.value is None else item.probability() for item in weighted.items()]


def _status(question: Payload) -> Status:
    told = question.need("status")
    return STATUS.get(told.text()) or told.wrong("a status we know")


def _label(question: Payload) -> str:
    return words(question, "label") or question.need("title").text().strip()


def _filed(row: Payload) -> tuple[str, tuple[str, ...]]:
    """The first category, and all categories and tournaments by name."""
    projects = row.get("projects")
    if projects is None:
        return "", ()
    names: list[str] = []
    for sort in ("category", "tournament", "question_series", "tag"):
        found = projects.get(sort)
        names += [words(one, "name") for one in found.items()] if found is not None else []
    first = projects.get("category")
    category = words(first.items()[0], "name") if first is not None and first.items() else ""
    return category, tuple(dict.fromkeys(filter(None, names)))
