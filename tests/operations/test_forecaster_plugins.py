"""Forecasters of other packages get models, options and past questions like the built-in ones."""

import asyncio
import json
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar

import pytest

from foretell import plugins
from foretell.forecasters.forecaster import Context, as_forecaster, build_forecaster
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Snapshot, Target
from foretell.runs.question_sets import Benchmark
from foretell.runs.runner import asks_models, check_options, execute_run, prepare_run
from foretell.runs.settings import load_settings
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.runs.store import RunStore

SNOW = Question(id="snow", source="own", text="Will it snow in Oslo?", due="2026-01-10")


@dataclass(frozen=True, kw_only=True)
class Echo:
    """Asks the model for a number and moves it."""

    asks_models: ClassVar[bool] = True
    add: float = 0.0

    @property
    def name(self) -> str:
        return f"echo {self.add:g}"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        reply = await context.ask(f"How likely is it? {question.text}", slot=question.id)
        p = {target.id: json.loads(reply.text)["p"] + self.add for target in question.targets}
        return Forecast(question_id=question.id, forecaster=self.name, as_of=context.as_of, p=p)


async def half_of_the_model(question, context):
    return json.loads((await context.ask(question.text)).text)["p"] / 2


def half_the_price(question, share=0.5):
    return question.targets[0].snapshot.price * share


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    mine = {("forecasters", "echo"): Echo, ("forecasters", "half"): half_of_the_model}
    monkeypatch.setattr(plugins, "_REGISTERED", {**mine, ("forecasters", "half-price"): half_the_price})


def run(tmp_path, question=SNOW, **fields) -> Forecast | Failure:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"text": '{"p": 0.4}'}) + "\n")
    models = {"agent": f"scripted:{script}"} if fields.pop("models", True) else {}
    spec = RunSpec(questions=QuestionsSpec(dataset="mine"), models=models, **fields)
    check_options(spec)
    from foretell.data.datasets.question_set import QuestionSet

    question_set = QuestionSet(name="mine", questions=(question,))
    settings = load_settings({"FORETELL_HOME": str(tmp_path / "home")})
    prepared = prepare_run(spec, Benchmark(questions=question_set, history=question_set))
    asyncio.run(execute_run(prepared, settings))
    with closing(RunStore(settings.store)) as store:
        (answer,) = store.answers(spec.id)
    return answer


def test_a_class_that_asks_models(tmp_path):
    answer = run(tmp_path, forecaster="echo", options={"add": 0.1})
    assert (answer.forecaster, answer.p, answer.usage.calls) == ("echo 0.1", {"yes": 0.5}, 1)
    with pytest.raises(InputError, match="the forecaster 'echo' has no option 'ad'"):
        run(tmp_path, forecaster="echo", options={"ad": 0.1})
    with pytest.raises(InputError, match="'echo' asks a model"):
        build_forecaster("echo")


def test_plain_functions_with_and_without_models(tmp_path):
    assert run(tmp_path, forecaster="half").p == {"yes": 0.2}
    priced = Question(
        id="p",
        source="own",
        text="?",
        due="2026-01-10",
        targets=(Target(id="yes", snapshot=Snapshot(at="2026-01-09", last_price=0.6)),),
    )
    assert not asks_models(RunSpec(questions=QuestionsSpec(dataset="mine"), forecaster="half-price"))
    assert run(tmp_path, priced, forecaster="half-price", models=False, options={"share": 0.25}).p == {"yes": 0.15}


def test_a_missing_model_is_named_in_the_error(tmp_path):
    failure = run(tmp_path, forecaster="half", models=False)
    assert isinstance(failure, Failure)
    assert "asks a model, and none was given" in failure.error


def test_invalid_forecasters_are_refused():
    with pytest.raises(InputError, match="is not a forecaster"):
        as_forecaster(3)


def test_a_misspelt_former_name_is_answered_with_the_current_one() -> None:
    with pytest.raises(InputError, match="did you mean 'model_free'"):
        plugins.load("forecasters", "stak")
