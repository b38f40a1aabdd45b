"""Enter a tournament with a function as the forecaster: first what it would send, then the real thing.

    foretell practice -- python tournament_bot.py

Without practice, METACULUS_TOKEN makes it send to Metaculus itself.
"""

import foretell


def cautious(prompt: str) -> dict:
    """Always the same, with the reason that the tournament wants to read."""
    return {"probability": 0.4, "reason": "Changes are announced more often than they happen."}


print(foretell.enter_tournament("metaculus:minibench", model=cautious, limit=1, dry_run=True))
print(foretell.enter_tournament("metaculus:minibench", model=cautious, limit=1))
