"""Studies of calibration: its gain, its gain when fitted on the past only, and recalibration curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.combine.rules import SupportsLeaveOut
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling, mean_interval
from foretell.metrics.calibration import calibration_line, ece, murphy_decomposition
from foretell.report.charts.calibration import conservatism_plot
from foretell.report.numbers import number, plural, signed, value_text
from foretell.report.study import (
    CellValue,
    RowStyle,
    StudyChart,
    StudyResult,
    StudyTable,
    column,
    count,
    draw_settings,
    forest_chart,
    reliability_chart,
    table,
    words,
)
from foretell.request import setting
from foretell.scoring.join import choose_forecaster, read_examples
from foretell.scoring.role_columns import ROLE_COLUMNS, RoleColumns
from foretell.scoring.scoreboard import OVERALL
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
    describe_scope,
    divergence_chart,
    fit_under_protocol,
    shown_configs,
    study_configs,
    with_scope,
)
from foretell.studies.inputs import (
    FORECASTS,
    DataInputs,
    StudyData,
    StudyOptions,
    StudyProgress,
    StudyServices,
    TableOptions,
)
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

RAW_LINE = "raw (logit mean)"
SHORT: tuple[Protocol, ...] = ("past only", "question out", "in-sample")
LEARNT_FROM = {"past only": "from the past alone", "question out": "fitted on other questions"}
QUICK: tuple[Protocol, ...] = ("in-sample", "past only")
"""Protocols with few refits, for methods that would refit without each question on many configurations."""
CHARTED = ("default", "hierarchical")


@dataclass(frozen=True, kw_only=True)
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
    examples: Examples,
    *,
    methods: Sequence[str],
    protocols: Sequence[Protocol],
    resampling: Resampling,
    progress: StudyProgress,
) -> CalibrationReport:
    """Judge every method under every protocol, and compare with the logit mean on the same resamples."""
    judged: dict[tuple[str, Protocol], ProtocolForecasts] = {}
    for method in methods:
        for protocol in protocols:
            progress(len(judged), len(methods) * len(protocols))
            judged[method, protocol] = fit_under_protocol(build_method(method), examples, protocol)
    scores = {RAW_LINE: raw_brier(examples)}
    scores |= {f"{method} · {protocol}": brier_of(one.p, examples) for (method, protocol), one in judged.items()}
    scores |= {name: brier_of(p, examples) for name, p in baseline_forecasts(examples).items()}
    return CalibrationReport(
        examples=examples,
        methods=tuple(methods),
        protocols=tuple(protocols),
        judged=judged,
        scores={one.name: one for one in rule_scores(scores, examples, RAW_LINE, resampling)},
    )


def protocols_table(report: CalibrationReport, title: str) -> StudyTable:
    """Table with a row per method and the protocols side by side; baselines and the logit mean come first."""
    columns = [
        one
        for protocol in report.protocols
        for one in (
            column(f"BI {protocol}", PROTOCOLS[protocol]),
            column(f"Δ {protocol}", f"minus the logit mean; {PROTOCOLS[protocol]}"),
            *(
                (
                    column("ECE", "calibration error, past only", 3),
                    column("learnt from", "examples behind a past-only number: mean over targets"),
                )
                if protocol == "past only"
                else ()
            ),
        )
    ]
    # What learns nothing has the same score under every protocol.
    lines = {name: [report.scores[name]] * len(report.protocols) for name in _fixed_lines(report)}
    styles: dict[str, RowStyle] = {**dict.fromkeys(lines, "anchor"), RAW_LINE: "reference"}
    lines |= {method: [report.score(method, protocol) for protocol in report.protocols] for method in report.methods}
    rows: dict[str, list[CellValue]] = {name: [] for name in lines}
    for name, scores in lines.items():
        for protocol, one in zip(report.protocols, scores, strict=True):
            rows[name] += [estimate(one, OVERALL), one.verdicts.get(OVERALL)]
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
    known = np.isfinite(p)
    return ece(p[known], examples.outcome[known], examples.weight[known])


def kind_table(report: CalibrationReport, protocol: Protocol, title: str) -> StudyTable:
    """Table of one protocol with market and dataset questions apart (the layout of BLF 2026, Table 15)."""
    raw, *baselines = (report.scores[name] for name in _fixed_lines(report))
    shown = [raw, *(report.score(method, protocol) for method in report.methods), *baselines]
    styles: dict[str, RowStyle] = {RAW_LINE: "reference", **dict.fromkeys(BASELINES, "anchor")}
    return rule_score_table(title, shown, groups_of(report.examples), styles=styles)


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


# All configurations.


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """How much does calibration gain when fitted on the past?

    Shows the mean gain of every method over all configurations, and all protocols for the chosen ones.
    """
    data = inputs.data(options)
    configs = study_configs(data)
    overview, honest = _overview(configs, data)
    tables, everything = [overview], tuple(PROTOCOLS)
    charts = [gains_chart("gains", "Mean gain over raw trials, past only", honest, "gain in BI")]
    for name in shown_configs(data, configs):
        report = calibration_report(
            configs[name],
            methods=METHODS,
            protocols=everything,
            resampling=data.resampling,
            progress=data.progress,
        )
        tables.append(protocols_table(report, f"{name}: protocols side by side"))
        tables += [kind_table(report, protocol, f"{name}: {protocol}") for protocol in everything]
        charts += reliability_charts(report, CHARTED, name)
    result = StudyResult(
        name="calibration",
        title="What calibration brings",
        sentences=(_sentence(honest, len(configs)),),
        tables=tuple(tables),
        charts=tuple(charts),
        notes=_protocol_notes(everything),
    )
    return with_scope(result, data, configs)


def _overview(configs: Mapping[str, Examples], data: StudyData) -> tuple[StudyTable, dict[str, PairedGains]]:
    """Return a table of mean gains over the logit mean by method, and the past-only gains of each method."""
    raw = {name: raw_brier(examples) for name, examples in configs.items()}
    some, before = next(iter(configs.values())), list(raw.values())
    rows: dict[str, tuple[CellValue, ...]] = {}
    honest: dict[str, PairedGains] = {}
    for done, name in enumerate(METHODS):
        data.progress(done, len(METHODS))
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
    caption = "worst, better and clearly worse are past only. A dash: left out here, being slow; see the tables below."
    return table("Mean gain over the logit mean", "Method", (*columns, *SPREAD), rows, caption=caption), honest


def _sentence(honest: Mapping[str, PairedGains], configs: int) -> str:
    best = max(honest, key=lambda name: honest[name].mean.diff)
    shown = [name for name in dict.fromkeys(("default", "paper", best)) if name in honest]
    parts = [f"{name} {value_text(honest[name].mean, 2)}" for name in shown]
    return (
        f"Past only, mean gain in BI over the logit mean of {plural(configs, 'configuration')}: {', '.join(parts)}. "
        f"With {shown[0]} {honest[shown[0]]}."
    )


# One forecaster.


class CalibrationReportOptions(StudyOptions):
    """The forecasts of one forecaster, their outcomes, and the methods to try."""

    forecasts: Path = FORECASTS
    outcomes: Path | None = setting(
        None, "Table of outcomes: question, target, outcome, and due and resolved_on if known; forecasts with a column "
        "outcome need none.", flag="-o/--outcomes", metavar="FILE",
    )  # fmt: skip
    columns: RoleColumns = ROLE_COLUMNS
    forecaster: str | None = setting(None, "Which forecaster; required if the table has several.", metavar="NAME")
    drop_unknown: bool = setting(False, "Leave out forecasts whose target is not in the outcomes.")
    methods: tuple[str, ...] = setting(
        (), f"Only this method, of {', '.join(METHODS)}; may be repeated.", flag="--method"
    )


def report_study(inputs: StudyServices, options: CalibrationReportOptions) -> StudyResult:
    """How much would calibration have helped one forecaster?

    Methods are fitted in-sample, on other questions, and on the past alone; only the last is what you would have had.
    Each number is compared with the plain logit mean of the trials, on the same resamples of whole questions; the
    crowd's price, the base rate and 0.5 are shown beside it.

      foretell study calibration-report -f forecasts.csv -o outcomes.csv --out calibration.html
    """
    configs = read_examples(
        options.forecasts, options.outcomes, drop_unknown=options.drop_unknown, columns=options.columns, dated=False
    )
    name, examples = choose_forecaster(configs, options.forecaster)
    undated = () if examples.dated else ("due", "resolved_on")
    protocols: tuple[Protocol, ...] = tuple(one for one in SHORT if not undated or one != "past only")
    report = calibration_report(
        examples,
        methods=options.methods or METHODS,
        protocols=protocols,
        resampling=options.resampling,
        progress=inputs.progress,
    )
    tables = [protocols_table(report, f"{name}: protocols side by side")]
    if len(groups_of(examples)) > 1:
        tables.append(kind_table(report, protocols[0], f"{name}: {protocols[0]}, by kind"))
    return StudyResult(
        name="calibration-report",
        title=f"Calibration of {name}",
        sentences=(_report_sentence(report, name),),
        tables=tuple(tables),
        charts=tuple(reliability_charts(report, report.methods[:2])),
        notes=(
            *(_undated_note(undated) if undated else ()),
            *_protocol_notes(protocols),
            f"{describe_scope(examples)}.",
        ),
        settings={"forecaster": name, **draw_settings(options.resampling)},
    )


def _undated_note(columns: Sequence[str]) -> tuple[str, ...]:
    missing = " and ".join(columns)
    return (
        f"Without {missing} for every question it is unknown what was known before what, so nothing is fitted on the "
        "past alone. Fitted on other questions, later ones among them, gains look larger than they would have been.",
    )


def _report_sentence(report: CalibrationReport, name: str) -> str:
    """The gain of the first method under the most honest protocol, and the best method in hindsight."""
    protocol = report.protocols[0]
    honest = {method: report.score(method, protocol).verdicts.get(OVERALL) for method in report.methods}
    known = {method: gap for method, gap in honest.items() if gap is not None}
    if not known:
        return f"{name}: nothing to compare."
    first = next(iter(known))
    gain, learnt = known[first], report.judged[first, protocol].past
    sentence = (
        f"{name}, calibrated {LEARNT_FROM[protocol]}: {gain.sentence} On average it had learnt from "
        f"{plural(round(float(learnt.mean())), 'example')}."
    )
    best = max(known, key=lambda method: known[method].diff)
    if best == first:
        return sentence
    seen = report.score(best, "in-sample").verdicts.get(OVERALL)
    flattered = f", in-sample {signed(seen.diff, 1)}" if seen else ""
    return f"{sentence} Chosen in hindsight, {best} is best: {signed(known[best].diff, 1)}{flattered}."


# How forecasts would have to be bent to fit what happened, and what their Brier score is made of.

BINS = 10
NORMAL = 1.959964
RECALIBRATION_NOTES = (
    "Logistic recalibration (Cox 1958): the line intercept + slope · log-odds that fits outcomes best. Slope 1 and "
    "intercept 0 is calibrated; a slope below 1 is overconfidence, above 1 hedging; an intercept above 0 means that "
    "more came true than was said. Intervals are ± 1.96 standard errors and take targets for independent.",
    f"Brier = reliability − resolution + uncertainty + what {BINS} bins hide (Murphy 1973). Reliability is lost to "
    "miscalibration; resolution is won by telling questions apart.",
)
LINE = (
    column("slope", "below 1 is overconfidence", 2),
    column("intercept", "above 0: more came true than was said", 2),
    column("ECE", "expected calibration error over ten bins", 3),
    count("n"),
)
PARTS = (
    column("Brier", "mean squared error", 3),
    column("reliability", "lost to miscalibration, lower is better", 3),
    column("resolution", "won by telling questions apart, higher is better", 3),
    column("uncertainty", "what the questions bring along", 3),
    column("within bins", "what the bins hide", 3),
)


def recalibration_study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Are forecasters over- or underconfident?

    Shows the recalibration line and the decomposition of the Brier score, by forecaster.
    """
    data = inputs.data(options)
    configs = study_configs(data)
    slopes: dict[str, Interval] = {}
    lines: dict[str, tuple[CellValue, ...]] = {}
    parts: dict[str, tuple[CellValue, ...]] = {}
    for name, examples in configs.items():
        known = np.isfinite(examples.rows.raw) & (examples.weight > 0)
        p, outcome, weight = examples.rows.raw[known], examples.outcome[known], examples.weight[known]
        line, murphy = calibration_line(p, outcome), murphy_decomposition(p, outcome, weight, bins=BINS)
        ends: tuple[Interval | None, Interval | None] = (None, None)
        if line.identified:
            slopes[name] = _normal(line.slope, line.slope_se, len(p))
            ends = slopes[name], _normal(line.intercept, line.intercept_se, len(p))
        lines[name] = (*ends, ece(p, outcome, weight), len(p))
        parts[name] = (murphy.brier, murphy.reliability, murphy.resolution, murphy.uncertainty, murphy.within)
    over, under = sum(one.high < 1 for one in slopes.values()), sum(one.low > 1 for one in slopes.values())
    sentence = "No line is determined: forecasts are constant, or split the outcomes without an error."
    if slopes:
        middle = float(np.median([one.estimate for one in slopes.values()]))
        sentence = (
            f"Of {plural(len(slopes), 'forecaster')}, {over} are overconfident (the interval of the slope lies below "
            f"1) and {under} hedge (it lies above 1); the median slope is {number(middle, 2)}."
        )
    title = "Slope of the recalibration line"
    result = StudyResult(
        name="recalibration",
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
                for place, name in enumerate(shown_configs(data, configs), start=1)
            ),
        ),
        notes=RECALIBRATION_NOTES,
    )
    return with_scope(result, data, configs)


def _normal(estimate: float, se: float, n: int) -> Interval:
    low, high = estimate - NORMAL * se, estimate + NORMAL * se
    return Interval(estimate=estimate, low=low, high=high, se=se, n_clusters=n, draws=0)


# Study: do forecasters go as far from one half as the market does, and how far are they from each other?


MOST_CHARTS = 4
CONSERVATISM_NOTES = (
    "Farther is the mean of |p − 0.5| minus that of the crowd's price, on questions with a price: below 0 the "
    "forecaster hedges. Hedged is the share of targets on which it is closer to 0.5 than the crowd; ties count half.",
    "Divergence is the mean Jensen–Shannon divergence between two forecasters in bits: 0 where they agree, 1 for "
    "opposite certainties. Averaging helps where forecasters are good and different; this is the second half of that.",
)
HEDGING = (
    column("farther", "mean |p − 0.5| minus that of the price; below 0 is hedging", 3),
    column("hedged", "share of targets closer to 0.5 than the price", 2),
    count("n", "targets with a forecast and a price"),
)
DIVERGENCE = (
    column("mean", decimals=3),
    words("nearest"),
    column("to the nearest", decimals=3),
    words("farthest"),
    column("to the farthest", decimals=3),
)


def conservatism_study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Do forecasters hedge, and how far apart are they?

    Compares each forecaster's distance from one half with that of the crowd's price, and shows the divergence between
    all forecasters.
    """
    data = inputs.data(options)
    configs = study_configs(data)
    hedging = {name: values for name, one in configs.items() if (values := _hedging(one, data.resampling))}
    heatmap, matrix = divergence_chart(configs, "How far forecasters are apart")
    charts = [heatmap]
    for place, name in enumerate(shown_configs(data, configs)[:MOST_CHARTS] if hedging else (), start=1):
        drawn = conservatism_plot(configs[name].rows.raw, configs[name].rows.price, name=name)
        charts.append(StudyChart(name=f"market-{place}", title=f"{name} against the market", chart=drawn))
    board = table("Distance from one half beside the market", "Forecaster", HEDGING, hedging)
    result = StudyResult(
        name="conservatism",
        title="Hedging and divergence",
        sentences=(_conservatism_sentence(board, matrix),),
        tables=(
            board,
            _divergence_table(list(configs), matrix),
        ),
        charts=tuple(charts),
        notes=(*CONSERVATISM_NOTES, *_without_price([name for name in configs if name not in hedging])),
    )
    return with_scope(result, data, configs)


def _without_price(names: list[str]) -> list[str]:
    return [f"Not beside the market, having answered no question with a price: {', '.join(names)}."] if names else []


def _hedging(examples: Examples, how: Resampling) -> tuple[CellValue, ...]:
    p, price = examples.rows.raw, examples.rows.price
    both = np.isfinite(p) & np.isfinite(price)
    if not both.any():
        return ()
    gap = np.abs(p[both] - 0.5) - np.abs(price[both] - 0.5)
    hedged = np.where(gap == 0, 0.5, gap < 0)
    cluster = examples.rows.cluster[both].tolist()
    return (*(mean_interval(values.tolist(), cluster, how) for values in (gap, hedged)), int(both.sum()))


def _divergence_table(names: list[str], matrix: Floats) -> StudyTable:
    """Table of each forecaster's divergence from the nearest, from the farthest, and on average from all others."""
    rows: dict[str, tuple[CellValue, ...]] = {}
    for i, name in enumerate(names):
        others = [(float(matrix[i, j]), other) for j, other in enumerate(names) if j != i]
        known = sorted(pair for pair in others if np.isfinite(pair[0]))
        if known:
            (least, near), (most, far) = known[0], known[-1]
            rows[name] = (float(np.mean([value for value, _ in known])), near, least, far, most)
    return table("Divergence in bits", "Forecaster", DIVERGENCE, rows)


def _conservatism_sentence(board: StudyTable, matrix: Floats) -> str:
    upper = matrix[np.triu_indices(len(matrix), k=1)]
    apart = "there is no second forecaster to compare with"
    if np.isfinite(upper).any():
        apart = f"two forecasters are {number(float(np.nanmean(upper)), 3)} bits apart on average"
    elif len(matrix) > 1:
        apart = "no two forecasters answered the same question"
    gaps = [value for value in board.column("farther").values() if isinstance(value, Interval)]
    if not gaps:
        return f"No question has a price; {apart}."
    hedge, bold = sum(one.high < 0 for one in gaps), sum(one.low > 0 for one in gaps)
    return (
        f"Of {plural(len(gaps), 'forecaster')}, {hedge} stay closer to 0.5 than the market (the interval of the "
        f"difference lies below 0) and {bold} go farther (it lies above 0); {apart}."
    )
