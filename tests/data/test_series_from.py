import asyncio
import builtins
from pathlib import Path

import numpy as np
import pytest

from foretell.data.series.local import CsvSeries, PackagedSeries, _load
from foretell.data.series.series import Series, SeriesInMemory, SeriesUnavailable
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError, MissingExtra
from foretell.questions.question import SeriesRef

AS_OF = AsOf.day("2024-01-02")


def ref(id: str) -> SeriesRef:
    return SeriesRef(provider="here", id=id)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_of_a_long_file_may_be_in_any_order(tmp_path: Path) -> None:
    text = "series,date,value\nb,2024-01-01,5\na,2024-01-03,3\na,2024-01-01,1\na,2024-01-02,\n"
    source = CsvSeries(path=write(tmp_path / "all.csv", text))
    assert source.ids() == ("a", "b")
    assert asyncio.run(source.fetch(ref("a"), AsOf.day("2024-01-03"))).values.tolist() == [1.0, 3.0]
    assert asyncio.run(source.fetch(ref("a"), AS_OF)).values.tolist() == [1.0]


def test_a_directory_may_have_one_file_per_series(tmp_path: Path) -> None:
    write(tmp_path / "DGS10.csv", "date,value\n2024-01-01,4.5\n")
    write(tmp_path / "DGS2.csv", "\ufeffdate,value\n2024-01-01,4.1\n")
    assert CsvSeries(path=tmp_path).ids() == ("DGS10", "DGS2")
    with pytest.raises(SeriesUnavailable):
        asyncio.run(CsvSeries(path=tmp_path).fetch(ref("DGS5"), AS_OF))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("day,value\n2024-01-01,1\n", "column date: the column is missing"),
        ("series,date\na,2024-01-01\n", "column value: the column is missing"),
        ("date,value\n01/02/2024,1\n", "row 1, column date: '01/02/2024' is not an ISO date"),
        ("date,value\n2024-01-01,1\n2024-01-02,x\n", "row 2, column value: 'x' is not a number"),
        ("date,value\n2024-01-01,inf\n", "row 1, column value: 'inf' is not a number"),
        ("date,value\n2024-01-01,1\n2024-01-01,2\n", "row 2, column date: series s has a second value"),
        ("series,date,value\n,2024-01-01,1\n", "row 1, column series: is missing"),
    ],
)
def test_mistakes_raise_with_row_and_column(tmp_path: Path, text: str, message: str) -> None:
    source = CsvSeries(path=write(tmp_path / "s.csv", text))
    with pytest.raises(InputError) as caught:
        source.ids()
    assert message in str(caught.value)
    assert "s.csv" in str(caught.value)


def test_a_missing_file_or_an_empty_directory_raises(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        CsvSeries(path=tmp_path / "nowhere").ids()
    with pytest.raises(InputError, match=r"no \.csv file"):
        CsvSeries(path=tmp_path).ids()


def test_series_in_memory_end_at_the_cutoff() -> None:
    days = np.array(["2024-01-01", "2024-01-03"], "M8[D]")
    source = SeriesInMemory(series={"x": Series(id="x", days=days, values=np.array([1.0, 2.0]))})
    assert source.ids() == ("x",)
    assert len(asyncio.run(source.fetch(ref("x"), AS_OF))) == 1


def test_packaged_series_have_correct_dates() -> None:
    pytest.importorskip("statsmodels")
    source = PackagedSeries()
    assert len(source.ids()) >= 16
    for id in source.ids():
        series = source.series(id)
        assert len(series) >= 50, id
        assert source.title(id)
    first = {id: str(source.series(id).days[0]) for id in source.ids()}
    assert first["elnino"] == "1950-01-31"
    assert first["co2"] == "1958-03-29"
    assert first["macro.unemp"] == "1959-03-31"
    assert first["sunspots"] == "1700-12-31"
    assert source.series("elnino").values[0] == 23.11
    assert source.series("nile").values[:2].tolist() == [1120.0, 1160.0]
    assert str(asyncio.run(source.fetch(ref("nile"), AsOf.day("1900-06-01"))).days[-1]) == "1899-12-31"
    with pytest.raises(SeriesUnavailable, match="there are"):
        source.series("nothing")


def test_packaged_series_without_the_extra_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refusing(name: str, *args, **kwargs):
        if name.startswith("statsmodels"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    _load.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(MissingExtra, match="optional part"):
        PackagedSeries().series("nile")
