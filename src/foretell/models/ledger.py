"""The ledger: what model calls may cost, did cost and may have cost, in the journal's database.

Before a call is sent, the most it can cost is reserved in its account and in every enclosing account. A question's
account is part of its run's, a run's is part of that of its grid, arena or tournament. The check against the limits and
the reservation are one transaction, so all processes and machines that share the database share every limit. A call is
settled at the provider's token counts. A reply that was lost may have been billed, so its reservation stays in the
account as unknown. If a process dies, another one releases what was reserved and never sent, and counts what was sent
as unknown.
"""

import asyncio
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from math import ceil, inf
from secrets import randbits
from typing import NamedTuple
from weakref import WeakValueDictionary, finalize

from foretell.frozen import frozen
from foretell.models.canonical import content_key
from foretell.models.database.interface import Database, SqlRow, Statements
from foretell.models.database.sqlite import MEMORY, SqliteDatabase
from foretell.models.model import Reply, Request
from foretell.models.prices import PriceList
from foretell.models.reservation import NANO, Grant
from foretell.models.token_price import TokenPrice
from foretell.models.waiting import PausedClocks
from foretell.number_text import dollars

LOOK_ELSEWHERE = 0.5
"""Seconds between checks whether calls of other processes have ended."""
LEAST_OUTPUT_TOKENS = 16
"""Minimum length of a reply worth paying for, unless shorter ones have been received. OpenAI's lowest limit."""
READING_MARGIN = 1.25
"""Safety factor, because the next input may cost a larger share of its estimate than earlier ones."""
RESERVED, SENT, UNKNOWN = 0, 1, 2
"""States of an open call: not sent yet, sent, and lost."""

LEDGER_TABLES = """
    CREATE TABLE account (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, most INTEGER, billed INTEGER NOT NULL DEFAULT 0,
        unknown INTEGER NOT NULL DEFAULT 0, reserved INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE account_around (account TEXT NOT NULL, around TEXT NOT NULL, PRIMARY KEY (account, around));
    CREATE TABLE open_call (
        id INTEGER PRIMARY KEY, account TEXT NOT NULL, request BLOB NOT NULL, owner INTEGER NOT NULL,
        amount INTEGER NOT NULL, state INTEGER NOT NULL
    );
    """
ACCOUNTS_OF_RUNS = """
    INSERT INTO account (id, name, billed, unknown)
    SELECT run, 'run', CAST(round(1e9 * sum(coalesce(kept.dollars, 0.0))) AS INTEGER),
        CAST(round(1e9 * sum(coalesce(sent.dollars, 0.0)
            * (sends - unbilled - CASE WHEN kept.key IS NULL THEN 0 ELSE 1 END))) AS INTEGER)
    FROM sent LEFT JOIN kept ON kept.key = sent.key WHERE run IS NOT NULL GROUP BY run ON CONFLICT DO NOTHING;
    INSERT INTO account_around SELECT id, id FROM account WHERE id <> '' ON CONFLICT DO NOTHING;
    """
"""Creates accounts for runs without one from the journal. Lost replies count as unknown."""

_OPEN = """
INSERT INTO account (id, name, most) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, most = excluded.most"""
_ENCLOSE = "INSERT INTO account_around VALUES (?, ?) ON CONFLICT DO NOTHING"
_AROUND = "SELECT around FROM account_around WHERE account = ? ORDER BY around"
_INSIDE = "SELECT account FROM account_around WHERE around = ? ORDER BY account"
_TOTALS = "SELECT billed, unknown, reserved FROM account WHERE id = ?"
_ADD = "UPDATE account SET billed = billed + ?, unknown = unknown + ?, reserved = reserved + ? WHERE id = ?"
_ADD_AROUND = """
UPDATE account SET billed = billed + ?, unknown = unknown + ?, reserved = reserved + ?
WHERE id IN (SELECT around FROM account_around WHERE account = ?)"""
_ADMIT = """
UPDATE account SET reserved = reserved + ?
WHERE id = ? AND (most IS NULL OR most - billed - unknown - reserved >= ?)"""
_LEVELS = """
SELECT account.id, name, most, billed, unknown, reserved FROM account_around JOIN account ON account.id = around
WHERE account_around.account = ? ORDER BY account.id"""
_ROOM = """
SELECT count(most), min(most - billed - unknown - reserved) FROM account_around JOIN account ON account.id = around
WHERE account_around.account = ?"""
_END = "DELETE FROM open_call WHERE id = ? AND state < ?"
_BEGIN = "INSERT INTO open_call VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_CALLS = "SELECT id, account, request, owner, amount, state FROM open_call"
_UNDER_WAY = f"""
SELECT 1 FROM open_call JOIN account_around ON account_around.account = open_call.account
WHERE around = ? AND state < {UNKNOWN} AND owner <> 0 LIMIT 1"""
_LOST = f"""
SELECT count(*) FROM open_call JOIN account_around ON account_around.account = open_call.account
WHERE around = ? AND state = {UNKNOWN}"""
MOST_NAMED = 500
"""Maximum number of ids in one query; with more, all accounts are read."""


@frozen
class Money:
    """Dollars in four figures. Only what is billed, unknown or reserved counts against a limit.

    >>> str(Money(billed=0.5, unknown=0.25)), Money(billed=0.5, reused=0.1, reserved=0.25).used
    ('$0.50 billed, $0.25 unknown', 0.75)
    """

    billed: float = 0.0
    """What providers charged for replies."""
    reused: float = 0.0
    """What replies taken from the journal cost when they were first received. They are free now."""
    unknown: float = 0.0
    """The most that lost replies may have cost."""
    reserved: float = 0.0
    """The most that open calls can cost."""

    @property
    def used(self) -> float:
        """What counts against a limit."""
        return round(self.billed + self.unknown + self.reserved, 9)

    def __add__(self, other: "Money") -> "Money":
        """Both together."""
        return Money(**{name: round(value + getattr(other, name), 9) for name, value in vars(self).items()})

    def __sub__(self, before: "Money") -> "Money":
        """The difference to an earlier amount."""
        return Money(**{name: round(value - getattr(before, name), 9) for name, value in vars(self).items()})

    def __str__(self) -> str:
        """Return a readable text. Amounts of zero are left out, except what was billed."""
        others = {"reused": self.reused, "unknown": self.unknown, "reserved": self.reserved}
        shown = {"billed": self.billed} | {name: amount for name, amount in others.items() if amount > 5e-7}
        return ", ".join(f"{dollars(amount)} {name}" for name, amount in shown.items())

    def to_dict(self) -> dict[str, float]:
        """The four figures by name."""
        return {name: round(value, 9) for name, value in vars(self).items()}


class CallEstimate(NamedTuple):
    """The most a call can cost, as a function of the reply's length."""

    input: int
    """The most input tokens that a request like this is known to have."""
    output: int
    """Maximum output tokens if the budget has room."""
    price: TokenPrice | None = None
    factor: float = 1.0
    """Price multiplier of the service tier."""
    bound: int = 0
    """Upper bound on input tokens for any tokenizer: one for each byte."""

    def dollars(self, output: float | None = None) -> float:
        """The cost with a reply of this many tokens, or of the longest reply if no number is given."""
        if self.price is None:
            return 0.0
        return self.price.most(self.input, int(self.output if output is None else output)) * self.factor

    def longest(self, dollars: float) -> int:
        """Tokens of the longest reply this amount pays for."""
        most = self.dollars(0)
        per_token = (self.dollars(1_000_000) - most) / 1_000_000
        free = inf if most <= dollars else 0.0
        affordable = (dollars - most) / per_token if per_token > 0 else free
        # The tiny extra compensates for rounding errors of floats.
        return int(min(affordable + 1e-6, self.output))

    def share(self, input_dollars: float) -> float:
        """Return these dollars as a share of the estimated cost of the input."""
        fee = 0.0 if self.price is None else self.price.request * self.factor
        estimated = self.dollars(0) - fee
        return (input_dollars - fee) / estimated if estimated > 0 else 1.0


class Account(NamedTuple):
    """An account in which costs are counted, with or without a limit."""

    id: str
    """The same in every process that works on the same thing, such as the id of a run."""
    name: str
    """What the account is for, in messages: question, run, grid, arena, tournament."""
    dollars: float | None = None
    """The limit in dollars; None if there is none."""
    within: str = ""
    """Id of the directly enclosing account."""


class CallRequest(NamedTuple):
    """A call that needs money."""

    account: str
    key: str
    """The journal key of the request."""
    model: str
    estimate: CallEstimate
    batch: bool = False
    """Whether it is submitted in a batch. A call that a killed process submitted is not paid again."""


class Shortage(NamedTuple):
    """Why there is no money for a call now."""

    account: str
    """Id of the account without enough money."""
    message: str = ""
    """Why there will never be any; empty if open calls have to end first."""
    unpriced: bool = False
    """Whether there is a limit and the price of the model is not known."""


class _Level(NamedTuple):
    """One of the accounts of a call."""

    id: str
    name: str
    most: int | None
    billed: int
    unknown: int
    reserved: int

    @property
    def room(self) -> float:
        return inf if self.most is None else self.most - self.billed - self.unknown - self.reserved

    def shortage(self, least: float) -> str:
        """Why a call is refused, in numbers that add up."""
        parts = {"billed": self.billed, "unknown": self.unknown, "reserved": self.reserved}
        micro = {name: round(amount / 1000) for name, amount in parts.items()}
        left = round((self.most or 0) / 1000) - sum(micro.values())
        used = [f"{_plain(amount)} {name}" for name, amount in micro.items() if amount or name == "billed"]
        whole = _plain(round((self.most or 0) / 1000))
        return (
            f"the budget of the {self.name} allows {whole} dollars: {', '.join(used)}, "
            f"{_plain(max(0, left))} left; the next call needs {_plain(ceil(least * 1e6))}"
        )


def _plain(micro: int) -> str:
    """Dollars from millionths, without an exponent."""
    return f"{micro / 1e6:,.6f}".rstrip("0").rstrip(".")


@dataclass(kw_only=True)
class _Learned:
    """Observed costs of calls to a model."""

    reading: float | None = None
    """The largest share of its estimate that input has cost so far; None before the first reply."""
    per_byte: float = 0.0
    """The most tokens per byte of input so far."""
    least: int = LEAST_OUTPUT_TOKENS
    """Tokens of the shortest reply worth asking for."""


_LEARNED: dict[str, dict[str, _Learned]] = {}
"""By database and model."""


class Ledger:
    """The accounts in one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        # Consecutive runs in one process reopen the same database.
        place = database.place
        self._learned = {} if place == MEMORY else _LEARNED.setdefault(place, {})
        self._queues = WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock]()
        """Calls that wait for money, by account."""
        self._first: set[asyncio.Future[None]] = set()
        """The first in each queue of calls that wait for money."""

    @classmethod
    def in_memory(cls) -> "Ledger":
        """A ledger of this process alone. Its database is closed when the ledger is freed."""
        database = SqliteDatabase(MEMORY)
        database.migrate("ledger", (LEDGER_TABLES,))
        ledger = cls(database)
        finalize(ledger, database.close)
        return ledger

    # Accounts.

    def open(self, account: Account) -> None:
        """Create an account or change its limit. What it has used so far counts in its new enclosing accounts."""

        def work(statements: Statements) -> None:
            # A limit is rounded down to whole nanodollars.
            most = None if account.dollars is None else int(account.dollars * NANO + 1e-3)
            statements.write(_OPEN, (account.id, account.name, most))
            statements.write(_ENCLOSE, (account.id, account.id))
            _enclose(statements, account.id, account.within)

        self.database.joined(work, alone=_LOCK)

    def enclose(self, accounts: Iterable[str], around: str) -> None:
        """Put existing accounts into another one. What they have used so far counts there."""

        def work(statements: Statements) -> None:
            for account in accounts:
                if statements.read(_TOTALS, (account,)):
                    _enclose(statements, account, around)

        self.database.joined(work, alone=_LOCK)

    def money(self, account: str) -> Money:
        """What an account has used, including what ended processes left open. Zero if there is no such account."""
        return self.money_of([account]).get(account, Money())

    def money_of(self, accounts: Iterable[str]) -> dict[str, Money]:
        """What accounts have used, by id, of those that exist; see `money`."""
        ids = list(accounts)
        self.settle_ended()
        query, values = "SELECT id, billed, unknown, reserved FROM account", tuple[str, ...]()
        if len(ids) <= MOST_NAMED:
            query, values = f"{query} WHERE id IN ({', '.join('?' * len(ids)) or 'NULL'})", tuple(ids)
        wanted = set(ids)
        return {id: _money(*amounts) for id, *amounts in self.database.read(query, values) if id in wanted}

    def lost_calls(self, account: str = "") -> int:
        """Calls with a lost reply that may have been billed, in one account or in all."""
        self.settle_ended()
        if account:
            return int(self.database.read(_LOST, (account,))[0][0])
        return int(self.database.read(f"SELECT count(*) FROM open_call WHERE state = {UNKNOWN}")[0][0])

    def spend(self, account: str, dollars: float) -> str:
        """Book a cost that does not depend on tokens. Returns why it is refused; empty if it is booked."""
        amount = _nano(dollars)

        def work(statements: Statements) -> str:
            tightest = min(_levels(statements, account), key=lambda level: level.room)
            if tightest.room < amount:
                return tightest.shortage(dollars)
            _add(statements, self.database, (amount, 0, 0), account)
            return ""

        return self.database.joined(work, alone=_LOCK)

    # A call: reserved, sent, and then billed, lost or released.

    def reserve(self, request: CallRequest) -> Grant | Shortage:
        """Reserve the most a call can cost, or what is left if no other call is under way."""
        call, tries = randbits(62) + 1, count()

        def work(statements: Statements) -> Grant | Shortage:
            ((limits, room),) = statements.read(_ROOM, (request.account,))
            if limits and request.estimate.price is None:
                return Shortage(account=request.account, unpriced=True)
            # A transaction is executed again if its result was not received.
            known = statements.read(f"{_CALLS} WHERE id = ?", (call,)) if next(tries) else []
            if request.batch and not known:
                known = self._submitted(statements, request)
            if known:
                amount = known[0][4]
                output = max(1, request.estimate.longest(amount / NANO))
                return Grant(known[0][0], request.account, amount, output, bool(limits))
            amount, output = _nano(self._careful(request).dollars()), request.estimate.output
            if limits and room < amount:
                left = self._what_is_left(statements, request)
                if isinstance(left, Shortage):
                    return left
                amount, output = left
            if not self._admitted(statements, request.account, amount):
                return Shortage(account=request.account)
            row = (call, request.account, bytes.fromhex(request.key), self.database.life.id, amount, RESERVED)
            statements.write(_BEGIN, row)
            return Grant(call, request.account, amount, output, bool(limits))

        # Nothing is sent before the journal has recorded the request, which writes the reservation to disk too. If it
        # was lost before, that is noticed then; but a batch is sent as a whole, without a look at each reservation.
        return self.database.joined(work, flushed=request.batch)

    def _admitted(self, statements: Statements, account: str, amount: int) -> bool:
        """Count a reservation in every enclosing account; False if another machine took the room first."""
        if not self.database.shared:
            statements.write(_ADD_AROUND, (0, 0, amount, account))
            return True
        admitted: list[str] = []
        for (around,) in statements.read(_AROUND, (account,)):
            if not statements.write(_ADMIT, (amount, around, amount)):
                for earlier in admitted:
                    statements.write(_ADD, (0, 0, -amount, earlier))
                return False
            admitted.append(around)
        return True

    def _what_is_left(self, statements: Statements, request: CallRequest) -> tuple[int, int] | Shortage:
        """Return the amount to reserve if the full cost does not fit, and the output tokens it pays for."""
        estimate, most = self._careful(request), _nano(self._careful(request).dollars())
        self._settle_ended(statements)
        short = [level for level in _levels(statements, request.account) if level.room < most]
        if not short:
            return most, estimate.output
        for level in short:
            if statements.read(_UNDER_WAY, (level.id,)):
                return Shortage(account=level.id)
        tightest = min(short, key=lambda level: level.room)
        learned = self._learned.get(request.model) or _Learned()
        estimate = self._measured(request, estimate)
        output = estimate.longest(max(0.0, tightest.room) / NANO)
        least = min(learned.least, estimate.output)
        if output < least:
            return Shortage(account=tightest.id, message=tightest.shortage(estimate.dollars(least)))
        return min(int(tightest.room), _nano(estimate.dollars(output))), output

    def _careful(self, request: CallRequest) -> CallEstimate:
        """Return the estimate with an upper bound on input tokens, which observed replies of the model can lower."""
        estimate, learned = request.estimate, self._learned.get(request.model)
        if learned is None or learned.reading is None:
            return estimate._replace(input=max(estimate.input, estimate.bound))
        tokens = max(estimate.input, ceil(estimate.input * learned.reading * READING_MARGIN))
        return estimate._replace(input=min(tokens, max(estimate.input, estimate.bound)))

    def _measured(self, request: CallRequest, careful: CallEstimate) -> CallEstimate:
        """Return the estimate for a call that takes what is left, with observed input costs and a margin.

        A cautious estimate may be twice the true count and would leave the money for one call unused. Which of the two
        measures is higher depends on the tokenizer and on the text.
        """
        learned = self._learned.get(request.model)
        if learned is None or learned.reading is None:
            return careful
        tokens = READING_MARGIN * max(
            request.estimate.input * learned.reading, request.estimate.bound * learned.per_byte
        )
        return careful._replace(input=min(ceil(tokens), careful.input))

    def _submitted(self, statements: Statements, request: CallRequest) -> list[SqlRow]:
        """Take over the open call of a batch that an ended process submitted."""
        query = f"{_CALLS} WHERE request = ? AND account = ? AND state < {UNKNOWN}"
        for row in statements.read(query, (bytes.fromhex(request.key), request.account)):
            owner = row[3]
            if owner == 0 or not self.database.life.alive(owner):
                statements.write("UPDATE open_call SET owner = ? WHERE id = ?", (self.database.life.id, row[0]))
                return [row]
        return []

    def learn(self, model: str, estimate: CallEstimate, input_dollars: float, output_tokens: int) -> None:
        """Learn from a complete reply: what its input cost in dollars without a cache, and its length in tokens."""
        known = self._learned.setdefault(model, _Learned())
        known.reading = max(known.reading or 0.0, estimate.share(input_dollars))
        known.per_byte = max(known.per_byte, estimate._replace(input=estimate.bound).share(input_dollars))
        known.least = max(1, min(known.least, output_tokens))

    def sending(self, call: int, statements: Statements | None = None) -> bool:
        """Record that a call is about to be sent. Returns False if it was released and must not be sent."""
        update = "UPDATE open_call SET state = ? WHERE id = ? AND owner = ? AND state < ?"
        return bool((statements or self.database).write(update, (SENT, call, self.database.life.id, UNKNOWN)))

    def sending_batch(self, keys: Iterable[str], *, sent: bool = True) -> None:
        """Record that the calls for these requests are about to be submitted in a batch, or were not accepted."""
        change = "UPDATE open_call SET state = ? WHERE request = ? AND owner = ? AND state = ?"
        me, states = self.database.life.id, (SENT, RESERVED) if sent else (RESERVED, SENT)
        self.database.write_many(change, [(states[0], bytes.fromhex(key), me, states[1]) for key in keys])

    def waiting(self, grant: Grant) -> None:
        """Record that a call was not billed. Its money stays reserved until it is sent again."""
        self.database.write("UPDATE open_call SET state = ? WHERE id = ? AND state = ?", (RESERVED, grant.call, SENT))

    def bill(self, grant: Grant, dollars: float) -> None:
        """End a call with its cost."""
        self.database.joined(lambda statements: self.bill_in(statements, grant, dollars))

    def bill_in(self, statements: Statements, grant: Grant, dollars: float) -> None:
        """End a call with its cost, within a transaction."""
        self._end(statements, grant, _nano(dollars))

    def release(self, grant: Grant) -> None:
        """End a call that was certainly not billed."""
        self.database.joined(lambda statements: self._end(statements, grant, 0))

    def lose(self, grant: Grant) -> None:
        """Record that the reply of a call was lost. It may have been billed if it was sent.

        If the reply arrives after all, it is billed.
        """

        def work(statements: Statements) -> None:
            lost = "UPDATE open_call SET state = ? WHERE id = ? AND state = ?"
            if statements.write(lost, (UNKNOWN, grant.call, SENT)):
                _add(statements, self.database, (0, grant.amount, -grant.amount), grant.account)
            elif statements.write("DELETE FROM open_call WHERE id = ? AND state = ?", (grant.call, RESERVED)):
                _add(statements, self.database, (0, 0, -grant.amount), grant.account)

        self.database.joined(work)

    def _end(self, statements: Statements, grant: Grant, billed: int) -> None:
        amount = grant.amount
        if statements.write(_END, (grant.call, UNKNOWN)):
            _add(statements, self.database, (billed, 0, -amount), grant.account)
        elif statements.write("DELETE FROM open_call WHERE id = ?", (grant.call,)):
            _add(statements, self.database, (billed, -amount, 0), grant.account)

    # Open calls of ended processes.

    def settle_ended(self) -> None:
        """Release what ended processes reserved and never sent. What they sent counts as unknown."""
        query = f"SELECT 1 FROM open_call WHERE state < {UNKNOWN} AND owner <> 0 LIMIT 1"
        if not self.database.read_only and self.database.read(query):
            self.database.joined(self._settle_ended, alone=_LOCK)

    def _settle_ended(self, statements: Statements) -> None:
        calls = statements.read(f"{_CALLS} WHERE state < {UNKNOWN} AND owner <> 0")
        ended = self.database.life.gone({row[3] for row in calls}) if calls else set[int]()
        for id, account, request, owner, amount, state in calls:
            if owner not in ended:
                continue
            if state == SENT and _in_batch(statements, request):
                # The provider has the batch. The next caller continues this call and gets the reply.
                statements.write("UPDATE open_call SET owner = 0 WHERE id = ?", (id,))
            elif state == SENT:
                if statements.write("UPDATE open_call SET state = ? WHERE id = ? AND state = ?", (UNKNOWN, id, SENT)):
                    _add(statements, self.database, (0, amount, -amount), account)
            elif statements.write("DELETE FROM open_call WHERE id = ? AND state = ?", (id, RESERVED)):
                _add(statements, self.database, (0, 0, -amount), account)

    # Waiting until there is room.

    async def reserve_soon(self, request: CallRequest) -> Grant | Shortage:
        """Reserve money as soon as there is room. A shortage is final.

        Of the calls that wait for the same account only the first asks again, each time another call has ended.
        """
        answer = await self._try_reserve(request)
        if isinstance(answer, Grant) or answer.message or answer.unpriced:
            return answer
        place, new = (asyncio.get_running_loop(), answer.account), asyncio.Lock()
        queue = self._queues.setdefault(place, new)
        with PausedClocks():
            async with queue:
                while True:
                    with self._next_end() as ended:
                        answer = await self._try_reserve(request)
                        if isinstance(answer, Grant) or answer.message or answer.unpriced:
                            return answer
                        await asyncio.wait([ended], timeout=LOOK_ELSEWHERE)

    async def _try_reserve(self, request: CallRequest) -> Grant | Shortage:
        answer = asyncio.ensure_future(self.database.grouped(lambda: self.reserve(request), others=len(self._first)))
        try:
            return await (asyncio.shield(answer) if self.database.shared else answer)
        except asyncio.CancelledError:
            if not answer.cancelled():  # The reservation succeeds although no caller is left to use it.
                answer.add_done_callback(self._give_back)
            raise

    def _give_back(self, answer: "asyncio.Future[Grant | Shortage]") -> None:
        if not answer.cancelled() and answer.exception() is None and isinstance(grant := answer.result(), Grant):
            self.database.later(lambda: self.release(grant))

    @contextmanager
    def _next_end(self) -> "Generator[asyncio.Future[None]]":
        """A future that is done once a call of this process has ended, also while money is asked for."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._first.add(ended)
        try:
            yield ended
        finally:
            self._first.discard(ended)

    def call_ended(self) -> None:
        """Wake calls that wait for money, because a call of this process has ended."""
        for first in tuple(self._first):
            loop = first.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, first)


def charged_reply(reply: Reply, request: Request, prices: PriceList) -> Reply:
    """Return the reply with its charge, which is the whole reservation if the token counts are not credible."""
    if reply.charged is not None:
        return reply
    dollars = prices.charged(request, reply)
    if reply.tokens.estimated and reply.dollars is None and dollars is not None:
        for reservation in request.reservations:
            dollars = reservation.grant.dollars
    charged = object.__new__(Reply)  # Twice as fast as `replace`; every call goes through it.
    vars(charged).update(vars(reply), charged=dollars)
    return charged


_LOCK = "ledger"


def _wake(first: "asyncio.Future[None]") -> None:
    if not first.done():
        first.set_result(None)


def _money(billed: int, unknown: int, reserved: int) -> Money:
    return Money(billed=billed / NANO, unknown=unknown / NANO, reserved=reserved / NANO)


def _nano(dollars: float) -> int:
    """Return an amount in nanodollars, rounded up so that a limit is never exceeded."""
    return ceil(dollars * NANO - 1e-3)


def _enclose(statements: Statements, account: str, within: str) -> None:
    for (around,) in statements.read(_AROUND, (within,)):
        if statements.write(_ENCLOSE, (account, around)):
            statements.write(_ADD, (*statements.read(_TOTALS, (account,))[0], around))
            for (inner,) in statements.read(_INSIDE, (account,)):
                statements.write(_ENCLOSE, (inner, around))


def _levels(statements: Statements, account: str) -> list[_Level]:
    return [_Level(*row) for row in statements.read(_LEVELS, (account,))]


def _add(statements: Statements, database: Database, amounts: tuple[int, int, int], account: str) -> None:
    """Add to an account and all enclosing ones; on a server in a fixed order, which prevents deadlocks."""
    if not database.shared:
        statements.write(_ADD_AROUND, (*amounts, account))
        return
    for (around,) in statements.read(_AROUND, (account,)):
        statements.write(_ADD, (*amounts, around))


def _in_batch(statements: Statements, request: bytes) -> bool:
    """Whether the journal records a batch for a request."""
    return bool(statements.read("SELECT 1 FROM kept WHERE key = ?", (bytes.fromhex(batch_key(request.hex())),)))


def batch_key(key: str) -> str:
    """Return the journal key of the record that names the batch of a request."""
    return content_key(["batch", key])
