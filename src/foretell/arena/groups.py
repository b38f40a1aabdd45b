"""Which targets are scored together, and which of them are resampled together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from foretell.arena.scoreboard import OVERALL
from foretell.arena.table import Labels, Targets
from foretell.evaluate.arrays import Floats, Ints
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.clusters import caution
from foretell.evaluate.design import Design, Stratum
from foretell.questions.problems import InputError

COARSE = 500
"""More clusters than this are merged at random into as many bundles before resampling: bundles of independent
clusters are independent, so intervals stay right, and draws stay cheap however long the table."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """How much stands behind a number."""

    n: int
    questions: int
    n_clusters: int
    warning: str | None = None

    @classmethod
    def of(cls, parts: Sequence["Support"]) -> "Support":
        """What stands behind a number made of several parts."""
        return cls(
            n=sum(part.n for part in parts),
            questions=sum(part.questions for part in parts),
            n_clusters=sum(part.n_clusters for part in parts),
            warning=next((part.warning for part in parts if part.warning), None),
        )


@dataclass(frozen=True, kw_only=True)
class Block:
    """A group of targets with its resampling design."""

    group: Mapping[str, str]
    rows: Ints
    """Indices of its targets."""
    stratum: Stratum
    margins: Mapping[str, Ints]
    """The true clusters of the rows as codes 0.., by the column they come from; two where margins are crossed."""
    questions: Ints
    """The askings of the rows as codes 0.. ."""
    stream: int
    """Blocks with different streams are resampled independently."""

    def draw(self, sums: Floats, resampling: Resampling) -> Floats:
        """Sums over resamples; the same seed gives the same resamples for every forecaster."""
        # Single precision halves the time, and its rounding is far below the noise of the draws.
        single = sums.astype(np.float32)
        return self.stratum.draw(single, resampling.draws, resampling.rng(self.stream))  # type: ignore[arg-type]

    @cached_property
    def whole(self) -> Support:
        """What a number of somebody who answered everything rests on."""
        return self.support(np.arange(len(self.rows)))

    def support(self, at: Ints) -> Support:
        """What a number computed from the rows at these places of the block rests on."""
        sizes = {name: np.bincount(codes[at]) for name, codes in self.margins.items()}
        fewest = min(sizes, key=lambda name: np.count_nonzero(sizes[name]))
        n_clusters = int(np.count_nonzero(sizes[fewest]))
        return Support(
            n=len(at),
            questions=int(np.count_nonzero(np.bincount(self.questions[at]))),
            n_clusters=n_clusters,
            warning=caution(n_clusters, float(sizes[fewest].max() / len(at)), f"of {fewest}"),
        )


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Blocks that together hold every target once, with one table of sums for all of them."""

    blocks: tuple[Block, ...]

    @cached_property
    def starts(self) -> Ints:
        """Where each block's units begin in the table of sums; one more at the end."""
        return np.cumsum([0, *(block.stratum.units.n for block in self.blocks)])

    @cached_property
    def places(self) -> tuple[Ints, Ints, Ints]:
        """For each target: its block, its place in the block, and its unit in the table of sums."""
        n = sum(len(block.rows) for block in self.blocks)
        block_of, place, unit = (np.empty(n, np.int64) for _ in range(3))
        for i, block in enumerate(self.blocks):
            block_of[block.rows], place[block.rows] = i, np.arange(len(block.rows))
            unit[block.rows] = block.stratum.units.codes + self.starts[i]
        return block_of, place, unit

    @cached_property
    def _membership(self) -> Any:
        """Units × targets, one where a target belongs to a unit."""
        from scipy.sparse import csr_matrix

        unit = self.places[2]
        shape = (int(self.starts[-1]), len(unit))
        return csr_matrix((np.ones(len(unit)), (unit, np.arange(len(unit)))), shape=shape)

    def sums(self, columns: Floats, targets: Ints) -> Floats:
        """Column sums within each unit, for one row per given target."""
        if len(targets) < len(self.places[2]):
            everything = np.zeros((len(self.places[2]), columns.shape[1]))
            everything[targets] = columns
            columns = everything
        return self._membership @ columns

    def supports(self, targets: Ints) -> list[Support | None]:
        """What the numbers of somebody who answered these targets rest on, block by block; None for nothing."""
        block_of, place, _ = self.places
        if len(targets) == len(block_of):
            return [block.whole for block in self.blocks]
        mine, at = block_of[targets], place[targets]
        order = np.argsort(mine, kind="stable")
        edges = np.searchsorted(mine[order], np.arange(len(self.blocks) + 1))
        return [
            block.support(at[order[a:b]]) if b > a else None
            for block, a, b in zip(self.blocks, edges, edges[1:], strict=False)
        ]


def layers_of(targets: Targets, by: tuple[str, ...], cluster: tuple[str, ...]) -> list[Layer]:
    """The layer of the kinds (one block named overall where there is one kind), and that of `by`, if any."""
    ways = _ways(targets, cluster)
    kinds = Layer(blocks=tuple(_kinds(targets, ways)))
    if not by or (tuple(by) == ("kind",) and len(kinds.blocks) > 1):  # asked for by name they would be listed twice
        return [kinds]
    return [kinds, Layer(blocks=tuple(_parts(targets, by, ways)))]


def _kinds(targets: Targets, ways: dict[str, Labels]) -> Iterator[Block]:
    kind = targets.groups.get("kind")
    names = [name for name in kind.names if kind.mask(name).any()] if kind else []
    if kind is None or len(names) < 2:
        yield _block(targets, {"kind": OVERALL}, np.arange(len(targets)), ways, 0)
        return
    for stream, name in enumerate(names):
        yield _block(targets, {"kind": name}, np.flatnonzero(kind.mask(name)), ways, stream)


def _parts(targets: Targets, by: tuple[str, ...], ways: dict[str, Labels]) -> Iterator[Block]:
    columns = [_column(targets, name) for name in by]
    cells, cell_of = np.unique(np.column_stack([c.codes for c in columns]), axis=0, return_inverse=True)
    for i, cell in enumerate(cells):
        group = {name: c.names[code] or "(none)" for name, c, code in zip(by, columns, cell, strict=True)}
        yield _block(targets, group, np.flatnonzero(cell_of == i), ways, 0)


def _ways(targets: Targets, cluster: tuple[str, ...]) -> dict[str, Labels]:
    if not cluster:
        cluster = ("cluster",) if "cluster" in targets.groups else ("question",)
    if len(cluster) > 2:
        raise InputError("at most two ways of clustering can be crossed", column=cluster[2])
    return {name: _column(targets, name) for name in cluster}


def _column(targets: Targets, name: str) -> Labels:
    if name in ("question", "target"):
        return targets.question if name == "question" else targets.target
    if name not in targets.groups:
        there = ", ".join(["question", "target", *targets.groups])
        raise InputError(f"the outcomes have no column {name!r}", column=name, hint=f"columns to group by: {there}")
    return targets.groups[name]


def _block(targets: Targets, group: dict[str, str], rows: Ints, ways: dict[str, Labels], stream: int) -> Block:
    margins = {name: _dense(labels.codes[rows]) for name, labels in ways.items()}
    bundles = [_bundled(codes) for codes in margins.values()]
    design = Design(cluster=bundles[0], crossed=bundles[1] if len(bundles) > 1 else None)
    return Block(
        group=group,
        rows=rows,
        stratum=design.strata(len(rows))[0],
        margins=margins,
        questions=_dense(_askings(targets)[rows]),
        stream=stream,
    )


def _askings(targets: Targets) -> Ints:
    """One code per question and round: the same market asked again is another question to answer."""
    due = targets.groups.get("due")
    return targets.question.codes if due is None else targets.question.codes * len(due.names) + due.codes


def _dense(codes: Ints) -> Ints:
    return np.unique(codes, return_inverse=True)[1]


def _bundled(codes: Ints) -> Ints:
    n = int(codes.max()) + 1
    return codes if n <= COARSE else (np.random.default_rng(0).permutation(n) % COARSE)[codes]
