"""`aros lsp`: a real client talks to a real server process."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flujo_aros.cli.lsp import completions

pytest.importorskip("pygls", reason="the extra `lsp` is not installed")
from lsprotocol import types
from pygls.lsp.client import LanguageClient

BLUEPRINT = """\
version: "0.1"
agents:
  sorter:
    model: openai:gpt-5-mini
    system_prompt: Sörtiere 🙂.
    output_schema: {type: object, properties: {kind: {type: string}}, required: [kind]}
steps:
  - name: sort
    uses: agents.sortr
"""


class Editor:
    """An editor with one document open."""

    def __init__(self, client: LanguageClient, found: asyncio.Queue[list[types.Diagnostic]], uri: str) -> None:
        self.client, self.found, self.uri = client, found, uri
        self.document = types.TextDocumentIdentifier(uri)

    async def type(self, text: str) -> list[types.Diagnostic]:
        """Replace the whole text, and wait for its diagnostics."""
        document = types.VersionedTextDocumentIdentifier(version=2, uri=self.uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        return await asyncio.wait_for(self.found.get(), 90)

    async def actions(self, line: int, *only: str) -> list[types.CodeAction]:
        lines = types.Range(types.Position(line, 0), types.Position(line, 99))
        context = types.CodeActionContext([], only=[*only] or None)
        asked = types.CodeActionParams(self.document, lines, context)
        return list(await self.client.text_document_code_action_async(asked) or [])  # type: ignore[arg-type]


@asynccontextmanager
async def editing(folder: Path, text: str) -> AsyncIterator[Editor]:
    client = LanguageClient("test", "1")
    found: asyncio.Queue[list[types.Diagnostic]] = asyncio.Queue()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def _(shown: types.PublishDiagnosticsParams) -> None:
        found.put_nowait(list(shown.diagnostics))

    await client.start_io(sys.executable, "-m", "flujo_aros.cli", "lsp")
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
    client.initialized(types.InitializedParams())
    uri = (folder / "b.yaml").as_uri()
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "yaml", 1, text)))
    yield Editor(client, found, uri)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


def in_editor(folder: Path, text: str, do: Callable[[Editor], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with editing(folder, text) as editor:
            return await do(editor)

    return asyncio.run(main())


@pytest.mark.slow
def test_a_finding_is_shown_at_its_place_and_disappears_when_it_is_corrected(tmp_path: Path) -> None:
    async def do(editor: Editor) -> None:
        shown = await asyncio.wait_for(editor.found.get(), 90)
        assert "V-A6" in [each.code for each in shown]
        wrong = next(each for each in shown if each.code == "V-A6")
        assert wrong.range.start == types.Position(8, 10)
        assert wrong.severity == types.DiagnosticSeverity.Error
        assert "V-A6" not in [each.code for each in await editor.type(BLUEPRINT.replace("sortr", "sorter"))]

    in_editor(tmp_path, BLUEPRINT, do)


@pytest.mark.slow
def test_columns_after_an_emoji_are_counted_as_in_the_protocol(tmp_path: Path) -> None:
    text = "steps: [{name: '🙂', uses: agents.nobody}]\n"

    async def do(editor: Editor) -> Any:
        shown = await asyncio.wait_for(editor.found.get(), 90)
        return next(each for each in shown if each.code == "V-A6").range.start.character

    assert in_editor(tmp_path, text, do) == text.index("agents") + 1  # an emoji is two units of UTF-16


@pytest.mark.slow
def test_a_fix_is_offered_on_the_line_of_its_finding_and_corrects_it(tmp_path: Path) -> None:
    async def do(editor: Editor) -> None:
        actions = await editor.actions(8)
        assert actions
        edit = actions[0].edit
        assert edit is not None
        changes = edit.changes
        assert changes is not None
        (change,) = changes[editor.uri]
        assert change.new_text.endswith("sorter")
        assert await editor.actions(0) == []

    in_editor(tmp_path, BLUEPRINT, do)


@pytest.mark.slow
def test_fix_all_equals_aros_lint_fix(tmp_path: Path) -> None:
    from flujo_aros.lint import Applicability, Options, lint_text

    async def do(editor: Editor) -> str:
        (action,) = await editor.actions(0, "source.fixAll")
        edit = action.edit
        assert edit is not None
        changes = edit.changes
        assert changes is not None
        return changes[editor.uri][0].new_text

    text = BLUEPRINT.replace("sortr", "sorter")
    assert in_editor(tmp_path, text, do) == lint_text(text, options=Options(fix=Applicability.SAFE)).text


@pytest.mark.slow
def test_a_file_of_another_tool_is_left_alone_until_it_becomes_a_blueprint(tmp_path: Path) -> None:
    text = "steps:\n  - id: build\n    timeout: 300s\n"

    async def do(editor: Editor) -> None:
        assert await asyncio.wait_for(editor.found.get(), 90) == []
        assert await editor.actions(1) == await editor.actions(1, "source.fixAll") == []
        hover = types.HoverParams(editor.document, types.Position(0, 1))
        assert await editor.client.text_document_hover_async(hover) is None
        assert await editor.type(f"{text}    uses: agents.builder\n")

    in_editor(tmp_path, text, do)


@pytest.mark.slow
def test_a_hover_explains_the_key_and_the_rule(tmp_path: Path) -> None:
    async def do(editor: Editor) -> Any:
        asked = types.HoverParams(editor.document, types.Position(8, 12))
        rule = await editor.client.text_document_hover_async(asked)
        key = await editor.client.text_document_hover_async(types.HoverParams(editor.document, types.Position(3, 6)))
        return rule, key

    rule, key = in_editor(tmp_path, BLUEPRINT, do)
    assert "V-A6" in rule.contents.value
    assert "**model**" in key.contents.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("    checks: []", "**checks**\n\nRequirements beyond the schema"),
        ("    use_history: true", "One of `true`, `false`. Default: `false`."),
        ("    kind: step", "**kind**\n\nWhat the step does."),
    ],
)
def test_a_hover_over_any_key_of_a_step_explains_it(tmp_path: Path, line: str, says: str) -> None:
    async def do(editor: Editor) -> Any:
        at = types.Position(len(BLUEPRINT.splitlines()), 6)
        return await editor.client.text_document_hover_async(types.HoverParams(editor.document, at))

    assert says in in_editor(tmp_path, f"{BLUEPRINT.rstrip()}\n{line}\n", do).contents.value


@pytest.mark.slow
def test_completion_comes_over_the_wire(tmp_path: Path) -> None:
    async def do(editor: Editor) -> Any:
        asked = types.CompletionParams(editor.document, types.Position(8, 10))
        return await editor.client.text_document_completion_async(asked)

    assert "agents.sorter" in [each.label for each in in_editor(tmp_path, BLUEPRINT, do).items]


@pytest.mark.parametrize(
    ("text", "among", "not_among"),
    [
        ("|", {"steps", "agents", "imports"}, {"uses"}),
        ("steps:\n  - |", {"name", "uses", "kind"}, {"steps"}),
        ("steps:\n  - name: a\n    |", {"uses", "input"}, {"name", "branches"}),
        ("steps:\n  - |\n    name: a\n", {"uses"}, {"name"}),
        ("steps:\n- kind: parallel\n  br|", {"branches", "merge_strategy"}, {"kind", "uses"}),
        ("steps:\n  - kind: par|", {"parallel", "loop", "hitl"}, {"name"}),
        ("steps:\n  - kind: loop\n    loop:\n      |", {"body", "max_loops"}, {"uses"}),
        ("steps:\n  - kind: loop\n    loop:\n      body:\n        - name: x\n          |", {"uses"}, {"body", "name"}),
        ("steps:\n  - kind: parallel\n    branches:\n      a:\n        - |", {"uses"}, {"branches"}),
        ("steps:\n  - processing:\n      structured_output: |", {"auto", "off"}, {"name"}),
        ("agents:\n  a:\n    |\n    model: x\nsteps: []", {"system_prompt"}, {"model", "steps"}),
        (
            "agents:\n  a: {model: x}\n  bb:\n    model: y\nsteps:\n  - uses: |",
            {"agents.a", "agents.bb", "stringify"},
            {"x"},
        ),
        ("# |", set(), {"steps"}),
        ("steps:\n  - name: a\n    nonsense:\n      |", set(), {"steps", "name"}),
    ],
)
def test_keys_and_values_are_completed(text: str, among: set[str], not_among: set[str]) -> None:
    before, _, after = text.partition("|")
    line = before.count("\n")
    found = {each.label for each in completions(before + after, line, len(before.rpartition("\n")[2]))}
    assert among <= found
    assert not found & not_among


STEPS = """\
agents: {writer: {name: author, model: test}}
steps:
  - name: draft
    uses: agents.writer
  - {name: check, uses: agents.writer}
  - name: send
    input: """


@pytest.mark.parametrize(
    ("template", "among", "not_among"),
    [
        ('"{{ ', {"input", "previous_step", "context", "steps.draft.output", "steps.check.output"}, {"steps", "name"}),
        ('"Dear {{ input }}, {{ st', {"steps.draft.output"}, {"steps.send.output", "steps.author.output"}),
        ('"{{ steps.', {"draft.output", "check.output"}, {"input", "send.output"}),
        ('"{{ steps.draft.', {"output"}, {"input", "check.output"}),
        ('"{{ input | up', {"upper", "lower"}, {"input"}),
        ('"{{ input.', set(), {"input", "upper"}),
        ('"{{ input }} ', set(), {"input", "upper", "steps.draft.output"}),
        ("|\n      Dear {{ ", {"input", "steps.draft.output"}, {"name"}),
    ],
)
def test_names_in_a_template_are_completed(template: str, among: set[str], not_among: set[str]) -> None:
    text = STEPS + template
    found = {each.label for each in completions(text, text.count("\n"), len(text.rpartition("\n")[2]))}
    assert among <= found
    assert not found & not_among


BODIES = """\
steps:
  - name: one
    uses: agents.a
  - name: each
    kind: map
    map:
      iterable_input: input
      body:
        - name: inner
          uses: agents.a
        - {name: flow, uses: agents.a}
"""
LOOP = f"""\
{BODIES}  - name: again
    kind: loop
    loop:
      body:
        - name: better
          uses: agents.a
"""


@pytest.mark.parametrize(
    ("text", "among", "not_among"),
    [
        (
            f'{BODIES}        - name: last\n          input: "{{{{ ',
            {"item", "this", "index", "steps.one.output", "steps.inner.output", "steps.flow.output"},
            {"loop", "iteration", "steps.each.output", "steps.last.output"},
        ),
        (
            f'{LOOP}        - {{name: last, input: "{{{{ ',
            {"loop", "iteration", "index", "steps.one.output", "steps.each.output", "steps.better.output"},
            {"item", "this", "steps.inner.output", "steps.again.output", "steps.last.output"},
        ),
        (f"{LOOP}      exit_expression: ", {"iteration", "steps.better.output"}, {"item", "steps.again.output"}),
        (f"{BODIES}  - name: last\n    condition_expression: ", {"steps.each.output"}, {"item", "steps.inner.output"}),
    ],
)
def test_only_the_names_that_exist_in_a_body_are_completed(text: str, among: set[str], not_among: set[str]) -> None:
    found = {each.label for each in completions(text, text.count("\n"), len(text.rpartition("\n")[2]))}
    assert among <= found
    assert not found & not_among


READ = "steps:\n  - name: read\n    uses: agents.reader\n  - name: other\n    uses: passthrough\n  - name: send\n    "
LINES = "lines: {type: array, items: {type: object, properties: {item: {type: string}}}}"
AGENTS = (
    f"\nagents:\n  reader: {{model: test, output_schema: {{type: object, properties: {{total: {{}}, {LINES}}}}}}}\n"
)


@pytest.mark.parametrize(
    ("template", "fields"),
    [
        ('input: "{{ steps.read.output.', ["total", "lines"]),
        ('input: "{{ steps.read.output.to', ["total", "lines"]),
        ('input: "{{ steps.read.output.lines[0].', ["item"]),
        (
            "kind: loop\n    loop:\n      body:\n        - name: b\n          input: '{{ steps.read.output.",
            ["total", "lines"],
        ),
        ("kind: conditional\n    condition_expression: steps.read.output.", ["total", "lines"]),
        ('input: "{{ steps.read.output.total.', []),
        ('input: "{{ steps.none.output.', []),
        ('input: "{{ previous_step.', []),
    ],
)
def test_the_fields_of_the_value_of_an_agent_are_completed(template: str, fields: list[str]) -> None:
    text = READ + template
    line, character = text.count("\n"), len(text.rpartition("\n")[2])
    assert [each.label for each in completions(text + AGENTS, line, character)] == fields
    misspelt = AGENTS.replace("{model: test,", "{model: test, promt: x,")
    assert [each.label for each in completions(text + misspelt, line, character)] == fields


@pytest.mark.parametrize(
    ("check", "completed"),
    [
        ("", ["output"]),
        ("outp", ["output"]),
        ("output.", ["total", "lines"]),
        ("len(output.lines) > output.", ["total", "lines"]),
    ],
)
def test_a_check_completes_the_fields_of_the_value_of_its_step(check: str, completed: list[str]) -> None:
    text = f"steps:\n  - name: read\n    uses: agents.reader\n    checks:\n      - {check}"
    found = completions(text + AGENTS, text.count("\n"), len(text.rpartition("\n")[2]))
    assert [each.label for each in found] == completed


def test_a_model_completes_the_names_that_are_known() -> None:
    found = {each.label for each in completions("agents:\n  a:\n    model: ", 2, 11)}
    assert {"local:smollm2", "test"} <= found
    assert any(name.startswith("openai:") for name in found)


@pytest.mark.parametrize("step", ["- name: send\n    input: '{{ ", "- {name: send, input: '{{ ", "- input: '{{ "])
def test_the_fields_of_the_previous_step_are_completed_in_a_step_that_begins(step: str) -> None:
    text = f"steps:\n  - name: read\n    uses: agents.reader\n  {step}previous_step."
    found = completions(text + AGENTS, text.count("\n"), len(text.rpartition("\n")[2]))
    assert [each.label for each in found] == ["total", "lines"]


@pytest.mark.parametrize(("text", "completed"), [("", True), ("steps: []\n", True), ("services:\n  web:\n", False)])
def test_keys_are_completed_in_a_new_file_but_not_in_one_of_another_tool(text: str, *, completed: bool) -> None:
    found = {each.label for each in completions(text + "a", text.count("\n"), 1)}
    assert ("agents" in found) is completed


def test_completion_takes_any_text_and_any_place() -> None:
    for text in ("", "\n\n", "- - -", "a: [", "\t- x", ": :", "steps:\n - {", "é: 🙂\n  - "):
        for line in range(text.count("\n") + 2):
            for character in range(6):
                completions(text, line, character)


NEOVIM = """
local get = vim.lsp.get_clients or vim.lsp.get_active_clients
vim.cmd("edit triage.yaml")
vim.wait(60000, function() return #get() > 0 and #vim.diagnostic.get(0) > 0 end, 50)
for _, found in ipairs(vim.diagnostic.get(0)) do io.stdout:write(found.lnum + 1, " ", found.code, "\\n") end
vim.api.nvim_win_set_cursor(0, { 9, 13 })
local at = vim.lsp.util.make_position_params(0, "utf-16")
for _, method in ipairs({ "hover", "completion" }) do
  for _, answer in pairs(vim.lsp.buf_request_sync(0, "textDocument/" .. method, at, 30000)) do
    io.stdout:write(vim.inspect(answer.result), "\\n")
  end
end
vim.cmd("qa!")
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvim") is None, reason="needs Neovim")
def test_neovim_works_as_the_page_configures_it(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "editor.md").read_text(encoding="utf-8")
    new, old = re.findall(r"```lua\n(.*?)```", page, re.S)
    version = subprocess.run(["nvim", "--version"], capture_output=True, text=True, check=True).stdout
    minor = int(version.split(".")[1])
    command = json.dumps([sys.executable, "-m", "flujo_aros.cli", "lsp"])[1:-1]
    (tmp_path / "init.lua").write_text((new if minor >= 11 else old).replace('"aros", "lsp"', command), "utf-8")
    (tmp_path / "drive.lua").write_text(NEOVIM, "utf-8")
    (tmp_path / "triage.yaml").write_text(BLUEPRINT, "utf-8")
    words = ["nvim", "--headless", "-u", "init.lua", "-S", "drive.lua"]
    shown = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=180, check=True).stdout
    assert shown.startswith("9 V-A6\n")
    assert "agents.NAME, imports.NAME" in shown
    assert 'label = "agents.sorter"' in shown
