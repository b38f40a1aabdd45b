"""Every request: what a user can ask for, whichever door it comes by. Imports here are light: `--help` loads them."""

from pathlib import Path

from foretell.operations.request import Request, setting


class PracticeRequest(Request):
    """A practice world on this machine: models, search, pages, series, markets and inboxes for submissions."""

    port: int = setting(0, "First of 13 ports in a row (default: free ones).", metavar="PORT", ge=0, le=65522)
    latency: float = setting(0.0, "Seconds before every answer.", metavar="SECONDS", ge=0)
    home: Path | None = setting(
        None, "FORETELL_HOME of the practice world (default: a folder beside your runs).", metavar="FOLDER"
    )
