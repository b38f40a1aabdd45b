"""A date in its text, and whether what stands around it says that the text, or part of it, was written on that day."""

import re
from dataclasses import dataclass
from functools import cached_property

from foretell.tools.dates.find import FoundDate, month_numbers, weekdays
from foretell.tools.dates.folding import lower, written
from foretell.tools.dates.tenses import is_edge, is_plan, is_told_as_done
from foretell.tools.dates.words import (
    ASIAN_STAMP,
    FIXTURE,
    FUTURE_SIGN,
    PLAN_HEADING,
    PLAN_KEY,
    PLAN_LABEL,
    PLANNED,
    SCHEDULED,
    SMALL,
    TOKEN,
    WILL,
    is_document,
    is_future,
    is_stamp,
)

_RUN_ON = re.compile(r"[.!](?<=[^\W\d]{4}.)\s+(?=[^\Wa-z]|[\"'(\[])")
_DOT_AFTER = re.compile(r"(?<=\d)\.\s?-?\s+(?=[^\Wa-z\d])")
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+(?=[^\Wa-z]|[\"'(\[])|\n\s{0,9}(?=\n|[^\Wa-z]|[\"'(\[#*|<-])|[。！？]")
_AS_OF = re.compile(
    r"(?:\bas (?:of|at)(?: (?:the )?(?:market )?close(?: of (?:trading|business))?(?: on)?)?|\bdata (?:to|through"
    r"|until)|\bcurrent (?:as of|to|through)|\bstand|\bau|\bal"
    r"|\bclose of business(?: on)?|\bthrough games (?:of|on)|\bdate:? as of|\ba fecha de|\ben date du|\ba la date du"
    r"|\balla data del|\bper il|\bper(?: den)?|\bpeildatum|\bstan na(?: dzien)?|\bke dni|\btinh den(?: ngay)?"
    r"|\bdados ate|\bdatos (?:hasta|a)|\bdonnees (?:au|jusqu'au)|\bdaten bis(?: zum)?|\bdati (?:al|fino al)"
    r"|\bgegevens tot(?: en met)?"
    r"|\bdane (?:na|do)(?: dnia)?|\bdata (?:till|til)|данные (?:на|по)|дані (?:на|станом на)"
    r"|\b(?:temporal |time |data )?coverage:? [^\n]{4,14} (?:to|-)|^\W{0,3}на"
    r"|станом на|към|по состоянию(?: на)?|時点|现在|截至|截止)(?![a-z])\W{0,4}(?:[a-z]{3,9},?\s+)?$"
)
_COUNTED = re.compile("已|累计|累計|共|达|達")
_LABEL = re.compile(r"^[\W_]{0,8}([^\W\d_]+(?:[\s'-]{1,3}[^\W\d_]+){0,6})\s{0,2}[:：]\s*$")
_CLOCK_AFTER = re.compile(
    r"^[\s,t|·•@-]{0,6}(?:at|um|a las|kl\.?|as|alle|ore)?\s?\d{1,2}\s?(?:[:h]\s?\d{2}|\.\d{2}\s?uhr|\s?[ap]\.?m\b)"
)
_ASIAN_CLOCK = re.compile(r"^[\s\d:時时分秒시분초()\[\]日曜月火水木金土,.-]{0,18}")
_CITY_BEFORE = re.compile(
    r"^[\W_]{0,8}(?:\([^)\n]{2,30}\)\s?)?[^\W\d_][^\d\n|:;?!()]{1,40}?(?:\([^)\n]{2,25}\))?\s?[,/:-]?\s?"
    r"(?:[^\W\d_]{2,12}\.?,?\s+)?$|^[^\W\d_]{3,20}(?: [^\W\d_]{3,20})?(?:\. |--?\([^)\n]{2,25}\)--?)$"
)
_BRACKETED_CITY, _BRACKETED_AGENCY = (
    re.compile(r"^\W{0,3}\([a-z][\w .-]{2,30}, $"),
    re.compile(r"^,? [a-z][\w ]{1,20}\)"),
)
_AGENCY_AFTER = re.compile(
    r"^[\s,.]{0,4}(?:\([^)\n]{2,30}\)\s?(?:--?|:)|/[^/\n]{2,30}/|(?:--?|:)\s?\([^)\n]{2,30}\)|\s--?\s|--\s|(?<=\.)\s[^\W\d_]{2,10}\.\s)"
)
_BYLINE = re.compile(
    r"^[\W_]{0,8}(?:by|von|par|por|di|door|av|af|od|autor|auteur|author|oleh|автор|от|yazan|ecrit par|text|reporter"
    r"|記者|기자)\s?:?\s+[^\n]{2,60}$"
)
_BRACKET_BEFORE = re.compile(r"^[^\n(\[]{0,30}[(\[]\s*$")
_BRACKET_AFTER = re.compile(r"^(?:[,\s]{1,2}\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]m)?)?\s{0,3}[)\]]\s{0,3}\S[^(]*$")
_WORDS = re.compile(r"[^\W\d_]+")
_CONDITION = re.compile(r"\b(?:if|whether|unless|provided that|resolves?)\b")
_CLAUSE_END = re.compile(r"\n\n|;")
_FEWEST_WORDS, _SHORT_SENTENCE = 2, 4
"""Words beside a date without which there is no sentence, and with which a word of plans decides."""
_SEPARATOR_BEFORE, _SEPARATOR_AFTER = re.compile(r"[|·•]\s{0,4}$"), re.compile(r"^\s{0,4}[|·•]")
_HEAD_LINES, _HEAD_CHARACTERS = 3, 300
_LONGEST_HEAD_LINE = 160
_BY_NAME = re.compile(r"\b[Bb]y (?=[A-Z@]|u/|the (?!end|time|deadline))")
_BY_WHOM = re.compile(r"\bby (?:our|an?|the) (?!end|time|deadline)")
_TO_BE = re.compile(r"\b(?:to be|(?:is|are|was|were|due|set|expected|planned) to|may|might|could|should|must|if)\b")
_SENTENCE = 160
_REACH = 200
"""Characters of a line that are looked at on each side of a date: lines of strangers may be endless."""

# What machines write.

_SECONDS_AFTER = re.compile(r"^(?:t|\s|,\s?|:|\st)\s?\d{2}:\d{2}(?::\d{2}|z|[+-]\d{2}:\d{2})|^t\d{4,6}")
_SECONDS_BEFORE = re.compile(r"\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?z?[ ,]{1,2}$")
_CLOCK_WITHIN = re.compile(r"\d{2}:\d{2}:\d{2}|\d{14}")
_FIELD, _LONGEST_FIELD = 120, 80
"""Characters before a date among which its field is looked for, in a tag and elsewhere."""
_KEY = re.compile(r"[\"'<\s]?(?P<key>[a-z@][a-z_:.@/-]{0,40})[\"']?\s?(?P<sign>[:=>])\s?[\"'(]{0,2}$")
_STAMP_KEY = re.compile(
    r"date(?!s)|datum|fecha|data$|creat|modif|updat|publi|lastmod|observ|snapshot|as_?of|retriev|fetch|access|crawl"
    r"|stamp"
    r"|^ts$|time$|^day$|^[xt]$|saved|built|build|revis|version|sent|receiv|filed|decided|signed|record|taken|aired"
    r"|resolved|settled|closed|ended|finish|complet|died|death|scan|print|tdrc|tdor|posted|seen|_at$|_on$|issued"
)
_STAMP_META = re.compile(r"=.?[\w:.-]{0,40}(?:modif|publi|updat|creat|\bdate\b|issued)[\w:.-]{0,20}[\"'\s]")
_EVENT_NEAR = re.compile(
    r"\bvenue|\bwhere\b|\blocation\b|\btime:|\btickets?|\bplace:|\bort:|\blieu\b|\blugar\b|\bdoors\b|event"
)

# What people put beside the dates of what they publish.

_META = re.compile(
    r"\b(?:views?|likes?|comments?|repl(?:y|ies)|\d shares?|\d points?|\d plays?|re(?:post|tweet)s?|followers"
    r"|subscribers|min read"
    r"|\d+ min(?:utes?|s)?\b|episode|ep\.|transcript|podcast|show notes|newsletter|press release|immediate release"
    r"|statement"
    r"|photo\w*|foto\w*|image|picture|bild|credit|letter|remarks|graphic|chart|figure|source|quelle|fuente|fonte"
    r"|box score|match report|duration|listen|watch"
    r"|permalink|edited|attendance|joined|member since|current draft|this version|working paper|official journal"
    r"|notice|memo"
    r"|s\d{1,2} ?e\d{1,3})\b|источник|фото|出所|来源|來源|출처|@\w{3,}|・|件の"
)
_REPORT_BEFORE = re.compile(
    r"\b(?:ranking|rankings|standings|turnout|statement|minutes|transcript|call|newsletter|snapshot|report|box score"
    r"|show notes|spieltag|kurs|schlusskurs|cours|result|results|episode|journal|release|gazette|bulletin|revision"
    r"|cached"
    r"|verdict|decision|ruling|judgment|order|opinion|medal|match|photo|price|close|quote|version|status|value"
    r"|observation|page|final|score|settled|dated|crawl|crawled|brief|briefing|notes|review|chart|data|verdict)"
    r"(?:\W{0,3}\b(?:of|after|vom|du|del|dated|as of|as at|from|at|in)\b|\s?[:,-])\W{0,4}(?:[a-z]{3,9},?\s)?$"
    r"|\b(?:history|results?|outcome|status|decision|price|close|quote|chart|data|graphic|version"
    r"|approved)[^(\n]{0,20}\($"
    r"|\b(?:verdict|ranking|standings|turnout|attendance|kurs|schlusskurs|medal|snapshot|minutes|transcript"
    r"|current date) $"
)
_NOW = re.compile(
    r"(?:\btoday(?:'s date)?|\bit is(?: now|(?= (?:mon|tues|wednes|thurs|fri|satur|sun)day))"
    r"|\bcurrent date|\bserver time|\bsession started|\bheute ist|\bnous sommes"
    r"|\boggi e"
    r"|\bhoy es|\bhoje e|\bdzis jest|сегодня|今日は|今天是|오늘은)[\s,':a-z]{0,16}$"
)
_LONGEST_NOW = 40
_VERSION_BEFORE = re.compile(
    r"(?:\bv?\d{1,4}(?:\.\d{1,6}){1,3}\S{0,8}|\bversion|\brelease notes?|\bwhat's new"
    r"|\bchangelog)[\])]?[\s:,/(-]{0,4}(?:(?:on|vom|du|del|of|from|van|от|z dnia)\s)?$"
)
_ROUND_CLOCK_AFTER = re.compile(r"^,? (?:at |um |a las |kl\.? )?\d{1,2}[:.][0134][05](?! ?[ap]m\b)\b")
"""A time of day for which events are set, where no report would name one."""
_CHAT_AFTER = re.compile(
    r"^,?\s\d{1,2}:\d{2}(?::\d{2})?(?:\s?[APap][Mm])?\]?\s?[->]?\s?[A-Z][a-z]+(?: [A-Z][a-z]+)?:\s"
)
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}|\*\*|==+)\s?$")
_AUTHOR_AFTER = re.compile(r"^[\s,]{1,4}[^\n<]{2,40}<[^\s<>@]{1,40}@")
_WROTE_AFTER = re.compile(
    r"^[^\n:]{0,60}(?:\d:\d[^\n:]{0,60})?\b(?:wrote|ha scritto|schrieb|escribio|scrisse|a ecrit|escreveu|schreef|skrev"
    r"|napisal\w*|napsal\w*|kirjoitti|yazdi|написал\w*|написав\w*|a scris|irta|viet|menulis)\b[^\n:]{0,60}:"
)
_NAME_AFTER = re.compile(r"^[^\n:\d]{0,14}\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]m)?,?\s[^\n:]{1,60}:\s?$")
"""How a mail names the one it answers to, in any language: "14 окт. 2024 г. в 09:05, Lee:"."""
_CITY_ALONE = re.compile(
    r"^\W{0,4}(?:(?:fait|done|dado|given) (?:a|at|en) )?[A-Z][\w.'-]{2,20}(?: [A-Z][\w.'-]{2,20}){0,2}, (?:den |am "
    r"|this |le "
    r"|a |the |el |il )?$"
)
_SCORE = re.compile(
    r"[a-z.)]\s(?:\d{1,3}\s?[-:]\s?\d{1,3})(?=[\s(,.;]|$)(?!\s?(?:june|july|pm|am|uhr|h\b))"
    r"|\b[wld]\s\d{1,3}-\d{1,3}\b|\b\d-\d \d-\d\b"
    r"|\b(?:ft|final|full time|result|results?|score)\b[^\n]{0,60}[a-z]\s\d{1,3}\b"
    r"|[a-z]\s\d{1,3},?\s[a-z][a-z .]{1,20}\s\d{1,3}\s(?:final|ft)\b"
)
_FIGURE_AFTER = re.compile(r"^\W{0,2}[:=]\s?[$€£¥]?[-+]?\d(?!\d?[:h]\d\d)")
_SPAN_BEFORE = re.compile(r"\b(?:from|until|till|to|by|ab|bis|a partir|dal|desde) $")
_ORDERED_AHEAD = re.compile(
    r"\bpre-?order|\bcalendar|\bagenda|\bschedule|kalender|calendrier|calendario|vorbestell|precommand"
)
NUMBER_BEFORE = re.compile(
    r"\b(?:lot|nos?|nr|section|part|item|ref|code|art|model|serial|sku|isbn|order)\b[.:#]{0,2} ?[a-z]{0,4}-?$"
)
"""What makes a number of 5.6.25."""
_SPAN_AFTER = re.compile(r"^,? ?(?:to|until|till|and|through|bis|und|au|et|al|hasta|e|ate|tot|en|do|a|-) ")
_SPAN_EDGE_AFTER = re.compile(
    r"^\s?(?:[-~]\s?|(?:to|au|bis|al|a|do|tot|till|til|until)\s)(?:[a-z]{3,9} )?\d{1,2}(?![\d:.,]?\d)"
)
_SPAN_EDGE_BEFORE = re.compile(r"(?:^|[\s(])\d{1,2}\.?(?: ?- ?|,? (?:and|und|et|e|y|og|och|en|a|i|&|au|bis|to|al) )$")
"""Days of a span or of a list, which are those of events."""
_ASIAN_EDGE = re.compile(r"^(?:\([^)]{1,4}\))?\s?(?:부터|까지|から|まで|まて|至|起|で満了|て満了)")
_OPEN_CELL = re.compile(r"(?:^|[,;|\t])[ ]*open[ ]*(?=[,;|\t])", re.MULTILINE)
"""The column of a day's first price."""
_LONGEST_TITLE = 120
_LONGEST_LIST, _MOST_ROWS, _LONGEST_HEADING = 2_000, 40, 70
_ROW = re.compile(r"\d{1,2}[./:-]\d|(?:19|20)\d\d|\d\s?(?:[|;\t]|$)|---")
"""What a row of a table or of a list holds, and a heading does not."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_DECIMAL = re.compile(r"\d[.,]\d")
_LONGEST_LEAD, _SHORT_LEAD, _SENTENCE_LEAD = 60, 6, 16
_FILE_BEFORE = re.compile(r"(?:^|[\s\"'(/:=])[\w.%+-]{0,80}$")
_FILE_AFTER = re.compile(
    r"^(?: (?:at|um|a|в|om|kl) \d\d[.:]\d\d(?:[.:]\d\d)?)?[\w%+-]{0,30}(?:\.tar)?\.(?:"
    r"pdf|xlsx?|csv|tsv|docx?|pptx?|odt|jpe?g|png|gif|webp|heic|tiff?|mp[34]|mov|wav|zip|gz|json|xml|html?"
    r"|txt|md|log|parquet|eml)\b"
)
_DATED = re.compile(
    r"[†✝]\s{0,2}$|\bd\.? ?d\.? $|\b(?:on |and now, |dated )?this (?:the )?$"
    r"|\b(?:fait|done|given|hecho|dado|dato|fatto|feito|geschehen|gedaan|sporzadzono|dano) (?:a|at|en|zu|te|em|w|v|in)"
    r" [a-z][\w .'-]{2,30}, (?:le |on |this |el |am |den |op |il |dne |dnia |em )?$"
)
"""The sign of death, the Dutch "of the day", and how deeds are dated: "this 5th day of", "Fait a Lyon, le"."""
_REPORT_OF = re.compile(
    r"^\W{0,4}(?:approved |draft |official )?(?:minutes|transcript|results?|recap|proceedings|resultats|compte rendu"
    r"|resultados|acta|ata|risultati|verbale|protokoll|niederschrift|ergebnisse?|notulen|uitslagen|protokol|wyniki|zapis|vysledky"
    r"|(?:climate|daily|weekly|situation|market|weather|status|auction|sale) report for|sale of|auction of"
    r"|протокол|результаты|итоги|sonuclari|tutanak|referat|poytakirja|jegyzokonyv)\b[^\n\d]{0,60}$"
)
_MAIL_DATE = re.compile(r"^date: (?:[a-z]{3}, )?$")
_BUILD = re.compile(r"\b(?:build|rev|snapshot|nightly)[ .:#-]{1,2}$")
_HASH_AFTER = re.compile(r"^[\s,]{1,3}\(?(?=[a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40}\b")
_HASH_BEFORE = re.compile(r"(?:^|[\s*])(?=[a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40}[\s,(]{1,3}$")
_CLOCK_BEFORE = re.compile(r"(?<![\d:-])\d{1,2}:\d{2}(?: ?[ap]\.?m\.?)?(?: uhr)?(?:,| -| ·| \||)\s$")
_ODD_MINUTE_AFTER = re.compile(r",? (?:at |um |a |в |as |kl\.? ?)?\d{1,2}:\d[1-46-9](?: ?[ap]m)?(?=\n|$)")
"""A time of day that ends its line and that nobody chooses for an event."""
_OF_DAY_BEFORE = re.compile(
    r"[^\W\d_]{3}\S{0,20}\s(?:vom|du|del|dello|della|van|z dnia|z|ze dne|ze|от|від|af den|fran den|din|of)"
    r"\s(?:the )?$"
)
_COLON_AFTER = re.compile(r"^\s?:\s")
_ON_DAY = frozenset(("on", "am", "le", "el", "il", "em", "op", "den", "dne", "dnia", "at", "in", "the"))
_CLOCK_LIKE = re.compile(r"\b(?:[01]?\d|2[0-3])[:.][0-5]\d\b")
_VOTES = re.compile(r"\d{1,2}(?:[.,]\d{1,2})?\s?%")


@dataclass(frozen=True)
class DatePlace:
    """A date in its text, and what stands around it."""

    plain: str
    """Folded, with its capitals."""
    low: str
    found: FoundDate
    text: str = ""
    """As it was written, with its accents."""
    far: bool = False
    """Whether only words of publishing make it a stamp."""

    @cached_property
    def wide_start(self) -> int:
        """Where its line begins, or as far back as is looked at."""
        least = max(0, self.found.start - _REACH)
        found = self.low.rfind("\n", least, self.found.start)
        return least if found < 0 else found + 1

    @cached_property
    def wide_end(self) -> int:
        """Where its line ends, or as far on as is looked at."""
        most = min(len(self.low), self.found.end + _REACH)
        found = self.low.find("\n", self.found.end, most)
        return most if found < 0 else found

    @cached_property
    def line_start(self) -> int:
        """Where its line begins, or its sentence: extracts from pages run several lines into one."""
        first, place = self.wide_start, self.found.start
        ends = [one.end() for one in _RUN_ON.finditer(self.plain, first, place + 1) if one.end() <= place]
        return ends[-1] if ends else first

    @cached_property
    def line_end(self) -> int:
        """Where its line ends, or its sentence."""
        if (end := _DOT_AFTER.match(self.plain, self.found.end, self.wide_end)) is not None:
            return end.start()
        end = _RUN_ON.search(self.plain, self.found.end, self.wide_end)
        return end.start() + 1 if end is not None else self.wide_end

    @cached_property
    def opens_line(self) -> bool:
        """Whether `before` reaches back to the beginning of the line."""
        return self.line_start == 0 or self.line_start > self.wide_start or self.low[self.line_start - 1] == "\n"

    @cached_property
    def before(self) -> str:
        """The line up to the date."""
        return self.low[self.line_start : self.found.start]

    @cached_property
    def after(self) -> str:
        """The line behind the date."""
        return self.low[self.found.end : self.line_end]

    @cached_property
    def segment(self) -> str:
        """What stands before the date since the last separator of fields."""
        part = self.before[-_FIELD:]
        start = max(len(part) - _LONGEST_FIELD, *(part.rfind(one) + 1 for one in ",;{}<>["))
        tag = part.rfind("<")
        return part[tag if tag >= 0 and ">" not in part[tag:] else start :]

    @cached_property
    def short_line(self) -> bool:
        """Whether the whole line is in sight and no longer than a heading."""
        ended = self.line_end == len(self.low) or self.line_end < self.wide_end or self.low[self.line_end] == "\n"
        return self.opens_line and ended and self.line_end - self.line_start <= _LONGEST_HEAD_LINE

    @cached_property
    def planned(self) -> bool:
        """Whether the line, or its heading, speaks of plans."""
        return self.line_plans or self.under_a_plan

    @cached_property
    def line_plans(self) -> bool:
        """Whether the line itself speaks of plans."""
        # Those who wrote something are no deadline.
        before, after = self.plain[self.wide_start : self.found.start], self.plain[self.found.end : self.wide_end]
        line = lower(_BY_NAME.sub("", f"{before} {after}"))
        ahead = PLANNED.search(line) or SCHEDULED.search(line) or FUTURE_SIGN.search(line) or _TO_BE.search(line)
        return bool(ahead) or not WILL.isdisjoint(TOKEN.findall(line))

    @cached_property
    def under_a_plan(self) -> bool:
        """Whether the line stands below the heading of an agenda, a forecast or a plan."""
        above = self.low[max(0, self.line_start - 400) : self.line_start].split("\n")[-4:]
        short = "\n".join(line for line in above if len(line) < 60)
        return SCHEDULED.search(_OPEN_CELL.sub("", short)) or self.heading_plans

    @cached_property
    def heading_plans(self) -> bool:
        """Whether the nearest heading, above all rows of the same list or table, is one of plans."""
        above = self.low[max(0, self.wide_start - _LONGEST_LIST) : self.wide_start].split("\n")
        heads = [line for line in above[-_MOST_ROWS:] if 2 < len(line) < _LONGEST_HEADING and not _ROW.search(line)]
        return PLAN_HEADING.search("\n".join((*heads[-2:], self.title)))

    @cached_property
    def title(self) -> str:
        """The first line of the text, unless it is the date's own or no heading."""
        first = self.low[:_LONGEST_TITLE].split("\n", 1)[0]
        return first if self.wide_start > len(first) and len(first) < _LONGEST_TITLE else ""

    def sentence_before(self, place: int, reach: int = 90) -> str:
        """The sentence up to a place."""
        first = max(0, place - reach)
        # One character more: the end of a sentence is known by how the next one begins.
        ends = [one.end() for one in SENTENCE_END.finditer(self.plain, first, place + 1) if one.end() <= place]
        return self.low[ends[-1] if ends else first : place]

    def sentence_after(self, reach: int = 90) -> str:
        """The rest of the sentence behind the date."""
        part = self.plain[self.found.end : self.found.end + reach]
        end = SENTENCE_END.search(part)
        return lower(part[: end.start()] if end is not None else part)

    def shown(self) -> str:
        """The date with a few words before it."""
        return " ".join(self.plain[max(self.line_start, self.found.start - 30) : self.found.end].split())

    def is_stamp(self) -> bool:
        """Whether the date is that of the text or of a part of it."""
        if NUMBER_BEFORE.search(self.before, max(0, len(self.before) - _LONGEST_LEAD)):
            return False
        if _MAIL_DATE.match(self.before) and _SECONDS_AFTER.match(self.after):
            return True
        if self.stamp_word_before() or self._labelled() or self._data_as_of() or self._keyed():
            return True
        if self.found.precision != "day" or self.far:
            return False
        if _DATED.search(self.before) or _BUILD.search(self.before):
            return True
        if self.opens_line and _REPORT_OF.match(self.before) and not looks_ahead(self.before):
            return True
        edge = _SPAN_EDGE_AFTER.match(self.after) or _SPAN_EDGE_BEFORE.search(self.before)
        if not edge and (
            self._named_file() or (self._laid_out() and not (self.heading_plans or is_edge(*self.written_place)))
        ):
            return True
        return self._told_as_done()

    def _laid_out(self) -> bool:
        """Whether the layout around the date is that of a stamp."""
        return (
            self._stamp_word_after()
            or self._heads_a_report()
            or self._by_machine()
            or self._published()
            or self._leading_stamp()
            or ((self._figure() or self._scored()) and not is_plan(*self.written_place))
            or self._of_that_day()
            or self._signed()
            or self._rated()
        )

    def _named_file(self) -> bool:
        """Whether the date stands in the name of a file, or beside the hash of a change to one."""
        if _HASH_AFTER.match(self.after) or _HASH_BEFORE.search(self.before):
            return True
        named = _FILE_AFTER.match(self.after) and _FILE_BEFORE.search(self.before)
        return bool(named) and not self.planned

    def _signed(self) -> bool:
        """Whether the time of day stands before the date, as in logs and signatures: "14:26, 16. Juni 2022"."""
        clock = _CLOCK_BEFORE.search(self.before) or _ODD_MINUTE_AFTER.match(self.low, self.found.end)
        return clock is not None and not (self.planned or looks_ahead(self.before[-40:]))

    def _rated(self) -> bool:
        """Whether the line holds the stars of a review."""
        return "★" in self.plain[self.wide_start : self.wide_end] and not self.planned

    def _of_that_day(self) -> bool:
        """Whether what follows a colon is of that day: "Auktion vom 8. September 2024: Zuschlag bei 4.740 Euro"."""
        named = _OF_DAY_BEFORE.search(self.before) and _COLON_AFTER.match(self.after)
        return bool(named) and not (self.planned or _YEAR.search(self.before) or looks_ahead(self.before))

    @cached_property
    def written_place(self) -> tuple[str, int, int]:
        """The text as it was written, and from where to where the date reaches in it."""
        return written(self.text, self.plain, self.found.start, self.found.end)

    def _told_as_done(self) -> bool:
        """Whether its sentence tells what happened on that day."""
        if self.low[self.found.start : self.found.end].isdigit():
            # 20240605 is as likely the number of a part or of a telephone.
            return False
        line = f"{self.before} {self.after}"
        words = len(_WORDS.findall(line))
        if line.isascii() and (words < _FEWEST_WORDS or (words < _SHORT_SENTENCE and SCHEDULED.search(line))):
            return False
        return is_told_as_done(*self.written_place)

    # Words of publishing and reading.

    def stamp_word_before(self) -> bool:
        """Whether a stamp word stands before the date, with nothing but weekday, clock and small words between."""
        start = max(0, self.found.start - 60)
        before = self.low[start : self.found.start]
        if ASIAN_STAMP.search(before[-14:]):
            return not _ASIAN_EDGE.match(self.after) and not FUTURE_SIGN.search(
                before[-30:] + self.low[self.found.end : self.found.end + 20]
            )
        if (_SPAN_BEFORE.search(before) and _SPAN_AFTER.match(self.after)) or _ORDERED_AHEAD.search(self.before):
            return False
        for place, token in enumerate(reversed(list(TOKEN.finditer(before)))):
            word = token[0]
            if _YEAR.fullmatch(word):
                # The stamp is that of the other date.
                return False
            if self.found.precision == "day" and is_document(word):
                return self._tells_of_the_past(start + token.start())
            if is_stamp(word) and not (word in SMALL and place == 0 and word != "update"):
                return self._tells_of_the_past(start + token.start())
            if place == 0 and word in ("by", "out"):
                # "received by 5 June" is a deadline, and a book that is out on 5 June is to come.
                return False
            small = word.isdigit() or word in SMALL or word in weekdays() or len(word) <= 2 or bool(month_numbers(word))
            if not small and self.plain[start + token.start()].isupper():
                # Who or where: "Kommentar von Uschi am 30.06.2024".
                small = "\n" not in before[max(0, token.start() - 20) :]
            if place >= 6 or not small or (is_future(word) and word not in SMALL):
                return False
        return False

    def _tells_of_the_past(self, stamp: int) -> bool:
        """Whether a stamp word is no plan: "will be published on" is one, "Published on" is none."""
        sentence = TOKEN.findall(self.sentence_before(stamp))
        if any(map(is_future, sentence[-3:])):
            return False
        if len(sentence) <= 3 or self.plain[stamp].isupper():
            return True
        return not WILL.intersection(TOKEN.findall(self.sentence_after()))

    def _stamp_word_after(self) -> bool:
        """Whether a stamp word follows the date, as in many languages of Asia, in Turkish and in brackets."""
        after = _CLAUSE_END.split(self.low[self.found.end : min(self.found.end + 40, self.line_end)], maxsplit=1)[0]
        if looks_ahead(self.sentence_before(self.found.start)[-50:]) or FUTURE_SIGN.search(after):
            return False
        if _CONDITION.search(self.sentence_before(self.found.start, _SENTENCE)):
            return False
        if ASIAN_STAMP.match(_ASIAN_CLOCK.sub("", after)):
            return True
        tokens = TOKEN.findall(after)[:4]
        for place, word in enumerate(tokens):
            if is_stamp(word) and word not in SMALL and tokens[place + 1 : place + 2] != ["hands"]:
                return not any(map(is_future, tokens[place + 1 : place + 3]))
            if not (word.isdigit() or word in SMALL or len(word) <= 2 or word in weekdays()):
                return False
        return False

    def _data_as_of(self) -> bool:
        """Whether a sentence or a line begins with "as of" the date, and tells no plan."""
        sentence = self.sentence_before(self.found.start)
        ends = not self.after.strip(" .)") and "as a" in sentence[-8:]
        if _AS_OF.search(sentence) is None or (len(TOKEN.findall(sentence)) > 5 and not ends):
            return False
        if self.found.precision != "day" and sentence.endswith("per "):
            return False
        if sentence.endswith(("截至", "截止")) and _COUNTED.search(self.after[:60]):
            return True
        return not (looks_ahead(f"{_AS_OF.sub('', sentence)} {self.after[:60]}") or self.under_a_plan)

    def _labelled(self) -> bool:
        """Whether the line is a label and the date: one with a word of publishing, or in other letters."""
        label = _LABEL.match(self.plain[self.line_start : self.found.start]) if self.opens_line else None
        if label is None or PLAN_LABEL.search(self.before) or TOKEN.search(_CLOCK_AFTER.sub("", self.after)):
            return False
        if self.heading_plans and not is_stamp(label[1].lower()):
            return False
        if label[1].isascii() and not any(map(is_stamp, TOKEN.findall(label[1].lower()))):
            return False
        words = _BY_WHOM.sub("", self.before)
        return not (looks_ahead(words) or SCHEDULED.search(words) or PLANNED.search(words))

    # Fields and clocks.

    def _keyed(self) -> bool:
        """Whether the date is the value of a field that says when something was done."""
        if self.segment.startswith("<meta") and _STAMP_META.search(self.segment):
            return True
        key = _KEY.search(self.segment)
        if key is None or _STAMP_KEY.search(key["key"]) is None or PLAN_KEY.search(self.segment):
            return False
        word = key["key"].strip(" \"'<")
        if looks_ahead(self.segment[: key.start()][-20:]):
            return False
        if word in ("date", "datum", "data", "fecha", "time") and key["sign"] == ":" and '"' not in self.segment:
            if len(_WORDS.findall(self.before)) > 2:
                return False
            near = self.low[max(0, self.line_start - 200) : self.line_end + 200]
            return not (_EVENT_NEAR.search(near) or SCHEDULED.search(self.before) or self.under_a_plan)
        return not self.under_a_plan

    def _by_machine(self) -> bool:
        """Whether the date comes with seconds or a zone, as programs write it, and is no time of a plan."""
        clocked = (
            _SECONDS_AFTER.match(self.after)
            or _SECONDS_BEFORE.search(self.before)
            or _CLOCK_WITHIN.search(self.low, self.found.start, self.found.end)
        )
        if not clocked:
            return False
        key = f"{self.before[-_SENTENCE_LEAD:]} {self.segment}"
        return not (PLAN_KEY.search(key) or looks_ahead(self.segment) or self.under_a_plan)

    # Layouts of reports and posts.

    def _heads_a_report(self) -> bool:
        """Datelines, bylines, lines of date and time alone, and dates between separators at the head of a text."""
        if not self.opens_line:
            return False
        before, after = self.before, self.after
        ahead = looks_ahead(before)
        in_head = self.line_start <= _HEAD_CHARACTERS and self.low.count("\n", 0, self.line_start) <= _HEAD_LINES
        if in_head and not ahead and _BYLINE.match(before):
            return True
        if ahead or SCHEDULED.search(before) or FIXTURE.search(before):
            return False
        if _AGENCY_AFTER.match(after) and (_CITY_BEFORE.match(before) or after.lstrip()[:1] in ("(", "/")):
            return True
        if _BRACKETED_CITY.match(before) and _BRACKETED_AGENCY.match(after):
            return True
        if _BRACKET_BEFORE.match(before) and _BRACKET_AFTER.match(after):
            return True
        if (in_head or _CLOCK_AFTER.match(after)) and self._alone():
            return True
        separated = _SEPARATOR_BEFORE.search(before) or _SEPARATOR_AFTER.match(after)
        line = self.low[self.line_start : self.line_end]
        return in_head and bool(separated) and len(line) < _LONGEST_HEAD_LINE and not SCHEDULED.search(line)

    def _alone(self) -> bool:
        """Whether the line holds nothing but day and time, and what follows is no entry of an agenda."""
        words = _WORDS.findall(f"{self.before} {_CLOCK_AFTER.sub('', self.after, count=1)}")
        if not all(word in SMALL or word in weekdays() for word in words):
            return False
        follows = self.low[self.line_end : self.line_end + 120].split(".")[0]
        if FIXTURE.search(follows[:80]) and not _SCORE.search(_CLOCK_LIKE.sub(" ", follows)):
            return False
        ahead = SCHEDULED.search(follows[:40]) or WILL.intersection(TOKEN.findall(follows))
        return not (ahead or self.under_a_plan)

    def _published(self) -> bool:
        """Lines of posts, podcasts, captions, press releases, versions, letters and mails, and what says "today"."""
        if _NOW.search(self.before, max(0, len(self.before) - _LONGEST_NOW)):
            return True
        if not self.opens_line or self.planned or FIXTURE.search(f"{self.before} {self.after}"):
            return False
        if _VERSION_BEFORE.search(self.before) or _AUTHOR_AFTER.match(self.after) or _WROTE_AFTER.match(self.after):
            return True
        if len(TOKEN.findall(self.before)) <= 1 and _NAME_AFTER.match(self.after):
            return True
        if not self.before.strip(" [") and _CHAT_AFTER.match(self.plain[self.found.end : self.line_end]):
            return True
        if _HEADING.match(self.before) and len(self.after) < 40:
            return True
        if not self.short_line:
            return False
        beside = self.low[self.line_end : min(self.wide_end, self.line_end + _LONGEST_LEAD)]
        if _ROUND_CLOCK_AFTER.match(self.after) and not _SCORE.search(_CLOCK_LIKE.sub(" ", self.after)):
            return False
        if _REPORT_BEFORE.search(self.before) or _META.search(f"{self.before} {self.after} {beside}"):
            return True
        alone = not self.after.strip(" .")
        return alone and _CITY_ALONE.match(self.plain[self.line_start : self.found.start]) is not None

    def _figure(self) -> bool:
        """Whether the line gives a figure for that day: "Closing price, 5 June 2024: 88.20"."""
        if not self.short_line or self.planned or FIXTURE.search(f"{self.before} {self.after}"):
            return False
        if _FIGURE_AFTER.match(self.after) and not (_SPAN_BEFORE.search(self.before) or _YEAR.search(self.before)):
            return True
        in_brackets = self.before.endswith("(") and self.after.startswith(")")
        timed = _CLOCK_AFTER.match(self.after) is not None
        return (in_brackets or timed) and _DECIMAL.search(self.before) is not None

    def _leading_stamp(self) -> bool:
        """Whether a short line begins with a stamp word and ends with the day: "Streamed live on Jun 5, 2024"."""
        if not self.short_line or len(self.before) > _LONGEST_LEAD or self.after.strip(" .)"):
            return False
        if _YEAR.search(self.before):
            return False
        words = TOKEN.findall(self.before)
        near = bool(words) and (words[-1] in _ON_DAY or len(words) <= _SHORT_LEAD)
        return near and any(map(is_stamp, words[:2])) and not (self.planned or looks_ahead(self.before))

    def _scored(self) -> bool:
        """Whether the line tells a score or shares of votes."""
        if not self.short_line:
            return False
        below = "" if self.after.strip(" .") else self.low[self.line_end : self.line_end + _LONGEST_LEAD]
        rest = _CLOCK_LIKE.sub(" ", f"{self.before}|{self.after}{below}")
        if self.planned or _YEAR.search(self.before):  # A poll of one day on the vote of another.
            return False
        return bool(_SCORE.search(rest) or (_VOTES.search(rest) and ":" in self.after[:2]))


def looks_ahead(words: str) -> bool:
    """Whether folded words in lower case speak of something to come."""
    return bool(FUTURE_SIGN.search(words)) or any(map(is_future, TOKEN.findall(words)))
