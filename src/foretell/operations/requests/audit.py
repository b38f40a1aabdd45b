"""The request that audits a run, or a model as the leakage filter."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

from pydantic import model_validator

from foretell.questions.errors import InputError
from foretell.request import OperationRequest, setting
from foretell.scoring.bootstrap_options import BOOTSTRAP, Bootstrap


class AuditRequest(OperationRequest):
    """How much of RUN's score could be leakage?

    A second model reads what the run was shown and what was withheld, and the report counts what the leakage filter got
    wrong. It also searches the agent's reasoning for events after the cutoff that are in no source. Given a run
    without tools and one without a filter, it estimates how much of the score undetected leaks can be worth at most.
    Each text is paid for once: repeating an audit costs nothing.

    With --filter instead of RUN, models are tested as the filter on thousands of synthetic texts, leaks and clean ones.

      foretell audit RUN --auditor openrouter:x-ai/grok-4.1-fast --no-tools RUN2 --no-filter RUN3

      foretell audit --filter local:model.gguf --sample 100
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {
        "run": "auditor no_tools no_filter allow_same_model",
        "no_tools or no_filter": "outcomes bootstrap",
    }

    run: str | None = setting(None, "The run to audit.", argument=True, metavar="[RUN]")
    auditor: str | None = setting(None, "Model that audits (default: the auditor in the run's spec).", metavar="MODEL")
    sample: int | None = setting(None, "Judge only N texts; a larger sample contains a smaller one.", metavar="N", ge=1)
    no_tools: str | None = setting(
        None, "A run of the same questions without tools, to estimate leakage in score points.", metavar="RUN"
    )
    no_filter: str | None = setting(
        None, "A run of the same questions without the leakage filter, for the same purpose.", metavar="RUN"
    )
    filter: tuple[str, ...] = setting(
        (), "Instead of RUN: test this model as the leakage filter; `rules` for the rules alone; may be repeated.",
        metavar="MODEL",
    )  # fmt: skip
    budget: float | None = setting(
        None, "Hard limit in dollars; texts beyond it stay unaudited.", metavar="DOLLARS", gt=0
    )
    outcomes: Path | None = setting(
        None, "Table of outcomes (question, target, outcome), if the questions have none.", flag="-o/--outcomes",
        metavar="FILE",
    )  # fmt: skip
    allow_same_model: bool = setting(False, "Allow the model that filtered the run to audit it.")
    bootstrap: Bootstrap = BOOTSTRAP

    @model_validator(mode="after")
    def _run_or_filter(self) -> Self:
        if (self.run is None) == (not self.filter):
            raise InputError("an audit needs a run or a filter", hint="give RUN, or --filter MODEL without RUN")
        return self
