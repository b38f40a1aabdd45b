# ruff: noqa: E501 (tables of words)
"""Sentences that tell something as done on a day: "The bank cut its rate on 6 June 2024"."""

import re

from foretell.tools.dates.folding import fold
from foretell.tools.dates.words import FUTURE_SIGN, TOKEN, WILL, AnyOf

_AHEAD = re.compile(
    r"\b(?:will|would|could|may|might|shall|should|must|can|cannot|due|if|unless|whether|schedul\w+|plan\w*|expect\w*"
    r"|until|till|deadline|next|upcoming|forecast\w*|project(?:s|ed|ion)|propos\w+|hop(?:e|es|ed)|aim\w*|ahead|before"
    r"|expires?|ends|runs|takes?|begins?|starts|opens|closes|arrives?|lapses?|falls on|matures?|returns|leaves"
    r"|resumes?|reopens?|votes|meets?|faces|(?:vote|run|open|start|return|end|close) (?:on|in|to|again)|intend\w*"
    r"|set|postpon\w+|extend\w+|delay\w*|moved|adjourn\w+|resched\w+"
    r"|slat\w+|pushed|slipped|book\w*|call\w*|fixed|pledg\w+|vow\w*|promis\w+|order\w*|invit\w+|summon\w*|sale"
    r"|ticket\w*"
    r"|is|are|be|to|for|about|likely|eligible|anniversary|term|question|resolves?|poll|bets?|odds|guidance|outlook)\b"
)
_SAID = re.compile(r"\b(?:said|says|told|announced|agreed|confirmed|warned|reported|declared|wrote|noted|added)\b")
_DONE = re.compile(
    r"\b(?:was|were|had|did|shook|came|flew|fought|threw|drew|ran|wrote|spoke|stood|burnt|rang|swept|felt|found|sent|paid|led|won|lost|beat|fell|rose|cut|raised|held|kept|resigned|died|ended|passed|ruled|rejected"
    r"|approved|signed|exploded|crashed|came|struck|hit|killed|arrested|elected|defeated|closed|opened|launched|landed"
    r"|collapsed|resumed|voted|lifted|lowered|hiked|dropped|climbed|jumped|gained|slid|broke|became|took|left|made|went"
    r"|gave|began|started|withdrew|acquired|bought|sold|filed|convicted|sentenced|acquitted|scored|finished|failed"
    r"|escaped|attacked|invaded|released|published|vetoed|adopted|ratified|sworn|inaugurated|appointed|fired|dismissed"
    r"|overturned|upheld|blocked|granted|denied|settled|stepped|quit|reached|completed|merged|defaulted|erupted|burned"
    r"|entered|received|issued|sank|seized|captured|freed|returned|arrived|met|announced|confirmed|said|reported"
    r"|declared|decided|sacked|suspended|hired|crowned|banned|fined|jailed|raided|bombed|shelled|ousted|toppled|declined|surged|plunged|tumbled|soared|edged|ticked|topped|exceeded)\b"
)
_DONE_LAST = re.compile(r"\b(?!need|indeed|feed|speed|expected|limited|related|based|named|dated|united)[a-z]{3,}ed$")
"""Any other verb, where it stands right before the day: "promised a vote on 6 June" tells of no vote."""
_NO_DEED = (
    "updat promis pledg vow propos schedul plan expect announc call book invit order extend delay postpon adjourn summon reserv"
    " urg ask demand request want need intend hop target forecast project predict agre slat fix mov push confirm limit relat bas"
    " nam dat unit design requir allow advis recommend list publicis advertis indicat suggest estimat budget earmark nominat"
    " suppos assum imagin ne fe spe inde exce succe se we she bre kne gre tre ble hundr shar attach includ involv us unlimit"
    " organis organiz host sponsor present"
)
_DONE_ANYHOW = re.compile(rf"\b(?!(?:{'|'.join(_NO_DEED.split())})ed\b)[a-z]{{3,}}ed\b")
"""Any verb of the past but those of plans, announcements and descriptions."""
_CLAUSE = re.compile("[,:]")
_BLANKS = re.compile(r"\s{2,}")
_TIME_OF_DAY = re.compile(
    r"\b(?:just |shortly |minutes |hours |right )?(?:before|after|around|about|at|by) (?:dawn|noon|midnight|dusk|sunrise|sunset|lunch"
    r"|\d{1,2}(?:[:.]\d{2})?(?: ?[ap]\.?m\.?)?)(?: (?:[a-z]{2,4}|local time))?(?= on\b|,| early| late|$)|\b(?:the )?(?:early |late )?"
    r"(?:morning|afternoon|evening|night|hours) of\b"
)
_ON = re.compile(
    r"(?:\bon|\bon the|\bon (?:mon|tues|wednes|thurs|fri|satur|sun)day,?|\b(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)day,?)\s?$"
)
_OPENS = re.compile(
    r"^[\s\"'(]{0,3}(?:on\s|in\s)?(?:the\s)?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s|(?:early|late)\s(?:on\s)?)?$"
)
_SINCE = re.compile(r"\b(?:since|seit(?: dem)?|depuis(?: le)?|sinds|ever since)\s$")
_SUPPOSED = re.compile(r"\b(?:suppos\w+|imagin\w+|assum\w+|what if|hypothe\w+|scenario|fiction\w*|had the|were the)\b")
_PAPER_BEFORE = re.compile(
    r"\b(?:in|to|from|with|by) (?:an?|the|its|his|her|their|our) $|\b(?:a|its|his|her|their) $|\bthe $"
)
_PAPER_AFTER = re.compile(
    r"^,? (?:\w{3,12} )?(?:statement|report|interview|speech|press release|filing|letter|memo|article|post|tweet|ruling|note"
    r"|decision|announcement|minutes|testimony|briefing|order|judgment|survey|poll|blog|column|editorial|cut|vote|attack|raid"
    r"|crash|storm|quake|earthquake|election)\b(?! (?:is|will|may|could|date|day|deadline|are|would))"
)
_TOLD_TO = re.compile(
    r"\btold (?!to\b)(?:\w+ ){1,3}$|\bsaid (?:in|at|during|to) (?:\w+ ){1,4}$|\b(?:spoke|testified|speaking) (?:\w+ ){0,3}$"
)
_UNTIL = re.compile(r"^\W{0,3}(?:until|up to|till|bis zum|jusqu'au|hasta el|fino al)\s$")
_WAS = re.compile(r"^,?\s(?:[a-z]{1,12}\s){0,3}(?:was|were|had|war|etait|era)\b")

# Past tenses of other languages, in folded letters: which sentences are of the language, and what is done in them.

_DONE_ELSEWHERE = tuple(
    (re.compile(written), re.compile(done))
    for written, done in (
        (
            r"\b(?:am|vom|den|dem)\s\W?$|^\W?(?:am|vom)\s",
            r"\b(?:sagte|teilte|erklarte|gab|beschloss|entschied|kundigte|meldete|senkte|erhohte|hob|trat|siegte|verlor|gewann"
            r"|starb|sturzte|endete|eroffnete|schloss|stimmte|lehnte|billigte|verabschiedete|unterzeichnete|verkundete|stieg|sank"
            r"|veroffentlichte|beliess|kurzte|stoppte|startete|wahlte|ernannte|verhaftete|totete|explodierte|brach|fiel)\b|\b(?:hat|haben|wurde|wurden|war|waren)\b[^.]{0,90}\b(?:ge\w{2,}|\w{2,}ge\w{2,}|\w{3,}(?:iert|worden))\b"
            r"|^\W?\s?(?:\w{3,}te|sank|stieg|fiel|starb|gewann|verlor|trat|hob|nahm|kam|brach|begann|schloss|wies)\b",
        ),
        (
            r"\ble\s$",
            r"\b(?:a|ont|avait)\s(?:\w{2,9}\s)?\w{2,}(?:e|ee|es|i|u|is|it|us|ert)\b"
            r"|\b(?:est|sont) (?:mort|decede|tombe|entre|devenu)e?s?\b",
        ),
        (
            r"\b(?:el|dia)\s$",
            r"\b(?!precio|servicio|inicio|cambio|municipio|negocio|edificio|principio|ejercicio|premio|estudio|barrio|medio|comercio"
            r"|palacio|espacio|territorio|ministerio|laboratorio|calendario|aniversario|anuncio|comicio|sitio|plazo)\w{3,}io (?:el|dia)\s"
            r"|\b(?:bajo|subio|gano|perdio|murio|aprobo|recorto|firmo|cayo|dimitio|renuncio|voto|rechazo|decidio"
            r"|redujo|elevo|dijo|declaro|afirmo|senalo|explico|confirmo|informo|aseguro|indico|presento|publico|llego|logro|nombro"
            r"|mantuvo|fallecio|vencio|derroto|cerro|fue (?:elegid|detenid|aprobad)\w|ha (?:bajad|subid|ganad"
            r"|aprobad|firmad)o)\b",
        ),
        (
            r"\b(?:il|l')\s?$",
            r"\b(?:ha|hanno)\s(?:\w{2,9}\s)?\w{2,}(?:ato|uto|ito|so|tto|sto|nto|rto|lto)\b|\b(?:e|sono)\s\w{3,}(?:to|ta|ti|te|so|sa|si|se)\b",
        ),
        (
            r"\b(?:em|dia)\s$",
            r"\b\w{3,}(?:ou|iu|eu)\b|\b(?:disse|fez|teve|morreu|venceu|perdeu|foi (?:eleit|pres|aprovad|assinad)[oa])\b",
        ),
        (
            r"\w{2,}(?:ades|ede|pnet|ket)\s(?:igjen\s|igen\s|den\s)?$",
            r".",
        ),
        (
            r"\bop\s$",
            r"^\s\w{4,}(?:de|te)\s|^\s(?:won|verloor|stierf|trad|nam|kwam|viel|steeg|hief|sloot|brak|ging)\s|\b(?:heeft|hebben|werd|werden)\b",
        ),
        (
            r"\bden\s$",
            r"^\s\w{4,}(?:de|te)\s|^\s(?:vann|vandt|vant|dog|dode|avgick|sjonk|steg|foll|falt|faldt|tog|fick|slot)\s|\b(?:har|hade|blev)\s\w{3,}(?:t|ts|d|dt)\b",
        ),
    )
)
"""By the word before the date."""
_DONE_BY_WORDS = tuple(
    (re.compile(fold(told_by)), re.compile(fold(done)))
    for told_by, done in (
        # Polish, Turkish, Czech and Slovak, Croatian and Serbian and Slovene, Romanian, Hungarian, Finnish, Estonian,
        # Latvian, Lithuanian, Catalan, Indonesian and Malay, Vietnamese, Swahili, Filipino
        (
            "stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|wrzesnia|pazdziernika|listopada|grudnia|\\bdnia\\b",
            r"\b(?!kanal|final|material|kvartal|kwartal|general|terminal|portal|festival|serial|signal|model|hotel|skandal|jubil|profil|kapital|personal|april|fiskal|lokal|poziom|kancel|stal|cel|udzial|oddzial|podzial|przedzial|artykul)\w{3,}(?:yl|il|al|yla|ila|ala|ylo|ilo|alo|yli|ili|ali|eli|ono|ano|rto|eto)\b",
        ),
        (
            "ocak|subat|mart|nisan|mayis|haziran|temmuz|agustos|eylul|ekim|kasim|aralik|tarihinde",
            r"\b\w{3,}(?:di|du|ti|tu)\b\W{0,2}$",
        ),
        (
            r"\bdne\b|\bdna\b|ledna|unora|brezna|dubna|kvetna|cervna|cervence|srpna|zari|rijna|listopadu|prosince|januara"
            r"|februara|marca|aprila|maja|juna|jula|augusta|septembra|oktobra|novembra|decembra",
            r"\b(?!kanal|final|material|kvartal|kwartal|general|terminal|portal|festival|serial|signal|model|hotel|skandal|jubil|profil|kapital|personal|april|fiskal|lokal|poziom|kancel|stal|cel|udzial|oddzial|podzial|przedzial|artykul)\w{3,}(?:il|al|el|ila|ala|ela|ilo|alo|elo|ili|ali|eli|ly|sla|slo|sli)\b|\b(?:byl|byla|bylo|byli|bol|bola|bolo|boli)\b",
        ),
        (
            r"\bdana\b|sijecnja|veljace|ozujka|travnja|svibnja|lipnja|srpnja|kolovoza|rujna|listopada|studenog|prosinca"
            r"|junija|julija|januarja|februarja|avgusta|juna|jula|јуна|јула|маја|марта|априла",
            r"\b(?:je|su|sta|so|јесу|је|су)\b[^.]{0,60}\b(?!kanal|final|general)\w{2,}(?:io|la|lo|li|le|ao|il|al|en|ена|ио|ла|ло|ли)\b"
            r"|\b\w{3,}(?:io|ila|ala|ili|ali|ao)\b[^.]{0,20}\b(?:je|su)\b",
        ),
        (
            "ianuarie|februarie|martie|aprilie|iunie|iulie|august|septembrie|octombrie|noiembrie|decembrie",
            r"\b(?:a|au|s-a|s-au)\s(?:fost\s)?\w{2,}(?:at|ut|it|s|t)\b",
        ),
        (
            "januar|februar|marcius|aprilis|majus|junius|julius|augusztus|szeptember|oktober|november|december",
            r"\b\w{3,}(?:ottak|ettek|attak|ottuk|tak|ette|otta|atta|tett|tott|ott|ett|ult|olt|ult|jelentette|nyert|halt)\b",
        ),
        (
            r"\w{3,}kuuta\b|\w{3,}kuun\b|\d\.\d{1,2}\.20\d\d",
            r"\b(?:laski|nosti|voitti|havisi|paatti|ilmoitti|kertoi|sanoi|hyvaksyi|hylkasi|erosi|kuoli|alensi|julkisti|allekirjoitti"
            r"|piti|teki|\w{3,}(?:ttiin|stiin))\b",
        ),
        (
            "jaanuar|veebruar|marts|aprill|juuni|juuli|august|septemb|oktoob|novemb|detsemb",
            r"\b\w{3,}(?:tas|das|stas|tis|ras|nes|utas)\b|\b(?:oli|voitis|suri|kaotas)\b",
        ),
        (
            r"\bgada\b|janvar|februar|marta|aprili|maija|junija|julija|august|septemb|oktob|novemb|decemb",
            r"\b\w{3,}(?:inaja|oja|aja|ija|eja|uva|eca|uca)\b|\btika \w{3,}",
        ),
        (
            r"\bm\. \w{4,}|sausio|vasario|kovo|balandzio|geguzes|birzelio|liepos|rugpjucio|rugsejo|spalio|lapkricio|gruodzio",
            r"\b\w{3,}(?:ino|ejo|ojo|avo|ande|nde|ske|lbe|are|ome|emo|ijo|iko)\b|\bbuvo\b",
        ),
        (
            "gener|febrer|marc|abril|maig|juny|juliol|agost|setembre|octubre|novembre|desembre",
            r"\bvan? \w{2,}(?:ar|ir|er|re)\b|\bha \w{2,}(?:at|ut|it)\b",
        ),
        (
            r"\bpada\b|\btanggal\b",
            r"\b(?:telah|sudah|memangkas|menurunkan|menaikkan|mengumumkan|memutuskan|mengatakan|menyatakan|menandatangani"
            r"|menang|memenangkan|kalah|meninggal|mengundurkan|menyetujui|menolak|menang|resmi \w+|ditangkap|terpilih)\b",
        ),
        (r"\bngay\b|\bthang\b", r"\b(?:da|vua)\b (?:\w+)|\b(?:tuyen bo|thong bao|cong bo|cho biet)\b"),
        (r"\b(?:tarehe|mwezi|januari|juni|julai|agosti|machi)\b", r"\b(?:ili|ali|wali|zili|yali)\w{4,}\b"),
        (r"\bnoong\b", r"\w{3,}"),
    )
)
"""By other words of the sentence: names of months and prepositions."""
_DONE_BY_LETTERS = tuple(
    (re.compile(letters), re.compile(fold(done)))
    for letters, done in (
        # Russian and its kin, Bulgarian, Greek, Arabic and Persian and Urdu, Hebrew, Hindi, Bengali, Tamil, Telugu, Thai,
        # Georgian, Armenian
        (
            r"[\u0430-\u044f]",
            r"\b(?!канал|квартал|материал|финал|журнал|капитал|персонал|портал|терминал|филиал|потенциал|генерал|сериал|сигнал|отдел|предел|раздел|фестивал|апрел|профил|спектакл)\w{3,}(?:ил|ал|ел|ыл|ул|ила|ала|ела|ыла|ило|ало|или|али|ели|ыли|ули|лся|лась|лось|лись|ив|ав|ився|вся)\b",
        ),
        (
            "януари|февруари|март|април|май|юни|юли|август|септември|октомври|ноември|декември",
            r"\b(?:намали|обяви|реши|понижи|повиши|каза|спечели|загуби|подписа|прие|одобри|почина|бе|беше|бяха|отхвърли)\b",
        ),
        (
            r"[\u03b1-\u03c9]",
            r"\b\w{2,}(?:ωσε|ησε|ισε|ασε|υσε|ξε|ψε|θηκε|θηκαν|σαν|ξαν)\b|\b(?:ειπε|ηταν|εγινε|πεθανε|κερδισε)\b",
        ),
        (
            r"[\u0600-\u06ff]",
            r"(?:^|\s)(?:و|ف)?(?:خفض|اعید|فتح|اغلق|دخل|وصل|خرج|تولی|نفذ|بدا|انتهی|شن|رفع|اعلن|قرر|قال|اكد|صرح|فاز|خسر|وقع|توفي|استقال|وافق|رفض|صوت|انتخب|اعتقل|تم|كان|كانت|شهد|بلغ|اصدر|ابقى|ثبت"
            r"|انهار|قتل|اطلق|افتتح|عقد|هزم|اقر|عين|اقال|ادان|حكم)(?:ت|وا|ا)?(?=\s|$|[.,])|"
            r"(?:کرد|کردند|شد|شدند|داد|دادند|گفت|گفتند|بود|رفت|یافت|گرفت|درگذشت|کیا|کی|دیا|گیا|گئی|ہوا|ہوئی|تھا|تھی)\W{0,3}$",
        ),
        (
            r"[\u05d0-\u05ea]",
            r"(?:^|\s)(?:ה?בנק )?(?:הוריד|הורידה|העלה|העלתה|הודיע|הודיעה|החליט|החליטה|אמר|אמרה|ניצח|ניצחה|הפסיד|חתם|חתמה|נפטר|התפטר|התפטרה"
            r"|אישר|אישרה|דחה|דחתה|נבחר|נבחרה|הפחית|הפחיתה|היה|היתה|הייתה|קבע|קבעה|פרסם|מסר|נעצר|נפתח|נפתחה|נסגר|נסגרה|אתמול|נחתם|התקיים|התקיימה)(?=\s|$|[.,])",
        ),
        (
            r"[\u0900-\u097f]",
            "(?:की|किया|किए|दी|दिया|गया|गई|गए|था|थी|थे|हुआ|हुई|हुए|कहा|बताया|जीता|जीती|लिया|रखा|घटाई|बढाई|केला|केली|झाला|झाली|आला)(?: है| हैं)?[।.|]?\\W{0,2}$",
        ),
        (
            r"[\u0980-\u09ff]",
            "(?:করেছে|করেছেন|করেন|করে|করল|করলেন|ছিল|ছিলেন|হয়েছে|হয়|দিয়েছে|বলেছেন|বলেন|জানায়|জানিয়েছে|কমিয়েছে|জিতেছে)[।.|]?\\W{0,2}$",
        ),
        (r"[\u0b80-\u0bff]", "(?:தது|ததார|ததன|டடது|யது|னார|றது|ததனர)\\W{0,2}$"),
        (r"[\u0c00-\u0c7f]", "(?:ంచింది|ంచారు|ారు|ింది|ంది)\\W{0,2}$"),
        (
            r"[\u0e00-\u0e7f]",
            "ได้(?:ลด|ปรับ|ประกาศ|ตัดสิน|อนุมัติ|ลงนาม|ชนะ|เสียชีวิต|มีมติ|แถลง)|ประกาศ(?:ลด|ขึ้น|ผล)|แล้ว|มีมติ|เสียชีวิต|กล่าวว่า|แถลงว่า",
        ),
        (r"[\u10d0-\u10f0]", r"\b\w{3,}(?:და|ეს|ნა|ცა|ვა|რა|ლა)\b"),
        (r"[\u0561-\u0586]", r"\b\w{3,}(?:եց|ցավ|ել է|վել է|եցին)\b"),
    )
)
"""By the letters of the sentence."""
_VIETNAMESE = re.compile(r"\bngay\b")
_ENGLISH = re.compile(r"\b(?:the|and|with|that|its)\b")
_PLANNED_ASIA = re.compile("延期|予定|変更|推迟|推遲|改期|定于|定於|拟于|擬於|预定|연기|예정|변경|미뤄|계획|เลื่อน")
_DONE_BEFORE = re.compile("已(?:经|經)?(?:于|於|在)?$|(?<![将將定拟擬])[于於]$|" + fold("เมื่อวันที่") + r"\s?$")
_DONE_ASIA = re.compile(
    r"(?:した|された|った|なった|れた|いた|んだ|ました|でした)[。.]?\s?$|了[。.]?\s?$|已经|宣布|表示|下调|上调|赢得|战胜|击败|获胜|夺冠|降息|加息|当选|去世|逝世|辞职|签署|通过了?|否决|决定"
    r"|[했됐였었았렸겼났졌]다[.]?\s?$|[했됐였었았렸겼났졌]습니다[.]?\s?$|밝혔|발표했"
)
_PLANNED_ELSEWHERE = AnyOf(
    fold(
        r"angesetzt|verschob|geplant|festgelegt|terminier|verlanger|kundigt|angekundigt|einberuf|rief|ladt|\bbis\b"
        r"|\bab\b|prevu"
        r"|fixe|reporte|prolonge|annonc|convoque|avant|jusqu|prochain|previst|fijad|aplazad|convoc|anunci|hasta|antes|desde"
        r"|prorrog|fissat|rinviat|convocat|entro|prossim|marcad|adiad|ate\b|gepland|uitgesteld|aangekondigd|volgend|planer"
        r"|inplaner|uppskjut|zaplanow|przeloz|wyznacz|ogłosil|oglosil|zapowied|planovan|odloz|назнач|отлож|перенес|объяви"
        r"|заплан|продл|призна|ertele|planlan|olacak|ecek\b|acak\b|\bще\b|будет|будут|буде|відбудеться|состоится|пройдет"
        r"|\bbude\b|budou|odbedzie|zostanie|zamierza|zakaz|planuj|ce se|bo potek|va avea|va fi|urmeaza|lesz\b|tervez|elhalaszt"
        r"|pidetaan|suunnitel|siirret|toimub|lukka|notiks|\btiks\b|atlikt|vyks|ivyks|atide|planuo|\bθα\b|προγραμματ|αναβληθ"
        r"|\bakan\b|dijadwal|ditunda|rencana|menjelang|sebelum|se dien ra|se duoc|du kien|hoan lai|truoc ngay"
        r"|itafanyika|utafanyika|atafanya|سوف|(?<!\w)سی\w{3,}|(?<!\w)ست\w|من المقرر|المقرر|المقبل|القادم|موعد|تأجیل|تاجیل|حتي|حتی|قبل|قرار است|خواهد|آینده"
        r"|יתקיים|תתקיים|צפוי|נקבע|נדחה|עד |הבא|होगा|होगी|होंगे|निर्धारित|तक|टाल|হবে|নির্ধারিত|நடைபெறும்|நடைபெற|จะ|กำหนด|เลื่อน"
        r"|uskutocni|\bkona\b|konat|odrzat|odrzan|zakazan|tindra|se celebr|tendra lugar|aura lieu|\bdoit\b|devra|debera|sollen|\bsoll\b"
        r"|findet|statt|stattfinden|plaatsvind|\bzal\b|zullen|\bska\b|\bskal\b|\bvil\b|afholdes|holdes|\bhalls\b"
    )
)


def is_told_as_done(before: str, day: str, after: str) -> bool:
    """Whether a sentence tells, as done, what happened on a day; plans and conditions do not.

    >>> is_told_as_done("the bank cut its rate on ", "6 june 2024", ".")
    True
    >>> is_told_as_done("the vote was postponed to a session on ", "6 june 2024", ".")
    False
    """
    if _SINCE.search(before):
        return True
    if _SUPPOSED.search(before):
        return False
    if _PAPER_AFTER.match(after) and _PAPER_BEFORE.search(before):
        return True
    if _UNTIL.search(before) and _WAS.search(after):
        return True
    if FUTURE_SIGN.search(before) or FUTURE_SIGN.search(after) or WILL.intersection(TOKEN.findall(f"{before} {after}")):
        return False
    return _in_english(before, after) or _elsewhere(before, day, after)


def _in_english(before: str, after: str) -> bool:
    before = _BLANKS.sub(" ", _TIME_OF_DAY.sub("", before))
    if _OPENS.match(before):
        # On that day, something was done: look at the next words.
        clause = " ".join(after.split()[:12])
        done = _DONE.search(clause)
        return (
            done is not None
            and _AHEAD.search(clause[: done.start()]) is None
            and not _planned_after(clause[done.end() :])
        )
    on = _ON.search(before)
    if on is None:
        return False
    if _TOLD_TO.search(before, 0, on.start()):
        return True
    clause = " ".join(before[: on.start()].split()[-14:])
    found = list(_DONE.finditer(clause)) or list(_DONE_LAST.finditer(clause)) or list(_DONE_ANYHOW.finditer(clause))
    # Behind a comma begins another clause: "the hall, opened in 1998, hosts the final on 31 May".
    if not found or len(clause[found[-1].end() :].split()) > 7 or _CLAUSE.search(clause, found[-1].end()):
        return False
    attached = not clause[found[-1].end() :].strip()
    if _AHEAD.search(clause[found[-1].end() :]) or (_SAID.search(clause) and not attached):
        return False
    return not _planned_after(clause[: found[-1].start()])


_PLANNED_AROUND = re.compile(
    r"\b(?:will|would|could|may|might|should|must|if|unless|plan\w*|expect\w*|schedul\w+|postpon\w+|due|until|deadline"
    r"|adjourn\w+|extend\w+|forecast\w*|hop(?:e|es|ed)|is|are|be|next|slat\w+|set (?:to|for)|intend\w*|propos\w+"
    r"|(?:was|were) to)\b"
)


def _planned_after(words: str) -> bool:
    return _PLANNED_AROUND.search(words) is not None


def _elsewhere(before: str, day: str, after: str) -> bool:
    done = not (before.isascii() and after.isascii()) and (_DONE_ASIA.search(after) or _DONE_BEFORE.search(before))
    if done and not _PLANNED_ASIA.search(f"{before}{after}"):
        return True
    if _PLANNED_ELSEWHERE.search(before) or _PLANNED_ELSEWHERE.search(after):
        return False
    whole = f"{before} {after}"
    if any(written.search(before) and (done.search(after) or done.search(whole)) for written, done in _DONE_ELSEWHERE):
        return True
    near = f"{before} {day} {after}"
    if not near.isascii() and any(letters.search(near) and done.search(whole) for letters, done in _DONE_BY_LETTERS):
        return True
    # Names of months are often those of English, whose words may end like past tenses elsewhere.
    if _ENGLISH.search(whole) and not _VIETNAMESE.search(before):
        return False
    return any(told_by.search(near) and done.search(whole) for told_by, done in _DONE_BY_WORDS)
