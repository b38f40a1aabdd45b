"""The BLF paper's own tables (Murphy et al. 2026): a converter to foretell's tables, and the paper's Tables 17 and 18.

    python benchmarks/blf_study.py TABLES OUT                  # OUT/forecasts.parquet and OUT/outcomes.parquet
    python benchmarks/blf_study.py TABLES OUT --as-published   # prices, base rates and outcomes as the paper had them
    python benchmarks/blf_study.py TABLES OUT --models         # also Tables 17 and 18, as OUT/models.md

    foretell study trials -f OUT/forecasts.parquet -o OUT/outcomes.parquet

TABLES is a folder with the tables ab_questions, ab_resolutions and ab_trials as .parquet or .csv. The parts of a
configuration's name (model, effort, search, what the prompt shows, tools, variant) become columns of the forecasts,
which studies read as factors.
"""

import argparse
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np
import pandas

from foretell.data.datasets.forecastbench_tables import read_question_tables
from foretell.data.datasets.question_set import QuestionSet, outcome_key
from foretell.data.files import open_duckdb
from foretell.forecasters.base_rates.rates import FixedRates, Rates
from foretell.forecasters.combine.calibration import HierarchicalPlatt
from foretell.forecasters.combine.crossfit import leave_one_out
from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.combine.rules import ChainedMethod, with_rule_applied
from foretell.forecasters.combine.shrink import Shrink
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Resampling
from foretell.number_text import number, plural, signed
from foretell.questions.errors import InputError
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.report.numbers import CellValue
from foretell.report.study import StudyTable, column, table
from foretell.report.study_result import StudyResult
from foretell.runs.past import past_of
from foretell.scoring.baselines import OVERALL
from foretell.scoring.join import read_examples
from foretell.scoring.table_input import open_table
from foretell.studies.configurations import build_method, divergence_chart, fit_under_protocol
from foretell.studies.scores import Scores, brier_of, groups_of, index_of, paired_verdict

PAPER_RATES: Mapping[tuple[str, str], float] = {
    ("acled", "10x_spike"): 0.00,
    ("acled", "increase"): 0.23,
    ("wikipedia", "vaccine"): 0.00,
    ("wikipedia", "fide_elo"): 0.01,
    ("wikipedia", "fide_rank"): 0.68,
    ("wikipedia", "swimming"): 0.99,
    ("fred", ""): 0.42,
    ("yfinance", ""): 0.58,
    ("dbnomics", ""): 0.56,
}
"""Base rates by source and subtype as rounded in BLF 2026, Table 7; they include later outcomes."""

# The names of configurations.

PATTERN = re.compile(
    r"^(?P<model>.+?)-(?P<effort>[a-z]+)-(?P<search>[a-z]+)-c(?P<crowd>[01])(?:-p(?P<prior>[01]))?-t(?P<tools>[01])"
    r"(?:-(?P<variant>[\w-]+))?$"
)


@dataclass(frozen=True, kw_only=True)
class ConfigName:
    """One configuration, e.g. pro-high-brave-c1-p1-t1-nobelief.

    >>> config = parse_configs(["kimi-k2.5-high-brave-c1-t1-nobelief"])["kimi-k2.5-high-brave-c1-t1-nobelief"]
    >>> config.model, config.search, config.crowd, config.prior, config.variant
    ('kimi-k2.5', 'brave', True, False, 'nobelief')
    """

    model: str
    effort: str
    search: str
    """The search engine, or none."""
    crowd: bool
    """Whether the prompt shows the market price of market questions."""
    prior: bool
    """Whether the prompt shows the base rate of dataset questions."""
    tools: bool
    """Whether there are tools for the question's own source: series, market history, pages."""
    variant: str = ""
    """Empty for the agent with a belief state; nobelief for the one that only gathers text."""


def parse_configs(names: Iterable[str]) -> dict[str, ConfigName]:
    """Return the parts of every name that follows this pattern; other names are left out."""
    matches = {name: match for name in names if (match := PATTERN.match(name)) is not None}
    return {
        name: ConfigName(
            model=parts["model"],
            effort=parts["effort"],
            search=parts["search"],
            crowd=parts["crowd"] == "1",
            prior=parts["prior"] == "1",
            tools=parts["tools"] == "1",
            variant=parts["variant"] or "",
        )
        for name, parts in matches.items()
    }


def config_factors(parts: ConfigName) -> dict[str, str]:
    """The parts of a configuration as factors."""
    factors = {"shows_price": parts.crowd, "shows_rate": parts.prior, "tools": parts.tools}
    return {
        "model": parts.model,
        "effort": parts.effort,
        "search": parts.search,
        **{name: "yes" if value else "no" for name, value in factors.items()},
        "variant": parts.variant or "full",
    }


@dataclass(frozen=True, kw_only=True)
class ConfigFamily:
    """The configurations of one base model in one regime, as the paper's tables compare them."""

    model: str
    regime: str
    """c=0 or c=1, as the paper writes it."""
    zero_shot: str | None
    no_belief: str | None
    belief: str | None

    @property
    def name(self) -> str:
        """The name shown in tables."""
        return f"{self.model} {self.regime}"


def config_families(names: Mapping[str, ConfigName]) -> list[ConfigFamily]:
    """Return one family per base model and regime; of two candidates, the one that shows the base rate."""
    families: list[ConfigFamily] = []
    for model in dict.fromkeys(parts.model for parts in names.values()):
        for shows_price in (False, True):
            mine = {n: p for n, p in names.items() if (p.model, p.crowd, p.effort) == (model, shows_price, "high")}
            family = ConfigFamily(
                model=model,
                regime=f"c={int(shows_price)}",
                zero_shot=_first(mine, research=False, variant=""),
                no_belief=_first(mine, research=True, variant="nobelief"),
                belief=_first(mine, research=True, variant=""),
            )
            if family.no_belief or family.belief:
                families.append(family)
    return families


def _first(names: Mapping[str, ConfigName], *, research: bool, variant: str) -> str | None:
    parts = (research, research, variant)
    fits = [name for name, parsed in names.items() if (parsed.search != "none", parsed.tools, parsed.variant) == parts]
    return max(fits, key=lambda name: names[name].prior, default=None)


# The converter.

COLUMNS = ("config", "forecast_due_date", "source", "question_id", "resolution_date", "trial", "probability")
ResolvedTarget = tuple[Question, Target, Resolution]


@dataclass(frozen=True, kw_only=True)
class TrialAssumptions:
    """What counts as known when a question is asked, and which outcomes are used."""

    price: Literal["due", "freeze"] = "due"
    """Market price to use: on the due date, or when the question was written about ten days before."""
    prior: Literal["past", "paper"] = "past"
    """Base rates to use: counted from what had resolved before the due date, or the paper's rounded ones.

    The latter also saw later outcomes.
    """
    outcome: Literal["outcome", "paper_outcome"] = "outcome"
    """Outcomes to use: as published now, or as they were when the paper was written."""


OUT_OF_SAMPLE = TrialAssumptions()
AS_PUBLISHED = TrialAssumptions(price="freeze", prior="paper", outcome="paper_outcome")


def convert(
    folder: str | Path, out: Path, prefix: str = "ab_", known: TrialAssumptions = OUT_OF_SAMPLE
) -> tuple[Path, Path]:
    """Write the trials of every configuration on the resolved targets as forecasts.parquet and outcomes.parquet.

    Returns the two paths. A trial that failed has no row. Raises InputError if nothing has resolved.
    """
    root = Path(folder)
    question_set = read_question_tables(root, prefix, outcomes=known.outcome, price=known.price)
    outcomes = {
        outcome_key(resolution): resolution
        for resolution in question_set.resolutions
        if resolution.outcome is not None and resolution.resolved_at
    }
    keyed = ((q, t, outcomes.get((q.id, q.due, t.id))) for q in question_set.questions for t in q.targets)
    resolved = [(q, t, r) for q, t, r in keyed if r is not None]
    if not resolved:
        raise InputError(f"no question of {prefix}questions has resolved", path=root)
    rates = _rates(root, prefix, question_set, known)
    out.mkdir(parents=True, exist_ok=True)
    forecasts, facts = out / "forecasts.parquet", out / "outcomes.parquet"
    with open_duckdb() as con:
        con.register("rows", pandas.DataFrame([_outcome_row(*target, rates) for target in resolved]))
        con.execute(f"copy (select * from rows) to '{facts}' (format parquet)")
    _write_forecasts(root, prefix, resolved, forecasts)
    return forecasts, facts


def read_trial_tables(
    folder: str | Path, prefix: str = "ab_", known: TrialAssumptions = OUT_OF_SAMPLE
) -> dict[str, Examples]:
    """Read every configuration of `<prefix>trials` through the converter, all over the same resolved targets."""
    with tempfile.TemporaryDirectory() as out:
        return read_examples(*convert(folder, Path(out), prefix, known))


def _rates(root: Path, prefix: str, question_set: QuestionSet, assumptions: TrialAssumptions) -> Rates | None:
    """Return base rates from every round of the folder, if it has more than the rounds asked about."""
    if assumptions.prior == "paper":
        return FixedRates(table=PAPER_RATES)
    if prefix and any((root / f"questions{ending}").is_file() for ending in (".parquet", ".csv")):
        question_set = read_question_tables(root)
    return past_of(question_set.questions, question_set.resolutions).rates


def _outcome_row(question: Question, target: Target, resolution: Resolution, rates: Rates | None) -> dict[str, Any]:
    snapshot, resolved = target.snapshot, resolution.resolved_at
    return {
        "question": question.id,
        "target": target.id,
        "due": question.due.date().isoformat(),
        "outcome": resolution.outcome,
        "resolved_on": resolved.date().isoformat() if resolved else None,
        "kind": question.kind,
        "source": question.source,
        "subtype": question.subtype,
        "horizon": question.horizon_days(target),
        "cluster": question.cluster,
        "price": snapshot.price if snapshot else None,
        "price_age": float((question.due - snapshot.at).days) if snapshot else None,
        "liquidity": snapshot.volume if snapshot else None,
        "prior": rates.rate(question, target, question.as_of) if rates else None,
    }


def _write_forecasts(root: Path, prefix: str, resolved: Sequence[ResolvedTarget], out: Path) -> None:
    """Write the trials of resolved targets, with the parts of each configuration's name as columns."""
    paths = [root / f"{prefix}trials{ending}" for ending in (".parquet", ".csv")]
    path = next((path for path in paths if path.is_file()), paths[0])
    targets = [
        # Market forecasts carry no resolution date.
        {"key": f"{q.id}@{q.due.date()}@{'' if q.kind == 'market' else t.id}", "question": q.id, "target": t.id}
        | {"due": q.due.date().isoformat()}
        for q, t, _ in resolved
    ]
    with open_duckdb() as con, open_table(path, "trials", con) as trials:
        trials.require(*COLUMNS)
        name, p = trials.text("config"), trials.number("probability")
        day = f"left(coalesce({trials.text('resolution_date')}, ''), 10)"
        due = f"left({trials.text('forecast_due_date')}, 10)"
        key = f"{trials.text('source')} || '/' || {trials.text('question_id')} || '@' || {due} || '@' || {day}"
        configs = [config for (config,) in con.execute(f"select distinct {name} from {trials.table}").fetchall()]
        parsed = parse_configs(configs)
        parts = [
            {"config": config} | (config_factors(parsed[config]) if config in parsed else {}) for config in configs
        ]
        con.register("targets", pandas.DataFrame(targets))
        con.register("parts", pandas.DataFrame(parts))
        query_result = con.execute(
            f"""copy (select parts.config as forecaster, question, target, due, trial, p, parts.* exclude (config)
            from (select {name} as config, {trials.number("trial")}::int as trial, {p} as p, {key} as key
                  from {trials.table} where {p} is not null) said
            join targets using (key) join parts using (config)
            order by forecaster, trial, question, due, target) to '{out}' (format parquet)"""
        ).fetchall()[0][0]
    if not query_result:
        raise InputError(f"no trial of {prefix}trials belongs to a resolved target", path=root)


# The protocol of the BLF paper's cross-model table, applied to the trials: to reproduce it, not to publish numbers.
#
# Its published forecasts differ from its text. For questions with several dates, the calibrated forecast is the first
# trial that answered, not the mean. Shrinkage was tuned on the questions it is scored on, and used one past rate per
# source for data-set questions. The calibration left out single events, so that other dates of the same question stayed
# in the training set.

SOURCE_RATES = {
    ("acled", "2025-10-26"): 0.2109375,
    ("acled", "2025-11-09"): 0.21747968,
    ("fred", "2025-10-26"): 0.40826873,
    ("fred", "2025-11-09"): 0.38743455,
    ("wikipedia", "2025-10-26"): 0.0,
    ("wikipedia", "2025-11-09"): 0.0,
    ("yfinance", "2025-10-26"): 0.75987654,
    ("yfinance", "2025-11-09"): 0.73073702,
}
"""The rates that the paper shrinks dataset questions toward, by source and due date."""
NOT_SHRUNK = ("pro-high-brave-c1-p1-t1",)


def first_answers(examples: Examples) -> Examples:
    """Return the answers that the paper calibrated: the first on dataset questions, the logit mean on markets."""
    rows = examples.rows
    first = np.take_along_axis(rows.trials, np.argmax(~np.isnan(rows.trials), axis=0)[None], axis=0)[0]
    return replace(examples, rows=rows.with_trials(np.where(rows.kind == "dataset", first, rows.raw)))


def leave_last_out(chain: ChainedMethod, examples: Examples, *, by: str = "event") -> Floats:
    """Like `leave_one_out`, but only the last stage leaves groups out; the others are fitted on everything.

    This is the protocol of BLF 2026, whose shrinkage was tuned on the questions it was scored on. Use it only to
    reproduce its tables.
    """
    for method in chain.methods[:-1]:
        examples = with_rule_applied(method.fit(examples), examples)
    return leave_one_out(chain.methods[-1], examples, by=by) if chain.methods else examples.rows.raw


def paper_calibrated(examples: Examples) -> Floats:
    """Apply hierarchical Platt scaling to the paper's answers, leaving out single events."""
    return leave_one_out(HierarchicalPlatt(), first_answers(examples), by="event")


def paper_shrunk(examples: Examples) -> Floats:
    """Shrink in-sample to price and source rates, then apply hierarchical Platt scaling, leaving out single events."""
    rows = examples.rows
    asked_on = zip(rows.source.tolist(), np.datetime_as_string(rows.due, "D").tolist(), strict=True)
    rates = np.array([SOURCE_RATES.get(key, np.nan) for key in asked_on])
    # Where the paper's rates are unknown, use the prior of the examples.
    prior = rates if np.isfinite(rates).any() else rows.prior
    with_prior = replace(examples, rows=replace(rows, prior=prior))
    return leave_last_out(ChainedMethod(methods=(Shrink(), HierarchicalPlatt())), with_prior)


def paper_forecasts(config: str, examples: Examples) -> Floats:
    """Return the forecasts of the paper's full method; its headline configuration was not shrunk."""
    return paper_calibrated(examples) if config in NOT_SHRUNK else paper_shrunk(examples)


# Tables 17 and 18.

AGENTS = ("zero-shot", "no belief", "belief")
SHORT = {"market": "mkt", "dataset": "dat", OVERALL: "all"}
ForecastRule = Callable[[str, str, Examples], Floats]
"""Returns probabilities, given the agent, the configuration and the examples."""
NOTES = (
    "Paper's protocol: prices as frozen about ten days before, outcomes as of then; zero-shot is the plain logit mean; "
    "no belief is calibrated and belief is shrunk in-sample and calibrated with single events left out, as its "
    "published forecasts show (BLF 2026, Table 17).",
    "Past only: prices of the due date, base rates and every fit from what was known before the question was asked. "
    "There is one earlier round at most, of which only the first week had resolved: fits have little to learn from.",
)


def models_study(
    tables: Mapping[str, Examples], published: Mapping[str, Examples], resampling: Resampling
) -> StudyResult:
    """Base models side by side: Tables 17 and 18 by the paper's protocol, and by rules that knew only the past.

    `published` has the same configurations with the prices, base rates and outcomes of the paper. Raises InputError
    if no configuration's name has base model, search and belief state.
    """
    families = config_families(parse_configs(tables))
    if not families:
        raise InputError("no configuration's name says base model, search and belief state")
    boards = _boards(families, tables, published)
    study_tables: list[StudyTable] = []
    for title, board in boards.items():
        study_tables += [board.absolute(title), board.differences(title, resampling)]
    agents = {name: tables[name] for family in families if (name := family.belief or family.no_belief)}
    return StudyResult(
        name="models",
        title="Base models side by side",
        sentences=(_sentence(boards),),
        tables=tuple(study_tables),
        charts=(divergence_chart(agents, "How far the models are apart")[0],),
        notes=NOTES,
    )


def _members(family: ConfigFamily) -> dict[str, str]:
    parts = zip(AGENTS, (family.zero_shot, family.no_belief, family.belief), strict=True)
    return {agent: name for agent, name in parts if name is not None}


@dataclass(frozen=True, kw_only=True)
class ProtocolScores:
    """The Brier score of every target for every agent of every family, under one protocol."""

    families: Sequence[ConfigFamily]
    configs: Mapping[str, Examples]
    scores: Scores

    @property
    def groups(self) -> tuple[str, ...]:
        """The kinds of questions, and overall."""
        return groups_of(next(iter(self.configs.values())))

    def index(self, config: str | None, group: str = OVERALL) -> float | None:
        """Return the index of a configuration within a group, or None if it has none."""
        value = index_of(self.scores[config], self.configs[config], group) if config is not None else float("nan")
        return None if isnan(value) else value

    def absolute(self, title: str) -> StudyTable:
        """The index of every agent by kind and overall (the layout of Table 17)."""
        places = [(agent, group) for agent in AGENTS for group in self.groups]
        columns = [column(f"{agent} {SHORT[group]}", f"Brier index, {agent}, {group}") for agent, group in places]
        rows = {
            family.name: [self.index(_members(family).get(agent), group) for agent, group in places]
            for family in self.families
        }
        return table(f"Brier index: {title}", "Model", columns, rows)

    def differences(self, title: str, how: Resampling) -> StudyTable:
        """Table of what the agent with a belief state adds to zero-shot and to no belief (the layout of Table 18)."""
        places = [(agent, group) for agent in AGENTS[:2] for group in self.groups]
        columns = [column(f"− {agent}, {SHORT[group]}", f"belief minus {agent} on {group}") for agent, group in places]
        rows = {
            family.name: [self._gap(_members(family), agent, group, how) for agent, group in places]
            for family in self.families
        }
        complete = {name: values for name, values in rows.items() if any(value is not None for value in values)}
        return table(f"Belief minus others: {title}", "Model", columns, complete)

    def _gap(self, members: Mapping[str, str], agent: str, group: str, how: Resampling) -> CellValue:
        if agent not in members or "belief" not in members:
            return None
        config, other = members["belief"], members[agent]
        return paired_verdict(
            self.scores[config], self.scores[other], self.configs[config], ("belief", agent), group, how
        )


def _boards(
    families: Sequence[ConfigFamily], tables: Mapping[str, Examples], published: Mapping[str, Examples]
) -> dict[str, ProtocolScores]:
    def board(configs: Mapping[str, Examples], rule: ForecastRule) -> ProtocolScores:
        scores = {
            name: brier_of(rule(agent, name, configs[name]), configs[name])
            for family in families
            for agent, name in _members(family).items()
        }
        return ProtocolScores(families=families, configs=configs, scores=scores)

    def past_only(method: str) -> ForecastRule:
        return lambda agent, name, examples: fit_under_protocol(build_method(method), examples, "past only").p

    return {
        "paper's protocol": board(published, _as_in_the_paper),
        "logit mean": board(tables, lambda agent, name, examples: examples.rows.raw),
        "past only, paper's combination": board(tables, past_only("paper")),
        "past only, default": board(tables, past_only("default")),
    }


def _as_in_the_paper(agent: str, name: str, examples: Examples) -> Floats:
    if agent == "zero-shot":
        return examples.rows.raw
    return paper_forecasts(name, examples) if agent == "belief" else paper_calibrated(examples)


def _sentence(boards: Mapping[str, ProtocolScores]) -> str:
    titles = ("paper's protocol", "logit mean", "past only, default")
    indices = [
        {family.name: boards[title].index(family.belief) for family in boards[title].families} for title in titles
    ]
    paper, raw, honest = ({name: index for name, index in indice.items() if index is not None} for indice in indices)
    if not honest:
        return f"{plural(len(boards), 'protocol')}, no agent with a belief state."
    best = max(honest, key=lambda name: honest[name])
    shift = fmean(paper[name] - raw[name] for name in honest)
    return (
        f"Best belief agent, past only with the default rule: {best} at {number(honest[best], 1)} BI "
        f"(paper's protocol {number(paper[best], 1)}, logit mean {number(raw[best], 1)}). "
        f"The paper's protocol adds {signed(shift, 1)} to the logit mean on average."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Convert the BLF paper's tables to forecasts and outcomes.")
    parser.add_argument("tables", type=Path, help="folder with questions, resolutions and trials")
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("--prefix", default="ab_", help="prefix of the names of the tables (default: ab_)")
    parser.add_argument("--price", choices=("due", "freeze"), default="due", help="market price on that day")
    parser.add_argument("--prior", choices=("past", "paper"), default="past", help="base rates")
    parser.add_argument("--paper-outcomes", action="store_true", help="outcomes as known when the paper was written")
    parser.add_argument("--as-published", action="store_true", help="price, prior and outcomes as the paper had them")
    parser.add_argument("--models", action="store_true", help="also write Tables 17 and 18 as models.md")
    arguments = parser.parse_args()
    outcome = "paper_outcome" if arguments.paper_outcomes else "outcome"
    assumptions = TrialAssumptions(price=arguments.price, prior=arguments.prior, outcome=outcome)
    for path in convert(
        arguments.tables, arguments.out, arguments.prefix, AS_PUBLISHED if arguments.as_published else assumptions
    ):
        print(f"Wrote {path}")
    if arguments.models:
        tables, published = (
            read_trial_tables(arguments.tables, arguments.prefix, assumed) for assumed in (assumptions, AS_PUBLISHED)
        )
        path = arguments.out / "models.md"
        path.write_text(models_study(tables, published, Resampling(draws=2000)).to_markdown(), encoding="utf-8")
        print(f"Wrote {path}")


if __name__ == "__main__":
    main()
