"""Presentation of a leaderboard: headline, terminal, Markdown and HTML page."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from foretell.frozen import frozen
from foretell.metrics.bootstrap import Interval
from foretell.metrics.calibration import calibration_line
from foretell.metrics.clusters import FEW_CLUSTERS
from foretell.metrics.metric import DECISION_METRICS, METRICS, MetricRows, metric_text
from foretell.number_text import number, percent, percent_range, plural
from foretell.report.charts.calibration import conservatism_plot, correctness_histogram, reliability_diagram
from foretell.report.charts.groups import MOST_ROWS, question_set, score_by_group, verdict_heatmap
from foretell.report.charts.ranking import ForestRow, FrontierPoint, forest_plot, frontier, pareto
from foretell.report.charts.svg import Chart
from foretell.report.document import LEAST_NAME, markdown_table, rich_study_table
from foretell.report.html import HtmlBlock, Section, advice_blocks, page, settings_text
from foretell.report.markup import clean, markdown_text, shorten
from foretell.report.numbers import CellValue, column_heading, column_name, estimate, half_text
from foretell.report.provenance import Provenance
from foretell.report.study import (
    RowStyle,
    StudyChart,
    StudyColumn,
    StudyTable,
    column,
    draw_settings,
    points,
    share,
    table,
    words,
)
from foretell.report.study_result import StudyResult
from foretell.report.terminal import left_out_note
from foretell.scoring.baselines import ALWAYS_HALF, BASELINES, OVERALL
from foretell.scoring.breakdown import (
    NOTABLE_DIFFERENCE,
    CalibrationGap,
    ErrorAnalysis,
    WorstForecast,
    breakdown,
    verdict_matrix,
)
from foretell.scoring.score import ScoringOptions
from foretell.scoring.scoreboard import LeaderboardRow, LeaderboardSection, Scoreboard
from foretell.scoring.table import ForecastTable, with_baselines
from foretell.scoring.verdict import METRIC_NOUNS

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 100
"""Minimum terminal width at which the board shows more metrics and the intervals of differences."""
SIGNS = (
    "Differences are on the targets both answered: * p < 0.05, ** p < 0.01, *** p < 0.001 (two-sided), † could be "
    "chance if corrected for the number of comparisons (Holm), ≈ no difference that matters, ~ could be chance, "
    "? too few to tell."
)
"""Explains the symbols after differences."""


def board_table(
    board: Scoreboard, section: LeaderboardSection, others: Sequence[str], *, brief: bool = False
) -> StudyTable:
    """Build the table of a group: the board's metric with its interval, the difference to the reference, and more."""
    own = metric_text(board.metric)
    shown = [metric_text(m) for m in others if any(row.metric(m) is not None for row in section.rows)]
    columns = (
        StudyColumn(label="#", decimals=0),
        StudyColumn(
            label=own.label,
            decimals=own.decimals,
            unit=own.unit,
            tip=f"{own.meaning}; interval {level_text(board)}",
        ),
        StudyColumn(
            label="vs ref",
            decimals=own.decimals,
            unit=own.unit,
            brief=brief,
            tip=f"minus {board.reference}, on the targets both answered",
        ),
        *(
            StudyColumn(label=metric.label, decimals=metric.decimals, unit=metric.unit, brief=True, tip=metric.meaning)
            for metric in shown
        ),
        StudyColumn(label="n", decimals=0, tip="targets scored"),
        StudyColumn(label="done", tip="share of the group's resolved targets that were forecast"),
    )

    def values(row: LeaderboardRow) -> tuple[CellValue, ...]:
        against = row.verdict if row.verdict is not None else "reference" if row.reference else None
        place = "" if row.place is None else row.place
        metrics = [row.metric(metric.name) for metric in shown]
        return (place, row.metric(own.name), against, *metrics, row.score.n, percent(row.score.completion))

    styles: dict[str, RowStyle] = {row.name: "reference" for row in section.rows if row.reference}
    styles |= {row.name: "baseline" for row in section.rows if row.baseline}
    rows = [(row.name, values(row)) for row in section.rows]
    caption = f"{section.title}: {scope(section, board)}"
    return table(section.title, "Forecaster", columns, rows, caption=caption, styles=styles, correct=False)


def _notes(board: Scoreboard) -> list[str]:
    """Return the notes under a board, one per line."""
    settings = board.settings
    draws = f", {settings['draws']} draws" if "draws" in settings else ""
    seed = f", seed {settings['seed']}" if "seed" in settings else ""
    intervals = f"Intervals {level_text(board)}, resampled by {settings.get('cluster', 'cluster')}{draws}{seed}."
    return [f"{intervals} {SIGNS}", *_shared_notes(board), *board.notes]


MOST_SHARED = 3
"""Maximum number of rows with a note on their scores on shared targets."""


def _shared_notes(board: Scoreboard) -> list[str]:
    """Return notes on scores on the targets shared with the reference, for rows where they differ from the table.

    Without them, the two scores of the table would not add up to the difference beside them.
    """
    rows = board.section(board.groups()[0]).rows if board.scores else ()
    word, notes = metric_text(board.metric), list[str]()
    shown = {row.name: number(score.estimate, word.decimals) for row in rows if (score := row.metric(word.name))}
    for row in rows:
        if (verdict := row.verdict) is None:
            continue
        own, other = (number(side.estimate, word.decimals) for side in (verdict.first_score, verdict.second_score))
        if (own, other) != (shown.get(row.name), shown.get(verdict.second)):
            shared = f"{row.name} and {verdict.second} share {plural(verdict.n, 'target')}"
            notes.append(f"{shared}: there they score {own} and {other}.")
    if (more := len(notes) - MOST_SHARED) > 0:
        notes[MOST_SHARED:] = [f"{more} more share only a part of the targets with {board.reference}."]
    return notes


def print_board(board: Scoreboard, console: "Console") -> None:
    """Print headline, one table per group, and the notes. Names are shown literally, never as markup."""
    from rich.text import Text

    wide = console.width >= WIDE
    known = board.shown_metrics()[1:]
    usual = [name for name in ("brier", "brier_index", "metaculus_baseline", "ece", *DECISION_METRICS) if name in known]
    first = "brier_index" if board.metric == "brier" else "brier"
    others = usual if wide else [name for name in usual if name in (first, *DECISION_METRICS)]
    console.print(Text(headline(board), style="bold"))
    for section in board.sections():
        console.print()
        console.print(Text.assemble((clean(section.title), "bold"), (f"  {scope(section, board)}", "dim")))
        console.print(rich_study_table(board_table(board, section, others, brief=not wide), console.width, LEAST_NAME))
    console.print()
    missing = [metric_text(name).label for name in usual if name not in others]
    narrow = "" if wide else left_out_note(["intervals of differences", *missing])
    for note in filter(None, [narrow, *_notes(board)]):
        console.print(Text(clean(note), style="dim"))


def markdown_board(board: Scoreboard) -> str:
    """Return headline, one table per group and the notes as GitHub-flavoured Markdown."""
    parts = [markdown_text(headline(board))]
    for section in board.sections():
        parts += markdown_table(board_table(board, section, board.shown_metrics()[1:]))
    return "\n\n".join([*parts, *map(markdown_text, _notes(board))]) + "\n"


def board_study(board: Scoreboard, title: str) -> StudyResult:
    """Convert a board to a study: the headline, a table for each group, and the forest plot of the first."""
    sections = board.sections()
    return StudyResult(
        name="board",
        title=title,
        sentences=(headline(board),),
        tables=tuple(board_table(board, section, board.shown_metrics()[1:]) for section in sections),
        charts=(
            StudyChart(
                name="forest", title=column_heading(metric_text(board.metric).label), chart=_forest(board, sections[0])
            ),
        ),
        notes=tuple(_notes(board)),
    )


# As a web page: the sentence, the table, the charts, and how to read them.

LEADERBOARD_ADVICE = (
    "An interval shows how the number would vary with other questions of the same kind. Related questions (of one "
    "series, event or day) are resampled together, so a thousand rows on one stock count as little more than one.",
    "To compare two forecasters, read the difference, not whether their intervals overlap: both answer the same "
    "questions, so the difficulty of questions cancels. One star means p < 0.05, two p < 0.01, three "
    "p < 0.001, two-sided like the interval; † means that it could be chance if corrected for the number of rows "
    "compared (Holm).",
    "Fewer than ten independent clusters are too few to tell (?). If the whole interval of a difference lies within 1 "
    "point of Brier index, or 0.005 of Brier score, the two do not differ by an amount that matters (≈).",
    "Whiskers in reliability diagrams and base rates are Wilson intervals that treat rows as independent, so for "
    "related questions they are somewhat too short.",
    "The leader was picked after seeing the scores, so its lead is a little too large, more so with many rows.",
    "A forecaster that left questions out is scored on what it answered. Compare it by its difference to the "
    "reference, which uses shared targets only.",
)
CALIBRATION_CAPTION = (
    "Slope and intercept of the log-odds of what happened on those of the forecast, rows taken as independent: 1 and 0 "
    "are calibrated, a slope below 1 is overconfident. Brier = reliability − resolution + uncertainty, up to ten bins"
)
TOP_FEW = 3
PAGE_METRICS = 4
"""Number of metrics besides the board's own that fit in a table on a page 1280 pixels wide."""
CHARTED = ("source", "horizon", "category", "due")
"""Columns that get a chart if the table has them."""


def leaderboard_page(
    board: Scoreboard, forecasts: ForecastTable, title: str, *, scoring: ScoringOptions | None = None
) -> str:
    """Return a complete HTML document; `scoring` are the options that made the board, for charts with its numbers."""
    return page(
        title,
        leaderboard_sections(board, forecasts, scoring=scoring),
        lead=headline(board),
        notes=[scope(group, board) for group in board.sections()[:1]],
        made=Provenance.now(board.settings),
    )


def leaderboard_sections(
    board: Scoreboard, forecasts: ForecastTable, *, scoring: ScoringOptions | None = None
) -> list[Section]:
    """Return the sections of a leaderboard's page: the ranking first, how to read it last."""
    sections = board.sections()
    reading = ("reading", "How to read this", _reading(board, forecasts))
    if not sections:
        return [reading]
    first = sections[0]
    options = replace(scoring or ScoringOptions(metric=board.metric), by=(), metrics=(), reference=None)
    table = _as_scored(forecasts, board)
    subject = _PageInput(board=board, table=table, first=first, scoring=options)
    ranking, *more = _board_blocks(board, first)
    other_groups = [[HtmlBlock(heading=section.title), *_board_blocks(board, section)] for section in sections[1:]]
    return [
        ("ranking", "Ranking", [ranking, HtmlBlock(charts=[_forest(board, first)]), *more]),
        ("pairs", "Who beats whom", _pairs(subject)),
        ("calibration", "Calibration", _calibration(subject)),
        ("groups", "Scores by group", _by_group(subject)),
        ("cost", "Score and cost", _frontier(subject)),
        ("tables", "Every group", [block for blocks in other_groups for block in blocks]),
        reading,
    ]


def _board_blocks(board: Scoreboard, section: LeaderboardSection) -> list[HtmlBlock]:
    """Return the table of a group; metrics for which a page is not wide enough follow in tables of their own."""
    metrics = board.shown_metrics()[1:]
    first = board_table(board, section, metrics[:PAGE_METRICS])
    rest = [metrics[start : start + PAGE_METRICS] for start in range(PAGE_METRICS, len(metrics), PAGE_METRICS)]
    more = [replace(board_table(board, section, part), caption=f"More metrics. {first.caption}") for part in rest]
    return [HtmlBlock(table=shown) for shown in (first, *more)]


@frozen
class _PageInput:
    """Input of all sections of the page."""

    board: Scoreboard
    table: ForecastTable
    first: LeaderboardSection
    scoring: ScoringOptions
    """The board's own metric, clusters and resampling."""

    @property
    def few(self) -> tuple[str, ...]:
        """The best few forecasters, and the baselines in the table other than always-0.5."""
        known = self.table.forecasters
        best = [row.name for row in self.first.rows if row.name in known and not row.baseline][:TOP_FEW]
        # A baseline may be missing from the first group: datasets have no market price.
        references = [name for name in BASELINES if name in known and name != ALWAYS_HALF]
        return (*best, *references[:2])


def _reading(board: Scoreboard, table: ForecastTable) -> list[HtmlBlock]:
    metrics = [(metric_text(m).label, metric_text(m).meaning) for m in board.shown_metrics()]
    settings = [("reference", board.reference), ("ranked by", metric_text(board.metric).label)]
    settings += [(key, settings_text(value)) for key, value in board.settings.items()]
    notes = dict.fromkeys((*board.notes, *table.notes))
    return advice_blocks(LEADERBOARD_ADVICE, ("Metrics", metrics), ("Settings", settings), notes=notes)


def _as_scored(table: ForecastTable, board: Scoreboard) -> ForecastTable:
    """Return the table with the rows that scoring added: baselines and imputed forecasts."""
    value = board.settings.get("missing")
    table = table.filled(float(value)) if isinstance(value, float | int) else table
    known = {score.forecaster for score in board.scores} & set(BASELINES)
    return table if known.issubset(table.forecasters) else with_baselines(table)


def _forest(board: Scoreboard, section: LeaderboardSection) -> Chart:
    """Plot the board's own metric of every forecaster, with its interval."""
    word = metric_text(board.metric)
    rows = [
        ForestRow(name=row.name, interval=interval, baseline=row.baseline)
        for row in section.rows
        if (interval := row.metric(word.name)) is not None
    ]
    return forest_plot(rows, label=column_heading(word.label), decimals=word.decimals, reference=board.reference)


def _pairs(subject: _PageInput) -> list[HtmlBlock]:
    names = [row.name for row in subject.first.rows if row.name in subject.table.forecasters]
    if len(names) < 2:
        return []
    shown, word = names[:MOST_ROWS], metric_text(subject.board.metric)
    verdicts = verdict_matrix(subject.table, shown, subject.first.group, subject.scoring)
    chart = verdict_heatmap(names, verdicts, label=word.label, decimals=word.decimals)
    text = f"Difference in {word.label} on the targets both answered, both recomputed on the same resamples."
    return [HtmlBlock(text=text, style="quiet"), HtmlBlock(charts=[chart])]


def _calibration(subject: _PageInput) -> list[HtmlBlock]:
    """Return reliability diagrams of a few forecasters, and a table of their calibration."""
    targets = subject.table.targets
    charts, rows = [], dict[str, Sequence[CellValue]]()
    for name in subject.few:
        p = subject.table.p_of(name)
        charts.append(reliability_diagram(p, targets.outcome, targets.weight, name=name))
        answered = np.isfinite(p) & (targets.weight > 0)
        if answered.any():
            scored = MetricRows.of(p[answered], targets.outcome[answered], targets.weight[answered])
            line = calibration_line(scored.p, scored.outcome)
            parts = [METRICS[m].population(scored) for m in ("reliability", "resolution", "uncertainty", "ece")]
            rows[name] = (line.slope, line.intercept, *parts)
    if not charts:
        return []
    labels = {"Slope": 2, "Intercept": 2, "Reliability": 3, "Resolution": 3, "Uncertainty": 3}
    columns = [*(column(label, decimals=decimals) for label, decimals in labels.items()), points("ECE")]
    numbers = table("Calibration", "Forecaster", columns, rows, caption=CALIBRATION_CAPTION)
    text = "A calibrated forecaster lies on the diagonal: 70 % of the outcomes it gave 70 % came true."
    return [HtmlBlock(text=text, style="quiet"), HtmlBlock(charts=charts, style="grid"), HtmlBlock(table=numbers)]


def _by_group(subject: _PageInput) -> list[HtmlBlock]:
    word = metric_text(subject.board.metric)
    columns = [c for c in CHARTED if c in subject.table.targets.groups]
    breakdowns = [breakdown(subject.table, column, subject.few, subject.scoring) for column in columns]
    charts = [
        score_by_group(b, label=word.label, decimals=word.decimals) for b in breakdowns if 2 <= len(b.groups) <= 30
    ]
    text = "Faint marks: scored on fewer than nine tenths of the targets that others answered in the group."
    return [HtmlBlock(text=text, style="quiet"), HtmlBlock(charts=charts, style="pair")] if charts else []


COST_CAPTION = (
    "A forecaster is best for its cost if no other one that costs no more has a better score. The cost is the mean of "
    "an answer to a question, with all its trials; replies that another run had paid for count as paid."
)


def _frontier(subject: _PageInput) -> list[HtmlBlock]:
    """Return score against dollars and against seconds, if any dollars are known."""
    word, costs = metric_text(subject.board.metric), subject.table.costs
    if not any(cost.dollars > 0 for cost in costs.values()):
        return []
    scores = {
        row.name: interval
        for row in subject.first.rows
        if row.name in costs and (interval := row.metric(word.name)) is not None
    }
    low = word.better == "low"
    charts, best = list[Chart](), dict[str, set[str]]()
    for unit in ("dollars", "seconds"):
        points = [
            FrontierPoint(name=name, cost=cost, interval=interval)
            for name, interval in scores.items()
            if math.isfinite(cost := getattr(costs[name], unit))
        ]
        best[unit] = {point.name for point in pareto(points, low_is_better=low)}
        label = f"{unit} per forecast"
        if points:
            drawn = frontier(points, label=word.label, cost_label=label, decimals=word.decimals, low_is_better=low)
            charts.append(drawn)
    columns = (
        column(word.label, word.meaning, word.decimals),
        column("dollars", "per forecast", 4),
        column("seconds", "per forecast, on the clock", 1),
        column("per dollar", "score divided by dollars", 0),
        words("best for its dollars"),
        words("best for its time"),
    )
    rows = {
        name: (
            interval,
            costs[name].dollars,
            costs[name].seconds,
            interval.estimate / costs[name].dollars if costs[name].dollars > 0 else None,
            *("yes" if name in names else "" for names in best.values()),
        )
        for name, interval in scores.items()
    }
    shown = table("Score and cost", "Forecaster", columns, rows, caption=COST_CAPTION)
    return [HtmlBlock(charts=charts, style="pair"), HtmlBlock(table=shown)]


# The error analysis of one forecaster as a web page.


def error_analysis_page(analysis: ErrorAnalysis) -> str:
    """Return the error analysis as an HTML page."""
    cases = [
        HtmlBlock(heading="Hardest"),
        HtmlBlock(table=_case_table(analysis.hardest, "Largest Brier scores")),
        HtmlBlock(heading="Easiest"),
        HtmlBlock(table=_case_table(analysis.easiest, "Smallest Brier scores")),
    ]
    questions = [question_set(b) for b in analysis.breakdowns if len(b.groups) <= 30]
    sections = [
        ("groups", "Score by group", _groups(analysis)),
        ("calibration", "Forecasts and what happened", _bins(analysis)),
        ("cases", "Hardest and easiest questions", cases if analysis.hardest else []),
        ("set", "The questions themselves", [HtmlBlock(charts=questions, style="pair")] if questions else []),
        ("sample", "Sample and whole", _shares(analysis)),
    ]
    provenance = Provenance.now(draw_settings(analysis.scoring.resampling))
    return page(
        f"Error analysis of {analysis.forecaster}",
        sections,
        lead=error_analysis_lead(analysis),
        made=provenance,
    )


def markdown_errors(analysis: ErrorAnalysis) -> str:
    """Return the error analysis as Markdown: the score by group, and the hardest and easiest questions."""
    word, who = metric_text(analysis.scoring.metric), analysis.forecaster
    columns = (
        column(word.label, word.meaning, word.decimals),
        share("Base rate"),
        column("Targets", decimals=0),
    )
    tables = [
        table(
            f"By {column_name(part.column)}",
            "Group",
            columns,
            list(zip(part.groups, zip(part.scores[who], part.base_rate, part.answered[who], strict=True), strict=True)),
        )
        for part in analysis.breakdowns
    ]
    tables += [
        _case_table(analysis.hardest, "Largest Brier scores"),
        _case_table(analysis.easiest, "Smallest Brier scores"),
    ]
    parts = [
        markdown_text(error_analysis_lead(analysis)),
        *(line for shown in tables for line in markdown_table(shown)),
    ]
    provenance = Provenance.now(draw_settings(analysis.scoring.resampling))
    return "\n\n".join(parts) + f"\n\n{provenance.to_markdown()}"


def error_analysis_lead(analysis: ErrorAnalysis) -> str:
    """Summarize the analysis in a sentence or two."""
    word = metric_text(analysis.scoring.metric)
    scores = analysis.brier[np.isfinite(analysis.brier)]
    who = clean(analysis.forecaster)
    if not len(scores):
        return f"{who} answered no resolved target."
    kinds = next((" (mean over kinds)" for b in analysis.breakdowns if b.column == "kind"), "")
    worst = np.sort(scores)[::-1][: max(1, len(scores) // 10)]
    return (
        f"{who} scores {word.label} {estimate(analysis.overall, word.decimals)} "
        f"on {plural(len(scores), 'target')}{kinds}. "
        f"The worst tenth of them makes up {percent(float(worst.sum() / max(scores.sum(), 1e-12)))} of its Brier score."
    )


def _groups(analysis: ErrorAnalysis) -> list[HtmlBlock]:
    word = metric_text(analysis.scoring.metric)
    if not analysis.breakdowns:
        return []
    charts = [score_by_group(b, label=word.label, decimals=word.decimals) for b in analysis.breakdowns]
    blocks = [HtmlBlock(charts=charts, style="pair")]
    compared = [b for b in analysis.differences if len(b.groups) > 1]
    if compared:
        label = f"{word.label} difference"
        gaps = [score_by_group(b, label=label, decimals=word.decimals, zero=True) for b in compared]
        heading = f"Minus {analysis.reference or ''}, on the targets both answered"
        blocks += [HtmlBlock(heading=heading), HtmlBlock(charts=gaps, style="pair")]
    return blocks


def _bins(analysis: ErrorAnalysis) -> list[HtmlBlock]:
    p, targets = analysis.p, analysis.targets
    if not np.isfinite(p).any():
        return []
    charts = [
        reliability_diagram(p, targets.outcome, targets.weight, name=analysis.forecaster),
        correctness_histogram(analysis.brier, name=analysis.forecaster),
    ]
    if (np.isfinite(p) & np.isfinite(targets.price)).any():
        charts.append(conservatism_plot(p, targets.price, name=analysis.forecaster))
    bins = table(
        "Worst calibrated ranges first", "Forecast", BINS, [_bin(worst_bin) for worst_bin in analysis.worst_bins]
    )
    return [HtmlBlock(charts=charts, style="grid"), HtmlBlock(table=bins)]


BINS = (
    share("Mean forecast"),
    share("Happened", "with its 95 % interval"),
    points("Gap"),
    column("Forecasts"),
    column("% of ECE", decimals=0),
)
CASES = (
    *(words("Id"), words("Target"), share("p"), column("Outcome")),
    *(column("Brier", decimals=3), column("All forecasters", decimals=3), share("Price")),
)
SHARES = (
    *(words("Column"), column("Sample"), column("Whole")),
    *(column("Standardised difference", decimals=2), words("Remark")),
)


def _bin(b: CalibrationGap) -> tuple[str, Sequence[CellValue]]:
    happened = Interval(
        estimate=b.frequency, low=b.frequency_low, high=b.frequency_high, se=float("nan"), n_clusters=b.count, draws=0
    )
    gap = b.frequency - b.mean_p
    return percent_range(b.low, b.high), (b.mean_p, happened, gap, b.count, 100 * b.share_of_error)


def _case_table(cases: Sequence[WorstForecast], title: str) -> StudyTable:
    rows = [
        (
            shorten(case.title, 200) if case.title else shorten(case.question, 64),
            (
                shorten(case.question, 24) if case.title else "",
                shorten(case.target, 24),
                case.p,
                {0.0: "no", 1.0: "yes"}.get(case.outcome, f"{case.outcome:g}"),
                case.brier,
                case.field,
                case.price,
            ),
        )
        for case in cases
    ]
    return table(title, "Question", CASES, rows)


def _shares(analysis: ErrorAnalysis) -> list[HtmlBlock]:
    if not analysis.shares:
        return []
    text = (
        "Share of each group among the sampled targets and among all. The standardised difference is the gap over "
        f"its spread; beyond ±{NOTABLE_DIFFERENCE} the sample is unbalanced."
    )
    rows = [
        (
            s.group,
            (
                column_name(s.column),
                percent(s.in_sample),
                percent(s.in_whole),
                s.difference,
                "leans" if abs(s.difference) > NOTABLE_DIFFERENCE else "",
            ),
        )
        for s in analysis.shares
    ]
    return [HtmlBlock(text=text, style="quiet"), HtmlBlock(table=table("Sample against whole", "Group", SHARES, rows))]


# The result in one sentence: the leader, its lead, and whether that could be chance.


def headline(board: Scoreboard) -> str:
    """Summarize the first group of the board: the verdict on the first two, or on the first and the reference."""
    groups, word = board.groups(), metric_text(board.metric)
    if not groups:
        return "Nothing was scored."
    section = board.section(groups[0])
    scored = [row for row in section.rows if (metric := row.metric(word.name)) and math.isfinite(metric.estimate)]
    if not scored:
        return "No forecaster has a score yet."
    first = scored[0]
    noun = METRIC_NOUNS.get(word.name) or word.label
    score, on = estimate(first.metric(word.name), word.decimals), plural(first.score.n, "target")
    if len(scored) == 1:
        return f"Only {clean(first.name)} was scored: {noun} {score} on {on}."
    verdict = board.lead()
    lead = "" if verdict is not None and verdict.second == scored[1].name else _lead(first, noun, score, on)
    remark = "No forecaster beats this baseline." if first.baseline else ""
    parts = (lead, clean(verdict.sentence), verdict.correction_text) if verdict is not None else (lead,)
    if board.behind_half:
        remark += f" {half_text(board.behind_half)}"
    return " ".join(filter(None, (*parts, remark.strip())))


def _lead(first: LeaderboardRow, noun: str, score: str, on: str) -> str:
    return f"{clean(first.name)} has the best {noun}, {score} on {on}."


def scope(section: LeaderboardSection, board: Scoreboard) -> str:
    """Return the size of a group, e.g. "791 targets of 375 questions, 12 forecasters", and whether it is too small."""
    if not section.rows:
        return "nothing"
    n, questions = (max(getattr(row.score, name) for row in section.rows) for name in ("n", "questions"))
    forecasters = sum(not row.baseline for row in section.rows)
    kinds = any(group.get("kind", OVERALL) != OVERALL for group in board.groups())
    mean = "; mean over kinds" if kinds and section.group.get("kind") == OVERALL else ""
    known = [metric for row in section.rows if (metric := row.metric(board.metric))]
    clusters = max((score.n_clusters if score.n_effective is None else score.n_effective for score in known), default=0)
    few = f"; only {plural(clusters, 'cluster')}: take intervals with care" if 0 < clusters < FEW_CLUSTERS else ""
    return f"{plural(n, 'target')} of {plural(questions, 'question')}, {plural(forecasters, 'forecaster')}{mean}{few}"


def level_text(board: Scoreboard) -> str:
    """Return the confidence level of the board's intervals, e.g. "95 %"."""
    return f"{100 * float(board.settings.get('level', 0.95)):g} %"
