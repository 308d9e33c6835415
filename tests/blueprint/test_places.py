"""An error is reported once, at the text that has to be changed."""

from __future__ import annotations

from flujo_aros.blueprint.load import inspect_blueprint


def found(text: str) -> list[tuple[int, int, str]]:
    findings = inspect_blueprint(text, allow=["*"]).findings
    return [(each.place.line, each.place.column, each.message) for each in findings if each.place is not None]


def test_a_template_inside_an_object_has_its_own_place() -> None:
    text = """\
steps:
  - name: pack
    uses: flujo.builtins.passthrough
    input:
      good: "{{ input }}"
      lines:
        - "{{ input }}"
        - "{{ inptu }}"
"""
    ((line, column, message),) = found(text)
    assert (line, column) == (8, 11)
    assert "did you mean 'input'" in message


def test_an_error_in_a_schema_is_reported_once_and_at_its_place() -> None:
    text = """\
agents:
  a:
    model: local:smollm2
    output_schema:
      type: object
      properties:
        n: {type: strng}
steps:
  - {name: one, uses: agents.a}
  - {name: two, uses: agents.a}
"""
    ((line, column, message),) = found(text)
    assert (line, column) == (7, 19)
    assert message.endswith("at $.properties.n.type: unknown type 'strng'; did you mean 'string'?")


def test_an_error_in_an_agent_of_a_cast_is_reported_at_its_line() -> None:
    text = """\
agents:
  small: {model: "local:smollm2"}
steps:
  - kind: ensemble
    name: wood
    profiles: {fast: small}
    cast:
      - {name: owl, persona: An owl., subscribes_to: [run.started], may_emit: [a.b], model_profile: fast}
      - name: fox
        persona: A fox.
        subscribes_to: [a.b]
        may_emit: [a.c]
        model_profile: fst
"""
    ((line, column, message),) = found(text)
    assert (line, column) == (13, 24)
    assert message.endswith("agent 'fox': unknown profile 'fst'; did you mean 'fast'?")
    ((line, column, message),) = found(text.replace("fst", "fast").replace("name: fox", "name: owl"))
    assert (line, column) == (9, 15)
    assert message.endswith("the name 'owl' is already taken; every agent needs a unique name")
