"""Several defects at the same place: each reply is read as it was meant, or rejected."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NotRequired

import pytest
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

from flujo_aros import Accepted, StreamReader, read


class Address(BaseModel):
    street: str
    zip: str | None = None


class Book(BaseModel):
    entries: dict[str, Address]
    primary: str


class Task(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str
    count: int = 0
    flag: bool | str | None = None
    sub: Address | None = None
    names: list[str] | None = None


class Sized(TypedDict):
    name: str
    items: NotRequired[list[str]]


class Person(BaseModel):
    name: str
    age: int


class Report(BaseModel):
    result: Person
    error: str | None = None


READ: list[tuple[str, Any, Any]] = [
    ("""{'a' /* so */: "1", "b": "{\\"x\\": 1}"}""", dict[str, str], {"a": "1", "b": '{"x": 1}'}),
    ("""{"name": 'final', "Arguments": "{\\"name\\": \\"x\\", \\"items\\": []}"}""", Sized, {"name": "x", "items": []}),
    ('{"a" -> 1, "b": 2}', dict[str, Any], {"a": 1, "b": 2}),
    ("[null <!-- so -->, 'a']", list[str | None], [None, "a"]),
    ('["a" , <!-- so --> "b"]', list[str], ["a", "b"]),
    ('{"a": "c:\\\\d\\\\" <!-- so -->, "b": "x"}', dict[str, str], {"a": "c:\\d\\", "b": "x"}),
    ("{'a' <!-- so -->: 'x'}", dict[str, str], {"a": "x"}),
    ('{"a": low، "b": 1}', dict[str, Any], {"a": "low", "b": 1}),
    ('["a" # so\n; "b"]', list[str], ["a", "b"]),
    ('{"title": New York;  "count" /* so */: 1}', Task, Task(title="New York", count=1)),
    ("title: New York```", Task, Task(title="New York")),
    ("title: Tea<|im_end|>", Task, Task(title="Tea")),
    ('\ufeff**title**: Tea\n**sub**: {"street": "Elm"}', Task, Task(title="Tea", sub=Address(street="Elm"))),
    (
        '{"a": {"street": "x"}}, b: {"street": "y"}}',
        dict[str, Address],
        {k: Address(street=v) for k, v in ["ax", "by"]},
    ),
    ('{"title": "x", "names": "[\\"none\\"]"}', Task, Task(title="x", names=["none"])),
    ('{"title": "x", "names": "[none]"}', Task, Task(title="x")),
    *(
        (f"{label}12.50", kind, kind("12.50"))
        for label in ("Answer: ", "> Answer: ", "A: ", "Total - ")
        for kind in (Decimal, float)
    ),
]
REJECTED: list[tuple[str, Any]] = [
    ('{"x": "red", \'y\' -> "a", "z": "b"}', dict[str, str]),
    ('{"entries": {"x": {"street": "a"}}, "y": {"street": "b"}}, "primary": "x"}', Book),
    ('```json\n{"x": {"street": "a", "y": {"street": "b"}, "z": {"street": "c"}}\n```', dict[str, Address]),
    ('{ // so\\n\\"x\\": \\"red\\"}', dict[str, str]),
    ("<json>- name: Ann\n  age: 1\n- name: Bob\n  age: 2</json>", list[Person]),
    ('## result\n{"name": "Ann", "age": 1}\n\n## error\nNone known', Report),
    ('I considered\n```\n["x"]\n```\nbut the answer is\n```json\n("a", "b")\n```', list[str]),
    ('I considered\n```\n{"a": {"street": "x"}}\n```\nbut it is\n```json\nb: {"street": "y"}\n```', dict[str, Address]),
    ("| name | age |\n|---|---|\n| Ann | 1 |\n| Bob\nLee | 2 |", list[Person]),
    ("title: Tea\nflag: <think>", Task),
    ("title: &quot;Tea&quot;\ncount: 1", Task),
    ("{'title': \\u201cTea\\u201d}", Task),
    ("{title: red count: 1}", Task),
    ("Answer: 7 - 8", int),
    ("> 7", int),
]


@pytest.mark.parametrize(("reply", "contract", "value"), READ)
def test_what_meets_at_one_place_is_read_as_it_was_meant(reply: str, contract: Any, value: Any) -> None:
    """Even if the reply arrives in chunks."""
    outcome = read(reply, contract)
    assert outcome.value == value
    reader: StreamReader[Any] = StreamReader(contract)
    for char in reply:
        reader.feed(char)
    closed = reader.close()
    assert (closed.value, closed.repairs) == (outcome.value, outcome.repairs)


@pytest.mark.parametrize(("reply", "contract"), REJECTED)
def test_what_could_be_read_in_two_ways_is_rejected(reply: str, contract: Any) -> None:
    """No part of a reply is lost silently."""
    outcome = read(reply, contract)
    assert not isinstance(outcome, Accepted), outcome.value


def test_reading_ignores_keywords_of_other_tools() -> None:
    """As JSON Schema specifies."""
    assert read('{"a": 1}', {"type": "object", "propertiesOrder": ["a"]}).value == {"a": 1}
