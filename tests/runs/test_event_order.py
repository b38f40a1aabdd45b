import asyncio

from foretell.forecasters.forecaster import EventOrdering
from foretell.questions.trace import Failed, LeakBlocked, ModelCalled, TraceEvent


def events_with(pauses: dict[str, float]) -> list[TraceEvent]:
    """Return the events of three concurrent tools, each of which asks its filter and drops something."""
    events: list[TraceEvent] = []

    async def tool(emit: EventOrdering, name: str) -> None:
        await asyncio.sleep(pauses[name])
        emit(ModelCalled(role="filter", model="m", key=name))
        await asyncio.sleep(pauses[name])
        emit(LeakBlocked(layer="content", reason=name))

    async def answer() -> None:
        emit = EventOrdering(events.append)
        emit(Failed(error="begins"))
        await asyncio.gather(*(tool(emit, name) for name in pauses))
        emit(Failed(error="ends"))
        await asyncio.create_task(tool(emit, "a"))
        emit.release()

    asyncio.run(answer())
    return events


def test_event_order_does_not_depend_on_timing():
    first = events_with({"a": 0.0, "b": 0.01, "c": 0.02})
    assert first == events_with({"a": 0.02, "b": 0.0, "c": 0.01})
    reasons = [event.reason for event in first if isinstance(event, LeakBlocked)]
    assert reasons == ["a", "b", "c", "a"]
    assert [type(event).__name__ for event in first[1:3]] == ["ModelCalled", "LeakBlocked"]
    assert (first[0], first[7]) == (Failed(error="begins"), Failed(error="ends"))
