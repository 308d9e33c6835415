"""`aros lsp`: a language server for blueprints, over stdin and stdout.

An editor sends the text of a blueprint as it is typed. The server returns the findings of `aros lint`, the fixes as
code actions, the documentation of a key or a rule as a hover, and the keys and values that are possible at the cursor.
Findings and fixes come from the linter, keys from the JSON Schema of blueprints, so nothing about blueprints is
declared here. An editor also sends the YAML files of other tools: those have no findings.

A blueprint that is being typed is rarely valid YAML. So the position of the cursor is found from indentation alone
(`Cursor`), which works for block style; inside `{…}` on one line there is no completion.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from flujo_aros.blueprint.blocks import blueprint_schema
from flujo_aros.blueprint.load import inspect_blueprint, is_blueprint
from flujo_aros.errors import Place
from flujo_aros.host import known_models
from flujo_aros.lint import Options, lint_text
from flujo_aros.lint.check import Linted
from flujo_aros.lint.edits import Applicability, Finding, Positions
from flujo_aros.lint.rule import Subject, read_schema, rule_to_markdown, writer_of
from flujo_aros.lint.rules import RULES
from flujo_aros.pipeline.builtins import BUILTINS
from flujo_aros.pipeline.names import ROOTS, VARIABLES, Read
from flujo_aros.pipeline.step import is_agent_step
from flujo_aros.pipeline.template import FILTERS

_ITEM: Final = re.compile(r"( *)-(?: +|$)")
_KEY: Final = re.compile(r"""( *)("[^"]*"|'[^']*'|[^\s"'#\[\]{},&*!|>%@`-][^:#]*?)\s*:(?:\s+(.*))?$""")
_IDLE: Final = 0.3
"""Seconds without a keystroke before a document is linted."""


def server() -> LanguageServer:
    """Return a language server with everything connected, not yet started."""
    made = LanguageServer("aros", version("flujo_aros"))
    made.feature(types.TEXT_DOCUMENT_DID_OPEN)(_lint_now)
    made.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_lint_after_a_pause)
    made.feature(types.TEXT_DOCUMENT_DID_SAVE)(_lint_now)
    made.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_remove_findings)
    kinds = types.CodeActionOptions([types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll])
    made.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)(_actions)
    made.feature(types.TEXT_DOCUMENT_HOVER)(_hover)
    triggers = types.CompletionOptions(trigger_characters=[":", " ", "-", "."])
    made.feature(types.TEXT_DOCUMENT_COMPLETION, triggers)(_complete)
    return made


def _lint_now(ls: LanguageServer, params: types.DidOpenTextDocumentParams | types.DidSaveTextDocumentParams) -> None:
    """Lint a document that was opened, or saved: then an imported file or a prompt may also have changed."""
    _publish(ls, ls.workspace.get_text_document(params.text_document.uri))


async def _lint_after_a_pause(ls: LanguageServer, params: types.DidChangeTextDocumentParams) -> None:
    uri, mine = params.text_document.uri, params.text_document.version
    await asyncio.sleep(_IDLE)
    document = ls.workspace.get_text_document(uri)
    if document.version == mine:  # nothing was typed in the meantime
        _publish(ls, document)


def _publish(ls: LanguageServer, document: TextDocument) -> None:
    found = [_diagnostic(document, each) for each in _lint(document).findings]
    ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, found, document.version))


def _remove_findings(ls: LanguageServer, params: types.DidCloseTextDocumentParams) -> None:
    ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))


def _actions(ls: LanguageServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Return the fixes of the findings in these lines, and all safe ones, for a fix on save."""
    document = ls.workspace.get_text_document(params.text_document.uri)
    wanted, lines = params.context.only, range(params.range.start.line, params.range.end.line + 1)
    wants_fixes = wanted is None or types.CodeActionKind.QuickFix in wanted
    found: list[types.CodeAction] = []
    linted = _lint(document)
    for finding in linted.findings:
        fix = finding.fix
        diagnostic = _diagnostic(document, finding)
        here = diagnostic.range.start.line < lines.stop and diagnostic.range.end.line >= lines.start
        if fix is None or not fix.edits or not here or not wants_fixes:
            continue
        unsafe = fix.applicability < Applicability.SAFE
        edits = [_edit(document, each.start, each.end, each.text) for each in fix.edits]
        found.append(
            types.CodeAction(
                f"{fix.title}{' (review it)' if unsafe else ''}",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                is_preferred=not unsafe,
                edit=types.WorkspaceEdit(changes={document.uri: edits}),
            )
        )
    if wanted is not None and any(str(each).startswith("source") for each in wanted):
        fixed = _lint(document, fix=Applicability.SAFE)
        if fixed.text != document.source:
            whole = [_edit(document, 0, len(document.source), fixed.text)]
            edit = types.WorkspaceEdit(changes={document.uri: whole})
            found.append(types.CodeAction("Fix all", kind=types.CodeActionKind.SourceFixAll, edit=edit))
    return found


def _hover(ls: LanguageServer, params: types.HoverParams) -> types.Hover | None:
    """Return the rule of a finding under the cursor, or the meaning of a key."""
    document = ls.workspace.get_text_document(params.text_document.uri)
    at = document.position_codec.position_from_client_units(document.lines, params.position)
    pages = {rule.code: rule_to_markdown(rule) for rule in RULES}
    line, column = at.line + 1, at.character + 1
    here = [
        pages[each.code]
        for each in _lint(document).findings
        if (each.place.line, each.place.column) <= (line, column) <= (each.end.line, each.end.column)
    ]
    key = _key_documentation(document.source, at.line) if is_blueprint(document.source) else None
    parts = [*([key] if key else []), *dict.fromkeys(here)]
    if not parts:
        return None
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(parts)))


def _complete(ls: LanguageServer, params: types.CompletionParams) -> types.CompletionList:
    """Return the keys that may be typed at the cursor, or the values of its key."""
    document = ls.workspace.get_text_document(params.text_document.uri)
    at = document.position_codec.position_from_client_units(document.lines, params.position)
    items = completions(document.source, at.line, at.character, Path(document.path).parent)
    return types.CompletionList(is_incomplete=False, items=items)


def completions(text: str, line: int, character: int, folder: Path | None = None) -> list[types.CompletionItem]:
    """Return the completions at a position of a blueprint, counted from 0: missing keys, or values. `folder` is that of
    the files that it names.

    >>> [each.label for each in completions("steps:\\n  - kind: par", 1, 13)][:3]
    ['step', 'parallel', 'conditional']
    """
    before = text.split("\n")[line][:character] if line <= text.count("\n") else ""
    cursor = Cursor.at(text, line, character)
    other_tool = cursor.path[0].members.keys() - _whole_schema()["properties"].keys() and not is_blueprint(text)
    if other_tool or before.lstrip(" -").startswith("#"):
        return []
    in_check = any(node.key == "checks" for node in cursor.path[-2:])
    inside = (_CHECK if in_check else _TEMPLATE).search(before) or _EXPRESSION.search(before)
    if inside is not None:
        part, rows = (_OWN_PART if in_check else _PART).search(inside[1]), text.split("\n")
        if in_check and part is None:
            return _value_items(["output"] * ("." not in inside[1]))
        names = _in_template(inside[1], cursor) if part is None else _fields(part, rows, line, folder)
        return _value_items(names)
    if cursor.key is not None and ":" in before:
        return _value_items(_values(cursor))
    there = set(cursor.owner.members) - {cursor.key}
    return [_key_item(name, each) for name, each in _properties(cursor).items() if name not in there]


def _value_items(names: Iterable[str]) -> list[types.CompletionItem]:
    return [types.CompletionItem(each, kind=types.CompletionItemKind.Value) for each in names]


def _key_item(name: str, schema: Mapping[str, Any]) -> types.CompletionItem:
    about = _documentation(schema)
    return types.CompletionItem(
        name,
        kind=types.CompletionItemKind.Property,
        documentation=types.MarkupContent(types.MarkupKind.Markdown, about) if about else None,
        insert_text=f"{name}: ",
    )


_TEMPLATE: Final = re.compile(r"\{\{([^{}]*)$")
_EXPRESSION: Final = re.compile(r"\b(?:condition_expression|exit_expression|iterable_input):\s+[\"']?([^\"'{]*)$")
_PART: Final = re.compile(r"\b(?:steps\.(?P<step>\w+)\.output|previous_step)(?P<inside>(?:\.\w+|\[\d+\])*)\.\w*$")
"""A reference to a part of the value of a step, up to the last dot."""
_CHECK: Final = re.compile(r"^\s*-\s+[\"']?([^\"'{]*)$")
_OWN_PART: Final = re.compile(r"(?<![\w.])(?P<step>output)(?P<inside>(?:\.\w+|\[\d+\])*)\.\w*$")
"""The same in a check, which is about the value of its own step."""
_NAME: Final = re.compile(r"(?:^|\bname:\s*[\"']?)([A-Za-z_]\w*)")


def _in_template(before: str, cursor: Cursor) -> list[str]:
    """Return the completions in a template after `before`: the variables and the values of earlier steps, or the
    filters.
    """
    if re.search(r"\|\s*\w*$", before):
        return sorted(FILTERS)
    names = _steps_before(cursor)
    values = [f"{name}.output" for name in dict.fromkeys(names)]
    if re.search(r"\bsteps\.\w*$", before):
        return values
    if (step := re.search(r"\bsteps\.(\w+)\.\w*$", before)) is not None and step[1] in names:
        return ["output"]
    if re.search(r"[\w\])]\.\w*$", before):
        return []  # a key of a value
    around = [node.key for node in cursor.path]
    inside = [f"a {kind}" for kind, body in (("map", ["map", "body"]), ("loop", ["loop"])) if _contains(around, body)]
    variables = [name for name, where in VARIABLES.items() if any(kind in where for kind in inside)]
    return [*(root for root in ROOTS if root != "steps"), *variables, *(f"steps.{each}" for each in values)]


def _contains(keys: Sequence[str | None], part: Sequence[str]) -> bool:
    return any([*keys[at : at + len(part)]] == part for at in range(len(keys)))


def _steps_before(cursor: Cursor) -> list[str]:
    """Return the names of the steps whose values exist at the cursor: those before its step and before the steps around
    it, and those of a body at the end of its loop.
    """
    rows = [node.parent.items[: node.parent.items.index(node)] for node in cursor.path if node.parent and not node.key]
    body = cursor.owner.members.get("body") if cursor.key == "exit_expression" else None
    steps = [*(each for row in rows for each in row), *(body.items if body is not None else ())]
    named = (each.members["name"].value if "name" in each.members else f" {each.value}" for each in steps)
    return [found[1] for each in named if (found := _NAME.search(each)) is not None]


def _fields(part: re.Match[str], lines: Sequence[str], line: int, folder: Path | None) -> list[str]:
    """Return the fields of the value of an agent step, or of the part of it before the cursor.

    The line of the cursor, and the rest of its section, may not be valid YAML yet, and are left out; a step that begins
    there is replaced.
    """
    section = next((at for at, each in enumerate(lines) if at > line and re.match(r"[A-Za-z]", each)), len(lines))
    item = _ITEM.match(lines[line])
    is_own = part.re is _OWN_PART
    begun = [] if item is None else [f"{item[0]}{'output' if is_own else '{name: begun, uses: passthrough}'}"]
    known = "\n".join([*lines[:line], *begun, *lines[section:]])
    subject = Subject("", known, inspect_blueprint(known, folder=folder, allow=["*"], lenient=True), folder)
    here = [each for each in subject.steps if each.node.place.line <= line + 1]
    step, inside = part["step"], re.findall(r"\w+", part["inside"])
    path = tuple(int(each) if each.isdecimal() else each for each in inside)
    before = Read("previous_step", path, 0, 1, 1)
    read = before if step is None or is_own else Read("steps", (step, "output", *path), 0, 1, 1)
    writer = here[-1] if here and is_own else writer_of(subject, here[-1], read) if here else None
    schema = read_schema(writer.step, read) if writer is not None and is_agent_step(writer.step) else {}
    return list(cast("Mapping[str, Any]", schema.get("properties", {})))


@dataclass(eq=False, slots=True)
class _Node:
    """A key with its scalar value, or an item of a list (`key` is None), and the members or the items in it."""

    key: str | None
    indent: int
    parent: _Node | None
    value: str = ""
    members: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    items: list[_Node] = field(default_factory=list["_Node"])


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a line in a YAML document that may be incomplete, by indentation.

    `owner` is the key or item whose mapping the line belongs to, and `key` the key on the line, if it has one.
    """

    owner: _Node
    key: str | None

    @property
    def path(self) -> list[_Node]:
        """The nodes from the top of the document down to the mapping around the line."""
        found: list[_Node] = []
        node: _Node | None = self.owner
        while node is not None:
            found.insert(0, node)
            node = node.parent
        return found

    @classmethod
    def at(cls, text: str, line: int, character: int) -> Cursor:
        """Return the position of a line, counted from 0. On an empty line the column says how deep it is."""
        top = _Node(None, -1, None)
        found = cls(top, None)
        for row, written in enumerate(text.split("\n")):
            at = 0
            while item := _ITEM.match(written, at):
                holder = _owner(top, at + len(item[1]), of_item=True)
                top = _Node(None, at + len(item[1]), holder, written[item.end() :])
                holder.items.append(top)
                at = item.end()
            key = _KEY.match(written, at)
            if key is not None:
                indent, name, value = at + len(key[1]), key[2].strip("\"'"), (key[3] or "").strip("\"' ")
                owner = _owner(top, indent)
                owner.members[name] = top = _Node(name, indent, owner, value)
                if row == line:
                    found = cls(owner, name)
            elif row == line:
                word = written[at:].lstrip()
                found = cls(_owner(top, len(written) - len(word) if word else max(at, character)), None)
        return found


def _owner(node: _Node, indent: int, *, of_item: bool = False) -> _Node:
    """Return the node that contains text at this column. A list may have the indentation of its own key."""
    while node.parent is not None and (node.indent > indent or (node.indent == indent and not (of_item and node.key))):
        node = node.parent
    return node


def _properties(cursor: Cursor) -> dict[str, Mapping[str, Any]]:
    """Return the keys that the mapping around the cursor may have, each with its schema."""
    found: dict[str, Mapping[str, Any]] = {}
    for schema in _schemas(cursor):
        found.update(cast("Mapping[str, Mapping[str, Any]]", schema.get("properties", {})))
    return {name: each for name, each in found.items() if not each.get("deprecated")}


def _schemas(cursor: Cursor) -> list[Mapping[str, Any]]:
    """Return the schemas that apply to the mapping around the cursor."""
    whole = _whole_schema()
    root, *inner = cursor.path
    here = list(_flatten(whole, whole, root.members))
    for node in inner:
        below: list[Mapping[str, Any]] = []
        for schema in here:
            found = schema.get("items") if node.key is None else _member(schema, node.key)
            if isinstance(found, dict):
                below += _flatten(cast("dict[str, Any]", found), whole, node.members)
        here = below
    return here


_whole_schema: Final = cache(blueprint_schema)
"""The schema of blueprints, cached because generating it takes longer than a keystroke."""


def _member(schema: Mapping[str, Any], key: str) -> Any:
    named = schema.get("properties", {})
    return named[key] if key in named else schema.get("additionalProperties")


def _flatten(
    schema: Mapping[str, Any], whole: Mapping[str, Any], members: Mapping[str, _Node]
) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and everything that it refers to, if it applies to a mapping with these members."""
    yield schema
    if "$ref" in schema:
        yield from _flatten(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole, members)
    for word in ("allOf", "anyOf", "oneOf"):
        for each in schema.get(word, ()):
            yield from _flatten(each, whole, members)
    if "if" in schema and _holds(schema["if"], members):
        yield from _flatten(schema.get("then", {}), whole, members)


def _holds(condition: Mapping[str, Any], members: Mapping[str, _Node]) -> bool:
    """Return whether the condition of a schema is true. The conditions here concern the existence and values of
    members.
    """
    if "not" in condition:
        return not _holds(condition["not"], members)
    constants = {name: each["const"] for name, each in condition.get("properties", {}).items() if "const" in each}
    required = all(name in members for name in condition.get("required", ()))
    return required and all(name not in members or members[name].value == value for name, value in constants.items())


def _values(cursor: Cursor) -> list[str]:
    """Return the possible values of the key at the cursor, if they can be listed."""
    if cursor.key == "uses":
        agents = cursor.path[0].members.get("agents")
        return [*(f"agents.{name}" for name in (agents.members if agents else ())), *BUILTINS]
    schema = _properties(cursor).get(cursor.key or "")
    if cursor.key == "model" and schema is not None:
        return known_models()
    return [] if schema is None else list(dict.fromkeys(_allowed_values(schema)))


def _allowed_values(schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("type") == "boolean":
        yield from ("true", "false")
    yield from (str(each) for each in schema.get("enum", ()) if each is not None)
    if isinstance(schema.get("const"), str):
        yield schema["const"]
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _allowed_values(each)


def _key_documentation(text: str, line: int) -> str | None:
    cursor = Cursor.at(text, line, 0)
    schema = None if cursor.key is None else _properties(cursor).get(cursor.key)
    about = None if schema is None else _documentation(schema)
    return f"**{cursor.key}**\n\n{about}" if about else None


def _documentation(schema: Mapping[str, Any]) -> str:
    """Return the meaning, the possible values and the default of a key."""
    words = [str(schema["description"])] if "description" in schema else []
    if len(values := list(dict.fromkeys(_allowed_values(schema)))) > 1:
        words.append("One of " + ", ".join(f"`{each}`" for each in values) + ".")
    if schema.get("default") not in (None, "", {}, []):
        words.append(f"Default: `{json.dumps(schema['default'], ensure_ascii=False)}`.")
    return " ".join(words)


def _lint(document: TextDocument, **options: Any) -> Linted:
    """Lint a document; a file of another tool has no findings."""
    path = Path(document.path)
    if not is_blueprint(document.source):
        return Linted(str(path), document.source, (), document.source)
    return lint_text(document.source, source=str(path), folder=path.parent, options=Options(**options))


_SEVERITIES: Final = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


def _diagnostic(document: TextDocument, finding: Finding) -> types.Diagnostic:
    where, severity = _range(document, finding.place, finding.end), _SEVERITIES[finding.severity.value]
    return types.Diagnostic(where, finding.message, severity=severity, code=finding.code, source="aros")


def _edit(document: TextDocument, start: int, end: int, text: str) -> types.TextEdit:
    positions = Positions(document.source)
    return types.TextEdit(_range(document, positions.place(start), positions.place(end)), text)


def _range(document: TextDocument, start: Place, end: Place) -> types.Range:
    """Return the range from one position up to another, in the units of the editor."""
    ends = (types.Position(each.line - 1, each.column - 1) for each in (start, end))
    return document.position_codec.range_to_client_units(document.lines, types.Range(*ends))
