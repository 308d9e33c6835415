"""Noise: answers in the forms that real models use when they do not write plain JSON.

Every class of noise was observed in replies of real models. A class either keeps the whole answer in the text, so that
a reader can recover it, or loses a part of it, so that only a refusal or another call is honest.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from flujo_aros.errors import UsageError

Json: TypeAlias = Any
FinishReason: TypeAlias = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class NoisyReply:
    """One reply: the text, the class of its noise, why the model stopped, and whether the whole answer is in it."""

    text: str
    noise: str
    whole: bool = True
    finish_reason: FinishReason = "stop"


@dataclass(frozen=True, slots=True)
class Noise:
    """One class of noise. `write` returns the text for an answer, or None if it does not apply to that answer."""

    name: str
    what: str
    write: Callable[[Json, random.Random], str | None]
    whole: bool = True
    finish_reason: FinishReason = "stop"

    def reply(self, value: Json, rng: random.Random) -> NoisyReply | None:
        """A reply with this noise, or None if it does not apply."""
        text = self.write(value, rng)
        return None if text is None else NoisyReply(text, self.name, self.whole, self.finish_reason)

    def applies(self, value: Json) -> bool:
        """Whether this noise can occur in a reply with `value`: `inner_quotes` needs a string, for instance.

        >>> [name for name in ("cut", "numbers_as_text", "fence") if NOISES[name].applies({"a": "x"})]
        ['fence']
        """
        return self.reply(value, random.Random(0)) is not None  # noqa: S311 - repeatable, not secret


def noisy_replies(value: Json, *, seed: int, count: int, noises: Iterable[str] | None = None) -> Iterator[NoisyReply]:
    """Return `count` noisy replies that contain `value`, plain JSON; the same for the same seed.

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


# How the answer is written before noise is added


def _plain(value: Json, rng: random.Random) -> str:
    return json.dumps(value, ensure_ascii=False, indent=rng.choice([None, None, 2]))


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


def _around(before: tuple[str, ...], after: tuple[str, ...]) -> Callable[[Json, random.Random], str]:
    def write(value: Json, rng: random.Random) -> str:
        parts = [rng.choice(before)] if before else []
        parts.append(_plain(value, rng))
        parts += [rng.choice(after)] if after else []
        return rng.choice(["\n", "\n\n"]).join(parts)

    return write


def _fence(value: Json, rng: random.Random) -> str:
    return f"```json\n{_plain(value, rng)}\n```"


def _fence_bare(value: Json, rng: random.Random) -> str:
    return f"{rng.choice(_OPENINGS)}\n```\n{_plain(value, rng)}\n```\n{rng.choice(_CLOSINGS)}"


def _fence_one_line(value: Json, rng: random.Random) -> str:  # noqa: ARG001 (one shape for all)
    return f"```json {json.dumps(value, ensure_ascii=False)} ```"


def _fence_unclosed(value: Json, rng: random.Random) -> str:
    return f"```json\n{_plain(value, rng)}\n"


def _tag(value: Json, rng: random.Random) -> str:
    tag = rng.choice(["result", "answer", "json", "output"])
    return f"<{tag}>{_plain(value, rng)}</{tag}>"


def _think(value: Json, rng: random.Random) -> str:
    return f"<think>\n{rng.choice(_THOUGHTS)}\n</think>\n\n{_plain(value, rng)}"


def _bom(value: Json, rng: random.Random) -> str:
    return f"\ufeff{_plain(value, rng)}"


def _said_twice(value: Json, rng: random.Random) -> str:
    once = _plain(value, rng)
    return f"{once}\n\nTo be sure, once more:\n\n{once}"


# Envelopes


def _envelope(key: str) -> Callable[[Json, random.Random], str]:
    def write(value: Json, rng: random.Random) -> str:
        return _plain({key: value}, rng)

    return write


def _schema_frame(value: Json, rng: random.Random) -> str | None:
    if not isinstance(value, dict):
        return None
    members = cast("dict[str, Json]", value)
    return _plain({"properties": members, "required": list(members), "title": "Answer"}, rng)


def _tool_call(value: Json, rng: random.Random) -> str:
    return _plain({"name": "final_result", "arguments": value}, rng)


def _doubled_braces(value: Json, rng: random.Random) -> str:
    written = _plain({"name": "final_result", "arguments": value}, rng)
    return f"{{{written}}}"


def _list_of_one(value: Json, rng: random.Random) -> str | None:
    return _plain([value], rng) if isinstance(value, dict) else None


def _double_encoded(value: Json, rng: random.Random) -> str:  # noqa: ARG001 (one shape for all)
    return json.dumps(json.dumps(value, ensure_ascii=False), ensure_ascii=False)


def _escaped_once(value: Json, rng: random.Random) -> str | None:  # noqa: ARG001 (one shape for all)
    written = json.dumps(value, ensure_ascii=False)
    return written.replace('"', '\\"') if "\\" not in written and '"' in written else None


# Syntax. Each works on the tokens of valid JSON, so that it never touches the content of a string.

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+|\s+')


def _tokens(value: Json, rng: random.Random) -> list[str]:
    return _TOKEN.findall(_plain(value, rng))


def _is_key(tokens: list[str], at: int) -> bool:
    following = next((token for token in tokens[at + 1 :] if not token.isspace()), "")
    return tokens[at].startswith('"') and following == ":"


def _trailing_comma(value: Json, rng: random.Random) -> str | None:
    tokens = _tokens(value, rng)
    ends = [
        at for at, token in enumerate(tokens) if token in ("}", "]") and _last_solid(tokens, at) not in ("{", "[", "")
    ]
    if not ends:
        return None
    at = rng.choice(ends)
    return "".join([*tokens[:at], ",", *tokens[at:]])


def _last_solid(tokens: list[str], before: int) -> str:
    return next((token for token in reversed(tokens[:before]) if not token.isspace()), "")


def _missing_comma(value: Json, rng: random.Random) -> str | None:  # noqa: ARG001 (one shape for all)
    if not isinstance(value, dict) or len(cast("dict[str, Json]", value)) < 2:
        return None
    lines = json.dumps(value, ensure_ascii=False, indent=2).split("\n")
    at = next((n for n, line in enumerate(lines) if line.startswith('  "') and line.endswith('",')), None)
    return None if at is None else "\n".join([*lines[:at], lines[at][:-1], *lines[at + 1 :]])


def _requoted(opening: str, closing: str, clash: str) -> Callable[[Json, random.Random], str | None]:
    def write(value: Json, rng: random.Random) -> str | None:
        tokens = _tokens(value, rng)
        if any(token.startswith('"') and ("\\" in token or any(c in token for c in clash)) for token in tokens):
            return None
        return "".join(f"{opening}{t[1:-1]}{closing}" if t.startswith('"') else t for t in tokens)

    return write


def _python(value: Json, rng: random.Random) -> str | None:  # noqa: ARG001 (one shape for all)
    written = repr(value)
    return written if any(word in written for word in ("True", "False", "None")) and "\\" not in written else None


def _unquoted_keys(value: Json, rng: random.Random) -> str | None:
    tokens = _tokens(value, rng)
    keys = [at for at in range(len(tokens)) if _is_key(tokens, at) and re.fullmatch(r'"[A-Za-z_]\w*"', tokens[at])]
    for at in keys:
        tokens[at] = tokens[at][1:-1]
    return "".join(tokens) if keys else None


def _inner_quotes(value: Json, rng: random.Random) -> str | None:
    written = _plain(value, rng)
    return written.replace('\\"', '"') if re.search(r'\w \\"\w[^"]*\w\\" \w', written) else None


def _raw_newline(value: Json, rng: random.Random) -> str | None:
    written = _plain(value, rng)
    return written.replace("\\n", "\n") if "\\n" in written else None


def _comments(value: Json, rng: random.Random) -> str | None:
    lines = json.dumps(value, ensure_ascii=False, indent=2).split("\n")
    if len(lines) < 3:
        return None
    at = rng.randrange(1, len(lines) - 1)
    lines[at] += rng.choice(["  // as stated in the text", "  /* not sure */", "  # from the mail"])
    return "\n".join(lines)


def _missing_closer(value: Json, rng: random.Random) -> str | None:
    written = _plain(value, rng)
    return written[:-1].rstrip() if written.endswith("}") else None


def _literal_lines(value: Json, rng: random.Random) -> str | None:  # noqa: ARG001 (one shape for all)
    if not isinstance(value, dict):
        return None
    members = cast("dict[str, Json]", value)
    if any(isinstance(each, (dict, list)) or "\n" in str(each) or not str(each).strip() for each in members.values()):
        return None
    return "\n".join(f"{key}: {each if isinstance(each, str) else json.dumps(each)}" for key, each in members.items())


# Shape


def _mapped(change: Callable[[Json], Json]) -> Callable[[Json, random.Random], str | None]:
    def walk(value: Json) -> Json:
        if isinstance(value, dict):
            return {key: walk(each) for key, each in cast("dict[str, Json]", value).items()}
        if isinstance(value, list):
            return [walk(each) for each in cast("list[object]", value)]
        return change(value)

    def write(value: Json, rng: random.Random) -> str | None:
        changed = walk(value)
        return None if changed == value else _plain(changed, rng)

    return write


def _number_as_text(value: Json) -> Json:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _boolean_as_text(value: Json) -> Json:
    return str(value).lower() if isinstance(value, bool) else value


def _key_case(value: Json, rng: random.Random) -> str | None:
    tokens = _tokens(value, rng)
    keys = [at for at in range(len(tokens)) if _is_key(tokens, at) and "_" in tokens[at]]
    for at in keys:
        words = tokens[at][1:-1].split("_")
        tokens[at] = f'"{words[0]}{"".join(word.capitalize() for word in words[1:])}"'
    return "".join(tokens) if keys else None


# What is lost


def _cut(value: Json, rng: random.Random) -> str | None:
    written = json.dumps(value, ensure_ascii=False)
    return written[: rng.randrange(len(written) // 3, max(len(written) - 4, 2))] if len(written) > 12 else None


def _cut_in_prose(value: Json, rng: random.Random) -> str | None:  # noqa: ARG001 (one shape for all)
    return f"{rng.choice(_OPENINGS)[:-8]}"


def _elided(value: Json, rng: random.Random) -> str | None:
    if not isinstance(value, dict) or len(cast("dict[str, Json]", value)) < 2:
        return None
    members = cast("dict[str, Json]", value)
    first = next(iter(members))
    return f"{_plain({first: members[first]}, rng)[:-1].rstrip()}, ...}}"


def _refusal(value: Json, rng: random.Random) -> str:  # noqa: ARG001 (one shape for all)
    return rng.choice(_REFUSALS)


def _field_left_out(value: Json, rng: random.Random) -> str | None:
    if not isinstance(value, dict) or not value:
        return None
    members = cast("dict[str, Json]", value)
    gone = rng.choice(list(members))
    return _plain({key: each for key, each in members.items() if key != gone}, rng)


_ALL: Final = (
    Noise("plain", "plain JSON, for comparison", _plain),
    Noise("fence", "in a ```json fence", _fence),
    Noise("fence_bare", "in a fence without a language, with prose around it", _fence_bare),
    Noise("fence_one_line", "fence and JSON on one line", _fence_one_line),
    Noise("fence_unclosed", "the fence is never closed", _fence_unclosed),
    Noise("prose_before", "a sentence before it", _around(_OPENINGS, ())),
    Noise("prose_after", "a sentence after it", _around((), _CLOSINGS)),
    Noise("prose_around", "a sentence before and after it", _around(_OPENINGS, _CLOSINGS)),
    Noise("tag", "between tags that were not requested", _tag),
    Noise("think", "after a reasoning block with braces in it", _think),
    Noise("bom", "after a byte order mark", _bom),
    Noise("said_twice", "the same answer twice", _said_twice),
    Noise("result_envelope", 'inside {"result": ...}', _envelope("result")),
    Noise("schema_frame", 'inside {"properties": ...}, as in the schema', _schema_frame),
    Noise("tool_call", "as a tool call in the text", _tool_call),
    Noise("doubled_braces", "as a tool call with doubled braces", _doubled_braces),
    Noise("list_of_one", "as the one element of a list", _list_of_one),
    Noise("double_encoded", "as a JSON string that holds JSON", _double_encoded),
    Noise("escaped_once", "with every quote escaped", _escaped_once),
    Noise("trailing_comma", "an extra comma", _trailing_comma),
    Noise("missing_comma", "a missing comma", _missing_comma),
    Noise("single_quotes", "in single quotes", _requoted("'", "'", "'")),
    Noise("smart_quotes", "in typographic quotes", _requoted("“", "”", "“”")),
    Noise("german_quotes", "in German quotes", _requoted("„", "“", "„“”")),
    Noise("python", "as a Python literal", _python),
    Noise("unquoted_keys", "keys without quotes", _unquoted_keys),
    Noise("inner_quotes", "unescaped quotes inside a string", _inner_quotes),
    Noise("raw_newline", "a line break inside a string", _raw_newline),
    Noise("comments", "with a comment", _comments),
    Noise("missing_closer", "the last brace is missing, the model stopped by itself", _missing_closer),
    Noise("key_value_lines", "as `key: value` lines", _literal_lines),
    Noise("numbers_as_text", "numbers in quotes", _mapped(_number_as_text)),
    Noise("booleans_as_text", "booleans in quotes", _mapped(_boolean_as_text)),
    Noise("key_case", "keys in camel case", _key_case),
    Noise("cut", "cut by the token limit", _cut, whole=False, finish_reason="length"),
    Noise("cut_in_prose", "cut before it begins", _cut_in_prose, whole=False, finish_reason="length"),
    Noise("elided", "the rest replaced by ...", _elided, whole=False),
    Noise("refusal", "a refusal in prose", _refusal, whole=False),
    Noise("empty", "nothing at all", lambda _value, _rng: "", whole=False),
    Noise("field_left_out", "one field is missing", _field_left_out, whole=False),
)

NOISES: Final[Mapping[str, Noise]] = {noise.name: noise for noise in _ALL}
"""Every class of noise by its name."""
