"""Invalid YAML and common beginner errors: the message names the fix, at the place of the error."""

from __future__ import annotations

import re

import pytest
import yaml

from flujo_aros import BlueprintError
from flujo_aros.blueprint import document
from flujo_aros.blueprint.load import inspect_blueprint

HEAD = "steps:\n  - name: s\n    uses: agents.a\n"


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (HEAD + "\tinput: x", (4, 1), "this is a tab; indent with spaces"),
        (HEAD + "   input: x", (4, 4), "indent it exactly like its neighbours"),
        (HEAD + "     input: x", (4, 11), "indent a key exactly like its neighbours"),
        (HEAD + "    input: You read: orders", (4, 20), "put a string that contains `: ` in quotes"),
        (HEAD + "    on_degraded fail\n    meta: {}", (4, 5), "this key has no `:` and no value"),
        (HEAD + '    input: "x', (4, 12), "this quote is never closed"),
        (HEAD + "    input: @x", (4, 12), "a string cannot begin with @; put it in quotes"),
        (HEAD + "    input: *x y", (4, 12), "there is no anchor `&x` above"),
        (HEAD + "    input: * x", (4, 13), "a string that begins with `*` or `&` must be in quotes"),
        (HEAD + "    meta: {a: 1, b: [2}", (4, 23), "a `,` or the closing `]` is missing before this"),
        (HEAD + '    input: "\\d"', (4, 13), "unknown escape \\d; write \\\\, or single quotes"),
        (HEAD + '    input: "x" about a tag or a directive', (4, 16), "nothing can follow a value in quotes"),
        (HEAD + "---\nsteps: []", (4, 1), "a second document begins here; a file contains one blueprint"),
        (
            "agents:\n  - a:\n      model: m\n  b:\n    model: m",
            (4, 3),
            "the lines above are a list, but this is a key",
        ),
    ],
)
def test_invalid_yaml_is_reported_with_its_fix(text: str, place: tuple[int, int], words: str) -> None:
    (problem,) = inspect_blueprint(text).findings
    where, message = problem.place, problem.message
    assert where is not None
    assert ((where.line, where.column), message.startswith("not valid YAML: ")) == (place, True)
    assert words in message


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (HEAD + "    input: {{ input }}", (4, 12), "put a template in quotes: '{{ input }}'"),
        ("name: n\nsteps:\n  - {name: a, input: {{ input }}}", (3, 22), "put a template in quotes: '{{ input }}'"),
        (
            HEAD + "    name: t",
            (4, 5),
            "duplicate key 'name'; it is already defined on line 2; another step begins with `- `",
        ),
        (
            "name: [a]\n" + HEAD.replace("agents.a", "flujo.builtins.echo"),
            (1, 7),
            "name should be a string, not a list",
        ),
        (
            "steps: [{name: s, uses: imports.c, config: {outputs: [a]}}]\nimports: {c: {steps: [{name: x}]}}",
            (1, 55),
            "this should be a mapping, not 'a'",
        ),
        ("agents: {a: {modle: m}}\n" + HEAD, (1, 14), "unknown key 'modle'; did you mean 'model'?"),
    ],
)
def test_common_slips_are_one_sentence_each(text: str, place: tuple[int, int], message: str) -> None:
    found = [
        ((each.place.line, each.place.column), each.message) for each in inspect_blueprint(text).findings if each.place
    ]
    assert found == [(place, message)]


def test_a_dash_in_the_name_of_a_step_is_written_in_brackets() -> None:
    """`steps.my-long-step.output` and `my-long-step` are subtractions to a template."""
    text = "name: n\nsteps:\n  - {name: my-long-step, uses: flujo.builtins.stringify}\n"
    text += "  - {name: b, uses: flujo.builtins.stringify, input: '{{ steps.X.output }}'}"
    for written in ("steps.my-long-step.output", "my-long-step", "my-long-step.output"):
        wrong = inspect_blueprint(text.replace("steps.X.output", written)).findings
        assert [each.message.partition(": ")[2] for each in wrong] == [
            "`-` is the minus operator here; for a step with `-` in its name, write steps['my-long-step']"
        ]
    assert not inspect_blueprint(text.replace(".X.", "[''my-long-step''].")).findings


def test_an_expression_in_place_of_a_function_is_sent_to_its_own_key() -> None:
    text = "steps: [{kind: conditional, name: c, condition: previous_step.n > 1, branches: {true: [{name: x, uses: "
    found = inspect_blueprint(text + "flujo.builtins.stringify}]}}]").findings
    assert [each.message for each in found] == [
        "`condition` is a function, package.module:name; write `condition_expression` for an expression"
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 'x'\nsteps: []\n  b: 1", "this line does not continue the lines above"),
        ("'x' y", "nothing can follow a value in quotes"),
        ("a: 1\n]", "this line does not continue the lines above"),
        ("'x'\n]", "unmatched closing `]`"),
        ("%}\na: b", "lines that begin with % (YAML directives) are not supported"),
        ('a: "\\ud800"', "this string contains a lone surrogate (half of a character)"),
    ],
)
@pytest.mark.parametrize("parser", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
def test_both_parsers_of_pyyaml_give_the_same_messages(
    monkeypatch: pytest.MonkeyPatch, parser: type, text: str, words: str
) -> None:
    """libyaml is not available on every machine."""
    monkeypatch.setattr(document, "_PARSER", parser)
    with pytest.raises(BlueprintError, match=re.escape(words)):
        document.parse_document(text, "t.yaml")
