"""What failed in a run or an answer, what stood in for it, and what that means for the number.

Terminal, pages, reports and JSON take their sentences from here. Those on a tree are in `forecasters.tree.exports`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from foretell.data.datasets.question_set import excluded_note
from foretell.forecasters.combine.aggregate import PANEL
from foretell.number_text import plural
from foretell.questions.forecast import Failure, Forecast

Answer = Forecast | Failure


def answer_caveats(
    answers: Sequence[Answer], final: Forecast | None, of_trees: Iterable[str] = (), *, unended: int = 0
) -> tuple[str, ...]:
    """Return a sentence on each failure that the answer to a question rests on, and on what stood in for it.

    `of_trees` are the failures and caveats of the trees behind it, `unended` counts trials stopped before an answer.
    """
    trials, panel = _split(answers)
    failed, fallback, early = _failed(trials), _fallback(trials), sum(map(_stopped, trials))
    caveats: list[str] = []
    if failed and final is None:
        every = "the trial" if len(trials) == 1 else f"all {len(trials)} trials"
        caveats.append(f"{every} failed, so there is no answer: {_reasons(failed)}")
    elif failed:
        rest = "it stands on a fallback forecast" if final and final.fallback else _others(trials)
        caveats.append(f"{len(failed)} of {plural(len(trials), 'trial')} failed, so {rest}: {_reasons(failed)}")
    if final is not None and final.fallback:
        stands_in = "the last estimate before the failure stands in for a researched one"
        caveats.append(f"this is a fallback forecast: {_reasons([final.problem])}; {stands_in}")
    elif fallback:
        left_out = f"gave only a fallback forecast because something failed, and {_were(fallback)} left out"
        caveats.append(f"{len(fallback)} of {plural(len(trials), 'trial')} {left_out}: {_reasons(fallback)}")
    if early or unended:
        of = plural(len(trials) + unended, "trial")
        answered = f"{early} of {of} answered with the estimate {'it' if early == 1 else 'they'} had"
        parts = [answered] if early else []
        parts += [f"{unended} {'' if early else f'of {of} '}gave no answer"] if unended else []
        caveats.append(f"stopped early: {' and '.join(parts)}")
    if failed_panel := _failed(panel):
        caveats.append(f"the panel failed, so the answer is combined without it: {_reasons(failed_panel)}")
    return (*caveats, *(of_trees if final is not None and not final.fallback else ()))


def run_caveats(answers: Sequence[Answer], *, unanswered: int, questions: int, excluded: int) -> tuple[str, ...]:
    """Return a sentence on each kind of failure that the scores of a run rest on, and on what was left out.

    `unanswered` counts questions without an answer that counts, `excluded` those not asked because their own text was
    written later.
    """
    trials, panel = _split(answers)
    failed, fallback, early = _failed(trials), _fallback(trials), sum(map(_stopped, trials))
    of = f"of {plural(len(trials), 'trial')}"
    caveats: list[str] = []
    if failed:
        them = "it" if len(failed) == 1 else "them"
        caveats.append(f"{len(failed)} {of} failed, and nothing stands in for {them}: {_reasons(failed)}")
    if fallback:
        left_out = (
            f"gave only a fallback forecast because something failed, and {'is' if len(fallback) == 1 else 'are'} "
        )
        left_out += "left out of answers and scores"
        caveats.append(f"{len(fallback)} {of} {left_out}: {_reasons(fallback)}")
    if unanswered:
        without = f"{unanswered} of {plural(questions, 'question')} {'has' if unanswered == 1 else 'have'} no answer"
        caveats.append(f"{without}, so the scores are about the others")
    if early:
        one = early == 1
        stopped = f"{'was' if one else 'were'} stopped early and {'answers' if one else 'answer'} with the estimate"
        caveats.append(f"{early} {of} {stopped} {'it' if one else 'they'} had")
    if failed_panel := _failed(panel):
        caveats.append(f"{plural(len(failed_panel), 'panel')} failed, so the rule combines those trials: "
                       f"{_reasons(failed_panel)}")  # fmt: skip
    if excluded:
        caveats.append(f"{excluded_note(excluded)}, so no model was asked and no score counts them")
    return tuple(caveats)


def _split(answers: Sequence[Answer]) -> tuple[list[Answer], list[Answer]]:
    """Return the trials, and the answers of the panels that read them."""
    panel = [answer for answer in answers if answer.forecaster == PANEL]
    return [answer for answer in answers if answer.forecaster != PANEL], panel


def _failed(answers: Iterable[Answer]) -> list[str]:
    return [answer.error for answer in answers if isinstance(answer, Failure)]


def _fallback(answers: Iterable[Answer]) -> list[str]:
    return [answer.problem for answer in answers if isinstance(answer, Forecast) and answer.fallback]


def _stopped(answer: Answer) -> bool:
    return isinstance(answer, Forecast) and answer.ending == "stopped"


def _were(items: Sequence[str]) -> str:
    return "was" if len(items) == 1 else "were"


def _others(trials: Sequence[Answer]) -> str:
    used = sum(isinstance(answer, Forecast) and not answer.fallback for answer in trials)
    return f"the answer rests on {'one' if used == 1 else used}"


def _reasons(problems: Sequence[str]) -> str:
    """Return the commonest reason, and how many others there are."""
    (first, count), *others = Counter(" ".join(problem.split()) for problem in problems).most_common()
    first = first.rstrip(".") or "no reason was given"
    if not others:
        return first
    return f"{first} ({count}), and {plural(len(others), 'other reason')} ({len(problems) - count})"
