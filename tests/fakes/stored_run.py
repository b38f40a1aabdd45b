"""A synthetic run in a store, with the events of an agent: for pages, their tests and their benchmarks."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from foretell.questions.as_of import instant
from foretell.questions.forecast import Cost, Failure, Forecast
from foretell.questions.question import Exclusivity, Question, Target
from foretell.questions.trace import (
    BeliefRevised,
    Failed,
    ForecastMade,
    LeakBlocked,
    ModelCalled,
    ToolUsed,
    TraceEvent,
)
from foretell.runs.runner import prepare_run
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec, read_spec
from foretell.runs.store import RunStore, TrialKey, trials_of

BEGAN = "2026-11-15T08:00:00+00:00"


def run_id_of(spec: str | Path) -> str:
    """Return the id of the run that a spec file starts on its current questions."""
    path = Path(spec)
    return prepare_run(read_spec(path), folders=(path.parent, Path())).spec.id


@dataclass(frozen=True, kw_only=True)
class RunWords:
    """Text from untrusted sources: models, pages, markets."""

    question: str = "Will the harbour bridge number {n} be approved?"
    criteria: str = "YES if the council announces approval."
    claim: str = "The council expects a vote in autumn."
    title: str = "Council on the harbour bridge"
    url: str = "https://news.example/bridge"
    query: str = "harbour bridge council vote"
    result: str = "Members expect a vote in autumn."
    rationale: str = "The council **leans** towards approval."
    error: str = "ModelError: the provider is overloaded"


@dataclass(frozen=True, kw_only=True)
class StoredRunBuilder:
    """The size and course of a run."""

    questions: int = 2
    trials: int = 2
    steps: int = 3
    options: tuple[str, ...] = ()
    """Outcomes instead of yes and no."""
    exclusivity: Exclusivity = "exactly one"
    failing: int = 0
    """Number of questions that fail in their last trial."""
    words: RunWords = RunWords()

    @property
    def spec(self) -> RunSpec:
        """The spec of the run."""
        return RunSpec(
            questions=QuestionsSpec(dataset=f"made-up {self.questions} × {self.trials} × {self.steps}"),
            models={"agent": "openai:made-up"},
            search=("local",),
            trials=self.trials,
            budget=BudgetSpec(run=5.0),
        )

    def asked(self) -> tuple[Question, ...]:
        """Its questions."""
        return tuple(self._question(n) for n in range(self.questions))

    def _question(self, n: int) -> Question:
        return Question(
            id=f"own/{n:04}",
            source="own",
            text=self.words.question.replace("{n}", str(n)),
            criteria=self.words.criteria,
            due=instant("2026-07-01"),
            closes_at=instant("2026-12-31"),
            url=self.words.url,
            targets=tuple(Target(id=option, label=option) for option in self.options) or (Target(id="yes"),),
            exclusivity=self.exclusivity,
        )

    def keep(self, store: RunStore) -> str:
        """Write the whole run into a store; return its id."""
        run = self.begin(store)
        for trial in trials_of(run, self.asked(), self.trials):
            fails = trial.trial == self.trials - 1 and int(trial.question.id[-4:]) < self.failing
            self.tell(store, trial.key, fails=fails)
        return run

    def begin(self, store: RunStore) -> str:
        """Store the run and its questions, without any answer."""
        spec = self.spec
        store.begin(spec.id, spec.to_json(), BEGAN, services=("openai",))
        store.keep_questions(spec.id, self.asked())
        return spec.id

    def tell(self, store: RunStore, key: TrialKey, *, fails: bool = False) -> None:
        """Store one trial from beginning to end."""
        store.start_trial(key)
        store.add_events((key, event) for event in self.events(key.trial, question=key.question, fails=fails))
        self.finish(store, key, fails=fails)

    def finish(self, store: RunStore, key: TrialKey, *, fails: bool = False) -> None:
        """Store the answer of a trial."""
        question = next(candidate for candidate in self.asked() if candidate.id == key.question)
        if fails:
            failure = Failure(
                question_id=question.id,
                forecaster="agent",
                as_of=question.as_of,
                trial=key.trial,
                error=self.words.error,
            )
            store.finish_trial(key, failure)
            return
        forecast = Forecast(
            question_id=question.id,
            forecaster="agent",
            as_of=question.as_of,
            p=self.p(self.steps, key.trial),
            trial=key.trial,
            rationale=f"{self.words.rationale}\n\nSources:\n[search_1_result_1] {self.words.title} (2026-06-01) "
            f"{self.words.url}",
            usage=Cost(dollars=0.01, input_tokens=1200, output_tokens=300, seconds=12.5, calls=self.steps),
        )
        store.finish_trial(key, forecast)

    def p(self, step: int, trial: int) -> dict[str, float]:
        """Return the belief after a step."""
        first = 0.5 - 0.3 * step / (self.steps or 1) + 0.04 * trial
        if not self.options:
            return {"yes": first}
        rest = (1 - first) / (len(self.options) - 1)
        return {option: first if i == 0 else rest for i, option in enumerate(self.options)}

    def events(self, trial: int, *, question: str = "", fails: bool = False) -> Iterator[TraceEvent]:
        """Yield the events of one trial of a question."""
        words = self.words
        for step in range(1, self.steps + 1):
            key = sha256(f"{question}/{trial}/{step}".encode()).hexdigest()
            yield ModelCalled(
                role="agent", model="openai:made-up", key=key, input_tokens=400, output_tokens=100, dollars=0.003
            )
            source = f"search_{step}_result_1"
            yield LeakBlocked(
                layer="date",
                reason="published after the cutoff",
                url=words.url,
                title=words.title,
                published="2026-09-01",
            )
            yield ToolUsed(
                step=step,
                tool="web_search",
                arguments={"query": words.query, "updated_belief": {}},
                result=f"Results:\n\n[{source}] {words.title} (news.example, 2026-06-01)\n{words.result}",
                sources=(source,),
            )
            evidence = [{"id": "e1", "claim": words.claim, "source_id": "search_1_result_1"}]
            yield BeliefRevised(
                step=step,
                p=self.p(step, trial),
                reason=words.claim,
                belief={
                    "confidence": "medium",
                    "evidence_for": evidence,
                    "evidence_against": [{"id": "e2", "claim": words.claim, "source_id": ""}],
                    "open_questions": [words.claim],
                },
            )
        if fails:
            yield Failed(error=words.error)
        else:
            yield ForecastMade(p=self.p(self.steps, trial), how="submitted")
