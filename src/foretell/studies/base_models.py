"""Study: base models side by side, zero-shot, without and with a belief state, by the paper's protocol and honestly."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.agreement import divergence_matrix
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Resampling
from foretell.questions.errors import InputError
from foretell.report.charts.heatmap import distance_heatmap
from foretell.report.numbers import number, plural, signed
from foretell.report.study import CellValue, StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import (
    ConfigFamily,
    config_families,
    is_complete,
    parse_configs,
    study_notes,
    study_settings,
)
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.protocols import build_method, fit_under_protocol, paper_calibrated, paper_forecasts
from foretell.studies.scores import brier_of, groups_of, index_of, paired_gap

AGENTS = ("zero-shot", "no belief", "belief")
SHORT = {"market": "mkt", "dataset": "dat", OVERALL: "all"}
ForecastRule = Callable[[str, str, Examples], Floats]
"""Agent, configuration and examples to probabilities."""
NOTES = (
    "Paper's protocol: prices as frozen about ten days before, outcomes as of then; zero-shot is the plain logit mean; "
    "no belief is calibrated and belief is shrunk in-sample and calibrated with single events left out, as its "
    "published forecasts show (BLF 2026, Table 17).",
    "Past only: prices of the due date, base rates and every fit from what was known before the question was asked. "
    "There is one earlier round at most, of which only the first week had resolved: fits have little to learn from.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Which base model is best, by the paper and honestly?

    Table 17 and 18 of the paper by its own protocol, and the same with rules that knew only the past.
    """
    data = inputs.data(options)
    names = parse_configs(name for name in data.tables if not data.chosen or name in data.chosen)
    found = [family for family in config_families(names) if family.belief or family.no_belief]
    if not found:
        raise InputError("no configuration's name says base model, search and belief state", hint="see docs/studies")
    boards = _boards(found, data)
    grids: list[StudyTable] = []
    for done, (title, one) in enumerate(boards.items()):
        data.progress(done, len(boards))
        grids += [one.absolute(title), one.differences(title, data.resampling)]
    used = {name: data.tables[name] for family in found for name in _members(family).values()}
    return StudyResult(
        name="models",
        title="Base models side by side",
        sentences=(_sentence(boards),),
        tables=tuple(grids),
        charts=(_divergence(found, data.tables),),
        notes=(*NOTES, *_incomplete(used), *study_notes(data, used, left_out="Not part of these tables")),
        settings=study_settings(data, used),
    )


def _members(family: ConfigFamily) -> dict[str, str]:
    parts = zip(AGENTS, (family.zero_shot, family.no_belief, family.belief), strict=True)
    return {agent: name for agent, name in parts if name is not None}


@dataclass(frozen=True, kw_only=True)
class ProtocolScores:
    """The Brier score of every target for every agent of every family, under one protocol."""

    families: Sequence[ConfigFamily]
    tables: Mapping[str, Examples]
    scores: Mapping[str, Floats]
    """By configuration."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Kinds and overall."""
        return groups_of(next(iter(self.tables.values())))

    def absolute(self, title: str) -> StudyTable:
        """The index of every agent by kind and overall (the layout of Table 17)."""
        columns = [
            StudyColumn(label=f"{agent} {SHORT.get(group, group)}", tip=f"Brier index, {agent}, {group}")
            for agent in AGENTS
            for group in self.groups
        ]
        entries: list[StudyRow] = []
        for family in self.families:
            members = _members(family)
            values = [self._index(members.get(agent), group) for agent in AGENTS for group in self.groups]
            entries.append(StudyRow(name=family.name, values=tuple(values)))
        return StudyTable(
            title=f"Brier index: {title}", row_header="Model", columns=tuple(columns), rows=tuple(entries)
        )

    def _index(self, config: str | None, group: str) -> CellValue:
        if config is None:
            return None
        found = index_of(self.scores[config], self.tables[config], group)
        return None if isnan(found) else found

    def belief(self) -> dict[str, float]:
        """The overall index of every family's belief agent, where it answered every kind of question."""
        found = {family.name: self._index(family.belief, OVERALL) for family in self.families}
        return {name: value for name, value in found.items() if isinstance(value, float)}

    def differences(self, title: str, how: Resampling) -> StudyTable:
        """What the belief state's stack adds to zero-shot and to no belief (the layout of Table 18)."""
        others = AGENTS[:2]
        columns = [
            StudyColumn(label=f"− {agent}, {SHORT.get(group, group)}", tip=f"belief minus {agent} on {group}")
            for agent in others
            for group in self.groups
        ]
        entries: list[StudyRow] = []
        for family in self.families:
            members = _members(family)
            values: list[CellValue] = []
            for agent in others:
                values += [self._gap(members, agent, group, how) for group in self.groups]
            if any(value is not None for value in values):
                entries.append(StudyRow(name=family.name, values=tuple(values)))
        return StudyTable(
            title=f"Belief minus others: {title}", row_header="Model", columns=tuple(columns), rows=tuple(entries)
        )

    def _gap(self, members: Mapping[str, str], agent: str, group: str, how: Resampling) -> CellValue:
        if agent not in members or "belief" not in members:
            return None
        config, other = members["belief"], members[agent]
        found = paired_gap(self.scores[config], self.scores[other], self.tables[config], group, how)
        return None if isnan(found.diff) else found


def _boards(found: Sequence[ConfigFamily], data: StudyData) -> dict[str, ProtocolScores]:
    paper = data.paper() if data.paper else data.tables
    return {
        "paper's protocol": _board(found, paper, _as_in_the_paper),
        "logit mean": _board(found, data.tables, lambda agent, name, examples: examples.rows.raw),
        "past only, paper's combination": _board(found, data.tables, _past("paper")),
        "past only, default": _board(found, data.tables, _past("default")),
    }


def _board(found: Sequence[ConfigFamily], tables: Mapping[str, Examples], judge: ForecastRule) -> ProtocolScores:
    scores = {
        name: brier_of(judge(agent, name, tables[name]), tables[name])
        for family in found
        for agent, name in _members(family).items()
    }
    return ProtocolScores(families=found, tables=tables, scores=scores)


def _as_in_the_paper(agent: str, name: str, examples: Examples) -> Floats:
    if agent == "zero-shot":
        return examples.rows.raw
    return paper_forecasts(name, examples) if agent == "belief" else paper_calibrated(examples)


def _past(method: str) -> ForecastRule:
    def judge(agent: str, name: str, examples: Examples) -> Floats:
        return fit_under_protocol(build_method(method), examples, "past only").p

    return judge


def _divergence(found: Sequence[ConfigFamily], tables: Mapping[str, Examples]) -> StudyChart:
    """How far the models' logit means are apart, belief agents of all regimes."""
    names = [name for family in found if (name := family.belief or family.no_belief)]
    matrix = divergence_matrix(np.column_stack([tables[name].rows.raw for name in names]))
    figure = distance_heatmap(names, matrix.mean, label="mean Jensen–Shannon divergence in bits")
    return StudyChart(name="divergence", title="How far the models are apart", chart=figure)


def _incomplete(used: Mapping[str, Examples]) -> tuple[str, ...]:
    short = [name for name, table in used.items() if not is_complete(table)]
    if not short:
        return ()
    return (f"Scored on the rounds they answered only: {', '.join(short)}; differences are on shared targets.",)


def _sentence(boards: Mapping[str, ProtocolScores]) -> str:
    paper, raw, known = (boards[title].belief() for title in ("paper's protocol", "logit mean", "past only, default"))
    if not known:
        return f"{plural(len(boards), 'protocol')}, no agent with a belief state."
    best = max(known, key=lambda name: known[name])
    shift = float(np.mean([paper[name] - raw[name] for name in known]))
    return (
        f"Best belief agent, past only with the default rule: {best} at {number(known[best], 1)} BI "
        f"(paper's protocol {number(paper[best], 1)}, logit mean {number(raw[best], 1)}). "
        f"The paper's protocol adds {signed(shift, 1)} to the logit mean on average."
    )
