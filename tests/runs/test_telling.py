import asyncio

from foretell.forecasters.forecaster import EventOrdering
from foretell.questions import Failed, LeakBlocked, ModelCalled, TraceEvent


def told(pauses: dict[str, float]) -> list[TraceEvent]:
    """Three tools at work side by side, each asking its filter and dropping something, with these pauses."""
    heard: list[TraceEvent] = []

    async def tool(emit: EventOrdering, name: str) -> None:
        await asyncio.sleep(pauses[name])
        emit(ModelCalled(role="filter", model="m", key=name))
        await asyncio.sleep(pauses[name])
        emit(LeakBlocked(layer="content", reason=name))

    async def cell() -> None:
        emit = EventOrdering(heard.append)
        emit(Failed(error="begins"))
        await asyncio.gather(*(tool(emit, name) for name in pauses))
        emit(Failed(error="ends"))
        await asyncio.create_task(tool(emit, "a"))
        emit.release()

    asyncio.run(cell())
    return heard


def test_events_do_not_depend_on_who_was_quicker():
    one = told({"a": 0.0, "b": 0.01, "c": 0.02})
    assert one == told({"a": 0.02, "b": 0.0, "c": 0.01})
    reasons = [event.reason for event in one if isinstance(event, LeakBlocked)]
    assert reasons == ["a", "b", "c", "a"]
    assert [type(event).__name__ for event in one[1:3]] == ["ModelCalled", "LeakBlocked"]
    assert (one[0], one[7]) == (Failed(error="begins"), Failed(error="ends"))
