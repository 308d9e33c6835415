"""What providers drop, reject or do not enforce of a schema, checked against pydantic-ai and llama.cpp."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.models import ModelRequestParameters, override_allow_model_requests
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers.openai import OpenAIProvider

from flujo_aros.host import object_schema
from flujo_aros.host.local import LocalModels
from flujo_aros.lint.providers import enforces_schemas, grammar_losses, schema_losses

from .local_lab import needs_model

_WORDS = {
    "string": {"minLength": 2, "maxLength": 9, "pattern": "^a", "format": "uri", "default": "x"},
    "integer": {"minimum": 0, "maximum": 9, "multipleOf": 2},
    "array": {"minItems": 1, "maxItems": 3, "uniqueItems": True},
    "object": {"minProperties": 1, "additionalProperties": False},
}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """Generate schemas of objects with constraints of all kinds."""
    kind = draw(st.sampled_from(["string", "integer", "array", "object"] if depth else ["string", "integer"]))
    words = draw(st.sets(st.sampled_from(sorted(_WORDS[kind])), max_size=2))
    schema: dict[str, Any] = {"type": kind, **{word: _WORDS[kind][word] for word in sorted(words)}}
    if kind == "array":
        schema["items"] = draw(schemas(depth=depth - 1))
    if kind == "object":
        names = draw(st.sets(st.sampled_from("abc"), min_size=1))
        schema["properties"] = {name: draw(schemas(depth=depth - 1)) for name in sorted(names)}
        if draw(st.booleans()):
            schema["required"] = sorted(names)
    return draw(st.sampled_from([schema, schema, {"oneOf": [schema, {"type": "null"}]}])) if depth else schema


@cache
def _openai_model() -> OpenAIChatModel:
    return OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(api_key="none"))


def sent_by_openai(schema: dict[str, Any]) -> OutputObjectDefinition:
    """Return the schema that pydantic-ai's own model sends."""
    given_schema = OutputObjectDefinition(json_schema=object_schema(schema), name="x")
    asked = ModelRequestParameters(output_mode="native", output_object=given_schema, allow_text_output=True)
    made = _openai_model().customize_request_parameters(asked).output_object
    assert made is not None
    return made


@settings(max_examples=80, deadline=None)
@given(schemas())
def test_openai_enforces_a_schema_exactly_where_nothing_keeps_it_from_doing_so(schema: dict[str, Any]) -> None:
    """`strict` is sent if and only if no loss reports that the schema is not enforced."""
    losses = schema_losses("openai:gpt-4o-mini", schema)
    assert bool(sent_by_openai(schema).strict) == (not any(loss.effect == "unenforced" for loss in losses))


@settings(max_examples=60, deadline=None)
@given(schemas())
def test_a_dropped_keyword_is_not_in_the_request(schema: dict[str, Any]) -> None:
    """And every path leads to a schema that contains the keyword."""
    for model in ("openai:gpt-4o-mini", "google:gemini-2.5-flash", "local:smollm2"):
        for loss in schema_losses(model, schema):
            node: Any = schema
            for part in loss.path:
                node = node[part]
            assert loss.keyword in node or loss.keyword == "required"


def test_google_drops_unsupported_keywords() -> None:
    """Uses the transformer of its profile, which needs no package of Google."""
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "string", "format": "date", "minLength": 3}},
    }
    assert [(loss.keyword, loss.effect) for loss in schema_losses("google:gemini-2.5-flash", schema)] == [
        ("format", "dropped")
    ]


@pytest.mark.parametrize(
    ("schema", "losses"),
    [
        ({"type": "array", "prefixItems": [{"type": "string", "minLength": 2}]}, []),
        ({"type": "array", "prefixItems": [{"type": "number", "minimum": 2}]}, [(("prefixItems", 0), "minimum")]),
        ({"type": "array", "minItems": 2}, [((), "minItems")]),
        ({"pattern": "^a$"}, []),
        ({"type": "string", "pattern": "^a$"}, []),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_grammar_enforces_the_items_of_an_array_only_where_they_are_given(
    schema: dict[str, Any], losses: list[Any]
) -> None:
    assert [(path, word) for path, word, _ in grammar_losses(schema)] == losses


def test_a_recursive_schema_is_put_in_the_prompt() -> None:
    """pydantic-ai cannot express it, so no provider enforces it."""
    schema = {
        "$defs": {
            "tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
        },
        "$ref": "#/$defs/tree",
    }
    assert [loss.effect for loss in schema_losses("openai:gpt-4o-mini", schema)] == ["unenforced"]


@pytest.mark.parametrize(
    ("model", "enforces"),
    [("openai:gpt-4o-mini", True), ("deepseek:deepseek-chat", False), ("local:any", True), ("nobody:x", None)],
)
def test_the_profile_of_a_model_says_whether_its_provider_enforces_schemas(model: str, enforces: bool | None) -> None:
    """None if it is unknown."""
    assert enforces_schemas(model) is enforces


# What the server says of each schema, and what the text that it is held to looks like.
_REFUSED: list[Any] = [
    {"type": "wat"},
    {"$ref": "#/$defs/none"},
    {"$ref": "http://127.0.0.1:1/schema"},
    {"type": "array", "items": True},
    {"anyOf": []},
    {"enum": []},
    {"type": "object", "properties": {"a": True}, "required": ["a"]},
]
_TAKEN: list[Any] = [
    {"type": "string", "minLength": 3, "maxLength": 3},
    {"type": "integer", "minimum": 700, "maximum": 703},
    {"type": "string", "format": "date"},
    {"type": "string", "pattern": "^[0-9]{4}$"},
    {"type": "array", "items": {"enum": [1]}, "minItems": 2, "maxItems": 2},
]
_DROPPED: list[Any] = [
    {"type": "number", "multipleOf": 0.5},
    {"type": "string", "format": "email"},
    {"type": "array", "items": {"enum": [1]}, "contains": {"const": 2}, "minItems": 1},
    {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"], "minProperties": 1},
]


@pytest.mark.slow
@needs_model
def test_the_grammar_of_llama_cpp_agrees() -> None:
    """The real server rejects, accepts and enforces exactly what the linter predicts."""

    def inside(schema: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"v": schema}, "required": ["v"], "additionalProperties": False}

    async def ask_all() -> list[tuple[Any, int, str]]:
        answers: list[tuple[Any, int, str]] = []
        async with LocalModels() as models:
            model: Any = await models.model("local:smollm2")
            for schema in (*_REFUSED, *_TAKEN, *_DROPPED):
                form = {"type": "json_schema", "json_schema": {"name": "x", "schema": inside(schema)}}
                response = await model.client._client.post(
                    f"{model.client.base_url}chat/completions",
                    headers={"Authorization": f"Bearer {model.client.api_key}"},
                    json={"messages": [{"role": "user", "content": "v"}], "max_tokens": 60, "response_format": form},
                )
                answers.append((schema, response.status_code, response.text))
        return answers

    with override_allow_model_requests(allow_model_requests=True):
        answers = asyncio.run(ask_all())
    for schema, status, text in answers:
        effects = {loss.effect for loss in schema_losses("local:smollm2", inside(schema))}
        assert ("rejected" in effects) == (schema in _REFUSED) == (status != 200), (schema, status, text)
        assert ("dropped" in effects) == (schema in _DROPPED), schema
    written = {
        json.dumps(schema): json.loads(json.loads(text)["choices"][0]["message"]["content"])["v"]
        for schema, status, text in answers
        if schema in _TAKEN
    }
    values = list(written.values())
    assert len(values[0]) == 3
    assert 700 <= values[1] <= 703
    assert len(values[2]) == 10
    assert values[3].isdigit()
    assert values[4] == [1, 1]
