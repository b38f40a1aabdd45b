"""The report on a tree: its answer, its drivers and uncertainty, every claim with evidence, and its origin.

No model writes it: sentences are generated from the numbers, and models and people are quoted.
"""

from collections.abc import Iterator, Mapping, Sequence

from foretell.forecasters.tree.arithmetic.circuit import slopes
from foretell.forecasters.tree.arithmetic.error_bar import ErrorBar, error_bar, leaf_trials
from foretell.forecasters.tree.arithmetic.evaluation import circuit_and_values
from foretell.forecasters.tree.arithmetic.sensitivity import Driver, drivers
from foretell.forecasters.tree.exports import (
    claim_marks,
    link_in_numbers,
    link_in_words,
    outline,
    stale_parts,
    tree_caveats,
    tree_failures,
)
from foretell.forecasters.tree.history import TreeVersion, tree_digest
from foretell.forecasters.tree.parts import change_lines, claim_parts, reasoning_lines
from foretell.forecasters.tree.proposition import Proposition, Tree, TreeOrigin, leaves
from foretell.forecasters.tree.text import enumeration
from foretell.forecasters.tree.what_if import WhatIfResult
from foretell.frozen import frozen
from foretell.number_text import brief_percent, percent, signed
from foretell.patterns import pattern
from foretell.report.charts.ranking import TornadoRow, tornado_plot
from foretell.report.charts.svg import Chart, figure, rect, text
from foretell.report.document import ReportDocument
from foretell.report.html import HtmlBlock, LinkItem, OutlineItem, Section
from foretell.report.markup import Markup, clean, compact, element, sentence, shorten, web_address
from foretell.report.study import column, table, words
from foretell.report.theme import DIVERGING

# A tree of claims as a picture: the answer on the left, the claims it depends on to the right, coloured by probability.


BOX, ROW, COLUMN, MARGIN = 210, 40, 258, 6
HEIGHT = 32
LETTERS = 34
MOST_DRAWN = 60
"""Maximum number of claims in one picture; children that are not drawn are counted in the box of their parent."""


@frozen
class PictureClaim:
    """A claim in the picture."""

    id: str
    text: str
    p: float | None
    value: str
    """The formatted probability."""
    children: Sequence[str] = ()
    pull: float = 0.0
    """Positive if the answer rises with the claim, negative if it falls, 0 if that is not known."""
    alarm: bool = False
    """Whether the claim failed or is stale."""


def tree_picture(root: str, claims: Mapping[str, PictureClaim], title: str) -> Chart:
    """Draw the tree as boxes from left to right. A claim with several parents is drawn once, with a line to each."""
    depth, hidden = _drawn(root, claims)
    places = _places(root, claims, depth)
    lines = [
        _edge(places[id], places[child], claims[child].pull)
        for id in places
        for child in claims[id].children
        if child in places
    ]
    boxes = [mark for id, place in places.items() for mark in _box(claims[id], place, hidden.get(id, 0))]
    width = COLUMN * max(depth.values()) + BOX + 2 * MARGIN
    height = max(y for _, y in places.values()) + HEIGHT + MARGIN
    return figure(width, height, title, *lines, *boxes)


def _drawn(root: str, claims: Mapping[str, PictureClaim]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the column of every claim that is drawn, and the number of children of each claim that are not."""
    drawn, hidden, level = {root: None}, dict[str, int](), [root]
    while level:
        below: list[str] = []
        for id in level:
            new = [child for child in dict.fromkeys(claims[id].children) if child not in drawn]
            if len(drawn) + len(new) > MOST_DRAWN:
                hidden[id] = len(new)
                continue
            drawn |= dict.fromkeys(new)
            below += new
        level = below
    # A claim is drawn to the right of every claim that depends on it.
    depth = dict.fromkeys(drawn, 0)
    for _ in drawn:  # At most as often as the longest path has steps.
        for id in drawn:
            below = [child for child in claims[id].children if child in drawn and depth[child] <= depth[id]]
            depth |= dict.fromkeys(below, depth[id] + 1)
    return depth, {id: count for id, count in hidden.items() if count}


def _places(root: str, claims: Mapping[str, PictureClaim], depth: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    """Return upper left corners: each end of a branch has a row, and a claim is centred beside its children."""
    rows: dict[str, float] = {}
    first: dict[str, str] = {root: ""}
    """The parent beside which each claim is drawn."""
    stack: list[tuple[str, bool]] = [(root, False)]
    taken = 0
    while stack:
        id, done = stack.pop()
        beside = [child for child in claims[id].children if child in depth and depth[child] == depth[id] + 1]
        if done:
            below = [rows[child] for child in beside if first[child] == id]
            rows[id] = (min(below) + max(below)) / 2 if below else float(taken)
            taken += 0 if below else 1
        else:
            new = [child for child in dict.fromkeys(beside) if child not in first]
            first |= dict.fromkeys(new, id)
            stack.append((id, True))
            stack.extend((child, False) for child in reversed(new))
    return {id: (MARGIN + COLUMN * depth[id], MARGIN + ROW * row) for id, row in rows.items()}


def _edge(start: tuple[float, float], end: tuple[float, float], pull: float) -> Markup:
    (x, y), (right, below) = (start[0] + BOX, start[1] + HEIGHT / 2), (end[0], end[1] + HEIGHT / 2)
    middle = (x + right) / 2
    at = [compact(value) for value in (x, y, middle, y, middle, below, right, below)]
    style = "l-a" if pull > 0 else "l-b dash" if pull < 0 else "l-axis"
    curve = f"M{at[0]} {at[1]}C{at[2]} {at[3]} {at[4]} {at[5]} {at[6]} {at[7]}"
    return element("path", d=curve, class_=f"no bold {style}")


def _box(claim: PictureClaim, place: tuple[float, float], hidden: int) -> list[Markup]:
    x, y = place
    step = None if claim.p is None else min(int(claim.p * len(DIVERGING)), len(DIVERGING) - 1)
    text_colour = "" if step is None else f" f-o{step}"
    fill = "f-panel" if step is None else f"f-d{step}"
    more = f" (+{hidden})" if hidden else ""
    alarm = " l-b bold dash" if claim.alarm else " l-axis thin"
    return [
        rect(x, y, BOX, HEIGHT, f"{fill}{alarm}", tip=f"{claim.id} {claim.value}: {claim.text}"),
        text(x + 6, y + 13, f"{claim.id}{more}", f"s w{text_colour}"),
        text(x + BOX - 6, y + 13, claim.value, f"s w r{text_colour}"),
        text(x + 6, y + 27, shorten(claim.text, LETTERS), f"xs{text_colour}"),
    ]


# The report.


DRIVERS = 15
"""Maximum number of inputs in each table of drivers."""
BARS = 20
SIGNERS = ("prepared by", "checked by", "date")
READING = (
    "Pull: by how much the answer is higher than if the claim were even. Slope: by how much the answer rises if the "
    "claim goes from surely false to surely true. Share: its part in how far the answer can be expected to move once "
    "the truth of the inputs is known. Turns at: the probability of the claim at which the answer would be 50 %."
)
PICTURE = (
    "Detail increases to the right. Blue boxes are likely, orange ones unlikely. The answer rises with "
    "claims on full lines and falls with those on dashed ones; a dashed frame marks claims that failed or are stale."
)
_PUBLISHED = pattern(r"\((\d{4}-\d\d-\d\d)\)")


@frozen
class ReportFacts:
    """Facts of a report besides the tree: its file and its versions."""

    file: str = "TREE.json"
    """The tree's file as named in commands."""
    versions: Sequence[TreeVersion] = ()
    systematic_error: float = 0.0
    """Standard deviation of the grounder's systematic error."""


def tree_report(tree: Tree, outcomes: Sequence[WhatIfResult] = (), facts: ReportFacts | None = None) -> ReportDocument:
    """Build the report on a tree that has been evaluated; scenarios are compared if their `outcomes` are given."""
    facts = facts or ReportFacts()
    inputs, bar = drivers(tree), error_bar(tree, systematic_error=facts.systematic_error)
    top = tree.nodes[tree.root]
    sections: list[Section] = [
        ("reliance", "Before you rely on it", list(_reliance(tree))),
        ("criteria", "How it resolves", list(_criteria(tree))),
        ("direct", "Tree and direct estimate", list(_reconciliation(tree))),
        ("inputs", "What it hangs on", list(_drivers(tree, inputs))),
        ("bar", "How sure it is", list(_sureness(tree, bar, facts))),
        ("tree", "The tree", list(_picture(tree))),
        ("scenarios", "Scenarios", [_scenarios(tree, outcomes)] if outcomes else []),
        (
            "claims",
            "Every claim",
            [block for line in outline(tree) if not line.again for block in _claim(tree, line.node)],
        ),
        ("made", "How it was made", list(_making(tree, facts))),
        ("reproduce", "How to reproduce it", [HtmlBlock(bullets=_reproducing(tree, facts))]),
        (
            "sign",
            "Signed",
            [HtmlBlock(definitions=[(who, ". " * 24) for who in SIGNERS])],
        ),
    ]
    return ReportDocument(title=top.claim, lead=_answer(tree, inputs, bar), sections=sections)


# The answer in a paragraph.


def _answer(tree: Tree, inputs: Sequence[Driver], bar: ErrorBar | None) -> str:
    top, origin = tree.nodes[tree.root], tree.origin or TreeOrigin()
    as_of = f", as of {tree.as_of}" if tree.as_of is not None else ""
    closes = f"; it will be known by {origin.closes}" if origin.closes else ""
    parts = [f"Probability {percent(top.p, 1)}{as_of}{closes}."]
    if origin.reconciliation is not None:
        first = reasoning_lines(tree)[0]
        # Two numbers that stay apart come before the tree's own.
        parts.insert(0 if origin.reconciliation.apart else 1, f"{first[:1].upper()}{first[1:]}.")
    if bar is not None:
        parts.append(f"The answer lies {bar}.")
    parts += map(sentence, [*tree_failures(tree), *tree_caveats(tree)])
    factor = top.key_factor or (top.grounding.key_factor if top.grounding is not None else "")
    if factor:
        parts.append(f"Key factor: {sentence(factor)}")
    for direction, label in ((1, "Most for it"), (-1, "Most against it")):
        driver = next((driver for driver in inputs if driver.pull * direction > 0), None)
        if driver is not None and driver.id != tree.root:
            claim = sentence(shorten(driver.claim, 160))
            parts.append(f"{label}: {driver.id} at {percent(driver.p, 1)}, {claim}")
    turning = next((driver for driver in inputs if driver.turns_at is not None and driver.id != tree.root), None)
    if turning is not None and turning.turns_at is not None:
        at = percent(turning.turns_at, 1)
        parts.append(f"The answer would be 50 % with {turning.id} at {at} instead of {percent(turning.p, 1)}.")
    return " ".join(parts)


# The sections.


def _reliance(tree: Tree) -> Iterator[HtmlBlock]:
    failed, stale, caveats = tree_failures(tree), stale_parts(tree), tree_caveats(tree)
    for problem in (*(f"Failed: {id}" for id in failed), *(f"Stale: {id}" for id in stale), *map(sentence, caveats)):
        yield HtmlBlock(text=problem, style="bad")
    if not failed and not stale and not caveats:
        yield HtmlBlock(text="Every leaf has a number, no synthesis failed, and nothing is stale.")
    if tree.notes:
        yield HtmlBlock(bullets=tree.notes)


def _criteria(tree: Tree) -> Iterator[HtmlBlock]:
    origin = tree.origin or TreeOrigin()
    pairs = [("question", origin.question), ("known by", origin.closes), ("asked at", origin.url)]
    if shown := [pair for pair in pairs if pair[1]]:
        yield HtmlBlock(definitions=shown)
    if origin.criteria:
        yield HtmlBlock(prose=origin.criteria)
    else:
        yield HtmlBlock(text="No criteria were given; the wording of the claim decides.")


def _reconciliation(tree: Tree) -> Iterator[HtmlBlock]:
    """Show the tree beside the direct estimate, and what was changed to reconcile them."""
    both = tree.origin.reconciliation if tree.origin is not None else None
    if both is None:
        return
    yield HtmlBlock(text="The direct estimate was made from the research, before the tree existed.")
    together = both.combined()
    rows = [
        (target, tuple(map(brief_percent, (both.tree[target], both.direct[target], together[target]))))
        for target in both.tree
    ]
    columns = map(column, ("tree", "direct", "together"))
    caption = f"They {both.verdict}; together is {percent(both.weight)} of the tree, in log-odds."
    yield HtmlBlock(table=table("Tree and direct estimate", "outcome", columns, rows, caption=caption))
    if lines := change_lines(both):
        yield HtmlBlock(bullets=[f"{line[:1].upper()}{line[1:]}" for line in lines])


def _drivers(tree: Tree, inputs: Sequence[Driver]) -> Iterator[HtmlBlock]:
    if not inputs:
        yield HtmlBlock(text="Nothing moves it: the answer is given, not computed.")
        return
    yield HtmlBlock(charts=[tornado_of(tree, inputs)])
    groups = {
        "Drivers up": [driver for driver in inputs if driver.pull > 0],
        "Drivers down": [driver for driver in inputs if driver.pull < 0],
        "No pull either way": [driver for driver in inputs if driver.pull == 0],
    }
    for title, some in groups.items():
        if some:
            more = f"{len(some) - DRIVERS} more with less pull" if len(some) > DRIVERS else ""
            yield _driver_table(title, some[:DRIVERS], more)
    yield HtmlBlock(text=READING, style="quiet")


def _driver_table(title: str, some: Sequence[Driver], caption: str) -> HtmlBlock:
    labels = ("p", "pull, points", "slope", "share", "answer if false", "answer if true", "turns at")
    rows = [
        (
            f"{driver.id} {driver.claim}",
            (
                percent(driver.p, 1),
                signed(100 * driver.pull, 1),
                signed(driver.slope, 3),
                percent(driver.share),
                percent(driver.if_false, 1),
                percent(driver.if_true, 1),
                percent(driver.turns_at, 1),
            ),
        )
        for driver in some
    ]
    caption = f"{title}: {caption}" if caption else ""
    return HtmlBlock(table=table(title, "input", map(column, labels), rows, caption=caption))


def _sureness(tree: Tree, bar: ErrorBar | None, facts: ReportFacts) -> Iterator[HtmlBlock]:
    trials = leaf_trials(tree)
    counts = {id: len(values) for id, values in trials.items()}
    if bar is None:
        why = "no leaf was examined more than once"
        if any(count > 1 for count in counts.values()):
            why = "all examinations of a leaf came to the same number"
        yield HtmlBlock(text=f"There is no error bar: {why}. To get one, run foretell tree update FILE --trials 5.")
        return
    pairs = [
        ("answer", f"{percent(bar.p, 1)}, {bar}"),
        ("standard deviation", f"{100 * bar.sd:.1f} points"),
        ("examinations", f"{sum(counts.values())} of {len(counts)} leaves"),
        ("correlation of the errors of one trial", f"{bar.correlation:.2f}"),
    ]
    if facts.systematic_error:
        pairs.append(("systematic error of the grounder", f"{facts.systematic_error:g}"))
    largest = sorted(bar.contributions.items(), key=lambda item: -item[1])[:5]
    total = sum(bar.contributions.values())
    if total > 0:
        shares = [f"{id} {percent(value / total)}" for id, value in largest]
        pairs.append(("most of the uncertainty comes from", ", ".join(shares)))
    yield HtmlBlock(definitions=pairs)


def _picture(tree: Tree) -> Iterator[HtmlBlock]:
    yield HtmlBlock(charts=[picture_of(tree)])
    more = f" {MOST_DRAWN} of {len(tree.nodes)} claims at most are drawn." if len(tree.nodes) > MOST_DRAWN else ""
    yield HtmlBlock(text=PICTURE + more, style="quiet")
    yield HtmlBlock(
        outline=[
            OutlineItem(
                depth=line.depth,
                name=line.node.id,
                value=percent(line.node.p, 1),
                text=line.node.claim,
                anchor=f"claim-{line.node.id}",
                tags=["see above"] if line.again else claim_marks(line.node),
            )
            for line in outline(tree)
        ]
    )


def tornado_of(tree: Tree, inputs: Sequence[Driver] | None = None) -> Chart:
    """Plot how far each input moves the answer, widest bar first."""
    bars = sorted(
        drivers(tree) if inputs is None else inputs, key=lambda driver: -abs(driver.if_true - driver.if_false)
    )[:BARS]
    rows = [TornadoRow(name=f"{bar.id} {bar.claim}", at_low=bar.if_false, at_high=bar.if_true) for bar in bars]
    return tornado_plot(rows, tree.nodes[tree.root].p or 0.0)


def picture_of(tree: Tree) -> Chart:
    """Draw the tree, with claims coloured by probability and lines styled by how the answer moves with the claim."""
    circuit, values = circuit_and_values(tree)
    slope = slopes(circuit.ops, values, circuit.claims[tree.root])
    own = {id: slope[place] for id, place in circuit.claims.items() if id in circuit.pinnable}
    claims = {
        id: PictureClaim(
            id=id,
            text=node.claim,
            p=node.p,
            value=percent(node.p, 1),
            children=node.children,
            pull=own.get(id, 0.0),
            alarm=bool(node.failed or node.stale or (node.grounding is not None and node.grounding.error)),
        )
        for id, node in tree.nodes.items()
    }
    return tree_picture(tree.root, claims, f"Tree of {len(claims)} claims")


def _scenarios(tree: Tree, outcomes: Sequence[WhatIfResult]) -> HtmlBlock:
    base = tree.nodes[tree.root].p or 0.0
    rows = [
        (
            outcome.name,
            (
                percent(outcome.p, 1),
                signed(100 * (outcome.p - base), 1),
                ", ".join(other.id for other in outcome.changes),
            ),
        )
        for outcome in outcomes
    ]
    columns = (column("answer"), column("change, points"), words("claims changed"))
    return HtmlBlock(table=table("What the answer would be", "scenario", columns, rows))


def _claim(tree: Tree, node: Proposition) -> Iterator[HtmlBlock]:
    marks = "; ".join(claim_marks(node))
    heading = f"{node.id}: {percent(node.p, 1)}" + (f" ({marks})" if marks else "")
    yield HtmlBlock(heading=heading, anchor=f"claim-{node.id}")
    yield HtmlBlock(text=node.claim)
    if pairs := list(_facts(tree, node)):
        yield HtmlBlock(definitions=pairs)
    if node.report:
        yield HtmlBlock(prose=node.report)
    grounding = node.grounding
    if grounding is not None and grounding.error:
        yield HtmlBlock(text=f"Grounding failed: {grounding.error}", style="bad")
    if grounding is not None and grounding.report:
        yield HtmlBlock(prose=grounding.report)
    if grounding is not None and grounding.sources:
        yield HtmlBlock(text="Sources", style="quiet")
        yield HtmlBlock(links=[source_link(source) for source in grounding.sources])
    if node.failed:
        yield HtmlBlock(text=f"The synthesis failed: {node.failed}", style="bad")
    if node.stale:
        yield HtmlBlock(text=f"Stale: {node.stale}", style="bad")
    for note in node.notes:
        yield HtmlBlock(text=f"Note: {note}", style="quiet")


def _link_facts(tree: Tree, node: Proposition) -> Iterator[tuple[str, str]]:
    """Yield how a claim follows from its children, in words and in numbers."""
    heading = node.link.heading if node.link is not None else ""
    if heading:
        yield "kind", heading
    yield "how", link_in_words(node)
    parts = claim_parts(tree, node.id) if heading and node.pinned is None else None
    ends = [
        f"{child.id} certain: {brief_percent(child.if_true)}, {child.id} fails: {brief_percent(child.if_false)}"
        for child in (parts.children if parts is not None else ())
        if child.if_true is not None and child.if_false is not None
    ]
    if ends:
        yield "what it turns on", "; ".join(ends)
    if numbers := link_in_numbers(tree, node):
        yield "in numbers", numbers


def _facts(tree: Tree, node: Proposition) -> Iterator[tuple[str, str]]:
    if node.children:
        yield from _link_facts(tree, node)
    if node.causality:
        yield "why", node.causality
    grounding = node.grounding
    key_factor = node.key_factor or (grounding.key_factor if grounding is not None else "")
    if key_factor:
        yield "key factor", key_factor
    if grounding is None:
        return
    if grounding.grounder:
        yield "grounded by", grounding.grounder
    if grounding.route:
        yield "how it was examined", "; ".join(grounding.route)
    if len(grounding.trials) > 1:
        yield "trials", ", ".join(percent(p, 1) for p in grounding.trials)
    if grounding.notebook:
        yield "notebook", grounding.notebook


def source_link(source: str) -> LinkItem:
    """Parse a source in a tree into a link, with its address and its date separate.

    >>> source_link("[s1] Minutes (2026-05-01) https://bank.example/minutes")
    LinkItem(text='[s1] Minutes', address='https://bank.example/minutes', detail='2026-05-01')
    """
    line = clean(source)
    title, _, last = line.rpartition(" ")
    address = web_address(last)
    title = title if address else line
    published = _PUBLISHED.search(title)
    if published is not None:
        title = f"{title[: published.start()].rstrip()} {title[published.end() :].lstrip()}".strip()
    detail = published[1] if published is not None else "no date" if address else ""
    return LinkItem(text=title or address, address=address, detail=detail)


def _making(tree: Tree, facts: ReportFacts) -> Iterator[HtmlBlock]:
    origin = tree.origin or TreeOrigin()
    later = [version for version in facts.versions if version.models]
    models = sorted({*origin.models, *(name for version in later for name in version.models)})
    cost = sum((version.cost for version in later), origin.cost)
    below = [tree.nodes[id] for id in leaves(tree)]
    grounders = sorted({node.grounding.grounder for node in below if node.grounding is not None} - {""})
    pairs = [
        ("as of", str(tree.as_of) if tree.as_of is not None else ""),
        ("models", ", ".join(models) or "not recorded"),
        ("cost", str(cost) if cost.calls else "not recorded"),
        ("claims", f"{len(tree.nodes)}, of which {len(below)} are leaves"),
        ("leaves examined by", enumeration(grounders)),
        ("joined by", origin.rule),
        ("run", origin.run),
        ("fingerprint of the tree", tree_digest(tree)),
    ]
    yield HtmlBlock(definitions=[pair for pair in pairs if pair[1]])
    if facts.versions:
        rows = [
            (
                str(version.version),
                (
                    version.at.strftime("%Y-%m-%d %H:%M"),
                    version.author or "–",
                    percent(version.p, 1),
                    ", ".join(version.changed[:8]) + ("…" if len(version.changed) > 8 else ""),
                    str(version.cost) if version.cost.calls else "",
                    version.message,
                ),
            )
            for version in facts.versions
        ]
        columns = (*map(column, ("when", "author", "answer", "changed", "cost")), words("message"))
        yield HtmlBlock(table=table("Versions", "version", columns, rows))


def _reproducing(tree: Tree, facts: ReportFacts) -> list[str]:
    origin, file = tree.origin or TreeOrigin(), facts.file
    notebooks = [node.id for node in tree.nodes.values() if node.grounding is not None and node.grounding.notebook]
    reproducing = [
        f"foretell tree show {file} --inputs: every number above a leaf is computed "
        "again from the file alone, without a model, a key or a network.",
        f"foretell tree whatif {file} --set ID=P: the answer with another number at a claim.",
    ]
    if notebooks:
        named = ", ".join(notebooks[:10]) + ("…" if len(notebooks) > 10 else "")
        reproducing.append(
            f"foretell replay {file}: the notebooks behind {named} run again on the data that they "
            "read, without a key or a network."
        )
    if origin.run:
        reproducing.append(
            f"foretell replay {origin.run}: the stored replies of the models, on the machine that grew it, "
            "without paying again."
        )
    if facts.versions:
        reproducing.append(f"foretell tree log {file} --diff 1..: the changes since the first version, claim by claim.")
    return reproducing
