"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.tools.dates.addresses import late_address as late_address
from foretell.tools.dates.ages import age_stamp as age_stamp
from foretell.tools.dates.ages import without_age as without_age
from foretell.tools.dates.find import find_dates as find_dates
from foretell.tools.dates.records import late_entry as late_entry
from foretell.tools.dates.records import late_row as late_row
from foretell.tools.dates.records import told_state as told_state
from foretell.tools.dates.refusal import date_refusal as date_refusal
from foretell.tools.dates.stamps import MOST_LATE_DATES as MOST_LATE_DATES
from foretell.tools.dates.stamps import is_after as is_after
from foretell.tools.dates.stamps import late_stamp as late_stamp
