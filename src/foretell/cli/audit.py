"""foretell audit: the study audit under its short name."""

from foretell.cli.study import study_command
from foretell.studies.registry import load_study

audit = study_command(load_study("audit"))
