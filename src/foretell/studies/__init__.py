"""Studies: each takes runs or tables and returns tables, charts and a sentence."""
