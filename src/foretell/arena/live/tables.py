"""The tables of an arena, beside those of runs, in words that SQLite and PostgreSQL share."""

PART = "arena"
MIGRATIONS = (
    """
    create table arena (name text primary key, spec text not null, created text not null);
    create table entry (
        id integer primary key, arena text not null, name text not null, run text not null, spec text not null,
        since text not null, unique (arena, name, run)
    );
    create table listed (
        arena text not null, event text not null, platform text not null, category text not null,
        format text not null, first_seen text not null, last_seen text not null, status text not null,
        closes_at text, volume real, decision text not null, reason text not null, decided_at text not null,
        settled integer not null default 0, body text not null, primary key (arena, event)
    );
    create table quote (
        arena text not null, event text not null, target text not null, at text not null,
        last real, yes_bid real, yes_ask real, no_ask real, volume real, primary key (arena, event, target, at)
    ) without rowid;
    create table moment (
        id integer primary key, arena text not null, event text not null, number integer not null,
        planned_at text not null, taken_at text, closes_at text, deadline text, state text not null,
        reason text not null default '', attempts integer not null default 0, over integer not null default 0,
        context text, targets text, quotes blob, unique (arena, event, number)
    );
    create index moment_by_state on moment (arena, state, over, planned_at);
    create table asked (moment integer primary key, question text not null);
    create table context (
        digest text primary key, at text not null, dollars real not null, story text not null, body text not null
    );
    create table outcome (
        arena text not null, event text not null, target text not null, outcome integer, payoff real,
        resolved_at text, provenance text not null, told_at text not null, primary key (arena, event, target)
    ) without rowid;
    create table said (
        seq integer primary key, entry integer not null, moment integer not null, trial integer not null,
        p blob not null, stated blob, at text not null, dollars real not null, seconds real not null,
        unique (moment, entry, trial)
    );
    create table tally (
        entry integer primary key, forecasts integer not null, dollars real not null, seconds real not null
    );
    """,
)
"""Each entry brings the tables one version further; existing entries never change.

`said` is compact so that standings are read at once: an entry and a moment by number, and probabilities as float64,
little endian, in the order of the moment's `targets` (a JSON list of ids). `quotes` holds four float64 per target in
the same order: last, yes bid, yes ask, no ask; NaN where there is none. `tally` is what `said` adds up to.
"""
