"""Runs, tables, studies and leaderboards."""
