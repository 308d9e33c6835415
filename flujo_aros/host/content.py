"""What a prompt may hold beside text: images, audio, video, documents and their URLs, as pydantic-ai knows them."""

from __future__ import annotations

import hashlib
import mimetypes
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

if TYPE_CHECKING:
    from pydantic_ai.messages import UserContent

Prompt: TypeAlias = "str | Sequence[UserContent]"
"""What a model is asked: text, or a list of texts and content."""


def is_content(value: object) -> bool:
    """Whether a value is content that a model takes as it is, such as `BinaryContent` or `ImageUrl`."""
    host = sys.modules.get("pydantic_ai.messages")  # without it nobody can have made such a value, and it loads slowly
    return host is not None and bool(host.is_multi_modal_content(value))


def has_content(value: object) -> bool:
    """Whether a value is such content, or a list or mapping with some in it, at any depth."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, (str, int, float)):
            continue
        if is_content(here):
            return True
        if isinstance(here, Mapping):
            waiting.extend(cast("Mapping[object, object]", here).values())
        elif isinstance(here, (list, tuple)):
            waiting.extend(cast("Sequence[object]", here))
    return False


_TYPES: Final = ("image/", "audio/", "video/", "application/pdf", "application/msword", "application/vnd.")


def content_file(file: Path) -> object | None:
    """An image, audio, video or document as content for a model; None for any other file. Raises `OSError`.

    Which it is, its name says.

    >>> content_file(Path("ticket.txt"))
    """
    media_type = mimetypes.guess_type(file.name)[0] or ""
    if not media_type.startswith(_TYPES):
        return None
    from pydantic_ai.messages import BinaryContent  # here: a text needs no model host

    return BinaryContent.narrow_type(BinaryContent(file.read_bytes(), media_type=media_type))


def mark_of(content: object) -> str:
    """How records describe content that is not text: its type, size and hash, or its address, and never its bytes.

    >>> from pydantic_ai import BinaryContent
    >>> mark_of(BinaryContent(b"GIF89a", media_type="image/gif"))
    '[image/gif, 6 bytes, sha256 610f5ae4d76e]'
    """
    data, url = getattr(content, "data", None), str(getattr(content, "url", getattr(content, "file_id", "")))
    if url.startswith("data:"):
        data = url.encode()
    if isinstance(data, bytes):
        kind = str(getattr(content, "media_type", "data"))
        return f"[{kind}, {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]}]"
    return f"[{type(content).__name__} {url.partition('?')[0]}]"  # the query holds the keys of signed addresses
