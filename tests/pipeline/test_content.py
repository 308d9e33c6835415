"""Images and other content in the input of a run are passed to the model unchanged, never as JSON of their bytes."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent, BinaryContent, BinaryImage, DocumentUrl, ImageUrl
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros import AgentSpec, Call, Human, Journal, Runner, RunStatus, Step
from flujo_aros.testing import ScriptedModel

IMAGE = BinaryImage(b"\x89PNG", media_type="image/png")
LINK = ImageUrl("https://example.com/a.png")


def shown(source: Any, given: Any) -> Any:
    """Return what the model of a step with this input template receives of the run's input."""
    seen: list[Any] = []

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        (request,) = messages
        assert isinstance(request, ModelRequest)
        seen.extend(part.content for part in request.parts if isinstance(part, UserPromptPart))
        return ModelResponse(parts=[TextPart("a cat")])

    run = Runner(Step("look", Agent(FunctionModel(reply)), input=source)).run_sync(given)
    assert run.status is RunStatus.COMPLETED, run.error
    return seen[0]


@pytest.mark.parametrize(
    ("source", "given", "parts"),
    [
        ("{{ previous_step }}", ["Describe it.", IMAGE], ["Describe it.", IMAGE]),
        ("{{ input }}", LINK, [LINK]),
        ("{{ input.picture }}", {"picture": IMAGE}, [IMAGE]),
        (["What is in this?", "{{ input }}"], IMAGE, ["What is in this?", IMAGE]),
        (["Compare.", "{{ input }}"], [IMAGE, LINK], ["Compare.", IMAGE, LINK]),
        (
            ["Data:", "{{ input.n }}", "{{ input.picture }}"],
            {"n": {"a": 1}, "picture": LINK},
            ["Data:", '{"a": 1}', LINK],
        ),
    ],
)
def test_content_goes_to_the_model_as_it_is(source: Any, given: Any, parts: list[Any]) -> None:
    assert shown(source, given) == parts


@pytest.mark.parametrize(
    ("source", "given"),
    [
        ("Describe {{ input }}", IMAGE),
        ("{{ input }}", {"picture": IMAGE}),
        ({"picture": "{{ input }}"}, IMAGE),
        (["x", "{{ input }}"], {"picture": LINK}),
        ("{{ input | tojson }}", LINK),
    ],
)
def test_content_inside_text_or_data_is_rejected_before_any_call(source: Any, given: Any) -> None:
    calls: list[object] = []
    agent = Agent(FunctionModel(lambda messages, _: calls.append(messages)))  # type: ignore[func-returns-value,arg-type,return-value]  # never called
    run = Runner(Step("look", agent, input=source)).run_sync(given)
    assert (run.status, calls) == (RunStatus.FAILED, [])
    message = str(run.step("look").error)
    assert message.startswith("input of step 'look'")
    assert 'make it an element of the input: ["What is in this?", "{{ input }}"]' in message


def test_content_in_the_question_to_a_person_is_rejected_with_advice_for_a_message() -> None:
    run = Runner(Human("ask", message="Is {{ input }} a cat?")).run_sync(LINK)
    assert run.status is RunStatus.FAILED
    message = str(run.step("ask").error)
    assert message.startswith("message of step 'ask': content such as an image cannot be written as text")
    assert message.endswith("; leave it out of any other template")


BYTES = 'bytes are not text; decode them, or pass BinaryContent(data, media_type="image/png")'


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (IMAGE.data, BYTES),
        (["What is this?", IMAGE.data], BYTES),
        ([memoryview(IMAGE.data)], BYTES),
        ({"picture": IMAGE.data}, BYTES),
        (io.BytesIO(IMAGE.data), "an open file is not text; read it, or pass BinaryContent.from_path(file)"),
        (["What is this?", Path("cat.png")], "cat.png is only the name of a file; pass its content: BinaryContent.fr"),
        (
            {"shop": object()},
            "an object of the type object has no text representation; pass a mapping, a dataclass",
        ),
    ],
    ids=["bytes", "in a list", "memory view", "in a mapping", "open file", "path", "object"],
)
def test_what_has_no_form_as_text_is_rejected_before_any_call(given: object, words: str) -> None:
    model = ScriptedModel()
    run = Runner(Step("look", Agent(model))).run_sync(given)
    assert (run.status, model.calls) == (RunStatus.FAILED, 0)
    assert words in str(run.error)


def test_the_path_of_a_text_is_text() -> None:
    model = ScriptedModel("fine")
    Runner(Step("look", Agent(model))).run_sync(Path("a.txt"))
    assert model.asked[0].prompt.endswith("a.txt")


def test_a_function_receives_content_unchanged() -> None:
    assert Runner(Call("kind", lambda value: value.media_type)).run_sync(IMAGE).output == "image/png"


@pytest.mark.parametrize(
    "given",
    [
        IMAGE,
        ["What is in these?", IMAGE, LINK],
        {"picture": IMAGE, "rows": [{"link": LINK}]},
        {"$content": {"kind": "image-url", "url": "https://example.com/of-a-stranger.png"}},
        {"$content": 1, "picture": IMAGE},
    ],
)
def test_a_run_with_content_resumes_with_the_same_content(given: Any) -> None:
    pipeline = Call("keep", lambda value: value, sink_to="kept") >> Human("ask", "Well?")
    runner = Runner(pipeline >> Call("again", lambda value: value, input="{{ context.kept }}"))
    paused = runner.run_sync(given).paused
    assert paused is not None
    resumed = asyncio.run(runner.resume(json.loads(json.dumps(paused.to_dict())), "yes"))
    assert (resumed.output, resumed.step("keep").value) == (given, given), resumed.error


@pytest.mark.parametrize(
    ("given", "mark"),
    [
        (BinaryContent(b"G" * 300_000, media_type="image/png"), "[image/png, 300000 bytes, sha256 "),
        (
            DocumentUrl("https://example.com/a.pdf?signature=4711-0815-secret"),
            "[DocumentUrl https://example.com/a.pdf]",
        ),
        (ImageUrl("data:image/png;base64," + "A" * 300_000), "[image/png, 300022 bytes, sha256 "),
    ],
)
def test_the_journal_keeps_a_description_of_content_and_not_its_bytes(tmp_path: Path, given: Any, mark: str) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        step = Step("look", Agent(ScriptedModel("a cat")), input=["What is it?", "{{ input }}"])
        Runner(step, journal=journal).run_sync(given)
        (ask,) = journal.story("last").chapters[0].asks
    assert ask.prompt.startswith(f"What is it?\n\n{mark}")
    assert len(ask.prompt) < 200


def test_the_journal_describes_content_in_the_values_of_functions(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        Runner(Call("file", lambda image: Card(pictures=[image])), journal=journal).run_sync(IMAGE)
        (chapter,) = journal.story("last").chapters
    assert chapter.step is not None
    mark = f"[image/png, 4 bytes, sha256 {hashlib.sha256(IMAGE.data).hexdigest()[:12]}]"
    assert (chapter.step.input, chapter.step.output) == (mark, json.dumps({"photos": [mark]}, separators=(",", ":")))


@dataclass
class Album:
    picture: BinaryImage
    parent: Album | None = None


class Card(BaseModel):
    pictures: list[BinaryImage] = Field(serialization_alias="photos")


def test_content_in_a_field_of_an_object_is_never_written_as_text() -> None:
    album = Album(IMAGE)
    album.parent = album
    assert shown(["Look.", "{{ input.parent.picture }}"], album) == ["Look.", IMAGE]
    for given in (album, Card(pictures=[IMAGE]), ["Look.", Card(pictures=[IMAGE])]):
        run = Runner(Step("look", Agent(ScriptedModel()))).run_sync(given)
        assert "content such as an image in a value of type" in str(run.step("look").error)


@pytest.mark.parametrize(
    ("given", "photo"),
    [
        (Album(IMAGE), "{{ input.picture }}"),
        (Card(pictures=[IMAGE]), "{{ input.photos | first }}"),
    ],
)
def test_content_in_a_field_of_an_object_survives_a_pause(given: object, photo: str) -> None:
    runner = Runner(Human("ask", "Well?") >> Call("again", lambda value: value, input=photo))
    paused = runner.run_sync(given).paused
    assert paused is not None
    resumed = asyncio.run(runner.resume(json.loads(json.dumps(paused.to_dict())), "yes"))
    assert resumed.output == IMAGE


@pytest.mark.parametrize("error", [NotImplementedError("ImageUrl is not supported"), UserError("No images.")])
@pytest.mark.parametrize("own", [True, False])
def test_content_that_pydantic_ai_cannot_send_fails_the_step_with_what_to_do(error: Exception, own: bool) -> None:
    model = ScriptedModel(then=error)  # as the classes of some providers raise it
    step = Step("s", Agent(model) if own else AgentSpec(model="openai:gpt-4o"))
    result = Runner(step, models=model).run_sync(LINK)
    assert result.error is not None
    reason = str(error).rstrip(".")
    assert result.error["message"] == f"the model does not accept this input: {reason}; use another model, or send text"
    other = Runner(step, models=model).run_sync("no picture")
    assert other.error is not None
    assert reason in other.error["message"]
    assert "this input" not in other.error["message"]
