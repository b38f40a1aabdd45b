"""The templates behind ForecastBench questions: which kind of thing is asked, told by the wording."""

from urllib.parse import urlsplit

from foretell.questions.question import Kind, SeriesRef

MARKETS = ("infer", "manifold", "metaculus", "polymarket")
SERIES = ("dbnomics", "fred", "yfinance")
NOT_APPLICABLE = "N/A"

WORDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "acled": (("more than ten times as many", "10x_spike"), ("will there be more ", "increase")),
    "wikipedia": (
        ("vaccine have been developed", "vaccine"),
        ("elo rating", "fide_elo"),
        ("fide ranking", "fide_rank"),
        ("world record", "swimming"),
    ),
}


def subtype_of(source: str, kind: Kind, text: str) -> str:
    """The question's template within its source; 'other' where the wording is new.

    >>> subtype_of("acled", "dataset", "Will there be more 'Riots' in Monaco for the 30 days before …")
    'increase'
    >>> subtype_of("fred", "dataset", "Will … have increased by …?"), subtype_of("infer", "market", "…")
    ('all', 'market')
    """
    if kind == "market":
        return "market"
    wordings = WORDINGS.get(source)
    if wordings is None:
        return "all"
    lowered = text.lower()
    return next((subtype for words, subtype in wordings if words in lowered), "other")


def series_of(source: str, question_id: str, url: str) -> SeriesRef | None:
    """The series whose rise since the due date decides the question, for the three sources that are series.

    DBnomics ids are published with '_' for '/', which cannot be undone in general, so the page's address is read.

    >>> series_of("dbnomics", "meteofrance_TEMPERATURE_celsius.07607.D",
    ...           "https://db.nomics.world/meteofrance/TEMPERATURE/celsius.07607.D").id
    'meteofrance/TEMPERATURE/celsius.07607.D'
    """
    if source not in SERIES:
        return None
    path = urlsplit(url).path.strip("/")
    known = source == "dbnomics" and path.replace("/", "_") == question_id
    return SeriesRef(provider=source, id=path if known else question_id, comparison="above")


def filled(text: str, *, due: str, resolution: str = "the resolution date") -> str:
    """A question's text with its two placeholders replaced.

    >>> filled("Up by {resolution_date} since {forecast_due_date}?", due="2025-10-26")
    'Up by the resolution date since 2025-10-26?'
    """
    return text.replace("{forecast_due_date}", due).replace("{resolution_date}", resolution)
