"""BTF-2 and BTF-3, "Bench to the Future" of FutureSearch: questions as of a past day, with what was found by then.

The files are `btf2_questions_and_forecasts.parquet`, `btf3_binary_…` and `btf3_numeric_…`. The explanation of the
resolution and the publisher's own forecast (`resolution_explanation`, `sota_…`) never become part of a question. The
web of the benchmark is published as a list of addresses without their texts; pages that you have go into the corpus.

Wildman et al. 2025, https://arxiv.org/abs/2506.21558.
"""

from foretell.data.datasets.published import PublishedSetBuilder, moment, need_moment, published_format
from foretell.data.datasets.question_files import YES
from foretell.data.datasets.rows import Row
from foretell.patterns import pattern
from foretell.questions.question import Question, Target
from foretell.questions.thresholds import NUMERIC

SOURCE = "btf"
COLUMNS = frozenset({"question_id", "question", "present_date", "resolution_criteria", "resolution"})
_CUTPOINT = pattern(r"cutpoint_\d+")
ON_A_CUTPOINT = "thresholds without an outcome: the number came out exactly there, and the set does not say which side"


def _add(row: Row, set_builder: PublishedSetBuilder) -> None:
    """Read a question of BTF-2 or BTF-3, binary or numeric. The research summary becomes the stored context."""
    cutpoints = {value for name in row.fields if _CUTPOINT.fullmatch(name) and (value := row.real(name)) is not None}
    targets = [f"<{value!r}" for value in sorted(cutpoints)] or [YES]
    due, resolves = need_moment(row, "present_date"), moment(row, "expected_resolution_date")
    if resolves is not None and resolves < due:
        raise row.problem("expected_resolution_date", f"{resolves.date()} is before the present date {due.date()}")
    units = f"\n\nUnit: {row.text('units')}" if row.text("units") else ""
    question = row.reading(
        None,
        lambda: Question(
            id=f"{SOURCE}/{row.need_text('question_id')}",
            source=SOURCE,
            text=row.need_text("question"),
            due=due,
            targets=tuple(Target(id=target, resolves_at=resolves) for target in targets),
            subtype=NUMERIC if cutpoints else "",
            criteria=row.need_text("resolution_criteria") + units,
            background=row.text("background"),
        ),
    )
    set_builder.add(row, question, _outcomes(row, sorted(cutpoints), set_builder), resolves)
    if summary := row.text("research_summary"):
        set_builder.add_sources(question, "Research summary", summary)


def _outcomes(row: Row, cutpoints: list[float], set_builder: PublishedSetBuilder) -> dict[str, int | None]:
    if not cutpoints:
        came_true = row.flag("resolution")
        return {YES: None if came_true is None else int(came_true)}
    number = row.real("resolution")
    if number is None:
        return {}
    set_builder.counts[ON_A_CUTPOINT] += number in cutpoints
    return {f"<{value!r}": None if value == number else int(number < value) for value in cutpoints}


btf = published_format(COLUMNS, _add)
"""The data set `btf:FILE`, and any file with its columns."""
