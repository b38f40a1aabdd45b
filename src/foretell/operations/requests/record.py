"""The request to look at one's own questions, confirm an outcome, and pause a question or go on with it."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from foretell.request import OperationRequest, setting


class RecordRequest(OperationRequest):
    """The record of your own questions, or the history of the question ID.

    Your own questions are those that `foretell ask --watch` watches. Each counts once when its outcome is confirmed,
    with the last forecast from before it was known, and is compared with the market price, the base rate and the first
    answer. Nothing is scored on an outcome that is not confirmed.

      foretell record

      foretell record harbour-bridge --confirm yes

      foretell record harbour-bridge --out history.html
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"id": "confirm state"}
    id: str | None = setting(
        None, "Id of a question, or how it begins.", argument=True, metavar="[ID]", min_length=1, max_length=300
    )
    confirm: str | None = setting(
        None,
        "Confirm the outcome: yes, no, the outcome that came true, or proposed for what was proposed; cancelled or "
        "ambiguous end the question unscored, not-yet leaves it open.",
        metavar="ANSWER",
        min_length=1,
        max_length=300,
    )
    state: Literal["open", "paused"] | None = setting(None, "Pause the question, or open it again.")
