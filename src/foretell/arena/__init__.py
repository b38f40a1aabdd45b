"""The live arena: select events, schedule moments, build a shared context, forecast and settle."""

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
"""Maps each module to the names that the rest of the package imports from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
