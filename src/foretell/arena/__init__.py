"""The live arena: select events, schedule moments, share a context, forecast, settle."""

from foretell.interface import offer

HOMES = {
    "foretell.arena.forecast": "make_forecasts with_arena_rules",
    "foretell.arena.live": "LiveArena",
    "foretell.arena.score_data": "read_arena_table",
    "foretell.arena.select": "Schedule SelectionRules slot",
    "foretell.arena.spec": "ARENA_PREFIX ArenaSpec arena_from_json arena_of read_arena",
    "foretell.arena.stages": "ArenaService SettleReport make_contexts",
    "foretell.arena.status": "arena_status event_history",
    "foretell.arena.store": "ArenaStore MIGRATIONS Moment SCHEMA_NAME",
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
