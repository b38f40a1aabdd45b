"""A set with a frozen web: its research is shown as a context, and an agent finds only pages captured by the date."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

import foretell
from foretell.cli.main import cli
from foretell.models.model import Request
from foretell.models.providers.function import model_name

LATE = "The bill passed on 4 December 2025, with 50 votes. " * 20
QUESTION = {
    "question_id": "q1",
    "question": "Will the chamber pass the bill by 5 December 2025?",
    "resolution_criteria": "Resolves YES if the official record says so.",
    "background": "The bill was tabled.",
    "present_date": "2025-10-15",
    "research_summary": "The party has 40 of 90 seats. " * 20 + "\n\n" + LATE,
    "resolution": 1.0,
    "resolution_explanation": "SECRET: it passed.",
    "sota_forecast_probability": 8.0,
}
PAGES = (
    "('https://news.example/tabled', 'Bill tabled', 'The chamber tabled the bill. No vote was set.', '2025-10-14')",
    "('https://news.example/passed', 'Bill passed', 'The chamber passed the bill by 50 votes.', '2025-12-04')",
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    Path("btf.json").write_text(json.dumps([QUESTION]))
    rows = f"(values {', '.join(PAGES)}) as pages(url, title, content, date_scraped)"
    duckdb.sql(f"copy (select * from {rows}) to '{tmp_path / 'pages.parquet'}' (format parquet)")
    return tmp_path


def asked(model: Any, **spec: Any) -> str:
    settings = {"questions": "btf.json", "models": {"agent": model_name(model)}, "mode": "backtest", "trials": 1}
    return foretell.run({**settings, **spec}).run


def test_the_research_of_a_question_is_shown_without_what_was_written_later(here: Path) -> None:
    prompts: list[str] = []

    def forecaster(prompt: str) -> dict[str, Any]:
        prompts.append(prompt)
        return {"rationale": "It has too few seats.", "probabilities": {"yes": 0.2}}

    asked(forecaster, forecaster="prompt", options={"view": "sources"})
    (prompt,) = prompts
    assert "40 of 90 seats" in prompt
    assert "50 votes" not in prompt
    assert "SECRET" not in prompt


def test_an_agent_searches_the_frozen_web_as_of_the_question(here: Path) -> None:
    added = CliRunner().invoke(cli, ["corpus", "add", "pages.parquet"], catch_exceptions=False)
    assert "2 added" in added.output
    read: list[str] = []

    def agent(request: Request) -> dict[str, Any]:
        text = "\n".join(str(getattr(message, "text", message)) for message in request.messages)
        read.append(text)
        if len(read) == 1:
            return {"tool": "web_search", "query": "chamber bill vote"}
        return {"tool": "submit", "p": {"yes": 0.2}, "reason": "No vote was set."}

    asked(agent, forecaster="agent", search=["local"])
    assert "news.example/tabled" in "".join(read)
    assert "news.example/passed" not in "".join(read)
