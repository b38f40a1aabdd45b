"""A made-up run in a store, told as an agent would have told it: for pages, their tests and their benchmarks."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from foretell.questions import (
    BeliefRevised,
    Cost,
    Exclusivity,
    Failed,
    Failure,
    Forecast,
    ForecastMade,
    LeakBlocked,
    ModelCalled,
    Question,
    Target,
    ToolUsed,
    TraceEvent,
    instant,
)
from foretell.runs import BudgetSpec, CellKey, QuestionsSpec, RunSpec, RunStore, cells_of, prepare_run, read_spec

BEGAN = "2026-11-15T08:00:00+00:00"


def run_id_of(spec: str | Path) -> str:
    """The id of the run that a spec's file starts, over its questions as they are now."""
    path = Path(spec)
    return prepare_run(read_spec(path), folders=(path.parent, Path())).spec.id


@dataclass(frozen=True, kw_only=True)
class RunWords:
    """What strangers wrote: models, pages, markets."""

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
    """How large a run is and how it goes."""

    questions: int = 2
    trials: int = 2
    steps: int = 3
    options: tuple[str, ...] = ()
    """Outcomes instead of yes and no."""
    exclusivity: Exclusivity = "exactly one"
    failing: int = 0
    """So many of its questions fail in their last trial."""
    words: RunWords = RunWords()

    @property
    def spec(self) -> RunSpec:
        """What was run."""
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
        """Put all of it into a store; its id."""
        run = self.begin(store)
        for cell in cells_of(run, self.asked(), self.trials):
            fails = cell.trial == self.trials - 1 and int(cell.question.id[-4:]) < self.failing
            self.tell(store, cell.key, fails=fails)
        return run

    def begin(self, store: RunStore) -> str:
        """Note the run and its questions, without any answer."""
        spec = self.spec
        store.begin(spec.id, spec.to_json(), BEGAN, services=("openai",))
        store.keep_questions(spec.id, self.asked())
        return spec.id

    def tell(self, store: RunStore, key: CellKey, *, fails: bool = False) -> None:
        """One cell from its beginning to its end."""
        store.start_cell(key)
        store.add_events((key, event) for event in self.events(key.trial, fails=fails))
        self.finish(store, key, fails=fails)

    def finish(self, store: RunStore, key: CellKey, *, fails: bool = False) -> None:
        """Its answer."""
        question = next(one for one in self.asked() if one.id == key.question)
        if fails:
            failure = Failure(
                question_id=question.id,
                forecaster="agent",
                as_of=question.as_of,
                trial=key.trial,
                error=self.words.error,
            )
            store.finish_cell(key, failure)
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
        store.finish_cell(key, forecast)

    def p(self, step: int, trial: int) -> dict[str, float]:
        """The belief after a step."""
        first = 0.5 - 0.3 * step / (self.steps or 1) + 0.04 * trial
        if not self.options:
            return {"yes": first}
        rest = (1 - first) / (len(self.options) - 1)
        return {option: first if i == 0 else rest for i, option in enumerate(self.options)}

    def events(self, trial: int, *, fails: bool = False) -> Iterator[TraceEvent]:
        """What happened in one trial."""
        words = self.words
        for step in range(1, self.steps + 1):
            yield ModelCalled(
                role="agent", model="openai:made-up", key="00", input_tokens=400, output_tokens=100, dollars=0.003
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
