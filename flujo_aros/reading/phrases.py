"""Phrases with which a reply disowns or abbreviates its content, by language.

English, German, French, Spanish, Chinese and Japanese; alternatives, omissions and the word for an example also in
Italian, Portuguese, Dutch, Polish, Russian and Korean. Structure takes precedence over words (`remainder`), and these
lists only make the reader stricter: a missing phrase misses a sign that the value is wrong, and a wrong one causes
a needless rejection. Every expression takes time linear in the length of the text. Doubts and corrections are in
`remarks`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final

from flujo_aros.contract import contains
from flujo_aros.reading.grammar import expression


def word_set(words: str) -> frozenset[str]:
    """Return the words of a string, for lookup."""
    return frozenset(words.split())


class Phrases:
    """A list of lower-case expressions that are searched for together and match in any letter case.

    Each search first runs a linear automaton, made of the same expressions without their look-around. Most texts have
    none of the phrases, and the automaton shows that at once. It reads the text in lower case, because a
    case-insensitive automaton takes four times as long to compile, and each process compiles those that its replies
    need. `cased` means that the text must not be converted to lower case.
    """

    def __init__(self, *parts: str, cased: bool = False) -> None:
        self.source = "|".join(f"(?:{part})" for part in parts)
        self.cased = cased

    @cached_property
    def exact(self) -> re.Pattern[str]:
        """The expression that decides."""
        return re.compile(self.source, re.I | re.M)

    def may_match(self, text: str) -> bool:
        """Return whether a match is possible. It may report false positives, but no false negatives."""
        if text.isascii():
            return self._in_ascii(text if self.cased else text.lower())
        try:
            return self._in_any(text if self.cased else text.lower())
        except UnicodeEncodeError:
            return True

    @cached_property
    def _in_ascii(self) -> Callable[[str], bool]:
        return contains(f"(?m){_UNSUPPORTED.sub(_supported, self.source)}")

    @cached_property
    def _in_any(self) -> Callable[[str], bool]:  # word boundaries among other letters are slow
        return contains(f"(?m){_UNSUPPORTED.sub(_supported, self.source).replace(_BOUNDARY, '')}")

    def search(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        """Return the first match in a text, or in a part of it."""
        if end is None:
            return self.exact.search(text, start) if self.may_match(text) else None
        return self.exact.search(text, start, end) if self.may_match(text[start:end]) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Return every match in a text."""
        return self.exact.finditer(text) if self.may_match(text) else iter(())

    def sub(self, new: str, text: str) -> str:
        """Return the text with every match replaced."""
        return self.exact.sub(new, text) if self.may_match(text) else text


_BOUNDARY: Final = r"\b"
_CLASS: Final = r"\[\^?\]?(?:\\.|[^\]\\]|(?!))*+\]"
_GROUPED: Final = (
    rf"(?:[^()\[\\]|\\.|{_CLASS}|\((?:[^()\[\\]|\\.|{_CLASS}|\((?:[^()\[\\]|\\.|{_CLASS}|(?!))*+\)|(?!))*+\)|(?!))*+"
)
_UNSUPPORTED: Final = expression(
    rf"(?P<look>\(\?<?[=!]{_GROUPED}\))|(?P<class>{_CLASS})|(?P<escape>\\.)|\{{(?P<least>\d+),\d*\}}", re.S
)
"""Syntax that the automaton's engine lacks or interprets differently: look-around, which may contain nested groups, and
counters; `\\w`, `\\d` and `\\s`, which match other characters in `re`.
"""
_SPACE: Final = r"\s\x1c-\x1f\x85"
_ESCAPES: Final = {
    r"\Z": r"\z", r"\w": r"\S", r"\d": r"\S", r"\W": "[^A-Za-z0-9_]", r"\s": f"[{_SPACE}]",
}  # fmt: skip


def _supported(found: re.Match[str]) -> str:
    """Return an expression for the automaton's engine that matches wherever this part of an expression does."""
    if found["escape"]:
        return _ESCAPES.get(found[0], found[0])
    if found["class"]:
        return found[0].replace(r"\s", _SPACE).replace(r"\w", r"\S").replace(r"\d", r"\S")
    return "" if found["look"] else "*" if found["least"] == "0" else "+"


DECLINES: Final = Phrases(
    r"\b(?:can(?:'|’)?t|cannot|can not|could(?:n't|n’t| not)|(?:am|was|were|are|'m|'re) (?:\w+ )?(?:unable|not able)"
    r"|unable to|not able to|failed to|won(?:'|’)t|will not|must decline|did(?:n't|n’t| not) (?:find|see|contain"
    r"|include|provide|mention|get|receive)|do(?:es)?(?:n't|n’t| not) (?:find|see|contain|have|include|provide"
    r"|mention)|there (?:is|was|are|were) no\b|no \w+ (?:was|were|is|are|could be) (?:found|given|provided|present"
    r"|attached|mentioned)|(?:is|was|are|seems|appears|looks) (?:empty|blank|missing)|not (?:enough|sufficient)"
    r"|insufficient|(?:is|are|was|were)(?:n't|n’t| not) (?:any|enough|sufficient|given|provided|there)|lacks?"
    r"|nothing (?:to|was)|no (?:text|document|input|data|information|attachment)\b|missing (?:text|document|input)"
    r"|i(?:'m| am) (?:sorry|afraid)|i have(?:n['’]t| not) \w+ed|sorry|apologi[sz]e|refuse|impossible"
    r"|without (?:the|more|any|a) )",
    r"\b(?:kann|konnte|könnte|kein|keine|keinen|leider|unmöglich|nicht (?:gefunden|möglich|enthalten"
    r"|vorhanden|angegeben)|fehlt|fehlen|tut mir leid)\b",
    r"\b(?:je (?:ne|n'ai)|n'ai pas|ne (?:peux|trouve|contient)|impossible|désolée?|aucune?|pas (?:pu|trouvé|de))\b",
    r"\b(?:non (?:ho|posso|è|trovo|contiene|ci)|não (?:encontrei|consegui|posso|há|contém)|purtroppo|infelizmente"
    r"|helaas|geen \w+|niet (?:gevonden|vinden|mogelijk)|mi dispiace|desculpe?|no (?:puedo|pude|encontré|he|hay"
    r"|contiene|se)|lo siento|imposible|ningun[oa]?|ningún|falta)\b",
    r"无法|不能|没有|未(?:找到|提供|包含)|抱歉|对不起|缺少|找不到",
    r"できません|できない|見つかりません|見つからな|ありません|ない(?:ため|ので)|申し訳|すみません|含まれていません",
)
"""Says that something could not be done or found."""

BEYOND: Final = Phrases(
    r"\b(?:else|other|(?:additional|further|more)(?! (?:information|details?|context|data|text|input))|relevant"
    r"|internet|external|if (?:this|you)|nothing (?:is|was)|sorry for"
    r"|weitere\w*|andere\w*|sonst|autres?|más|otr[oa]s?)\b|其他|その他|ほかの"
)
"""Speaks of something other than the answer: `The text does not mention anything else.`"""

ASKS: Final = Phrases(
    r"(?:^|[.!?]\s)(?:paste|upload|send|share|attach|provide|drop)\b[^.!?\n]{1,80}\band (?:i|we)\b",
    r"\b(?:please|kindly|could you|can you|would you|you can|if you) (?:\w+ ){0,3}(?:provide|share|send"
    r"|paste|supply|attach|upload|give|tell|include|add)\b",
    r"\b(?:waiting for|i(?:'ll| will)? (?:\w+ )?need|we need|once you|as soon as you|after you)\b",
    r"\b(?:bitte (?:\w+ ){0,6}(?:senden|schicken|angeben|geben|teilen|ergänzen|bereitstellen)"
    r"|ich (?:brauche|benötige)|sobald)\b",
    r"\b(?:veuillez|merci de|pouvez-vous|pourriez-vous|j'ai besoin)\b",
    r"\b(?:por favor (?:\w+ ){0,4}(?:proporcion|env|compart|incluy|adjunt|peg)\w*|puedes|podrías|necesito)\b",
    r"\b(?:envíe?(?:me|nos)|mánde?me|páse?me|pásame|adjúnte?me|(?:me )?envie(?:-me)?|mande(?:-me)?|inviami"
    r"|mi invii|mandami|stuur (?:mij|me)|schick(?:en sie)? mir|prześlij|wyślij|пришлите|отправьте"
    r"|gönderin|gönderir)\b|보내\s?주",
    r"请(?:提供|给|发|分享|粘贴|告诉|补充|上传)|需要您|需要更多",
    r"(?:提供|送|教え|共有|入力|貼り付け)[^。\n]{0,6}(?:ください|いただけ|くださ)|必要です",
)
"""Asks for information needed to answer."""

DISOWNS: Final = Phrases(
    r"\b(?:not|n't|instead of|rather than|never|was|were|had been|had it|has it|used to|originally|original|old|older"
    r"|oldest|previous|previously|prior|before|former|formerly|earlier|initial|initially|first draft|draft|input"
    r"|source|request|wrong|incorrect|bad|worse|invalid|mistaken?n?|mistakes?|errors?|erroneous|faulty|broken"
    r"|examples?|samples?|comparison|compared?|versus|vs|contrast|usage|expected|templates?|format"
    r"|(?<!in (?:that|this) )(?<!in the )schema|removed|rejected|deprecated|obsolete|outdated"
    r"|alternative(?:ly)?|hypothetical(?:ly)?|user (?:said|wrote|sent|gave)"
    r"|would (?:be|have|look)|could (?:be|have|look)|might (?:be|have)|if |unlike|except|avoid|don't|counter-?example"
    r"|reference|for reference|similar|another|other)\b",
    r"\b(?:since|because|as|although|though|while|whereas|even though)\b[^.!?\n]{0,60}\b(?:says?|said|reads?|shows?"
    r"|has|had|have|contains?|states?|claims?|lists?|gives?)\s*[:：]?\Z",
    r"[❌✗✘✖👎🚫⛔]|\A(?:got|received|v1|version 1)\s*[:：]\Z|\b(?:replaces|supersedes|ersetzt|remplace)\s*\Z",
    r"\A(?:from|over|in place of|as opposed to|(?:replac|overrid|amend|correct|fix)(?:e?s|ing)|et non|y no|e non|e não"
    r"|remplaçant|reemplaza(?:ndo)?|sustituye(?:ndo)?|[<←])\Z",
    r"\b(?:nicht|statt|anstatt|anstelle|war|waren|wäre|wären|ursprünglich\w*|alt|alte[rs]?|vorher\w*"
    r"|bisher\w*|früher\w*|falsch\w*|fehler\w*|beispiel\w*|muster|vergleich\w*"
    r"|eingabe|erwartet\w*|entwurf|oder|ungültig\w*|veraltet\w*|zuvor|andere[rs]?)\b",
    r"\b(?:pas|au lieu de|plutôt que|était|étaient|serait|ancien(?:ne)?s?|précédente?s?|avant"
    r"|originale?s?|initiale?s?|faux|fausses?|incorrecte?s?|mauvaise?s?|exemples?"
    r"|comparaison|entrée|attendue?s?|brouillon|erreur|invalide|contrairement|autre)\b",
    r"\b(?:en lugar de|en vez de|era|eran|sería|originale?s?|antigu[oa]s?|anterior(?:es)?|antes|incorrect[oa]s?"
    r"|mal[oa]s?|ejemplos?|comparación|entrada|borrador|esperad[oa]s?|error|inválid[oa]s?|otr[oa])\b|\A,\s*no\Z",
    r"不是|而不是|而非|原来|原本|原始|原先|之前|以前|先前|旧|错误|有误|示例|例如|比如|例子|对比|相比|比较|输入|草稿|另一",
    r"ではなく|でなく|元の|以前|前の|旧|間違|誤|例えば|例[:：]|比較|入力|下書き|参考|別の",
    r"\b(?:antig[oa]s?|anterior(?:es)?|original|rascunho|errad[oa]s?|exemplos?|entrada|vecchi[oae]|precedent[ei]|bozza"
    r"|sbagliat[oaie]|esempio?|oude?|vorige|eerdere?|concept|foute?|voorbeeld\w*|star[yae]|poprzedni\w*|szkic|błędn\w+"
    r"|przykład\w*|стар\w+|предыдущ\w+|прежн\w+|черновик|неверн\w+|пример\w*|eski|önceki|taslak|yanlış|örnek"
    r"|gam(?:mal|la)|tidigare|utkast|felaktig\w*|exempel|starý|staré|předchozí|návrh|chybn\w+|příklad\w*|lama|sebelumnya"
    r"|draf|contoh)\b|이전|기존|초안|예시|잘못된",
)
"""Directly before a value: it is not the answer."""

OWNS: Final = Phrases(
    r"\b(?:corrected|correct|final|finally|updated?|revised|fixed|right|actual|new|newer|after|outputs?"
    r"|(?:answer|result) is(?! (?:\w+ly )?(?:not|incorrect|wrong|invalid)\b)|ended up|improved|amended|proper"
    r"|accurate|good|better)\b",
    r"[✅✔✓👍]",
    r"\b(?:korrigiert\w*|korrekt\w*|end(?:gültig\w*|fassung|version)|final\w*|aktualisiert\w*|richtig\w*|neue?[rs]?|nachher"
    r"|danach|ausgabe|verbessert\w*|jetzt)\b",
    r"\b(?:corrigée?s?|correcte?s?|finale?s?|mise? à jour|nouveau|nouvelle|après|sortie|définiti(?:f|ve)"
    r"|bonne?|maintenant)\b",
    r"\b(?:corregid[oa]s?|correct[oa]s?|finale?s?|actualizad[oa]s?|nuev[oa]s?|después|salida"
    r"|definitiv[oa]s?|buen[oa]?|ahora)\b",
    r"更正|正确|最终|最后|更新|修改后|新的|之后|输出|改正",
    r"訂正|正しい|正しく|最終|更新|修正|新しい|後の|出力",
    r"\b(?:nov[oa]s?|corrigid[oa]s?|atualizad[oa]s?|finais|agora|nuov[oaie]|corrett[oaie]|aggiornat[oaie]|finale"
    r"|definitiv[oaie]|nieuwe?|gecorrigeerde?|definitieve?|juiste|now[yae]|poprawion\w+|ostateczn\w+|aktualn\w+"
    r"|нов(?:ый|ая|ое|ые)|исправлен\w+|итог\w*|окончательн\w+|верн(?:ый|ая|ое|ые)|yeni|düzeltilmiş|nihai|güncel\w*|ny[at]?"
    r"|rättad\w*|korrigerad\w*|slutlig\w*|nový|nové|opraven\w+|konečn\w+|baru|diperbaiki|akhir|resulting)\b|새로운|수정|최종",
)
"""Directly before a value: it is the answer."""

ANNOUNCES: Final = Phrases(
    r"\b(?:answer|result|output|json|response|reply|version|attempt|try|take|here|then(?! there\b)|now|again|rather"
    r"|better|therefore|thus|hence|so|once more|carefully|precise(?:ly)?|proper(?:ly)?|use (?:this|that)|one to use"
    r"|v[2-9]|added|adding|apply\w*|validated|re-?(?:written|worked|done|checked|stated|phrased|computed|calculated"
    r"|ordered|generated|vised|validated|format\w*)|cleaned|completed?|normali[sz]ed|formatted|polished|adjusted"
    r"|improved|edited|modified|filled in)\b|\A(?:a|no)\s*:\Z",
    r"\b(?:antwort|ergebnis|ausgabe|hier|dann|réponse|résultat|sortie|voici|puis|donc|respuesta|resultado|salida|aquí"
    r"|luego|risposta|risultato|ecco|resposta|antwoord|resultaat|odpowiedź|wynik|ответ|результат|вот|mejor|corrett\w"
    r"|corrigid\w|gecorrigeerd\w*|poprawion\w+|исправлен\w*|definitiv\w*|nochmals?|neue?)\b|答案|结果|結果|输出|出力|回答|因此|以下|답",
)
"""Directly before the last of several answers: it is the answer."""
DRAFTS: Final = Phrases(
    r"\b(?:attempt|try|guess|thoughts?|think|tentative|sketch|candidate|version 1|v1|step 1|rough|raw|preliminary"
    r"|provisional|unvalidated|unchecked|working|scratch|notes?|rohfassung|entwurf|vorläufig\w*|provisoire|preliminar)\b"
)
"""Directly before the first of several answers: another one follows."""

_ANSWER: Final = (
    r"(?:answer|version|output|result|json|response|reply|records?|values?|object|data|entry|input|one|request|draft)"
)
_ANSWER_DE: Final = r"(?:fassung|version|antwort|ausgabe|ergebnis|wert|datensatz|daten|eingabe|eintrag|json)"
_ANSWER_FR: Final = r"(?:version|réponse|sortie|résultat|valeur|données|entrée|enregistrement|json)"
_ANSWER_ES: Final = r"(?:versión|respuesta|salida|resultado|valor|datos|entrada|registro|json)"

_ITEM: Final = rf"(?:{_ANSWER}|{_ANSWER_DE}|{_ANSWER_FR}|{_ANSWER_ES})"
_OLD_EN: Final = (
    r"(?:previous|prior|original|old(?:er)?|earlier|former|initial|outdated|wrong|raw|source|in(?:put|correct|valid)"
    r"|(?:yesterday|last (?:week|month|year|time))(?:['’]s)?)"
)
_OLD: Final = (
    rf"(?:{_OLD_EN}|(?:vorherige|vorige|bisherige|ursprüngliche|alte|frühere|falsche|veraltete|ungültige)[rsn]?"
    r"|(?:ancien(?:ne)?|mauvaise?|précédente?|originale?|initiale?|incorrecte?|erronée?)s?|d'origine|anterior(?:es)?"
    r"|erroneous|iniciale?s?|(?:previ|antigu|incorrect|erróne)[oa]s?)"
)
_BESIDE: Final = (
    r"(?:for|as a|in|by|zum|pour|par|para|en|à titre de|por) (?:contrast|reference|context|vergleich|compar\w+)"
)
_WAS: Final = (
    r"(?:was|were|had been|would (?:be|have been|look like)|war|lautete|wäre|étai(?:en)?t|serait|eran?|fue|sería)"
)

COMPARED: Final = Phrases(
    rf"\A(?:{_BESIDE}[,:]? )?(?:(?:the|my|your|an?|der|die|das|eine?|les?|la|une?|el|los|una) |l')?(?:{_OLD_EN}"
    rf"|{_OLD} {_ITEM}|{_ITEM} {_OLD})(?:(?: (?!{_ITEM}\b)\w+){{0,5}} {_WAS}| {_WAS})?(?:,? {_BESIDE})?\s*[:：]?\Z",
    rf"\A{_BESIDE}(?:[, ][^.!?\n]{{1,60}})?\s*[:：]\Z",
    r"\A(?:before|previously|formerly|vorher|bisher|früher|zuvor|voorheen|avant|auparavant|antes|anteriormente|prima)\s*[:：]\Z",
    r"\A[^.!?\n]{0,40}\b(?:would|will) (?:be (?:rejected|invalid)|not (?:validate|be accepted)|fail(?: \w+)?)[:：]\Z",
    r"\A(?:this|it|dies|cela|esto)? ?(?:replaces|supersedes|ersetzt|remplace|reemplaza) [^.!?\n]{1,60}[:：]\Z",
    r"\A(?:what )?(?:not to|do not|don['’]t|never) (?:send|use|return|write|output|answer)\b[^.!?\n]{0,40}[:：]\Z",
    r"\A(?:之前|以前|原来|原始|原先|旧)的?(?:答案|结果|记录|输入|数据|版本)?[:：]\Z|\A(?:以前|前|元|旧|誤った)の?(?:値"
    r"|回答|結果|入力|データ)?[:：]\Z",
)
"""The complete label of a value that is shown next to the answer: an earlier value, the input, or a counterexample."""

_NEW: Final = (
    r"(?:(?:so|and|ok(?:ay)?),? )?(?:here(?:'s|’s| is) |this is |below is )?(?:the |my |an? )?(?:corrected|revised"
    r"|amended|fixed|updated|final)"
)
_NEW_DE: Final = (
    r"(?:(?:hier ist|hier) )?(?:(?:der|die|das|meine?) )?(?:korrigierte|endgültige|berichtigte|finale)[rsn]?"
)
_NEW_FR: Final = rf"(?:voici )?(?:(?:le|la|ma) )?{_ANSWER_FR} (?:corrigée?|finale?|définiti(?:f|ve)|révisée?)"
_NEW_ES: Final = rf"(?:aquí está )?(?:(?:el|la|mi) )?{_ANSWER_ES} (?:corregid[oa]|final|definitiv[oa])"

REPLACES: Final = Phrases(
    rf"\A(?:{_NEW}(?: {_ANSWER})?(?: is)?|{_NEW_DE}(?: {_ANSWER_DE})?(?: (?:ist|lautet))?|{_NEW_FR}(?: est)?"
    rf"|{_NEW_ES}(?: es)?)\s*[:：]?\Z"
)
"""The complete label of a value that replaces another one."""

NEW_ANSWER: Final = Phrases(
    rf"^[ \t#>*_-]{{0,8}}(?:{_NEW} {_ANSWER}\b|{_NEW_DE} {_ANSWER_DE}\b|{_NEW_FR}|{_NEW_ES})[^:：\n]{{0,20}}[:：]"
)
"""The label of an answer that replaces the one before it, at the beginning of a line."""

AHEAD: Final = Phrases(
    r"\b(?:following|follows|below|next|here|one|ones|folgend\w*|unten|hier|suivante?s?|ci-dessous|voici|celle-ci"
    r"|celui-ci|siguientes?|abajo|aquí|ést[ea]|seguente|segue|seguinte|abaixo|volgende|examples?|samples?|bad"
    r"|reference|compar\w+|(?<!my )(?:previous|old|older|prior|original|former|earlier|initial|first"
    r"|last)(?! (?:answer|response|reply|output|json|attempt|draft|version above|message|extraction)\b))\b|以下|下面"
    r"|如下|下列|次の|下の|下記"
)
"""May refer to the next value instead of the previous one."""

NEVER: Final = Phrases(
    r"\A(?:you|the user) (?:sent|gave|wrote|passed|provided|pasted)(?: me| us)?\s*[:：]?\Z",
    r"\bfor an? (?:\w+ )?(?:text|input|message|document|e-?mail|ticket|review|sentence) (?:such as|like)\b[^\n]*"
    r"[:：]\Z|\b(?:typical|similar) (?:\w+ ){0,5}\w+\s*[:：]\Z|(?:\A|[\s,(])e\.?g\.?\s*[:,]?\Z",
    r"\b(?:possibly|maybe|perhaps|presumably|vielleicht|peut-être|quizás?|tal vez|forse|talvez)\s*[:：]?\Z"
    r"|(?:可能|也许|多分|おそらく)\s*[:：]\Z",
    r"\bfill (?:in|out) (?:this|the) \w+|\bto be (?:corrected|fixed|revised|changed|completed|filled in)\b"
    r"|\bso (?:that )?(?:i|we) can (?:\w+ )?(?:extract|fill|complete|replace|provide|produce)\b",
    r"\b(?:not|n['’]t) (?:yet )?(?:final|finished|complete|ready)\b|\Abefore (?:the |any )?(?:correction|change|update"
    r"|fix|edit)s?\s*[:：]?\Z|\A(?:previously|formerly)\s*[:：]\Z|\bà ne pas (?:suivre|utiliser|faire|reproduire)\b",
    r"[❌✗✘✖🚫⛔]",
)
"""Directly before the only value: it is still not the answer."""

UNFOUNDED: Final = Phrases(
    r"\bi (?:have |['’]ve )?(?:just |simply )?made (?:this|it|that|these|them|one|some)? ?up\b|\bhallucinated\b"
    r"|\bfrom memory\b|\b(?:to be|not yet|needs to be) (?:confirmed|verified|checked)\b|\btbc\b|\bunverified\b"
    r"|\b(?:could|can|did)(?: not|n['’]t|not) find (?:this|it|one|any)\b|\baus dem gedächtnis\b|\bde mémoire\b"
    r"|\bde memoria\b"
)
"""In a comment: the value is made up, or nobody has checked it."""

FAILS: Final = Phrases(
    r"^[\s{`*>]{0,8}[\"']?(?:[\w.]{0,60}error|fatal error|[\w.]{0,60}exception|traceback \(most recent call last\)"
    r"|fehler|erreur|エラー|错误)[\"']?\s?[:：](?!\s*(?:null|none|no|\"\"|false|\[\]|n/a|0|keiner?|aucune?|无)[\s\"'.,}`]*$)",
    r"^[\s❌✗✘⚠*_>-]{0,10}(?:schema )?validation (?:failed|error)",
)
"""After a value: an error is reported."""

CHOICE_BETWEEN: Final = Phrases(
    r"\b(?:could|might|may|can) (?:also|equally|just as well|alternatively)\b|\bkönnt?e?n? (?:auch|ebenso)\b"
    r"|\bpourrait (?:aussi|également)\b|\bpodría también\b|\btambién podría\b|\bpotrebbe anche\b|也可能|かもしれ",
    r"\A[\s,;，、.…)(\]*_`~-]*(?:(?:\d|[a-z])[.):]|and/or|(?:either that )?or(?: else| maybe| perhaps| possibly"
    r"| alternatively)?|alternatively|otherwise|else|sonst|sinon|si no|否则|oder(?: auch| vielleicht)?|ou(?: bien"
    r"| peut-être| talvez)?|soit|o(?: bien| quizás?| tal vez| forse)?|ya sea|oppure|albo|lub|либо|или|veya|또는|아니면"
    r"|要么|或者?|还是|または|あるいは|もしくは)[\s,:*_`~(\[-]*(?:(?<=[`~])[\w+#.-]+\s*)?\Z",
    r"\A[\s*_#>-]*(?!(?:draft|attempt|try|step|version|iteration|round|pass|revision|take|answer|entwurf|versuch"
    r"|schritt)\b)[a-zà-ÿ]\w{1,30} (?:#|no\.? ?)?[2-9b-d]\s*[*_]*[:：][\s*_`~]*(?:(?<=[`~])[\w+#.-]+\s*)?\Z",
    r"\A[\s*_#>-]*(?:the )?second (?!(?:draft|attempt|try|step|version|iteration|round|pass|revision|take|answer"
    r"|thought)\b)\w{1,30}\s*[*_]*[:：][\s*_`~]*(?:(?<=[`~])[\w+#.-]+\s*)?\Z",
    r"\b(?:options?|versions?|variants?|alternatives?|candidates?|possibilit(?:y|ies)|choice|variante"
    r"|möglichkeit|opción|opcion|选项|方案|案)\s{0,3}(?:\d|[a-d一二三四]\b|one|two|three|eins|zwei|uno|dos)",
)
"""Between two values: they are alternatives."""

ABSENT: Final = Phrases(
    r"\b(?:optional|null|empty|missing|absent|unmentioned|unknown|unspecified|unavailable|not (?:\w+ ){0,2}(?:present"
    r"|mentioned|given|provided|specified|stated|available|found|included|in the)|n't (?:\w+ ){0,2}(?:present|mentioned"
    r"|given|provided|specified|stated|available|found|included|in the))\b",
    r"\b(?:nicht (?:genannt|angegeben|vorhanden|erwähnt|enthalten)\w*|optional\w*|leere?n?|absents?|facultati\w+"
    r"|opcional\w*|no (?:aparece|figura|se menciona)\w*)\b|未提(?:及|供)|可选|記載(?:が)?な|任意",
)
"""Says that there was nothing to report, so leaving it out lost nothing."""

CONDITION: Final = Phrases(
    r"\b(?:if|unless|when|whether|in case|once|could|might|would|possible values?|one of|any of|either"
    r"|for example|e\.g)\b",
    r"\b(?:wenn|falls|sofern|sobald|könnte|würde|möglich\w*|zum beispiel|z\.\s?b)\b",
    r"\b(?:si|lorsque|quand|pourrait|par exemple|cuando|podría|por ejemplo)\b",
    r"如果|若|可以是|可能|例如|もし|場合|例えば",
)
"""Expresses a possibility, not a fact."""

BOTH: Final = Phrases(
    r"\b(?:both|either|all|any)(?: (?:of )?(?:them|these|answers?|options?|versions?|ones?|two|are|is|seem|look|would"
    r"|could|be|equally)){0,4} (?:plausible|valid|possible|acceptable|defensible|reasonable)\b",
    r"\b(?:pick|choose|select|use|take) (?:whichever|whatever|either|one of|the one)\b"
    r"|\bwhich (?:one )?(?:do|would) you\b",
    r"\b(?:beide|les deux|ambas|ambos)\b[^.!?\n]{0,20}\b(?:möglich|plausibel|gültig|denkbar|possibles|plausibles"
    r"|valables|válid[oa]s|posibles)\b",
    r"两(?:者|个|种)[^。\n]{0,6}(?:可以|可能|合理|有效)|どちらも",
)
"""After several values: none of them is preferred."""

NEXT_INPUT: Final = Phrases(
    r"^[ \t#*]*(?:next )?(?:inputs?|text|question|sentence|e-?mail|message|review|passage|example|eingabe|entrée"
    r"|entrada|输入|入力)(?: \d+)?[*_]*[ \t]*[:：]"
)
NEXT_OUTPUT: Final = Phrases(
    r"\A(?:outputs?|answer|response|result|json|ausgabe|sortie|salida|输出|出力)[*_]*\s*[:：]\Z"
)
"""The lines before another answer, by a model that continues with the next input."""

CORRECTED: Final = Phrases(
    r"^(?:(?!\n)\W)*(?:or|oder|ou|o|или|或者?|または)\s(?:(?:\w+\s)?[\"'\d]|(?!later|similar|so\b|more|newer|above|higher"
    r"|equivalent|else)\w+\W*$)",  # // or 4
    r"^(?:(?!\n)\W)*(?:not|nicht|pas|no):?\s[\"'\d]",  # // not 3
    r"[\"']\s(?:would|might) be (?:better|more|best|right)",  # // "b" would be better
    r"^(?:(?!\n)\W)*(?:(?:this|that) is )?(?:wrong|incorrect|falsch|faux|incorrect[oa])\s*(?:[,;:.!*–—-]|$)",
    r"\b(?:actually|(?:should|must) (?:be|read|say|have been)|correct(?:ed|ion)?(?: (?:is|to|value))?|instead|probably"
    r"|maybe|perhaps|likely|(?:could|might|may) (?:also )?be|à corriger|debería ser|deve (?:ser|essere)|moet zijn"
    r"|make (?:it|that)|(?:changed?|corrected) to|(?:wrong|incorrect|typo|oops),? (?:it is|it's)?|eigentlich"
    r"|richtig (?:ist|wäre)|korrektur|korrigiert|en realidad|corrección|debe ser|perdón|en fait"
    r"|devrait être)\W{1,3}(?:[\"'\d]|(?:true|false|null|yes|no)\b)",  # // should be 4
    r"(?:应(?:该|当)?(?:是|为)|改为|更正|正しくは)\W{0,2}\w",
    r"\A\W*(?:(?:\w+ )?(?:guess(?:ed)?|dummy|assumed|estimated|invented)|todo|tbd|fixme\b.*|[\w.,-]{0,30}\s?\?)\W*\Z",
    r"\b(?:placeholder|made[ -]up|(?:dummy|example|sample|fake|mock) (?:value|data|number|text|name|date))\b",
)
"""A comment that gives another value, or says that the value next to it is made up."""

LABEL_AT_END: Final = Phrases(
    r"(?:^|\n)[ \t#>*_-]{0,8}(?:(?:the|my|here(?:'s| is)|die|la|el|le)\s+)?(?:final|corrected|updated?|revised|fixed"
    r"|answer|result|output|json|response|endgültige?|antwort|ergebnis|korrigierte?|réponse|résultat|corrigée?"
    r"|respuesta|resultado|corregid[oa]|答案|结果|最终版?|最終版?|回答|結果)(?:\s+\w+){0,2}\s*[*_]*[:：][\s*_`]*\Z"
)
"""The label of an answer at the end of a reply, with nothing after it."""

ANNOUNCED: Final = Phrases(
    r"^[ \t#>*_-]{0,8}(?:(?:my|the)\s+)?(?:final|corrected|revised|fixed|endgültige?|korrigierte?|finale?|corrigée?"
    r"|respuesta final|corregid[oa]|最终|最終)(?:\s+\w+){0,2}\s*[*_]*[:：]"
)
"""A line that announces another answer."""

TURN: Final = Phrases(r"[,;]\s*(?:but|however|aber|mais|pero)\b|但是?|しかし")
"""The word after which a sentence comes to its main point."""

TURNS: Final = Phrases(
    r"\s{0,9}[\"'`*”’]{0,9}\s{0,9}(?:→|->|=>|ではなく|は間違|错了|\b(?:is|was|would be|will be)"
    r" (?:wrong|incorrect|a typo|a mistake)\b)"
)
"""Directly after a value: another one replaces it."""

REFUSED: Final = Phrases(
    r"\A[ \"'`”’)}\],.]{0,9}(?:(?:which|that|but|and),? )?(?:i|we) (?:decline|refuse|(?:will not|won['’]t|did not"
    r"|didn['’]t) (?:(?:do|follow) (?:that|this|it|so)|comply|obey))\b"
)
"""Directly after a value: it is what somebody asked for, and the writer declines it."""

ATTRIBUTES: Final = Phrases(
    r"\b(?:says|said|asks|asked|tells|told|wants|contains|reads|shows|instructs|claims|states|hidden|injected)\b"
)
"""Before a value: somebody else wrote it."""


UNTRUE: Final = Phrases(
    r"(?:\b(?:not|nicht|kein\w*|no longer|yet to be|no|pas|non)\b|n['’]t\b|不是|不|非)\s*(?:\w+ )?\Z"
)
"""Directly before the name of a boolean: it is false."""

HOLDS: Final = Phrases(
    r"\b(?:is|are|was|were|ist|sind|est|es)\s+(?:actually |indeed |in fact |now |already |doch |jetzt |bien )?\Z"
)
"""Directly before the name of a boolean: it is true."""
