"""Stored runs: continue one, retry what failed, change it, repeat it, or recompute it from the journal."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from foretell.data.corpus import Corpus
from foretell.data.datasets.question_set import asked_key
from foretell.models.journal import Journal
from foretell.patterns import pattern
from foretell.questions.errors import InputError
from foretell.runs import event_loop
from foretell.runs.contexts import stored_contexts
from foretell.runs.event_loop import run_sync
from foretell.runs.executor import failure_kind
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.past import stored_past
from foretell.runs.question_sets import stored_questions
from foretell.runs.runner import PreparedRun, asks_models, begin_run, check_options, check_run, execute_run, prepare_run
from foretell.runs.set_names import folders_of
from foretell.runs.settings import KEYS, Settings
from foretell.runs.spec import (
    DERIVED_SETTINGS,
    RunSpec,
    current_names,
    spec_from_json,
    spec_from_mapping,
    with_settings,
)
from foretell.runs.store import RunRow, RunStore, TrialKey

EVERY_REASON = "any"
"""Retry all that failed, for whatever reason."""
MAX_NAME = 70
"""Maximum length of a run's name in the name of its repetition."""
NUMBER = pattern(r" \(\d+\)$")
"""The number at the end of a repeated run's name."""


def check_start(spec: RunSpec, settings: Settings, *, plan: bool) -> None:
    """Raise errors before anything is stored. A plan checks no keys, so that its cost can be seen without any."""
    if not plan:
        check_run(spec, settings)
    elif asks_models(spec):
        check_options(spec)


def begin_stored(store: RunStore, old: str, prepared: PreparedRun, settings: Settings, *, again: bool = False) -> None:
    """Record that a stored run is continued with other settings, or repeated as a new one."""
    if again:
        begin_run(store, prepared.spec, datetime.now(UTC), settings.services, questions=prepared.questions)
        carry_over(store, old, prepared)
    else:
        replace_run(store, old, prepared, settings)


def stored_run(store: RunStore, run: str, dataset: str | None = None, *, from_store: bool = True) -> PreparedRun:
    """Return a stored run with the questions it asked, even if their file has changed since.

    `dataset` is the file of questions, if it has moved. Without `from_store`, the questions are those in their file.
    """
    row = store.run(run)
    assert row is not None
    spec = spec_from_json(row.spec)
    # Older runs asked these questions before post-cutoff text was checked.
    leaky_questions = "redact" if spec.questions.leaky_questions == "redact" else "keep"
    questions_spec = replace(
        spec.questions, digest="", dataset=dataset or spec.questions.dataset, leaky_questions=leaky_questions
    )
    typed = stored_questions(store, spec)
    prepared = prepare_run(replace(spec, questions=questions_spec), typed, folders=folders_of(row.folder))
    if not from_store:
        return prepared
    stored = store.questions(run) if prepared.spec.questions.digest else []
    contexts = {asked_key(context.question): context for context in stored_contexts(store, run)}
    return replace(
        prepared,
        spec=spec,
        questions=tuple(stored) or prepared.questions,
        contexts=contexts,
        stored_past=stored_past(store, run),
    )


def resume(
    store: RunStore,
    run: str,
    settings: Settings,
    changes: Mapping[str, Any] | None = None,
    reason: str = "",
    *,
    plan: bool = False,
) -> PreparedRun:
    """Return a stored run, ready to continue.

    Args:
        store: The store of runs.
        run: The run's id.
        settings: The settings of this machine.
        changes: Changes to its spec; with them it is the run it becomes, on the same questions.
        reason: Retry only what failed for this reason; `EVERY_REASON` for all that failed.
        plan: Whether it is only planned, and needs no keys.
    """
    row = store.run(run)
    assert row is not None
    spec = changed_spec(row, changes or {})
    check_start(spec, settings, plan=plan)
    return replace(stored_run(store, run), spec=spec, only=_failed_for(store, run, reason) if reason else None)


def _failed_for(store: RunStore, run: str, reason: str) -> frozenset[TrialKey]:
    """Return the trials that failed, for a reason or for any."""
    # Browsers send other line ends.
    groups = {" ".join(error.split()): trials for error, trials in failures_by_reason(store, run).items()}
    if reason == EVERY_REASON and groups:
        return frozenset(trial for trials in groups.values() for trial in trials)
    wanted = " ".join(reason.split())
    if wanted not in groups:
        hint = f"it is one of: {'; '.join(groups)[:500]}" if groups else "nothing has failed"
        raise InputError("nothing failed for that reason", column="--only-failed", hint=hint)
    return frozenset(groups[wanted])


def changed_spec(row: RunRow, changes: Mapping[str, Any]) -> RunSpec:
    """Return the spec of a run with some fields changed, such as budget.run; None removes a field."""
    if not changes:
        return spec_from_json(row.spec)
    for name in changes:
        if name.partition(".")[0] == "questions":
            raise InputError("cannot be changed in a stored run", column=name, hint="foretell run SPEC.yaml starts one")
    stored = {name: value for name, value in current_names(row.spec).items() if name not in DERIVED_SETTINGS}
    return spec_from_mapping(with_settings(stored, changes))


def replace_run(store: RunStore, old: str, prepared: PreparedRun, settings: Settings) -> None:
    """Give the name, note and tags of a run to the one that replaces it, and archive the old answers."""
    if old != prepared.spec.id:
        now, questions = datetime.now(UTC), prepared.questions
        begin_run(store, prepared.spec, now, settings.services, instead_of=old, questions=questions)


def prepare_again(
    store: RunStore, run: str, settings: Settings, changes: Mapping[str, Any] | None = None, *, plan: bool = False
) -> PreparedRun:
    """Return a new run with the settings of a stored one and the next seed that no run of them has used.

    A backtest asks the stored questions; a live run asks what its question set lists now.
    """
    row = store.run(run)
    assert row is not None
    spec = changed_spec(row, changes or {})
    if spec.mode == "backtest":
        prepared = replace(stored_run(store, run), spec=spec)
    elif spec.questions.typed:
        raise InputError("a typed question cannot be repeated as of its day", hint="ask the question again")
    else:
        prepared = prepare_run(spec.with_digest(""), folders=folders_of(row.folder))
    spec = prepared.spec
    while store.run(spec.id) is not None:
        spec = replace(spec, seed=spec.seed + 1)
    check_start(spec, settings, plan=plan)
    return replace(prepared, spec=spec)


def carry_over(store: RunStore, old: str, new: PreparedRun) -> None:
    """Give a repeated run the first one's tags, its name with the next number, and what is known of its questions."""
    row = store.run(old)
    assert row is not None
    taken = {other.name for other in store.runs()}
    numbered = (f"{NUMBER.sub('', row.name)[:MAX_NAME]} ({number})" for number in count(2))
    name = next(name for name in numbered if name not in taken) if row.name else ""
    store.label(new.spec.id, name=name, tags=list(row.tags))
    outcomes = RunOutcomes(store)
    outcomes.keep(new.spec.id, new.questions, outcomes.of(old))


def replay_into(folder: Path, prepared: PreparedRun, row: RunRow, settings: Settings) -> Settings:
    """Recompute a run from the journal in a separate folder, and return the settings of that folder."""
    # Provide the same tools as then. No request is sent, so the keys need not be real.
    keys = {KEYS[service][0]: "replayed" for service in row.services if service in KEYS}
    replayed = replace(settings, home=folder, keys=keys, corpus_file=None, database=None, budget=None)
    Corpus(replayed.corpus).close()
    journal = Journal(settings.journal, mode="replay") if asks_models(prepared.spec) else None
    run_sync(execute_run(prepared, replayed, journal=journal), event_loop.run)
    return replayed


def failures_by_reason(store: RunStore, run: str) -> dict[str, list[TrialKey]]:
    """Return the failed trials by reason, the most frequent first. Reasons that differ only in numbers are merged."""
    reasons: dict[str, str] = {}
    groups: dict[str, list[TrialKey]] = {}
    for key, error in store.failures(run):
        groups.setdefault(reasons.setdefault(failure_kind(error, key.question), error), []).append(key)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))
