"""Noise: answers in the forms that real models write instead of plain JSON.

Every class of noise was observed in replies of real models. A class either keeps the complete answer in the text, so
that a reader can recover it, or loses part of it, so that only a rejection or another call is correct.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias

from flujo_aros.errors import UsageError
from flujo_aros.json_data import is_dict, is_list

Json: TypeAlias = Any
Write: TypeAlias = Callable[[Json, random.Random], str | None]
FinishReason: TypeAlias = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class NoisyReply:
    """One reply: the text, the class of its noise, the finish reason, and whether it contains the complete answer."""

    text: str
    noise: str
    whole: bool = True
    finish_reason: FinishReason = "stop"


@dataclass(frozen=True, slots=True)
class Noise:
    """One class of noise. `write` returns the text for an answer, or None if it does not apply to that answer."""

    name: str
    what: str
    write: Write
    whole: bool = True
    finish_reason: FinishReason = "stop"

    def reply(self, value: Json, rng: random.Random) -> NoisyReply | None:
        """Return a reply with this noise, or None if it does not apply."""
        text = self.write(value, rng)
        return None if text is None else NoisyReply(text, self.name, self.whole, self.finish_reason)

    def applies(self, value: Json) -> bool:
        """Return whether this noise can occur in a reply with `value`: `inner_quotes` needs a string, for instance.

        >>> [name for name in ("cut", "numbers_as_text", "fence") if NOISES[name].applies({"a": "x"})]
        ['fence']
        """
        return self.reply(value, random.Random(0)) is not None  # noqa: S311 - repeatable, not secret


def noisy_replies(value: Json, *, seed: int, count: int, noises: Iterable[str] | None = None) -> Iterator[NoisyReply]:
    """Yield `count` noisy replies that contain `value`, plain JSON. The same seed yields the same replies.

    `noises` are the names of the classes to use (`NOISES` has them all); those that do not apply to the value are
    skipped. Raises `UsageError` for an unknown name, and if none applies.

    >>> [reply.noise for reply in noisy_replies({"n": 1}, seed=1, count=2, noises=["fence", "trailing_comma"])]
    ['fence', 'trailing_comma']
    """
    names = list(NOISES if noises is None else noises)
    unknown = [name for name in names if name not in NOISES]
    if unknown or not names:
        raise UsageError(f"unknown noise {', '.join(map(repr, unknown))}; known: {', '.join(NOISES)}")
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    made = 0
    while made < count:
        applied = 0
        for name in names:
            reply = NOISES[name].reply(value, rng)
            if reply is not None and made < count:
                made, applied = made + 1, applied + 1
                yield reply
        if not applied and made < count:
            raise UsageError(f"none of these noises applies to {value!r}: {', '.join(names)}")


_OPENINGS: Final = (
    "Sure! Here is the JSON you asked for:",
    "Gerne, hier ist das Ergebnis:",
    "Claro, aquí está el resultado:",
    "Voici la réponse demandée :",
    "好的，结果如下：",
    "إليك النتيجة المطلوبة:",
)
_CLOSINGS: Final = (
    "Let me know if you need anything else!",
    "Ich hoffe, das hilft.",
    "¿Necesitas algo más?",
    "N'hésitez pas à demander la suite.",
    "希望对你有帮助。",
    "هل تحتاج إلى شيء آخر؟",
)
_THOUGHTS: Final = (
    "The user wants a record. First the name, then the rest { maybe a list [1, 2] }.",
    "Der Text nennt mehrere Angaben, ich nehme die letzte.",
    "用户需要一个对象，先看字段。",
)
_REFUSALS: Final = (
    "I'm sorry, but I can't help with that request.",
    "Tut mir leid, dabei kann ich nicht helfen.",
    "Lo siento, no puedo ayudar con eso.",
    "Je suis désolé, je ne peux pas répondre à cette demande.",
    "抱歉，我无法完成这个请求。",
    "عذراً، لا يمكنني المساعدة في ذلك.",
)


def _plain(value: Json, rng: random.Random) -> str:
    return json.dumps(value, ensure_ascii=False, indent=rng.choice([None, None, 2]))


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(value: Json) -> list[str]:
    return json.dumps(value, ensure_ascii=False, indent=2).split("\n")


def _of_object(write: Callable[[dict[str, Json], random.Random], str | None], *, least: int = 0) -> Write:
    """Return noise for objects with at least this many members."""
    return lambda value, rng: write(value, rng) if is_dict(value) and len(value) >= least else None


def _around(before: tuple[str, ...], after: tuple[str, ...]) -> Write:
    def write(value: Json, rng: random.Random) -> str:
        parts = [rng.choice(before)] if before else []
        parts.append(_plain(value, rng))
        parts += [rng.choice(after)] if after else []
        return rng.choice(["\n", "\n\n"]).join(parts)

    return write


def _in_a_tag(value: Json, rng: random.Random) -> str:
    tag = rng.choice(["result", "answer", "json", "output"])
    return f"<{tag}>{_plain(value, rng)}</{tag}>"


def _frame(members: dict[str, Json], rng: random.Random) -> str:
    return _plain({"properties": members, "required": list(members), "title": "Answer"}, rng)


def _tool_call(value: Json) -> dict[str, Json]:
    return {"name": "final_result", "arguments": value}


def _replaced(old: str, new: str, where: str) -> Write:
    """Return noise for JSON that matches this pattern: one string replaces another."""

    def write(value: Json, rng: random.Random) -> str | None:
        written = _plain(value, rng)
        return written.replace(old, new) if re.search(where, written) else None

    return write


def _escaped_once(value: Json, _: random.Random) -> str | None:
    written = _compact(value)
    return written.replace('"', '\\"') if "\\" not in written and '"' in written else None


def _python(value: Json, _: random.Random) -> str | None:
    written = repr(value)
    return written if re.search("True|False|None", written) and "\\" not in written else None


# These work on the tokens of valid JSON, so that they never touch the content of a string.

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+|\s+')


def _tokens(value: Json, rng: random.Random) -> list[str]:
    return _TOKEN.findall(_plain(value, rng))


def _trailing_comma(value: Json, rng: random.Random) -> str | None:
    tokens = _tokens(value, rng)
    solid = [at for at, token in enumerate(tokens) if not token.isspace()]
    ends = [at for before, at in pairwise(solid) if tokens[at] in ("}", "]") and tokens[before] not in ("{", "[")]
    if not ends:
        return None
    at = rng.choice(ends)
    return "".join([*tokens[:at], ",", *tokens[at:]])


def _requote(opening: str, closing: str, clash: str) -> Write:
    def write(value: Json, rng: random.Random) -> str | None:
        tokens = _tokens(value, rng)
        if any(token.startswith('"') and ("\\" in token or any(c in token for c in clash)) for token in tokens):
            return None
        return "".join(f"{opening}{t[1:-1]}{closing}" if t.startswith('"') else t for t in tokens)

    return write


def _with_keys(pattern: str, rewrite: Callable[[str], str]) -> Write:
    """Return noise in the keys that match a pattern: each is rewritten without its quotes."""

    def write(value: Json, rng: random.Random) -> str | None:
        tokens = _tokens(value, rng)
        solid = [at for at, token in enumerate(tokens) if not token.isspace()]
        keys = [at for at, after in pairwise(solid) if tokens[after] == ":" and re.fullmatch(pattern, tokens[at])]
        for at in keys:
            tokens[at] = rewrite(tokens[at][1:-1])
        return "".join(tokens) if keys else None

    return write


def _camel_case(key: str) -> str:
    first, *others = key.split("_")
    return f'"{first}{"".join(map(str.capitalize, others))}"'


def _missing_comma(members: dict[str, Json], _: random.Random) -> str | None:
    lines = _lines(members)
    at = next((n for n, line in enumerate(lines) if line.startswith('  "') and line.endswith('",')), None)
    return None if at is None else "\n".join([*lines[:at], lines[at][:-1], *lines[at + 1 :]])


def _comments(value: Json, rng: random.Random) -> str | None:
    lines = _lines(value)
    if len(lines) < 3:
        return None
    at = rng.randrange(1, len(lines) - 1)
    lines[at] += rng.choice(["  // as stated in the text", "  /* second page */", "  # from the mail"])
    return "\n".join(lines)


def _missing_closer(members: dict[str, Json], rng: random.Random) -> str:
    return _plain(members, rng)[:-1].rstrip()


def _key_value_lines(members: dict[str, Json], _: random.Random) -> str | None:
    if any(isinstance(each, (dict, list)) or "\n" in str(each) or not str(each).strip() for each in members.values()):
        return None
    return "\n".join(f"{key}: {each if isinstance(each, str) else json.dumps(each)}" for key, each in members.items())


def _mapped(change: Callable[[Json], Json]) -> Write:
    """Return a class of noise that changes the scalars of a value."""

    def walk(value: Json) -> Json:
        if is_dict(value):
            return {key: walk(each) for key, each in value.items()}
        return [walk(each) for each in value] if is_list(value) else change(value)

    def write(value: Json, rng: random.Random) -> str | None:
        changed = walk(value)
        return None if changed == value else _plain(changed, rng)

    return write


def _cut(value: Json, rng: random.Random) -> str | None:
    written = _compact(value)
    return written[: rng.randrange(len(written) // 3, max(len(written) - 4, 2))] if len(written) > 12 else None


def _elide(members: dict[str, Json], rng: random.Random) -> str:
    first = next(iter(members))
    return f"{_plain({first: members[first]}, rng)[:-1].rstrip()}, ...}}"


def _field_left_out(members: dict[str, Json], rng: random.Random) -> str:
    gone = rng.choice(list(members))
    return _plain({key: each for key, each in members.items() if key != gone}, rng)


_ALL: Final = (
    Noise("plain", "plain JSON, for comparison", _plain),
    Noise("fence", "in a ```json fence", lambda v, rng: f"```json\n{_plain(v, rng)}\n```"),
    Noise(
        "fence_bare",
        "in a fence without a language, with prose around it",
        lambda v, rng: f"{rng.choice(_OPENINGS)}\n```\n{_plain(v, rng)}\n```\n{rng.choice(_CLOSINGS)}",
    ),
    Noise("fence_one_line", "fence and JSON on one line", lambda v, _: f"```json {_compact(v)} ```"),
    Noise("fence_unclosed", "the fence is never closed", lambda v, rng: f"```json\n{_plain(v, rng)}\n"),
    Noise("prose_before", "a sentence before it", _around(_OPENINGS, ())),
    Noise("prose_after", "a sentence after it", _around((), _CLOSINGS)),
    Noise("prose_around", "a sentence before and after it", _around(_OPENINGS, _CLOSINGS)),
    Noise("tag", "between tags that were not requested", _in_a_tag),
    Noise(
        "think",
        "after a reasoning block with braces in it",
        lambda v, rng: f"<think>\n{rng.choice(_THOUGHTS)}\n</think>\n\n{_plain(v, rng)}",
    ),
    Noise("bom", "after a byte order mark", lambda v, rng: f"\ufeff{_plain(v, rng)}"),
    Noise(
        "said_twice",
        "the same answer twice",
        lambda v, rng: "\n\nTo be sure, once more:\n\n".join([_plain(v, rng)] * 2),
    ),
    Noise("result_envelope", 'inside {"result": ...}', lambda v, rng: _plain({"result": v}, rng)),
    Noise("schema_frame", 'inside {"properties": ...}, as in the schema', _of_object(_frame)),
    Noise("tool_call", "as a tool call in the text", lambda v, rng: _plain(_tool_call(v), rng)),
    Noise("doubled_braces", "as a tool call with doubled braces", lambda v, rng: f"{{{_plain(_tool_call(v), rng)}}}"),
    Noise("list_of_one", "as the one element of a list", _of_object(lambda v, rng: _plain([v], rng))),
    Noise("double_encoded", "as a JSON string that contains JSON", lambda v, _: _compact(_compact(v))),
    Noise("escaped_once", "with every quote escaped", _escaped_once),
    Noise("trailing_comma", "an extra comma", _trailing_comma),
    Noise("missing_comma", "a missing comma", _of_object(_missing_comma, least=2)),
    Noise("single_quotes", "in single quotes", _requote("'", "'", "'")),
    Noise("smart_quotes", "in typographic quotes", _requote("“", "”", "“”")),
    Noise("german_quotes", "in German quotes", _requote("„", "“", "„“”")),
    Noise("python", "as a Python literal", _python),
    Noise("unquoted_keys", "keys without quotes", _with_keys(r'"[A-Za-z_]\w*"', str)),
    Noise("inner_quotes", "unescaped quotes inside a string", _replaced('\\"', '"', r'\w \\"\w[^"]*\w\\" \w')),
    Noise("raw_newline", "a line break inside a string", _replaced("\\n", "\n", r"\\n")),
    Noise("comments", "with a comment", _comments),
    Noise(
        "missing_closer",
        "the last brace is missing, although the model ended the reply itself",
        _of_object(_missing_closer),
    ),
    Noise("key_value_lines", "as `key: value` lines", _of_object(_key_value_lines)),
    Noise("numbers_as_text", "numbers in quotes", _mapped(lambda v: str(v) if type(v) in (int, float) else v)),
    Noise("booleans_as_text", "booleans in quotes", _mapped(lambda v: str(v).lower() if isinstance(v, bool) else v)),
    Noise("key_case", "keys in camel case", _with_keys('".*_.*"', _camel_case)),
    Noise("cut", "cut by the token limit", _cut, whole=False, finish_reason="length"),
    Noise(
        "cut_in_prose",
        "cut before it begins",
        lambda _, rng: rng.choice(_OPENINGS)[:-8],
        whole=False,
        finish_reason="length",
    ),
    Noise("elided", "the rest replaced by ...", _of_object(_elide, least=2), whole=False),
    Noise("refusal", "a refusal in prose", lambda _, rng: rng.choice(_REFUSALS), whole=False),
    Noise("empty", "an empty reply", lambda _value, _rng: "", whole=False),
    Noise("field_left_out", "one field is missing", _of_object(_field_left_out, least=1), whole=False),
)

NOISES: Final[Mapping[str, Noise]] = {noise.name: noise for noise in _ALL}
"""Every class of noise by its name."""
