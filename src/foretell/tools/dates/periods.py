# ruff: noqa: E501 (tables of words)
"""Results of weeks, quarters, halves, seasons and years that were not over at the cutoff: "Q2 2024 results"."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache

from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.tools.dates.find import FoundDate, find_in_folded
from foretell.tools.dates.folding import fold, lower, original_span
from foretell.tools.dates.places import DatePlace
from foretell.tools.dates.stamps import is_after, is_far
from foretell.tools.dates.tenses import describes_past, is_plan
from foretell.tools.dates.words import FUTURE_SIGN, GOODS, PLANNED, SCHEDULED, TOKEN, WILL

# Seasons and holidays next to a year, in many languages: "spring 2024", "Ostern 2026", "Black Friday 2025".

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


# Words that report on a period. Beginnings of words in folded letters, by language.

_OUTCOMES = (
    r"results?|minutes|earnings|transcript|review|recap|wrap|round-?up|summary|reports? (?:net|a|first|second|third"
    r"|fourth|record)|final table|annual report|who won|winners?|champions|figures|gewinn|umsatz|\w{0,12}ergebnis(?:se)?"
    r"|bilanz|\w{0,10}bericht|ruckblick|resultats?|benefice|chiffre d'affaires|compte rendu|bilan|retrospective"
    r"|resultados?|ganancias|balance|beneficios?|ingresos|resumen|lucro|receita|balanco|resumo|risultati|utili|ricavi"
    r"|bilancio|riepilogo|winst|omzet|kwartaalcijfers|terugblik|jaarverslag|vinst|resultat\w*|delarsrapport|omsattning\w*"
    r"|kvartalsrapport|arsrapport|wyniki|zysk\w*|przychod\w*|podsumowanie|vysledky|zisk|trzby|eredmeny\w*|rezultat\w*"
    r"|profitul|tulos|liikevaihto|katsaus|αποτελεσματα|κερδη|sonuclari|bilanco|net kari?|kar|gelir\w*|результат\w*|итоги?"
    r"|прибыль|выручка|отчет\w*|прибуток|laba|pendapatan|kinerja|doanh thu|loi nhuan|نتائج|ارباح|سود|नतीजे|परिणाम"
)
_MOVES = (
    r"wurden?|blev|ble|fueron|foram|furono|gemeldet|gemeld|ubermittelt|solgt|meldt|cerro|hausse|recul|croissance|crescita|calo|crecimiento|growth|decline|increase|okade|minskade|(?:ver|be|er|ent)\w{3,}te"
    r"|\w{3,}(?:aron|ieron|aram|eram|iram)|a \w{3,}e|reported|f[ae]ll|fell|rose|beats?|wins?|won|jump(?:s|ed)|drop(?:s|ped)|inflation|gdp|cpi|revenue|profits?"
    r"|loss(?:es)?|grew|shrank|came in|actual|added|payrolls|unemployment|retail sales|turnout|missed|was|were|issue"
    r"|edition|vol\.|published|climbed|slipped|gained|declined|slowed|stood at|ended|closed|lowered|raised|showed|held"
    r"|eased|hit|reached|up|down|cut|saw|contracted|expanded|totall?ed|stieg\w*|sank\w*|fiel\w*|wuchs\w*|betrug|legte"
    r"|senkte|gesunken|gestiegen|gesenkt|lag|schrumpfte|a (?:baisse|augmente|recule|progresse|cru|atteint)"
    r"|ont (?:baisse|augmente|recule|progresse)|s'est etabli|subio|bajo|cayo|crecio|aumento|alcanzo|se situo|registro"
    r"|cresceu|caiu|subiu|recuou|atingiu|ficou|avancou|e (?:salit|sces|cresciut|calat)[oa]|ha raggiunto|steeg|daalde"
    r"|groeide|kromp|bedroeg|steg|sjonk|vaxte|faldt|falt|voksede|okte|nousi|laski|kasvoi|wzros\w+|spad\w+|wyni\w+sl[aoy]"
    r"|vzrostl\w*|klesl\w*|nott|csokkent|emelkedett|a crescut|a scazut|artti|azaldi|geriledi|yukseldi|buyudu"
    r"|вырос\w*|упал\w*|снизил\w*|составил\w*|сократил\w*|увеличил\w*|зрос\w*|знизи\w*|naik|turun|tumbuh|tang|giam|dat"
    r"|ارتفع\w*|انخفض\w*|تراجع\w*|نما|نمت|بلغ\w*|افزایش یافت|کاهش یافت|بڑھ\w*|बढ़\w*|बढ\w*|घट\w*|गिर\w*|बढा|रहा|रही"
)
_ASIAN = pattern(
    r"业绩|業績|净利|淨利|营收|營收|增长|增長|下降|上升|同比|决算|決算|増益|減益|実績|결산|실적|증가|감소|상승|하락|기록|매출|영업이익|なった|った|した|報告|报告"
    r"|总结|總結|回顾|回顧|まとめ|降息|加息|ผลประกอบการ|กำไร|รายได้"
)
_STRONG = pattern(lambda: fold(rf"\b(?:{_OUTCOMES})\b"))
_NAMED_RESULT = pattern(lambda: fold(rf"\b(?:{_OUTCOMES}|report(?:ed|s)?|{_MOVES})\b"))
RESULT = pattern(lambda: fold(rf"\b(?:{_OUTCOMES}|report(?:ed|s)?|{_MOVES}|\w{{3,}}ed)\b"))
"""Words that report results: names of results and of their changes, and any English past tense."""
EXPECTED = pattern(
    lambda: fold(
        r"\b(?:expect\w*|forecast\w*|guid\w+|outlook|estimat\w*|project\w*|plan\w*|will|would|due|targets?|goals?"
        r"|consensus|preview|ahead|before|by|could|(?<!in )(?<!since )may|might|should|set to|to report|to publish|to release|upcoming|next"
        r"|budget\w*|predict\w*|if|until|calendar|schedul\w*|view on|hope\w*|aim\w*|seen|likely|futures|contract|questions?"
        r"|approv\w*|allocat\w*|appropriat\w*|resol\w+|exceeds?|whether|compared|means|refers?|bid|draw|preparations?|candidates?|reserved|deliver(?!ed)\w*|ships? (?:in|from|by)"
        r"|start\w*|begin\w*|launch\w*|pilot|roll-?out|timeline|roadmap|milestones?|later|coming|(?<!down )(?<!up )from|in time for|is|are|be"
        r"|erwart\w*|prognos\w*|geplant|plant|soll\w*|wird|werden|durfte|liefer\w*|ab|bis|attendu\w*|prev\w+|devrait|sera"
        r"|seront|d'ici|avant|espera\w*|proyect\w*|sera[n]?|deber\w*|hasta|antes|esper\w+|deve\w*|ate|dovrebbe\w*|atteso|entro"
        r"|verwacht\w*|zal|zullen|vantas|vantar|forvent\w*|spodziew\w*|ocekava\w*|bude|beklen\w*|bekleniyor|ожида\w*"
        r"|прогноз\w*|план\w*|будет|очiку\w*|очіку\w*|diperkirakan|akan|du kien|se|المتوقع|يتوقع|متوقع|سوف|انتظار|उम्मीद|अनुमान)\b"
        r"|预计|預計|预期|予想|見通し|予定|계획|예상|전망|예정|指引|展望"
    )
)
"""Words that say something is still expected."""

# Names of periods: a word for the length next to a number, near a year.

_MONTHS_LONG = {
    3: "q quarter quartal quartals trimestre trimestral trim kwartaal kvartal kvartalet kvartals kwartal kwartale kwartalu "
    "ctvrtleti stvrtrok negyedev neljannes neljanneksella τριμηνο τριμηνου квартал квартале квартала квартал кварталі "
    "тримесечие ceyrek ceyrekte ceyregi ceyreginde الربع kuartal triwulan suku quy tremujor t cetvrtletje kvartalu",
    6: "h half halbjahr halbjahres semestre semester semestr s halvar halvaret halvår halvaar полугодие полугодии полугодия "
    "півріччя полугодие semestru semestrze pololeti polrok felev النصف semester halfjaar ημιχρονο",
}
_LENGTHS = {word: months for months, words in _MONTHS_LONG.items() for word in lower(fold(words)).split()}
_WEEK_WORDS = (
    "wochenbericht kw kalenderwoche cw week weeks wk semaine semana settimana vecka viikko uke uge "
    "tydzien tyden неделя неделю недели hafta setmana tuan minggu w woche"
)
_WEEKS = frozenset(lower(fold(_WEEK_WORDS)).split())
_NUMBERS = (
    "first 1st erste ersten erstes erster premier premiere primer primero primeiro primo primul prima eerste forsta forste "
    "pierwszy pierwszym pierwszego prvni prvnim elso ensimmainen ensimmaisella α первый первом первое первого перший ilk "
    "birinci الاول pertama i 1er 1ere",
    "second 2nd zweite zweiten zweites zweiter deuxieme seconde segundo segon secondo doilea doua tweede andra andet andre "
    "annen drugi drugim drugiego druhe druhem masodik toinen toisella β второй втором второе второго другий другому ikinci "
    "الثانی kedua ii 2e 2eme",
    "third 3rd dritte dritten drittes dritter troisieme tercer tercero terceiro terzo treilea derde tredje trzeci trzecim "
    "trzeciego treti tretim harmadik kolmas kolmannella γ третий третьем третьего третій третьому ucuncu الثالث ketiga iii "
    "3e 3eme",
    "fourth 4th final vierte vierten viertes vierter quatrieme cuarto quarto patrulea vierde fjarde fjerde czwarty czwartym "
    "czwartego ctvrty ctvrtem negyedik neljas neljannella δ четвертый четвертом четвертого четвертий dorduncu الرابع keempat "
    "iv 4e 4eme last",
)
_ORDINALS = {word: place for place, words in enumerate(_NUMBERS, start=1) for word in lower(fold(words)).split()}
_FISCAL = pattern(r"fiscal|\bfy|financial year|geschaftsjahr|exercice|ejercicio|esercizio|年度")
_YEARS = pattern(
    r"\b(?:fy ?|fiscal (?:year )?|full[- ]year |annual (?:report|results) |geschaftsjahr |exercice |ejercicio |esercizio )"
    r"(?P<y1>(?:20)?[2-4]\d)\b|\b(?:season|saison) (?P<y2>20\d\d)[/-]\d\d"
    r"|\b(?P<y4>20\d\d)(?= results\b)|(?<=results )(?P<y5>20\d\d)\b|(?<=champions )(?P<y6>20\d\d)\b"
    r"|(?<=winner )(?P<y7>20\d\d)\b|(?<=winners )(?P<y8>20\d\d)\b|(?<=bilanz )(?P<y9>20\d\d)\b"
)
_YEAR_NAMES = (
    "fy", "fiscal", "full", "annual", "jahr", "exerc", "ejerc", "eserc", "season", "saison", "result", "champion", "winner", "bilanz",
)  # fmt: skip
"""Each name of a year contains one of these."""
_EAST_ASIAN = pattern(
    r"(?P<y>20\d\d)\s?[年년]\s?(?:第?(?P<q>[1-4一二三四])\s?(?:季度?|四半期|분기)|(?P<h>[上下상하])(?:半年|半期|반기)|(?P<a>\d{1,2})[-~〜](?P<b>\d{1,2})月期?)"
)
_SHORT = pattern(r"\b(?:(?P<n1>[1-4])(?P<u1>[qht])|(?P<u2>[qht])(?P<n2>[1-4])) ?(?:fy)?'?(?P<y>[2-4]\d)(?![\d%.,])")
_QUOTED_YEAR = pattern(r"'[2-4]\d(?!\d)")
_SHORT_WEEK = pattern(r"\b(?:kw|wk|cw|week) ?(?P<w>\d{1,2})[ /,]{0,2}'(?P<y>[2-4]\d)(?!\d)")
_NEAR_YEAR = pattern(r"20[2-4]\d(?!\d)")
_NEAR_WORD = pattern(r"[^\W\d_]+|\d+")
_BREAK = pattern(r"[\n;:!?()|]|(?<=[^\W\d])\.\s+[a-z]{3}")
_SENTENCE_END = pattern(r"\n|(?<!\d)\. |(?<=\d\d)\. ")
_BEFORE, _AFTER = 40, 24
_ENDED_AT = pattern(
    r"\b(?:year|quarter|half|months?|weeks?|period|season|semester|fiscal year|trimestre|quartal|halbjahr|geschaftsjahr"
    r"|semestre|exercice|ejercicio|woche|semaine|semana) (?:of|to|ended|ending|through|bis|bis zum|zum|clos le|terminado el"
    r"|au|cerrado el)\W{1,3}(?:on )?(?:[a-z]{3,9},? )?$"
)


@frozen(kw_only=False)
class _Period:
    """A named period and where it is named in the text."""

    start: int
    end: int
    first: date
    after: date
    """The day after the last day of the period."""
    strict: bool = False
    """Whether its name alone, at the start of a line, suggests a report on it."""


def late_period(text: str, as_of: AsOf) -> str | None:
    """Return the name of a week, quarter, half, year or season with a result although it was not over at the cutoff."""
    plain = fold(text)
    low = lower(plain)
    for period, shift in _unfinished(low, as_of):
        where = original_span(text, plain, period.start, period.end)
        place = FoundDate(period.start, period.end, (period.first,), "month")
        if is_far(place, as_of) or DatePlace(plain, low, place).heading_plans:
            continue
        if is_plan(*where, edges=False):
            continue
        sentence = _sentence(low, period.start, period.end)
        # A period that is half over may be mentioned, but its result is not known yet.
        begun = not is_after(period.first - shift + (period.after - period.first) / 2, as_of)
        strong = _STRONG.search(sentence) or (not sentence.isascii() and _ASIAN.search(sentence))
        figure = _FIGURE.search(sentence.replace(low[period.start : period.end], ""))
        # Without a figure a past tense may be that of anything: "turned gloomier about the second half of 2025".
        match = strong or (not begun and (RESULT if figure else _NAMED_RESULT).search(sentence))
        if (match or (period.strict and _is_heading(low, period))) and not _awaited(sentence):
            return low[period.start : period.end]
        # What happened in a period is told after it, except "so far".
        left = period.after - shift - as_of.at.date()
        if (
            left >= _DAYS_LEFT
            and figure
            and RESULT.search(sentence)
            and not (_awaited(sentence) or _SO_FAR.search(sentence))
        ):
            return low[period.start : period.end]
        told = _describes_period(*where) if left > (period.after - period.first) / _LEAST_LEFT else False
        if told and (is_after(period.first - shift, as_of) or not _SO_FAR.search(sentence)):
            return low[period.start : period.end]
    return _late_month(text, low, as_of) or _late_end(low, as_of)


def _unfinished(low: str, as_of: AsOf) -> Iterator[tuple[_Period, timedelta]]:
    """Yield periods not over at the cutoff, each with how much earlier than in the calendar it may have begun."""
    for period in _periods(low, as_of.at.year):
        near = low[max(0, period.start - 60) : period.end + 60]
        # Fiscal years begin up to a year before calendar years.
        shift = timedelta(days=366 if _FISCAL.search(near) else 0)
        if is_after(period.after - shift - timedelta(days=1), as_of):
            yield period, shift


def unfinished_periods(low: str, as_of: AsOf) -> Iterator[FoundDate]:
    """Yield these periods as dates, by their last day. Whole years are left out, because many names contain them."""
    for period, _ in _unfinished(low, as_of):
        if (period.after - period.first).days < _WHOLE_YEAR:
            yield FoundDate(period.start, period.end, (period.after - timedelta(days=1),), "month")


_WHOLE_YEAR, _LEAST_LEFT = 300, 6
_DAYS_LEFT = timedelta(days=5)
"""How many days before the end of a period no figure for all of it can be known."""
_SO_FAR = pattern(
    r"\b(?:so far|to date|already|start of|early|began?|begun|since|bisher|bislang|anfang|jusqu|debut|hasta ahora|inicio"
    r"|finora|inizio|ate agora|tot nu toe)\b"
)
_COMPARED = pattern(
    r"\b(?:from (?:an?|the|one) )?(?:week|month|quarter|year|day|ano|mes|semana|trimestre|ugen|uken|maneden|aret|kvartalet|veckan|vorwoche|jahr|woche|monat|an)"
    r" (?:before|earlier|antes|anterior|for|foer|innan|zuvor|vorher|avant)\b|\bcalendar year\b|\bdraw (?=results?)"
)
"""Comparisons such as "a year before", and "draw" in "draw results", which is not a future draw."""
_BEATEN = pattern(
    r"\b(?:beat|beats|topped|missed|above|below|exceeded|over|under)\s(?:\w+\s){0,2}(?:estimates?|expectations?|forecasts?|consensus|guidance)\b"
    r"|\b(?:than|above|below|over|under|against|versus|vs)\s(?:\S+\s){0,4}(?:had )?(?:been )?(?:expected|forecast|predicted|estimated)\b"
)


def _awaited(sentence: str) -> bool:
    sentence = _COMPARED.sub("", _BEATEN.sub("", sentence))
    ahead = EXPECTED.search(sentence) or SCHEDULED.search(sentence) or PLANNED.search(sentence)
    return bool(ahead) or FUTURE_SIGN.search(sentence) is not None or not WILL.isdisjoint(TOKEN.findall(sentence))


_LONGEST_HEADING = 90


def _is_heading(low: str, period: _Period) -> bool:
    """Whether the line is short and begins or ends with the name of the period."""
    start, end = low.rfind("\n", 0, period.start) + 1, low.find("\n", period.end)
    end = len(low) if end < 0 else end
    line = (low[start : period.start].strip(" #*-,|"), low[period.end : end].strip(" #*.,|"))
    return end - start <= _LONGEST_HEADING and not all(line)


def _late_month(text: str, low: str, as_of: AsOf) -> str | None:
    """Return a month not over at the cutoff that results are given for: "CPI for June 2024 came in at 2.4 %"."""
    plain = fold(text)
    # If a day before the cutoff is named, the figures are of that day.
    over = [
        past_date
        for past_date in find_in_folded(low)
        if past_date.precision == "day" and not is_after(max(past_date.readings), as_of)
    ]
    for month in find_in_folded(low):
        if month.precision != "month" or not all(is_after(day + timedelta(days=27), as_of) for day in month.readings):
            continue
        where = original_span(text, plain, month.start, month.end)
        # 2024-06 is a month in a table. Elsewhere it may be any number.
        if _NUMBERED.fullmatch(low, month.start, month.end):
            continue
        if is_far(month, as_of) or is_plan(*where, edges=False):
            continue
        sentence = _sentence(low, month.start, month.end)
        if low[: month.start].endswith("for ") and _PRICED.search(sentence):
            continue
        if _UNTIL.search(low, max(0, month.start - 12), month.start) and not _STRONG.search(sentence):
            continue
        name = low[month.start : month.end]
        rest = sentence.replace(name, "")
        match = (_FIGURE.search(rest) and (RESULT.search(rest) or _ASIAN.search(rest))) or _OUTCOME_OF.search(sentence)
        if (
            match
            and not any(past_date.start < month.end + 90 and month.start - 90 < past_date.end for past_date in over)
            and not _awaited(sentence)
        ):
            return name
        begun = not all(is_after(day, as_of) for day in month.readings)
        over_soon = not all(is_after(day + timedelta(days=_NEARLY_OVER), as_of) for day in month.readings)
        if over_soon or (begun and _SO_FAR.search(sentence)) or _ATTRIBUTE.search(low[: month.start][-12:]):
            continue
        if _describes_period(*where):
            return name
    return None


_PRICED = pattern(
    r"[$€£¥]|\b(?:dollars?|cents?|euros?|pence|a (?:barrel|bushel|ounce|tonne?|pound)|futures|forwards?|contracts?"
    rf"|agreements?|swaps?|options?|(?:{GOODS}) for)\b"
)
"""The price of a delivery: "wheat for May 2024 settled at 5.28 dollars", "freight agreements for March 2025 lost"."""
_UNTIL = pattern(r"\b(?:through|until|till|by|before|bis|jusqu'en|hasta|ate|fino a|tot) $")
_NUMBERED = pattern(r"\d{4}-\d\d")
_FOR = pattern(r"\b(?:for|in|fur|pour|para|per|za|за)\W{1,2}$")


def _describes_period(text: str, start: int, end: int) -> bool:
    """Whether a sentence describes a period as past; with "for June 2024" it may still have been awaited."""
    if describes_past(text, start, end):
        return True
    low = lower(fold(text[max(0, start - 20) : start]))
    if not _FOR.search(low) or not describes_past(text, start, end, edges=False):
        return False
    near = lower(fold(text))
    return not _awaited(_sentence(near, start, end))


_NEARLY_OVER = 20
"""Day of a month from which it may be described as past."""
_ATTRIBUTE = pattern(r"\b(?:the|an?|its|their|this) $")
"""Words before a month that belongs to a noun: "the June 2024 meeting"."""
_FIGURE = pattern(r"\d(?:[.,]\d|\d{2}|\s?(?:%|per ?cent|prozent|pour cent|por ciento|por cento|procent))|:\s?[-+]?\d")
_OUTCOME_OF = pattern(r"^\W{0,4}(?:\w{0,12}ergebnis(?:se)?|results?|resultats?|resultados|risultati|wyniki|vysledky)\b")


def _late_end(low: str, as_of: AsOf) -> str | None:
    """Return the last day of a late period with a result: "profit rose in the year to 30 June 2024"."""
    for found_date in find_in_folded(low):
        if found_date.precision != "day" or not all(is_after(day, as_of) for day in found_date.readings):
            continue
        if low[max(0, found_date.start - 14) : found_date.start].count(" ") == 0:
            continue
        if _ENDED_AT.search(low, max(0, found_date.start - 40), found_date.start) is None:
            continue
        sentence = _sentence(low, found_date.start, found_date.end)
        heading = sentence.lstrip().startswith(("week of", "week ending", "week to"))
        if (heading or RESULT.search(sentence)) and not _awaited(sentence):
            return low[found_date.start : found_date.end]
    return None


@lru_cache(maxsize=4)
def _periods(low: str, year: int) -> tuple[_Period, ...]:
    """Return the periods in that year and later. Cached, because several rules check the same text."""
    return tuple(_find_periods(low, year))


def _find_periods(low: str, year: int) -> Iterator[_Period]:
    """Yield the periods of that year and later, by searching around years."""
    for match in _NEAR_YEAR.finditer(low):
        if int(match[0]) >= year:
            yield from _named(low, match, int(match[0]))
    if _SHORT_SEEN.search(low) is not None:
        for match in _SHORT.finditer(low):
            length, number = _LENGTHS[match["u1"] or match["u2"]], 2000 + int(match["y"])
            yield from _part(match.start(), match.end(), number, length, int(match["n1"] or match["n2"]))
    for quoted in _QUOTED_YEAR.finditer(low) if "'" in low else ():
        if (match := _SHORT_WEEK.search(low, max(0, quoted.start() - 12), quoted.end())) is not None:
            yield from _week(match.start(), match.end(), 2000 + int(match["y"]), int(match["w"]))
    for match in _EAST_ASIAN.finditer(low) if "年" in low or "년" in low else ():
        yield from _in_signs(match)


_SHORT_SEEN = pattern(r"[1-4](?:[qht]|(?<=[qht].)) ?(?:fy)?'?[2-4]\d(?!\d)")


def _named(low: str, year: re.Match[str], number: int) -> Iterator[_Period]:
    """Yield the period that the words next to a year name."""
    left, right = max(0, year.start() - _BEFORE), min(len(low), year.end() + _AFTER)
    breaks = [match.end() for match in _BREAK.finditer(low, left, year.start())]
    stop = _BREAK.search(low, year.end(), right)
    before = _words(low, breaks[-1] if breaks else left, year.start())
    after = _words(low, year.end(), stop.start() if stop else right)
    for words in (before[-5:], after[:6]):
        for place, (word, start, end) in enumerate(words):
            length = _LENGTHS.get(word)
            if length is None and word not in _WEEKS:
                continue
            for beside in (place + 1, place - 1):
                if not 0 <= beside < len(words):
                    continue
                named_number = words[beside][0]
                count = (
                    int(named_number)
                    if named_number.isdigit() and len(named_number) < 3
                    else _ORDINALS.get(named_number)
                )
                if count is None:
                    continue
                span = min(start, words[beside][1], year.start()), max(end, words[beside][2], year.end())
                if length is None:
                    yield from _week(*span, number, count)
                else:
                    yield from _part(*span, number, length, count)
                return
    season = _season(low, year, number, (before[-_BESIDE:], after[:_BESIDE]))
    if season is not None or not any(map(low[left : year.end() + 9].__contains__, _YEAR_NAMES)):
        yield from filter(None, (season,))
        return
    if (
        year_match := _YEARS.search(low, left, year.end() + 9)
    ) is not None and year_match.start() <= year.start() < year_match.end():
        yield _year(year_match, number)


def _season(low: str, year: re.Match[str], number: int, beside: Sequence[list[tuple[str, int, int]]]) -> _Period | None:
    """Return the season or holiday that the words next to a year name, or None."""
    if _GAMES.match(low, year.end()):
        return None
    split = _SPLIT_YEAR.match(low, year.end()) is not None
    for words in beside:
        for place, (_, start, end) in enumerate(words):
            # "Halved in autumn its estimate for 2025" names no autumn of that year.
            if not _FOR_YEAR.isdisjoint(low[end : year.start()].split()):
                continue
            if (days := season_or_feast([word for word, _, _ in words[place:]], number, split=split)) is not None:
                return _Period(min(start, year.start()), max(end, year.end()), *days)
    return None


_FOR_YEAR = frozenset(("for", "fur", "pour", "para", "per", "voor", "for", "na", "на"))
_GAMES = pattern(r" (?:winter|summer) (?:games|olympics|paralympics|youth)\b")
_SPLIT_YEAR = pattern(r"[/-](?:20)?[2-4][0-9](?![0-9-])")
_BESIDE = 4
"""How many words next to a year are searched for the name of a season or holiday."""
_NUMBER_ENDS = frozenset(("e", "er", "eme", "o", "a", "nd", "rd", "th", "st", "и", "м", "го"))


def _words(low: str, start: int, end: int) -> list[tuple[str, int, int]]:
    """Return words and numbers with their positions, without the endings of ordinals: "3e trimestre"."""
    words = [(entry[0], entry.start(), entry.end()) for entry in _NEAR_WORD.finditer(low, start, end)]
    return [entry for entry in words if entry[0] not in _NUMBER_ENDS or not low[max(0, entry[1] - 1)].isdigit()]


def _week(start: int, end: int, year: int, week: int) -> Iterator[_Period]:
    try:
        first = date.fromisocalendar(year, week, 1)
    except ValueError:
        return
    yield _Period(start, end, first, first + timedelta(days=7), strict=True)


def _part(start: int, end: int, year: int, months: int, number: int) -> Iterator[_Period]:
    """Yield the nth part of a year, such as a quarter or half."""
    if 1 <= number <= 12 // months:
        first = date(year, months * (number - 1) + 1, 1)
        yield _Period(start, end, first, _later(first, months))


def _later(day: date, months: int) -> date:
    place = day.month - 1 + months
    return date(day.year + place // 12, place % 12 + 1, 1)


def _year(match: re.Match[str], year: int) -> _Period:
    if match["y2"]:
        return _Period(match.start(), match.end(), date(year, 7, 1), date(year + 1, 7, 1))
    if match["y1"]:
        return _Period(match.start(), match.end(), date(year, 1, 1), date(year + 1, 1, 1))
    # "Results 2024" may be those of any day of that year.
    return _Period(match.start(), match.end(), date(year, 1, 1), date(year, 1, 2))


_HAN = {"一": 1, "二": 2, "三": 3, "四": 4}


def _in_signs(match: re.Match[str]) -> Iterator[_Period]:
    year = int(match["y"])
    if match["q"]:
        yield from _part(match.start(), match.end(), year, 3, _HAN.get(match["q"]) or int(match["q"]))
    elif match["h"]:
        yield from _part(match.start(), match.end(), year, 6, 1 if match["h"] in "上상" else 2)
    elif 1 <= int(match["a"]) <= int(match["b"]) <= 12:
        first = date(year, int(match["a"]), 1)
        yield _Period(match.start(), match.end(), first, _later(first, int(match["b"]) - int(match["a"]) + 1))


def _sentence(low: str, start: int, end: int, reach: int = 90) -> str:
    """Return the text around a position, up to the ends of its sentence and line."""
    first = max(0, start - reach)
    ends = [match.end() for match in _SENTENCE_END.finditer(low, first, start)]
    stop = _SENTENCE_END.search(low, end, end + reach)
    return low[ends[-1] if ends else first : stop.start() if stop else end + reach]
