# ruff: noqa: E501 (tables of words)
"""Words around dates, by language: those that mark a date as the text's own, and those that refer to the future.

They are beginnings of words, so that inflected forms count too, except those with an exclamation mark, which match
whole words. They are folded and in lower case when compared.
"""

import re
from functools import cache, cached_property, lru_cache
from typing import Literal

from foretell.patterns import pattern
from foretell.tools.dates.folding import fold, lower

STAMPS = {
    "en": "updated update! updates! updating modified edited revised revision corrected correction "
    "amended published publication editor's! released posted! reviewed accessed retriev archived cited! cit! "
    "changed! commented! "
    "captured cached crawled fetched filed! issued! uploaded timestamp datemodified datepublished "
    "datecreated lastmod "
    "lastupdate lastbuild pubdate refreshed generated checked verified printed created written submitted recorded "
    "compiled "
    "aired! broadcast! premiered! streamed! taken! scanned! saved! built! snapshot crawl! indexed! observed! "
    "observation "
    "measured! decided! adopted! signed! dated! sent! received! wrote! replied! answered! asked! joined! committed! "
    "merged! tagged! seen! listed! closed! resolved! settled! ended! finished! completed! died! approved! accepted! "
    "visited! entered! passed! determined! discontinued! voted! ratified! authordate commitdate dtstamp "
    "delivered! given! started! registered! enacted! sworn! handed! promulgated! gazetted! createdate modifydate "
    "creationdate moddate "
    "datetimeoriginal exif",
    "mail": "gesendet envoyé enviado inviato verzonden skickat wysłan отправлен 送信 发送 寄件",
    "de": "aktualis veröffentl erschienen geändert bearbeitet abgerufen zugriff erstellt korrigiert "
    "publiziert letzte! "
    "änderung stand! besucht datenstand dateistand aufnahmedatum aufgenommen gedruckt verfasst geschrieben eingestellt",
    "fr": "mis mise! écrit! posté! enregistré actualis publié publie modifi consult édité révisé corrigé parution "
    "paru! créé rédigé",
    "es": "actualiz recuperad publicad publicac modificad consultad editad revisad corregid cread",
    "pt": "atualiz actualiz publicad publicaç modificad acessad acesso postad criad editad alterad",
    "it": "aggiorn pubblicat pubblicaz modificat consultat corrett creata creato",
    "nl": "gecreëerd bijgewerkt gepubliceerd geüpdatet geupdate gewijzigd geraadpleegd geplaatst aangemaakt",
    "af": "opdatering opgedateer bygewerk gepubliseer geskep",
    "sv": "uppdater publicer ändrad ändrat hämtad skapad",
    "da": "opdater udgivet publicer offentliggjort ændring ændret oprettet",
    "nb": "oppdater publiser endret opprett",
    "fi": "päivit julkais muokat haettu luotu",
    "is": "uppfær birt! breytt búið! birtist skrifað",
    "pl": "aktualiz zaktualiz opublikow publikac zmodyfikow zmieni utworz dodan dostęp",
    "cs": "aktualiz publikov zveřejn vydán uprav vytvoř změn",
    "sk": "aktualiz publikov zverejn vydan uprav vytvor zmen",
    "hr": "ažurir objavlj objavij izmijen izmjen stvar stvor kreir posodob spremen spremem izmen ustvar",
    "sr": "ажурир објав измен промен креир створ",
    "mk": "создад ажурир",
    "bg": "обнов актуализ публик промен създад промян",
    "ru": "обнов опублик измен отредакт редакц создан дата",
    "uk": "оновл опублік змін створ відредаг редакц",
    "be": "абнаўл абноўл апублік зменен створан",
    "ro": "actualiz publicat modificat accesat creată",
    "hu": "frissít megjelen közzét módosít létrehoz",
    "el": "ενημέρωσ ενημερώθ δημοσίευσ δημοσιεύ τροποποι δημιουργ",
    "tr": "güncel giriş! eklenme yayın yayım düzenle değiştir yenile oluştur",
    "az": "yenilə yeniləm yaradıl dərc",
    "kk": "жаңарт жариял құрыл",
    "uz": "yangilan yaratil chop elon! qilingan",
    "ka": "განახლ გამოქვეყნ შეიქმნ შექმნ",
    "hy": "թարմաց հրապարակ ստեղծ",
    "mn": "шинэчл үүсгэ нийтэл",
    "ar": "تحديث تحدیث حدّث نشر تعديل خلقت إنشاء أنشئ كتب",
    "fa": "بروزرسانی بهروز روزآمد انتشار منتشر ویرایش ایجاد",
    "ur": "اپڈیٹ اپ! ڈیٹ! تجدید تخلیق شائع اشاعت ترمیم",
    "he": "עודכן עדכון פורסם פרסום נערך נוצר",
    "hi": "अपडेट अद्यतन प्रकाशित संशोधित बनाया निर्मित",
    "bn": "আপডেট প্রকাশ হালনাগাদ তৈরি সম্পাদ",
    "mr": "अद्ययावत अपडेट प्रकाशित",
    "ta": "புதுப்பி வெளியி உருவாக்",
    "te": "నవీకర ప్రచుర సృష్టి అప్డేట్ అప్‌డేట్",
    "kn": "ನವೀಕರ ಪ್ರಕಟ ರಚಿಸ",
    "ml": "പുതുക്ക പ്രസിദ്ധീ അപ്ഡേറ്റ് സൃഷ്ടി",
    "gu": "અપડેટ પ્રકાશિત",
    "pa": "ਅੱਪਡੇਟ ਪ੍ਰਕਾਸ਼ਿਤ",
    "ne": "अद्यावधिक प्रकाशित अपडेट",
    "si": "යාවත් පළ",
    "vi": "nhật cậpnhật xuất đăng sửa tạo",
    "id": "diperbar pembaru perbaru diterbit dipublikas dimutakhir tayang dibuat diubah",
    "my": "ပြင်ဆင်ချိန် ထုတ်ပြန်",
    "am": "የታተመው የዘመነ ታተመ",
    "ga": "nuashonra foilsi",
    "mt": "aġġorna ppubblika",
    "ms": "dikemas kemas disiar dicipta diterbit",
    "fil": "nagawa nailathala inilathala huling noong! isinapanahon",
    "sw": "imesasishwa imechapishwa ilisasishwa",
    "lt": "atnauj paskelb publik redag sukur keist",
    "lv": "atjaun publicē publiskots izveidot labots",
    "et": "uuend avaldat muudet loodud",
    "ca": "actualitz publicad publicat modificad cread",
    "gl": "actualiz publicad cread",
    "eu": "eguner argitarat sortze",
    "cy": "diweddar cyhoedd crëwyd",
    "eo": "ĝisdatig publikig kreita",
    "sq": "përditës publik krij",
    "lb": "update erstallt aktualis",
}
"""Words of publishing, updating, creating and reading."""

DOCUMENTS = {
    "en": "sold! mailed! review! comment! judgment! judgement! ruling! sentenced! convicted! deceased! landed! departed! "
    "arrived! auctioned! discharged! shipped! digest! bulletin! communique! newsletter! dispatch! imagery! capture! "
    "postmarked! buried! born! statement! fieldwork! postmortem! recap! granted! decisions! restored! attached! "
    "screenshot! metar! logged!",
    "de": "pressemitteilung mitteilung! bekanntmachung hoc! urteil beschluss! bescheid rezension kommentar! bewertet "
    "bewertung verkauft! gelandet gestorben verstorben befliegung handelsregister auktion! zuschlag protokoll "
    "niederschrift eingegangen angenommen behoben offenlegung erteilt aufgelöst",
    "fr": "arrêt! jugement! communiqué annonce! avis! commentaire vendu vendue! livré remis! décédé décès vente! adjugé "
    "procès! délivré validé résolu! résolue! archivé déposé clôturé clos!",
    "es": "sentencia auto! fallo! comunicado comentario reseña vendid falleci estreno! opinión! acta! recibido aceptado "
    "resuelt cerrad liquidad entregad",
    "it": "sentenza ordinanza comunicato commento recensi vendut mancato! decedut avviso! verbale! ricevuto accettato "
    "risolto rilasciato",
    "pt": "sentença acórdão comentário avaliad avaliação vendido falec fato! relevante! ata! recebido aceite aceito "
    "encerrado liquidado resolvido entregue",
    "nl": "vonnis! uitspraak persbericht reactie! beoordeling beoordeeld verkocht overleden veiling! notulen! "
    "vastgesteld ontvangen aanvaard opgelost",
    "pl": "wyrok postanowienie! komunikat komentarz recenzj sprzedan wydany zmarł raport! biuletyn przyjęt rozwiązan "
    "protokół",
    "cs": "rozsudek usnesení komentář prodán zemřel tisková! vydaný zápis přijato konané vyřešen",
    "ru": "приговор постановлен решение! сообщение! комментар отзыв продан умер скончал релиз! снимок! принят протокол! "
    "вынес",
    "uk": "вирок рішення! повідомлення! відгук продано помер",
    "ro": "hotărâre sentință comunicat comentariu vândut decedat",
    "hu": "ítélet közlemény hozzászólás eladva elhunyt",
    "nordic": "dom! pressmeddelande recension kommentar såld sålt avslutad avled pressemeddelelse anmeldelse solgt "
    "afsagt død! pressemelding läst! besluttet mottatt",
    "fi": "tuomio! tiedote! arvostelu kommentti myyty kuoli!",
    "el": "απόφαση! ανακοίνωση σχόλιο κριτική πωλήθηκε",
    "tr": "karar! açıklama yorum! satıldı vefat basın!",
    "id": "putusan! ulasan komentar terjual laporan! siaran! diposting terjadi",
    "hr": "presuda priopćenje saopštenje osvrt prodano preminu",
    "he": "נמכר תגובה הודעה פסק!",
    "ar": "نعی بيع حكم! بيان! تعليق مراجعة",
}
"""Words for things that are dated by their day, such as judgments, reviews and sales."""

TOKEN = pattern(r"\d+|[^\W\d_]+(?:'[a-z]\b)?")
"""A number or a word."""

ASIAN_STAMP = pattern(
    lambda: (
        "更新|發文|发文|公告|公表|公示|检索|發稿|公開|公开|掲載|配信|発表|発行|投稿|修正|改訂|编辑|編輯|编辑|发布|發布|發佈|发表|發表|刊登|刊載|出版|公布|転載|取得|閲覧|访问|檢索|作成|创建|創建|建立"
        "|[电電讯訊](?=[\\s(:,])|撮影|提出日|収稿|收稿|修回|录用|錄用|登録日|收盘|收市|終値|종가|접수|캡처|会议纪要|紀錄|記録|観測|レビュー|レヒュー|公開|お知らせ|判決|言い渡|评论|評論|成交|中间价|公示|공시|제출일|접수일|선고|판결|게재|후기|업데이트|입력|수정|등록|발행|게시|작성|승인|갱신|개정|보도|생성|변경|"
        + "|".join(
            lower(fold(word))
            for word in (
                "อัปเดต",
                "อัพเดท",
                "เผยแพร่",
                "ปรับปรุง",
                "แก้ไข",
                "โพสต์",
                "สร้าง",
                "ປັບປຸງ",
                "បានធ្វើបច្ចុប្បន្នភាព",
                "ធ្វើបច្ចុប្បន្នភាព",
            )
        )
    )
)
"""Stamp words of languages without spaces between words."""

FUTURE = {
    "en": "will! shall! be being! is are get not until! before! due! scheduled plan! planned! expect set! "
    "next! upcoming to would! could! may! "
    "might! should! must! please deadline forthcoming aim hope when! once! if unless",
    "de": "wird werden soll! geplant erwartet bis vor! spätestens nächst kommend",
    "fr": "sera seront doit devrait prévu avant jusqu attendu prochain",
    "es": "será serán debe! previst antes hasta próxim esperad",
    "pt": "será serão deve! previst antes até próxim",
    "it": "sarà saranno verrà verranno deve! previst entro prossim",
    "nl": "zal! zullen wordt worden gepland voor volgend",
    "nordic": "kommer! ska skall! blir! planeras skal! vil! bliver planlagt tulee! aiotaan",
    "slavic": "przed! będzie zostanie planowan bude! budou budú plánov bit bice бъде ще будет будут должен "
    "должна запланиров ожида "
    "буде будуть має",
    "hu": "lesz! fog", "ro": "va vor! urmează", "el": "θα πρόκειται", "tr": "olacak edilecek "
    "yayınlanacak güncellenecek",
    "id": "akan", "vi": "sẽ", "ar": "سوف سيتم ستنشر يتوقع متوقع", "fa": "خواهد", "hi": "होगा होगी "
    "होंगे जाएगा", "bn": "হবে",
    "set": "fissat scaden! scadent frist ansøgningsfrist bewerbungsfrist fristen odroczono wyznaczon termín termin! "
    "vencimiento vence! prazo udienza",
    "next": "sonraki gelecek! следующ ближайш предстоящ наступн следващ следећ następn najbliższ přišt další! nasledujúc "
    "nästa næste neste! seuraav következő următor επόμεν berikutnya mendatang القادم المقبل بعدی آینده הבא अगला अगली",
    "lt": "bus", "lv": "tiks! būs", "et": "saab! tuleb!",
}  # fmt: skip
"""Words after which even a stamp refers to the future."""
FUTURE_SIGN = pattern(
    lambda: (
        "期限|締切|締め切り|截止|마감|기한|予定|見込|預計|预计|将|將|计划|預定|即将|예정|계획|"
        + "|".join(lower(fold(word)) for word in ("จะ",))
    )
)

SMALL = frozenset(
    lower(
        fold(
            "cette ce diese dieser dieses esta este questa questo deze denna denne seite pagina sida side strona strony "
            "страница страницы mise modification presse de earliest event reported report reports "
            "down away off suddenly peacefully vom von van der des dem aus par av af this date "
            "on at am le el il op den dne dnia em a as of the date time last first la las los les de "
            "del di da du dato kl um "
            "wib wita mez mesz eest eet aest acst pht sast cat eat wat gst pkt ict "
            "utc gmt est edt et pt pst pdt cet cest bst ist msk jst kst sgt hkt uhr h hs hrs pm p m "
            "z by from original page "
            "was were has been is this article story version ago zuletzt update jour fois dernière "
            "última último ultimul za "
            "posljednje poslednja poslednje naposledy ostatnia ostatnio sidst sidste senast siste "
            "sist viimeksi viimane utoljára "
            "son ultima в во на от у o г kell óra orakor alle ore saat tarihi tarihinde ب ساعت في "
            "يوم بتاريخ بتاریخ التاريخ תאריך "
            "בתאריך ב את אחרון को पर किया गया किए गए गई की तारीख था है এ তারিখ হয়েছে শেষ เมื่อ เวลา "
            "วันที่ ngày lúc vào lần cuối pada pukul jam "
            "tanggal tgl terakhir data datum дата время fecha hora heure stamp note editor's s is է "
            "թ oni er de laaste läscht "
            "darrera azken diweddariad olaf lasta ħ kini asal fil tarikh శ దినాంకం ದಿನಾಂಕ ಕೊನೆಯ "
            "التحديث آخر اخر شده اخرین آخرین "
            "viimeisin paskutinis pēdējais bolo ბოლო վերջին сүүлийн последнее последняя последна "
            "останнє апошняе последно تاریخ تاريخ"
        )
    ).split()
)
"""Words that may stand between a stamp and its date."""


class AnyOf:
    """A set of alternatives to search for in a text; plain words are matched without a regex, which would be slow."""

    def __init__(self, alternatives: str) -> None:
        self._alternatives = alternatives
        self.search = lru_cache(maxsize=64)(self._search)

    @cached_property
    def _words(self) -> tuple[tuple[str, ...], tuple[str, ...], re.Pattern[str]]:
        """All plain words, those in Latin letters, and a pattern of the other alternatives."""
        words = fold(self._alternatives).split("|")
        plain = tuple(word for word in words if word.replace(" ", "").isalpha())
        latin = tuple(word for word in plain if word.isascii())
        return plain, latin, re.compile("|".join(word for word in words if word not in plain))

    def _search(self, text: str) -> bool:
        """Whether one of the alternatives occurs in the text."""
        if not text:
            return False
        plain, latin, others = self._words
        return any(map(text.__contains__, latin if text.isascii() else plain)) or others.search(text) is not None


SCHEDULED = AnyOf(
    r"event|coming up|what's on|tide table|calend|schedul|fixture|agenda|conferen|ticket|preview|upcoming|deadline|expect|forecast|outlook|webinar"
    r"|summit|register|save the date|what to|how to|ahead of|guide|timetable|programm|kick-?off|doors|\bvenue"
    r"|\bplan|\bwill\b|\bto be\b|\bnext\b|\bbefore\b|\buntil\b|\bby\b|\bdue\b|candidate|odds|\bpoll\b|prediction"
    r"|project|launch|\bbegins?\b|\bstarts?\b|\bopens?\b|\btour\b|meeting|festival|\bexpo\b|course|seminar|workshop"
    r"|holiday|eclipse|anniversar|countdown|expir|maturit|effective|termin|vorschau|kommend|prognos|anmeld|veranstalt"
    r"|prochain|previs|venir|inscri|proxim|boleto|entrada|biglietti|wydarz|календар|расписан|афиша|прогноз|日程|予定"
    r"|taksit|instalment|installment|ratenplan|move-in|tilltrade|bezug |einzug|innflytting|indflytning|wetterwarn|code geel"
    r"|code oranje|code rood|wind warning|storm warning|rain warning|snow warning|weather warning|flood warning"
    r"|予測|예정|일정|预告|预测|日历|تقویم|موعد"
)
"""Words of plans and forecasts in headlines, addresses and tables."""
PLAN_HEADING = AnyOf(
    r"calend|kalend|kalenter|schedul|fixture|agenda|upcoming|timetable|itinerary|programm|roadmap|forecast|projection|outlook|futures"
    r"|contract|\btides?\b|sunrise|window|manifest|rota\b|stages|phases|milestones|etapes|etapy|етап|этап|fasen|phasen|段階|plan\b|plans\b|pläne|spielplan|fahrplan|deadline|\bdates\b|termine|terminarz|harmonogram|rozvrh"
    r"|aikataulu|графік|모집|공고|schedule|πρόγραμμα|προγραμμα|takvim|jadwal|prévision|previs|prognos|horario|orario|dienstplan|vorschau|prochain|proxim"
    r"|expir|maturit|redemption|repayment|instal|dividend|eclips|éclips|holiday|feiertag|course dates|term dates|tour|season ahead|to come"
    r"|what to watch|week ahead|lịch|lich thi|расписан|розклад|график|календар|прогноз|план|разпис|распоред|日程|予定|スケジュール"
    r"|日历|时间表|安排|预测|预告|일정|예정|전망|جدول|برنامه|تقویم|مواعيد|مواعید|מועד|לוח|कार्यक्रम|सूची|ตาราง|กำหนดการ"
)
"""Words in the heading of a list or table whose rows are future days."""
PLAN_LABEL = AnyOf(
    r"verfall|deadline|due|draft|opener|resol|closing|closes|expir|matur|valid|until|event|when|opening|launch|target|next|upcoming|planned|estimated|eta\b|best before"
    r"|use by|birthday|hearing|trial|election|effective|earliest|latest delivery|arrival|departure|check-|check in|pickup|return|first call"
    r"|\bcall date|redemption|renewal|release|premiere|kick|start|begin|end\b|ends|fällig|frist|schluss|termin|gültig|ablauf|beginn|ende\b|haltbar"
    r"|nächste|wahltag|lieferung|liefertermin|zahlbar|échéance|limite|clôture|prochain|début|fin\b|valable|validité|livraison|ouverture|sortie"
    r"|vencimiento|vence|cierre|próxim|inicio|límite|límite|válid|entrega|caducidad|estreno|plazo|vencimento|prazo|início|encerramento|próxima"
    r"|validade|scadenza|chiusura|prossim|inizio|fine\b|consegna|entro|valido|vervalda|uiterlijk|geldig|volgende|begin|einde|levering|sluiting"
    r"|termin|ważn|następn|kolejn|początek|koniec|zakończeni|rozpoczęci|dostaw|platnost|příští|další|začátek|konec|uzávěrka|lejárat|határidő|következő"
    r"|kezdet|vége|termen|următoare|începe|încheie|valabil|срок|действ|до\b|начало|окончание|следующ|ближайш|конец|термін|початок|кінець|наступн"
    r"|край|следващ|рок\b|sista|förfall|nästa|start|slut|giltig|sidste|næste|frist|gyldig|neste|utløp|eräpäivä|seuraava|alkaa|päättyy|voimassa"
    r"|son tarih|son gün|vade|bitiş|başlangıç|sonraki|geçerli|λήξη|προθεσμία|επόμεν|έναρξη|batas|jatuh tempo|berikutnya|mulai|berakhir|hạn|hết|bắt đầu"
    r"|tiếp theo|kết thúc|موعد|انتهاء|القادم|مهلت|انقضا|بعدی|מועד|הבא|תוקף|अंतिम तिथि|अगली|समाप्ति|締切|期限|満期|予定|次回|開始|終了|有効|截止|到期|下次|有效"
    r"|taksit|instal?lment|ratenplan|cuota|mensualit|splátk|рассрочк|vest|lock|settlement|coupon|payment|payable|record date|ex-|option|notice|term\b|terms|warranty|lease|rent\b|policy|sunset|retire|guarant"
    r"|freeze|exam|interview|appointment|booking|travel|trip\b|flight|wedding|concert|show\b|gig\b|match|game|race|session|meeting|conferen|workshop"
    r"|class\b|course|lecture|webinar|vote|ballot|runoff|primary|debate|summit|auction|tender|bid\b|submission|applica|abstract|registration"
    r"|early bird|holiday|vacation|festival|fair\b|expo\b|tour|konzert|sitzung|tagung|spiel\b|messe|wahl|urlaub|reise|réunion|séance|élection|salon"
    r"|vacances|départ|reunión|partido|elecci|concierto|feria|viaje|riunione|partita|elezioni|concerto|fiera|viaggio|reunião|jogo|eleiç|vergadering"
    r"|wedstrijd|verkiezing|spotkanie|mecz|wybory|koncert|schůze|zápas|volby|mérkőzés|választás|ședință|meci|alegeri|заседание|матч|выборы|концерт"
    r"|встреча|засідання|вибори|möte|val\b|konsert|møde|møte|kamp\b|valg|kokous|ottelu|vaalit|toplantı|maç|seçim|konser|συνεδρίαση|αγώνας|εκλογές"
    r"|rapat|pertandingan|pemilu|cuộc họp|trận|bầu cử|اجتماع|مباراة|انتخابات|جلسه|بازی|פגישה|משחק|בחירות|बैठक|मैच|चुनाव|会議|試合|選挙|会议|比赛|选举|회의|경기|선거|시험|考试|考試|試験|面试|面接|면접|공연|演唱会|コンサート|экзамен|іспит|egzamin|zkouška|vizsga|examen|esame|prüfung"
    r"|vásár|jarmark|trh\b|mercado|marché|markt|mercato|markkinat|ярмарка|phase|stage|fase|faza|étape|stufe|етап|этап|etap|段階|阶段|단계|기간|期間|期间|开始|结束|預計|预计|마감|만기|만료|다음|예정|시작|종료|유효|กำหนด|หมดอายุ|ครั้งถัดไป|สิ้นสุด|เริ่ม"
)
"""Labels of future days: deadlines, ends of validity, events."""
PLAN_KEY = pattern(
    r"start|inicio|\bfin\b|\bdebut|beginn|\bende\b|\bend(?!ed)|_end(?!ed)|enddate|endtime|begin|clos(?:e|es|ing)(?!d)|expir|\bdue|due_|matur|deadline|sched"
    r"|kick|event"
    r"|game|match|round|session(?! started)|race|commence|valid|until|next|not_?after|notbefore|resolves|resolve_by"
    r"|open(?!ed)|depart"
    r"|arriv|check|dtend|trigger|plan|launch|premiere(?!d)|target|\beta\b|estimat|forecast|project|horizon|election"
    r"|vote"
    r"|hearing|trial|polling|final|semi|release_?date|air_?date|settlement_?date|termin|frist|delivery|birthday"
    r"|effective|ablauf|verfall|caduc|scaden|vencim|echeance|renewal"
)
"""Names of fields that hold a future time."""
GOODS = (
    r"gold|silver|platinum|freight|gas|power|electricity|crude|oil|brent|coal|carbon|wheat|corn|soya?|soybeans?|rice|sugar"
    r"|coffee|cocoa|copper|nickel|cotton|cargoe?s?"
)
"""What is traded for delivery in a month."""
TRADED = pattern(rf" (?:{GOODS}|futures|contracts?|calls?|puts?|options?|swaps?|delivery)\b")
"""What follows the month of delivery."""
FIXTURE = pattern(
    r"\bvs?\b\.? |\bversus\b|\bpicks\b|\bpreview|\bpredict|\btip-?off\b|\blive stream|\bhow to watch|\bbetting\b"
    r"|\blineups?\b|\btv:|\b[a-z]+ at [a-z]+, \d{1,2}(?::\d\d)? ?[ap]\.?m\b"
)
"""Words next to the day of a match that is still to be played, unless there is a score too."""
PLANNED = pattern(
    r"\b(?:ends|closes|opens|begins|starts|(?:end|close|open|begin|start) (?:on|at|in|from)|(?:start|end|closing"
    r"|opening|court|call) "
    r"dates?|opening hours|airs|premieres|expir\w+|due|deadline|until|till|before|upcoming"
    r"|coming|next"
    r"|valid|matur\w+|targets?|consensus|guidance|planned|set for|called for|postponed|regist\w+|tickets?|doors"
    r"|venue|kick-?off|fixtures?|agenda"
    r"|calendar|available"
    r"|ships? (?:on|in|from|by)|release date|out on|in cinemas|pre-?order\w*|departure|arrival|check-(?:in|out)"
    r"|embargo\w*|hearing|trial|election day|polling day|draft(?: pick)?:|tour|festival|summit|anniversary"
    r"|applications?|auction|notes due|coupon|strike|expiry|\bcall date|notice day"
    r"|trading day|lease|guaranteed|warranty|best before|use by"
    r"|vesting|patent|end of life|support ends|offer|visa|term|frist|termin|gultig|laufzeit|echeance|valable|scadenza"
    r"|vence|vencimiento|plazo|prazo|validade|limite|срок|действ|wazn\w+|termin|lejar\w*|vade|son tarih)\b"
    r"|満期|期限|締切|締め切り|截止|到期|满期|有效期|만기|마감|기한|กำหนด|हिन्दी|अंतिम तिथि|مهلت|الموعد|מועד"
)
"""Words of plans in a line that is not a sentence."""

WILL = frozenset(
    lower(
        fold(
            "will shall would wird werden sera seront será serán serão sarà saranno verrà verranno "
            "zal zullen ska skall skal vil "
            "będzie bude budou будет будут буде будуть lesz θα olacak akan sẽ سوف خواهد होगा होगी হবে"
        )
    ).split()
)
"""The plainest future words, which refer to the future even after a date."""


@cache
def _forms(table: Literal["stamps", "documents", "future"]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Split words into whole words and beginnings; short ones count whole, because too many others begin with them."""
    languages = {"stamps": STAMPS, "documents": DOCUMENTS, "future": FUTURE}[table].values()
    words = {lower(fold(word)) for language in languages for word in language.split()}
    whole_words = {word.rstrip("!") for word in words if word.endswith("!") or (word.isascii() and len(word) < 4)}
    longer = {word for word in words if not word.endswith("!") and (len(word) >= 4 or not word.isascii())}
    return frozenset(whole_words), tuple(sorted(longer))


@lru_cache(maxsize=20_000)
def is_stamp(word: str) -> bool:
    """Whether a folded lower-case word is one of publishing, updating or reading."""
    whole_words, beginnings = _forms("stamps")
    return (word in whole_words or word.startswith(beginnings)) and not is_future(word)


@lru_cache(maxsize=20_000)
def is_document(word: str) -> bool:
    """Whether a folded lower-case word names something dated by its day: a judgment, a review, a sale."""
    whole_words, beginnings = _forms("documents")
    return (word in whole_words or word.startswith(beginnings)) and not is_future(word)


@lru_cache(maxsize=20_000)
def is_future(word: str) -> bool:
    """Whether a folded lower-case word refers to the future."""
    whole_words, beginnings = _forms("future")
    return word in whole_words or word.startswith(beginnings) or word.endswith(("acak", "ecek", "acaktir", "ecektir"))
