"""Study: over- and underconfidence, what calibration gains when fitted on the past, thresholds and hedging."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import NormalDist
from typing import Literal, Self

import numpy as np
from pydantic import model_validator

from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.combine.rules import SupportsLeaveOut
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling, mean_interval
from foretell.metrics.calibration import calibration_line, ece, murphy_decomposition
from foretell.number_text import number, plural, signed
from foretell.questions.errors import InputError
from foretell.report.charts.calibration import conservatism_plot
from foretell.report.numbers import CellValue, value_text
from foretell.report.study import (
    RowStyle,
    StudyChart,
    StudyTable,
    column,
    count,
    forest_chart,
    points,
    reliability_chart,
    share,
    table,
)
from foretell.report.study_result import StudyResult
from foretell.request import setting
from foretell.scoring.baselines import OVERALL
from foretell.scoring.verdict import Verdict
from foretell.studies.configurations import (
    BASELINES,
    FOLDS,
    METHODS,
    PROTOCOLS,
    REFITS,
    Protocol,
    ProtocolForecasts,
    baseline_forecasts,
    build_method,
    fit_under_protocol,
    shown_configs,
    study_configs,
    with_scope,
)
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.scores import (
    SPREAD,
    PairedGains,
    RuleScore,
    brier_of,
    estimate,
    gains_chart,
    groups_of,
    mean_gain,
    paired_gains,
    raw_brier,
    rule_score_table,
    rule_scores,
)
from foretell.studies.sections import SECTION, run_sections
from foretell.studies.threshold import threshold_section

RAW_LINE = "raw (logit mean)"
LEARNT_FROM = {"past only": "from the past alone", "question out": "fitted on other questions"}
QUICK: tuple[Protocol, ...] = ("in-sample", "past only")
"""Protocols with few refits, for methods that would refit without each question on many configurations."""
CHARTED = ("default", "hierarchical")


@frozen
class CalibrationReport:
    """Every method under several protocols on one set of examples, each against the logit mean."""

    examples: Examples
    methods: tuple[str, ...]
    protocols: tuple[Protocol, ...]
    judged: Mapping[tuple[str, Protocol], ProtocolForecasts]
    scores: Mapping[str, RuleScore]
    """Scores by row name: a baseline, the logit mean, or "method · protocol"."""

    def score(self, method: str, protocol: Protocol) -> RuleScore:
        """Return the score of one method under one protocol."""
        return self.scores[f"{method} · {protocol}"]


def calibration_report(
    name: str,
    examples: Examples,
    methods: Sequence[str],
    protocols: Sequence[Protocol],
    data: StudyData,
) -> CalibrationReport:
    """Judge every method on the trials of one forecaster under every protocol, and compare with the logit mean."""
    judged: dict[tuple[str, Protocol], ProtocolForecasts] = {}
    for method in methods:
        for protocol in protocols:
            data.progress(len(judged), len(methods) * len(protocols))
            judged[method, protocol] = fit_under_protocol(build_method(method), examples, protocol)
    scores = {RAW_LINE: raw_brier(examples)}
    scores |= {f"{method} · {protocol}": brier_of(fitted.p, examples) for (method, protocol), fitted in judged.items()}
    scores |= {name: brier_of(p, examples) for name, p in baseline_forecasts(examples).items()}
    return CalibrationReport(
        examples=examples,
        methods=tuple(methods),
        protocols=tuple(protocols),
        judged=judged,
        scores={
            rule_score.name: rule_score
            for rule_score in rule_scores(scores, examples, RAW_LINE, data.resampling, forecaster=name)
        },
    )


def protocols_table(report: CalibrationReport, title: str) -> StudyTable:
    """Table with a row per method and the protocols side by side; baselines and the logit mean come first."""
    columns = [
        heading
        for protocol in report.protocols
        for heading in (
            column(f"BI {protocol}", PROTOCOLS[protocol]),
            column(f"Δ {protocol}", f"minus the logit mean; {PROTOCOLS[protocol]}"),
            *(
                (
                    points("ECE", "calibration error, past only"),
                    column("learnt from", "examples behind a past-only number: mean over targets"),
                )
                if protocol == "past only"
                else ()
            ),
        )
    ]
    # A rule that learns nothing has the same score under every protocol.
    lines = {name: [report.scores[name]] * len(report.protocols) for name in _fixed_lines(report)}
    styles: dict[str, RowStyle] = {**dict.fromkeys(lines, "baseline"), RAW_LINE: "reference"}
    lines |= {method: [report.score(method, protocol) for protocol in report.protocols] for method in report.methods}
    rows: dict[str, list[CellValue]] = {name: [] for name in lines}
    for name, scores in lines.items():
        for protocol, score in zip(report.protocols, scores, strict=True):
            rows[name] += [estimate(score, OVERALL), score.verdicts.get(OVERALL)]
            rows[name] += _learnt(report, name) if protocol == "past only" else []
    caption = "Δ is the paired difference to the logit mean. In-sample numbers are shown for contrast only."
    return table(title, "Rule", columns, rows, caption=caption, styles=styles)


def _fixed_lines(report: CalibrationReport) -> list[str]:
    return [RAW_LINE, *(name for name in report.scores if name in BASELINES)]


def _learnt(report: CalibrationReport, name: str) -> list[CellValue]:
    """Return the past-only calibration error, and how many examples the rule had learned from on average."""
    honest = report.judged.get((name, "past only"))
    if honest is not None:
        return [_ece(honest.p, report.examples), round(float(honest.past.mean()))]
    return [_ece(report.examples.rows.raw, report.examples) if name == RAW_LINE else None, None]


def _ece(p: Floats, examples: Examples) -> float:
    answered = np.isfinite(p)
    return ece(p[answered], examples.outcome[answered], examples.weight[answered])


def kind_table(report: CalibrationReport, protocol: Protocol, title: str) -> StudyTable:
    """Table of one protocol with market and dataset questions apart (the layout of BLF 2026, Table 15)."""
    raw, *baselines = (report.scores[name] for name in _fixed_lines(report))
    scores = [raw, *(report.score(method, protocol) for method in report.methods), *baselines]
    styles: dict[str, RowStyle] = {RAW_LINE: "reference", **dict.fromkeys(BASELINES, "baseline")}
    return rule_score_table(title, scores, groups_of(report.examples), styles=styles)


def reliability_charts(report: CalibrationReport, methods: Sequence[str], name: str = "") -> list[StudyChart]:
    """Reliability diagrams before calibration, and after it by the rules that knew only the past."""
    drawn = {f"{name} before": report.examples.rows.raw}
    for method in methods:
        if (method, "past only") in report.judged:
            drawn[f"{name} after {method}, past only"] = report.judged[method, "past only"].p
    return [
        reliability_chart(place, title.strip(), p, report.examples, name=title.strip())
        for place, (title, p) in enumerate(drawn.items(), 1)
    ]


def _protocol_notes(protocols: Sequence[Protocol]) -> tuple[str, ...]:
    return (
        *(f"{name}: {PROTOCOLS[name]}." for name in protocols),
        f"Methods without a shortcut leave questions out in {FOLDS} parts; over more than {REFITS} rounds each rule is "
        f"fitted {REFITS} times.",
        "shrink, bayes-shrink, paper and default may use the price and the base rate, the others may not.",
    )


# The study and its sections.


class CalibrationOptions(TableOptions):
    """Forecasts with their outcomes, and the calibration methods to try."""

    section: Literal["gain", "line", "threshold", "hedging"] | None = SECTION
    methods: tuple[str, ...] = setting(
        (), f"Only this calibration method in section gain, of {', '.join(METHODS)}; may be repeated.", flag="--method"
    )

    @model_validator(mode="after")
    def _known_methods(self) -> Self:
        for name in self.methods:
            build_method(name)
        if self.methods and self.section not in (None, "gain"):
            raise InputError(f"has no effect in section {self.section}", column="--method", hint="leave it out")
        return self


def study(inputs: DataInputs, options: CalibrationOptions) -> StudyResult:
    """Are forecasters calibrated, and what would fitting gain?

    gain: what calibration fitted in-sample, on other questions and on the past alone would have gained; only the last
    is what you would have had. line: over- or underconfidence, and the parts of the Brier score. threshold: where to
    cut a probability into True and False. hedging: distance from one half beside that of the market's price.

      foretell study calibration -f forecasts.csv -o outcomes.csv --out calibration.html

      foretell study calibration RUN --section gain --method platt
    """
    data = inputs.data(options)
    sections = {
        "gain": partial(gain_section, data, options.methods or METHODS),
        "line": partial(line_section, data),
        "threshold": partial(threshold_section, data),
        "hedging": partial(hedging_section, data),
    }
    return run_sections("calibration", "Calibration and what it gains", sections, options.section)


def gain_section(data: StudyData, methods: Sequence[str]) -> StudyResult:
    """Score every method under every protocol: the mean gain over all configurations, and each in detail."""
    configs = study_configs(data)
    dated = all(examples.dated for examples in configs.values())
    protocols: tuple[Protocol, ...] = tuple(protocol for protocol in PROTOCOLS if dated or protocol != "past only")
    tables: list[StudyTable] = []
    charts: list[StudyChart] = []
    sentences: list[str] = []
    if len(configs) > 1 and dated:
        overview, honest = _overview(configs, methods, data)
        tables.append(overview)
        charts.append(gains_chart("gains", "Mean gain over raw trials, past only", honest, "gain in BI"))
        sentences.append(_sentence(honest, len(configs)))
    for name in shown_configs(configs):
        report = calibration_report(name, configs[name], methods, protocols, data)
        tables.append(protocols_table(report, f"{name}: protocols side by side"))
        if len(groups_of(configs[name])) > 1:
            tables.append(kind_table(report, protocols[0], f"{name}: {protocols[0]}, by kind"))
        charts += reliability_charts(report, [method for method in CHARTED if method in methods] or methods[:2], name)
        sentences += [] if tables[0].title == OVERVIEW else [_report_sentence(report, name)]
    result = StudyResult(
        name="calibration",
        title="What calibration brings",
        sentences=tuple(sentences),
        tables=tuple(tables),
        charts=tuple(charts),
        notes=(*(() if dated else (UNDATED_NOTE,)), *_protocol_notes(protocols)),
    )
    return with_scope(result, data, configs)


OVERVIEW = "Mean gain over the logit mean"
UNDATED_NOTE = (
    "Without due and resolved_on for every question the order of events is unknown, so nothing is fitted on the past "
    "alone. Gains from fits on other questions, which include later ones, are too optimistic."
)


def _overview(
    configs: Mapping[str, Examples], methods: Sequence[str], data: StudyData
) -> tuple[StudyTable, dict[str, PairedGains]]:
    """Return a table of mean gains over the logit mean by method, and the past-only gains of each method."""
    raw = {name: raw_brier(examples) for name, examples in configs.items()}
    some, before = next(iter(configs.values())), list(raw.values())
    rows: dict[str, tuple[CellValue, ...]] = {}
    honest: dict[str, PairedGains] = {}
    for done, name in enumerate(methods):
        data.progress(done, len(methods))
        method, means = build_method(name), dict[Protocol, Verdict | None]()
        for protocol in PROTOCOLS if isinstance(method, SupportsLeaveOut) else QUICK:
            after = {config: brier_of(fit_under_protocol(method, e, protocol).p, e) for config, e in configs.items()}
            if protocol == "past only":
                gains = paired_gains(after, raw, configs, data.resampling)
                honest |= {name: gains} if gains else {}
                means[protocol] = gains.mean if gains else None
            else:
                means[protocol] = mean_gain(list(after.values()), before, some, data.resampling)
        spread = honest[name].values() if name in honest else (None,) * len(SPREAD)
        rows[name] = (*(means.get(protocol) for protocol in PROTOCOLS), *spread)
    columns = [column(protocol, meaning, 2) for protocol, meaning in PROTOCOLS.items()]
    caption = (
        "worst, better and clearly worse are past only. A dash: left out because it is slow; see the tables below."
    )
    return table(OVERVIEW, "Method", (*columns, *SPREAD), rows, caption=caption), honest


def _sentence(honest: Mapping[str, PairedGains], configs: int) -> str:
    best = max(honest, key=lambda name: honest[name].mean.diff)
    names = [name for name in dict.fromkeys(("default", "paper", best)) if name in honest]
    parts = [f"{name} {value_text(honest[name].mean, 2)}" for name in names]
    return (
        f"Past only, mean gain in BI over the logit mean of {plural(configs, 'configuration')}: {', '.join(parts)}. "
        f"With {names[0]} {honest[names[0]]}."
    )


def _report_sentence(report: CalibrationReport, name: str) -> str:
    """The gain of the first method under the most honest protocol, and the best method in hindsight."""
    protocol = report.protocols[0]
    honest = {method: report.score(method, protocol).verdicts.get(OVERALL) for method in report.methods}
    gains = {method: gap for method, gap in honest.items() if gap is not None}
    if not gains:
        return f"{name}: nothing to compare."
    first = next(iter(gains))
    gain, learnt = gains[first], report.judged[first, protocol].past
    sentence = (
        f"{name}, calibrated {LEARNT_FROM[protocol]}: {gain.sentence} On average it had learnt from "
        f"{plural(round(float(learnt.mean())), 'example')}."
    )
    best = max(gains, key=lambda method: gains[method].diff)
    if best == first:
        return sentence
    in_sample = report.score(best, "in-sample").verdicts.get(OVERALL)
    flattered = f", in-sample {signed(in_sample.diff, 1)}" if in_sample else ""
    return f"{sentence} Chosen in hindsight, {best} is best: {signed(gains[best].diff, 1)}{flattered}."


# The recalibration line, and the decomposition of the Brier score.

BINS = 10
RECALIBRATION_NOTES = (
    "Logistic recalibration (Cox 1958): the line intercept + slope · log-odds that fits outcomes best. Slope 1 and "
    "intercept 0 is calibrated; a slope below 1 is overconfidence, above 1 hedging; an intercept above 0 means that "
    "more came true than was forecast. Intervals are normal and assume independent targets.",
    f"Brier = reliability − resolution + uncertainty + a term within {BINS} bins (Murphy 1973). Reliability is lost to "
    "miscalibration; resolution is gained by distinguishing questions.",
)
LINE = (
    column("slope", "below 1 is overconfidence", 2),
    column("intercept", "above 0: more came true than was forecast", 2),
    points("ECE", "expected calibration error over ten bins"),
    count("n"),
)
PARTS = (
    column("Brier", "mean squared error", 3),
    column("reliability", "lost to miscalibration, lower is better", 3),
    column("resolution", "gained by distinguishing questions, higher is better", 3),
    column("uncertainty", "variance of the outcomes", 3),
    column("within bins", "variance and covariance within the bins", 3),
)


def line_section(data: StudyData) -> StudyResult:
    """Show the recalibration line and the decomposition of the Brier score, by forecaster."""
    configs = study_configs(data)
    slopes: dict[str, Interval] = {}
    lines: dict[str, tuple[CellValue, ...]] = {}
    parts: dict[str, tuple[CellValue, ...]] = {}
    for name, examples in configs.items():
        answered = np.isfinite(examples.rows.raw) & (examples.weight > 0)
        p, outcome, weight = examples.rows.raw[answered], examples.outcome[answered], examples.weight[answered]
        line, murphy = calibration_line(p, outcome), murphy_decomposition(p, outcome, weight, bins=BINS)
        ends: tuple[Interval | None, Interval | None] = (None, None)
        if line.identified:
            level = data.resampling.level
            slopes[name] = _normal(line.slope, line.slope_se, len(p), level)
            ends = slopes[name], _normal(line.intercept, line.intercept_se, len(p), level)
        lines[name] = (*ends, ece(p, outcome, weight), len(p))
        parts[name] = (murphy.brier, murphy.reliability, murphy.resolution, murphy.uncertainty, murphy.within)
    over, under = sum(slope.high < 1 for slope in slopes.values()), sum(slope.low > 1 for slope in slopes.values())
    sentence = "No line is determined: forecasts are constant, or separate the outcomes perfectly."
    if slopes:
        middle = float(np.median([slope.estimate for slope in slopes.values()]))
        sentence = (
            f"Of {plural(len(slopes), 'forecaster')}, {over} are overconfident (the interval of the slope lies below "
            f"1) and {under} hedge (it lies above 1); the median slope is {number(middle, 2)}."
        )
    title = "Slope of the recalibration line"
    result = StudyResult(
        name="calibration",
        title="Over- and underconfidence",
        sentences=(sentence,),
        tables=(
            table("Recalibration line on the log-odds scale", "Forecaster", LINE, lines),
            table("What the Brier score is made of", "Forecaster", PARTS, parts),
        ),
        charts=(
            forest_chart("slopes", title, slopes, "slope, 1 is calibrated", decimals=2, reference=1.0),
            *(
                reliability_chart(place, f"Reliability of {name}", configs[name].rows.raw, configs[name], name=name)
                for place, name in enumerate(shown_configs(configs), start=1)
            ),
        ),
        notes=RECALIBRATION_NOTES,
    )
    return with_scope(result, data, configs)


def _normal(estimate: float, se: float, n: int, level: float) -> Interval:
    width = NormalDist().inv_cdf((1 + level) / 2) * se
    low, high = estimate - width, estimate + width
    return Interval(estimate=estimate, low=low, high=high, se=se, n_clusters=n, draws=0)


# Distance from one half, compared with the market.


MOST_CHARTS = 4
HEDGING_NOTES = (
    "Farther is the mean of |p − 0.5| minus that of the market price, on questions with a price: below 0 the "
    "forecaster hedges. Hedged is the share of targets on which it is closer to 0.5 than the price; ties count half.",
)
HEDGING = (
    points("farther", "mean |p − 0.5| minus that of the price; below 0 is hedging"),
    share("hedged", "share of targets closer to 0.5 than the price"),
    count("n", "targets with a forecast and a price"),
)


def hedging_section(data: StudyData) -> StudyResult:
    """Compare each forecaster's distance from one half with that of the market's price."""
    configs = study_configs(data)
    hedging = {name: values for name, examples in configs.items() if (values := _hedging(examples, data.resampling))}
    if not hedging:
        raise InputError("no question has a price", hint="add a column price to the outcomes")
    charts: list[StudyChart] = []
    for place, name in enumerate([name for name in shown_configs(configs) if name in hedging][:MOST_CHARTS], start=1):
        drawn = conservatism_plot(configs[name].rows.raw, configs[name].rows.price, name=name)
        charts.append(StudyChart(name=f"market-{place}", title=f"{name} against the market", chart=drawn))
    board = table("Distance from one half beside the market", "Forecaster", HEDGING, hedging)
    gaps = [value for value in board.column("farther").values() if isinstance(value, Interval)]
    hedge, bold = sum(gap.high < 0 for gap in gaps), sum(gap.low > 0 for gap in gaps)
    sentence = (
        f"Of {plural(len(gaps), 'forecaster')}, {hedge} stay closer to 0.5 than the market (the interval of the "
        f"difference lies below 0) and {bold} go farther (it lies above 0)."
    )
    result = StudyResult(
        name="calibration",
        title="Hedging",
        sentences=(sentence,),
        tables=(board,),
        charts=tuple(charts),
        notes=(*HEDGING_NOTES, *_without_price([name for name in configs if name not in hedging])),
    )
    return with_scope(result, data, configs)


def _without_price(names: list[str]) -> list[str]:
    return (
        [f"Not compared with the market, because they answered no question with a price: {', '.join(names)}."]
        if names
        else []
    )


def _hedging(examples: Examples, how: Resampling) -> tuple[CellValue, ...]:
    p, price = examples.rows.raw, examples.rows.price
    both = np.isfinite(p) & np.isfinite(price)
    if not both.any():
        return ()
    gap = np.abs(p[both] - 0.5) - np.abs(price[both] - 0.5)
    hedged = np.where(gap == 0, 0.5, gap < 0)
    cluster = examples.rows.cluster[both].tolist()
    return (*(mean_interval(values.tolist(), cluster, how) for values in (gap, hedged)), int(both.sum()))
