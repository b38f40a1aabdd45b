"""Do a forecaster's probabilities fit each other? Logical-chain and exclusivity scores over events, with intervals.

Scores are taken of what models stated, before anything was made to fit (Prophet Arena 2025, appendix D.4).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from foretell.metrics.agreement import chain_gap, logical_chain_score
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.shares import DEFAULT_DRAWS, mean_interval, share_interval
from foretell.questions.question import Question
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.study import CellValue, StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.request import setting
from foretell.studies.inputs import RunOptions, StudyServices
from foretell.studies.outcome_structure import OutcomeStructure, StructureJudge, plain_structure

TOLERANCE = 0.02
"""How far a sum may be from one: rounding to whole percents, and little more."""
SLACK = 1e-9
ADVICE = (
    "Logic: the share of steps in chains of outcomes (each implies the next) along which the stated probability does "
    "not fall, averaged over the chains of an event and then over events. Fall: by how much the worst step fails.",
    "Exclusive: the share of events whose outcomes, of which exactly one comes true, sum to one within the tolerance. "
    "Sum: the mean of that sum minus one; above 0 where too much is promised.",
    "These scores say nothing about accuracy: equal probabilities for everything would pass. They are taken of the "
    "probabilities as stated; what is scored elsewhere has been made to fit where exactly one outcome comes true.",
)


@dataclass(frozen=True, kw_only=True)
class StatedForecast:
    """What a forecaster stated about one question, before it was made to fit."""

    forecaster: str
    question: Question
    p: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class ConsistencyScore:
    """How consistent one statement is; None where the question has no such structure."""

    statement: StatedForecast
    logic: float | None
    fall: float | None
    """The largest amount by which a claim is held likelier than one it implies."""
    excess: float | None
    """Sum over the exclusive outcomes minus one."""

    def sums_to_one(self, tolerance: float = TOLERANCE) -> bool:
        """Whether the exclusive outcomes sum to one, but for rounding."""
        return self.excess is not None and abs(self.excess) <= tolerance + SLACK


def consistency_score(statement: StatedForecast, structure: OutcomeStructure) -> ConsistencyScore:
    """The scores of one statement. Outcomes without a probability are left out of chains, and spoil an exclusive set.

    >>> from foretell.studies.outcome_structure import ChainLink
    >>> from foretell.questions.question import Target
    >>> q = Question(id="q", source="s", text="?", due="2026-01-01", targets=tuple(Target(id=x) for x in "abc"))
    >>> chain = OutcomeStructure(chains=((ChainLink(target="a"), ChainLink(target="b"), ChainLink(target="c")),))
    >>> consistency_score(StatedForecast(forecaster="f", question=q, p={"a": 0.2, "b": 0.1, "c": 0.4}), chain).logic
    0.5
    """
    p = statement.p
    chains = [[link.chance(p) for link in chain if link.target in p] for chain in structure.chains]
    whole = [chain for chain in chains if len(chain) > 1]
    exclusive = structure.exclusive
    excess = sum(p[target] for target in exclusive) - 1 if exclusive and all(t in p for t in exclusive) else None
    return ConsistencyScore(
        statement=statement,
        logic=logical_chain_score(whole) if whole else None,
        fall=max(map(chain_gap, whole)) if whole else None,
        excess=excess,
    )


class ConsistencyOptions(RunOptions):
    """Runs or an arena, and who says which outcomes imply or exclude each other."""

    arena: str | None = setting(None, "Instead of runs: the entries of an arena, by its file or its name.")
    judge: str | None = setting(
        None, "Let a model read what wording rules do not see (provider:name).", metavar="MODEL"
    )
    tolerance: float = setting(TOLERANCE, "How far exclusive outcomes may sum from one.", ge=0, le=1)
    budget: float | None = setting(None, "Hard limit for the whole study.", metavar="DOLLARS", gt=0)


async def study(inputs: StudyServices, options: ConsistencyOptions) -> StudyResult:
    """Do the probabilities of one event fit each other?

    Chains ("above 220" implies "above 200") and exclusive sets, of probabilities as they were stated, before anything
    made them coherent. Structure comes from what questions declare and from their wording; --judge lets a model look
    for more, from the question alone.

      foretell study consistency --arena arena.yaml --judge openai:NAME --budget 1
    """
    statements = inputs.statements(options.runs, options.arena)
    questions = _fullest_questions(statements)
    if options.judge is None:
        structures = {one.id: plain_structure(one) for one in questions}
        return consistency_study(statements, structures, tolerance=options.tolerance, resampling=options.resampling)
    async with inputs.model("consistency", options.judge, options.budget) as models:
        judge = StructureJudge(model=models.model, name=options.judge)
        found = await judge.structures(questions, models.progress)
        cost = models.cost
    structures = {one.id: structure for one, structure in zip(questions, found, strict=True)}
    result = consistency_study(statements, structures, tolerance=options.tolerance, resampling=options.resampling)
    return replace(result, settings={"judge": options.judge, **result.settings}, cost=cost)


def _fullest_questions(statements: Sequence[StatedForecast]) -> list[Question]:
    """Every question once, in its version with most outcomes: their structure holds for the others too."""
    found: dict[str, Question] = {}
    for one in statements:
        known = found.get(one.question.id)
        if known is None or len(one.question.targets) > len(known.targets):
            found[one.question.id] = one.question
    return list(found.values())


def consistency_study(
    statements: Sequence[StatedForecast],
    structures: Mapping[str, OutcomeStructure],
    *,
    tolerance: float = TOLERANCE,
    resampling: Resampling = DEFAULT_DRAWS,
) -> StudyResult:
    """The study of many statements; structures by question id."""
    known = [one for one in statements if one.question.id in structures]
    scored = [consistency_score(one, structures[one.question.id]) for one in known]
    groups: dict[str, list[ConsistencyScore]] = {}
    for one in scored:
        groups.setdefault(one.statement.forecaster, []).append(one)
    entries = [StudyRow(name=name, values=_row(group, tolerance, resampling)) for name, group in groups.items()]
    table = _consistency_table(entries)
    return StudyResult(
        name="consistency",
        title="Do the probabilities fit each other?",
        sentences=(_sentence(scored, tolerance),),
        tables=(table, _origins(known, structures)),
        charts=tuple(_charts(table)),
        notes=tuple(_notes(statements, known, structures)),
        settings={"tolerance": tolerance, "draws": resampling.draws, "seed": resampling.seed},
        how_to_read=ADVICE,
    )


def _consistency_table(entries: Sequence[StudyRow]) -> StudyTable:
    return StudyTable(
        title="Consistency by forecaster",
        row_header="Forecaster",
        columns=(
            StudyColumn(label="chain events", decimals=0),
            StudyColumn(label="logic", decimals=3, tip="logical-chain score: 1 is consistent"),
            StudyColumn(label="fall", decimals=3, tip="mean of the worst fall along a chain"),
            StudyColumn(label="exclusive events", decimals=0),
            StudyColumn(label="exclusive", decimals=3, tip="share of events that sum to one"),
            StudyColumn(label="sum", decimals=3, tip="mean sum minus one"),
        ),
        rows=tuple(entries),
        caption="Of the probabilities as stated; in brackets 95 % intervals, events resampled (Wilson for the share).",
    )


def _charts(table: StudyTable) -> Iterator[StudyChart]:
    """The two scores with their intervals, where more than one forecaster has them."""
    for name, label in (("logic", "logical-chain score"), ("exclusive", "share that sums to one")):
        values = table.column(name).items()
        rows = [ForestRow(name=who, interval=value) for who, value in values if isinstance(value, Interval)]
        if len(rows) > 1:
            rows.sort(key=lambda row: -row.interval.estimate)
            yield StudyChart(name=name, title=label.capitalize(), chart=forest_plot(rows, label=label, decimals=3))


def _row(group: Sequence[ConsistencyScore], tolerance: float, resampling: Resampling) -> tuple[CellValue, ...]:
    chained = [(one.logic, one.fall, _cluster(one)) for one in group if one.logic is not None and one.fall is not None]
    summed = [(one.excess, _cluster(one)) for one in group if one.excess is not None]
    fitting = sum(one.sums_to_one(tolerance) for one in group)
    clusters = [cluster for _, _, cluster in chained]
    return (
        len(chained),
        mean_interval([logic for logic, _, _ in chained], clusters, resampling),
        mean_interval([fall for _, fall, _ in chained], clusters, resampling),
        len(summed),
        share_interval(fitting, len(summed)),
        mean_interval([excess for excess, _ in summed], [cluster for _, cluster in summed], resampling),
    )


def _cluster(one: ConsistencyScore) -> str:
    return one.statement.question.cluster


def _origins(known: Sequence[StatedForecast], structures: Mapping[str, OutcomeStructure]) -> StudyTable:
    """How many questions have a structure, and who says so."""
    asked = {one.question.id for one in known}
    found = [structures[id] for id in asked]
    chains = Counter(one.chains_by for one in found if one.chains)
    sets = Counter(one.exclusive_by for one in found if one.exclusive)
    names = ("declared", "wording", "judge")
    return StudyTable(
        title="Where the structure comes from",
        row_header="Source",
        columns=(StudyColumn(label="with chains", decimals=0), StudyColumn(label="with an exclusive set", decimals=0)),
        rows=tuple(StudyRow(name=name, values=(chains[name], sets[name])) for name in names),
        caption=f"Of {len(asked)} questions. Declared by the question, read from its wording, or found by a model.",
    )


def _sentence(scored: Sequence[ConsistencyScore], tolerance: float) -> str:
    logic = [one.logic for one in scored if one.logic is not None]
    summed = [one for one in scored if one.excess is not None]
    told: list[str] = []
    if logic:
        told.append(f"over {len(logic)} forecasts with chains the logical-chain score is {sum(logic) / len(logic):.3f}")
    if summed:
        fitting = sum(one.sums_to_one(tolerance) for one in summed)
        told.append(f"{fitting} of {len(summed)} forecasts of exclusive outcomes sum to one")
    text = "; ".join(told) or "no question has chains or exclusive outcomes"
    return text[0].upper() + text[1:] + "."


def _notes(
    statements: Sequence[StatedForecast], known: Sequence[StatedForecast], structures: Mapping[str, OutcomeStructure]
) -> list[str]:
    lost = len(statements) - len(known)
    told = Counter(note for one in structures.values() for note in one.notes)
    noted = [f"{n} questions: {note}" for note, n in told.most_common(5)]
    return [*([f"{lost} statements on questions of unknown structure left out"] if lost else []), *noted]
