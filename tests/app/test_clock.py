from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from foretell.questions import InputError, instant
from foretell.runs import clock_of, load_settings


def test_this_machines_clock_is_the_usual_one():
    told = clock_of(load_settings({}))()
    assert abs(told - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_file_is_read_anew_at_every_look(tmp_path: Path):
    file = tmp_path / "clock"
    file.write_text("2026-11-01T00:00:00Z\n")
    clock = clock_of(load_settings({"FORETELL_CLOCK": f"file:{file}"}))
    assert clock() == instant("2026-11-01")
    file.write_text("2026-11-02T06:30:00+00:00")
    assert clock() == instant("2026-11-02T06:30:00Z")


def test_a_clock_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(InputError, match=r"FORETELL_CLOCK.*file:PATH"):
        clock_of(load_settings({"FORETELL_CLOCK": "noon"}))
    with pytest.raises(InputError, match="no such file"):
        clock_of(load_settings({"FORETELL_CLOCK": f"file:{tmp_path / 'none'}"}))
    (tmp_path / "clock").write_text("2026-11-01T00:00:00")
    with pytest.raises(InputError, match="no time zone"):
        clock_of(load_settings({"FORETELL_CLOCK": f"file:{tmp_path / 'clock'}"}))
