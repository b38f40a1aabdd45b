"""Study: which base model is best? Base models side by side, with and without hindsight."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import fmean

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Resampling
from foretell.questions.errors import InputError
from foretell.report.numbers import number, plural, signed
from foretell.report.study import CellValue, StudyResult, StudyTable, column, table
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import (
    ConfigFamily,
    build_method,
    config_families,
    divergence_chart,
    fit_under_protocol,
    paper_calibrated,
    paper_forecasts,
    parse_configs,
    with_scope,
)
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.scores import Scores, brier_of, groups_of, index_of, paired_verdict

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


def models_study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Which base model is best, with and without hindsight?

    Shows Tables 17 and 18 of the BLF paper by its own protocol, and the same with rules that knew only the past.
    """
    data = inputs.data(options)
    families = config_families(parse_configs(name for name in data.tables if not data.chosen or name in data.chosen))
    if not families:
        raise InputError("no configuration's name says base model, search and belief state", hint="see docs/studies")
    boards = _boards(families, data)
    tables: list[StudyTable] = []
    for done, (title, board) in enumerate(boards.items()):
        data.progress(done, len(boards))
        tables += [board.absolute(title), board.differences(title, data.resampling)]
    used = {name: data.tables[name] for family in families for name in _members(family).values()}
    agents = {name: data.tables[name] for family in families if (name := family.belief or family.no_belief)}
    result = StudyResult(
        name="models",
        title="Base models side by side",
        sentences=(_sentence(boards),),
        tables=tuple(tables),
        charts=(divergence_chart(agents, "How far the models are apart")[0],),
        notes=NOTES,
    )
    return with_scope(result, data, used)


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
        found = index_of(self.scores[config], self.configs[config], group) if config is not None else float("nan")
        return None if isnan(found) else found

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
        known = {name: values for name, values in rows.items() if any(value is not None for value in values)}
        return table(f"Belief minus others: {title}", "Model", columns, known)

    def _gap(self, members: Mapping[str, str], agent: str, group: str, how: Resampling) -> CellValue:
        if agent not in members or "belief" not in members:
            return None
        config, other = members["belief"], members[agent]
        return paired_verdict(
            self.scores[config], self.scores[other], self.configs[config], ("belief", agent), group, how
        )


def _boards(families: Sequence[ConfigFamily], data: StudyData) -> dict[str, ProtocolScores]:
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
        "paper's protocol": board(data.paper() if data.paper else data.tables, _as_in_the_paper),
        "logit mean": board(data.tables, lambda agent, name, examples: examples.rows.raw),
        "past only, paper's combination": board(data.tables, past_only("paper")),
        "past only, default": board(data.tables, past_only("default")),
    }


def _as_in_the_paper(agent: str, name: str, examples: Examples) -> Floats:
    if agent == "zero-shot":
        return examples.rows.raw
    return paper_forecasts(name, examples) if agent == "belief" else paper_calibrated(examples)


def _sentence(boards: Mapping[str, ProtocolScores]) -> str:
    titles = ("paper's protocol", "logit mean", "past only, default")
    indices = [{one.name: boards[title].index(one.belief) for one in boards[title].families} for title in titles]
    paper, raw, honest = ({name: index for name, index in one.items() if index is not None} for one in indices)
    if not honest:
        return f"{plural(len(boards), 'protocol')}, no agent with a belief state."
    best = max(honest, key=lambda name: honest[name])
    shift = fmean(paper[name] - raw[name] for name in honest)
    return (
        f"Best belief agent, past only with the default rule: {best} at {number(honest[best], 1)} BI "
        f"(paper's protocol {number(paper[best], 1)}, logit mean {number(raw[best], 1)}). "
        f"The paper's protocol adds {signed(shift, 1)} to the logit mean on average."
    )
