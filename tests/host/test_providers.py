"""`Aros` with the real provider classes, over transports that return recorded bodies."""

import asyncio
import importlib
import inspect
import json

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput, models
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior

from flujo_aros import Aros, OutputError, Reason
from flujo_aros.recovery import Ladder

from .matrix import by_events, by_stream


class Item(BaseModel):
    name: str
    qty: int


PEN = Item(name="pen", qty=3)
MESSY = "Sure! ```json {'name': 'pen', 'qty': 3,}```"
GOOD = '{"name": "pen", "qty": 3}'


@pytest.fixture(autouse=True)
def mock_network(monkeypatch):
    """Allow requests, which scripted transports answer."""
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)


class Broken:
    """The beginning of a body, after which the connection is lost."""

    def __init__(self, text):
        self.text = text

    def stream(self, library):
        text = self.text

        class Stream(library.AsyncByteStream):
            async def __aiter__(self):
                yield text.encode()
                raise library.ReadError("connection reset by peer")

        return Stream()


def client_over(sdk, replies, seen):
    """Return an HTTP client for this SDK that answers from a list of (status, body)."""
    library = importlib.import_module("httpx2" if "httpx2" in inspect.getsource(sdk) else "httpx")

    def answer(request):
        seen.append(json.loads(request.content))
        nothing = (500, {"error": {"message": "asked once more than there are replies"}})
        status, body = replies.pop(0) if replies else nothing
        if isinstance(body, Broken):
            kind = {"content-type": "text/event-stream"}
            return library.Response(status, stream=body.stream(library), headers=kind)
        if isinstance(body, str):
            kind = "text/event-stream" if body.startswith("data:") else "text/html"
            return library.Response(status, text=body, headers={"content-type": kind})
        return library.Response(status, json=body)

    return library.AsyncClient(transport=library.MockTransport(answer))


def openai_client(replies, seen):
    openai = pytest.importorskip("openai", reason="the openai package is not installed")
    base = importlib.import_module("openai._base_client")
    return openai.AsyncOpenAI(api_key="k", max_retries=0, http_client=client_over(base, replies, seen))


def openai_chat(replies, seen):
    client = openai_client(replies, seen)
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=client))


def openai_responses(replies, seen):
    client = openai_client(replies, seen)
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel("gpt-4o", provider=OpenAIProvider(openai_client=client))


def ollama(replies, seen):
    client = openai_client(replies, seen)
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    return OllamaModel("qwen3:0.6b", provider=OllamaProvider(openai_client=client))


def groq(replies, seen):
    sdk = pytest.importorskip("groq", reason="the groq package is not installed")
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    base = importlib.import_module("groq._base_client")
    client = sdk.AsyncGroq(api_key="k", max_retries=0, http_client=client_over(base, replies, seen))
    return GroqModel("openai/gpt-oss-120b", provider=GroqProvider(groq_client=client))


def mistral(replies, seen):
    pytest.importorskip("mistralai", reason="the mistralai package is not installed")
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    sdk = importlib.import_module("mistralai.client.httpclient")
    client = client_over(sdk, replies, seen)
    return MistralModel("mistral-small-latest", provider=MistralProvider(api_key="k", http_client=client))


CHAT = {"openai": openai_chat, "groq": groq, "mistral": mistral, "ollama": ollama}


def chat(content=None, finish="stop", args=None, name="final_result", **extra):
    """Return a complete response of the chat completions API."""
    message = {"role": "assistant", "content": content, **extra}
    if args is not None:
        function = {"name": name, "arguments": args}
        message["tool_calls"] = [{"id": "call00001", "type": "function", "function": function}]
    choice = {"index": 0, "finish_reason": finish, "message": message, "logprobs": None}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return 200, body


def streamed(*texts, finish="stop", error=None):
    """Return the same response as server-sent events, optionally interrupted by an error."""
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None} for text in texts]
    events = [{**chunk, "choices": [choice]} for choice in choices]
    if error is None:
        events.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    else:
        events.append(error)
    return 200, "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def json_validate_failed(text):
    error = {
        "message": "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.",
        "type": "invalid_request_error",
        "code": "json_validate_failed",
        "failed_generation": text,
    }
    return {"error": error}


def responses(text, status="completed", **extra):
    """Return a complete response of the responses API."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "m1", "role": "assistant", "status": status, "content": content}
    usage = {
        "input_tokens": 100,
        "output_tokens": 20,
        "total_tokens": 120,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    whole = {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-4o",
        "status": status,
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }
    return 200, {**whole, **extra}


def run(make, *replies, output=PromptedOutput, way=None, **options):
    """Run an agent; return the result and the requests that were sent."""
    seen, left = [], list(replies)
    agent = Agent(make(left, seen), output_type=output(Item), capabilities=[Aros()], **options)
    result = asyncio.run(agent.run("x") if way is None else way(agent))
    assert not left
    return result, seen


def reason_of(make, *replies, **options):
    seen = []
    with pytest.raises(OutputError) as caught:
        run(make, *replies, **options)
    assert not seen
    return caught.value.reason


@pytest.mark.parametrize("make", CHAT.values(), ids=CHAT)
def test_a_messy_reply_is_read_with_one_request(make):
    result, seen = run(make, chat(MESSY))
    assert result.output == PEN
    assert len(seen) == 1
    assert result.metadata["aros"]["trust"] == "lossless"


@pytest.mark.parametrize("make", CHAT.values(), ids=CHAT)
def test_a_reply_at_its_limit_is_truncated(make):
    assert reason_of(make, chat(GOOD[:-3], finish="length")) is Reason.TRUNCATED


@pytest.mark.parametrize("make", CHAT.values(), ids=CHAT)
def test_messy_arguments_are_read_at_one_request(make):
    result, seen = run(make, chat(args="{'name': 'pen', 'qty': 3,}", finish="tool_calls"), output=ToolOutput)
    assert result.output == PEN
    assert len(seen) == 1


@pytest.mark.parametrize("make", CHAT.values(), ids=CHAT)
def test_arguments_written_as_text_and_wrong_names_are_the_call_that_was_meant(make):
    for reply in (chat(f"Calling the tool: {GOOD}"), chat(args=GOOD, name="FinalResult", finish="tool_calls")):
        result, seen = run(make, reply, output=ToolOutput)
        assert result.output == PEN
        assert len(seen) == 1


@pytest.mark.parametrize("make", CHAT.values(), ids=CHAT)
def test_a_value_of_the_wrong_type_is_repaired_by_a_bare_request_without_tools(make):
    bad = '{"name": "pen", "qty": "it is 3"}'
    result, seen = run(make, chat(args=bad, finish="tool_calls"), chat(GOOD), output=ToolOutput)
    assert result.output == PEN
    assert (result.usage.requests, result.usage.input_tokens) == (2, 200)
    assert seen[0]["tools"]
    assert not seen[1].get("tools")
    assert not seen[1].get("tool_choice")


@pytest.mark.parametrize(
    ("make", "output"),
    [
        *((make, output) for make in (openai_chat, groq) for output in (NativeOutput, PromptedOutput)),
        (ollama, PromptedOutput),  # whether Ollama enforces a schema depends on the model: its profile says no for most
    ],
)
def test_the_text_in_a_failed_json_mode_is_read(make, output):
    result, seen = run(make, (400, json_validate_failed("{'name': 'pen', 'qty': 3,}")), output=output)
    assert result.output == PEN
    assert len(seen) == 1
    assert result.usage.unmeasured_requests == 1


def test_a_tool_call_that_groq_rejects_is_repaired():
    failed = json.dumps({"name": "final_result", "arguments": {"name": "pen", "qty": "it is 3"}})
    error = {"message": "Tool call validation failed", "type": "invalid_request_error", "code": "tool_use_failed"}
    refused = (400, {"error": {**error, "failed_generation": failed}})
    result, _ = run(groq, refused, chat(GOOD), output=ToolOutput)
    assert result.output == PEN


@pytest.mark.parametrize("make", [openai_chat, groq])
@pytest.mark.parametrize("way", [by_stream, by_events])
def test_streams_of_providers_are_read_and_their_finish_reason_is_known(make, way):
    value, seen = run(make, streamed("Sure! {'name': ", "'pen', 'qty'", ": 3,}"), way=way)
    assert value == PEN
    assert seen[0]["stream"]
    assert reason_of(make, streamed('{"name": "pen", "qty": 3', finish="length"), way=way) is Reason.TRUNCATED
    value, _ = run(make, streamed('{"name": "pen", "qty": 3', finish="stop"), way=way)
    assert value == PEN, "the model ended by itself and forgot the closer"


@pytest.mark.parametrize("make", [openai_chat, groq])
@pytest.mark.parametrize("way", [by_stream, by_events])
def test_an_error_event_inside_a_stream_is_repaired_where_it_carries_the_reply(make, way):
    broken = streamed("{'name': ", error=json_validate_failed("{'name': 'pen', 'qty': 3,}"))
    try:
        value, _ = run(make, broken, way=way, output=NativeOutput)
    except (ModelHTTPError, UnexpectedModelBehavior, OutputError) as error:
        pytest.fail(f"not mended: {error!r} from {error.__cause__!r}")
    assert value == PEN


def broken_streams(*texts):
    """Yield the ways in which a stream can break off after these texts, as events of the API."""
    whole = streamed(*texts)[1]
    begun = "".join(f"{event}\n\n" for event in whole.split("\n\n")[: len(texts)])
    unnamed = {"error": {"message": "Failed to validate JSON.", "code": "json_validate_failed"}}
    return {
        "connection": Broken(begun),
        "error event": f"{begun}data: {json.dumps(unnamed)}\n\n",
        "malformed chunk": f'{begun}data: {{"id": "x", "choices": [{{"ind\n\n',
    }


@pytest.mark.parametrize("make", [openai_chat, groq])
@pytest.mark.parametrize("way", [by_stream, by_events])
@pytest.mark.parametrize("how", broken_streams("x"))
def test_a_stream_that_breaks_off_is_finalized_from_the_text_shown(make, way, how):
    whole = broken_streams("{'name': ", "'pen', 'qty'", ": 3}")[how]
    value, seen = run(make, (200, whole), way=way, output=NativeOutput)
    assert (value, len(seen)) == (PEN, 1)
    cut = broken_streams('{"name": ', '"pen", "qty"')[how]
    rest = chat(GOOD)
    value, seen = run(make, (200, cut), rest, way=way, output=NativeOutput)
    assert (value, len(seen)) == (PEN, 2)


def test_an_openai_refusal_is_rejected_after_one_request():
    assert reason_of(openai_chat, chat(refusal="I cannot help with that.")) is Reason.REFUSED


def test_a_gateway_page_in_place_of_a_reply_is_retried_and_a_busy_provider_is_not():
    for reply in ((200, "<html>busy</html>"), (200, {"id": "x", "choices": None, "model": "m", "created": 1})):
        result, seen = run(openai_chat, reply, chat(GOOD))
        assert (result.output, len(seen)) == (PEN, 2)
    with pytest.raises(ModelHTTPError):
        run(openai_chat, (503, {"error": {"message": "busy"}}))


def test_the_responses_interface_is_read_too():
    result, seen = run(openai_responses, responses(MESSY))
    assert result.output == PEN
    assert len(seen) == 1
    cut = responses(GOOD[:-3], status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert reason_of(openai_responses, cut) is Reason.TRUNCATED
    filtered = responses("I cannot", status="incomplete", incomplete_details={"reason": "content_filter"})
    assert reason_of(openai_responses, filtered) is Reason.REFUSED


def test_an_ollama_thinking_model_that_never_answers_is_described_in_words():
    silent = chat("", reasoning="The user wants a pen, so I should")
    with pytest.raises(OutputError) as caught:
        run(ollama, silent, silent)
    assert caught.value.reason is Reason.NO_JSON
    assert "only its thinking" in caught.value.issues[0].message


def test_a_reply_of_an_ollama_thinking_model_is_read_apart_from_its_thinking():
    result, _ = run(ollama, chat(f"<think>A {{}} pen?</think>\n{GOOD}", reasoning="so"))
    assert result.output == PEN


def counted(tokens, body):
    """Return the same response with this number of input tokens."""
    status, whole = body
    return status, {**whole, "usage": {"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5}}


LONG = "one more line of a long document\n" * 2_000


def test_a_prompt_cut_silently_by_ollama_is_reported_with_the_outcome():
    replies = [counted(4096, chat(GOOD))]
    agent = Agent(ollama(replies, []), output_type=PromptedOutput(Item), capabilities=[Aros()])
    reported = asyncio.run(agent.run(LONG)).metadata["aros"]
    assert "4096 input tokens" in reported["prompt_cut"]
    assert "num_ctx" in reported["prompt_cut"]
    bad = Agent(
        ollama([counted(4096, chat("I see no order here."))], []),
        output_type=PromptedOutput(Item),
        capabilities=[Aros(ladder=Ladder(stages=()))],
    )
    with pytest.raises(OutputError) as caught:
        asyncio.run(bad.run(LONG))
    assert caught.value.issues[-1].code == "prompt_cut"


@pytest.mark.parametrize("tokens", [len(LONG) // 4, 12, 0], ids=["all of it", "a cached prompt", "none reported"])
def test_a_prompt_with_a_plausible_token_count_is_not_reported_as_cut(tokens):
    agent = Agent(ollama([counted(tokens, chat(GOOD))], []), output_type=PromptedOutput(Item), capabilities=[Aros()])
    assert "prompt_cut" not in asyncio.run(agent.run(LONG)).metadata["aros"]


def test_a_mode_that_does_not_suit_the_model_is_reported_once_it_has_cost_a_call():
    easy, _ = run(openai_chat, chat(GOOD))
    assert "better_mode" not in easy.metadata["aros"]
    hard, _ = run(openai_chat, chat('{"name": "pen", "qty": "it is 3"}'), chat(GOOD))
    assert hard.metadata["aros"]["better_mode"] == "native"
    native, _ = run(openai_chat, chat('{"name": "pen", "qty": "it is 3"}'), chat(GOOD), output=NativeOutput)
    assert "better_mode" not in native.metadata["aros"]
