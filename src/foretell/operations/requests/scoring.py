"""Requests that score and compare forecasts, and those that learn from outcomes how to correct them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from foretell.questions.errors import InputError, known_names
from foretell.request import OperationRequest, setting
from foretell.scoring.bootstrap_options import BOOTSTRAP, Bootstrap
from foretell.scoring.role_columns import ROLE_COLUMNS, RoleColumns

METRIC_NAMES = "foretell.metrics.metric:METRICS"


def _columns(value: Any) -> Any:
    """Return names, given one by one or separated by commas, as a tuple.

    >>> _columns("source, horizon"), _columns(("source,horizon", "kind"))
    (('source', 'horizon'), ('source', 'horizon', 'kind'))
    """
    parts = (value,) if isinstance(value, str) else value
    return tuple(name.strip() for part in parts for name in str(part).split(",") if name.strip())


Columns = Annotated[tuple[str, ...], BeforeValidator(_columns)]
"""Names of columns, repeated or separated by commas."""

_OUTCOMES: Any = setting(
    None,
    "Table of outcomes: question, target, outcome, due, resolved_on; forecasts that have these columns need none.",
    flag="-o/--outcomes",
    metavar="FILE",
)
_FORECASTER: Any = setting(None, "Which forecaster; required if the table has several.", metavar="NAME")
CombineTrials = Literal["mean", "logit-mean", "separate"]


class MeasureRequest(OperationRequest):
    """Forecasts with their outcomes, and how to measure them. In Python, a table can also be a data frame or rows."""

    forecasts: Any = setting(
        None, "Table of forecasts: forecaster, question, target, p.", flag="-f/--forecasts", metavar="FILE"
    )
    outcomes: Any = setting(
        None,
        "Table of outcomes: question, target, outcome, and columns to group by; runs, and forecasts with a column "
        "outcome, need none.",
        flag="-o/--outcomes",
        metavar="FILE",
    )
    columns: RoleColumns = ROLE_COLUMNS
    by: Columns = setting(
        (),
        "Also score each combination of these columns, e.g. source,horizon; lead_time and difficulty are computed.",
        metavar="COLUMNS",
    )
    metric: str = setting("brier_index", "The metric that ranks and compares.", metavar="NAME", names=METRIC_NAMES)
    reference: str | None = setting(
        None, "Compare all others with this forecaster (default: the leader).", metavar="NAME"
    )
    missing: float | None = setting(None, "Probability to use for missing forecasts.", metavar="P", ge=0, le=1)
    bootstrap: Bootstrap = BOOTSTRAP


class ScoreRequest(MeasureRequest):
    """Score forecasts against their outcomes.

    Give stored runs by name or id, and tables as files: CSV, Parquet, JSONL, or an Inspect log. Columns are recognised
    by their usual names, and a note says how they were read; docs/settings.md describes them. Every number
    comes with an interval from a bootstrap that resamples whole clusters, and with the share of targets that were
    answered. If the forecasts have a column dollars (stored runs know theirs), the page shows score against cost.

    A table of quantiles (forecaster, question, level, value) against outcomes with a column value is scored by CRPS.

      foretell score results.csv --by source --out board.html

      foretell score -f forecasts.csv -o outcomes.csv --columns forecaster=model,p=prob

      foretell score autumn winter mine.csv --errors mine
    """

    sources: tuple[str, ...] = setting(
        (), "Stored runs and files of forecasts, to score together.", argument=True, metavar="[RUN_OR_FILE...]"
    )
    metrics: Literal["usual", "all"] = setting(
        "usual",
        "With all: every metric, and the recalibration line, in pages and files; docs/scoring.md explains them.",
    )
    errors: str | None = setting(
        None,
        "Analyse the errors of this forecaster: its worst misses, and its score by source, horizon and other columns.",
        metavar="NAME",
    )
    weights: Literal["equal", "question"] = setting(
        "equal", "Without a weight column: count every target once (equal), or every question once (question)."
    )
    combine: CombineTrials = setting("mean", "How trials of one forecaster are combined into one forecast.")
    gamma: float = setting(
        0.0, "Risk aversion of the bettor in return, net and sharpe, 0 to 1.", ge=0, le=1, group="statistics"
    )
    fee: str = setting(
        "none", "Fee the bettor pays in return and sharpe: none, kalshi or a rate.", metavar="FEE", group="statistics"
    )


class Detect(BaseModel):
    """The improvement that a comparison should detect."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    points: float
    """The improvement, in points of the Brier index."""
    power: float = Field(0.8, ge=0.05, le=0.999)
    """Probability of detecting it."""
    alpha: float = Field(0.05, ge=0.0001, le=0.5)
    """Probability of a false alarm."""
    index: float | None = Field(None, lt=100)
    """The Brier index around which it is expected; None takes the forecasters' own, or 70."""

    def __str__(self) -> str:
        parts = {name: getattr(self, name) for name in ("power", "alpha", "index") if name in self.model_fields_set}
        return ",".join([f"{self.points:g}", *(f"{name}={value}" for name, value in parts.items())])


def read_detect(value: Any) -> Any:
    """Read an improvement to detect from a number, a mapping or text such as 1,power=0.9.

    >>> read_detect("1, power=0.9"), read_detect(0.5)
    ({'points': '1', 'power': '0.9'}, {'points': '0.5'})
    """
    if value is None or isinstance(value, Detect):
        return value
    if isinstance(value, Mapping):
        parts = dict(cast("Mapping[str, Any]", value))
    else:
        pairs = [part.partition("=") for part in str(value).split(",") if part.strip()]
        parts = {
            name.strip() if equals else "points": (text if equals else name).strip() for name, equals, text in pairs
        }
    for name in parts:
        if name not in Detect.model_fields:
            raise InputError(
                f"has no part {name!r}", column="--detect", hint=known_names(name, list(Detect.model_fields))
            )
    if "points" not in parts:
        raise InputError("does not say how many points", column="--detect", hint="e.g. --detect 1,power=0.9")
    return parts


class CompareRequest(MeasureRequest):
    """Compare forecasters: which is better, and is it more than chance?

    A NAME is a file of forecasts to read, a forecaster in the tables given, or else a stored run. Two forecasters are
    scored on the questions that both answered. If you name more, each is compared with the last one. If you name files
    or runs alone, all pairs are compared, with McNemar's test of who is right where others are wrong. P-values are
    corrected for the number of comparisons.

    With --detect, it computes how many questions you need to detect an improvement of some points of the Brier index.
    Its spread comes from the two forecasters, or from --sd.

      foretell compare mine base -f forecasts.csv -o outcomes.csv --by source --out page.html

      foretell compare autumn winter results.csv --out page.html

      foretell compare mine base results.csv --detect 1,power=0.9
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"detect": "sd"}

    names: tuple[str, ...] = setting(
        (), "Forecasters to compare, stored runs, and files of forecasts.", argument=True, metavar="[NAME...]"
    )
    reference: str | None = setting(
        None, "Compare all others with this forecaster (default: the last one named).", metavar="NAME"
    )
    correction: Literal["none", "holm", "bh"] = setting(
        "holm",
        "Correction of p-values for the number of comparisons: holm, bh (Benjamini-Hochberg) or none.",
        group="statistics",
    )
    detect: Annotated[Detect | None, BeforeValidator(read_detect), WithJsonSchema({"type": "string"})] = setting(
        None,
        "Compute how many questions are needed to detect a gain of POINTS of the Brier index; "
        "power=0.8,alpha=0.05,index=70 may follow.",
        metavar="POINTS[,...]",
        group="statistics",
    )
    sd: float | None = setting(
        None,
        "Standard deviation of the paired Brier differences, in place of two forecasters.",
        gt=0,
        group="statistics",
    )


CALIBRATION_METHODS = ("default", "platt", "hierarchical", "isotonic", "beta", "shrink", "bayes-shrink", "paper")
ENSEMBLE_METHODS = ("greedy", "skill", "pooled", "best", "equal")
THRESHOLD = "threshold"
FIT_METHODS = (*CALIBRATION_METHODS, *ENSEMBLE_METHODS, THRESHOLD)
"""Methods of `calibrate fit`."""


class GreedySettings(OperationRequest):
    """Settings of the method greedy."""

    steps: int = setting(20, "Maximum number of steps.", ge=1)
    replacement: bool = setting(True, "Allow a member to be added again, which gives it more weight.")


class ThresholdSettings(OperationRequest):
    """Settings of the method threshold."""

    split: str | None = setting(None, "Column of the outcomes with the split (default: split, or else subtype).")
    validation: str = setting("validation", "The rows on which the threshold is chosen.")
    test: str = setting("test", "The rows on which it is judged.")
    criterion: Literal["accuracy", "balanced", "f1"] = setting("accuracy", "What to maximise.")
    combine: Literal["mean", "logit-mean"] = setting("mean", "How trials are combined into one forecast.")
    draws: int = setting(2000, "Number of bootstrap draws.", ge=100)
    seed: int = setting(0, "Seed of the bootstrap.")


class CalibrateFitRequest(OperationRequest):
    """Learn from forecasts with known outcomes how to correct or combine the next ones, or where to cut them.

    platt, hierarchical, isotonic, beta, shrink, bayes-shrink, paper and default correct one forecaster. greedy, skill,
    pooled, best and equal weight several; later rounds decide how far to move away from equal weights. The outcomes
    need the columns due (when it was asked) and resolved_on (when the answer became known).

    threshold chooses the probability above which a claim is called True, on validation rows, and judges it on test
    rows; a column split of the outcomes (for claims: subtype) says which is which.

    Settings: greedy has steps and replacement; threshold has split, validation, test, criterion (accuracy, balanced or
    f1), combine (mean or logit-mean), draws and seed.

      foretell calibrate fit -f past.csv -o outcomes.csv --method hierarchical --out rule.json

      foretell calibrate fit -f past.csv -o outcomes.csv --method greedy --set steps=10 --out rule.json
    """

    forecasts: Path = setting(
        help="Table of forecasts: forecaster, question, target, p, trial.", flag="-f/--forecasts", metavar="FILE"
    )
    outcomes: Path | None = _OUTCOMES
    columns: RoleColumns = ROLE_COLUMNS
    forecaster: str | None = _FORECASTER
    method: str = setting(
        "default", "The method.", metavar="NAME", names="foretell.operations.requests.scoring:FIT_METHODS"
    )
    set: Mapping[str, str] = setting({}, "A setting of the method, such as steps=10; may be repeated.")


class CalibrateApplyRequest(OperationRequest):
    """Apply what `calibrate fit` learnt to new forecasts.

    A rule refuses the questions it was fitted on, and questions asked before its last training outcome was known.
    Without --outcomes, the columns it needs (due and, if used, source, kind, price, prior, horizon) are taken from the
    forecasts.

    Thresholds add a column decision (True if p is above the threshold) to the table, and refuse the questions they
    were chosen on. With outcomes, accuracy, balanced accuracy and F1 are printed.

      foretell calibrate apply rule.json -f new.csv -o questions.csv --out calibrated.csv
    """

    fitted: Path = setting(help="File of the fitted rule or thresholds.", argument=True)
    forecasts: Path = setting(
        help="Table of new forecasts: forecaster, question, target, p, trial.", flag="-f/--forecasts", metavar="FILE"
    )
    outcomes: Path | None = setting(
        None, "Table with due, source, kind and price of the questions.", flag="-o/--outcomes", metavar="FILE"
    )
    columns: RoleColumns = ROLE_COLUMNS
    forecaster: str | None = _FORECASTER
    allow_overlap: bool = setting(
        False,
        "Accept questions asked before the rule's training ended, but none it was fitted on: for a check, not for "
        "publication.",
    )
