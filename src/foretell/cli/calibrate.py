"""foretell calibrate: learn from resolved forecasts how to combine and correct the next ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.cli.options import FILE_PATH
from foretell.plugins import load, names

if TYPE_CHECKING:
    from foretell.forecasters.combine.rows import TrialRows
    from foretell.forecasters.combine.rules import FittedRule
    from foretell.metrics.arrays import Floats

METHODS = tuple(names("combiners"))
FORECASTS = click.option(
    "--forecasts", "-f", required=True, type=FILE_PATH, help="forecaster, question, target, p (+ trial)"
)
OUTCOMES = click.option(
    "--outcomes", "-o", required=True, type=FILE_PATH, help="question, target, outcome, due, resolved_on (+ columns)"
)
FORECASTER = click.option("--forecaster", metavar="NAME", help="Whose forecasts (default: the only ones there are).")
UNKNOWN = click.option("--drop-unknown", is_flag=True, help="Leave out forecasts of targets without an outcome row.")


class CalibrateGroup(click.Group):
    """With the study calibration-report under its short name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands of this file and report."""
        return [*super().list_commands(ctx), "report"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; the study is loaded when it is called."""
        if cmd_name != "report":
            return super().get_command(ctx, cmd_name)
        from foretell.cli.study import study_command
        from foretell.studies.registry import load_study

        return study_command(load_study("calibration-report"))


@click.group(cls=CalibrateGroup)
def calibrate() -> None:
    """Learn from resolved forecasts how to combine and correct the next ones.

    What is learnt is a file of numbers that knows what it learnt from and refuses to judge it.
    """


@calibrate.command()
@FORECASTS
@OUTCOMES
@FORECASTER
@UNKNOWN
@click.option("--method", type=click.Choice(METHODS), default="default", show_default=True, help="What to fit.")
@click.option("--output", "-O", required=True, type=FILE_PATH, help="Where to write the fitted rule (JSON).")
def fit(forecasts: Path, outcomes: Path, forecaster: str | None, drop_unknown: bool, method: str, output: Path) -> None:
    """Fit a rule on forecasts whose outcomes are known.

    The outcomes need the columns due (when it was asked) and resolved_on (when the answer became known):

      foretell calibrate fit -f f.csv -o o.csv --method hierarchical -O rule.json
    """
    from foretell.forecasters.combine.rules import one_sided
    from foretell.forecasters.combine.saving import save
    from foretell.scoring.examples import answered_rows, choose_forecaster, read_examples

    name, examples = choose_forecaster(read_examples(forecasts, outcomes, drop_unknown=drop_unknown), forecaster)
    examples = answered_rows(examples)
    fitted = load("combiners", method)().fit(examples)
    save(fitted, output)
    training = fitted.training
    click.echo(f"Fitted {method} on {training.n:,} targets of {name}, {len(training.askings):,} askings.")
    if one_sided(examples):
        click.echo("All of them came out alike, so nothing about calibration could be learnt.", err=True)
    click.echo(f"Wrote {output}; it answers questions asked after {training.last_known}.")


@calibrate.command()
@click.argument("fitted", type=FILE_PATH)
@FORECASTS
@click.option("--outcomes", "-o", type=FILE_PATH, help="Table with due, source, kind, price, … of the questions.")
@FORECASTER
@UNKNOWN
@click.option("--name", help="What to call the result in its forecaster column (default: NAME, calibrated).")
@click.option(
    "--check",
    type=click.Choice(["time", "ids"]),
    default="time",
    show_default=True,
    help="ids lets a rule judge questions asked before its training ended: for a check, not for a score to publish.",
)
@click.option("--output", "-O", required=True, type=FILE_PATH, help="Where to write the forecasts (.csv or .jsonl).")
def apply(
    fitted: Path,
    forecasts: Path,
    outcomes: Path | None,
    forecaster: str | None,
    drop_unknown: bool,
    name: str | None,
    check: str,
    output: Path,
) -> None:
    """Apply the rule in FITTED to new forecasts.

    It refuses what it was fitted on, and questions asked before the last outcome it learnt from was known. Without
    --outcomes the columns it needs (due, and source, kind, price, prior, horizon where it uses them) are those of the
    forecasts.
    """
    from foretell.forecasters.combine.saving import load
    from foretell.scoring.examples import answered_rows, choose_forecaster, read_rows
    from foretell.scoring.long_tables import write_rows

    rule = load(fitted)
    whose, rows = choose_forecaster(read_rows(forecasts, outcomes, drop_unknown=drop_unknown), forecaster)
    rows = answered_rows(rows)
    p = _applied(rule, rows, fitted, check)
    write_rows(_long(rows, p, name or f"{whose}, calibrated"), output)
    click.echo(f"Wrote {output}: {len(rows):,} forecasts.")


def _applied(rule: "FittedRule", rows: "TrialRows", path: Path, check: Any) -> "Floats":
    from foretell.forecasters.combine.rules import TrainingOverlap
    from foretell.forecasters.combine.rules import apply as apply_fitted
    from foretell.questions.errors import InputError

    try:
        return apply_fitted(rule, rows, check=check)
    except TrainingOverlap as error:
        hint = "fit on earlier rounds, or leave such questions out of the forecasts"
        raise InputError(f"this rule must not judge these forecasts: {error}", path=path, hint=hint) from None


def _long(rows: "TrialRows", p: "Floats", name: str) -> list[dict[str, Any]]:
    columns = zip(rows.question.tolist(), rows.target.tolist(), rows.due.astype(str).tolist(), p.tolist(), strict=True)
    return [{"forecaster": name, "question": q, "target": t, "due": due, "p": value} for q, t, due, value in columns]
