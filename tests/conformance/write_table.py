"""Writes docs/conformance.md anew."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.table import TABLE, all_checks, table

if __name__ == "__main__":  # Only then: tests for examples in docstrings import every module.
    TABLE.write_text(table(all_checks()))
