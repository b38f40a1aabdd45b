"""The scout: the agent's loop with several calls per reply. It returns a blind estimate, evidence and a structure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, get_args

from foretell.forecasters.agent.actions import AgentToolset
from foretell.forecasters.agent.agent import BeliefAgent, rationale
from foretell.forecasters.agent.loop import CURRENT_ESTIMATE, AgentTrial, StopReason, TrialResult
from foretell.forecasters.agent.prompts import StartingSignals
from foretell.forecasters.agent.settings import AgentVariant
from foretell.forecasters.combine.aggregate import Aggregate
from foretell.forecasters.combine.distributions import combined_distribution
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.forecasters.reason.evidence import BlindEstimate, EvidenceItem, evidence_of, evidence_of_all
from foretell.forecasters.tree.grow.ground import LeafBudget
from foretell.frozen import frozen
from foretell.models.model import ToolSpec
from foretell.questions.codec import from_dict, plain_data
from foretell.questions.forecast import Ending, Numeric
from foretell.questions.question import Question
from foretell.questions.trace import EvidenceFound
from foretell.tools.tool import SUBMIT

Structure = Literal["single", "number", "all", "any", "at_least", "split", "weigh"]
STRUCTURES: tuple[Structure, ...] = get_args(Structure)
SCOUT = AgentVariant(
    kind="scout",
    wording="scout",
    parallel=True,
    market_price=True,
    prior=True,
    never=True,
    answer_in_belief=True,
    reading="guided",
)
_STRUCTURE_FIELDS: Mapping[str, Any] = {
    "structure": {"type": "string", "enum": list(STRUCTURES)},
    "parts": {"type": "integer", "minimum": 0, "description": "Parts that are easier to look up than the whole."},
}
_NUMBER_FIELDS: Mapping[str, Any] = {
    "structure": {
        "type": "string",
        "enum": ["number", "split"],
        "description": "`split` if it depends on which scenario comes.",
    },
    "parts": {"type": "integer", "minimum": 0, "description": "Scenarios easier to judge than the number."},
}


@frozen
class ScoutToolset(AgentToolset):
    """The agent's tools, with the structure of the question in `submit`."""

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools; `submit` asks for the structure too."""
        fields = _STRUCTURE_FIELDS if self.form.thresholds is None else _NUMBER_FIELDS
        return tuple(_with_structure(spec, fields) if spec.name == SUBMIT else spec for spec in super().tools)


def _with_structure(spec: ToolSpec, fields: Mapping[str, Any]) -> ToolSpec:
    own = spec.parameters
    parameters = {
        **own,
        "properties": {**own["properties"], **fields},
        "required": [*own["required"], *fields],
    }
    return ToolSpec(name=spec.name, description=spec.description, parameters=parameters)


@frozen
class ScoutReport:
    """What the scout returns."""

    estimate: BlindEstimate
    evidence: tuple[EvidenceItem, ...] = ()
    others: tuple[BlindEstimate, ...] = ()
    """Direct estimates of the other trials."""
    open_questions: tuple[str, ...] = ()
    structure: Structure = "single"
    parts: int = 0
    rationale: str = ""
    """Its reasons with sources, for readers."""
    name: str
    """Name of the scout, marked if nothing was withheld from it in a backtest."""
    how: str = StopReason.SUBMITTED.value
    ending: Ending = "submitted"
    problem: str = ""
    by_series: bool = False
    """Whether a time series answered, without a model."""

    @property
    def numeric(self) -> bool:
        """Whether it is about a number or a date."""
        return self.estimate.distribution is not None

    @property
    def found(self) -> EvidenceFound:
        """What the trial leaves to the others."""
        estimate = self.estimate
        return EvidenceFound(
            items=tuple(item.encoded() for item in self.evidence),
            p=estimate.p,
            distribution=None if estimate.distribution is None else plain_data(estimate.distribution),
        )

    @property
    def of_all(self) -> BlindEstimate:
        """The direct estimate of all trials: the mean of their log-odds, of a number those of their cdfs."""
        if not self.others:
            return self.estimate
        estimates = (self.estimate, *self.others)
        numeric = [estimate.distribution for estimate in estimates if estimate.distribution is not None]
        p = Aggregate(rule="logit-mean").apply([estimate.p for estimate in estimates])
        return replace(self.estimate, p=p, distribution=combined_distribution(numeric) if numeric else None)

    def with_others(self, found: Sequence[Mapping[str, Any]]) -> "ScoutReport":
        """Return the report with what other trials found."""
        items = [item for each in found for item in each["items"]]
        own = self.estimate
        others = [
            BlindEstimate(p=each["p"], distribution=from_dict(stated, Numeric) if stated else None)
            for each in found
            # Trials of earlier versions left only the chances of a number's thresholds.
            if each["p"].keys() == own.p.keys() and bool(stated := each.get("distribution")) == self.numeric
        ]
        return replace(self, evidence=evidence_of_all(self.evidence, items), others=tuple(others))


@frozen
class Scout(BeliefAgent):
    """Researches a question as the belief agent does, with several calls per reply."""

    variant: AgentVariant = SCOUT
    dollars: float | None = None
    """Its share of the budget; None for no limit."""

    async def series_report(self, question: Question, context: Context) -> ScoutReport | None:
        """Return the estimate of a time series, if the question's source is answered by one."""
        bypassed = await self._bypassed(question, context)
        if bypassed is None:
            return None
        distribution = bypassed.distribution if isinstance(bypassed.distribution, Numeric) else None
        return ScoutReport(
            estimate=BlindEstimate(p=bypassed.p, distribution=distribution, reason=bypassed.rationale),
            structure="number",
            rationale=bypassed.rationale,
            name=self.name,
            how=StopReason.BYPASS.value,
            by_series=True,
        )

    def trial(self, question: Question, context: Context) -> AgentTrial:
        """Return the research, which is then run."""
        budget = LeafBudget(self.dollars)
        trial = self._trial(question, budget.metered(context))
        toolset = ScoutToolset(form=trial.toolset.form, variant=self.variant, research=trial.toolset.research)
        return replace(trial, toolset=toolset, must_end=lambda: budget.nearly_spent)

    def _signals(self, question: Question, context: Context) -> StartingSignals:
        """Return the starting signals; the outside view in the prompt takes the place of the bare base rate."""
        return replace(super()._signals(question, context), prior_shown=not self.extra)

    def report(self, trial: AgentTrial, ending: TrialResult) -> ScoutReport:
        """Return what the research led to. Raises `CannotForecast` if no probability was ever stated."""
        name = trial.toolbox.marked_name(self.name)
        if ending.p is None:
            why = ending.stop.value.replace(CURRENT_ESTIMATE, "no probability was stated")
            raise CannotForecast(f"{why}: {ending.detail}" if ending.detail else why, forecaster=name)
        sources = trial.toolbox.sources
        evidence = evidence_of(ending.belief, sources)
        structure, parts = _structure(ending.submitted)
        if trial.toolset.form.thresholds is not None and structure != "split":
            structure = "number"
        return ScoutReport(
            estimate=BlindEstimate(
                p=ending.p,
                distribution=ending.distribution,
                reason=ending.reason or ending.belief.reason,
            ),
            evidence=evidence,
            open_questions=ending.belief.open_questions,
            structure=structure,
            parts=parts,
            rationale=rationale(ending, ending.p, sources),
            name=name,
            how=ending.stop.value,
            ending=ending.ending,
            problem=(ending.detail or ending.stop.value) if ending.ending == "fallback" else "",
        )


def _structure(submitted: Mapping[str, Any]) -> tuple[Structure, int]:
    """Read the structure and the number of parts from what was submitted; `single` if it states none."""
    structure, parts = submitted.get("structure"), submitted.get("parts")
    if structure not in STRUCTURES:
        return "single", 0
    return structure, parts if isinstance(parts, int) and not isinstance(parts, bool) else 0
