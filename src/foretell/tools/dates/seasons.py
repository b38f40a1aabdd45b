# ruff: noqa: E501 (tables of words)
"""Seasons and holidays next to a year, in many languages: "spring 2024", "Ostern 2026", "Black Friday 2025"."""

from collections.abc import Sequence
from datetime import date, timedelta

from foretell.tools.dates.folding import fold, lower

_SEASON_WORDS = {
    3: "spring frühjahr frühling printemps primavera lente voorjaar forår foråret våren kevät keväällä kevadel wiosna wiosną "
    "wiosny jaro jaře proljeće proljeću pomlad tavasz tavaszán ilkbahar ilkbaharda pavasari pavasarį весна весной весны "
    "весну навесні весни пролет пролетта пролеће άνοιξη بهار ربيع الربيع אביב באביב",
    6: "summer sommer été verano verão nell_estate dell_estate l_estate zomer sommar sommaren sommeren kesä kesällä suvi suvel lato latem léto létě ljeto "
    "ljeta poletje nyár nyarán yaz yazında vasara vasarą vara лето летом лета влітку літо літа лято лятото καλοκαίρι تابستان صيف "
    "الصيف קיץ בקיץ",
    9: "autumn fall herbst automne otoño outono autunno herfst hösten efterår efteråret høsten syksy syksyllä sügis sügisel "
    "jesień jesienią jesieni podzim podzimu jesen jeseni ősz őszén sonbahar sonbaharda rudens rudenį toamna осень осенью осени "
    "восени осінь есен есента φθινόπωρο پاییز خريف الخريف סתיו בסתיו",
    1: "winter hiver invierno inverno vinter vinteren vintern talvi talvella talvel zima zimą zimě zimie zimy telén kışın "
    "ziema žiemą iarna зима зимой зимы взимку зимата χειμώνα زمستان شتاء الشتاء חורף בחורף",
}
_SEASONS = {word: month for month, words in _SEASON_WORDS.items() for word in lower(fold(words)).split()}
"""The month each season begins in; winter is the one in January, the earlier of the two a year may have."""
_FEAST_WORDS = {
    (
        12,
        24,
    ): "christmas xmas weihnachten noël navidad nadal kerst kerstmis joulu vánoce vánocích karácsony crăciun рождество різдво",
    (12, 31): "new_year_s_eve silvester sylwester nochevieja",
    (1, 1): "new_year_s_day neujahr capodanno",
    (11, 22): "thanksgiving black_friday",
    (10, 31): "halloween allerheiligen toussaint",
}
_EASTER_WORDS = {
    -2: "good_friday karfreitag",
    0: "easter ostern pâques pascua pasqua páscoa pasen påsk påske pääsiäinen wielkanoc velikonoce húsvét paște пасха великдень",
    49: "pentecost whitsun pfingsten pentecôte pinksteren pingst pinse",
}
_FEASTS = {word: day for day, words in _FEAST_WORDS.items() for word in lower(fold(words)).split()}
_BY_EASTER = {word: days for days, words in _EASTER_WORDS.items() for word in lower(fold(words)).split()}
_FIRST_WORDS = frozenset(name.split("_")[0] for name in (*_SEASONS, *_FEASTS, *_BY_EASTER))


def season_or_feast(words: Sequence[str], year: int, *, split: bool = False) -> tuple[date, date] | None:
    """Return the first day of the season or holiday that folded words begin with, and the day after its last, or None.

    The winter of a `split` year, 2025/26, begins in December.

    >>> season_or_feast(["good", "friday"], 2026)
    (datetime.date(2026, 4, 3), datetime.date(2026, 4, 4))
    """
    if words[0] not in _FIRST_WORDS:
        return None
    for name in (words[0], "_".join(words[:2]), "_".join(words[:4])):
        if (month := _SEASONS.get(name)) is not None:
            if split and month == 1:
                return date(year, 12, 1), date(year + 1, 3, 1)
            return date(year, month, 1), date(year, month + 3, 1)
        if (feast := _FEASTS.get(name)) is not None:
            return date(year, *feast), date(year, *feast) + timedelta(days=1)
        if (days := _BY_EASTER.get(name)) is not None:
            first = _easter(year) + timedelta(days=days)
            return first, first + timedelta(days=1)
    return None


def _easter(year: int) -> date:
    """Return Easter Sunday in the Gregorian calendar, by Gauss's algorithm.

    >>> _easter(2024), _easter(2026)
    (datetime.date(2024, 3, 31), datetime.date(2026, 4, 5))
    """
    moon = (19 * (year % 19) + 24) % 30
    moon -= moon == 29 or (moon == 28 and year % 19 > 10)
    return date(year, 3, 22) + timedelta(days=moon + (2 * (year % 4) + 4 * (year % 7) + 6 * moon + 5) % 7)
