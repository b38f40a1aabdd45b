"""Requests that score and compare forecasts, and those that learn from outcomes how to correct them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator

from foretell.operations.requests.asking import ShortText
from foretell.request import OperationRequest, setting
from foretell.scoring.role_columns import ROLE_COLUMNS, RoleColumns

METRIC_NAMES = "foretell.metrics.metric:METRICS"


def _columns(value: Any) -> Any:
    """Names given one by one or separated by commas, as a tuple.

    >>> _columns("source, horizon"), _columns(("source,horizon", "kind"))
    (('source', 'horizon'), ('source', 'horizon', 'kind'))
    """
    parts = (value,) if isinstance(value, str) else value
    return tuple(name.strip() for part in parts for name in str(part).split(",") if name.strip())


Columns = Annotated[tuple[str, ...], BeforeValidator(_columns)]
"""Names of columns, repeated or separated by commas."""

_FORECASTS: Any = setting(
    help="Table of forecasts: forecaster, question, target, p, trial.", flag="-f/--forecasts", metavar="FILE"
)
_OUTCOMES: Any = setting(
    None,
    "Table of outcomes: question, target, outcome, due, resolved_on; forecasts that have these columns need none.",
    flag="-o/--outcomes",
    metavar="FILE",
)
_DROP_UNKNOWN: Any = setting(False, "Leave out forecasts whose target is not in the outcomes.")
_FORECASTER: Any = setting(None, "Which forecaster; required if the table has several.", metavar="NAME")
_CLUSTER: Any = setting(
    (),
    "Columns that define clusters, which are resampled as a whole; two columns are crossed.",
    metavar="COLUMNS",
    group="statistics",
)
CombineTrials = Literal["mean", "logit-mean", "separate"]
CalibrationMethod = Literal["default", "platt", "hierarchical", "isotonic", "beta", "shrink", "bayes-shrink", "paper"]


class TablesRequest(OperationRequest):
    """A table of forecasts and a table of outcomes. In Python, each can also be a data frame or a list of rows."""

    forecasts: Any = setting(
        help="Table of forecasts: forecaster, question, target, p.", flag="-f/--forecasts", metavar="FILE"
    )
    outcomes: Any = setting(
        None,
        "Table of outcomes: question, target, outcome, and columns to group by; forecasts with a column outcome need "
        "none.",
        flag="-o/--outcomes",
        metavar="FILE",
    )
    combine: CombineTrials = setting("mean", "How several trials of one forecaster become one forecast.")
    weights: Literal["equal", "question"] = setting(
        "equal", "Without a weight column: count every target once (equal), or every question once (question)."
    )
    drop_unknown: bool = _DROP_UNKNOWN
    columns: RoleColumns = ROLE_COLUMNS


class ScoringRequest(TablesRequest):
    """Tables or stored runs, what to compute from them, and how to compute intervals.

    Runs and tables can be combined on one leaderboard: `--run autumn --run winter -f mine.csv`.
    """

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
    runs: tuple[ShortText, ...] = setting(
        (), "A stored run, by name or by the beginning of its id; may be repeated.", flag="--run", metavar="RUN"
    )

    by: Columns = setting((), "Also score each combination of these columns, e.g. source,horizon.", metavar="COLUMNS")
    metric: str = setting("brier_index", "The metric that ranks the table.", metavar="NAME", names=METRIC_NAMES)
    reference: str | None = setting(
        None, "Compare all others with this forecaster (default: the leader).", metavar="NAME"
    )
    cluster: Columns = _CLUSTER
    missing: float | None = setting(None, "Probability to use for missing forecasts.", metavar="P", ge=0, le=1)
    matters: float | None = setting(
        None,
        "Smallest difference that matters, in the unit of the metric (default: 1 point of Brier index, 0.005 of Brier "
        "score).",
        metavar="DIFFERENCE",
        ge=0,
        group="statistics",
    )
    gamma: float = setting(
        0.0, "Risk aversion of the bettor in return and sharpe, 0 to 1.", ge=0, le=1, group="statistics"
    )
    fee: str = setting("none", "Fee the bettor pays: none, kalshi or a rate.", metavar="FEE", group="statistics")
    draws: int = setting(2000, "Number of bootstrap draws.", ge=100, group="statistics")
    seed: int = setting(0, "Seed of the bootstrap.", group="statistics")
    level: float = setting(0.95, "Confidence level of the intervals.", gt=0, lt=1, group="statistics")
    interval: Literal["percentile", "symmetric"] = setting(
        "percentile",
        "How to compute intervals: percentiles, or symmetric about the estimate (Algorithm 1 of Prophet Arena).",
        group="statistics",
    )


class ScoreRequest(ScoringRequest):
    """Score a table of forecasts against a table of outcomes.

    Tables are CSV, Parquet or JSONL, as you have them: columns are recognised by their usual names, and the answer says
    how they were understood; docs/formats.md describes them. An Inspect log can be scored as it is. Every number comes
    with an interval from a bootstrap that resamples whole clusters, and with the share of targets that were answered.
    You can group by any column of the outcomes, and by `difficulty`: how hard a question was for everyone.

    A table of quantiles (forecaster, question, level, value) against outcomes with a column value is scored by CRPS.

      foretell score results.csv --by source --out board.html

      foretell score -f forecasts.csv -o outcomes.csv --columns forecaster=model,p=prob

      foretell score --run autumn --run winter -f mine.csv
    """

    sources: tuple[str, ...] = setting(
        (), "Files of forecasts, or stored runs, to score together.", argument=True, metavar="[FILE_OR_RUN...]"
    )

    metrics: Literal["usual", "all"] = setting(
        "usual",
        "With all: every metric, and the recalibration line, in pages and files; docs/metrics.md explains them.",
    )
    anchors: bool = setting(True, "Add the rows 0.5, base rate and crowd price.")
    title: str | None = setting(None, "Title of the page written by --out FILE.html.")
    costs: Any = setting(None, "Table of forecaster and dollars, to plot score against cost.", metavar="FILE")


class CompareRequest(ScoringRequest):
    """Is one FORECASTER better than another, and is it more than chance?

    Both are scored on the questions that both answered. The interval comes from resampling groups of related
    questions. If you name more than two, each is compared with the last, and p-values are corrected for their number.

      foretell compare mine base -f forecasts.csv -o outcomes.csv --by source --out page.html
    """

    forecasters: tuple[str, ...] = setting(help="The forecasters to compare.", argument=True, metavar="FORECASTER...")
    reference: str | None = setting(None, "Compare with this forecaster (default: the last one named).", metavar="NAME")
    correction: Literal["none", "holm", "bh"] = setting(
        "holm",
        "Correction of p-values for the number of comparisons: holm, bh (Benjamini-Hochberg) or none.",
        group="statistics",
    )


class ErrorsRequest(TablesRequest):
    """Where FORECASTER does well and badly: its worst misses, and its score by source, horizon and other columns."""

    forecaster: str = setting(help="Whose errors to analyse.", argument=True)
    reference: str | None = setting(None, "Also show the difference from this forecaster.", metavar="NAME")
    metric: str = setting("brier_index", "Metric for the groups.", metavar="NAME", names=METRIC_NAMES)
    cluster: Columns = _CLUSTER


class PlanRequest(OperationRequest):
    """How many questions you need to detect an improvement of a given size.

    Name two forecasters of a past comparison as the pilot, or give the standard deviation yourself:

      foretell plan mine base --gain 1 -f forecasts.csv -o outcomes.csv

      foretell plan autumn winter --gain 1 --run autumn --run winter

      foretell plan --gain 1 --sd 0.12
    """

    pilot: tuple[str, ...] = setting(
        (), "Two forecasters of a past comparison.", argument=True, metavar="[FIRST SECOND]"
    )
    gain: float = setting(help="The improvement to detect, in points of the Brier index.")
    index: float | None = setting(
        None, "The Brier index around which to look (default: the pilot's own, or 70).", lt=100
    )
    sd: float | None = setting(None, "Standard deviation of the paired Brier differences.", gt=0)
    forecasts: Any = setting(None, "Table of the pilot's forecasts.", flag="-f/--forecasts", metavar="FILE")
    outcomes: Any = setting(None, "Table of the pilot's outcomes.", flag="-o/--outcomes", metavar="FILE")
    runs: tuple[ShortText, ...] = setting(
        (), "A stored run of the pilot, by name or by the beginning of its id; may be repeated.", flag="--run",
        metavar="RUN",
    )  # fmt: skip
    drop_unknown: bool = _DROP_UNKNOWN
    columns: RoleColumns = ROLE_COLUMNS
    power: float = setting(0.8, "Probability of detecting the gain.", ge=0.05, le=0.999)
    alpha: float = setting(0.05, "Probability of a false alarm.", ge=0.0001, le=0.5)


class _PastRequest(OperationRequest):
    """Resolved forecasts to learn from."""

    forecasts: Path = _FORECASTS
    outcomes: Path | None = _OUTCOMES
    drop_unknown: bool = _DROP_UNKNOWN
    columns: RoleColumns = ROLE_COLUMNS


class CalibrateFitRequest(_PastRequest):
    """Fit a calibration rule on forecasts with known outcomes.

    The outcomes need the columns due (when it was asked) and resolved_on (when the answer became known):

      foretell calibrate fit -f f.csv -o o.csv --method hierarchical --out rule.json
    """

    forecaster: str | None = _FORECASTER
    method: CalibrationMethod = setting("default", "The method.")


class CalibrateApplyRequest(OperationRequest):
    """Apply the rule or the thresholds in FITTED to new forecasts.

    A rule refuses the questions it was fitted on, and questions asked before its last training outcome was known.
    Without --outcomes, the columns it needs (due and, if used, source, kind, price, prior, horizon) are taken from the
    forecasts.

    Thresholds add a column decision (True if p is above the threshold) to the table, and refuse the questions they
    were chosen on. With outcomes, accuracy, balanced accuracy and F1 are printed.

      foretell calibrate apply rule.json -f new.csv -o questions.csv --out calibrated.csv

      foretell calibrate apply cut.json -f new.csv --out decided.csv
    """

    fitted: Path = setting(help="File of the fitted rule or thresholds.", argument=True)
    forecasts: Path = _FORECASTS
    outcomes: Path | None = setting(
        None, "Table with due, source, kind and price of the questions.", flag="-o/--outcomes", metavar="FILE"
    )
    forecaster: str | None = _FORECASTER
    drop_unknown: bool = _DROP_UNKNOWN
    columns: RoleColumns = ROLE_COLUMNS
    name: str | None = setting(
        None, "Name of the result (default: the forecaster's name plus calibrated, or ensemble)."
    )
    check: Literal["time", "ids"] = setting(
        "time",
        "With ids, the rule accepts questions asked before its training ended: for a check, not for publication.",
    )


class ThresholdRequest(_PastRequest):
    """Choose the probability above which a claim is called True: on validation rows, judged on test rows.

    The outcomes say which is which in a column split (for claims: subtype).

      foretell calibrate threshold -f f.csv -o o.csv --out cut.json
    """

    split: str | None = setting(
        None, "Column of the outcomes with the split (default: split, or else subtype).", metavar="COLUMN"
    )
    validation: str = setting("validation", "The rows on which the threshold is chosen.", metavar="NAME")
    test: str = setting("test", "The rows on which it is judged.", metavar="NAME")
    criterion: Literal["accuracy", "balanced", "f1"] = setting(
        "accuracy", "What to maximise: accuracy, balanced accuracy over true and false claims, or F1."
    )
    combine: Literal["mean", "logit-mean"] = setting("mean", "How several trials become one forecast.")
    draws: int = setting(2000, "Number of bootstrap draws.", ge=100)
    seed: int = setting(0, "Seed of the bootstrap.")


class EnsembleRequest(_PastRequest):
    """Fit weights for combining several forecasters.

    Later rounds decide how far to move away from equal weights; if there is no gain beyond noise, weights stay equal.
    Apply the file like any other rule:

      foretell calibrate ensemble -f past.csv -o outcomes.csv --out rule.json

      foretell calibrate apply rule.json -f new.csv -o questions.csv --out combined.csv
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"method=greedy": "steps replacement"}
    method: Literal["greedy", "skill", "pooled", "best", "equal"] = setting(
        "greedy", "Add the best step by step, weight by past skill, stack log-odds, take the best so far, or use "
        "equal weights.",
    )  # fmt: skip
    steps: int = setting(20, "Maximum number of steps of the greedy selection.", ge=1)
    replacement: bool = setting(True, "Allow the greedy selection to add a member again, which gives it more weight.")
