"""Generate the pages about the rules from the rules and their cases: `python tests/lint/rule_pages.py`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from flujo_aros.lint.rule import rule_to_markdown
from flujo_aros.lint.rules import RULES

CASES = Path(__file__).parent / "cases"
PAGES = Path(__file__).parents[2] / "docs" / "rules"
_CAPTIONS = {
    "text": "Found (line:column, severity, the marked text):",
    "yaml fixed": "After `--fix`:",
    "yaml unsafe": "After `--unsafe-fixes`:",
}
_FENCE = re.compile(r"^~~~~([^\n]+)\n(.*?)^~~~~$", re.S | re.M)


def pages() -> dict[str, str]:
    """Return every page by its file name."""
    ordered = sorted(RULES, key=lambda rule: rule.code)
    made = {f"{rule.code}.md": rule_to_markdown(rule) + _cases(rule.code) for rule in ordered}
    rows = [
        f"| [{rule.code}]({rule.code}.md) | {rule.severity.value} | {rule.headline()} "
        f"| {rule.fixable.word if rule.fixable is not None else ''} |"
        for rule in ordered
    ]
    head = "# Rules of `aros lint`\n\n| Code | Severity | Finds | Fix |\n| --- | --- | --- | --- |\n"
    return {"index.md": head + "\n".join(rows) + "\n", **made}


def _cases(code: str) -> str:
    """Yield the cases of a rule, one heading level lower, each block with its label."""
    _, heading, body = (CASES / f"{code}.md").read_text(encoding="utf-8").partition("\n## ")
    lowered = re.sub(r"^## ", "### ", heading.lstrip("\n") + body, flags=re.M)
    return "\n## Cases\n\nThese run as tests.\n\n" + _FENCE.sub(_block, lowered)


def _block(fence: re.Match[str]) -> str:
    kind, text = fence.groups()
    caption = f"`{kind.removeprefix('yaml file ')}`:" if kind.startswith("yaml file ") else _CAPTIONS.get(kind, "")
    written = f"```{kind.split()[0]}\n{text}```"
    return f"{caption}\n\n{written}" if caption else written


def main() -> None:
    """Write the pages, and remove those of deleted rules."""
    PAGES.mkdir(parents=True, exist_ok=True)
    made = pages()
    for old in set(PAGES.glob("*.md")) - {PAGES / name for name in made}:
        old.unlink()
    for name, text in made.items():
        (PAGES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
