"""ForecastBench for practice: a round that is due today, two earlier ones with their outcomes, and a team's folder.

Files have the format that the benchmark publishes; the folder answers uploads and reads like Google Cloud Storage.
"""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from foretell.data.datasets.forecastbench_download import ROUND_DAYS
from foretell.practice.server import Handler, PracticeServer, ServerRequest, ServerResponse, json_response

HORIZONS = (7, 30, 90, 180, 365, 1095, 1825, 3650)
FROZEN_DAYS = 10
EARLIER_ROUNDS = 2
NOT_APPLICABLE = "N/A"
MARKET_PRICES = {"manifold": 0.62, "polymarket": 0.35, "metaculus": 0.8, "infer": 0.1}
SERIES = {
    "fred": ("DGS10", "Will the yield of ten-year bonds have increased by {resolution_date}?", "4.2"),
    "yfinance": ("SPY", "Will the price of SPY be higher on {resolution_date} than on {forecast_due_date}?", "610.5"),
    "dbnomics": (
        "meteofrance_TEMPERATURE_celsius.07607.D",
        "Will the temperature at Mont-de-Marsan be higher on {resolution_date} than on {forecast_due_date}?",
        "11.4",
    ),
    "acled": (
        "practice-riots",
        "Will there be more 'Riots' in Monaco for the 30 days before {resolution_date} compared to the 30-day average "
        "of 'Riots' over the 360 days preceding {forecast_due_date}?",
        "0.25",
    ),
    "wikipedia": (
        "practice-elo",
        "According to Wikipedia, will Magnus Carlsen have an Elo rating on {resolution_date} that's at least 1% higher "
        "than on {forecast_due_date}?",
        "2840",
    ),
}
"""Source → series id, question text and value at the freeze date."""


def market_question(due: date, source: str, id: str, text: str, price: float) -> dict[str, Any]:
    """Build a question about a market as the benchmark publishes it."""
    return {
        **_shared(due, id, source, text),
        "resolution_criteria": "As the market says.",
        "market_info_open_datetime": f"{due - timedelta(days=60)}T00:00:00+00:00",
        "market_info_close_datetime": f"{due + timedelta(days=200)}T00:00:00+00:00",
        "market_info_resolution_criteria": "As reported.",
        "url": f"https://example.com/{source}/{id}",
        "freeze_datetime_value": str(price),
        "freeze_datetime_value_explanation": "The market price.",
        "resolution_dates": NOT_APPLICABLE,
    }


def series_question(
    due: date, source: str, id: str, text: str, value: str, dates: int = len(HORIZONS)
) -> dict[str, Any]:
    """Build a question about a series, for so many of the dates, as the benchmark publishes it."""
    market_fields = ("open_datetime", "close_datetime", "resolution_criteria")
    return {
        **_shared(due, id, source, text),
        **{f"market_info_{name}": NOT_APPLICABLE for name in market_fields},
        "resolution_criteria": "As the source says.",
        "url": f"https://db.nomics.world/{id.replace('_', '/', 2)}" if source == "dbnomics" else "",
        "freeze_datetime_value": value,
        "freeze_datetime_value_explanation": "The latest value.",
        "resolution_dates": [str(due + timedelta(days=days)) for days in HORIZONS[:dates]],
    }


def _shared(due: date, id: str, source: str, text: str) -> dict[str, Any]:
    frozen = f"{due - timedelta(days=FROZEN_DAYS)}T00:00:00+00:00"
    about = {"source_intro": "", "background": "A made-up question.", "freeze_datetime": frozen}
    return {**about, "id": id, "source": source, "question": text}


def set_body(due: date, questions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Build a question set as the benchmark publishes it."""
    return {"forecast_due_date": str(due), "question_set": f"{due}-llm.json", "questions": list(questions)}


def question_set_body(due: date) -> dict[str, Any]:
    """Build a small question set of every source. Every second series is asked about for seven dates, not eight."""
    markets = [
        market_question(due, source, f"practice-{source}-{number}", f"Will thing {number} of {source} happen?", price)
        for source, price in MARKET_PRICES.items()
        for number in (1, 2)
    ]
    series = [
        series_question(due, source, id, text, value, len(HORIZONS) - number % 2)
        for number, (source, (id, text, value)) in enumerate(SERIES.items())
    ]
    return set_body(due, [*markets, *series])


def resolution_set_body(questions: dict[str, Any], today: date) -> dict[str, Any]:
    """Build a round's resolutions as of today, as published; an open question has a price and no outcome."""
    rows: list[dict[str, Any]] = []
    for number, question in enumerate(questions["questions"]):
        dates = question["resolution_dates"]
        known = [str(today - timedelta(days=1))] if dates == NOT_APPLICABLE else [d for d in dates if d < str(today)]
        for day in known:
            # Every second market is resolved; series alternate between up and down.
            over = dates != NOT_APPLICABLE or number % 2 == 0
            value = float((number + len(day) + date.fromisoformat(day).toordinal()) % 2)
            if not over:
                value = float(question["freeze_datetime_value"])
            row = {"id": question["id"], "source": question["source"], "direction": None, "resolution_date": day}
            rows.append({**row, "resolved_to": value, "resolved": over})
    return {**{name: questions[name] for name in ("forecast_due_date", "question_set")}, "resolutions": rows}


def serve_rounds(
    server: PracticeServer,
    prefix: str,
    now: datetime,
    question_set: Callable[[date], dict[str, Any]] = question_set_body,
) -> None:
    """Serve the files of today's round and of earlier ones under a path."""
    today = now.date()
    for number in range(EARLIER_ROUNDS + 1):
        due = today - timedelta(days=ROUND_DAYS * number)
        questions = question_set(due)
        server.route("GET", f"{prefix}/question_sets/{due}-llm.json", _file(questions))
        if number:
            body = resolution_set_body(questions, today)
            server.route("GET", f"{prefix}/resolution_sets/{due}_resolution_set.json", _file(body))
    # The benchmark names the newest round by a symbolic link, whose content is the name of the file.
    newest = ServerResponse(body=f"{today}-llm.json".encode())
    server.route("GET", f"{prefix}/question_sets/latest-llm.json", lambda _: newest)


def _file(body: dict[str, Any]) -> Handler:
    answer = json_response(body)
    return lambda _: answer


class PracticeBucket:
    """A storage service that accepts uploads through its JSON API if the named generation matches."""

    def __init__(self, token: str, *, readable: bool = True) -> None:
        self.token = token
        self.readable = readable
        """Whether clients that may write may also read."""
        self.files: dict[str, bytes] = {}
        """Bucket and name → content."""
        self.generations: dict[str, int] = {}
        self.uploads: list[str] = []
        """Names of the uploaded files, in order of arrival."""

    def serve(self, server: PracticeServer, prefix: str) -> None:
        """Add the routes under a path."""
        server.route("POST", f"{prefix}/upload/storage/v1/b/*", lambda request: self._upload(request, prefix))
        server.route("GET", f"{prefix}/storage/v1/b/*", lambda request: self._read(request, prefix))

    def _upload(self, request: ServerRequest, prefix: str) -> ServerResponse:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return json_response({"error": {"code": 401, "message": "Invalid Credentials"}}, 401)
        bucket = request.path.removeprefix(f"{prefix}/upload/storage/v1/b/").split("/")[0]
        name = f"{bucket}/{request.query.get('name', '')}"
        if request.query.get("ifGenerationMatch", "") not in ("", str(self.generations.get(name, 0))):
            return json_response({"error": {"code": 412, "message": "conditionNotMet"}}, 412)
        self.files[name] = request.body
        self.generations[name] = max(self.generations.values(), default=1000) + 1
        self.uploads.append(name)
        return json_response(self._metadata(name))

    def _read(self, request: ServerRequest, prefix: str) -> ServerResponse:
        if request.headers.get("authorization") != f"Bearer {self.token}" or not self.readable:
            return json_response({"error": {"code": 403, "message": "storage.objects.get denied"}}, 403)
        bucket, _, name = request.path.removeprefix(f"{prefix}/storage/v1/b/").partition("/o/")
        if f"{bucket}/{name}" not in self.files:
            return json_response({"error": {"code": 404, "message": "No such object"}}, 404)
        return json_response(self._metadata(f"{bucket}/{name}"))

    def _metadata(self, name: str) -> dict[str, Any]:
        content = self.files[name]
        digest = b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
        bucket, _, path = name.partition("/")
        return {
            "kind": "storage#object",
            "bucket": bucket,
            "name": path,
            "generation": str(self.generations[name]),
            "size": str(len(content)),
            "md5Hash": digest,
        }
