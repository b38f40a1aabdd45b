"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.arena.forecast import make_forecasts as make_forecasts
from foretell.arena.forecast import with_arena_rules as with_arena_rules
from foretell.arena.live import LiveArena as LiveArena
from foretell.arena.score_data import read_arena_table as read_arena_table
from foretell.arena.select import Schedule as Schedule
from foretell.arena.select import SelectionRules as SelectionRules
from foretell.arena.select import slot as slot
from foretell.arena.spec import ARENA_PREFIX as ARENA_PREFIX
from foretell.arena.spec import ArenaSpec as ArenaSpec
from foretell.arena.spec import arena_from_json as arena_from_json
from foretell.arena.spec import arena_of as arena_of
from foretell.arena.spec import read_arena as read_arena
from foretell.arena.stages import ArenaService as ArenaService
from foretell.arena.stages import SettleReport as SettleReport
from foretell.arena.stages import make_contexts as make_contexts
from foretell.arena.status import arena_status as arena_status
from foretell.arena.status import event_history as event_history
from foretell.arena.store import ArenaStore as ArenaStore
from foretell.arena.store import MIGRATIONS as MIGRATIONS
from foretell.arena.store import Moment as Moment
from foretell.arena.store import SCHEMA_NAME as SCHEMA_NAME
