"""A metric: here the Brier score under another name."""

from dataclasses import replace

from foretell.metrics import METRICS

METRIC = replace(METRICS["brier"], name="example_brier")
