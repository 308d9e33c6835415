"""A stream of a real provider class over a real connection is closed if it is stopped early."""

import asyncio
import json

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput, models

from flujo_aros import Aros, OutputError, Reason
from flujo_aros.host import run_agent
from flujo_aros.recovery import Ladder

MOST = 10_000_000


class Item(BaseModel):
    name: str
    qty: int


@pytest.fixture(autouse=True)
def local_network(monkeypatch):
    """Allow requests, which go to this machine."""
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)


class Endless:
    """A server that streams a chat completion without end, and notices when the client disconnects."""

    def __init__(self, *, tool):
        self.tool = tool
        self.sent = 0
        self.left = asyncio.Event()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_):
        self.server.close()
        await self.server.wait_closed()

    async def answer(self, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        words = '{"name": "pen",'
        try:
            while not reader.at_eof() and self.sent < MOST:
                writer.write(f"data: {json.dumps(self.chunk(words))}\n\n".encode())
                await writer.drain()
                await asyncio.sleep(0)
                self.sent, words = self.sent + len(words), " \n" * 20
        except ConnectionError:
            pass
        finally:
            self.left.set()
            writer.close()

    def chunk(self, words):
        named = {} if self.sent else {"name": "final_result"}
        call = {"index": 0, "type": "function", "function": {**named, "arguments": words}}
        call |= {} if self.sent else {"id": "c"}
        delta = {"role": "assistant", **({"tool_calls": [call]} if self.tool else {"content": words})}
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def agent_for(server, output):
    chat = pytest.importorskip("pydantic_ai.models.openai", reason="the openai package is not installed")
    provider = pytest.importorskip("pydantic_ai.providers.openai").OpenAIProvider(base_url=server.url, api_key="k")
    model = chat.OpenAIChatModel("m", provider=provider)
    return Agent(model, output_type=output, capabilities=[Aros(ladder=Ladder(stages=()))])


@pytest.mark.timeout(60)
@pytest.mark.parametrize("mode", [PromptedOutput, NativeOutput, ToolOutput])
def test_the_connection_is_closed_when_a_model_has_lost_its_way(mode):
    async def main():
        async with Endless(tool=mode is ToolOutput) as server:
            agent = agent_for(server, mode(Item))

            async def live(_):
                pass

            result = await run_agent(agent, "x", None, live=live)
            await asyncio.wait_for(server.left.wait(), 20)
            return result, server.sent

    result, sent = asyncio.run(main())
    assert result.outcome.reason is Reason.TRUNCATED
    assert result.outcome.issues[-1].code == "runaway_whitespace"
    assert result.usage.unmeasured_requests == 1
    assert sent < MOST


@pytest.mark.timeout(60)
def test_a_stream_of_the_users_own_is_stopped_too():
    async def main():
        async with Endless(tool=False) as server:
            agent = agent_for(server, PromptedOutput(Item))
            with pytest.raises(OutputError) as caught:
                async with agent.run_stream("x") as stream:
                    async for _ in stream.stream_output(debounce_by=None):
                        pass
            await asyncio.wait_for(server.left.wait(), 20)
            return caught.value

    error = asyncio.run(main())
    assert error.reason is Reason.TRUNCATED
    assert error.issues[-1].code == "runaway_whitespace"
