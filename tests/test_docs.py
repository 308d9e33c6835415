"""The documentation is correct: its code runs, its outputs are real, its commands and repair codes exist."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from repair_codes import EXAMPLES, codes_in_source, table
from typer.main import get_command

import flujo_aros.durable
import flujo_aros.evals
import flujo_aros.testing
from flujo_aros import Accepted, read
from flujo_aros.cli.main import app
from flujo_aros.lint import lint_text

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("docs/**/*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md"))]
)
NEED_A_MODEL = {"local-models.md"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
CALL = re.compile(r"(?<![\w/.-])aros ([a-z]+)((?: [^\n`|#]*)?)")


class Block(NamedTuple):
    """A code block, and the output right below it, if any."""

    line: int
    code: str
    output: str | None


def python_blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    blocks: list[Block] = []
    for index, fence in enumerate(fences):
        if fence[1] != "python":
            continue
        after = fences[index + 1] if index + 1 < len(fences) else None
        shown = after is not None and after[1] == "text" and not text[fence.end() : after.start()].strip()
        blocks.append(Block(text[: fence.start()].count("\n") + 2, fence[2], after[2] if after and shown else None))
    return blocks


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=_named(page), marks=[pytest.mark.slow] if page.name in NEED_A_MODEL else [])
        for page in PAGES
        if python_blocks(page)
    ],
)
def test_python_blocks_print_the_output_shown_on_the_page(page: Path) -> None:
    names: dict[str, object] = {"__name__": page.stem.replace("-", "_")}
    for block in python_blocks(page):
        printed = io.StringIO()
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(printed):
            exec(code, names)  # noqa: S102  (our own documentation)
        if block.output is not None:
            assert printed.getvalue() == block.output, f"{_named(page)}:{block.line}"


def test_commands_and_options_that_are_mentioned_exist() -> None:
    group: Any = get_command(app)
    missing: list[str] = []
    for page in PAGES:
        for call in CALL.finditer("\n".join(_code_of(page))):
            command = group.get_command(None, call[1])
            if command is None:
                missing.append(f"{_named(page)}: {call[0]}")
                continue
            known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
            asked = set(re.findall(r"(?<!\S)--[a-z-]+", call[2])) - {"--help"}
            missing += [f"{_named(page)}: aros {call[1]} {option}" for option in asked - known]
    assert missing == []


def _code_of(page: Path) -> list[str]:
    """Return the fenced blocks and inline code of a page."""
    text = page.read_text(encoding="utf-8")
    fenced = [fence[2] for fence in FENCE.finditer(text) if fence[1] in ("bash", "sh", "console", "")]
    return [*fenced, *re.findall(r"`([^`\n]+)`", FENCE.sub("", text))]


def _prose(page: Path) -> str:
    """Return a page without its code, in which `](` is allowed."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def test_whole_blueprints_outside_of_the_pages_of_rules_have_no_finding() -> None:
    pages = [page for page in PAGES if page.parent.name != "rules"]
    blocks = [fence[2] for page in pages for fence in FENCE.finditer(page.read_text("utf-8")) if fence[1] == "yaml"]
    whole = [block for block in blocks if re.search("^name:", block, re.M) and re.search("^steps:", block, re.M)]
    assert len(whole) > 1
    assert [str(finding) for block in whole for finding in lint_text(block).findings] == []


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{_named(page)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", _prose(page))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_repair_code_of_the_reader_has_an_example_and_no_other() -> None:
    assert codes_in_source() == set(EXAMPLES)


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_is_read_with_its_repair(code: str) -> None:
    example = EXAMPLES[code]
    outcome = read(example.text, example.contract, **example.options)
    assert isinstance(outcome, Accepted), outcome.explain()
    assert code in {repair.code for repair in outcome.repairs}


def test_the_table_of_repair_codes_matches_the_reader() -> None:
    page = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- python tests/repair_codes.py -->\n")[2].partition("\n<!-- end -->")[0]
    assert shown == table(), "run `python tests/repair_codes.py` and put its output into docs/reading.md"


def test_every_decision_has_a_unique_number_and_is_listed() -> None:
    notes = sorted(page.name for page in (ROOT / "docs/decisions").glob("[0-9]*.md"))
    index = (ROOT / "docs/decisions/index.md").read_text(encoding="utf-8")
    assert [int(name[:3]) for name in notes] == list(range(1, len(notes) + 1))
    assert re.findall(r"\[(\d{3})]\(([^)]+)\)", index) == [(name[:3], name) for name in notes]


def test_every_public_name_is_in_the_reference_once() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/reference").glob("*.md"))
    listed = re.findall(r"^::: flujo_aros\.((?:(?:durable|evals|testing)\.)?\w+)$", pages, re.MULTILINE)
    public = [name for name in dir(flujo_aros) if not name.startswith("_")]
    for package in (flujo_aros.durable, flujo_aros.evals, flujo_aros.testing):
        public += [f"{package.__name__.partition('.')[2]}.{name}" for name in package.__all__]
    assert sorted(listed) == sorted(public)


def test_every_page_is_in_the_menu_of_the_site() -> None:
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("*.md")}
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert pages <= set(re.findall(r"- (?:\w+: )?([\w./-]+\.md)$", site, re.MULTILINE))
