"""Non-text content in prompts: images, audio, video, documents and their URLs, as in pydantic-ai."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, TypeAdapter

from flujo_aros.errors import UsageError, file_errors

if TYPE_CHECKING:
    from pydantic_ai.messages import UserContent

Prompt: TypeAlias = "str | Sequence[UserContent]"
"""A prompt: text, or a list of text and content."""


def is_content(value: object) -> bool:
    """Return whether a value is content that a model accepts directly, such as `BinaryContent` or `ImageUrl`."""
    host = sys.modules.get("pydantic_ai.messages")  # no such value exists before this module is imported
    return host is not None and bool(host.is_multi_modal_content(value))


def has_content(value: object) -> bool:
    """Return whether a value is such content, or contains some, at any depth."""
    return any(is_content(part) for part in _parts(value))


def why_no_text(value: object) -> str | None:
    """Return the reason why a value, or something in it, must not be written as text for a model, or None.

    >>> why_no_text({"n": 1}), why_no_text([Path("cat.png")])
    (None, 'cat.png is only the name of a file; pass its content: BinaryContent.from_path("cat.png")')
    """
    for part in _parts(value):
        if isinstance(part, (bytes, bytearray, memoryview)):
            return 'bytes are not text; decode them, or pass BinaryContent(data, media_type="image/png")'
        if isinstance(part, io.IOBase):
            return "an open file is not text; read it, or pass BinaryContent.from_path(file)"
        if isinstance(part, Path) and _media_type(part.name) is not None:
            return f'{part} is only the name of a file; pass its content: BinaryContent.from_path("{part}")'
        if is_content(part):
            inside = "" if value is part else f" in a value of type {type(value).__name__}"
            cure = (
                'for an agent make it an element of the input: ["What is in this?", "{{ input }}"]; leave it out of '
                "any other template"
            )
            return f"content such as an image{inside} cannot be written as text; {cure}"
    return None


def _parts(value: object) -> Iterator[object]:
    """Yield a value and everything in its lists, mappings, models and dataclasses, except strings and numbers."""
    waiting, seen = [value], {id(value): value}
    while waiting:
        here = waiting.pop()
        if isinstance(here, (str, int, float)):
            continue
        yield here
        if isinstance(here, (list, tuple)):
            inner: Iterable[object] = cast("Sequence[object]", here)
        elif (members := _members(here)) is not None:
            inner = members.values()
        else:
            continue
        for each in inner:
            if id(each) not in seen:  # an object may contain itself
                seen[id(each)] = each
                waiting.append(each)


def _members(value: object) -> Mapping[object, object] | None:
    """Return a mapping, or the fields of a pydantic model or a dataclass by their names in JSON; None for content and
    any other value.
    """
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value)
    if isinstance(value, BaseModel):
        known = type(value).model_fields
        return {(known[name].serialization_alias if name in known else None) or name: each for name, each in value}
    if is_dataclass(value) and not isinstance(value, type) and not is_content(value):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    return None


_SAVED: Final = "$content"
"""The only key of a mapping that represents content in saved values; its value is pydantic-ai's JSON."""
_MAPPING: Final = "mapping"
"""A kind that means someone else's mapping with that key."""


def with_saved_content(value: object) -> object:
    """Return a value with its content as plain JSON, from which `with_live_content` restores the content.

    >>> from pydantic_ai import BinaryContent
    >>> with_saved_content(["What is this?", BinaryContent(b"GIF89a", media_type="image/gif")])[1]["$content"]["data"]
    'R0lGODlh'
    """
    return _to_plain(value) if any(is_content(part) or _is_marked(part) for part in _parts(value)) else value


def with_live_content(value: object) -> object:
    """Restore the value from the plain JSON that `with_saved_content` returned."""
    return _from_plain(value) if any(_is_marked(part) for part in _parts(value)) else value


def _is_marked(part: object) -> bool:
    return isinstance(part, Mapping) and _SAVED in part


def _to_plain(value: object) -> object:
    if is_content(value):
        return {_SAVED: _content_type().dump_python(value, mode="json")}
    if isinstance(value, (list, tuple)):
        return [with_saved_content(each) for each in cast("Sequence[object]", value)]
    members = {key: with_saved_content(each) for key, each in (_members(value) or {}).items()}
    return {_SAVED: {"kind": _MAPPING, "members": members}} if _SAVED in members else members


def _from_plain(value: object) -> object:
    if isinstance(value, list):
        return [_from_plain(each) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[object, object]", value)
    if _SAVED not in members:
        return {key: _from_plain(each) for key, each in members.items()}
    described = cast("dict[str, object]", members[_SAVED])
    if described["kind"] == _MAPPING:
        inner = cast("dict[object, object]", described["members"])
        return {key: _from_plain(each) for key, each in inner.items()}
    return _content_type().validate_python(described)


def _content_type() -> TypeAdapter[object]:
    from pydantic_ai.messages import MultiModalContent  # imported here: only a run with content needs it

    return TypeAdapter(MultiModalContent)


_TYPES: Final = ("image/", "audio/", "video/", "application/pdf", "application/msword", "application/vnd.")
_FILE, _URL = "$file", "$url"
"""The only key of a JSON object that names a file, or the URL of content."""


def _media_type(name: str) -> str | None:
    """Return the media type of a file with this name, if models accept such files as content.

    Uses pydantic-ai's names, not the system's, because providers reject unknown ones such as `audio/x-wav`.
    """
    from pydantic_ai.messages import DocumentUrl  # imported here, because text needs no model host

    try:
        media_type = DocumentUrl(f"https://localhost/{quote(name)}").media_type
    except ValueError:
        return None
    return media_type if media_type.startswith(_TYPES) and media_type != "image/svg+xml" else None  # SVG, which is text


def content_file(file: Path) -> object | None:
    """Return an image, audio, video or document as content for a model, or None for any other file, judged by its name.
    Raises `OSError`.

    >>> content_file(Path("ticket.txt"))
    """
    media_type = _media_type(file.name)
    if media_type is None:
        return None
    from pydantic_ai.messages import BinaryContent  # imported here, because text needs no model host

    return BinaryContent.narrow_type(BinaryContent(file.read_bytes(), media_type=media_type))


def content_at(url: str) -> object | None:
    """Return the image, audio, video or document at a URL, which the provider fetches, or None for any other URL,
    judged by the end of its path.

    >>> type(content_at("https://example.com/a.png?size=2")).__name__
    'ImageUrl'
    """
    from pydantic_ai.messages import AudioUrl, DocumentUrl, ImageUrl, VideoUrl  # imported here, as in `content_file`

    media_type = _media_type(urlsplit(url).path)
    if media_type is None:
        return None
    known: dict[str, type[ImageUrl | AudioUrl | VideoUrl]] = {"image": ImageUrl, "audio": AudioUrl, "video": VideoUrl}
    return known.get(media_type.partition("/")[0], DocumentUrl)(url, media_type=media_type)


def with_named_content(value: object, folder: Path) -> object:
    """Return a JSON value with its references resolved: content for `{"$file": "photo.png"}` and `{"$url":
    "https://…/a.png"}`.

    Any other kind of file is replaced by its text. Files are looked up only in `folder`, because rows may come from
    anyone and a model must not see other files on this machine. Raises `UsageError`.

    >>> with_named_content({"question": "Who?", "photo": {"$url": "https://example.com/a.png"}}, Path("."))["question"]
    'Who?'
    """
    if isinstance(value, list):
        return [with_named_content(each, folder) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[object, object]", value)
    if len(members) == 1:
        key, name = next(iter(members.items()))
        if key == _FILE and isinstance(name, str):
            return _content_of_file(name, folder)
        if key == _URL and isinstance(name, str):
            return _content_at_url(name)
    return {key: with_named_content(each, folder) for key, each in members.items()}


def _content_of_file(name: str, folder: Path) -> object:
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise UsageError(
            f"the file {name!r} is outside {str(folder)!r}: an input may only name files in the folder of its own file"
        )
    try:
        with file_errors(f"cannot read the file {name!r} in {str(folder)!r}"):
            content = content_file(file)
            return file.read_text("utf-8-sig") if content is None else content
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the file {name!r} is not UTF-8 text, and its suffix is not that of an image, audio, video or document"
        ) from error


def _content_at_url(url: str) -> object:
    found = content_at(url) if url.startswith(("https://", "http://")) else None
    if found is None:
        raise UsageError(
            f"{url!r} is not the URL of an image, audio, video or document: it must begin with https:// and its path "
            "must end in a known suffix, such as .png or .pdf"
        )
    return found


def with_described_content(value: object) -> object:
    """Return a value with `describe_content` in place of its content, as records show it.

    >>> from pydantic_ai import ImageUrl
    >>> with_described_content({"photo": ImageUrl("https://example.com/a.png"), "n": 1})
    {'photo': '[ImageUrl https://example.com/a.png]', 'n': 1}
    """
    if not has_content(value):
        return value
    if is_content(value):
        return describe_content(value)
    if isinstance(value, (list, tuple)):
        return [with_described_content(each) for each in cast("Sequence[object]", value)]
    return {key: with_described_content(each) for key, each in (_members(value) or {}).items()}


def describe_content(content: object) -> str:
    """Return the description of non-text content in records: its type, size and hash, or its URL, but never its bytes.

    >>> from pydantic_ai import BinaryContent
    >>> describe_content(BinaryContent(b"GIF89a", media_type="image/gif"))
    '[image/gif, 6 bytes, sha256 610f5ae4d76e]'
    """
    data, url = getattr(content, "data", None), str(getattr(content, "url", getattr(content, "file_id", "")))
    if url.startswith("data:"):
        data = url.encode()
    if isinstance(data, bytes):
        kind = str(getattr(content, "media_type", "data"))
        return f"[{kind}, {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]}]"
    return f"[{type(content).__name__} {url.partition('?')[0]}]"  # the query contains the signatures of signed URLs
