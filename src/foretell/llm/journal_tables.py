"""The tables of the journal, and what is asked of them, in words that SQLite and PostgreSQL share."""

MIGRATIONS = (
    # Two tables, each written once per call: a row that is added small and grows later costs SQLite a rebalanced page.
    """
    CREATE TABLE IF NOT EXISTS sent (
        key BLOB PRIMARY KEY, sends INTEGER NOT NULL, unbilled INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS kept (
        key BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, model TEXT NOT NULL, slot TEXT NOT NULL,
        input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL, dollars REAL, answer BLOB NOT NULL
    );
    """,
    "ALTER TABLE sent ADD COLUMN owner INTEGER;",
    # What processes share: up to when a provider is booked, who may have how many calls at once, what a run has spent.
    """
    CREATE TABLE pace (place TEXT PRIMARY KEY, requests REAL NOT NULL, tokens REAL NOT NULL, closed REAL NOT NULL);
    CREATE TABLE lease (
        place TEXT NOT NULL, owner INTEGER NOT NULL, part INTEGER NOT NULL, held INTEGER NOT NULL,
        wanted INTEGER NOT NULL, PRIMARY KEY (place, owner, part)
    );
    CREATE TABLE drawn (run TEXT PRIMARY KEY, dollars REAL NOT NULL);
    """,
)
"""Each entry brings the tables one version further; existing entries never change."""
NOBODY = 0
INTEND = """
INSERT INTO sent (key, sends, owner) VALUES (?, 1, ?)
ON CONFLICT (key) DO UPDATE SET sends = sent.sends + 1, owner = excluded.owner
WHERE sent.owner IS NULL OR sent.owner = ?"""
LOOK = "SELECT (SELECT answer FROM kept WHERE key = ?), (SELECT owner FROM sent WHERE key = ?)"
GIVE_UP = "UPDATE sent SET unbilled = unbilled + ?, owner = NULL WHERE key = ? AND owner = ?"
KEEP = "INSERT INTO kept VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
SPENT = """
SELECT model, count(*), sum(input), sum(output), sum(cached), coalesce(sum(dollars), 0.0), count(*) - count(dollars)
FROM kept WHERE kind = 'model' GROUP BY model ORDER BY model"""
UNSURE = """
SELECT unsure, owner FROM (
    SELECT sends - unbilled - CASE WHEN kept.key IS NULL THEN 0 ELSE 1 END AS unsure,
        CASE WHEN kept.key IS NULL THEN owner END AS owner
    FROM sent LEFT JOIN kept ON kept.key = sent.key
) AS found WHERE unsure > 0"""
