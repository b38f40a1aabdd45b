# ruff: noqa: E501 (tables of forms)
"""Date formats by the names that templates use."""

from datetime import UTC, date, datetime
from typing import Any

from babel.dates import format_date

PROSE = (
    "The bank's governors met behind closed doors for two days. Members differed over how soon prices would settle, and the"
    " minutes of earlier meetings show how close such votes can be. Wages have grown faster than output for a year."
)
_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth"
    " seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth twenty-fifth twenty-sixth"
    " twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first"
)
_ROMAN = "I II III IV V VI VII VIII IX X XI XII"
_JALALI = "فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند"
_HAN = "〇一二三四五六七八九"


def _han(number: int) -> str:
    tens, ones = divmod(number, 10)
    return ("" if tens == 0 else "十" if tens == 1 else f"{_HAN[tens]}十") + (_HAN[ones] if ones else "")


def _persian(day: date) -> tuple[int, int, int]:
    """The day in Iran's solar calendar, counted from the new year on 20 March 2024."""
    starts = {1403: date(2024, 3, 20), 1404: date(2025, 3, 21), 1405: date(2026, 3, 21), 1406: date(2027, 3, 21)}
    year = max(year_before for year_before, start in starts.items() if start <= day)
    passed = (day - starts[year]).days
    return (
        (year, passed // 31 + 1, passed % 31 + 1)
        if passed < 186
        else (year, (passed - 186) // 30 + 7, (passed - 186) % 30 + 1)
    )


class DayForms(dict[str, Any]):
    """The formats of one day. A language code gives its long format, with `_s` its short one."""

    def __init__(self, day: date) -> None:
        time = datetime(day.year, day.month, day.day, 8, 15, 42, tzinfo=UTC)
        week = day.isocalendar()
        jalali = _persian(day) if day >= date(2024, 3, 20) else (1402, 12, 20)
        ones, ordinals, roman, jalali_months = _ONES.split(), _ORDINALS.split(), _ROMAN.split(), _JALALI.split()
        quarter = (day.month + 2) // 3
        super().__init__(
            day=day, prose=PROSE, long=format_date(day, "long", "en"), dmy=format_date(day, "d MMMM yyyy", "en"), iso=day.isoformat(),
            medium=format_date(day, "MMM d, yyyy", "en"), dmedium=format_date(day, "d MMM yyyy", "en"), dotted=f"{day:%d.%m.%Y}",
            ydot=f"{day:%Y.%m.%d}", yslash=f"{day:%Y/%m/%d}", dashed=f"{day:%d-%m-%Y}", mdyslash=f"{day:%m/%d/%Y}", dmyslash=f"{day:%d/%m/%Y}",
            shortdots=f"{day:%d.%m.%y}", weekday=f"{day:%A}", wd=f"{day:%a}", year=str(day.year), y=f"{day:%Y}", yy=f"{day:%y}", m=f"{day:%m}", d=f"{day:%d}",
            slug=format_date(day, "d-MMMM-yyyy", "en").lower(), compact=f"{day:%Y%m%d}", mdyslug=format_date(day, "MMMM-d-yyyy", "en").lower(),
            deslug=format_date(day, "d-MMMM-yyyy", "de").lower(), frslug=format_date(day, "d-MMMM-yyyy", "fr").lower(), monthname=f"{day:%B}".lower(),
            Month=f"{day:%B}", Mon=f"{day:%b}", yymmdd=f"{day:%y%m%d}", unix=str(int(time.timestamp())), unixms=f"{int(time.timestamp())}345",
            rfc=f"{day:%a, %d %b %Y} 08:15:42 GMT", rfcz=f"{day:%a, %d %b %Y} 08:15:42 +0200", isoz=f"{day.isoformat()}T08:15:42Z", isooff=f"{day.isoformat()}T08:15:42+02:00",
            ics=f"{day:%Y%m%d}T081542Z", exif=f"{day:%Y:%m:%d} 08:15:42", apache=f"{day:%d/%b/%Y}:08:15:42 +0000", pdf=f"D:{day:%Y%m%d}081542+02'00'",
            syslog=f"{day:%b %d %Y} 08:15:42", gitdate=f"{day:%a %b} {day.day} 08:15:42 {day.year} +0200", wayback=f"{day:%Y%m%d}081542",
            week=f"{week.year}-W{week.week:02}", weekday_iso=f"{week.year}-W{week.week:02}-{week.weekday}", KW=f"KW {week.week}/{week.year}", weekno=str(week.week),
            q=f"Q{quarter} {day.year}", qy=f"{quarter}Q{day:%y}", yq=f"{day.year}Q{quarter}", qword=f"{ordinals[quarter - 1]}-quarter {day.year}", quarter=str(quarter),
            h=f"H{(day.month + 5) // 6} {day.year}", fy=f"FY{day.year}", fyslash=f"FY {day.year}/{(day.year + 1) % 100:02}", nextyear=str(day.year + 1),
            season=f"{('Winter', 'Spring', 'Summer', 'Autumn')[day.month % 12 // 3]} {day.year}", seasons=f"{day.year}/{(day.year + 1) % 100:02}",
            roman=f"{day.day} {roman[day.month - 1]} {day.year}", romandots=f"{day.day}.{roman[day.month - 1]}.{day.year}", romanyear="MMXX" + ("", *roman)[day.year - 2020],
            words=f"the {ordinals[day.day - 1]} of {day:%B}, two thousand and twenty-{ones[day.year - 2020]}", wordsus=f"{day:%B} {ordinals[day.day - 1]}, twenty twenty-{ones[day.year - 2020]}",
            ordinal=f"{ordinals[day.day - 1]} {day:%B} {day.year}", nth=f"{day.day}{'th' if 10 < day.day < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day.day % 10, 'th')} {day:%B} {day.year}",
            reiwa=f"令和{day.year - 2018}年{day.month}月{day.day}日", reiwashort=f"R{day.year - 2018}.{day.month}.{day.day}", minguo=f"民國{day.year - 1911}年{day.month}月{day.day}日",
            minguodots=f"{day.year - 1911}.{day.month:02}.{day.day:02}", minguoslash=f"{day.year - 1911}/{day.month:02}/{day.day:02}", thaiyear=str(day.year + 543),
            thai=f"{format_date(day, 'd MMMM', 'th')} พ.ศ. {day.year + 543}", thaishort=f"{format_date(day, 'd MMM', 'th')} {day.year + 543}",
            persian=f"{jalali[2]} {jalali_months[jalali[1] - 1]} {jalali[0]}".translate(str.maketrans("0123456789", "۰۱۲۳۴۵۶۷۸۹")), persianslash=f"{jalali[0]}/{jalali[1]:02}/{jalali[2]:02}",
            han="".join(_HAN[int(char)] for char in str(day.year)) + f"年{_han(day.month)}月{_han(day.day)}日", zhmonth=f"{day.year}年{day.month}月", juche=f"Juche {day.year - 1911} ({day.year})",
            spaced=" ".join(day.isoformat()), ohs=day.isoformat().replace("0", "O"), ells=day.isoformat().replace("1", "l"), under=f"{day:%Y_%m_%d}", tilde=f"{day:%d~%m~%Y}", middot=f"{day:%Y·%m·%d}",
            entities="".join(f"&#{ord(char)};" for char in day.isoformat()), hexentities="".join(f"&#x{ord(char):x};" for char in format_date(day, "d MMMM yyyy", "en")),
            softhyphens="\u00ad".join(format_date(day, "d MMMM yyyy", "en")), zerowidth="\u200b".join(day.isoformat()), bold="".join(chr(0x1D7CE + int(char)) if char.isdigit() else char for char in day.isoformat()),
            circled="".join("⓪①②③④⑤⑥⑦⑧⑨"[int(char)] if char.isdigit() else char for char in day.isoformat()), tagged=f"<b>{day.day}</b> {day:%B} <i>{day.year}</i>", nextday=str(day.day + 1),
        )  # fmt: skip

    def __missing__(self, name: str) -> str:
        language, _, short = name.partition("_")
        return format_date(self["day"], "medium" if short else "long", language)
