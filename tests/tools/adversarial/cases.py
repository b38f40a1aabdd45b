# ruff: noqa: E501 (tables of wordings)
"""Leaks and clean texts generated from templates: kinds × languages × date formats.

They cover more than the rules on purpose. Some kinds are used only for evaluation. Of the other kinds, half of the
wordings (by a hash of the wording) were used to tune the rules, and the other half only for evaluation.
"""

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import product
from typing import Literal

from babel.dates import format_date
from tests.tools.adversarial import kinds
from tests.tools.adversarial.dates_written import PROSE, DayForms

from foretell.studies.audit.leaks import ADDRESS, CUTOFF, PUBLISHED, TITLE, LeakCase, Part

Must = Literal["drop", "keep"]


@dataclass(frozen=True, kw_only=True)
class MadeText:
    """A text from a template."""

    kind: str
    wording: str
    must: Must
    text: str
    title: str
    url: str

    @property
    def part(self) -> Part:
        """Whether rules may be tuned on it."""
        if self.kind in kinds.ONLY_JUDGED:
            return "judged"
        tuned = hashlib.sha256(f"{self.kind}/{self.wording}".encode()).digest()[0] % 2 == 0
        return "tuned" if tuned or self.kind in kinds.ONLY_TUNED else "judged"

    @property
    def case(self) -> LeakCase:
        """The text in the form stored by the study."""
        return LeakCase(
            kind=self.kind,
            wording=self.wording,
            part=self.part,
            leak=self.must == "drop",
            dated=self.kind not in kinds.UNDATED,
            title=self.title,
            text=self.text,
            url=self.url,
        )


@dataclass(frozen=True)
class Place:
    """The text, headline and address of a case."""

    text: str
    title: str
    url: str


def item(text: str = PROSE, *, title: str = TITLE, url: str = ADDRESS) -> Place:
    return Place(text, title, url)


def make_text(kind: str, wording: str, must: Must, at: Place) -> MadeText:
    return MadeText(kind=kind, wording=wording, must=must, text=at.text, title=at.title, url=at.url)


UPDATED = {
    "en": ("Last updated on {}", "Updated: {}", "Published {}", "This story was last modified {}", "First posted {}"),
    "de": (
        "Zuletzt aktualisiert am {}",
        "Aktualisiert: {}",
        "Veröffentlicht am {}",
        "Stand: {}",
        "Letzte Änderung: {}",
    ),
    "fr": ("Mis à jour le {}", "Dernière mise à jour : {}", "Publié le {}", "Article modifié le {}"),
    "es": ("Actualizado el {}", "Última actualización: {}", "Publicado: {}"),
    "pt": ("Atualizado em {}", "Última atualização: {}", "Publicado em {}"),
    "it": ("Aggiornato il {}", "Ultimo aggiornamento: {}", "Pubblicato il {}"),
    "nl": ("Bijgewerkt op {}", "Laatst gewijzigd: {}", "Gepubliceerd op {}"),
    "sv": ("Uppdaterad {}", "Publicerad: {}", "Senast ändrad {}"),
    "da": ("Opdateret {}", "Offentliggjort {}", "Sidst ændret: {}"),
    "nb": ("Oppdatert {}", "Publisert: {}", "Sist endret {}"),
    "fi": ("Päivitetty {}", "Julkaistu: {}"),
    "pl": ("Zaktualizowano: {}", "Opublikowano {}", "Ostatnia aktualizacja: {}"),
    "cs": ("Aktualizováno {}", "Zveřejněno: {}", "Poslední změna: {}"),
    "sk": ("Aktualizované {}", "Publikované: {}"),
    "hu": ("Frissítve: {}", "Megjelent: {}", "Utolsó módosítás: {}"),
    "ro": ("Actualizat la {}", "Publicat: {}", "Ultima actualizare: {}"),
    "bg": ("Обновена на {}", "Публикувано: {}", "Последна актуализация: {}"),
    "ru": ("Обновлено {}", "Опубликовано: {}", "Последнее изменение: {}", "Дата публикации: {}"),
    "uk": ("Оновлено {}", "Опубліковано: {}", "Останнє оновлення: {}"),
    "el": ("Ενημερώθηκε: {}", "Δημοσιεύθηκε {}", "Τελευταία ενημέρωση: {}"),
    "tr": ("Güncelleme: {}", "Son güncelleme {}", "Yayınlanma tarihi: {}", "{} tarihinde güncellendi"),
    "ar": ("آخر تحديث: {}", "نشر في {}", "تاريخ النشر: {}"),
    "fa": ("به‌روزرسانی: {}", "تاریخ انتشار: {}"),
    "he": ("עודכן ב-{}", "פורסם: {}", "עדכון אחרון: {}"),
    "hi": ("अपडेट किया गया: {}", "प्रकाशित: {}", "{} को अपडेट किया गया"),
    "bn": ("আপডেট: {}", "প্রকাশিত: {}"),
    "th": ("อัปเดตล่าสุด {}", "เผยแพร่เมื่อ {}"),
    "vi": ("Cập nhật lần cuối: {}", "Đăng ngày {}"),
    "id": ("Diperbarui {}", "Diterbitkan: {}", "Terakhir diperbarui pada {}"),
    "ja": ("最終更新日：{}", "{} 更新", "公開日 {}", "{}掲載"),
    "ko": ("최종수정 {}", "입력 : {}", "{} 업데이트"),
    "zh": ("更新时间：{}", "发布于 {}", "最后更新：{}"),
    "lt": ("Atnaujinta {}", "Paskelbta: {}"),
    "lv": ("Atjaunots {}", "Publicēts: {}"),
    "et": ("Uuendatud {}", "Avaldatud: {}"),
    "hr": ("Ažurirano {}", "Objavljeno: {}", "Zadnja izmjena: {}"),
    "sl": ("Posodobljeno {}", "Objavljeno: {}"),
    "sr": ("Ажурирано {}", "Објављено: {}"),
    "ca": ("Actualitzat el {}", "Publicat: {}"),
}
DAY_FIRST = "dd.MM.yyyy"
PLACES = ("{stamp}\n{prose}", "{prose}\n{stamp}", "By Ana Berg | {stamp}\n{prose}", "{prose} ({stamp})")
DIGITS = {
    "Arabic": "٠١٢٣٤٥٦٧٨٩", "Persian": "۰۱۲۳۴۵۶۷۸۹", "Devanagari": "०१२३४५६७८९", "Bengali": "০১২৩৪৫৬৭৮৯",
    "Thai": "๐๑๒๓๔๕๖๗๘๙", "full width": "０１２３４５６７８９", "Tamil": "௦௧௨௩௪௫௬௭௮௯", "Burmese": "၀၁၂၃၄၅၆၇၈၉",
}  # fmt: skip
HIDDEN = (
    "Upda\u200bted: {long}", "Updated:\u00a0{dmy}", "\u202bUpdated\u202c {iso}", "Upd\u00adated {long}", "Ｕｐｄａｔｅｄ {iso}",
    "Updated\u2002{dmy}",
)  # fmt: skip
AGES = {
    "en": ("3 hours ago", "Updated 2 days ago", "Posted 5 min ago"), "de": ("vor 3 Stunden", "Aktualisiert vor 2 Tagen"),
    "fr": ("il y a 3 heures", "Mis à jour il y a 2 jours"), "es": ("hace 3 horas", "Actualizado hace 2 días"),
    "it": ("3 ore fa", "Aggiornato 2 giorni fa"), "pt": ("há 3 horas", "Atualizado há 2 dias"),
    "ru": ("3 часа назад", "Обновлено 2 дня назад"), "pl": ("3 godziny temu",), "nl": ("3 uur geleden",),
    "sv": ("för 3 timmar sedan",), "tr": ("3 saat önce",), "ja": ("3 時間前", "2 日前に更新"), "zh": ("3小时前", "2天前更新"),
    "ko": ("3시간 전", "2일 전 업데이트"), "ar": ("قبل 3 ساعات",), "hi": ("3 घंटे पहले",), "id": ("3 jam yang lalu",),
}  # fmt: skip
HEADS = (
    "LONDON, {long} (Reuters) - {prose}", "FRANKFURT, {long} /PRNewswire/ -- {prose}", "Washington ({long}) – {prose}",
    "BERLIN (dpa), {dmy} - {prose}", "{long}\n{prose}", "{dmy}, 14:30\n{prose}", "By Ana Berg, {long}\n{prose}",
    "Ana Berg · {long} · 4 min read\n{prose}", "{iso} 08:15\n{prose}", "By Ana Berg | {long} | Markets\n{prose}",
    "Von Ana Berg, {dotted}, 14:30 Uhr\n{prose}", "{weekday}, {long}\n{prose}", "PARIS, {long} (AFP) - {prose}",
    "Par Ana Berg\n{fr}\n{prose}", "[{iso}] {prose}",
)  # fmt: skip
CITED = (
    '{prose}\n"Minutes". Central bank. Retrieved {dmy}.', "{prose} (accessed {long}).", "{prose}\nArchived from the original on {dmy}.",
    "{prose}\nAbgerufen am {de}.", "{prose}\nConsulté le {fr}.", "{prose}\nDate of access: {dmy}", "{prose}\nPage last reviewed: {dmy}",
    "{prose}\nData as of {long}.", "As of {long}, the rate stood at 3.75 %. {prose}", "{prose}\nDatenstand: {de}", "{prose}\nSnapshot taken {iso}",
    '{prose}\n"dateModified": "{iso}T08:00:00Z"', '{{"title": "x", "updated_at": "{iso}T08:00:00Z"}}\n{prose}',
    '{{"ts": {unix}, "price": 0.97}}\n{prose}', "{prose}\nlast-modified: {rfc}", "Correction, {long}: an earlier version misstated a name.\n{prose}",
)  # fmt: skip
COPYRIGHT = ("{prose}\n© {year} Example News", "{prose}\nCopyright 2011–{year} Example Ltd.", "{prose}\n(c) {year} by Example", "{prose}\n© Example News {year}. All rights reserved.")  # fmt: skip
TITLES = (
    "Bank cuts rates: {long}", "{dmy}: bank cuts its rate to 3.75 %", "Evening news of {long}", "Bank cuts rate | {dmy} | Example",
    "Zinssenkung vom {de}", "Rates cut - {iso}", "What the bank decided on {long}", "利下げ決定（{ja}）", "Résultats du {fr}",
)  # fmt: skip
ADDRESSES = (
    "https://news.example.org/{y}/{m}/{d}/bank-cuts-rate", "https://news.example.org/bank-cuts-rate-to-3-75-on-{slug}",
    "https://news.example.org/article/{compact}-rate-cut", "https://news.example.org/rates?date={iso}", "https://news.example.org/rates#{iso}",
    "https://files.example.org/minutes_{compact}.pdf", "https://files.example.org/decision-{iso}.html", "https://news.example.org/{y}-{m}/rate-cut",
    "https://news.example.org/rate-cut-{mdyslug}", "https://news.example.org/story_{dashed}.html", "https://news.example.org/{y}/{monthname}/{d}/cut",
    "https://news.example.org/a?id=7&published={compact}", "https://news.example.org/press/{monthname}-{y}-decision", "https://nachrichten.example.de/zinsen-{deslug}",
)  # fmt: skip
ROWS = (
    "date,rate\n2024-03-01,4.00\n{iso},3.75\n{prose}", "| {iso} | 3.75 |\n{prose}", "{iso};3,75;12\n{prose}", "{dotted}\t3.75\n{prose}",
    '{{"date": "{iso}", "value": 3.75}}\n{prose}', "{long}: 3.75%\n{prose}", "Date Close\n{mdyslash} 101.25\n{prose}",
)  # fmt: skip
STATES = (
    '{{"closed": true, "question": "Will it?"}}\n{prose}', '{{"result": "yes"}}\n{prose}', '{{"status": "resolved"}}\n{prose}',
    "Status: Resolved\n{prose}", "Resolution: YES\n{prose}", "Market resolved: No\n{prose}", "Outcome: Yes\n{prose}", "{prose}\nFinal result: No",
    '{{"isResolved": true, "resolution": "NO"}}\n{prose}', "This market has resolved YES.\n{prose}",
)  # fmt: skip
ERAS: dict[str, Callable[[date], str]] = {
    "Buddhist": lambda day: f"อัปเดตล่าสุด {format_date(day, 'd MMMM', 'th')} {day.year + 543}",
    "Buddhist, short": lambda day: f"เผยแพร่ {format_date(day, 'd MMM', 'th')} {day.year + 543}",
    "Reiwa": lambda day: f"最終更新：令和{day.year - 2018}年{day.month}月{day.day}日",
    "Minguo": lambda day: f"更新日期：民國{day.year - 1911}年{day.month}月{day.day}日",
    "Buddhist, digits": lambda day: f"ปรับปรุงเมื่อ {day.day:02}/{day.month:02}/{day.year + 543}",
}
LIVING = (
    "https://news.example.org/", "https://mirror.example.com/wiki/Central_bank", "https://news.example.org/world/live/rates",
    "https://news.example.org/rates/latest", "https://sport.example.org/league/standings", "https://news.example.org/tag/rates",
    "https://news.example.org/rate-decision-live-updates", "https://data.example.org/covid-tracker", "https://wikiwand.com/en/Central_bank",
    "https://news.example.org/topic/banks", "https://www.example.org/leaderboard", "https://bet.example.org/odds", "https://example.org/search?q=rates",
    "https://tradingeconomics.com/norway/interest-rate", "https://example.org/feed", "https://poll.example.org/results",
)  # fmt: skip
LASTING = (
    "https://news.example.org/2024/03/09/live-music-returns", "https://news.example.org/topic/banks/how-rates-work", "https://news.example.org/a/1234",
    "https://news.example.org/wikileaks-and-banks", "https://www.example.org/research/paper-17.pdf", "https://news.example.org/today-in-history-rates",
    "https://news.example.org/tracker-funds-explained", "https://blog.example.org/results-of-our-survey",
)  # fmt: skip
SCHEDULES = (
    "The next decision is due on {long}.", "The council will meet on {long} to vote.", "The summit takes place from {dmy} in Geneva.",
    "Registration closes on {long}.", "Tickets for the concert of {dmy} go on sale in May.", "The report will be published on {long}.",
    "The bond matures on {long}.", "The law is to take effect on {dmy}.", "Polls open at 8:00 on {long}.", "The probe should reach Jupiter on {long}.",
    "Calendar of releases:\n{iso} Consumer prices\n{iso} Employment", "Kick-off: {dmy}, 20:45, Munich", "Deadline: {long}",
    "The minutes are expected to be released on {long}.", "An updated forecast is due on {long}.", "Economists expect a cut by {long}.",
    "Die nächste Sitzung ist am {de}.", "Der Bericht wird am {de} veröffentlicht.", "La prochaine réunion aura lieu le {fr}.",
    "Le rapport sera publié le {fr}.", "El informe se publicará el {es}.", "La próxima reunión será el {es}.", "次回会合は{ja}に予定されている。",
    "보고서는 {ko}에 발표될 예정이다.", "下次会议将于{zh}举行。", "Следующее заседание состоится {ru}.", "Отчёт будет опубликован {ru}.",
    "Forecast\ndate,temperature\n{iso},21.5", "Projected values:\n{iso}, 3.5\n{iso}, 3.6", "The market closes on {long} at noon.",
    "If no deal is reached by {long}, tariffs apply.", "The offer is valid until {dmy}.", "Fixtures: {dmy} Ajax – PSV, {dmy} PSV – Feyenoord",
    "The championship runs from {long}. The final is a week later.", "Will the bank cut its rate before {long}?", "Il rapporto sarà pubblicato il {it}.",
    "O relatório será publicado em {pt}.", "Het rapport wordt op {nl} gepubliceerd.", "Raport zostanie opublikowany {pl}.", "Rapor {tr} tarihinde yayınlanacak.",
    "The eclipse of {long} will be visible from Spain.", "Applicants hear back by {dmy}.", "The lease expires on {long}.", "Save the date: {long}",
    "Results are due to be announced on {long}.", "The new tax applies as of {long}, the ministry plans.", "Options expire on {dmy}.",
    "Opening hours from {dmy}: 9 to 17.", "The strike would begin on {long} unless talks succeed.", "He is scheduled to be sentenced on {long}.",
)  # fmt: skip
PASTS = (
    "Published {long}\n{prose}", "LONDON, {long} (Reuters) - {prose}", "Updated: {dmy}\n{prose}", "{iso},4.00\n{prose}", "© 2023 Example\n{prose}",
    "Two years ago the bank cut its rate. {prose}", "Copyright 2024 Example Ltd.\n{prose}", "Status: open\n{prose}", '{{"closed": false}}\n{prose}',
    "It was 3 hours before dawn. {prose}", "Aktualisiert: {dotted}\n{prose}", "Mis à jour le {fr}\n{prose}", "更新：{ja}\n{prose}", "Обновлено {ru}\n{prose}",
    "{prose} A report published on {long} said as much.", "The board resolved to buy back shares. {prose}", "He said a week ago that rates fell. {prose}",
    "Retrieved {dmy}. {prose}", "Updated 10/03/2024\n{prose}", "Published 03/10/2024\n{prose}", "Chapter 3.10.2 of 2024 standards. {prose}",
    "The closed session lasted a day; the result: more debate. {prose}", "Days ago, it seemed unlikely. {prose}", "Version 2024.2.1 was tested. {prose}",
    "It cost $2,025 in 2023. {prose}", "Phone 030-20250301. {prose}",
)  # fmt: skip
PLANNED_ADDRESSES = (
    "https://www.example.org/events/{y}/{m}/{d}/gala", "https://www.example.org/conference-{iso}", "https://www.example.org/election-{slug}-what-to-expect",
    "https://www.example.org/calendar?date={iso}", "https://www.example.org/tickets/{slug}", "https://www.example.org/2024/03/09/outlook-for-june-{y}",
    "https://www.example.org/2024/03/rates-before-{monthname}", "https://www.example.org/world-cup-{y}-schedule",
)  # fmt: skip
PLANNED_TITLES = (
    "Conference on rates, {long}", "What to expect on {long}", "Save the date: {dmy}", "Election of {dmy}: the candidates", "Outlook to {long}",
    "Tickets for {dmy}", "Bonds due {long}", "Will it happen by {long}?", "Deadline {dmy} for applications", "Preview: final on {long}",
)  # fmt: skip


def all_cases(seed: int = 7) -> list[LeakCase]:
    """All cases, which are the same for the same seed."""
    texts = (*_leaks(random.Random(seed)), *_more_leaks(), *_clean(random.Random(seed + 1)), *_more_clean())
    return [text.case for text in texts]


def _later(draw: random.Random, low: int = 45, high: int = 900) -> date:
    return CUTOFF.at.date() + timedelta(days=draw.randint(low, high))


def _leaks(draw: random.Random) -> Iterator[MadeText]:
    for making in (_stamped, _aged, _templated, _titled, _addressed):
        for kind, wording, leak in making(draw):
            yield make_text(kind, wording, "drop", leak)


Made = Iterator[tuple[str, str, Place]]
"""Kind, wording and the item itself."""


def _stamped(draw: random.Random) -> Made:
    for language, stamps in UPDATED.items():
        for stamp, style in product(stamps, ("long", "medium", DAY_FIRST)):
            text = stamp.format(format_date(_later(draw), style, language))
            yield "update line", stamp, item(draw.choice(PLACES).format(stamp=text, prose=PROSE))
    for name, stamp in product(DIGITS, ("Updated: {}", "Aktualisiert {}", "آخر تحديث: {}", "更新 {}")):
        day = _later(draw).isoformat().translate(str.maketrans("0123456789", DIGITS[name]))
        yield "digits", f"{name} {stamp}", item(f"{stamp.format(day)}\n{PROSE}")
    for stamp in HIDDEN:
        yield "hidden characters", stamp, item(f"{stamp.format_map(DayForms(_later(draw)))}\n{PROSE}")
    for name, write in ERAS.items():
        yield "calendars", name, item(f"{write(_later(draw))}\n{PROSE}")


def _aged(_: random.Random) -> Made:
    for language, ages in AGES.items():
        for age, place in product(ages, ("{age}\n{prose}", "Example News · {age}\n{prose}")):
            yield "ages", f"{language} {age}{place}", item(place.format(age=age, prose=PROSE))


def _templated(draw: random.Random) -> Made:
    kinds = {"head of a report": HEADS, "citations and data": CITED, "rows of numbers": ROWS, "states": STATES}
    for kind, templates in kinds.items():
        for template, _ in product(templates, range(3)):
            yield kind, template, item(template.format_map(DayForms(_later(draw))))
    for template, year in product(COPYRIGHT, ("2025", "2026")):
        yield "copyright", template, item(template.format(year=year, prose=PROSE))


def _titled(draw: random.Random) -> Made:
    for template, _ in product(TITLES, range(3)):
        yield "titles", template, item(title=template.format_map(DayForms(_later(draw))))


def _addressed(draw: random.Random) -> Made:
    for template, _ in product(ADDRESSES, range(3)):
        yield "addresses", template, item(url=template.format_map(DayForms(_later(draw))))
    for address in LIVING:
        yield "living pages", address, item(url=address)


def _clean(draw: random.Random) -> Iterator[MadeText]:
    for making in (_scheduled, _past, _planned):
        for kind, wording, clean in making(draw):
            yield make_text(kind, wording, "keep", clean)


def _scheduled(draw: random.Random) -> Made:
    for template, place, _ in product(SCHEDULES, ("{text}\n{prose}", "{prose}\n{text}", "{prose} {text}"), range(2)):
        text = template.format_map(DayForms(_later(draw)))
        yield "scheduled", template, item(place.format(text=text, prose=PROSE))


def _past(draw: random.Random) -> Made:
    for template, _ in product(PASTS, range(4)):
        day = (
            PUBLISHED.date() - timedelta(days=draw.randint(0, 400)) if "Published" not in template else PUBLISHED.date()
        )
        yield "past", template, item(template.format_map(DayForms(day)))


def _planned(draw: random.Random) -> Made:
    for template, _ in product(PLANNED_ADDRESSES, range(4)):
        yield "plans in addresses", template, item(url=template.format_map(DayForms(_later(draw))))
    for template, _ in product(PLANNED_TITLES, range(5)):
        yield "plans in titles", template, item(title=template.format_map(DayForms(_later(draw))))
    for address in LASTING:
        yield "lasting pages", address, item(url=address)


# The wordings of `kinds`, each with its own days, so that a new one does not change the others.


def _days(wording: str, count: int, *, past: bool = False) -> Iterator[DayForms]:
    draw = random.Random(wording)
    for _ in range(count):
        day = PUBLISHED.date() - timedelta(days=draw.randint(0, 60)) if past else _later(draw, 200, 900)
        yield DayForms(day)


def _placed(text: str, draw: random.Random) -> Place:
    """Put the text at the start, in the middle or at the end of a page."""
    return item(
        draw.choice(("{text}\n{prose}", "{prose}\n{text}", "{prose}\n{text}\n{prose}")).format(text=text, prose=PROSE)
    )


def _more_leaks() -> Iterator[MadeText]:
    for kind, languages in kinds.STAMPED.items():
        for language, stamps in languages.items():
            for stamp in stamps:
                for day in _days(stamp, 2):
                    for style in ("", "_s"):
                        text = stamp.replace("{}", day[language + style])
                        yield make_text(kind, stamp, "drop", _placed(text, random.Random(text)))
    for kind, templates in kinds.LEAKS.items():
        yield from _texts(kind, templates, "drop")
    yield from _places("dated titles", "dated addresses", kinds.LEAK_TITLES, kinds.LEAK_ADDRESSES, "drop")
    for address in kinds.LEAK_LIVING:
        yield make_text("living pages and mirrors", address, "drop", item(url=address))


def _more_clean() -> Iterator[MadeText]:
    for kind, templates in kinds.CLEAN.items():
        yield from _texts(kind, templates, "keep")
    for kind, templates in kinds.PAST.items():
        yield from _texts(kind, templates, "keep", past=True)
    yield from _places("clean: titles", "clean: addresses", kinds.CLEAN_TITLES, kinds.CLEAN_ADDRESSES, "keep")


def _texts(kind: str, templates: Sequence[str], must: Must, *, past: bool = False) -> Iterator[MadeText]:
    for template in templates:
        for day in _days(template, 2, past=past):
            text = template.format_map(day)
            yield make_text(kind, template, must, _placed(text, random.Random(text)))


def _places(
    in_titles: str, in_addresses: str, titles: Sequence[str], addresses: Sequence[str], must: Must
) -> Iterator[MadeText]:
    for template in titles:
        for day in _days(template, 2):
            yield make_text(in_titles, template, must, item(title=template.format_map(day)))
    for template in addresses:
        for day in _days(template, 2):
            address = template.format_map(day).replace(" ", "-")
            yield make_text(in_addresses, template, must, item(url=address))
