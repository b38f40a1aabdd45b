"""Study: base models side by side, zero-shot, without and with a belief state, by the paper's protocol and honestly."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from foretell.arena.report.figures.similarity import distance_heatmap
from foretell.arena.report.wording import number, plural, signed
from foretell.arena.scoreboard import OVERALL
from foretell.arena.studies.config_names import Family, families, readable
from foretell.arena.studies.paired import brier_of, gap, groups_of, index_of
from foretell.arena.studies.paper_protocol import blf, calibrated
from foretell.arena.studies.protocols import build_method, judged
from foretell.arena.studies.selection import notes_of, settings_of, whole
from foretell.arena.study import Column, Entry, Grid, Material, Picture, Study, Value
from foretell.evaluate.arrays import Floats
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.divergence import divergence_matrix
from foretell.forecasters.combine.rows import Examples
from foretell.questions.problems import InputError

AGENTS = ("zero-shot", "no belief", "belief")
SHORT = {"market": "mkt", "dataset": "dat", OVERALL: "all"}
Judge = Callable[[str, str, Examples], Floats]
"""Agent, configuration and examples to probabilities."""
NOTES = (
    "Paper's protocol: prices as frozen about ten days before, outcomes as of then; zero-shot is the plain logit mean; "
    "no belief is calibrated and belief is shrunk in-sample and calibrated with single events left out, as its "
    "published forecasts show (BLF 2026, Table 17).",
    "Past only: prices of the due date, base rates and every fit from what was known before the question was asked. "
    "There is one earlier round at most, of which only the first week had resolved: fits have little to learn from.",
)


def study(material: Material) -> Study:
    """Table 17 and 18 of the paper by its own protocol, and the same with rules that knew only the past."""
    names = readable(name for name in material.tables if not material.chosen or name in material.chosen)
    found = [family for family in families(names) if family.belief or family.no_belief]
    if not found:
        raise InputError("no configuration's name says base model, search and belief state", hint="see docs/studies")
    boards = _boards(found, material)
    grids: list[Grid] = []
    for done, (title, one) in enumerate(boards.items()):
        material.progress(done, len(boards))
        grids += [one.absolute(title), one.differences(title, material.resampling)]
    used = {name: material.tables[name] for family in found for name in _members(family).values()}
    return Study(
        name="models",
        title="Base models side by side",
        finding=_finding(boards),
        grids=tuple(grids),
        pictures=(_divergence(found, material.tables),),
        notes=(*NOTES, *_incomplete(used), *notes_of(material, used, left_out="Not part of these tables")),
        settings=settings_of(material, used),
    )


def _members(family: Family) -> dict[str, str]:
    parts = zip(AGENTS, (family.zero_shot, family.no_belief, family.belief), strict=True)
    return {agent: name for agent, name in parts if name is not None}


@dataclass(frozen=True, kw_only=True)
class Board:
    """The Brier score of every target for every agent of every family, under one protocol."""

    families: Sequence[Family]
    tables: Mapping[str, Examples]
    scores: Mapping[str, Floats]
    """By configuration."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Kinds and overall."""
        return groups_of(next(iter(self.tables.values())))

    def absolute(self, title: str) -> Grid:
        """The index of every agent by kind and overall (the layout of Table 17)."""
        columns = [
            Column(label=f"{agent} {SHORT.get(group, group)}", tip=f"Brier index, {agent}, {group}")
            for agent in AGENTS
            for group in self.groups
        ]
        entries: list[Entry] = []
        for family in self.families:
            members = _members(family)
            values = [self._index(members.get(agent), group) for agent in AGENTS for group in self.groups]
            entries.append(Entry(name=family.name, values=tuple(values)))
        return Grid(title=f"Brier index: {title}", head="Model", columns=tuple(columns), entries=tuple(entries))

    def _index(self, config: str | None, group: str) -> Value:
        if config is None:
            return None
        found = index_of(self.scores[config], self.tables[config], group)
        return None if isnan(found) else found

    def belief(self) -> dict[str, float]:
        """The overall index of every family's belief agent, where it answered every kind of question."""
        found = {family.name: self._index(family.belief, OVERALL) for family in self.families}
        return {name: value for name, value in found.items() if isinstance(value, float)}

    def differences(self, title: str, how: Resampling) -> Grid:
        """What the belief state's stack adds to zero-shot and to no belief (the layout of Table 18)."""
        others = AGENTS[:2]
        columns = [
            Column(label=f"− {agent}, {SHORT.get(group, group)}", tip=f"belief minus {agent} on {group}")
            for agent in others
            for group in self.groups
        ]
        entries: list[Entry] = []
        for family in self.families:
            members = _members(family)
            values: list[Value] = []
            for agent in others:
                values += [self._gap(members, agent, group, how) for group in self.groups]
            if any(value is not None for value in values):
                entries.append(Entry(name=family.name, values=tuple(values)))
        return Grid(title=f"Belief minus others: {title}", head="Model", columns=tuple(columns), entries=tuple(entries))

    def _gap(self, members: Mapping[str, str], agent: str, group: str, how: Resampling) -> Value:
        if agent not in members or "belief" not in members:
            return None
        config, other = members["belief"], members[agent]
        found = gap(self.scores[config], self.scores[other], self.tables[config], group, how)
        return None if isnan(found.diff) else found


def _boards(found: Sequence[Family], material: Material) -> dict[str, Board]:
    paper = material.paper() if material.paper else material.tables
    return {
        "paper's protocol": _board(found, paper, _as_in_the_paper),
        "logit mean": _board(found, material.tables, lambda agent, name, examples: examples.rows.raw),
        "past only, paper's combination": _board(found, material.tables, _past("paper")),
        "past only, default": _board(found, material.tables, _past("default")),
    }


def _board(found: Sequence[Family], tables: Mapping[str, Examples], judge: Judge) -> Board:
    scores = {
        name: brier_of(judge(agent, name, tables[name]), tables[name])
        for family in found
        for agent, name in _members(family).items()
    }
    return Board(families=found, tables=tables, scores=scores)


def _as_in_the_paper(agent: str, name: str, examples: Examples) -> Floats:
    if agent == "zero-shot":
        return examples.rows.raw
    return blf(name, examples) if agent == "belief" else calibrated(examples)


def _past(method: str) -> Judge:
    def judge(agent: str, name: str, examples: Examples) -> Floats:
        return judged(build_method(method), examples, "past only").p

    return judge


def _divergence(found: Sequence[Family], tables: Mapping[str, Examples]) -> Picture:
    """How far the models' logit means are apart, belief agents of all regimes."""
    names = [name for family in found if (name := family.belief or family.no_belief)]
    matrix = divergence_matrix(np.column_stack([tables[name].rows.raw for name in names]))
    figure = distance_heatmap(names, matrix.mean, label="mean Jensen–Shannon divergence in bits")
    return Picture(name="divergence", title="How far the models are apart", figure=figure)


def _incomplete(used: Mapping[str, Examples]) -> tuple[str, ...]:
    short = [name for name, table in used.items() if not whole(table)]
    if not short:
        return ()
    return (f"Scored on the rounds they answered only: {', '.join(short)}; differences are on shared targets.",)


def _finding(boards: Mapping[str, Board]) -> str:
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
