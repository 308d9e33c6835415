"""`aros read`: the value on stdout, the verdict in the exit code, everything else on stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Aros

CLEAN = '{"priority": "high", "tags": ["a"]}'
WRAPPED = f"Sure, here it is:\n{CLEAN}\nAnything else?"
WRONG = '{"priority": "urgent", "tags": []}'


def test_clean_reply_gives_its_value_and_nothing_else(aros: Aros, order_schema: str) -> None:
    result = aros("read", "--schema", order_schema, text=CLEAN)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads(CLEAN)
    assert result.stderr == ""


def test_repairs_are_mentioned_on_stderr_only(aros: Aros, order_schema: str) -> None:
    result = aros("read", "--schema", order_schema, text=WRAPPED)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads(CLEAN)
    assert "repair" in result.stderr
    assert "--explain" in result.stderr


def test_rejected_reply_prints_no_value_and_says_where_and_why(aros: Aros, order_schema: str) -> None:
    result = aros("read", "--schema", order_schema, text=WRONG)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: rejected, invalid")
    assert "$.priority" in result.stderr


def test_a_reply_that_cannot_be_read_is_marked_where_reading_ended(aros: Aros, order_schema: str) -> None:
    result = aros("read", "--schema", order_schema, "--explain", text='{"tags": ["a"]\n"priority": maybe not, ]')
    assert result.stdout.splitlines()[2:7] == [
        '  1 │ {"tags": ["a"]',
        '  2 │ "priority": maybe not, ]',
        "    │                      ^",
        "    │                      1",
        "",
    ]
    plain = aros("read", "--schema", order_schema, text='{"priority": maybe not, ]')
    assert plain.stderr.count("at character") == 1


def test_reply_is_read_from_a_file_argument(aros: Aros, order_schema: str, tmp_path: Path) -> None:
    reply = tmp_path / "reply.txt"
    reply.write_text(CLEAN, encoding="utf-8")
    result = aros("read", "--schema", order_schema, str(reply))
    assert json.loads(result.stdout) == json.loads(CLEAN)


def test_json_contains_the_complete_outcome_of_a_value(aros: Aros, order_schema: str) -> None:
    document = json.loads(aros("read", "--schema", order_schema, "--json", text=WRAPPED).stdout)
    assert document["outcome"] == "accepted"
    assert document["value"] == json.loads(CLEAN)
    assert document["trust"] == "lossless"
    assert document["repairs"][0].keys() == {"code", "risk", "path", "span", "before", "after"}


def test_a_reply_that_is_cut_off_is_marked_after_its_last_character(aros: Aros, order_schema: str) -> None:
    result = aros("read", "--schema", order_schema, "--explain", text='{"tags": ["a\n\n')
    assert result.stdout.splitlines()[2:4] == ['  1 │ {"tags": ["a', "    │             ^"]


@pytest.mark.parametrize(("reply", "helps"), [('{"title": "Cracked"', True), ('{"title": "Cra', False)])
def test_complete_is_suggested_for_a_reply_that_it_would_accept(aros: Aros, reply: str, helps: bool) -> None:
    schema = '{"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}'
    rejected = aros("read", "--schema", schema, text=reply)
    assert "rejected, truncated" in rejected.stderr
    assert ("pass --complete" in rejected.stderr) == helps
    assert (aros("read", "--schema", schema, "--complete", text=reply).exit_code == 0) == helps


def test_the_advice_for_a_payload_between_tags_that_is_not_json_is_a_contract_that_accepts_it(aros: Aros) -> None:
    reply = '<result>{"title": "Cracked",}</result>'
    schema = '{"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}'
    rejected = aros("read", "--schema", schema, "--contract", "tagged:result", text=reply)
    assert (rejected.exit_code, "`{tagged: TAG, strict: false}`" in rejected.stderr) == (1, True)
    allowed = aros("read", "--schema", schema, "--contract", "{tagged: result, strict: false}", text=reply)
    assert json.loads(allowed.stdout) == {"title": "Cracked"}


def test_json_contains_the_complete_outcome_of_a_rejection(aros: Aros, order_schema: str) -> None:
    result = aros("read", "--schema", order_schema, "--json", text=WRONG)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["reason"] == "invalid"
    assert result.stderr == ""


def test_explanation_marks_the_repaired_places(aros: Aros, order_schema: str) -> None:
    result = aros("read", "--schema", order_schema, "--explain", text=WRAPPED)
    assert result.exit_code == 0
    assert result.stdout.startswith("accepted, lossless")
    assert "1 │ Sure, here it is:" in result.stdout
    assert "│ ^^^" in result.stdout
    assert json.loads(result.stdout[result.stdout.rindex("\n{") :]) == json.loads(CLEAN)


def test_explanation_marks_the_wrong_places(aros: Aros, order_schema: str) -> None:
    result = aros("read", "--schema", order_schema, "--explain", text=WRONG)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    at = next(index for index, line in enumerate(lines) if WRONG in line)
    assert lines[at + 1].index("^") == lines[at].index("priority")
    assert "$.priority" in result.stdout


def test_a_python_file_as_schema_needs_its_type(aros: Aros, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("import pydantic\nclass Order(pydantic.BaseModel):\n    qty: int\n")
    bare = aros("read", "--schema", "./shop.py", text=CLEAN)
    assert bare.stderr == "error: --schema './shop.py' is a Python file: name the type in it, as ./shop.py:Type\n"
    assert "; did you mean 'Order'?" in aros("read", "--schema", "./shop.py:Ordr", text=CLEAN).stderr


def test_a_reply_above_the_allowed_risk_explains_how_to_allow_it(aros: Aros, order_schema: str) -> None:
    result = aros("read", "--schema", order_schema, "--risk", "lossless", text=CLEAN.replace(",", "", 1))
    assert "If such repairs are fine, allow them: `--risk inferred`" in result.stderr


@pytest.mark.parametrize("schema", [("./shop.py:Order",), ("shop:Order", "--path", ".")])
def test_schema_may_be_a_type_of_a_file_or_folder_that_is_named(
    aros: Aros, tmp_path: Path, schema: tuple[str, ...]
) -> None:
    (tmp_path / "shop.py").write_text("import pydantic\nclass Order(pydantic.BaseModel):\n    qty: int\n")
    result = aros("read", "--schema", *schema, text='{"qty": 3}')
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"qty": 3})


def test_schema_may_be_json_on_the_command_line(aros: Aros) -> None:
    schema = '{"type": "object", "properties": {"qty": {"type": "integer"}}, "required": ["qty"]}'
    result = aros("read", "--schema", schema, text='{"qty": 3}')
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"qty": 3})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("nowhere.json", "no such file"),
        ('{"type": ', "--schema 'inline' is not JSON"),
        ("nowhere:Order", "no module 'nowhere'"),
        ("json:Order", "no attribute 'Order'"),
        ("decimal:getcontext", "cannot be used as a contract"),
    ],
)
def test_an_unavailable_schema_is_one_sentence(aros: Aros, schema: str, words: str) -> None:
    result = aros("read", "--schema", schema, text=CLEAN)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "an object"),
        ("{nope", "is not JSON"),
        ('{"type": 3}', "JSON Schema"),
        ('{"type": "object", "propertys": {}}', "'propertys' is not a keyword of JSON Schema and would be ignored"),
        ('{"properties": {"day": {"format": "dat"}}}', "'dat' is not a format of JSON Schema"),
        (
            '{"age": {"type": "integer"}}',
            '\'age\' is not a keyword; write {"type": "object", "properties": {"age": …}}, or {} for any value',
        ),
    ],
)
def test_schema_file_that_is_none_is_one_sentence(aros: Aros, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    result = aros("read", "--schema", "bad.json", text=CLEAN)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_a_contract_may_have_options(aros: Aros, order_schema: str) -> None:
    reply = f"<result>{CLEAN[:-1]},}}</result>"
    options = ("--schema", order_schema, "--contract")
    assert aros("read", *options, "tagged:result", text=reply).exit_code == 1
    assert aros("read", *options, "{tagged: result, strict: false}", text=reply).exit_code == 0
    refused = aros("read", *options, "{tagged: result, strikt: false}", text=reply)
    assert (refused.exit_code, "strikt" in refused.stderr, "Traceback" in refused.stderr) == (2, True, False)


def test_reply_that_is_not_utf8_is_one_sentence(aros: Aros, tmp_path: Path, order_schema: str) -> None:
    (tmp_path / "reply.bin").write_bytes(b'{"priority": "\xff"}')
    result = aros("read", "--schema", order_schema, "reply.bin")
    assert result.exit_code == 2
    assert "reply.bin:1:" in result.stderr
    assert "save the file as UTF-8" in result.stderr


def test_a_missing_reply_file_is_reported_in_one_sentence(aros: Aros, order_schema: str) -> None:
    result = aros("read", "--schema", order_schema, "nowhere.txt")
    assert result.exit_code == 2
    assert "cannot read 'nowhere.txt'" in result.stderr


def test_explain_and_json_exclude_each_other(aros: Aros, order_schema: str) -> None:
    result = aros("read", "--schema", order_schema, "--json", "--explain", text=CLEAN)
    assert result.exit_code == 2
    assert "--explain" in result.stderr


def test_unexpected_error_is_a_sentence_and_with_debug_a_traceback(aros_process: Aros, tmp_path: Path) -> None:
    odd = "class Odd(type):\n  def __getattr__(cls, name):\n    raise RuntimeError('the shop is closed')\n"
    (tmp_path / "broken.py").write_text(f"{odd}class Order(metaclass=Odd): pass\n")
    calm = aros_process("read", "--schema", "broken.py:Order", text=CLEAN)
    assert calm.exit_code == 1
    assert calm.stderr.startswith("error: RuntimeError: the shop is closed (broken.py, line 3)\n")
    assert "Traceback" not in calm.stderr
    loud = aros_process("--debug", "read", "--schema", "broken.py:Order", text=CLEAN)
    assert loud.exit_code == 1
    assert "Traceback" in loud.stderr
    assert 'raise RuntimeError("' in loud.stderr or "raise RuntimeError('" in loud.stderr


def test_value_survives_a_terminal_that_knows_only_ascii(aros_process: Aros, environment: dict[str, str]) -> None:
    environment["PYTHONIOENCODING"] = "ascii"
    result = aros_process("read", "--schema", "builtins:dict", text="{}")
    assert json.loads(result.stdout) == {}


@pytest.mark.parametrize(
    ("where", "text", "value"),
    [
        ("tagged:result", 'Sure. <result>{"qty": 3}</result>', {"qty": 3}),
        ("text:note", "<note> hi </note>", "hi"),
        ("block:plan,next", '{"plan": "a", "next": "b"} Go.', {"fields": {"plan": "a", "next": "b"}, "prose": "Go."}),
    ],
)
def test_payload_may_stand_elsewhere_in_the_reply(aros: Aros, where: str, text: str, value: object) -> None:
    result = aros("read", "--contract", where, text=text)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == value


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--schema is missing"),
        (("--json",), "--schema is missing"),
        (("--contract", "tagged"), "expected tagged:TAG"),
        (("--contract", "invoice.schema.json"), "; a schema belongs to --schema"),
        (("--contract", "text:a", "--schema", "x:Y"), "has no schema"),
    ],
)
def test_an_unavailable_contract_is_one_sentence(aros: Aros, arguments: tuple[str, ...], words: str) -> None:
    result = aros("read", *arguments, text="{}")
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_schema_may_be_written_in_yaml(aros: Aros, tmp_path: Path) -> None:
    file = tmp_path / "schema.yaml"
    file.write_text("type: object\nrequired: [a]\nproperties: {a: {type: integer}}\n")
    assert aros("read", "--schema", str(file), text='{"a": 1}').stdout == '{\n  "a": 1\n}\n'
    file.write_text("type: [")
    assert f"--schema {file}:2:1: not valid YAML" in aros("read", "--schema", str(file), text="{}").stderr


def test_a_reply_in_place_of_its_file_is_wrong_usage_with_what_to_do(aros: Aros, tmp_path: Path) -> None:
    (tmp_path / "any.json").write_text('{"type": "object"}')
    result = aros("read", "--schema", "any.json", '{"crew": 2}')
    assert result.exit_code == 2
    assert "REPLY is the name of a file, and the text of a reply belongs on stdin" in result.stderr


def test_a_missing_key_is_not_marked_at_the_same_key_of_another_object(aros: Aros) -> None:
    schema = '{"type": "array", "items": {"type": "object", "required": ["qty"], "properties": {"qty": {}}}}'
    result = aros("read", "--schema", schema, "--explain", text='[{"qty": 1}, {"sku": "B"}]')
    assert "$[1].qty: the required key 'qty' is missing" in result.stdout + result.stderr
    assert "^" not in result.stdout + result.stderr
