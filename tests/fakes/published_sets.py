"""Rows of published question sets, in the layouts of their publishers, with invented content."""

from collections.abc import Callable, Mapping
from typing import Any


def btf_row(place: int) -> dict[str, Any]:
    return {
        "question_id": f"q{place}",
        "question": f"Will chamber {place} pass the bill by 5 December 2025?",
        "resolution_criteria": "Resolves YES if the official record says so.",
        "background": "The bill was tabled.",
        "present_date": f"2025-10-{13 + place} 08:14:35.140819",
        "date_cutoff_end": f"2025-10-{14 + place} 00:00:00",
        "expected_resolution_date": "2025-12-05 00:00:00",
        "research_summary": "The party has 40 of 90 seats.\n\nOn 9 October 2025 the speaker set no date.",
        "resolution": float(place % 3 == 0),
        "resolution_explanation": "SECRET: it passed on 4 December 2025.",
        "sota_forecast_probability": 8.0,
        "sota_summary_rationale": "SECRET rationale",
    }


def numeric_row(place: int) -> dict[str, Any]:
    cutpoints = {f"cutpoint_{n}": 3.5 + n / 2 for n in range(1, 6)}
    return {**btf_row(place), "question": "What will the rate be?", "units": "percent", **cutpoints, "resolution": 5.25}


def kalshibench_row(place: int) -> dict[str, Any]:
    return {
        "id": f"KXT{place // 2}",
        "question": f"Will team {place} win?",
        "description": "If the team wins, then the market resolves to Yes.",
        "category": "Sports",
        "close_time": f"2025-11-{10 + place}T05:00:00Z",
        "ground_truth": "yes" if place % 2 else "no",
        "market_probability": 0.99 if place % 2 else 0.01,
        "series_ticker": f"KXT{place // 2}",
        "source": "kalshi",
    }


def timeseek_row(place: int) -> dict[str, Any]:
    return {
        "market_ticker": f"KXM{place // 5}",
        "title": f"Will market {place // 5} settle at yes?",
        "checkpoint_time": f"2026-01-0{1 + place % 5}T12:00:00Z",
        "market_price": 40 + place,
        "result": "yes" if place < 5 else "no",
        "close_time": "2026-01-09T00:00:00Z",
    }


def openforesight_row(place: int) -> dict[str, Any]:
    return {
        "qid": str(place),
        "question_title": f"Who will win prize {place} in March 2026?",
        "background": "The jury meets in March.",
        "resolution_criteria": "The name that the jury announces.",
        "answer": "Ada Lovelace" if place else "Yes",
        "answer_type": "string (name)",
        "question_start_date": "2026-03-01",
        "resolution_date": "2026-03-20",
        "url": "https://news.example/1",
        "article_publish_date": "2026-03-20",
        "prompt": "You will be asked.\nRelevant passages from retrieved news articles:\nA shortlist of two was named.\n"
        "\nThink step by step about the information provided.",
    }


def futurex_row(place: int) -> dict[str, Any]:
    event = f"Who wins match {place}" if place < 6 else f"How many cases in week {place}?"
    around = f"(resolved around 2026-03-{10 + place} (GMT+8))."
    options = "\nA. the outcome be Alpha\nB. the outcome be Beta\nC. the outcome be Gamma" if place < 6 else ""
    box = r"For example: \boxed{A} or \boxed{B, C}" if place < 6 else r"\boxed{YOUR_PREDICTION}"
    prompt = 'You are an agent that can predict future events. The event to be predicted: "'
    level = 1 if place < 3 else 2 if place < 6 else 4
    return {
        "id": f"f{place}",
        "prompt": f'{prompt}{event} {around}{options}"\nIMPORTANT: Your final answer MUST end with this format:\n{box}',
        "end_time": f"2026-03-{10 + place} 00:00:00",
        "level": level,
        "ground_truth": {1: "['B']", 2: "['A', 'C']", 4: "['1,250']"}[level],
        "std": 40.0 if level == 4 else None,
        "en_title": event,
    }


PUBLISHED_ROWS: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "btf": btf_row,
    "futurex": futurex_row,
    "kalshibench": kalshibench_row,
    "openforesight": openforesight_row,
    "timeseek": timeseek_row,
}
"""Data set → function that returns the row with a number."""
