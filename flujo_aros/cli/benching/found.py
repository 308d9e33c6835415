"""Whether what a value says stands in the reply at all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, Final

from flujo_aros.contract.schema import is_dict, is_list

_JOINTS: Final = re.compile(r"[\W_]+")
_UNICODE_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")


def bare(value: object) -> str:
    """A value as its letters and digits alone, without case, accents, spacing and punctuation."""
    return _JOINTS.sub("", unicodedata.normalize("NFKD", str(value)).casefold())


def leaves(value: Any) -> Iterator[str | int | float]:
    """The texts and numbers in a JSON value; true, false and null say too little to be looked for."""
    if is_dict(value):
        for inner in value.values():
            yield from leaves(inner)
    elif is_list(value):
        for inner in value:
            yield from leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield value


def holds(text: str, wanted: Iterable[str | int | float]) -> bool:
    """Whether all of these stand in the text, escaped or not."""
    decoded = _UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    written = "\n".join(bare(part.replace("\\n", " ").replace("\\", "")) for part in (decoded, text))
    return all(_stands(leaf, written) for leaf in wanted)


def _stands(leaf: str | float, written: str) -> bool:
    if bare(leaf) in written:
        return True
    return isinstance(leaf, float) and leaf.is_integer() and bare(int(leaf)) in written
