"""The published numbers of the BLF paper on pages."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from foretell.metrics import Resampling
from foretell.report.leaderboard import error_analysis_page, leaderboard_page
from foretell.scoring.breakdown import error_analysis
from foretell.scoring.join import read_table
from foretell.scoring.score import ScoringOptions, score_table
from foretell.scoring.table import ForecastTable

BLF = "blf:pro-high-brave-c1-p1-t1[hier-cal]"

FORECASTS = """
select method as forecaster, source || ':' || question_id as question,
       if(resolution_date = '', 'resolved', resolution_date) as target, forecast_due_date as due, probability as p
from '{tables}/ab_forecasts.parquet' where method = '{blf}' or method like 'ext:%'
"""
OUTCOMES = """
select source || ':' || question_id as question, forecast_due_date as due, paper_outcome as outcome, source,
       if(q.source_type = 'market', 'resolved', r.resolution_date) as target, q.source_type as kind,
       if(q.source_type = 'market', null, horizon_days) as horizon, q.price_on_due_date as price
from '{tables}/ab_resolutions.parquet' r
join '{tables}/ab_questions.parquet' q using (question_id, source, forecast_due_date)
"""


@pytest.fixture(scope="module")
def both_samples(shared_data: Path) -> ForecastTable:
    import duckdb

    def rows(query: str) -> list[dict[str, object]]:
        with duckdb.connect() as con:
            cursor = con.execute(query.format(tables=shared_data / "tables", blf=BLF))
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    return read_table(rows(FORECASTS), rows(OUTCOMES))


@pytest.mark.shared_data
def test_leaderboard_page_shows_the_published_scores(both_samples: ForecastTable) -> None:
    board = score_table(both_samples, ScoringOptions(by=("source",), resampling=Resampling(draws=500)))
    document = leaderboard_page(board, both_samples, "Tranches A and B")
    text = " ".join(" ".join(ElementTree.fromstring(document.partition("\n")[2]).itertext()).split())
    assert f"{BLF} is better than " in text
    assert "791 targets of 400 questions" in text
    for published in ("73.3 [", "70.4 [", "83.8 [", "62.7 [", "81.3 [", "59.6 ["):
        assert published in text, published
    assert len(document) < 300_000


@pytest.mark.shared_data
def test_error_analysis_of_the_published_best(both_samples: ForecastTable) -> None:
    analysis = error_analysis(both_samples, BLF)
    assert analysis.overall is not None
    assert round(analysis.overall.estimate, 2) == 73.26
    assert {b.column for b in analysis.breakdowns} == {"kind", "source", "horizon", "due"}
    ElementTree.fromstring(error_analysis_page(analysis).partition("\n")[2])
