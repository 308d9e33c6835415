"""Score readers on captured model replies: values that are accepted, right, or not found in the reply."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pydantic import Field

from flujo_aros.cli.read import BAD, RIGHT, TITLES, Case, Corpus, Got, case_of, load_corpus, rows_of
from flujo_aros.json_data import is_dict, is_list, leaves

ACCEPTED, CUT_ACCEPTED, INVENTED = "accepted", "cut_accepted", "invented"

TITLES.update(
    {
        ACCEPTED: "accepted",
        CUT_ACCEPTED: "cut replies accepted",
        INVENTED: "contains what the reply does not",
        "with_gold": "with a known answer",
        "cut": "cut",
    }
)
BAD.update({CUT_ACCEPTED, INVENTED})

_NOT_ALPHANUMERIC: Final = re.compile(r"[\W_]+")
_UNICODE_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")


class CapturedCase(Case):
    """A captured model reply, with the right answer if it is known."""

    text: str = Field(alias="raw")
    gold: Any = None
    model: str = ""

    @property
    def category(self) -> str:
        """The group of the case; by default its model and finish reason."""
        return self.group or ", ".join(part for part in (self.model, self.finish_reason) if part)

    def verdicts(self, got: Got | None) -> Sequence[str]:
        """Return the verdicts on a value; none if the reply was rejected."""
        return () if got is None else tuple(self._of(got.value))

    def _of(self, value: Any) -> Iterator[str]:
        yield ACCEPTED
        if self.gold and agrees(value, self.gold):
            yield RIGHT
        if self.truncated:
            yield CUT_ACCEPTED
        if not contains(self.text, value):
            yield INVENTED


def load(name: str) -> Corpus:
    """Load the cases of a file: rows of `aros bench`, or captured replies, `{id, raw, schema, gold, finish_reason}`."""
    rows = rows_of(name)
    if "raw" not in rows[0][1]:
        return load_corpus(name)
    cases = tuple(case_of(CapturedCase, name, number, row) for number, row in rows)
    totals = {
        "n": len(cases),
        "with_gold": sum(bool(case.gold) for case in cases),
        "cut": sum(case.truncated is True for case in cases),
    }
    return Corpus(name, "captured", cases, totals, (ACCEPTED, RIGHT, CUT_ACCEPTED, INVENTED))


def agrees(value: Any, gold: Any) -> bool:
    """Return whether a value equals the known answer, ignoring extra keys and the case and punctuation of strings."""
    if is_dict(gold):
        return is_dict(value) and all(agrees(value.get(key), inner) for key, inner in gold.items())
    if is_list(gold):
        return is_list(value) and len(value) == len(gold) and all(map(agrees, value, gold))
    if isinstance(gold, (int, float)) and isinstance(value, (int, float)):
        return math.isclose(value, gold, abs_tol=1e-9, rel_tol=0)
    return _normalized(value) == _normalized(gold)


def _normalized(value: object) -> str:
    """Return the letters and digits of a value, without case, accents, spacing and punctuation."""
    return _NOT_ALPHANUMERIC.sub("", unicodedata.normalize("NFKD", str(value)).casefold())


def contains(text: str, value: Any) -> bool:
    """Return whether the strings and numbers of a value occur in the text, escaped or not.

    true, false and null are too common to search for.
    """
    decoded = _UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    written = "\n".join(_normalized(part.replace("\\n", " ").replace("\\", "")) for part in (decoded, text))
    scalars = (leaf for _, leaf in leaves(value) if isinstance(leaf, (str, int, float)) and not isinstance(leaf, bool))
    return all(_occurs(leaf, written) for leaf in scalars)


def _occurs(leaf: str | float, written: str) -> bool:
    if _normalized(leaf) in written:
        return True
    return isinstance(leaf, float) and leaf.is_integer() and _normalized(int(leaf)) in written
