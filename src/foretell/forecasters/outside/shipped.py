"""The model that comes with the package: a file of numbers and a report on what they were learnt from."""

import json
from dataclasses import asdict
from datetime import date
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.outside.labels import Worth
from foretell.forecasters.outside.model import Level, OutsideModel, Record, TextModel
from foretell.forecasters.outside.rates import RateTable

NUMBERS, REPORT = "numbers.npz", "training.json"
FORMAT = 1


@lru_cache(maxsize=1)
def shipped_model() -> OutsideModel:
    """The model of the package, read once."""
    folder = files("foretell.forecasters.outside")
    report: dict[str, Any] = json.loads(folder.joinpath(REPORT).read_text(encoding="utf-8"))
    return from_files(folder.joinpath(NUMBERS).read_bytes(), report)


def to_files(model: OutsideModel, scores: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """Numbers and report of a model. No text and no id is in them: askings are kept as hashes, words as buckets."""
    level, used = model.text.level, np.flatnonzero(model.text.words)
    names = sorted(level.drift_of)
    buffer = BytesIO()
    np.savez_compressed(
        buffer,
        used=used.astype(np.uint16),
        words=model.text.words[used].astype(np.float16),
        rarity=model.text.rarity.astype(np.float16),
        known=np.diff(model.text.known, prepend=0),
        grid=level.grid.astype(np.int32),
        drift=level.drift.astype(np.float32),
        drift_of=np.array([level.drift_of[name] for name in names], np.float32).reshape(len(names), len(level.grid)),
        askings=np.array(sorted(model.askings), np.uint64),
    )
    record = asdict(model.record) | {
        name: value.isoformat() for name, value in asdict(model.record).items() if isinstance(value, date)
    }
    report = {
        "format": FORMAT,
        "record": record,
        "scores": scores,
        "worth of prices": asdict(model.text.worth),
        "level": {"long run": level.long_run, "source": dict(level.source), "drifting": names},
        "named": dict(model.text.named),
        "rates": {name: list(counts) for name, counts in sorted(model.rates.counts.items())},
    }
    return buffer.getvalue(), report


def from_files(numbers: bytes, report: dict[str, Any]) -> OutsideModel:
    """The model of a file of numbers and its report."""
    if report.get("format") != FORMAT:
        raise ValueError(f"the outside view's numbers have format {report.get('format')}, this version reads {FORMAT}")
    with np.load(BytesIO(numbers), allow_pickle=False) as file:
        data: dict[str, Any] = {name: file[name] for name in file.files}
    rarity = data["rarity"].astype(np.float64)
    words: Floats = np.zeros(len(rarity))
    words[data["used"]] = data["words"]
    told = report["level"]
    level = Level(
        long_run=told["long run"],
        source=told["source"],
        grid=data["grid"].astype(np.int64),
        drift=data["drift"].astype(np.float64),
        drift_of=dict(zip(told["drifting"], data["drift_of"].astype(np.float64), strict=True)),
    )
    text = TextModel(
        level=level,
        named=report["named"],
        words=words,
        rarity=rarity,
        known=np.cumsum(data["known"]),
        worth=Worth(**report["worth of prices"]),
    )
    rates = RateTable(counts={name: (yes, n) for name, (yes, n) in report["rates"].items()})
    return OutsideModel(
        text=text, rates=rates, record=_record(report["record"]), askings=frozenset(data["askings"].tolist())
    )


def _record(fields: dict[str, Any]) -> Record:
    days = ("as_of", "last_known", "first_due", "last_due")
    read: dict[str, Any] = {name: date.fromisoformat(fields[name]) if fields[name] else None for name in days}
    return Record(**fields | read)
