"""The languages of the studies and their scripts, each declared once, with all that depends on them.

A user's own, from a YAML file (``--vocabulary FILE``), and other people's stand beside them: see ``dataset_builder.vocabulary``. Where a
field is empty, what needs it says so by name, for that language alone. Bulky texts lie in data files: the phrases of the geo prompts
(``sources/geo_phrases.jsonl``) and the texts of the survey (``validation/survey/texts.jsonl``). Standard library only.

Branches and scripts follow Table 1 of the LingT2I study; the classification of Japanese and Korean remains debated there too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Generic, Literal, Protocol, TypeVar

VARIABLE = "T2I_PARITY_VOCABULARY"
"""The environment variable that names a user's vocabulary file, so that every process of ours has the same one."""


class Coded(Protocol):
    """What is declared under a code."""

    @property
    def code(self) -> str:
        """The code."""


Entry = TypeVar("Entry", bound=Coded)
Value = TypeVar("Value")


class Declared(Mapping[str, Entry]):
    """What is declared, by code, ours first: a live view, which users read and ``vocabulary.add`` alone writes.

    A file that the environment names is read before the first look, whichever process looks.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.code: entry for entry in entries}

    def _known(self) -> dict[str, Entry]:
        if VARIABLE in os.environ:
            import_module("t2i_parity.dataset_builder.vocabulary").ready()
        return self._entries

    def __getitem__(self, code: str) -> Entry:
        return self._known()[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self)})"


@dataclass(frozen=True, slots=True)
class Script:
    """One way of writing, by its ISO 15924 code.

    ``fonts`` are font files in the order in which they are tried, ``#`` and a number for a face inside a collection; left out, Noto's
    usual names of the script's. ``letters`` are those without which PP-OCR's recogniser does not read it ("" where nobody tried),
    ``alphabet`` those that typos draw from ("" where there are no typos), ``parts`` the scripts of single characters that it is made of
    (itself, where none are given). ``wide``: it has wide forms of Latin letters, and a wide blank, of its own.
    """

    code: str
    name: str
    fonts: tuple[str, ...] = ()
    letters: str = ""
    alphabet: str = ""
    parts: tuple[str, ...] = ()
    wide: bool = False

    @property
    def inside(self) -> frozenset[str]:
        """The Unicode scripts of its characters, those that all scripts share among them."""
        return frozenset(self.parts or (self.code,)) | {"Zyyy", "Zinh"}


@dataclass(frozen=True, slots=True)
class Culture:
    """What a language's prompts are tagged with: ``phrase`` in the prompt, ``expected`` as the metric ``culture_alignment`` calls it.

    ``named_by`` are words that name the culture, so that a prompt which holds one is not neutral.
    """

    expected: str
    phrase: str
    named_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Language:
    """One language, and all that depends on it.

    Args:
        code: its BCP-47 code.
        script: the ISO 15924 code of its script, which has fonts, letters and an alphabet.
        spaced: whether words are set apart by spaces, which decides how a reader joins lines.
        standard: the language that this one is compared with when it is the non-standard half of a pair (Bavarian with German).
        tesseract: the name of its Tesseract model; "" is the ISO 639-3 code, None says that there is none.
        locale: what CLDR calls it, where that is not the code.
        formal_name, norm: what a translator is told to write, where the name alone leaves it open.
        lengths: characters of a translation for one of the English, least and most: half of the least and one and a half of the most that
            the starter edition's 120 meanings (88 for German) have; None: as between varieties.
        transliteration: what writes it in Latin letters.
        not_its_letters: letters that its texts never hold although they look like its own, and whose they are.
        culture: chosen by us: a language is spoken in many cultures, and a tag names one of them.
        answers: how a language model's answer begins that is no text: what it is, whom it comes from, or why there is none (patterns).
        assents: words of assent and excuse: a model's where they begin a prompt and a comma follows, anybody's on a sign (patterns).
        declines: words that decline (patterns).
        countries: names by alpha-3 code where CLDR's do not fit into a sentence: parentheses, dashes, abbreviations, an office's title.
        written_out: abbreviations of CLDR's names of countries, and what they stand for.
        phrases: the geo prompts of a noun, without a country and with ``{country}`` in it; ours lie in ``sources/geo_phrases.jsonl``.
        construction: how its geo prompts name the country without inflecting its name; it stands in every row's ``producer``.
        survey: what participants of the survey read, by key; ours lies in ``validation/survey/texts.jsonl``.
    """

    code: str
    name: str
    native_name: str
    script: str
    branch: str
    iso639_3: str
    direction: Literal["ltr", "rtl"] = "ltr"
    spaced: bool = True
    standard: str | None = None
    tesseract: str | None = ""
    locale: str = ""
    formal_name: str = ""
    norm: str = ""
    lengths: tuple[float, float] | None = None
    transliteration: Literal["pinyin", "hepburn", "uroman"] | None = None
    not_its_letters: tuple[str, str] | None = None
    culture: Culture | None = None
    answers: tuple[str, ...] = ()
    assents: tuple[str, ...] = ()
    declines: tuple[str, ...] = ()
    countries: Mapping[str, str] = field(default_factory=dict, hash=False)
    written_out: tuple[tuple[str, str], ...] = ()
    phrases: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    construction: str = ""
    survey: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def written(self) -> Script:
        """Its script."""
        return SCRIPTS[self.script]


_NOTO = ("NotoSans-Regular.ttf",)
_CJK = "NotoSansCJK-Regular.ttc"

SCRIPTS: Declared[Script] = Declared((
    Script("Latn", "Latin", _NOTO, "Aaéñçãœß", "abcdefghijklmnopqrstuvwxyz"),
    Script("Cyrl", "Cyrillic", _NOTO, "Жяы", "абвгдежзийклмнопрстуфхцчшщъыьэюя"),
    Script("Arab", "Arabic", ("NotoNaskhArabic-Regular.ttf", "NotoSansArabic-Regular.ttf"), "عربي", "ابتثجحخدذرزسشصضطظعغفقكلمنهوي"),
    Script("Deva", "Devanagari", ("NotoSansDevanagari-Regular.ttf",), "हिन्दी"),
    Script("Jpan", "Japanese", (f"{_CJK}#0",), "日あア", parts=("Hani", "Hira", "Kana"), wide=True),
    Script("Kore", "Hangul", (f"{_CJK}#1",), "한글", parts=("Hang", "Hani"), wide=True),
    Script("Hans", "simplified Chinese", (f"{_CJK}#2",), "中国们", parts=("Hani",), wide=True),
))  # fmt: skip
"""Every script of a declared language, by its code."""

LANGUAGES: Declared[Language] = Declared((
    Language(
        "en", "English", "English", "Latn", "Germanic", "eng",
        culture=Culture("Western", "in Western style", ("Western", "American", "British", "English", "European", "Scottish", "Irish")),
        answers=(
            r"here(?:'s|’s| is| are) (?:the|your|a|my) (?:\w+ )?(?:translat|version|prompt|text|rewrit|convert|dialect)",
            r"(?:the )?(?:translated|rewritten|input|output) (?:text|prompt|version)(?: is)?\s*:",
            r"(?:translation|rewritten|output|answer|prompt)\s*:",
            r"as an ai\b(?: language)?(?: model| assistant|,)",
            "as a (?:large )?language model",
            "please (?:rewrite|translate)",
            "translate the (?:following|provided|given)",
            "you are a (?:language|helpful)",
            "i (?:can(?:no|')?t|can’t|won't|am unable to|am not able to) (?:help|assist|translat|fulfil|provide|comply|generate|create)",
            r"i(?:'m| am|’m) (?:sorry|unable|not able)\b.{0,40}\b(?:help|assist|translat|fulfil|provide|comply|generate|create|request)",
        ),
        assents=("sure", "certainly", "of course", "absolutely", "okay", "ok", "got it", "i'm sorry", "i’m sorry", "sorry"),
        declines=(r"\b(?:can(?:no|')?t|can’t|won't|unable|not able|sorry)\b",),
        countries={
            "CCK": "Cocos Islands", "COD": "Democratic Republic of the Congo", "COG": "Republic of the Congo", "HKG": "Hong Kong",
            "MAC": "Macao", "MMR": "Myanmar", "PSE": "Palestine", "SGS": "South Georgia and the South Sandwich Islands",
            "UMI": "United States Minor Outlying Islands", "VCT": "Saint Vincent and the Grenadines",
            "VIR": "United States Virgin Islands",
        },
        written_out=((" & ", " and "), ("St. ", "Saint ")),
    ),
    Language(
        "zh", "Chinese", "中文", "Hans", "Sinitic", "zho",
        spaced=False, tesseract="chi_sim", locale="zh_Hans", lengths=(0.12, 0.7), transliteration="pinyin",
        culture=Culture("Chinese", "in Chinese style", ("Chinese", "Cantonese", "Mandarin", "Tibetan", "Taiwanese")),
        construction="bare country name before the noun phrase",
        answers=(
            "(?:以下|下面|这)(?:是|为).{0,8}(?:翻译|译文)",
            r"(?:翻译|译文|中文翻译|提示词?|输出)(?:如下)?\s*[:：]",
            "作为(?:一个|一名)?(?:人工智能|AI|语言模型)",
            "(?:抱歉|对不起).{0,10}(?:无法|不能)",
            "我(?:无法|不能)(?:翻译|协助|提供|帮助)",
        ),
        assents=("当然", "好的", "没问题", "抱歉", "对不起"),
        declines=("抱歉", "对不起", "无法", "不能"),
        countries={
            "CCK": "科科斯群岛", "COD": "刚果民主共和国", "COG": "刚果共和国", "HKG": "香港", "MAC": "澳门", "MMR": "缅甸",
            "PSE": "巴勒斯坦",
        },
    ),
    Language(
        "hi", "Hindi", "हिन्दी", "Deva", "Indo-Aryan", "hin",
        lengths=(0.4, 2.3), transliteration="uroman",
        culture=Culture("Indian", "in Hindi style", ("Hindi", "Indian", "Hindu", "Punjabi", "Bengali", "Tamil", "Mughal")),
        construction="country name with the postposition of the noun's gender",
        answers=(
            "(?:यहाँ|यहां|यह) .{0,20}(?:अनुवाद|हिंदी संस्करण)",
            r"(?:हिंदी |हिन्दी )?अनुवाद\s*[:：]",
            "एक (?:एआई|AI|भाषा मॉडल)",
            "(?:क्षमा|माफ़|माफ).{0,40}(?:नहीं कर सकत|असमर्थ)",
            "मैं .{0,30}(?:अनुवाद|सहायता|मदद) नहीं कर सकत",
        ),
        assents=("ज़रूर", "जरूर", "बिल्कुल", "क्षमा करें", "माफ़ कीजिए"),
        declines=("क्षमा", "माफ", "नहीं कर", "असमर्थ"),
        countries={
            "CCK": "कोकोस द्वीपसमूह", "COD": "कांगो लोकतांत्रिक गणराज्य", "COG": "कांगो गणराज्य", "HKG": "हाँग काँग", "MAC": "मकाऊ",
            "MMR": "म्यांमार", "PSE": "फ़िलिस्तीन", "USA": "संयुक्त राज्य अमेरिका",
        },
    ),
    Language(
        "es", "Spanish", "Español", "Latn", "Romance", "spa",
        lengths=(0.45, 2.4),
        culture=Culture("Hispanic", "in Spanish style", ("Spanish", "Hispanic", "Latino", "Mexican", "Andalusian", "Argentine")),
        construction="country as a label in parentheses",
        answers=(
            r"(?:aquí|aqui) (?:está|tienes|tiene|va)\b.{0,20}(?:traducci|versi|texto|prompt)",
            r"(?:la )?traducción(?: al español)?(?: es)?\s*:",
            r"como (?:modelo de lenguaje|una? (?:ia|inteligencia artificial|modelo de lenguaje))\b",
            "lo siento.{0,15}no puedo",
            "no puedo (?:ayudar|traducir|proporcionar|cumplir|generar|asistir)",
        ),
        assents=("claro que sí", "claro", "por supuesto", "desde luego", "lo siento"),
        declines=("lo siento", "no puedo"),
        countries={
            "CCK": "Islas Cocos", "COD": "República Democrática del Congo", "COG": "República del Congo", "HKG": "Hong Kong",
            "MAC": "Macao", "MMR": "Myanmar", "PSE": "Palestina", "UMI": "Islas menores alejadas de Estados Unidos",
            "VIR": "Islas Vírgenes de los Estados Unidos",
        },
    ),
    Language(
        "ar", "Arabic", "العربية", "Arab", "Semitic", "ara",
        direction="rtl", lengths=(0.3, 1.7), transliteration="uroman", formal_name="Modern Standard Arabic",
        norm="Use Modern Standard Arabic, and no words of a spoken variety.",
        not_its_letters=("کی", "Persian letters, which look like Arabic ones"),
        culture=Culture("Arab", "in Arabic style", ("Arabic", "Arab", "Arabian", "Islamic", "Egyptian", "Moroccan", "Bedouin")),
        construction="country name after في",
        answers=(
            "(?:إليك|إليكم|فيما يلي|هذه هي|ها هي|هذا هو) .{0,20}(?:الترجمة|ترجمة|النص المترجم)",
            r"(?:الترجمة|ترجمة|النص المترجم)(?: العربية)?\s*[:：]",
            "(?:بصفتي|كنموذج|باعتباري) .{0,20}(?:لغوي|ذكاء|نموذج)",
            "(?:عذرًا|عذراً|آسف|أعتذر|معذرة).{0,15}(?:لا أستطيع|لا يمكنني)",
            "لا (?:أستطيع|يمكنني) (?:المساعدة|ترجمة|تقديم|مساعدت)",
        ),
        assents=("بالتأكيد", "بالطبع", "طبعًا", "عذرًا", "آسف"),
        declines=("عذر", "آسف", "أعتذر", "معذرة", "لا (?:أستطيع|يمكنني)"),
        countries={
            "CCK": "جزر كوكوس", "COD": "جمهورية الكونغو الديمقراطية", "COG": "جمهورية الكونغو", "HKG": "هونغ كونغ", "MAC": "ماكاو",
            "MMR": "ميانمار", "PSE": "فلسطين", "TLS": "تيمور الشرقية",
        },
    ),
    Language(
        "fr", "French", "Français", "Latn", "Romance", "fra",
        lengths=(0.5, 2.5),
        culture=Culture("French", "in French style", ("French", "Parisian", "Breton", "Norman")),
        construction="country as a label in parentheses",
        answers=(
            "voici (?:la|une|le|votre) .{0,15}(?:traduction|version|texte|prompt)",
            r"(?:la )?traduction(?: française| en français)?\s*:",
            r"en tant (?:qu['’]ia\b|que modèle de langage|qu['’]intelligence artificielle)",
            "(?:désolée?|je suis désolée?).{0,15}je ne (?:peux|suis)",
            "je ne (?:peux pas|suis pas en mesure de|suis pas en mesure d['’]) ?(?:vous )?(?:aider|traduire|fournir|répondre|générer)",
        ),
        assents=("bien sûr", "bien entendu", "certainement", "désolée?"),
        declines=("désol", "ne peux pas"),
        countries={
            "CCK": "Îles Cocos", "COD": "République démocratique du Congo", "COG": "République du Congo", "HKG": "Hong Kong",
            "MAC": "Macao", "MMR": "Myanmar", "PSE": "Palestine", "SXM": "Sint-Maarten",
        },
    ),
    Language(
        "pt", "Portuguese", "Português", "Latn", "Romance", "por",
        lengths=(0.45, 2.4),
        culture=Culture("Lusophone", "in Portuguese style", ("Portuguese", "Lusophone", "Brazilian")),
        construction="country as a label in parentheses",
        answers=(
            r"(?:aqui está|segue|eis)\b.{0,12}(?:tradução|versão|texto|prompt)",
            r"(?:a )?tradução(?: para o português)?(?: é)?\s*:",
            r"como (?:modelo de linguagem|uma? (?:ia|inteligência artificial|modelo de linguagem))\b",
            "(?:desculpe|sinto muito|lamento).{0,15}não posso",
            "não posso (?:ajudar|traduzir|fornecer|cumprir|gerar)",
        ),
        assents=("claro que sim", "com certeza", "desculpe"),
        declines=("desculpe", "não posso"),
        countries={
            "CCK": "Ilhas Cocos", "COD": "República Democrática do Congo", "COG": "República do Congo", "HKG": "Hong Kong",
            "MAC": "Macau", "MMR": "Mianmar", "PSE": "Palestina",
        },
    ),
    Language(
        "ru", "Russian", "Русский", "Cyrl", "Slavic", "rus",
        lengths=(0.4, 2.0), transliteration="uroman",
        not_its_letters=("іїєґўІЇЄҐЎ", "Ukrainian or Belarusian letters"),
        culture=Culture("Russian", "in Russian style", ("Russian", "Slavic", "Soviet", "Siberian")),
        construction="country as a label in parentheses",
        answers=(
            r"вот (?:\w+ )?(?:перевод|переведённый|версия|текст)",
            r"перевод(?: на русский)?\s*:",
            r"(?:как|будучи) (?:языковая модель|языковой моделью|искусственный интеллект|ии\b)",
            "(?:извините|простите|к сожалению|сожалею).{0,15}не могу",
            "я не могу (?:помочь|перевести|предоставить|выполнить|создать)",
        ),
        assents=("конечно", "разумеется", "извините"),
        declines=("извин", "не могу"),
        countries={
            "CCK": "Кокосовые острова", "COD": "Демократическая Республика Конго", "COG": "Республика Конго", "HKG": "Гонконг",
            "MAC": "Макао", "MMR": "Мьянма", "PSE": "Палестина", "UMI": "Внешние малые острова США", "USA": "США",
            "VGB": "Британские Виргинские острова", "VIR": "Американские Виргинские острова",
        },
        written_out=(("о-ва", "острова"), ("о-в", "остров"), ("Св.", "Святой")),
    ),
    Language(
        "ja", "Japanese", "日本語", "Jpan", "Japonic", "jpn",
        spaced=False, lengths=(0.14, 0.95), transliteration="hepburn",
        culture=Culture("Japanese", "in Japanese style", ("Japanese", "Zen")),
        construction="country name with の",
        answers=(
            "以下(?:は|が|に).{0,12}(?:翻訳|訳文|日本語訳|プロンプト)",
            r"(?:翻訳|日本語訳|訳文|出力|プロンプト)\s*[:：]",
            "(?:AI|言語モデル|人工知能)として",
            "(?:申し訳|すみません|ごめんなさい).{0,20}(?:できません|できかねます|いたしかねます)",
        ),
        assents=("もちろんです", "もちろん", "はい", "かしこまりました", "申し訳ありません"),
        declines=("申し訳", "すみません", "ごめんなさい"),
        countries={
            "CCK": "ココス諸島", "COD": "コンゴ民主共和国", "COG": "コンゴ共和国", "HKG": "香港",
            "MAC": "マカオ", "MMR": "ミャンマー", "PSE": "パレスチナ",
        },
    ),
    Language(
        "ko", "Korean", "한국어", "Kore", "Koreanic", "kor",
        lengths=(0.2, 1.1), transliteration="uroman",
        culture=Culture("Korean", "in Korean style", ("Korean",)),
        construction="country name with 의",
        answers=(
            "(?:다음은|아래는|여기) .{0,15}(?:번역|프롬프트)",
            r"(?:번역|한국어 번역|번역문|출력|프롬프트)(?:은 다음과 같습니다)?\s*[:：]",
            "(?:AI|인공지능|언어 모델)(?:로서|로써|으로서)",
            "(?:죄송|미안).{0,25}수 없",
        ),
        assents=("물론입니다", "물론이죠", "물론", "네", "죄송합니다"),
        declines=("죄송", "미안", "수 없"),
        countries={
            "CCK": "코코스 제도", "COD": "콩고민주공화국", "COG": "콩고공화국", "HKG": "홍콩", "MAC": "마카오",
            "MMR": "미얀마", "PSE": "팔레스타인",
        },
    ),
    Language(
        "de", "German", "Deutsch", "Latn", "Germanic", "deu",
        lengths=(0.45, 1.9),
        norm="Use Standard German as it is written in Germany, and no words of a region.",
        answers=(
            "hier ist (?:die|eine|der|das) .{0,15}(?:übersetzung|version|text|prompt)",
            r"(?:die )?(?:deutsche |bairische )?übersetzung(?: ins deutsche)?\s*:",
            r"als (?:ki\b|sprachmodell|künstliche intelligenz)",
            "(?:tut mir leid|entschuldigung).{0,25}(?:kann ich|ich kann).{0,15}nicht",
            "ich kann (?:dabei |das |ihnen |dir )*nicht (?:helfen|übersetzen|bereitstellen)",
        ),
        assents=("natürlich", "selbstverständlich", "gerne"),
        declines=("tut mir leid", "entschuldigung", "nicht (?:helfen|übersetzen|bereitstellen)"),
    ),
    Language(
        "bar", "Bavarian", "Boarisch", "Latn", "Germanic", "bar",
        standard="de", tesseract="deu",
    ),
    Language(
        "arz", "Egyptian Arabic", "مصري", "Arab", "Semitic", "arz",
        direction="rtl", standard="ar", tesseract="ara", transliteration="uroman",
        not_its_letters=("کی", "Persian letters, which look like Arabic ones"),
    ),))  # fmt: skip
"""Every declared language by its BCP-47 code."""

LINGT2I_LANGUAGES: tuple[str, ...] = ("en", "zh", "hi", "es", "ar", "fr", "pt", "ru", "ja", "ko")
"""The ten languages of the LingT2I study, in its order."""


class Having(Mapping[str, Value], Generic[Value]):
    """Something of every declared language that has it, by the language's code: a live view."""

    def __init__(self, of: Callable[[Language], Value | None]) -> None:
        self._of = of

    def __getitem__(self, code: str) -> Value:
        value = self._of(LANGUAGES[code])
        if value is None:
            raise KeyError(code)
        return value

    def __iter__(self) -> Iterator[str]:
        return (code for code, each in LANGUAGES.items() if self._of(each) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def language(code: str) -> Language:
    """The declared language of a BCP-47 code.

    Raises ValueError, naming the known codes, when none is declared.

    >>> language("hi").script, language("hi").written.name
    ('Deva', 'Devanagari')
    """
    try:
        return LANGUAGES[code]
    except KeyError:
        raise ValueError(
            f"unknown language {code!r}: expected one of {', '.join(LANGUAGES)}. Declare one of your own in a YAML file: --vocabulary FILE"
        ) from None
