"""The ledger: what model calls may cost, did cost and may have cost, in the journal's database.

Before a call is sent, the most it can cost is reserved in its account and in every account around it: a question's
account lies in its run's, a run's in that of its grid, arena or tournament. The check against the limits and the
reservation are one transaction, so all processes and machines that share the database share every limit. A call is
settled with what the provider counted. A reply that was lost may have been billed: its reservation stays in the
account as unknown. If a process dies, the next one that looks releases what was reserved and never sent, and counts
what was sent as unknown.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from math import ceil, inf
from secrets import randbits
from typing import NamedTuple
from weakref import WeakValueDictionary

from foretell.models.canonical import content_key
from foretell.models.database.interface import Database, SqlRow, Statements
from foretell.models.database.sqlite import MEMORY, SqliteDatabase
from foretell.models.model import Reply, Request
from foretell.models.prices import PriceList, TokenPrice
from foretell.models.waiting import StandingStill

NANO = 1_000_000_000
"""Amounts are stored as whole nanodollars, so that sums are exact."""
LOOK_ELSEWHERE = 0.5
"""Seconds between checks whether calls of other processes have ended."""
LEAST_OUTPUT_TOKENS = 16
"""No call is made for a shorter reply unless replies this short were seen. OpenAI accepts no lower limit."""
READING_MARGIN = 1.25
"""The next input may cost more of its estimate than those before."""
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
"""Accounts of runs that have none, from what the journal knows: what they paid, and lost replies as unknown."""

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
"""Accounts that one query names; more are found among all."""


@dataclass(frozen=True, kw_only=True)
class Money:
    """Dollars in four figures. Only what is billed, unknown or reserved counts against a limit.

    >>> str(Money(billed=0.5, unknown=0.25)), Money(billed=0.5, reused=0.1, reserved=0.25).used
    ('$0.5000 billed, $0.2500 unknown', 0.75)
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
        """What was added since."""
        return Money(**{name: round(value - getattr(before, name), 9) for name, value in vars(self).items()})

    def __str__(self) -> str:
        """For people. What is zero is left out, except what was billed."""
        return self.text()

    def text(self, decimals: int = 4) -> str:
        """For people, with so many decimals.

        >>> Money(reused=0.125).text(2)
        '$0.00 billed, $0.12 reused'
        """
        others = {"reused": self.reused, "unknown": self.unknown, "reserved": self.reserved}
        shown = {"billed": self.billed} | {name: dollars for name, dollars in others.items() if dollars > 5e-7}
        return ", ".join(f"${dollars:.{decimals}f} {name}" for name, dollars in shown.items())

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
    """Input tokens that no tokenizer exceeds: one for each byte."""

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
        # The tiny extra is what floats lose in additions.
        return int(min(affordable + 1e-6, self.output))

    def share(self, read: float) -> float:
        """What share of the estimate for input these dollars are."""
        fee = 0.0 if self.price is None else self.price.request * self.factor
        estimated = self.dollars(0) - fee
        return (read - fee) / estimated if estimated > 0 else 1.0


class Account(NamedTuple):
    """A place where costs are counted, with or without a limit."""

    id: str
    """The same in every process that works on the same thing, such as the id of a run."""
    name: str
    """What it is, for messages: question, run, grid, arena, tournament."""
    dollars: float | None = None
    """The limit; None for none."""
    within: str = ""
    """Id of the account directly around it."""


class CallRequest(NamedTuple):
    """A call that needs money."""

    account: str
    key: str
    """The journal key of the request."""
    model: str
    estimate: CallEstimate
    batch: bool = False
    """Whether it is submitted in a batch: one that a killed process submitted is not paid again."""


class Grant(NamedTuple):
    """Money reserved for one call."""

    call: int
    """The number of the open call."""
    account: str
    amount: int
    """The reservation in nanodollars."""
    output: int
    """Maximum output tokens."""
    limited: bool
    """Whether some account has a limit, so that the reply must be cut off at `output`."""

    @property
    def dollars(self) -> float:
        """The reservation."""
        return self.amount / NANO


class Shortage(NamedTuple):
    """Why there is no money for a call now."""

    account: str
    """Id of the account that lacks it."""
    message: str = ""
    """Why there will never be any; empty if calls that are under way have to end first."""
    unpriced: bool = False
    """Whether there is a limit and the price of the model is not known."""


class _Level(NamedTuple):
    """One of the accounts around a call."""

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
    """What the replies of a model have taught about the cost of calls."""

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
        # Runs that follow each other in a process open the same database anew.
        place = database.place
        self._learned = {} if place == MEMORY else _LEARNED.setdefault(place, {})
        self._queues = WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock]()
        """Calls that wait for money, by the account that lacks it."""
        self._first: set[asyncio.Future[None]] = set()
        """The first in each queue of calls that wait for money."""

    @classmethod
    def in_memory(cls) -> "Ledger":
        """A ledger of this process alone."""
        database = SqliteDatabase(MEMORY)
        database.migrate("ledger", (LEDGER_TABLES,))
        return cls(database)

    # Accounts.

    def open(self, account: Account) -> None:
        """Create an account or change its limit. What it has used so far counts in every account put around it."""

        def work(statements: Statements) -> None:
            # A limit is rounded down to whole nanodollars.
            most = None if account.dollars is None else int(account.dollars * NANO + 1e-3)
            statements.write(_OPEN, (account.id, account.name, most))
            statements.write(_ENCLOSE, (account.id, account.id))
            _enclose(statements, account.id, account.within)

        self.database.joined(work, alone=_LOCK)

    def enclose(self, accounts: Iterable[str], around: str) -> None:
        """Put accounts, of those that exist, into another one. What they have used so far counts there."""

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
        named = list(accounts)
        self.settle_ended()
        query, values = "SELECT id, billed, unknown, reserved FROM account", tuple[str, ...]()
        if len(named) <= MOST_NAMED:
            query, values = f"{query} WHERE id IN ({', '.join('?' * len(named)) or 'NULL'})", tuple(named)
        wanted = set(named)
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

    def reserve(self, asked: CallRequest) -> Grant | Shortage:
        """Reserve the most a call can cost, or what is left if no other call is under way."""
        call, tries = randbits(62) + 1, count()

        def work(statements: Statements) -> Grant | Shortage:
            ((limits, room),) = statements.read(_ROOM, (asked.account,))
            if limits and asked.estimate.price is None:
                return Shortage(account=asked.account, unpriced=True)
            # A transaction whose end was not heard of is executed again.
            known = statements.read(f"{_CALLS} WHERE id = ?", (call,)) if next(tries) else []
            if asked.batch and not known:
                known = self._submitted(statements, asked)
            if known:
                amount = known[0][4]
                output = max(1, asked.estimate.longest(amount / NANO))
                return Grant(known[0][0], asked.account, amount, output, bool(limits))
            amount, output = _nano(self._careful(asked).dollars()), asked.estimate.output
            if limits and room < amount:
                found = self._what_is_left(statements, asked)
                if isinstance(found, Shortage):
                    return found
                amount, output = found
            if not self._admitted(statements, asked.account, amount):
                return Shortage(account=asked.account)
            row = (call, asked.account, bytes.fromhex(asked.key), self.database.life.id, amount, RESERVED)
            statements.write(_BEGIN, row)
            return Grant(call, asked.account, amount, output, bool(limits))

        return self.database.joined(work)

    def _admitted(self, statements: Statements, account: str, amount: int) -> bool:
        """Count a reservation in every account around. On a server, another machine may have been quicker."""
        if not self.database.shared:
            statements.write(_ADD_AROUND, (0, 0, amount, account))
            return True
        admitted: list[str] = []
        for (around,) in statements.read(_AROUND, (account,)):
            if not statements.write(_ADMIT, (amount, around, amount)):
                for one in admitted:
                    statements.write(_ADD, (0, 0, -amount, one))
                return False
            admitted.append(around)
        return True

    def _what_is_left(self, statements: Statements, asked: CallRequest) -> tuple[int, int] | Shortage:
        """The amount to reserve, if not all that a call may cost is there, and the output tokens it pays for."""
        estimate, most = self._careful(asked), _nano(self._careful(asked).dollars())
        self._settle_ended(statements)
        short = [level for level in _levels(statements, asked.account) if level.room < most]
        if not short:
            return most, estimate.output
        for level in short:
            if statements.read(_UNDER_WAY, (level.id,)):
                return Shortage(account=level.id)
        tightest = min(short, key=lambda level: level.room)
        learned = self._learned.get(asked.model) or _Learned()
        estimate = self._measured(asked, estimate)
        output = estimate.longest(max(0.0, tightest.room) / NANO)
        least = min(learned.least, estimate.output)
        if output < least:
            return Shortage(account=tightest.id, message=tightest.shortage(estimate.dollars(least)))
        return min(int(tightest.room), _nano(estimate.dollars(output))), output

    def _careful(self, asked: CallRequest) -> CallEstimate:
        """The estimate with the most input tokens there can be, as far as replies of the model have shown them."""
        estimate, learned = asked.estimate, self._learned.get(asked.model)
        if learned is None or learned.reading is None:
            return estimate._replace(input=max(estimate.input, estimate.bound))
        tokens = max(estimate.input, ceil(estimate.input * learned.reading * READING_MARGIN))
        return estimate._replace(input=min(tokens, max(estimate.input, estimate.bound)))

    def _measured(self, asked: CallRequest, careful: CallEstimate) -> CallEstimate:
        """The estimate for a call that takes what is left: its input as replies have shown it, with a margin.

        A cautious estimate may be twice the true count, and would leave the money for one call unused. Which of the two
        measures is the higher one depends on the tokenizer and on the text.
        """
        learned = self._learned.get(asked.model)
        if learned is None or learned.reading is None:
            return careful
        tokens = READING_MARGIN * max(asked.estimate.input * learned.reading, asked.estimate.bound * learned.per_byte)
        return careful._replace(input=min(ceil(tokens), careful.input))

    def _submitted(self, statements: Statements, asked: CallRequest) -> list[SqlRow]:
        """The open call of a batch that an ended process submitted: it is continued here."""
        query = f"{_CALLS} WHERE request = ? AND account = ? AND state < {UNKNOWN}"
        for row in statements.read(query, (bytes.fromhex(asked.key), asked.account)):
            owner = row[3]
            if owner == 0 or not self.database.life.alive(owner):
                statements.write("UPDATE open_call SET owner = ? WHERE id = ?", (self.database.life.id, row[0]))
                return [row]
        return []

    def learn(self, model: str, estimate: CallEstimate, read: float, written: int) -> None:
        """Learn from a complete reply: what its input cost in dollars without a cache, and its length in tokens."""
        known = self._learned.setdefault(model, _Learned())
        known.reading = max(known.reading or 0.0, estimate.share(read))
        known.per_byte = max(known.per_byte, estimate._replace(input=estimate.bound).share(read))
        known.least = max(1, min(known.least, written))

    def sending(self, call: int) -> bool:
        """Record that a call is about to be sent. False if it was released meanwhile: then it must not be sent."""
        sent = "UPDATE open_call SET state = ? WHERE id = ? AND owner = ? AND state < ?"
        return bool(self.database.write(sent, (SENT, call, self.database.life.id, UNKNOWN)))

    def sending_batch(self, keys: Iterable[str], *, sent: bool = True) -> None:
        """Record that the calls for these requests are about to be submitted in a batch, or were not taken."""
        change = "UPDATE open_call SET state = ? WHERE request = ? AND owner = ? AND state = ?"
        me, states = self.database.life.id, (SENT, RESERVED) if sent else (RESERVED, SENT)
        self.database.write_many(change, [(states[0], bytes.fromhex(key), me, states[1]) for key in keys])

    def waiting(self, grant: Grant) -> None:
        """A call was not billed; its money stays reserved until it is sent again."""
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
        """The reply of a call was lost, and it may have been billed if it was sent.

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

    # What processes that have ended left behind.

    def settle_ended(self) -> None:
        """Release what ended processes reserved and never sent; what they sent is unknown."""
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
                # The provider holds it. Whoever asks for it next continues this call and gets the reply.
                statements.write("UPDATE open_call SET owner = 0 WHERE id = ?", (id,))
            elif state == SENT:
                if statements.write("UPDATE open_call SET state = ? WHERE id = ? AND state = ?", (UNKNOWN, id, SENT)):
                    _add(statements, self.database, (0, amount, -amount), account)
            elif statements.write("DELETE FROM open_call WHERE id = ? AND state = ?", (id, RESERVED)):
                _add(statements, self.database, (0, 0, -amount), account)

    # Waiting until there is room.

    async def reserve_soon(self, asked: CallRequest) -> Grant | Shortage:
        """Reserve money as soon as there is room. A shortage is final.

        Of the calls that wait for the same account only the first asks again, each time another call has ended.
        """
        answer = await self._asked(asked)
        if isinstance(answer, Grant) or answer.message or answer.unpriced:
            return answer
        place, new = (asyncio.get_running_loop(), answer.account), asyncio.Lock()
        queue = self._queues.setdefault(place, new)
        with StandingStill():
            async with queue:
                while True:
                    answer = await self._asked(asked)
                    if isinstance(answer, Grant) or answer.message or answer.unpriced:
                        return answer
                    await self._next_end()

    async def _asked(self, asked: CallRequest) -> Grant | Shortage:
        answer = asyncio.ensure_future(self.database.grouped(lambda: self.reserve(asked), others=len(self._first)))
        try:
            return await (asyncio.shield(answer) if self.database.shared else answer)
        except asyncio.CancelledError:
            if not answer.cancelled():  # It is reserved, or will be, and nobody is there to use it.
                answer.add_done_callback(self._give_back)
            raise

    def _give_back(self, answer: "asyncio.Future[Grant | Shortage]") -> None:
        if not answer.cancelled() and answer.exception() is None and isinstance(grant := answer.result(), Grant):
            self.database.later(lambda: self.release(grant))

    async def _next_end(self) -> None:
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._first.add(ended)
        try:
            await asyncio.wait([ended], timeout=LOOK_ELSEWHERE)
        finally:
            self._first.discard(ended)

    def call_ended(self) -> None:
        """A call of this process has ended: whoever waits for money looks again."""
        for first in tuple(self._first):
            loop = first.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, first)


def charged_reply(reply: Reply, request: Request, prices: PriceList) -> Reply:
    """The reply with what it is charged at: the whole reservation if its tokens were not counted credibly."""
    if reply.charged is not None:
        return reply
    dollars = prices.charged(request, reply)
    if reply.tokens.estimated and reply.dollars is None and dollars is not None:
        for reservation in request.reservations:
            dollars = reservation.grant.dollars
    charged = object.__new__(Reply)  # Half the cost of `replace`, and every call goes through it.
    vars(charged).update(vars(reply), charged=dollars)
    return charged


_LOCK = "ledger"


def _wake(first: "asyncio.Future[None]") -> None:
    if not first.done():
        first.set_result(None)


def _money(billed: int, unknown: int, reserved: int) -> Money:
    return Money(billed=billed / NANO, unknown=unknown / NANO, reserved=reserved / NANO)


def _nano(dollars: float) -> int:
    """An amount in nanodollars, rounded up, so that a limit holds."""
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
    """Add to an account and to all around it: on a server in one order, so that nobody blocks anybody."""
    if not database.shared:
        statements.write(_ADD_AROUND, (*amounts, account))
        return
    for (around,) in statements.read(_AROUND, (account,)):
        statements.write(_ADD, (*amounts, around))


def _in_batch(statements: Statements, request: bytes) -> bool:
    """Whether the journal says which batch holds a request."""
    return bool(statements.read("SELECT 1 FROM kept WHERE key = ?", (bytes.fromhex(batch_key(request.hex())),)))


def batch_key(key: str) -> str:
    """Where the journal records the batch that holds a request."""
    return content_key(["batch", key])
