"""The loops for plain clients run exactly as documented, over scripted transports."""

import json
import re
from pathlib import Path

import httpx2
import pytest
from pydantic import BaseModel

from flujo_aros import OutputError

PAGE = Path(__file__).parents[2] / "docs" / "pydantic-ai.md"


class Order(BaseModel):
    item: str
    qty: int


def recipe(word):
    """Return the code block of the page that contains this word."""
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    (found,) = (block for block in blocks if word in block and "feedback()" in block)
    return compile(found, str(PAGE), "exec", dont_inherit=True)


def transport(library, replies, seen, shape):
    def answer(request):
        seen.append(json.loads(request.content))
        return library.Response(200, json=shape(replies.pop(0)))

    return library.MockTransport(answer)


def chat(reply):
    text, finish = reply
    message = {"role": "assistant", "content": text}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": message, "logprobs": None}],
    }


def ollama(reply):
    text, finish = reply
    return {"model": "m", "message": {"role": "assistant", "content": text}, "done": True, "done_reason": finish}


def by_openai(replies, seen):
    openai = pytest.importorskip("openai", reason="the openai package is not installed")
    base = pytest.importorskip("openai._base_client")
    library = httpx2 if hasattr(base, "httpx2") else pytest.importorskip("httpx")
    with library.Client(transport=transport(library, replies, seen, chat)) as http:
        names = {"client": openai.OpenAI(api_key="k", max_retries=0, http_client=http), "Order": Order}
        exec(recipe("client.chat"), names)  # noqa: S102 (our own documentation)
    return names["order"]


def by_ollama(replies, seen):
    given = transport(httpx2, replies, seen, ollama)
    with httpx2.Client(transport=given, base_url="http://localhost:11434") as http:
        names = {"http": http, "Order": Order}
        exec(recipe("/api/chat"), names)  # noqa: S102 (our own documentation)
    return names["order"]


WAYS = pytest.mark.parametrize("way", [by_openai, by_ollama], ids=["openai", "ollama"])


@WAYS
def test_a_near_miss_needs_no_second_call(way):
    seen = []
    assert way([("Sure: {'item': 'pen', 'qty': 12,}", "stop")], seen) == Order(item="pen", qty=12)
    assert len(seen) == 1


@WAYS
def test_the_errors_are_sent_back(way):
    seen = []
    order = way([('{"item": "pen", "qty": "a dozen"}', "stop"), ('{"item": "pen", "qty": 12}', "stop")], seen)
    assert order.qty == 12
    said = seen[1]["messages"]
    assert said[-2] == {"role": "assistant", "content": '{"item": "pen", "qty": "a dozen"}'}
    assert "$.qty" in said[-1]["content"]


@WAYS
def test_a_truncated_reply_is_not_completed(way):
    seen = []
    order = way([('{"item": "pen", "qty": 1', "length"), ('{"item": "pen", "qty": 12}', "stop")], seen)
    assert order.qty == 12
    assert "cut off" in seen[1]["messages"][-1]["content"]


@WAYS
def test_after_the_last_try_the_value_is_an_error(way):
    with pytest.raises(OutputError):
        way([("no", "stop")] * 3, [])
