"""What follows a look: agreement with related questions, notices, and a proposal of the outcome after the close."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import datetime

from foretell.data.http import AsyncHttpClient
from foretell.data.markets.market import market_ref
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.runs.runtime import open_runtime
from foretell.runs.services import open_markets, open_services
from foretell.runs.settings import Settings
from foretell.standing.notices import deliver, notify
from foretell.standing.readings import OutcomeReader
from foretell.standing.record import OutcomeProposal, QuestionRecord, StandingBelief, StandingQuestion
from foretell.standing.related import made_coherent, related_groups
from foretell.standing.resolve import OutcomeSources, propose_outcome
from foretell.standing.store import StandingStore
from foretell.standing.watcher import LookReport, MakeCoherent, Propose, run_settings

WAITING = ("proposed", "cancelled", "ambiguous")
"""Statuses of a proposal that waits for the user."""
READERS = ("agent", "judge")
"""Roles of the models that read texts for the outcome."""


def coherent_with_related(store: StandingStore) -> MakeCoherent:
    """Return a function that makes a belief agree with the newest ones of related questions."""

    def compute(standing: StandingQuestion, belief: StandingBelief) -> Mapping[str, float]:
        questions = store.questions(("open", "paused"))
        groups = [group for group in related_groups(questions) if standing.id in group.questions]
        ids = {id for group in groups for id in group.questions}
        records = store.readable_records(sorted(ids - {standing.id}))
        beliefs = {record.standing.id: record.beliefs[-1] for record in records if record.beliefs}
        return made_coherent({**beliefs, standing.id: belief}, groups).get(standing.id, {}) if beliefs else {}

    async def coherent(standing: StandingQuestion, belief: StandingBelief) -> Mapping[str, float]:
        return await store.db.aside(compute, standing, belief)

    return coherent


@frozen
class LookNotifier:
    """Sends the notices of a look."""

    store: StandingStore
    settings: Settings
    tell: Callable[[str], None]

    def say(self, line: str) -> None:
        """Show a line in the terminal."""
        self.tell(line)

    async def send(self, report: LookReport) -> None:
        """Send the notices of a look that changed the belief, each once."""
        await notify(self, report.standing, report.look, report.belief, report.previous)

    async def deliver(self) -> None:
        """Post the notices that wait for a webhook and are due."""
        await deliver(self)


def public_proposals(settings: Settings, journal: Journal) -> Propose:
    """Return a function that proposes outcomes from markets, series and texts."""

    async def propose(record: QuestionRecord, now: datetime, budget: Budget) -> OutcomeProposal | None:
        last = record.proposals[-1] if record.proposals else None
        if last is not None and last.status in WAITING:
            return None
        async with AsyncExitStack() as stack:
            sources = await _sources(record.standing, settings, journal, budget, stack)
            proposal = await propose_outcome(record, sources, now)
        same = last is not None and (last.status, last.outcome) == (proposal.status, proposal.outcome)
        return None if same and not proposal.billed else proposal

    return propose


async def _sources(
    standing: StandingQuestion, settings: Settings, journal: Journal, budget: Budget, stack: AsyncExitStack
) -> OutcomeSources:
    """Return what may be consulted: markets with a key, series, pages, and the models of the question."""
    spec, question = run_settings(standing), standing.question
    client = await stack.enter_async_context(AsyncHttpClient(access=settings.access))
    refs = [market_ref(question, target) for target in question.targets]
    services = open_services(settings, client, spec.search if spec is not None else ())
    platforms = sorted({ref.platform for ref in refs if ref is not None and ref.platform in services.prices})
    readers: dict[str, OutcomeReader] = {}
    if spec is not None:
        runtime = await stack.enter_async_context(open_runtime(spec, settings, journal, budget=budget))
        for role in READERS:
            name = runtime.models.name(role)
            readers.setdefault(name, OutcomeReader(model=runtime.router.within(budget), name=name))
    return OutcomeSources(
        settlements=open_markets(settings, client, platforms).settlements,
        series=services.series if settings.network else None,
        pages=services.live_pages if settings.network else None,
        engine=services.engine,
        readers=tuple(readers.values()),
    )
