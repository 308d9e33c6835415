"""Hostile blueprints are rejected, and nothing in them is imported, opened or run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

from flujo_aros import BlueprintError
from flujo_aros.blueprint import document
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.lint import lint_text


def step(lines: str) -> str:
    return f"agents: {{a: {{model: m}}}}\nsteps:\n  - name: s\n    {lines}\n"


_MODULES = [
    "os:system",
    "subprocess:run",
    "builtins:exec",
    "builtins:eval",
    "socket:socket",
    "shutil:rmtree",
    "sys:exit",
    "ctypes:CDLL",
    "importlib:import_module",
]
_TEMPLATES = [
    "{{ ''.__class__.__mro__ }}",
    "{{ input.__init__.__globals__ }}",
    "{{ self.__init__.__globals__ }}",
    "{{ cycler.__init__.__globals__.os.system('id') }}",
    "{% for x in range(10**9) %}{% endfor %}",
    "{{ 'a' * 10**9 }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{{ lipsum() }}",
    "{% set x = 1 %}",
    "{{ (" * 200 + "1" + ") }}" * 200,
    "{{ input" + "|upper" * 60_000 + " }}",
]
_EXPRESSIONS = [
    "__import__('os')",
    "().__class__",
    "open('/etc/passwd')",
    "(lambda: 1)()",
    "9**9**9",
    "a" * 20_000,
    "(" * 3_000,
]
_MANY = 20_000
_FLOODS = [
    "steps:\n" + "  - {name: s}\n" * _MANY,
    "steps:\n" + "".join(f"  - {{name: s{n}, uses: agents.a{n}}}\n" for n in range(1_400)),
    "steps:\n" + "".join(f"  - {{name: s{n}, ussse: x}}\n" for n in range(1_000)),
    "steps:\n" + "  - {name: s, uses: flujo.builtins.echo}\n" * 900,
    "steps:\n" + "".join(f"  - {{kind: lop{n}, name: s}}\n" for n in range(900)),
    "steps:\n" + "".join(f"  - {{name: s{n}, uses: agents.a, input: '{{{{ steps.t{n} }}}}'}}\n" for n in range(600)),
    "steps: [" + "[]," * _MANY + "]",
    "steps: [" + "1," * 7_000 + "]",
    "agents:\n" + "".join(f"  a{n}: {{modle: m}}\n" for n in range(1_900)),
    "agents:\n" + "".join(f"  a{n}: {{model: m, output_schema: {{type: strng}}}}\n" for n in range(900)),
    "agents: {a: {model: m, output_schema: {properties: {"
    + ",".join(f"p{n}: {{type: strng}}" for n in range(600))
    + "}}}}",
    "agents: {a: {model: 'openai:m', model_settings: {" + ",".join(f"tempo{n}: 1" for n in range(3_000)) + "}}}",
    "steps: [{name: s, " + ", ".join(f"key{n}: 1" for n in range(3_000)) + "}]",
    "a: 1\n" * _MANY,
    "a: [" + ",".join(f"&a{n} 1" for n in range(_MANY)) + "]",
    "a: [" + ",".join(["&a 1"] * _MANY) + "]",
    "a: &a 1\nb: [" + ",".join(["*a"] * _MANY) + "]",
    "a: [" + "!x 1," * _MANY + "]",
    "a: {" + "[1]: 1," * 2_000 + "}",
    'a: "' + "\\q" * 10_000 + '"',
    "a: !" + "x" * 500_000 + " 1",
    "a: &" + "x" * 500_000 + " 1",
    "steps: [{name: " + "n" * 900_000 + ", usse: x}]",
    "steps: [{name: s, uses: agents." + "n" * 900_000 + "}]",
    "steps: [{name: s, retries: " + "9" * 900_000 + "}]",
    "? " * _MANY,
    "#\n" * 400_000,
    "\r" * 900_000,
    "---\n" * _MANY,
    "steps: |\n" + "  x\n" * 200_000,
    "steps: 'x\n" + "  x\n" * 200_000,
    "key\n" * 200_000,
    "[ #\n" * 50_000,
    "[&a " * 50_000,
    "steps: " + "[{kind: parallel, name: p, branches: {x: " * 40 + "[]" + "}}]" * 40,
    "steps: [" + "{kind: cache, name: c, wrapped_step: " * 50 + "{}" + "}" * 50 + "]",
    step("uses: agents.a\n    checks: [" + ", ".join(["'outptu == 1'"] * 2_000) + "]"),
    step("uses: agents.a\n    input: '" + "{{ input }}" * 9_000 + "'"),
    step("uses: agents.a\n    input: '" + "{% if input %}" * 2_000 + "'"),
    step("uses: agents.a\n    input: '{{ input" + "|upper" * 3_000 + " }}'"),
    step("uses: agents.a\n    input: '{{ " + "not " * 9_000 + "input }}'"),
    step("uses: agents.a\n    input: '{{ input" + ".a" * 9_000 + " }}'"),
]
_LAUGHS = "\n".join(
    [f"l0: &l0 [{', '.join('x' * 10)}]", *(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12))]
)
HOSTILE = [
    *[step(f"uses: '{name}'") for name in _MODULES],
    *[step(f"agent: '{name}'") for name in _MODULES],
    *[step(f"agent: '{name.replace(':', '.')}'") for name in _MODULES],
    *[step(f"agent: {{id: '{name}'}}") for name in _MODULES],
    *[step(f"agent: {{path: '{name}'}}") for name in _MODULES],
    *[step(f"uses: agents.a\n    checks: ['{name}']") for name in _MODULES],
    *[step(f"uses: agents.a\n    validators: ['{name}']") for name in _MODULES],
    *[
        step(f"kind: parallel\n    branches: {{x: [{{name: i, uses: agents.a}}]}}\n    reduce: '{name}'")
        for name in _MODULES
    ],
    *[
        step(f"kind: loop\n    loop: {{body: [{{name: i, uses: agents.a}}], exit_condition: '{name}'}}")
        for name in _MODULES
    ],
    *[step(f"kind: map\n    map: {{iterable_input: x, body: [{{name: i, uses: '{name}'}}]}}") for name in _MODULES],
    *[step(f'uses: agents.a\n    input: "{text}"') for text in _TEMPLATES],
    *[
        step(
            f'kind: conditional\n    branches: {{x: [{{name: i, uses: agents.a}}]}}\n    condition_expression: "{text}"'
        )
        for text in _EXPRESSIONS
    ],
    *[
        step(f"uses: agents.a\n    input: {tag} ['id']")
        for tag in ("!!python/object/apply:os.system", "!env", "!include")
    ],
    step("agent: {model: m, system_prompt: {from_file: /etc/passwd}}"),
    step("agent: {model: m, system_prompt: {from_file: ../../../etc/passwd}}"),
    step("agent: {model: m, output_schema: {$ref: 'http://127.0.0.1:9/x'}}"),
    step("agent: {model: m, output_schema: {$ref: 'file:///etc/passwd'}}"),
    step("uses: agents.a\n    name: s"),
    step("uses: flujo.builtins.wrap_dict\n    params: {key: [1]}"),
    "imports: {x: /etc/passwd}\n" + step("uses: imports.x"),
    "imports: {x: ../../secret.yaml}\n" + step("uses: imports.x"),
    _LAUGHS,
    "a: &a [*a]",
    "a: &a {<<: *a}",
    *_FLOODS,
    "[" * 5_000,
    "{a: " * 5_000,
    "- " * 5_000,
    "steps: " + "[" * 60 + "]" * 60,
    "x" * 1_000_001,
    "steps:\n" + "".join(f"  - {{kind: loop, name: l{n}, loop: {{body: *x}}}}\n" for n in range(100)),
]

WATCH = """
import json, sys, time
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.errors import BlueprintError
texts = json.load(sys.stdin)
try:  # what only the first blueprint needs
    parse_blueprint(texts.pop(0))
except BlueprintError:
    pass
seen, slowest = [], 0.0
sys.addaudithook(lambda name, args: seen.append((name, str(args)[:200])))
for text in texts:
    began = time.process_time()
    try:
        parse_blueprint(text)
        print("loaded:", text[:200])
    except BlueprintError as error:
        assert str(error)
    took = time.process_time() - began
    slowest = max(slowest, took)
    if took > 0.1:
        print(f"{took:.2f} s", text[:90].replace(chr(10), " "), file=sys.stderr)
watched = {"import", "exec", "open", "subprocess", "os", "socket", "shutil"}
print([e for e in seen if e[0].split(".")[0] in watched])
print(f"slowest {slowest:.3f} s", file=sys.stderr)
"""

WARM = (
    "agents: {a: {model: m, output_schema: {type: object}}}\n"
    "steps:\n  - {name: a, uses: agents.a, input: '{% if input %}{{ input | join(', ') }}{% endif %}', checks: ['1']}\n"
    "  - {kind: conditional, name: c, condition_expression: 'a b', branches: {x: [{name: i, uses: agents.b}]}}\n"
    "  - {kind: loop, name: l, loop: {body: [{name: i, uses: 'os:x'}]}}\n"
    "  - {kind: map, name: m, map: {iterable_input: x, body: [{name: i, uses: 'os:x'}]}}\n"
    "  - {kind: parallel, name: p, branches: {x: [{name: i, agent: {id: 'os:x'}}]}}\n"
    "  - {kind: cache, name: k, wrapped_step: {name: i, uses: agents.a}}\n"
)


def test_hostile_blueprints_are_rejected_without_importing_opening_or_starting_anything():
    assert len(HOSTILE) >= 150
    command = [sys.executable, "-c", WATCH]
    done = subprocess.run(command, input=json.dumps([WARM, *HOSTILE]), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("text", [*_FLOODS[:24], *_FLOODS[-8:]])
def test_a_linter_reports_few_findings_of_a_flood(text: str) -> None:
    assert 0 < len(lint_text(text).findings) < 2_000


@pytest.mark.parametrize(
    "text",
    [
        "steps:\n  - name: s\n    input: @x",
        "steps:\n  - name: s\n\tinput: x",
        "steps: [1",
        "steps: {{ x }}",
        "a: *b",
        "a: 1\n---\nb: 2",
        'a: "\\q"',
        "agents:\n  - a: 1\n  b: 2",
        "a: 'x",
        "a: \x07",
        "[" * 500,
    ],
)
def test_without_libyaml_the_errors_are_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def said() -> list[tuple[int, str]]:
        with pytest.raises(BlueprintError) as caught:
            parse_blueprint(text)
        return [(each.place.line if each.place else 0, each.message) for each in caught.value.findings]

    with_it = said()
    monkeypatch.setattr(document, "_PARSER", yaml.SafeLoader)
    assert said() == with_it
