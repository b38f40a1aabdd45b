"""The rules `cases` and `split`: a model states the chance of the claim in imagined situations, or in scenarios."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from foretell.forecasters.agent.answer_format import AnswerFormat, StatedProbabilities, safe_keys
from foretell.forecasters.tree.case_checks import MOST_SENT, judge_cases
from foretell.forecasters.tree.case_links import CasesLink, SplitLink, WeighLink, cases_link, spread_of
from foretell.forecasters.tree.cases import HELPS, HINDERS, KINDS, StatedCases
from foretell.forecasters.tree.grow.prompting import CHANCE, TEXT
from foretell.forecasters.tree.grow.synthesize import Answer, CheckedLink, Children, ReplyChecks, SynthesisRule
from foretell.models.structured_output import UnusableReply, closed_object

POSSIBLE_CHANCE: Mapping[str, Any] = {"anyOf": [CHANCE, {"type": "null"}]}
"""Schema of a chance, or null for a case that cannot happen."""


def case_fields(children: Children) -> dict[str, Any]:
    """Return the schemas of stated cases. Two children have no `but`, because only one is all but the other."""
    by_child = closed_object({child: POSSIBLE_CHANCE for child in children})
    direction = closed_object({child: {"type": "string", "enum": [HELPS, HINDERS]} for child in children})
    fields: dict[str, Any] = {
        "kind": {"type": "string", "enum": list(KINDS)},
        "k": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "direction": direction,
        "none": CHANCE,
        "all": CHANCE,
        "only": by_child,
    }
    if len(children) > 2:
        fields["but"] = by_child
    order = {"type": "array", "items": {"type": "string", "enum": list(children)}}
    given = {"anyOf": [closed_object({child: CHANCE for child in children}, optional=children), {"type": "null"}]}
    return {**fields, "order": order, "given": given, "outside": TEXT}


def read_cases(answer: Answer) -> StatedCases:
    """Read stated cases from an answer that matches the schema."""

    def by_child(name: str) -> dict[str, float | None]:
        stated = cast("Mapping[str, float | None]", answer.get(name) or {})
        return {child: None if p is None else float(p) for child, p in stated.items()}

    chained = answer["kind"] in ("all", "any")
    k = answer.get("k")
    return StatedCases(
        kind=str(answer["kind"]),
        direction=dict(cast("Mapping[str, str]", answer["direction"])),
        none=float(answer["none"]),
        all=float(answer["all"]),
        only=by_child("only"),
        but=by_child("but"),
        k=int(k) if k is not None and answer["kind"] == "at_least" else None,
        order=tuple(map(str, answer.get("order") or ())) if chained else (),
        given={child: p for child, p in by_child("given").items() if p is not None} if chained else {},
        outside=str(answer.get("outside") or "").strip(),
    )


def checked_cases(answer: Answer, checks: ReplyChecks) -> CheckedLink:
    """Return the link of stated cases. Raises `UnusableReply` with the cases in words if a check sends them back."""
    sent: Mapping[str, int] = {**MOST_SENT} if checks.last else checks.sent
    verdict = judge_cases(read_cases(answer), checks.p, evidence=checks.evidence, sent=sent)
    if verdict.link is not None:
        return verdict.link, verdict.notes
    for check in {problem.check for problem in verdict.problems}:
        checks.sent[check] = checks.sent.get(check, 0) + 1
    raise UnusableReply(verdict.text.rstrip("."))


def _independent(answer: Answer) -> CasesLink:
    """Return the link for children that are even, for callers that check nothing."""
    cases = read_cases(answer)
    return cases_link(cases, dict.fromkeys(cases.children, 0.5))


CASES = SynthesisRule(
    name="cases",
    link=WeighLink,
    prompts=("synthesize_cases",),
    hint="hint_linear",
    fields=case_fields,
    read=_independent,
    judge=checked_cases,
)


def _by_scenario(row: dict[str, Any], last: dict[str, Any] | None = None) -> Callable[[Children], dict[str, Any]]:
    """Return the schemas of what follows from each scenario, and if none happens; the last one may explain the keys."""
    return lambda children: {"then": closed_object({child: row for child in children}), "otherwise": last or row}


def split_rule(options: Sequence[str] = ()) -> SynthesisRule:
    """Return the rule of exclusive scenarios for a claim, or for a question with these options."""
    keys = safe_keys(options)
    row = closed_object({key: CHANCE for key in keys}) if options else {**CHANCE}
    # Keys that are not the options themselves are explained once, because the row is repeated for every scenario.
    explained = {key: {**CHANCE, "description": option[:80]} for key, option in keys.items() if key != option}

    def chances(stated: Any) -> tuple[float, ...]:
        return tuple(float(stated[key]) for key in keys) if options else (float(stated),)

    def read(answer: Answer) -> SplitLink:
        then = cast("Mapping[str, Any]", answer["then"])
        return SplitLink(
            options=tuple(options),
            then={child: chances(stated) for child, stated in then.items()},
            otherwise=chances(answer["otherwise"]),
        )

    return SynthesisRule(
        name="split",
        link=SplitLink,
        prompts=("synthesize_split",),
        hint="hint_linear",
        fields=_by_scenario(row, closed_object(explained) if explained else None),
        read=read,
        for_options=split_rule,
    )


def number_rule(form: AnswerFormat) -> SynthesisRule:
    """Return the rule of exclusive scenarios for a number or a date, each with a distribution of its own."""
    options = tuple(form.targets.values())

    def stated(quantiles: Any, where: str) -> StatedProbabilities:
        numbers = form.read({"quantiles": quantiles})
        if numbers.problems:
            raise UnusableReply(f"{where}: {'; '.join(numbers.problems)}")
        return numbers

    def read(answer: Answer) -> SplitLink:
        then = cast("Mapping[str, Any]", answer["then"])
        scenarios = {child: stated(quantiles, f"then of {child}") for child, quantiles in then.items()}
        rest = stated(answer["otherwise"], "otherwise")
        rows = {child: tuple(numbers.p[id] for id in options) for child, numbers in scenarios.items()}
        return SplitLink(
            options=options,
            then=rows,
            otherwise=tuple(rest.p[id] for id in options),
            spreads={child: _spread(numbers) for child, numbers in scenarios.items()},
            spread_otherwise=_spread(rest),
            dates=form.dates,
        )

    return replace(
        SPLIT,
        prompts=("synthesize_split_number",),
        rules="rules_number",
        fields=_by_scenario(form.schema()),
        read=read,
    )


def _spread(stated: StatedProbabilities) -> tuple[float, ...]:
    assert stated.distribution is not None
    return spread_of(stated.distribution)


SPLIT = replace(split_rule(), for_number=number_rule)
