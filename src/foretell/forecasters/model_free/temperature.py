"""Temperatures at a weather station: seasonal normals and weather anomalies.

T(t) = μ(t) + σ(t)·x(t): a yearly normal μ, a spread σ, and weather x whose autocorrelation fades within days. All are
normally distributed, so the model is conditioned on the station's last reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.model_free.source_model import (
    NO_OTHERS,
    Estimate,
    OtherSeries,
    ReadsOwnSeries,
    horizons,
    rises,
)
from foretell.forecasters.series.climatology import harmonics, least_squares
from foretell.forecasters.series.history import DAYS_PER_YEAR
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.transforms import normal_cdf
from foretell.number_text import signed
from foretell.patterns import pattern
from foretell.questions.question import Question, SeriesRef

COLUMNS = 5
"""Number of harmonic columns: a mean, the yearly wave and its first overtone."""
FAST, SLOW_DAYS = 0.75, 60.0
"""Share of a weather anomaly left after a day, and time constant in days of the part due to the sea or the soil."""
WARMING = 0.035
"""Warming over land since about 1970, in degrees a year."""
TREND_DOUBT, YEAR_SPREAD, YEARS_OF_TREND = 0.04, 0.5, 30
"""Standard deviation of a station's own trend around that, spread of yearly means, and years used for a trend."""
RECORD_DOUBT = (1.0, 0.4, 0.4, 0.2, 0.2)
"""Uncertainty of normals from a record of decades ago: its level after warming, and its harmonics."""
RECORD_KNOWN, YEARS_TO_CHANGE = 0.3, 30.0
"""Share of that uncertainty left if the record runs until today, and the years after which it is back in full."""
YEARS_NEEDED, YEARS_USED = 5, 15
OUTLIER = 3.0
"""Deviations of reports are clipped to this many spreads, so that an error in one hardly moves a normal."""


@frozen
class Climate:
    """A station's normal with its uncertainty, the daily spread around it, and the share of slow anomalies."""

    normal: Floats
    doubt: Floats
    spread: Floats
    """Harmonic coefficients of the daily standard deviation."""
    slow: float

    def spread_on(self, day: Floats) -> Floats:
        """Standard deviation of the weather on given days, at least a third of the yearly mean."""
        return np.maximum(harmonics(day, len(self.spread)) @ self.spread, float(self.spread[0]) / 3)

    def memory(self, lag: Floats) -> Floats:
        """Autocorrelation of anomalies: (1−s)·0.75^k + s·exp(−k/60)."""
        return (1 - self.slow) * FAST**lag + self.slow * np.exp(-lag / SLOW_DAYS)

    def having_seen(self, day: Floats, value: Floats) -> "Climate":
        """Update the normal with reports some weeks apart, each the normal plus one day's weather."""
        if not len(day):
            return self
        x, noise = harmonics(day, COLUMNS), self.spread_on(day)
        room = np.sqrt(noise**2 + ((x @ self.doubt) * x).sum(axis=1))
        miss = np.clip(value - x @ self.normal, -OUTLIER * room, OUTLIER * room)
        gain = np.linalg.solve(x @ self.doubt @ x.T + np.diag(noise**2), x @ self.doubt).T
        return replace(self, normal=self.normal + gain @ miss, doubt=self.doubt - gain @ x @ self.doubt)

    def change(self, due: float, ends: Floats, seen: Sequence["Report"] = ()) -> tuple[Floats, Floats]:
        """Mean and spread of T(end) − T(due), given the reports for some days."""
        days = np.concatenate([[due], ends, [report.day for report in seen]])
        x, scale = harmonics(days, COLUMNS), self.spread_on(days)
        both = x @ self.doubt @ x.T + np.outer(scale, scale) * self.memory(np.abs(days[:, None] - days[None, :]))
        mean, n = x @ self.normal, 1 + len(ends)
        if seen:
            error = np.asarray([report.error for report in seen]) * scale[n:]
            bias = np.asarray([report.bias for report in seen])
            own = both[n:, n:] + np.diag(error**2) + np.outer(bias, bias)
            room = OUTLIER * np.sqrt(np.diag(own))
            miss = np.clip(np.asarray([report.value for report in seen]) - mean[n:], -room, room)
            gain = np.linalg.solve(own, both[n:, :n]).T
            mean, both = mean[:n] + gain @ miss, both[:n, :n] - gain @ both[n:, :n]
        rise = mean[1:n] - mean[0]
        variance = np.diag(both)[1:n] + both[0, 0] - 2 * both[0, 1:n]
        return rise, np.sqrt(np.maximum(variance, 1e-6))


@frozen
class Report:
    """A temperature measured at the station, or forecast for it, with its day."""

    day: float
    value: float
    error: float = 0.0
    """Standard error of a forecast, in spreads of the day's weather."""
    bias: float = 0.0
    """Error shared by all forecasts for the place, in degrees, because a grid cell is not the station."""


def region(
    mean: float, swing: float, warmest: int, spread: tuple[float, float], slow: float, doubt: float = 0.8
) -> Climate:
    """Build a climate from its yearly mean, half its yearly range, its warmest day of the year, and its daily spread.

    `spread` is the yearly mean of the daily spread and how much larger it is in mid-January. `doubt` is how far a
    station's waves may differ from this.
    """
    angle = 2 * np.pi * warmest / DAYS_PER_YEAR
    overtones = (0.3 * doubt, 0.3 * doubt)
    return Climate(
        normal=np.asarray([mean, swing * np.cos(angle), swing * np.sin(angle), 0.0, 0.0]),
        doubt=np.diag(np.asarray([3.0, doubt, doubt, *overtones]) ** 2),
        spread=np.asarray([spread[0], spread[1], 0.0]),
        slow=slow,
    )


REGIONS: Mapping[str, Climate] = {
    "07": region(12.4, 7.7, 203, (3.3, 0.7), 0.03, 1.2),
    "61": region(24.5, 2.6, 42, (1.2, 0.0), 0.3, 1.0),
    "67": region(26.0, 1.6, 50, (0.9, 0.0), 0.3),
    "71": region(6.0, 9.0, 222, (3.0, 1.0), 0.1),
    "78": region(27.0, 1.4, 240, (0.9, 0.0), 0.3),
    "81": region(26.5, 0.5, 275, (0.9, 0.0), 0.2),
}
"""Keyed by the first two digits of a station's WMO number: France, the southern Indian Ocean, the Comoros, St Pierre,
the Lesser Antilles, Guiana. France: medians of 29 stations 1950-1991, warmed; the others: rounded textbook climates."""
ANYWHERE = region(15.0, 0.0, 200, (2.5, 0.0), 0.1, 5.0)


def from_record(series: Series, due: date) -> Climate | None:
    """Fit the climate of a station's own record, however old, adjusted by its trend since; None if it is too short."""
    day = series.days.astype("M8[D]").astype(np.int64).astype(np.float64)
    if len(day) < YEARS_NEEDED * 300:
        return None
    today = float(np.datetime64(due, "D").astype(np.int64))
    # The last years describe a changing climate best. Of a record that ended long ago, all years are used.
    recent = day > today - YEARS_USED * DAYS_PER_YEAR
    runs_on = bool(recent.sum() >= YEARS_NEEDED * 300)
    # The trend of a record that ended long ago is not the trend since.
    trend = _trend(day, series.values) if runs_on else WARMING
    recent = recent if runs_on else np.ones(len(day), np.bool_)
    day, value = day[recent], series.values[recent]
    x = harmonics(day, COLUMNS)
    normal = least_squares(x, value)
    spread = least_squares(x[:, :3], np.abs(value - x @ normal) * np.sqrt(np.pi / 2))
    warmer = np.asarray([trend * (today - float(day.mean())) / DAYS_PER_YEAR, 0, 0, 0, 0])
    # A record that runs until today is less uncertain than one of decades ago.
    stale = min(1.0, RECORD_KNOWN + (today - float(day[-1])) / DAYS_PER_YEAR / YEARS_TO_CHANGE)
    return Climate(
        normal=normal + warmer,
        doubt=np.diag((stale * np.asarray(RECORD_DOUBT)) ** 2),
        spread=spread,
        slow=0.03 if spread[0] > 2 else 0.3,
    )


def _trend(day: Floats, value: Floats) -> float:
    """Return the trend in degrees a year over a record's last decades, shrunk to global warming."""
    recent = day > day[-1] - YEARS_OF_TREND * DAYS_PER_YEAR
    x = np.column_stack([harmonics(day[recent], COLUMNS), (day[recent] - day[-1]) / DAYS_PER_YEAR])
    # The days of one year are correlated: together they count as one observation of its mean.
    weight = 1 / (DAYS_PER_YEAR * YEAR_SPREAD**2)
    prior = np.diag([0.0] * COLUMNS + [TREND_DOUBT**-2])
    fitted = np.linalg.solve(weight * x.T @ x + prior, weight * x.T @ value[recent] + prior[-1] * WARMING)
    return float(fitted[-1])


# Public forecasts for the due day and for the last day that they cover.

_PLACES = """
07005:50.136,1.834 07015:50.570,3.098 07020:49.725,-1.940 07027:49.180,-0.456 07037:49.383,1.182
07072:49.210,4.155 07110:48.444,-4.412 07117:48.826,-3.473 07130:48.069,-1.734 07139:48.446,0.110
07149:48.717,2.384 07168:48.325,4.020 07181:48.581,5.960 07190:48.549,7.640 07207:47.294,-3.218
07222:47.150,-1.609 07240:47.445,0.727 07255:47.059,2.360 07280:47.268,5.088 07299:47.614,7.510
07314:46.047,-1.412 07335:46.594,0.314 07434:45.861,1.175 07460:45.787,3.149 07471:45.075,3.764
07481:45.727,5.078 07510:44.831,-0.691 07535:44.745,1.397 07558:44.119,3.020 07577:44.581,4.733
07591:44.566,6.502 07607:43.910,-0.500 07621:43.188,0.000 07627:43.005,1.107 07630:43.621,1.379
07643:43.577,3.963 07650:43.438,5.216 07661:43.079,5.941 07690:43.649,7.209 07747:42.737,2.873
07761:41.918,8.793 07790:42.541,9.485 61968:-11.583,47.290 61970:-17.055,42.712 61972:-22.344,40.341
61976:-15.888,54.521 61980:-20.893,55.529 61996:-37.795,77.569 61997:-46.433,51.857 61998:-49.352,70.243
67005:-12.806,45.283 71805:46.766,-56.179 78890:16.335,-61.004 78894:17.901,-62.852 78897:16.264,-61.516
78922:14.775,-60.875 78925:14.595,-60.996 81401:5.486,-54.032 81405:4.822,-52.365
"""
PLACES: Mapping[str, str] = {number: place for number, _, place in (entry.partition(":") for entry in _PLACES.split())}
"""Latitude and longitude of stations by WMO number."""
LEADS: Mapping[int, float] = {0: 0.25, 6: 1.2, 7: 1.4}
"""Error of the newest forecast by days after the due day, in spreads of the weather: correlations of 0.97, 0.64 and
0.58 with the actual weather. Days in between are not asked about, and their errors are not independent."""
GRID_BIAS = 1.0
"""Shared error of forecasts from a grid, in degrees."""


def forecast_id(place: str, lead: int) -> str:
    """Return the id of the newest forecast for `lead` days after its day, as Open-Meteo names it."""
    return f"ahead{lead}/{place}/temperature_2m_mean"


def forecasts(place: str | None, others: OtherSeries, due: date) -> tuple[Report, ...]:
    """Return the newest forecasts for the due day or later."""
    reports: list[Report] = []
    for lead, error in LEADS.items():
        series = None if place is None else others.get(forecast_id(place, lead))
        if series is not None:
            day = float(series.days[-1].astype("M8[D]").astype(np.int64)) + lead
            if day >= _number(due):
                reports.append(Report(day=day, value=float(series.values[-1]), error=error, bias=GRID_BIAS))
    return tuple(reports)


STATION = pattern(r"\.(\d{5})\.")


@frozen
class TemperatureModel(ReadsOwnSeries):
    """Questions about whether a station will be warmer on later days than on the due date."""

    name: str = "seasonal normals"

    def others_of(self, question: Question) -> tuple[SeriesRef, ...]:
        """Return public forecasts for the station."""
        place = PLACES.get(_station(question))
        ids = [] if place is None else [forecast_id(place, lead) for lead in LEADS]
        return tuple(SeriesRef(provider="open_meteo", id=id) for id in ids)

    def covers(self, question: Question) -> bool:
        """Whether the question asks if a temperature series will rise."""
        return rises(question) and question.series is not None and "TEMPERATURE" in question.series.id.upper()

    def estimate(
        self, question: Question, past: Past, day: date, record: Series | None = None, others: OtherSeries = NO_OTHERS
    ) -> Estimate:
        """P(warmer) at each date, from normals and from the values reported in questions asked before the day."""
        reports = past.cached((self.name, "reports"), lambda: self._reports(past))
        earlier = [(at, value) for asked_on, at, value in reports.get(question.id, []) if asked_on < day]
        climate = None if record is None else from_record(record, day)
        source = (
            f"its own record until {record.days[-1]}" if record is not None and climate is not None else "its region"
        )
        climate = climate or REGIONS.get(_station(question)[:2], ANYWHERE)
        if earlier:
            days, values = np.asarray(earlier, np.float64).T
            climate = climate.having_seen(days, values)
        due, last = _number(question.due.date()), question.last_value
        ahead = forecasts(PLACES.get(_station(question)), others, question.due.date())
        measured = [] if last is None else [Report(day=_number(last.at.date()), value=last.value)]
        # Days with a measurement need no forecast.
        seen = [*measured, *(report for report in ahead if all(report.day > known.day for known in measured))]
        mean, spread = climate.change(due, due + horizons(question), seen)
        words = (
            f"Yearly normals of the station from {source} and {len(earlier)} later reports: a change of "
            f"{signed(mean[0], 1)} ± {spread[0]:.1f} degrees expected by the first date, "
            f"{signed(mean[-1], 1)} by the last."
        )
        shown = [f"{report.value:.1f} on {np.datetime64(int(report.day), 'D')}" for report in ahead]
        words += f" Forecast: {', '.join(shown)}." if shown else " No public forecast was available."
        newest = record is not None and last is not None and str(last.at.date()) == str(record.days[-1])
        return Estimate(p=normal_cdf(mean / spread), rationale=words, from_record=newest or bool(ahead))

    def _reports(self, past: Past) -> dict[str, list[tuple[date, float, float]]]:
        """Return by station the day on which a report became known, the day it describes, and its value."""
        reports: dict[str, list[tuple[date, float, float]]] = {}
        for question in past.questions:
            last = question.last_value
            if last is not None and self.covers(question):
                reports.setdefault(question.id, []).append((question.due.date(), _number(last.at.date()), last.value))
        return reports


def _number(day: date) -> float:
    return float(np.datetime64(day, "D").astype(np.int64))


def _station(question: Question) -> str:
    """The WMO number of the station; empty if there is none."""
    match = STATION.search(question.series.id if question.series else question.id)
    return match.group(1) if match else ""
