"""Real series that come with an installed library: something to try everything on without a network."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from foretell.questions.clock import AsOf
from foretell.questions.problems import MissingExtra
from foretell.questions.question import SeriesRef
from foretell.sources.series import Days, Series, SeriesUnavailable

MACRO = (
    "realgdp",
    "realcons",
    "realinv",
    "realgovt",
    "realdpi",
    "cpi",
    "m1",
    "tbilrate",
    "unemp",
    "pop",
    "infl",
    "realint",
)
TITLES = {
    "elnino": "the sea surface temperature off Peru (monthly)",
    "co2": "the concentration of CO₂ over Mauna Loa (weekly)",
    "sunspots": "the number of sunspots (yearly)",
    "nile": "the flow of the Nile at Aswan (yearly)",
    **{f"macro.{column}": f"US {column} (quarterly)" for column in MACRO},
}
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


@dataclass(frozen=True, kw_only=True)
class Packaged:
    """The data sets of statsmodels as series, each observation dated on the last day of the period it describes."""

    def ids(self) -> tuple[str, ...]:
        """The ids it knows."""
        return tuple(TITLES)

    def title(self, id: str) -> str:
        """What the series measures."""
        return TITLES[id]

    def series(self, id: str) -> Series:
        """The whole series."""
        if id not in TITLES:
            raise SeriesUnavailable(f"no packaged series is called {id!r}; there are {', '.join(TITLES)}")
        return _load(id)

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """The series as known at the cutoff."""
        return self.series(ref.id).until(as_of)


@cache
def _load(id: str) -> Series:
    data = _frame(id.partition(".")[0])
    if id == "elnino":
        table = data[list(MONTHS)].to_numpy(dtype=np.float64)
        months = [f"{int(year)}-{month:02d}" for year in data["YEAR"] for month in range(1, 13)]
        return _series(id, _last_day(months), table.ravel())
    if id == "co2":
        return _series(id, data.index.to_numpy().astype("M8[D]"), data["co2"].to_numpy(dtype=np.float64))
    if id.startswith("macro."):
        quarters = [f"{int(y)}-{int(q) * 3:02d}" for y, q in zip(data["year"], data["quarter"], strict=True)]
        return _series(id, _last_day(quarters), data[id.partition(".")[2]].to_numpy(np.float64))
    year, column = {"sunspots": ("YEAR", "SUNACTIVITY"), "nile": ("year", "volume")}[id]
    return _series(id, _last_day([f"{int(y):04d}-12" for y in data[year]]), data[column].to_numpy(dtype=np.float64))


def _frame(name: str) -> Any:
    try:
        from statsmodels import datasets
    except ImportError:
        raise MissingExtra("packaged series", "stats") from None
    return getattr(datasets, {"macro": "macrodata"}.get(name, name)).load_pandas().data


def _last_day(months: list[str]) -> Days:
    following = np.asarray(months, dtype="M8[M]") + np.timedelta64(1, "M")
    return (following.astype("M8[D]") - np.timedelta64(1, "D")).astype("M8[D]")


def _series(id: str, days: Days, values: Any) -> Series:
    observed = np.isfinite(values)
    return Series(id=id, days=days[observed], values=values[observed])
