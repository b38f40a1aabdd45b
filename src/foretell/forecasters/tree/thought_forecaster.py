"""Thoughts as a forecaster: a question becomes a claim, thoughts about it are examined, and one is concluded."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.forecaster import (
    AnalyzingForecaster,
    TargetResult,
    claim_line,
    claim_of_target,
    source_list,
)
from foretell.forecasters.tree.grow.budget import FOR_LEAVES
from foretell.forecasters.tree.grow.event_log import EventLog, ThoughtJob
from foretell.forecasters.tree.grow.ground import GroundingPool
from foretell.forecasters.tree.grow.prompting import TreeQuestion
from foretell.forecasters.tree.thought_search import (
    NothingGrounded,
    Thinker,
    ThoughtConclusion,
    ThoughtSettings,
    think,
)
from foretell.models.model import ModelError
from foretell.questions.question import Question, Target


@dataclass(frozen=True, kw_only=True)
class ThoughtsForecaster(AnalyzingForecaster):
    """Chain, tree, graph or forest of thoughts over a grounder."""

    settings: ThoughtSettings = field(default_factory=ThoughtSettings)

    @property
    def _settings(self) -> ThoughtSettings:
        return self.settings

    async def _analyze(
        self, question: Question, target: Target, context: Context, pool: GroundingPool, count: int
    ) -> TargetResult:
        """Every thought has an equal part of the money."""
        log = EventLog[ThoughtJob](self.on_event)
        dollars = self.settings.dollars
        thinker = Thinker(
            claim=claim_of_target(question, target),
            tree_question=TreeQuestion(question=question, as_of=context.as_of, target=target.id),
            context=context,
            pool=pool,
            log=log,
            slot=f"{question.id}/trial {context.trial}/thoughts {target.id}",
            attempts=self.settings.attempts,
            share=None if dollars is None else FOR_LEAVES * dollars / (self.settings.max_thoughts * count),
        )
        p, error, rationale = None, "", ""
        try:
            p, conclusions = await think(thinker, self.settings)
            rationale = _reasons(target.id, conclusions)
        except (NothingGrounded, ModelError) as problem:
            error = f"thinking about {target.id} came to nothing: {str(problem) or type(problem).__name__}"
        events = tuple(log.events(sorted(log.jobs)))
        return TargetResult(p=p, error=error, rationale=rationale, events=events, usage=log.usage())

    def _how(self, results: list[TargetResult]) -> str:
        return f"concluded from a {self.settings.name}"


def _reasons(target: str, conclusions: Sequence[ThoughtConclusion]) -> str:
    """Every conclusion with what it rests on."""
    parts: list[str] = []
    for one in conclusions:
        thoughts = one.line.thoughts
        listed = "\n".join(claim_line(each.id, each.claim, each.p, each.grounding) for each in thoughts)
        sources = source_list([(each.id, source) for each in thoughts for source in each.grounding.sources])
        head = f"{target} {one.p:.3f}: {one.grounding.key_factor}".rstrip(": ")
        parts.append("\n\n".join(filter(None, [head, one.grounding.report, f"Looked into:\n{listed}", sources])))
    return "\n\n".join(parts)
