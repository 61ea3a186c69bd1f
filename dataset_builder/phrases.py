"""What a language model says around a text, language by language: declared once, searched for by validation and by the pipelines."""

from __future__ import annotations

ANSWERS: dict[str, tuple[str, ...]] = {
    "en": (
        r"here(?:'s|’s| is| are) (?:the|your|a|my) (?:\w+ )?(?:translat|version|prompt|text|rewrit|convert|dialect)",
        r"(?:the )?(?:translated|rewritten|input|output) (?:text|prompt|version)(?: is)?\s*:",
        r"(?:translation|rewritten|output|answer|prompt)\s*:",
        r"as an ai\b(?: language)?(?: model| assistant|,)",
        r"as a (?:large )?language model",
        r"please (?:rewrite|translate)",
        r"translate the (?:following|provided|given)",
        r"you are a (?:language|helpful)",
        r"i (?:can(?:no|')?t|can’t|won't|am unable to|am not able to) (?:help|assist|translat|fulfil|provide|comply|generate|create)",
        r"i(?:'m| am|’m) (?:sorry|unable|not able)\b.{0,40}\b(?:help|assist|translat|fulfil|provide|comply|generate|create|request)",
    ),
    "zh": (
        r"(?:以下|下面|这)(?:是|为).{0,8}(?:翻译|译文)",
        r"(?:翻译|译文|中文翻译|提示词?|输出)(?:如下)?\s*[:：]",
        r"作为(?:一个|一名)?(?:人工智能|AI|语言模型)",
        r"(?:抱歉|对不起).{0,10}(?:无法|不能)",
        r"我(?:无法|不能)(?:翻译|协助|提供|帮助)",
    ),
    "hi": (
        r"(?:यहाँ|यहां|यह) .{0,20}(?:अनुवाद|हिंदी संस्करण)",
        r"(?:हिंदी |हिन्दी )?अनुवाद\s*[:：]",
        r"एक (?:एआई|AI|भाषा मॉडल)",
        r"(?:क्षमा|माफ़|माफ).{0,40}(?:नहीं कर सकत|असमर्थ)",
        r"मैं .{0,30}(?:अनुवाद|सहायता|मदद) नहीं कर सकत",
    ),
    "es": (
        r"(?:aquí|aqui) (?:está|tienes|tiene|va)\b.{0,20}(?:traducci|versi|texto|prompt)",
        r"(?:la )?traducción(?: al español)?(?: es)?\s*:",
        r"como (?:modelo de lenguaje|una? (?:ia|inteligencia artificial|modelo de lenguaje))\b",
        r"lo siento.{0,15}no puedo",
        r"no puedo (?:ayudar|traducir|proporcionar|cumplir|generar|asistir)",
    ),
    "ar": (
        r"(?:إليك|إليكم|فيما يلي|هذه هي|ها هي|هذا هو) .{0,20}(?:الترجمة|ترجمة|النص المترجم)",
        r"(?:الترجمة|ترجمة|النص المترجم)(?: العربية)?\s*[:：]",
        r"(?:بصفتي|كنموذج|باعتباري) .{0,20}(?:لغوي|ذكاء|نموذج)",
        r"(?:عذرًا|عذراً|آسف|أعتذر|معذرة).{0,15}(?:لا أستطيع|لا يمكنني)",
        r"لا (?:أستطيع|يمكنني) (?:المساعدة|ترجمة|تقديم|مساعدت)",
    ),
    "fr": (
        r"voici (?:la|une|le|votre) .{0,15}(?:traduction|version|texte|prompt)",
        r"(?:la )?traduction(?: française| en français)?\s*:",
        r"en tant (?:qu['’]ia\b|que modèle de langage|qu['’]intelligence artificielle)",
        r"(?:désolée?|je suis désolée?).{0,15}je ne (?:peux|suis)",
        r"je ne (?:peux pas|suis pas en mesure de|suis pas en mesure d['’]) ?(?:vous )?(?:aider|traduire|fournir|répondre|générer)",
    ),
    "pt": (
        r"(?:aqui está|segue|eis)\b.{0,12}(?:tradução|versão|texto|prompt)",
        r"(?:a )?tradução(?: para o português)?(?: é)?\s*:",
        r"como (?:modelo de linguagem|uma? (?:ia|inteligência artificial|modelo de linguagem))\b",
        r"(?:desculpe|sinto muito|lamento).{0,15}não posso",
        r"não posso (?:ajudar|traduzir|fornecer|cumprir|gerar)",
    ),
    "ru": (
        r"вот (?:\w+ )?(?:перевод|переведённый|версия|текст)",
        r"перевод(?: на русский)?\s*:",
        r"(?:как|будучи) (?:языковая модель|языковой моделью|искусственный интеллект|ии\b)",
        r"(?:извините|простите|к сожалению|сожалею).{0,15}не могу",
        r"я не могу (?:помочь|перевести|предоставить|выполнить|создать)",
    ),
    "ja": (
        r"以下(?:は|が|に).{0,12}(?:翻訳|訳文|日本語訳|プロンプト)",
        r"(?:翻訳|日本語訳|訳文|出力|プロンプト)\s*[:：]",
        r"(?:AI|言語モデル|人工知能)として",
        r"(?:申し訳|すみません|ごめんなさい).{0,20}(?:できません|できかねます|いたしかねます)",
    ),
    "ko": (
        r"(?:다음은|아래는|여기) .{0,15}(?:번역|프롬프트)",
        r"(?:번역|한국어 번역|번역문|출력|프롬프트)(?:은 다음과 같습니다)?\s*[:：]",
        r"(?:AI|인공지능|언어 모델)(?:로서|로써|으로서)",
        r"(?:죄송|미안).{0,25}수 없",
    ),
    "de": (
        r"hier ist (?:die|eine|der|das) .{0,15}(?:übersetzung|version|text|prompt)",
        r"(?:die )?(?:deutsche |bairische )?übersetzung(?: ins deutsche)?\s*:",
        r"als (?:ki\b|sprachmodell|künstliche intelligenz)",
        r"(?:tut mir leid|entschuldigung).{0,25}(?:kann ich|ich kann).{0,15}nicht",
        r"ich kann (?:dabei |das |ihnen |dir )*nicht (?:helfen|übersetzen|bereitstellen)",
    ),
}
"""How an answer begins that is no text: what it is, whom it comes from, or why there is none."""

ASSENTS: dict[str, tuple[str, ...]] = {
    "en": ("sure", "certainly", "of course", "absolutely", "okay", "ok", "got it", "i'm sorry", "i’m sorry", "sorry"),
    "zh": ("当然", "好的", "没问题", "抱歉", "对不起"),
    "hi": ("ज़रूर", "जरूर", "बिल्कुल", "क्षमा करें", "माफ़ कीजिए"),
    "es": ("claro que sí", "claro", "por supuesto", "desde luego", "lo siento"),
    "ar": ("بالتأكيد", "بالطبع", "طبعًا", "عذرًا", "آسف"),
    "fr": ("bien sûr", "bien entendu", "certainement", "désolée?"),
    "pt": ("claro que sim", "com certeza", "desculpe"),
    "ru": ("конечно", "разумеется", "извините"),
    "ja": ("もちろんです", "もちろん", "はい", "かしこまりました", "申し訳ありません"),
    "ko": ("물론입니다", "물론이죠", "물론", "네", "죄송합니다"),
    "de": ("natürlich", "selbstverständlich", "gerne"),
}
"""Words of assent and excuse: a model's where they begin a prompt and a comma follows, anybody's on a sign."""
