"""KalshiBench: resolved yes/no markets of Kalshi (Nel 2025, the data set `kalshibench-v2`).

The file does not say when its questions were asked, and `market_probability` is the last price of a settled market, so
that it tells the outcome. The price and the time of the close stay out of the question, which is asked as of the day
before the close.
"""

from hashlib import sha256

from foretell.data.datasets.published import PublishedSetBuilder, day_before, need_moment, published_format
from foretell.data.datasets.question_files import YES
from foretell.data.datasets.rows import Row
from foretell.questions.question import Question

SOURCE = "kalshibench"
COLUMNS = frozenset({"question", "description", "close_time", "ground_truth", "series_ticker"})


def _add(row: Row, set_builder: PublishedSetBuilder) -> None:
    """Read a question with its outcome. Two markets of a series share its ticker, and so a cluster."""
    text, closed = row.need_text("question"), need_moment(row, "close_time")
    came_true = row.need_flag("ground_truth", "yes or no")
    series = row.text("series_ticker") or row.need_text("id")
    wording = sha256(f"{text}\n{row.text('description')}".encode()).hexdigest()[:6]
    question = row.reading(
        None,
        lambda: Question(
            id=f"{SOURCE}/{series}-{wording}",
            source=SOURCE,
            text=text,
            due=day_before(closed),
            category=row.text("category"),
            criteria=row.text("description"),
            cluster=f"{SOURCE}/{series}",
        ),
    )
    set_builder.add(row, question, {YES: int(came_true)}, closed)


kalshibench = published_format(COLUMNS, _add)
"""The data set `kalshibench:FILE`, and any file with its columns."""
