"""Ask with a model of your own: an async function that takes a prompt and returns an answer.

Replace the body of `my_model` by a call of any client library.
"""

import asyncio

import foretell


async def my_model(prompt: str) -> dict:
    """Return a probability of yes, and the reason for it."""
    await asyncio.sleep(0)  # Here would be: reply = await client.chat(prompt)
    return {"probability": 0.7 if "snow" in prompt else 0.4, "reason": "It snows in most Januaries."}


answer = foretell.ask(
    "Will it snow in Oslo in January 2030?",
    closes="2030-01-31",
    criteria="Yes, if any weather station in Oslo reports snow.",
    model=my_model,
)
print(f"{answer.p['yes']:.0%}: {answer.rationale}")
assert answer.p == {"yes": 0.7}

colour = foretell.ask(
    "Which colour wins?",
    closes="2030-01-31",
    options=["red", "blue"],
    model=lambda prompt: {"p": {"red": 0.25, "blue": 0.75}, "reason": "Blue won three times of four."},
)
print(colour.p)
assert colour.p["blue"] > 0.7
