"""Settings of a tournament: the section `tournament` of a settings file, for each platform."""

from pathlib import Path
from typing import Literal

from foretell.request import OperationRequest, setting

MODEL_FREE = "model_free"
"""The forecaster of rounds without a model."""


class TournamentSettings(OperationRequest):
    """Keys of the section `tournament` that every platform has."""

    budget: float | None = setting(None, "Hard limit in dollars for the whole tournament, earlier runs included.", gt=0)


class UpdateSettings(TournamentSettings):
    """Keys for tournaments in which questions open and close: when a forecast is updated."""

    update_after: float | None = setting(None, "Update a forecast after this many days (default: never).", gt=0)
    before_close: float | None = setting(None, "Update a forecast once more in this many hours before the close.", gt=0)


class MetaculusSettings(UpdateSettings):
    """Keys for Metaculus."""

    comment: Literal["private", "public"] = setting("private", "Who can read the comment with the reasons.")


class ProphetArenaSettings(UpdateSettings):
    """Keys for Prophet Arena."""

    agent: str = setting("", "Your agent's name (default: your weekly-track agent).", env="ARENA_AGENT", max_length=200)
    reasons: bool = setting(True, "Send the reasons with every forecast.")
    window: int | None = setting(None, "The round of the event (default: the open one).")


class ForecastBenchSettings(TournamentSettings):
    """Keys for ForecastBench: the team, the file, and the round."""

    organization: str = setting("", "Your team, as registered.", env="FORECASTBENCH_ORGANIZATION", max_length=200)
    entry: str = setting("", "Name on the leaderboard (default: foretell with its model).", max_length=200)
    model_organization: str = setting("", "Who made the model (default: the organization).", max_length=200)
    file_number: int = setting(1, "Which of your three files this is.", ge=1, le=3)
    reasoning: bool = setting(False, "Include the reasons in the file.")
    incomplete: bool = setting(False, "Write the file even if it is too incomplete to be ranked.")
    folder: Path | None = setting(None, "Folder for the file.")
    bucket: str | None = setting(None, "Upload folder, gs://BUCKET/{round}/FOLDER.", env="FORECASTBENCH_BUCKET")
    past_rounds: int = setting(26, "How many earlier rounds to learn from; missing ones are downloaded.", ge=0, le=200)
    stop_before: float = setting(30.0, "Agents stop this many minutes before the round closes.", ge=0)
    when_open: bool = setting(False, "If no round is open today, exit successfully; for schedulers.")
    accept_stale: bool = setting(False, "Send a round although more than a tenth of its values are stale.")
    overwrite: bool = setting(False, "Replace an uploaded file that this machine did not write.")
