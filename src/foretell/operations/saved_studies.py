"""Studies that are saved for the web app: one folder by name with the tables and one file per chart."""

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from foretell.questions.errors import InputError
from foretell.report.charts.svg import Chart
from foretell.report.markup import Markup
from foretell.report.study import StudyChart, StudyResult, chart_titles, study_from_dict
from foretell.runs.settings import Settings

TABLES = "study.json"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
OWN_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
"""What a figure in a file of its own carries and one inside a page does not."""


def save_study(settings: Settings, study: StudyResult) -> Path:
    """Save it whole in a folder of its name, in place of an earlier one of that name; returns the folder."""
    folder = _folder(settings, study.name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as made:
        new, old = Path(made, "new"), Path(made, "old")
        new.mkdir()
        for one in study.charts:
            one.chart.save(new / f"{_named(one.name)}.svg")
        (new / TABLES).write_text(study.to_json(), encoding="utf-8")
        if folder.is_dir():
            folder.rename(old)
        new.rename(folder)
    return folder


def saved_studies(settings: Settings) -> list[str]:
    """Their names in alphabetical order."""
    home = settings.home / "studies"
    if not home.is_dir():
        return []
    return sorted(one.name for one in home.iterdir() if NAME.fullmatch(one.name) and (one / TABLES).is_file())


def open_study(settings: Settings, name: str) -> tuple[StudyResult, Mapping[str, Path]]:
    """The study with its charts, and the files of the charts by name."""
    names = saved_studies(settings)
    if name not in names:
        hint = f"there are: {', '.join(names)}" if names else "save one with foretell study … --keep"
        raise InputError(f"no study {name[:80]!r} was saved", hint=hint)
    folder = _folder(settings, name)
    study, titles = _read(folder / TABLES)
    paths = {one: path for one in titles if (path := folder / f"{one}.svg").is_file()}
    charts = [StudyChart(name=one, title=titles[one], chart=_figure(path)) for one, path in paths.items()]
    return replace(study, charts=tuple(charts)), paths


def _read(path: Path) -> tuple[StudyResult, dict[str, str]]:
    """The tables and the titles of the charts by name."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        titles = {name: title for name, title in chart_titles(data).items() if NAME.fullmatch(name)}
        return study_from_dict(data), titles
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError) as error:
        raise InputError(f"the study cannot be read: {error}", path=path, hint="save it again with --keep") from None


def _folder(settings: Settings, name: str) -> Path:
    return settings.home / "studies" / _named(name)


def _named(name: str) -> str:
    if not NAME.fullmatch(name):
        raise InputError(f"{name[:80]!r} cannot name a file", hint="use small letters, digits, - and _")
    return name


def _figure(path: Path) -> Chart:
    """A chart as it stands inside a page, which has the colours."""
    svg = OWN_STYLE.sub("", path.read_text(encoding="utf-8"), count=1)
    svg = svg[svg.index("<svg") :].rstrip()
    width = re.search(r'\bwidth="([0-9.]+)"', svg)
    return Chart(Markup(svg), wide=width is not None and float(width[1]) > 480)
