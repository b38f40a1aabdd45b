"""What the outcomes of standing questions change: they count among the past that combinations are fitted to.

A confirmed outcome is stored with every run that a question's forecasts come from. From then on, the weights of later
answers are fitted to it as to the outcome of any other run, out of time.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

import numpy as np

from foretell.forecasters.combine.default import DATASETS, FEWEST, MARKETS
from foretell.forecasters.combine.default import UNFITTED as START
from foretell.frozen import frozen
from foretell.questions.errors import InputError
from foretell.questions.forecast import Reconciliation
from foretell.questions.resolution import Resolution
from foretell.runs.combine import default_by_day, tree_record
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.spec import RunSpec, spec_from_json
from foretell.runs.store import RunStore
from foretell.standing.own_record import confirmed_outcome, known_since
from foretell.standing.record import QuestionRecord


@frozen
class LearntWeight:
    """A weight before any outcome and as it is used now."""

    name: str
    start: float
    now: float
    n: int
    """Number of outcomes that are known."""
    needed: int
    """About how many are needed before it is changed."""
    enough: bool
    """Whether there are enough that it was tested on outcomes that were unknown when it was fitted."""
    why: str = ""
    """The evidence for the change, in a sentence."""

    @property
    def changed(self) -> bool:
        """Whether outcomes changed it by as much as is shown."""
        return round(self.now, 2) != round(self.start, 2)


def keep_outcomes(store: RunStore, record: QuestionRecord) -> int:
    """Store the confirmed outcome of a question with the runs of its forecasts; return how many targets changed.

    The outcome is dated by when it was known, not by when it was confirmed. If it was withdrawn, it is removed.
    """
    outcome, outcomes, new = confirmed_outcome(record), RunOutcomes(store), 0
    if not record.outcomes:
        return 0
    known_at = known_since(record)
    targets = {target.id for target in record.standing.question.targets}
    for run in dict.fromkeys(belief.run for belief in record.beliefs if belief.run):
        questions = [each for each in store.questions(run) if {target.id for target in each.targets} == targets]
        if len(questions) != 1:
            continue  # Not a run of this question alone.
        if not outcome:
            new += outcomes.withdraw(run, questions[0].id)
            continue
        resolutions = [
            Resolution(
                question_id=questions[0].id,
                target_id=target,
                outcome=came,
                due=questions[0].due,
                resolved_at=known_at,
                provenance=f"standing question {record.standing.id}",
            )
            for target, came in outcome.items()
        ]
        new += outcomes.keep(run, questions, resolutions)
    return new


def learnt_weights(store: RunStore, records: Iterable[QuestionRecord], now: datetime) -> tuple[LearntWeight, ...]:
    """Return the weights that the forecaster of most of these questions uses, before any outcome and now.

    Empty if none of the questions was asked by a model.
    """
    runs = [belief.run for record in records for belief in record.beliefs[:1] if belief.run]
    specs = [spec for run in runs if (spec := _spec(store, run)) is not None and spec.models]
    if not specs:
        return ()
    ((forecaster, model), _), *_ = Counter((spec.forecaster, spec.models.get("agent")) for spec in specs).most_common()
    spec = next(each for each in specs if (each.forecaster, each.models.get("agent")) == (forecaster, model))
    spec = replace(spec, leakage_filter=True)
    day = np.datetime64(now.date())
    rule = default_by_day(store, spec)
    fitted = rule.on(day) if rule is not None else START
    known = None if rule is None else rule.examples.rows.take(rule.examples.known_on < day)
    kinds = [] if known is None else [str(kind) for kind in known.kind.tolist()]
    weights = [
        LearntWeight(
            name=name, start=start.start, now=trust.trust, n=sum((kind == "market") == market for kind in kinds),
            needed=2 * FEWEST, enough=proof.n > 0, why=str(proof) if proof.n else "",
        )
        for name, start, trust, proof, market in (
            ("Own view against the price", MARKETS, fitted.market, fitted.proofs[0], True),
            ("Own view against the estimate without a model", DATASETS, fitted.dataset, fitted.proofs[1], False),
        )
    ]  # fmt: skip
    weights = [weight for weight in weights if weight.n] or weights[:1]
    if (trees := tree_record(store, spec)) is not None:
        started = _tree_start(store, runs)
        if started is not None:
            learnt, kind = started
            now_used = trees.weight(kind, learnt, now.date())
            count = sum(example.known_on < now.date() for example in trees.examples)
            weights.append(
                LearntWeight(name="Weight of the tree", start=learnt, now=now_used, n=count, needed=1, enough=True)
            )
    return tuple(weights)


def _tree_start(store: RunStore, runs: Iterable[str]) -> tuple[float, str] | None:
    """Return the weight that a tree started with, and the kind of its root, of the newest of these runs with a tree."""
    for run in reversed(list(runs)):
        for answer in store.answers(run):
            both = getattr(answer, "reconciliation", None)
            if isinstance(both, Reconciliation):
                return both.weight, both.kind
    return None


def _spec(store: RunStore, run: str) -> RunSpec | None:
    row = store.run(run)
    try:
        return None if row is None else spec_from_json(row.spec)
    except InputError:
        return None
