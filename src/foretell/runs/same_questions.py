"""Whether a stored run asked these questions: which run a spec goes on with, adds to, or leaves alone.

A run is a spec over certain questions. Its id is a hash of both, as they were when it began; what it has asked since is
in the store. So a run is found by comparing questions, and a spec in another folder, over another file of the same
name, is another run.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from foretell.data.datasets.question_set import wording
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs.runner import PreparedRun
from foretell.runs.spec import RunSpec, spec_from_json
from foretell.runs.store import RunStore

NAMED = 3
"""Questions that a message names."""


@dataclass(frozen=True, kw_only=True)
class QuestionMatch:
    """Questions as they are now beside those that a run asked."""

    run: str
    spec: RunSpec
    questions: tuple[Question, ...]
    """Those of now; one that is asked "now" and was asked before keeps the moment it was asked at."""
    edited: tuple[str, ...] = ()
    """Ids of questions that the run asked in other words."""
    added: tuple[str, ...] = ()
    """Ids of questions that it did not ask."""
    missing: tuple[str, ...] = ()
    """Ids of questions that only it asked."""

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not (self.edited or self.added or self.missing)

    @property
    def shared(self) -> int:
        """How many questions both know."""
        return len(self.questions) - len(self.added)


def match_questions(stored: Sequence[Question], prepared: PreparedRun, run: str, spec: RunSpec) -> QuestionMatch:
    """Compare what a run asked with what is asked now."""
    known: dict[str, dict[datetime, Question]] = {}
    for question in stored:
        known.setdefault(question.id, {})[question.due] = question
    again = prepared.spec.questions.again
    chosen: list[Question] = []
    edited: list[str] = []
    added: list[str] = []
    for question in prepared.questions:
        versions = known.get(question.id, {})
        undated = question.due == prepared.now
        before = versions.get(max(versions)) if undated and versions else versions.get(question.due)
        taken = before
        if before is None:
            added.append(question.id)
        elif wording(before, before.due if undated else None) != wording(
            _known_as(question, before), prepared.now if undated else None
        ):
            edited.append(question.id)
        elif undated and again is not None and question.due - before.due >= timedelta(days=again):
            taken = question
        chosen.append(taken or question)
        for due in list(versions) if undated else [question.due]:
            versions.pop(due, None)
    return QuestionMatch(
        run=run,
        spec=spec,
        questions=tuple(chosen),
        edited=tuple(edited),
        added=tuple(added),
        missing=tuple(id for id, versions in known.items() if versions),
    )


def _known_as(question: Question, before: Question) -> Question:
    """The question as a run may have stored it that did not know yet which series decides it."""
    return replace(question, series=None) if before.series is None else question


def runs_like(store: RunStore, prepared: PreparedRun) -> Iterator[QuestionMatch]:
    """Stored runs of the same spec, the newest first, each beside the questions of now."""
    # What was chosen for its models when a run was made is no part of what it is.
    wanted = json.loads(prepared.spec.with_digest("").bare().to_json())
    for run, written in store.specs():
        asked = written.get("questions", {})
        questions = {name: value for name, value in asked.items() if name not in ("digest", "quarantined")}
        rest = {name: value for name, value in written.items() if name not in ("questions", "efforts", "marked")}
        if {**rest, "questions": questions} != wanted:
            continue
        stored = store.questions(run)
        if not stored:
            # Runs of the first version kept ids only: what they asked is taken to be what is asked now.
            ids = {(id, due) for id, due, _ in store.ended(run)}
            stored = [one for one in prepared.questions if (one.id, one.due.isoformat()) in ids]
            stored = list(prepared.questions) if len(stored) == len(ids) else stored
        yield match_questions(stored, prepared, run, spec_from_json(written))


def find_run_of(store: RunStore, prepared: PreparedRun, *, extend: bool = False) -> PreparedRun:
    """The run that a spec goes on with: one that asked these very questions, else a new one, or an extended one."""
    if not prepared.spec.questions.digest:
        return prepared  # What grows by itself, and what was typed, is known by its name.
    matches = list(runs_like(store, prepared))
    # A run that was extended since it began with these questions is still theirs.
    began = [one for one in matches if one.run == prepared.spec.id and not one.edited and not one.added]
    own = next(iter([one for one in matches if one.same] or began), None)
    if own is not None:
        return _going_on(prepared, own)
    nearest = max(matches, key=lambda one: (one.shared, -len(one.edited)), default=None)
    if extend:
        return _extended(prepared, matches, nearest)
    if nearest is None or not nearest.shared:
        return prepared
    return replace(prepared, notes=(*prepared.notes, _differs(nearest, len(prepared.questions))))


def _going_on(prepared: PreparedRun, own: QuestionMatch) -> PreparedRun:
    return replace(prepared, spec=own.spec, questions=own.questions)


def _extended(prepared: PreparedRun, matches: Sequence[QuestionMatch], nearest: QuestionMatch | None) -> PreparedRun:
    fitting = [one for one in matches if one.shared and not one.edited and not one.missing]
    if fitting:
        largest = max(fitting, key=lambda one: one.shared)
        note = f"{len(largest.added)} questions are added to run {largest.run}"
        return replace(_going_on(prepared, largest), notes=(*prepared.notes, note))
    if nearest is None or not nearest.shared:
        raise InputError(
            "no run of this spec asks any of these questions", column="--extend", hint="leave it out to start one"
        )
    if nearest.edited:
        problem = f"run {nearest.run} asks {_named(nearest.edited)} in other words"
        hint = "a run asks a question in one wording: restore it, give the new one its own id, or leave out --extend"
        raise InputError(problem, column="--extend", hint=hint)
    problem = f"run {nearest.run} also asks {_named(nearest.missing)}"
    raise InputError(problem, column="--extend", hint="an extension only adds: put back what was taken out")


def _differs(nearest: QuestionMatch, total: int) -> str:
    """Why this is not the run that comes nearest."""
    if nearest.edited:
        return f"{_named(nearest.edited)} is worded otherwise than in run {nearest.run}, so this is another run"
    if nearest.missing:
        return f"run {nearest.run} also asks {_named(nearest.missing)}, so this is another run"
    asked = f"run {nearest.run} asks {nearest.shared} of these {total} questions"
    return f"{asked}, and this is another run; --extend adds the others to that one"


def _named(ids: Sequence[str]) -> str:
    named = ", ".join(repr(id) for id in ids[:NAMED])
    return f"{named} and {len(ids) - NAMED} more" if len(ids) > NAMED else named
