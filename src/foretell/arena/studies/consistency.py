"""Do a forecaster's probabilities fit each other? Logical-chain and exclusivity scores over events, with intervals.

Scores are taken of what models stated, before anything was made to fit (Prophet Arena 2025, appendix D.4).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from foretell.arena.report.figures.forest import ForestRow, forest_plot
from foretell.arena.report.study_page import study_page
from foretell.arena.studies.shares import DRAWS, mean, share
from foretell.arena.studies.structure import Structure
from foretell.arena.study import Column, Entry, Grid, Picture, Study, Value
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.consistency import chain_gap, logical_chain_score
from foretell.evaluate.intervals import Interval
from foretell.questions.question import Question

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
class Statement:
    """What a forecaster stated about one question, before it was made to fit."""

    forecaster: str
    question: Question
    p: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Consistency:
    """How consistent one statement is; None where the question has no such structure."""

    statement: Statement
    logic: float | None
    fall: float | None
    """The largest amount by which a claim is held likelier than one it implies."""
    excess: float | None
    """Sum over the exclusive outcomes minus one."""

    def sums_to_one(self, tolerance: float = TOLERANCE) -> bool:
        """Whether the exclusive outcomes sum to one, but for rounding."""
        return self.excess is not None and abs(self.excess) <= tolerance + SLACK


def consistency(statement: Statement, structure: Structure) -> Consistency:
    """The scores of one statement. Outcomes without a probability are left out of chains, and spoil an exclusive set.

    >>> from foretell.arena.studies.structure import Link
    >>> from foretell.questions import Target
    >>> q = Question(id="q", source="s", text="?", due="2026-01-01", targets=tuple(Target(id=x) for x in "abc"))
    >>> chain = Structure(chains=((Link(target="a"), Link(target="b"), Link(target="c")),))
    >>> consistency(Statement(forecaster="f", question=q, p={"a": 0.2, "b": 0.1, "c": 0.4}), chain).logic
    0.5
    """
    p = statement.p
    chains = [[link.chance(p) for link in chain if link.target in p] for chain in structure.chains]
    whole = [chain for chain in chains if len(chain) > 1]
    exclusive = structure.exclusive
    excess = sum(p[target] for target in exclusive) - 1 if exclusive and all(t in p for t in exclusive) else None
    return Consistency(
        statement=statement,
        logic=logical_chain_score(whole) if whole else None,
        fall=max(map(chain_gap, whole)) if whole else None,
        excess=excess,
    )


def consistency_study(
    statements: Sequence[Statement],
    structures: Mapping[str, Structure],
    *,
    tolerance: float = TOLERANCE,
    resampling: Resampling = DRAWS,
) -> Study:
    """The study of many statements; structures by question id."""
    known = [one for one in statements if one.question.id in structures]
    scored = [consistency(one, structures[one.question.id]) for one in known]
    groups: dict[str, list[Consistency]] = {}
    for one in scored:
        groups.setdefault(one.statement.forecaster, []).append(one)
    entries = [Entry(name=name, values=_row(group, tolerance, resampling)) for name, group in groups.items()]
    return Study(
        name="consistency",
        title="Do the probabilities fit each other?",
        finding=_finding(scored, tolerance),
        grids=(_grid(entries), _origins(known, structures)),
        pictures=tuple(_pictures(entries)),
        notes=tuple(_notes(statements, known, structures)),
        settings={"tolerance": tolerance, "draws": resampling.draws, "seed": resampling.seed},
        advice=ADVICE,
    )


def consistency_page(study: Study) -> str:
    """The study as a web page."""
    return study_page(study)


def _grid(entries: Sequence[Entry]) -> Grid:
    return Grid(
        title="Consistency by forecaster",
        head="Forecaster",
        columns=(
            Column(label="chain events", decimals=0),
            Column(label="logic", decimals=3, tip="logical-chain score: 1 is consistent"),
            Column(label="fall", decimals=3, tip="mean of the worst fall along a chain"),
            Column(label="exclusive events", decimals=0),
            Column(label="exclusive", decimals=3, tip="share of events that sum to one"),
            Column(label="sum", decimals=3, tip="mean sum minus one"),
        ),
        entries=tuple(entries),
        caption="Of the probabilities as stated; in brackets 95 % intervals, events resampled (Wilson for the share).",
    )


def _pictures(entries: Sequence[Entry]) -> Iterator[Picture]:
    """The two scores with their intervals, where more than one forecaster has them."""
    for name, place, label in (("logic", 1, "logical-chain score"), ("exclusive", 4, "share that sums to one")):
        found = [(entry.name, entry.values[place]) for entry in entries]
        rows = [ForestRow(name=who, interval=value) for who, value in found if isinstance(value, Interval)]
        if len(rows) > 1:
            rows.sort(key=lambda row: -row.interval.estimate)
            yield Picture(name=name, title=label.capitalize(), figure=forest_plot(rows, label=label, decimals=3))


def _row(group: Sequence[Consistency], tolerance: float, resampling: Resampling) -> tuple[Value, ...]:
    chained = [(one.logic, one.fall, _cluster(one)) for one in group if one.logic is not None and one.fall is not None]
    summed = [(one.excess, _cluster(one)) for one in group if one.excess is not None]
    fitting = sum(one.sums_to_one(tolerance) for one in group)
    clusters = [cluster for _, _, cluster in chained]
    return (
        len(chained),
        mean([logic for logic, _, _ in chained], clusters, resampling),
        mean([fall for _, fall, _ in chained], clusters, resampling),
        len(summed),
        share(fitting, len(summed)),
        mean([excess for excess, _ in summed], [cluster for _, cluster in summed], resampling),
    )


def _cluster(one: Consistency) -> str:
    return one.statement.question.cluster


def _origins(known: Sequence[Statement], structures: Mapping[str, Structure]) -> Grid:
    """How many questions have a structure, and who says so."""
    asked = {one.question.id for one in known}
    found = [structures[id] for id in asked]
    chains = Counter(one.chains_by for one in found if one.chains)
    sets = Counter(one.exclusive_by for one in found if one.exclusive)
    names = ("declared", "wording", "judge")
    return Grid(
        title="Where the structure comes from",
        head="Source",
        columns=(Column(label="with chains", decimals=0), Column(label="with an exclusive set", decimals=0)),
        entries=tuple(Entry(name=name, values=(chains[name], sets[name])) for name in names),
        caption=f"Of {len(asked)} questions. Declared by the question, read from its wording, or found by a model.",
    )


def _finding(scored: Sequence[Consistency], tolerance: float) -> str:
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
    statements: Sequence[Statement], known: Sequence[Statement], structures: Mapping[str, Structure]
) -> list[str]:
    lost = len(statements) - len(known)
    told = Counter(note for one in structures.values() for note in one.notes)
    noted = [f"{n} questions: {note}" for note, n in told.most_common(5)]
    return [*([f"{lost} statements on questions of unknown structure left out"] if lost else []), *noted]
