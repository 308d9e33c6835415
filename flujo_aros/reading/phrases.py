"""The words by which a reply takes back, disowns or abbreviates what it has said: the one list, by language.

English, German, French, Spanish, Chinese and Japanese. Structure decides before words do (`remainder`); these lists
only ever make a reading stricter, so that a phrase that is missing here costs nothing but what it would have caught,
and one that is listed wrongly costs a refusal. Every expression takes time linear in the text.
"""

from __future__ import annotations

import re
from typing import Final


def word_set(words: str) -> frozenset[str]:
    """The words of a string, for looking one up."""
    return frozenset(words.split())


def _any(*parts: str, flags: int = 0) -> re.Pattern[str]:
    opening = [part.removeprefix(_START) for part in parts if part.startswith(_START)]
    if opening:  # the beginnings of sentences are looked for once
        rest = [part for part in parts if not part.startswith(_START)]
        parts = (f"{_START}(?:{'|'.join(opening)})", *rest)
    return re.compile("|".join(f"(?:{part})" for part in parts), re.I | flags)


_START = r"(?:(?<![^.!?:;—–(\[*_>\n])|(?<=- ))[\s\"'(*_>-]{0,10}(?:(?:but|and|so|ok(?:ay)?|hm+|aber|mais|pero),?\s)?"
"""Where a sentence begins."""

CORRECTS: Final = _any(
    # English: what opens a sentence that takes something back
    _START
    + r"(?:actually|wait|hold on|oops|whoops|correction|corrigend\w+|errat\w+|edit\s?\d?[:：]|update[:：]|scratch that"
    r"|strike that|never ?mind|on second thoughts?|on reflection|my (?:mistake|bad|apologies)|apologies|sorry|no, |nope"
    r"|rather, |i (?:meant|mean|misread|misspoke|forgot|overlooked|was wrong|stand corrected|take (?:that"
    r"|it) back|retract)"
    r"|let me (?:correct|fix|revise|redo|rephrase|amend|change|re-?check|reconsider|try)|looking again|upon review"
    r"|disregard|cancel that|to correct|in fact, |ps?\.?s\.? (?:the|it))\b",
    r"\bi(?:'ve| have)? (?:made|see|spotted|noticed|found) (?:a|an|one|my|the|several|some"
    r"|two) (?:\w+ )?(?:mistakes?|errors?|typos?)\b",
    r"\b(?:ignore|disregard|discard|do not use|don't use|please replace) (?:the|this|that|my|it|what|all|both)\b",
    r"\b(?:this|that|it|the above|which|answer|value|json|output|result) (?:is|was|are|were|seems|looks) (?:\w+ly )?"
    r"(?:wrong|incorrect|not (?:the |an |my |a )?(?:\w+ )?(?:right|correct|valid|answer|final|real|result"
    r"|output)|a mistake|an error|invalid"
    r"|inaccurate|outdated|mistaken|withdrawn|retracted|superseded)\b",
    r"\b(?:should|must|ought to|has to|have to|needs to|need to) (?:\w+ )?(?:have been|be|read"
    r"|say) (?:changed|corrected|set|replaced|fixed|removed|ignored|discarded)\b",
    # German
    _START + r"(?:eigentlich|moment|warte|halt, |korrektur|berichtigung|ups|hoppla|nein, |doch nicht|entschuldigung"
    r"|verzeihung|sorry"
    r"|mein fehler|nachtrag[:：]|genauer gesagt|vielmehr|ich (?:meinte|habe mich (?:geirrt|vertan"
    r"|verlesen))|bitte ändern?)\b",
    r"\b(?:das|dies|es|die antwort|der wert) (?:ist|war) (?:\w+ )?(?:falsch|nicht richtig|nicht korrekt"
    r"|nicht die antwort|ein fehler|ungültig|veraltet)\b",
    r"\bvergiss (?:das|es|die)\b|\bignorier\w* (?:das|die|den|dies)\b",
    # French
    _START
    + r"(?:en (?:fait|réalité)|attendez|attends|correction|rectification|erratum|oups|non, |pardon|désolée?|plutôt, "
    r"|mon erreur|je (?:me suis trompée?|voulais dire|corrige|rectifie)|finalement|après réflexion)\b",
    r"\b(?:c'est|c'était|ceci est|cela est|la réponse est|la valeur est) (?:\w+ )?(?:faux|fausse"
    r"|incorrecte?|erronée?|une erreur|pas la (?:bonne )?réponse)\b",
    r"\bignorez (?:le|la|les|ce|cela)\b",
    # Spanish
    _START + r"(?:en realidad|de hecho|espera|esperen?|un momento|corrección|corrijo|fe de erratas|ups|no, |perdón"
    r"|disculp\w+|lo siento"
    r"|mejor dicho|más bien|mi error|me (?:equivoqué|he equivocado)|quise decir|pensándolo (?:bien|mejor))\b",
    r"\b(?:esto|eso|la respuesta|el valor) (?:es|era|está|estaba) (?:\w+ )?(?:mal|incorrect[oa]"
    r"|equivocad[oa]|errón[oe]a?|un error)\b",
    r"\bignor[ae]n? (?:lo|la|el|esto|eso)\b",
    # Chinese
    r"(?:^|[。！？\n，,：:\s])(?:其实|实际上|事实上|等等|等一下|更正|纠正|修正|勘误|抱歉|对不起|不对|不好意思|我(?:搞|弄|写|看|说)?错了|应该是|应当是|应为|改为|改成|请忽略)",
    r"(?:这|那|上面|以上|上述)[^。！？\n]{0,8}(?:是错|错误|不对|不正确|有误|作废)",
    # Japanese
    r"(?:^|[。！？\n、\s])(?:実は|訂正|修正[:：します]|すみません|申し訳|失礼|間違え|間違い|いや、|いえ、|待って|やっぱり|正しくは|無視して)",
    r"(?:これ|それ|上記|上の)[^。！？\n]{0,8}(?:間違|誤り|違います|正しくありません)",
    flags=re.M,
)
"""Takes back, corrects or denies what was said before."""

SAMPLE: Final = _any(
    r"\b(?:examples?|samples?|templates?|placeholders?|skeleton|illustration|illustrative|hypothetical"
    r"|dummy|mock|fictional|made[- ]up"
    r"|(?:expected|required|desired|correct|right|target) (?:json |output |response )?(?:format|structure|schema|shape)"
    r"|(?:format|structure|schema) (?:is|would|should|looks)|would look like|could look like"
    r"|might look like|looks like this|for instance|e\.g\.)\b",
    r"\b(?:beispiel\w*|muster|vorlage|platzhalter|(?:erwartetes?|gewünschtes?) format|so (?:würde|könnte|sähe))\b",
    r"\b(?:par exemple|exemples?|modèle|gabarit|format attendu|fictif|fictive)\b",
    r"\b(?:por ejemplo|ejemplos?|plantilla|muestra|formato esperado|ficticio)\b",
    r"示例|例子|样例|范例|模板|样本|格式如下|例如|比如",
    r"例えば|サンプル|テンプレート|見本|例[:：]|の例|形式は",
)
"""Speaks of an example or a form."""

DECLINES: Final = _any(
    r"\b(?:can(?:'|’)?t|cannot|can not|could(?:n't|n’t| not)|(?:am|was|were|are|'m"
    r"|'re) (?:\w+ )?(?:unable|not able)|unable to|not able to|failed to"
    r"|won(?:'|’)t|will not|must decline|did(?:n't|n’t| not) (?:find|see|contain|include|provide|mention|get|receive)"
    r"|do(?:es)?(?:n't|n’t| not) (?:find|see|contain|have|include|provide|mention)|there (?:is|was|are"
    r"|were) no\b|no \w+ (?:was|were|is|are|could be) (?:found|given|provided|present|attached|mentioned)"
    r"|not (?:enough|sufficient)|insufficient|nothing (?:to|was)|no (?:text|document|input|data"
    r"|information|attachment)\b|missing (?:text|document|input)"
    r"|i(?:'m| am) (?:sorry|afraid)|sorry|apologi[sz]e|refuse|impossible|without (?:the|more|any|a) )",
    r"\b(?:kann|konnte|könnte|kein|keine|keinen|leider|unmöglich|nicht (?:gefunden|möglich|enthalten"
    r"|vorhanden|angegeben)|fehlt|fehlen|tut mir leid)\b",
    r"\b(?:je (?:ne|n'ai)|n'ai pas|ne (?:peux|trouve|contient)|impossible|désolée?|aucune?|pas (?:pu|trouvé|de))\b",
    r"\b(?:no (?:puedo|pude|encontré|he|hay|contiene|se)|lo siento|imposible|ningun[oa]?|ningún|falta)\b",
    r"无法|不能|没有|未(?:找到|提供|包含)|抱歉|对不起|缺少|找不到",
    r"できません|できない|見つかりません|見つからな|ありません|ない(?:ため|ので)|申し訳|すみません|含まれていません",
)
"""Says that something could not be done or found."""

ASKS: Final = _any(
    r"\b(?:please|kindly|could you|can you|would you|you can|if you) (?:\w+ ){0,3}(?:provide|share|send"
    r"|paste|supply|attach|upload|give|tell|include|add)\b",
    r"\b(?:waiting for|i need|we need|once you|as soon as you|after you)\b",
    r"\b(?:bitte (?:\w+ ){0,6}(?:senden|schicken|angeben|geben|teilen|ergänzen|bereitstellen)"
    r"|ich (?:brauche|benötige)|sobald)\b",
    r"\b(?:veuillez|merci de|pouvez-vous|pourriez-vous|j'ai besoin)\b",
    r"\b(?:por favor (?:\w+ ){0,4}(?:proporcion|env|compart|incluy|adjunt|peg)\w*|puedes|podrías|necesito)\b",
    r"请(?:提供|给|发|分享|粘贴|告诉|补充|上传)|需要您|需要更多",
    r"(?:提供|送|教え|共有|入力|貼り付け)[^。\n]{0,6}(?:ください|いただけ|くださ)|必要です",
)
"""Asks for what would be needed for an answer."""

GUESSES: Final = _any(
    r"\b(?:placeholder|invented|made[- ]up|fabricated|dummy|fictional|not real)\b",
    r"erfunden|inventé|inventad[oa]|虚构|架空",
)
"""Says of the answer that it is made up."""

DISOWNS: Final = _any(
    r"\b(?:not|n't|instead of|rather than|never|was|were|had been|had it|has it|used to|originally"
    r"|original|old|older|oldest|previous|previously|prior"
    r"|before|former|formerly|earlier|initial|initially|first draft|draft|input|source|request|wrong"
    r"|incorrect|bad|worse|invalid|mistaken?n?|mistakes?|errors?|erroneous"
    r"|faulty|broken|examples?|samples?|comparison|compared?|versus|vs|contrast|usage|expected|templates?"
    r"|format|schema|removed|rejected|deprecated|obsolete|outdated"
    r"|alternative(?:ly)?|hypothetical(?:ly)?|user (?:said|wrote|sent|gave)|would (?:be|have|look)"
    r"|could (?:be|have|look)|might (?:be|have)|if |unlike|except|avoid|don't|counter-?example|reference"
    r"|for reference|similar|another|other)\b",
    r"[❌✗✘✖👎🚫⛔]",
    r"\b(?:nicht|statt|anstatt|anstelle|war|waren|wäre|wären|ursprünglich\w*|alt|alte[rs]?|vorher\w*"
    r"|bisher\w*|früher\w*|falsch\w*|fehler\w*|beispiel\w*|muster|vergleich\w*"
    r"|eingabe|erwartet\w*|entwurf|oder|ungültig\w*|veraltet\w*|zuvor|andere[rs]?)\b",
    r"\b(?:pas|au lieu de|plutôt que|était|étaient|serait|ancien(?:ne)?s?|précédente?s?|avant"
    r"|originale?s?|initiale?s?|faux|fausses?|incorrecte?s?|mauvaise?s?|exemples?"
    r"|comparaison|entrée|attendue?s?|brouillon|erreur|invalide|contrairement|autre)\b",
    r"\b(?:en lugar de|en vez de|era|eran|sería|originale?s?|antigu[oa]s?|anterior(?:es)?|antes"
    r"|incorrect[oa]s?|mal[oa]s?|ejemplos?|comparación|entrada|borrador|esperad[oa]s?"
    r"|error|inválid[oa]s?|otr[oa])\b|\A,\s*no\Z",
    r"不是|而不是|而非|原来|原本|原始|原先|之前|以前|先前|旧|错误|有误|示例|例如|比如|例子|对比|相比|比较|输入|草稿|另一",
    r"ではなく|でなく|元の|以前|前の|旧|間違|誤|例えば|例[:：]|比較|入力|下書き|参考|別の",
)
"""Directly before a value: it is another than the answer."""

OWNS: Final = _any(
    r"\b(?:corrected|correct|final|finally|updated?|revised|fixed|right|actual|new|newer|after|outputs?"
    r"|answer is|result is|ended up|improved|amended|proper|accurate|good|better)\b",
    r"[✅✔✓👍]",
    r"\b(?:korrigiert\w*|korrekt\w*|endgültig\w*|final\w*|aktualisiert\w*|richtig\w*|neue?[rs]?|nachher"
    r"|danach|ausgabe|verbessert\w*|jetzt)\b",
    r"\b(?:corrigée?s?|correcte?s?|finale?s?|mise? à jour|nouveau|nouvelle|après|sortie|définiti(?:f|ve)"
    r"|bonne?|maintenant)\b",
    r"\b(?:corregid[oa]s?|correct[oa]s?|finale?s?|actualizad[oa]s?|nuev[oa]s?|después|salida"
    r"|definitiv[oa]s?|buen[oa]?|ahora)\b",
    r"更正|正确|最终|最后|更新|修改后|新的|之后|输出|改正",
    r"訂正|正しい|正しく|最終|更新|修正|新しい|後の|出力",
)
"""Directly before a value: it is the answer."""

NEVER: Final = _any(
    r"\b(?:this|that|it|the following|below|here|what follows) (?:is|are) (?:not|n't|never)\b|\bisn't\b"
    r"|\b(?:not|no) (?:the|an|my|a) (?:\w+ )?(?:answer|result|output|invoice|final)\b"
    r"|\b(?:wrong|incorrect|invalid|bad|faulty|erroneous|rejected|counter-?example|do not (?:use|return"
    r"|write|output)|don't (?:use|return|write|output)|never (?:use|return|write|output)|instead of"
    r"|rather than|avoid)\b",
    r"[❌✗✘✖🚫⛔]",
    r"\b(?:falsch\w*|ungültig\w*|fehlerhaft\w*|(?:ist|sind) (?:nicht|kein\w*)|gegenbeispiel)\b",
    r"\b(?:faux|fausse|incorrecte?|mauvaise?|invalide|n'est pas|ce n'est|contre-exemple)\b",
    r"\b(?:incorrect[oa]|inválid[oa]|no es|contraejemplo)\b",
    r"这不是|错误的|不正确的|并非",
    r"ではありません|ではない|間違った|誤った",
)
"""Directly before the only value: even so it is not the answer."""

CHOICE_BETWEEN: Final = _any(
    r"\A[\s,;.…)\]*_`-]*(?:(?:\d|[a-z])[.):]|and/or|or|or else|alternatively|oder|ou|ou bien|o|o bien|或者?"
    r"|还是|または|あるいは|もしくは)[\s,:*_`(\[-]*\Z",
    r"\b(?:options?|versions?|variants?|alternatives?|candidates?|possibilit(?:y|ies)|choice|variante"
    r"|möglichkeit|opción|opcion|选项|方案|案)\s{0,3}(?:\d|[a-d一二三四]\b|one|two|three|eins|zwei|uno|dos)",
)
"""Between two values: they are offered side by side."""

ELIDES: Final = _any(
    r"^[ \t>*-]*(?:\.\.\.+|…+)[\s\]})`]*$",
    r"[(\[]\s{0,3}(?:and |plus |\+ ?)?\d+ (?:more|other|further|additional)\b",
    r"\b(?:and|plus) \d+ (?:more|others)\b",
    r"\b(?:more|other|others|remaining|rest|further|additional|entries|items|fields|rows|records|lines"
    r"|elements|values|list|array|output|response|json|results?)\b[^.!?\n]{0,60}"
    r"\b(?:omitted|truncated|abbreviated|shortened|elided|left out|not shown|not listed|not included"
    r"|skipped|cut off|unchanged|as before|stays? the same|remains? the same|are the same|is the same)\b",
    r"\b(?:omitted|truncated|abbreviated|shortened|elided|left out|cut short) (?:for|here|to|due|because)\b",
    r"^[ \t]*[(\[*_]*(?:and so on|etc|continued|to be continued|remaining|unchanged|rest unchanged)\b",
    r"\b(?:weitere|übrige|restliche|restlichen|rest)\b[^.!?\n]{0,40}\b(?:ausgelassen|weggelassen|gekürzt"
    r"|unverändert)\b|\bgekürzt\b",
    r"\b(?:autres?|reste|suite)\b[^.!?\n]{0,40}\b(?:omise?s?|tronquée?s?|inchangée?s?|abrégée?s?)\b",
    r"\b(?:otr[oa]s|resto|demás)\b[^.!?\n]{0,40}\b(?:omitid[oa]s?|truncad[oa]s?|sin cambios|igual)\b",
    r"省略|其余(?:不变|相同|略)|其他(?:不变|相同|略)|以下略|略去|篇幅",
    r"以下同様|残りは|他は同じ|変更なし|略[)）]",
    flags=re.M,
)
"""Stands for something that was left out."""
