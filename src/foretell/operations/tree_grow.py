"""Grow a tree of claims, by a run with one question."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from foretell.forecasters.forecaster import make_forecaster
from foretell.forecasters.tree.arithmetic.sensitivity import sensitivities
from foretell.forecasters.tree.exports import one_line
from foretell.forecasters.tree.forecaster import CLAIM
from foretell.forecasters.tree.parts import reconciliation_parts
from foretell.forecasters.tree.proposition import ROOT, Proposition, Tree
from foretell.forecasters.tree.tree_file import tree_to_dict, write_tree
from foretell.frozen import frozen
from foretell.models.ledger import Money
from foretell.operations.requests.trees import TreeRequest, TreeUpdateRequest
from foretell.operations.tree import INPUTS_SHOWN, TreeDocument, print_tree
from foretell.operations.tree_plan import Planner, TreePlan
from foretell.operations.typed_question import typed_question, typed_run_spec
from foretell.questions.errors import InputError, NoAnswer
from foretell.questions.forecast import Cost, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent, ignore_event
from foretell.report.terminal import show_text
from foretell.runs.costs import UNPAID_NOTE, answer_money, cost_in_errors, cost_text
from foretell.runs.grown_trees import grown_trees
from foretell.runs.question_sets import typed_questions
from foretell.runs.runner import PreparedRun, check_options, check_run, execute_run, prepare_run
from foretell.runs.runtime import TreeOutput
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import RunSpec, usual_forecaster
from foretell.runs.store import RunStore
from foretell.runs.tree_files import tree_folder
from foretell.runs.tree_runtime import ReasonOptions, TreeOptions


@frozen
class TreeResult(TreeDocument):
    """A grown tree, with its cost and its file."""

    forecast: Forecast
    path: Path
    """The tree's file."""
    run: str
    cautions: tuple[str, ...] = ()
    """What a model may have known beforehand."""
    notes: tuple[str, ...] = ()
    paid: Money | None = None
    """What growing it cost; None for a tree that was stored before."""

    @property
    def money(self) -> Money:
        """What was billed now, and what cached replies cost originally."""
        return answer_money(self.usage, self.paid)

    @property
    def usage(self) -> Cost:
        """Dollars, calls and tokens."""
        return self.forecast.usage

    @property
    def warnings(self) -> tuple[str, ...]:
        """Caveats for the reader, and where the tree is."""
        notes = (*self.failures, *self.cautions, *map(one_line, self.tree.notes), *self.notes)
        return (*notes, f"Wrote {self.path}")

    def to_dict(self) -> dict[str, Any]:
        """Return the answer, its most important inputs, its cost, and the whole tree."""
        counted = ("dollars", "calls", "input_tokens", "output_tokens")
        return {
            "claim": self.tree.nodes[self.tree.root].claim,
            "p": self.p,
            "reconciliation": reconciliation_parts(self.tree),
            "run": self.run,
            "file": str(self.path),
            "depends_on": [
                {"id": sensitivity.id, "claim": sensitivity.claim, "p": sensitivity.p, "slope": sensitivity.slope}
                for sensitivity in sensitivities(self.tree)[:INPUTS_SHOWN]
            ],
            "usage": {name: getattr(self.usage, name) for name in counted},
            **self.money.to_dict(),
            "warnings": list(self.cautions),
            "failures": list(self.failures),
            "notes": list(self.notes),
            "tree": tree_to_dict(self.tree),
        }

    def print(self, console: "Console") -> None:
        """Print the outline and the cost."""
        print_tree(self.tree, console)
        steps = f"Every step: foretell show {self.run} {self.forecast.question_id}"
        show_text(console, f"{cost_text(self.usage, self.money)}. {steps}\n")


@frozen
class PlannedTree(TreeResult):
    """What growing a tree would take. It has no forecast, and its tree is the claim alone."""

    forecast: Forecast = field(init=False)
    plan: TreePlan

    @property
    def warnings(self) -> tuple[str, ...]:
        """A note that nothing was done."""
        return ("Nothing was asked or written",)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per step."""
        return self.plan.to_dict()["plan"]

    def to_dict(self) -> dict[str, Any]:
        """Return the claim, the steps and their approximate cost."""
        return {"claim": self.tree.nodes[self.tree.root].claim, "run": self.run, **self.plan.to_dict()}

    def print(self, console: "Console") -> None:
        """Print one line per step, and the sum."""
        show_text(console, f"{self.plan}\n")


def tree_spec(request: TreeRequest | TreeUpdateRequest, options: Mapping[str, Any] | None = None) -> RunSpec:
    """Return the run that works on a tree, with these options as defaults.

    Raises InputError if the settings are for another forecaster or for several trees, or if a setting has no effect.
    """
    base = {"options": dict(options or {})}
    if isinstance(request, TreeRequest):
        forecaster = usual_forecaster(request.settings(base).get("options") or {}, "tree")
    else:
        forecaster = "tree"
    spec = typed_run_spec(request, {"forecaster": forecaster, **base})
    if spec.forecaster not in ("tree", "reason"):
        problem = f"these are settings of the forecaster {spec.forecaster!r}"
        hint = "--set forecaster=tree, or --set forecaster=reason"
        raise InputError(problem, path=request.config, column="forecaster", hint=hint)
    if spec.trials != 1:
        hint = "--trials sets how often each leaf is estimated; --set trials=1"
        raise InputError("only one tree is grown", path=request.config, column="trials", hint=hint)
    if spec.options.get("deep_model") and spec.options.get("grounder") not in ("deep", "auto"):
        hint = "add that, or leave this out"
        raise InputError("has no effect without --grounder deep or auto", column="options.deep_model", hint=hint)
    # Stating a default value must not change the id of the run.
    defaults = vars(ReasonOptions() if spec.forecaster == "reason" else TreeOptions())
    usual = {name: list(value) if isinstance(value, tuple) else value for name, value in defaults.items()}
    stated = {name: value for name, value in spec.options.items() if name not in usual or usual[name] != value}
    if spec.forecaster == "reason":
        stated = {"take_apart": "always", **stated}
    # A tree is one trial on one question, so a budget for the run is one for the question too.
    limit = spec.budget.run if spec.budget.question is None else spec.budget.question
    return replace(spec, options=stated, budget=replace(spec.budget, question=limit))


def tree_options(stated: Mapping[str, Any]) -> TreeOptions:
    """Return the options of a run that works on a tree. Raises InputError for one that is unknown or wrong."""
    options = make_forecaster("tree", stated)
    assert isinstance(options, TreeOptions)
    return options


def prepare_tree(request: TreeRequest, settings: Settings) -> PreparedRun:
    """Return the run that grows the tree, checked before anything is stored.

    The same request on the same day is the same run and continues where it stopped.
    """
    spec = tree_spec(request)
    check_run(spec, settings)
    with closing(RunStore(settings.store)) as store:
        # An earlier attempt without a forecast continues with its own question, whose cutoff is stored.
        done = {(question, due) for question, due, _ in store.finished(spec.id)}
        left = [
            question for question in store.questions(spec.id) if (question.id, question.due.isoformat()) not in done
        ]
    question = left[-1] if left else replace(typed_question(request), subtype=CLAIM)
    return prepare_run(spec, typed_questions([question]))


async def grow(
    request: TreeRequest,
    settings: Settings | None = None,
    *,
    watch: EmitEvent = ignore_event,
    tell: Callable[[str], None] = lambda _: None,
) -> TreeResult:
    """Break a claim into smaller claims, have a model estimate each, and combine them.

    Costs money and takes minutes. The numbers can be changed afterwards with `what_if`. If it is killed and started
    again, it reuses every saved reply.
    """
    settings = settings or load_settings()
    if request.plan:
        return _planned(request, settings)
    prepared = prepare_tree(request, settings)
    for notice in prepared.notices:
        tell(notice)
    output = TreeOutput(watch=watch)
    done = await execute_run(prepared, settings, trees=output)
    with closing(RunStore(settings.store)) as store, cost_in_errors(done.money):
        result = stored_tree(store, prepared.spec, prepared.questions[0], settings)
    write_tree(result.path, result.tree)  # Also if it was answered before: the file may have been deleted since.
    return replace(result, cautions=(*result.cautions, *output.warnings), paid=done.money)


def _planned(request: TreeRequest, settings: Settings) -> PlannedTree:
    spec = tree_spec(request)
    check_options(spec)
    planner = Planner(spec=spec)
    if spec.forecaster == "reason":
        plan = planner.reasoning(ROOT, ReasonOptions(**spec.options))
    else:
        plan = planner.growth(ROOT, tree_options(spec.options))
    tree = Tree(root=ROOT, nodes={ROOT: Proposition(id=ROOT, claim=request.claim)})
    return PlannedTree(tree=tree, path=tree_folder(settings) / f"{spec.id}.json", run=spec.id, plan=plan)


def stored_tree(store: RunStore, spec: RunSpec, question: Question, settings: Settings) -> TreeResult:
    """Return the tree that a run has grown for a claim."""
    answers = [answer for answer in store.costed_answers(spec.id) if answer.as_of.at == question.as_of_in(spec.mode).at]
    forecast = answers[-1] if answers else None
    if not isinstance(forecast, Forecast):
        raise NoAnswer(f"the tree has no answer: {forecast.error if forecast else 'nothing was run'}")
    due = question.due.isoformat()
    grown = grown_trees((key.trial, event) for _, key, event in store.events(spec.id, question.id) if key.due == due)
    if not grown:
        raise NoAnswer("the tree was not finished, or cannot be read")
    return TreeResult(
        tree=grown[-1].tree,
        forecast=forecast,
        path=tree_folder(settings) / f"{spec.id}.json",
        run=spec.id,
        cautions=prepare_run(spec, typed_questions([question])).warnings,
        notes=() if forecast.usage.calls else (UNPAID_NOTE,),
    )
