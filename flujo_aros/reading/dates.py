"""A date, time or duration as people write it, where it has only one meaning.

Input that pydantic would accept beyond the written forms is rejected here: it takes digits alone for seconds since
1970, and the end of `10:30-11:00` for a time zone eleven hours west.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from typing import Final, NamedTuple

from flujo_aros.contract import is_misread
from flujo_aros.reading.lookahead import expression


class Time(NamedTuple):
    """The ISO form, and the code of the repair; the code is empty if the text was already in that form."""

    iso: str
    code: str


_MONTH_LINES: Final = """
january jan januar jänner janvier janv enero ene gennaio gen janeiro januari januar январь января
february feb februar févr février fév febrero febbraio fevereiro fev februari февраль февраля
march mar märz mrz mär mars marzo março maart mrt март марта
april apr avril avr abril abr aprile апрель апреля
may mai mayo maggio mag maio mei май мая
june jun juni juin junio giugno giu junho июнь июня
july jul juli juil juillet julio luglio lug julho июль июля
august aug août aout agosto ago augustus август августа
september sep sept septembre septiembre settembre set setembro сентябрь сентября
october oct oktober okt octobre octubre ottobre ott outubro out октябрь октября
november nov novembre noviembre novembro ноябрь ноября
december dec dezember dez décembre déc diciembre dic dicembre dezembro декабрь декабря
"""
"""English, German, French, Spanish, Italian, Portuguese, Dutch, Russian."""
_MONTHS: Final = {
    word: number for number, line in enumerate(_MONTH_LINES.strip().splitlines(), 1) for word in line.split()
}
_DAY_LINES: Final = """
monday mon montag lundi lunes lunedì maandag понедельник
tuesday tue tues dienstag mardi martes martedì dinsdag вторник
wednesday wed mittwoch mercredi miércoles mercoledì woensdag среда
thursday thu thur thurs donnerstag jeudi jueves giovedì donderdag четверг
friday fri freitag vendredi viernes venerdì vrijdag пятница
saturday sat samstag sonnabend samedi sábado sabato zaterdag суббота
sunday sun sonntag dimanche domingo domenica zondag воскресенье
"""
_WEEKDAYS: Final = {
    word: number for number, line in enumerate(_DAY_LINES.strip().splitlines()) for word in line.split()
}
_LEAST_YEAR: Final = 1000
_FACE: Final = 12
"""Hours on a 12-hour clock."""

_DAY_MONTH: Final = expression(
    r"(\d{1,2})(?:\.|st|nd|rd|th|er|º|ª|°)?[ -]*(?:of |de |di )?([^\W\d]+)\.?,?[ -]*(?:of |de |del |di )?(\d{4})\Z"
)
_FORMS: Final = (
    (_DAY_MONTH, 3, 2, 1),  # 3rd of May 2024, 3. Mai 2024, 3 de mayo de 2024
    (expression(r"([^\W\d]+)\.? *(\d{1,2})(?:st|nd|rd|th)?(?:, *| +)(\d{4})\Z"), 3, 1, 2),  # May 3rd, 2024
    (expression(r"(\d{4}) *,? *([^\W\d]+)\.? +(\d{1,2})(?:st|nd|rd|th)?\Z"), 1, 2, 3),  # 2024 May 3
    (expression(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})\Z"), 1, 3, 4),  # 2024-5-3
    (expression(r"(\d{4}) ?年 ?(\d{1,2}) ?月 ?(\d{1,2}) ?日\Z"), 1, 2, 3),  # 2024年5月3日
)
"""How a day is written, and the groups of year, month and day."""
_YEAR_LAST: Final = expression(r"(\d{1,2})([-/.]) ?(\d{1,2})\2 ?(\d{4})\Z")
_COMPACT: Final = expression(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)?(Z|[+-]\d\d:?\d\d)?\Z")
_CLOCK: Final = expression(
    r"(?P<h>\d{1,2})(?:[:h.](?P<m>\d\d)(?:[:.](?P<s>\d\d)(?P<f>\.\d{1,6})?)?|h)?"
    r" *(?P<half>[ap]\.?m\.?)?(?: *(?:Uhr|o'clock))?"
    r"(?: *(?P<zone>Z|UTC|GMT|(?:(?:UTC|GMT) *)?[+-]\d\d:?\d\d)(?:\[[\w/+-]+\])?)?\Z",
    re.I,
)
_TWO_PARTS: Final = expression(
    r"(.*?\d{4}(?:-\d\d-\d\d)?|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|.*\d{1,2}日)"
    r"(?:T| *, *| +(?:at |um |à |a las )?| *(?=\d))(\d{1,2}(?:[:h].*| *[ap]\.?m.*|h))\Z",
    re.I,
)
_LENGTH: Final = expression(
    r"(?:(?P<d>\d+) *(?:d|days?) *,? *(?:and )?)?(?:(?P<h>\d+(?:\.\d+)?) *(?:h|hrs?|hours?) *,? *(?:and )?)?"
    r"(?:(?P<m>\d+(?:\.\d+)?) *(?:min|mins|minutes?|m(?!s|o)) *,? *(?:and )?)?"
    r"(?:(?P<s>\d+(?:\.\d+)?) *(?:s|secs?|seconds?))?\Z",
    re.I | re.A,
)
_ODD: Final = {
    **dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2212), "-"),
    **dict.fromkeys((0xA0, 0x202F, 0x2009, 0x3000), " "),
}
_MAX: Final = 80


def read_time(text: str, form: str) -> Time | None:
    """The ISO form of a written date, time or duration (`form` as in JSON Schema), or None if it is ambiguous."""
    if is_misread(text, form):
        return None
    if len(text) > _MAX:
        return Time(text, "")
    plain = text.strip()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", plain.translate(_ODD)).translate(_ODD).strip()
        plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in plain)
    code = "written-date" if form.startswith("date") else "written-time"
    found = _READERS[form](plain)
    if found is not None and found != text:
        return Time(found, code)
    return Time(plain, code) if plain != text and not is_misread(plain, form) else Time(text, "")


def _date(text: str) -> str | None:
    """The ISO form of a written date, or None if it has none or more than one."""
    lowered = text.casefold()
    head, _, rest = lowered.partition(" ")
    weekday = _WEEKDAYS.get(head.rstrip(".,"))
    if weekday is not None and rest:
        lowered = rest.removeprefix("the ").removeprefix("le ").removeprefix("den ").strip()
    found = _day_of(lowered)
    if found is None or (weekday is not None and found.weekday() != weekday):
        return None
    return found.isoformat()


def _day_of(text: str) -> date | None:
    for form, year, month, day in _FORMS:
        if match := form.match(text):
            named = match[month]
            return _made(match[year], int(named) if named.isdecimal() else _MONTHS.get(named), match[day])
    if match := _YEAR_LAST.match(text):
        first, second = int(match[1]), int(match[3])
        if match[2] == ".":  # dates with dots never put the month first
            return _made(match[4], second, first)
        days = {_made(match[4], second, first), _made(match[4], first, second)} - {None}
        return days.pop() if len(days) == 1 else None
    return None


def _made(year: str | int, month: int | None, day: str | int) -> date | None:
    if month is None or int(year) < _LEAST_YEAR:
        return None
    try:
        return date(int(year), month, int(day))
    except ValueError:
        return None


def _clock(text: str) -> str | None:
    """The ISO form of a time of day, with its time zone if it has one."""
    match = _CLOCK.match(text)
    if match is None or not (match["m"] or match["half"] or text.rstrip().endswith(("h", "Uhr"))):
        return None
    hour, zone = int(match["h"]), (match["zone"] or "").upper().replace(" ", "")
    if match["half"]:
        if not 1 <= hour <= _FACE:
            return None
        hour = hour % _FACE + (_FACE if match["half"][0] in "pP" else 0)
    if hour >= 2 * _FACE:
        return None
    zone = zone.removeprefix("UTC").removeprefix("GMT") or ("Z" if zone else "")
    return f"{hour:02}:{match['m'] or '00'}:{match['s'] or '00'}{match['f'] or ''}{zone}"


def _moment(text: str) -> str | None:
    if match := _COMPACT.match(text):
        day = _made(match[1], int(match[2]), match[3])
        time = f"{match[4]}:{match[5]}:{match[6] or '00'}{match[7] or ''}"
        return None if day is None else f"{day.isoformat()}T{time}"
    if _ISO.match(text):
        return None
    parts = _TWO_PARTS.match(text)
    if parts is None:
        return _date(text)
    day_text, clock = parts[1].rstrip(" ,"), _clock(parts[2].strip())
    iso = day_text if _ISO_DATE.match(day_text) else _date(day_text)
    return f"{iso}T{clock}" if iso and clock else None


_ISO_DATE: Final = expression(r"\d{4}-\d\d-\d\d\Z")
_ISO: Final = expression(r"\d{4}-\d\d-\d\d(?:[Tt _]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?)?\Z")
_MIDNIGHT: Final = expression(r"[Tt _]00:00(?::00(?:[.,]0+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?\Z")
_ISO_CLOCK: Final = expression(r"\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?\Z")


def _day(text: str) -> str | None:
    if _ISO.match(text):
        return text[:10] if _MIDNIGHT.match(text, 10) else None
    return _date(text)


def _time_of_day(text: str) -> str | None:
    return None if _ISO_CLOCK.match(text) else _clock(text)


def _length(text: str) -> str | None:
    match = _LENGTH.match(text)
    if match is None or not text or not any(match.groups()):
        return None
    if not (match["h"] or match["m"] or match["s"]):
        return None  # days alone are unambiguous
    seconds = sum(float(match[name]) * each for name, each in _SECONDS if match[name])
    whole = int(seconds)
    return f"PT{whole}S" if whole == seconds else f"PT{seconds}S"


_SECONDS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


_READERS: Final = {"date": _day, "date-time": _moment, "time": _time_of_day, "duration": _length}
