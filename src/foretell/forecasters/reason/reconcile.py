"""Reconcile the tree with the direct estimate: mend what is wrong, and combine the two."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.forecaster import Context, prompt_template
from foretell.forecasters.reason.evidence import BlindEstimate, EvidenceItem, evidence_list
from foretell.forecasters.reason.settings import ReasonSettings
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.case_checks import MISFIT, MOST_SENT, judge_cases
from foretell.forecasters.tree.case_links import ALL, CASES, NONE, CasesLink, SplitLink, number_in_words
from foretell.forecasters.tree.cases import (
    HELPS,
    HINDERS,
    CaseWords,
    StatedCases,
    cases_in_words,
    kind_in_words,
    stated_situations,
)
from foretell.forecasters.tree.closing import CHILD, LEAF, closing_values, root_children, root_value
from foretell.forecasters.tree.edits import SetP
from foretell.forecasters.tree.grow.analyze import child_id
from foretell.forecasters.tree.grow.prompting import (
    CHANCE,
    TEXT,
    StructuredRequest,
    TreeQuestion,
    fill_prompts,
    sections,
)
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.forecasters.tree.text import InvalidTree
from foretell.forecasters.tree.what_if import resynthesize
from foretell.forecasters.tree.wording import claim_faults, tidy
from foretell.frozen import frozen
from foretell.models.model import BudgetExceeded, ModelError
from foretell.models.structured_output import UnusableReply, closed_object
from foretell.number_text import brief_percent
from foretell.questions.forecast import Numeric

RECONCILED = "reconciliation"
"""Name of the grounder of a child that was added."""
LONGEST_REPORTS = 12_000
_CHANGE = closed_object(
    {
        "what": {"type": "string", "enum": [LEAF, *CASES]},
        "child": TEXT,
        "value": CHANCE,
        "reason": TEXT,
        "evidence": {"type": "array", "items": TEXT},
    }
)
_ADDED = closed_object(
    {
        "claim": TEXT,
        "p": CHANCE,
        "direction": {"type": "string", "enum": [HELPS, HINDERS]},
        "only": CHANCE,
        "but": CHANCE,
        "reason": TEXT,
    }
)


def must_reconcile(tree: Tree) -> bool:
    """Whether the kind of a claim did not fit its cases, so that the tree is looked into whatever the gap."""
    return any(MISFIT in note for node in tree.nodes.values() for note in node.notes)


# Asking.


@frozen
class ReconciledTree:
    """A tree after reconciliation, the direct estimate, and what was changed."""

    tree: Tree
    direct: Mapping[str, float]
    distribution: Numeric | None = None
    """The direct estimate of a number or a date."""
    changes: tuple[str, ...] = field(default=())
    report: str = ""
    """What the model wrote about the difference."""


@frozen
class Reconciler:
    """Asks once why tree and direct estimate differ, and applies the changes that pass the checks."""

    about: TreeQuestion
    context: Context
    settings: ReasonSettings
    evidence: Sequence[EvidenceItem]
    number: AnswerFormat | None = None
    """Form of the answer, if the question is about a number or a date."""

    async def reconcile(self, tree: Tree, estimate: BlindEstimate, target: str) -> ReconciledTree:
        """Ask, and return the changed tree. Without a usable answer nothing is changed."""
        root = tree.nodes[tree.root]
        direct, known = estimate.p[target], frozenset(item.id for item in self.evidence)
        length = LONGEST_REPORTS // max(len(root.children), 1)
        request = StructuredRequest(
            role="synthesizer",
            slot=f"{self.about.slot}/{root.id}/reconciliation",
            system=fill_prompts(prompt_template("reason/prompts", "reconcile"), "rules", **self.about.rule_values),
            user=sections(
                *self.about.sections(),
                (f"The claim, {root.id}", root.claim),
                ("The two values", self._values(tree, estimate, target)),
                ("Reasons of the direct estimate", estimate.reason),
                ("Evidence", evidence_list(self.evidence, self.settings.evidence_tokens)),
                ("Cases", _cases_text(root)),
                *((f"Child {id}", _child_text(tree.nodes[id], length)) for id in root.children),
                (
                    f"What alone would make the tree give {direct:.3f}",
                    "\n".join(str(value) for value in closing_values(tree, direct, target) if value.what != CHILD),
                ),
            ),
            schema=closed_object(
                {
                    "report": TEXT,
                    "changes": {"type": "array", "items": _CHANGE},
                    "add": {"anyOf": [_ADDED, {"type": "null"}]},
                    "direct": {"anyOf": [CHANCE if self.number is None else self.number.schema(), {"type": "null"}]},
                    "direct_reason": TEXT,
                }
            ),
        )
        unchanged = ReconciledTree(tree=tree, direct=estimate.p, distribution=estimate.distribution)
        try:
            return await request.ask(self.context, lambda answer: self._apply(tree, estimate, target, answer, known))
        except BudgetExceeded:
            raise
        except ModelError as error:
            return replace(unchanged, changes=(f"nothing was changed: {error}",))

    def _values(self, tree: Tree, estimate: BlindEstimate, target: str) -> str:
        """Return the direct estimate and the tree's value in words."""
        name = "" if len(estimate.p) == 1 else f" of {target}"
        direct, computed = f"{estimate.p[target]:.3f}", f"{root_value(tree, target):.3f}"
        link = tree.nodes[tree.root].link
        mixture = link.mixture(root_children(tree)) if isinstance(link, SplitLink) else None
        if self.number is not None and mixture is not None and estimate.distribution is not None:
            dates = self.number.dates
            direct = f"{number_in_words(estimate.distribution, dates=dates)}, chance{name} {direct}"
            computed = f"{number_in_words(mixture, dates=dates)}, chance{name} {computed}"
            name = ""
        return f"Direct estimate{name}: {direct}.\nComputed from the tree: {computed}."

    def _apply(
        self,
        tree: Tree,
        estimate: BlindEstimate,
        target: str,
        answer: Mapping[str, Any],
        known: frozenset[str],
    ) -> ReconciledTree:
        changes: list[str] = []
        for change in answer["changes"]:
            cited = [id for id in map(str, change["evidence"]) if id in known]
            reason = str(change["reason"]).strip()
            if not cited and not reason:
                raise UnusableReply("a change needs a reason or the id of evidence")
            what = str(change["what"])
            child = "" if what in (NONE, ALL) else str(change["child"])
            tree, text = _changed(tree, what, child, float(change["value"]), target)
            changes.append(f"{text} ({', '.join(filter(None, [reason, *cited]))})")
            tree = _noted(tree, child if what == LEAF else tree.root, changes[-1])
        if answer["add"] is not None:
            tree, text = _with_added(tree, answer["add"], self.settings.children)
            changes.append(text)
            tree = _noted(tree, tree.root, text)
        restated, text = self._restated(answer["direct"], estimate, target)
        if text:
            reason = str(answer["direct_reason"]).strip()
            if not reason:
                raise UnusableReply("say in direct_reason why the direct estimate is restated")
            changes.append(f"direct estimate {text} ({reason})")
        return ReconciledTree(
            tree=tree,
            direct=restated.p,
            distribution=restated.distribution,
            changes=tuple(changes),
            report=str(answer["report"]).strip(),
        )

    def _restated(self, stated: Any, estimate: BlindEstimate, target: str) -> tuple[BlindEstimate, str]:
        """Return the direct estimate after the reply, and the change in words; empty if it was not restated."""
        if stated is None:
            return estimate, ""
        if self.number is None:
            before, after = estimate.p[target], float(stated)
            if abs(after - before) <= 1e-9:
                return estimate, ""
            p = _with_target(estimate.p, target, after, shared=self.about.question.exclusivity != "independent")
            return replace(estimate, p=p), f"{brief_percent(before)} → {brief_percent(after)}"
        numbers = self.number.read({"quantiles": stated})
        if numbers.distribution is None:
            raise UnusableReply(f"direct: {'; '.join(numbers.problems)}")
        before, after = (
            "–" if each is None else number_in_words(each, dates=self.number.dates)
            for each in (estimate.distribution, numbers.distribution)
        )
        new = replace(estimate, p=numbers.p, distribution=numbers.distribution)
        return new, "" if before == after else f"{before} → {after}"


def _noted(tree: Tree, id: str, change: str) -> Tree:
    """Return the tree with a note at the claim that reconciliation changed."""
    node = tree.nodes[id]
    note = f"changed when the tree was reconciled with the direct estimate: {change}"
    return evaluated(replace(tree, nodes={**tree.nodes, id: replace(node, notes=(*node.notes, note))}))


def _with_target(direct: Mapping[str, float], target: str, p: float, *, shared: bool) -> dict[str, float]:
    """Return the direct estimate with another value of one target; if they share the whole, the others do as before."""
    rest = sum(value for id, value in direct.items() if id != target)
    share = (1 - p) / rest if shared and rest else 1.0
    return {id: p if id == target else value * share for id, value in direct.items()}


def _changed(tree: Tree, what: str, child: str, value: float, target: str) -> tuple[Tree, str]:
    """Return the tree with one change, checked again, and the change in words."""
    root = tree.nodes[tree.root]
    if what == LEAF:
        node = tree.nodes.get(child)
        if node is None or node.children:
            raise UnusableReply(f"{child[:40]!r} is not a leaf")
        before = "–" if node.p is None else brief_percent(node.p)
        return _edited(tree, child, value), f"{child} {before} → {brief_percent(value)}"
    link = root.link
    if isinstance(link, SplitLink) and (what, child) in link.stated_chances():
        before = link.stated_chances(target)[what, child]
        scenario = "if none of the scenarios happens" if what == NONE else f"if {child} happens"
        name = f" of {target}" if link.options else ""
        new = _edited(tree, f"{root.id}:{what}:{child}:{target}", value)
        return new, f"{scenario}, chance{name} {brief_percent(before)} → {brief_percent(value)}"
    if not isinstance(link, CasesLink):
        raise UnusableReply(f"{root.id} is not combined by cases, so {what} cannot be changed")
    if what in ("only", "but") and child not in link.direction:
        raise UnusableReply(f"{child[:40]!r} is not a child of {root.id}")
    whole = frozenset(link.stated.children)
    situation = {"none": frozenset[str](), "all": whole, "only": frozenset({child}), "but": whole - {child}}[what]
    before = stated_situations(link.stated).get(situation)
    was = "–" if before is None else brief_percent(before)
    text = f"{CaseWords(link.stated).situation(situation)}, {was} → {brief_percent(value)}"
    return _checked(tree, link.stated.with_case(what, child, value)), text


def _edited(tree: Tree, id: str, value: float) -> Tree:
    """Return the tree with another probability, or another chance in a scenario."""
    try:
        return resynthesize(tree, [SetP(id=id, p=value)])
    except InvalidTree as error:
        raise UnusableReply(error.reasons) from None


def _checked(tree: Tree, cases: StatedCases) -> Tree:
    """Return the tree with other cases at the root. Raises `UnusableReply` if they fail a check."""
    p = root_children(tree) | {child: p for child in cases.children if (p := tree.nodes[child].p) is not None}
    verdict = judge_cases(cases, p, sent={**MOST_SENT})
    if verdict.link is None:
        raise UnusableReply(verdict.text.rstrip("."))
    root = replace(tree.nodes[tree.root], link=verdict.link, children=cases.children)
    root = replace(root, notes=tuple(dict.fromkeys((*root.notes, *verdict.notes))))
    return evaluated(replace(tree, nodes={**tree.nodes, tree.root: root}))


def _with_added(tree: Tree, added: Mapping[str, Any], most: int) -> tuple[Tree, str]:
    """Return the tree with one more child of the root, and the change in words."""
    root, claim = tree.nodes[tree.root], tidy(str(added["claim"]))
    link = root.link
    if not isinstance(link, CasesLink) or len(root.children) >= most:
        raise UnusableReply(f"no child can be added to {root.id}")
    if faults := claim_faults(claim):
        raise UnusableReply(f"“{claim[:80]}”: {'; '.join(faults)}")
    id = child_id(root.id, len(root.children) + 1)
    grounding = Grounding(grounder=RECONCILED, report=str(added["reason"]).strip())
    nodes = {**tree.nodes, id: Proposition(id=id, claim=claim, p=float(added["p"]), grounding=grounding)}
    cases = link.stated
    cases = replace(
        cases,
        direction={**cases.direction, id: str(added["direction"])},
        only={**cases.only, id: float(added["only"])},
        # With two children no `but` was stated; null leaves these situations to the kind.
        but={**{child: cases.but.get(child) for child in cases.children}, id: float(added["but"])},
        order=(*cases.order, id) if cases.order else (),
    )
    return _checked(replace(tree, nodes=nodes), cases), f"added {id} {brief_percent(added['p'])}: {claim}"


def _cases_text(root: Proposition) -> str:
    link = root.link
    if isinstance(link, CasesLink):
        return f"Of the children, {kind_in_words(link.kind, link.stated.k)}. {cases_in_words(link.stated)}"
    return "" if link is None else link.describe(root.children)


def _child_text(node: Proposition, length: int) -> str:
    report = node.grounding.report if node.grounding else node.report
    known = "no probability" if node.p is None else f"Probability: {node.p:.3f}."
    return "\n\n".join(filter(None, [node.claim, known, report[:length]]))
