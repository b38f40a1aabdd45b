"""Section of the study of noise in trees: the distribution of the numbers that models stated in links."""

from collections.abc import Iterator, Mapping
from statistics import fmean

import numpy as np

from foretell.forecasters.tree.case_links import CasesLink, SplitLink
from foretell.forecasters.tree.links import FormulaLink, LinearLink, Link, NoisyOrLink
from foretell.number_text import number, percent
from foretell.questions.errors import InputError
from foretell.report.charts.calibration import histogram
from foretell.report.numbers import CellValue
from foretell.report.study import StudyChart, column, count, table
from foretell.report.study_result import StudyResult
from foretell.studies.inputs import StudyData

MOST_CHARTS = 12
LARGE = 0.5
"""Weights up to this are small: no single child decides (Analytica 2026, figure 17)."""
INTERCEPT, WEIGHT = "linear: intercept", "linear: weight"
SIGNED = (WEIGHT, INTERCEPT)
"""Numbers that may be negative; all others are probabilities."""
COLUMNS = (
    count("n", "numbers stated"),
    count("trees"),
    column("mean", decimals=3),
    column("sd", "standard deviation", 3),
    *(column(name, decimals=3) for name in ("least", "lower quartile", "median", "upper quartile", "most")),
    column("negative", "% below 0"),
    column("large", f"% beyond {LARGE:g}"),
)


def link_numbers(link: Link) -> Iterator[tuple[str, float]]:
    """Yield the numbers that a link states, each with the kind of link and what it is."""
    match link:
        case LinearLink():
            yield INTERCEPT, link.intercept
            yield from ((WEIGHT, weight) for weight in link.weights.values())
        case NoisyOrLink():
            yield "noisy-or: leak", link.leak
            yield from (("noisy-or: strength", strength) for strength in link.strengths.values())
            yield from (("noisy-or: inhibition", inhibition) for inhibition in link.blocking.values())
        case FormulaLink():
            yield from [] if link.assumption is None else [("formula: assumption", link.assumption.p)]
        case CasesLink():
            yield from (("cases: none", link.none), ("cases: all", link.all))
            yield from (("cases: only one", p) for p in link.only.values())
            yield from (("cases: all but one", p) for p in link.but.values())
        case SplitLink():
            yield from (("split: then", p) for row in link.then.values() for p in row)
        case _:
            return


def links_section(data: StudyData) -> StudyResult:
    """Describe the numbers of all links over the trees. Raises InputError if there are none."""
    if not data.trees:
        raise InputError("simulated trees have no learnt links", hint="give runs or folders of trees")
    numbers: dict[str, dict[int, list[float]]] = {}
    for group, trees in data.trees.items():
        for place, tree in enumerate(trees):
            for node in tree.nodes.values():
                for name, value in link_numbers(node.link) if node.link is not None else ():
                    row = f"{group}, {name}" if len(data.trees) > 1 else name
                    numbers.setdefault(row, {}).setdefault(place, []).append(value)
    if not numbers:
        raise InputError("no link of these trees states a number")
    rows: dict[str, list[CellValue]] = {name: _row(by_tree) for name, by_tree in numbers.items()}
    return StudyResult(
        name="tree-noise",
        title="Numbers that models stated in links",
        sentences=tuple(_sentences(numbers)),
        tables=(table("Numbers in links", "Link", COLUMNS, rows),),
        charts=tuple(_charts(numbers)),
        notes=("A weight is what a child adds if it is true; small ones even out errors of the leaves.",),
    )


def _row(by_tree: Mapping[int, list[float]]) -> list[CellValue]:
    values = np.array([value for tree in by_tree.values() for value in tree])
    shares = [100 * float(np.mean(values < 0)), 100 * float(np.mean(np.abs(values) > LARGE))]
    spread = [float(value) for value in np.quantile(values, (0, 0.25, 0.5, 0.75, 1))]
    return [len(values), len(by_tree), float(values.mean()), float(values.std()), *spread, *shares]


def _sentences(numbers: Mapping[str, Mapping[int, list[float]]]) -> Iterator[str]:
    stated = {name: [value for tree in by_tree.values() for value in tree] for name, by_tree in numbers.items()}
    weights = [value for name, values in stated.items() if name.endswith(WEIGHT) for value in values]
    if not weights:
        yield f"The links state {sum(map(len, stated.values()))} numbers."
        return
    small, mean = percent(fmean(0 <= weight <= LARGE for weight in weights)), number(fmean(weights), 2)
    yield f"{small} of {len(weights)} weights lie between 0 and {LARGE:g}; their mean is {mean}."


def _charts(numbers: Mapping[str, Mapping[int, list[float]]]) -> Iterator[StudyChart]:
    for place, (name, by_tree) in enumerate(list(numbers.items())[:MOST_CHARTS], start=1):
        values = np.array([value for tree in by_tree.values() for value in tree])
        most = max(0.1 if name.endswith(INTERCEPT) else 1.0, float(np.abs(values).max()))
        ends = (-most, most) if name.endswith(SIGNED) else (0.0, 1.0)
        heads = (name, f"{len(values)} numbers, mean {number(float(values.mean()), 3)}")
        middle = 0.0 if name.endswith(SIGNED) else LARGE
        chart = histogram(values, f"Distribution of {name}", heads, what="number", of="link", middle=middle, ends=ends)
        yield StudyChart(name=f"links-{place}", title=f"Distribution of {name}", chart=chart)
