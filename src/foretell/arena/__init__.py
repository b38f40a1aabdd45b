"""The live arena: select events, schedule moments, share a context, forecast, settle."""

from foretell.interface import offer

HOMES = {
    "foretell.arena.context": "make_contexts",
    "foretell.arena.forecast": "make_forecasts with_arena_rules",
    "foretell.arena.live": "LiveArena",
    "foretell.arena.schedule": "Schedule slot",
    "foretell.arena.score_data": "read_arena_table",
    "foretell.arena.select": "SelectionRules",
    "foretell.arena.service": "ArenaService",
    "foretell.arena.settle": "SettleReport",
    "foretell.arena.spec": "ARENA_PREFIX ArenaSpec arena_from_json arena_of read_arena",
    "foretell.arena.status": "arena_status event_history",
    "foretell.arena.store": "ArenaStore MIGRATIONS Moment SCHEMA_NAME",
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
