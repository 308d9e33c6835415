"""Reading cases written in Markdown: a heading that states the behaviour, the text, and the result.

    ## A comma before the closing brace goes away

    ~~~~text
    {"a": 1,}
    ~~~~

    ```yaml
    value: {"a": 1}
    repairs:
      - trailing-comma lossless $.a
    ```

`text` blocks are taken as they are, without the last line break; in a `codepoints` block `<U+FEFF>` stands for that
character. Keys of the `yaml` block: `schema` (any JSON if there is none; a name means one of the `yaml schemas` block
at the head of the file), `risk`, `truncated`, `pick`, and either `value` with `repairs` (none: CLEAN) or `reason` with
`issue`. A repair is written `code risk path`, an issue `code path`. Each stands once, in any order.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from flujo_aros import Accepted, Outcome, Risk, Trust, read

CASES = Path(__file__).parent / "cases"

_HEADING = re.compile(r"^## (.+)$", re.M)
_INPUT = re.compile(r"^~~~~(text|codepoints)\n(.*?)\n?^~~~~$", re.S | re.M)
_EXPECTED = re.compile(r"^```yaml\n(.*?)^```$", re.S | re.M)
_SCHEMAS = re.compile(r"^```yaml schemas\n(.*?)^```$", re.S | re.M)
_CODEPOINT = re.compile(r"<U\+([0-9A-F]{4,6})>")
_KEYS = {"schema", "risk", "truncated", "pick", "value", "repairs", "reason", "issue"}


@dataclass(frozen=True)
class Case:
    """One behaviour: the text, the contract and options, and the expected result."""

    file: str
    title: str
    text: str
    schema: Any
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        """The id of the test."""
        return f"{self.file}/{re.sub(r'[^a-z0-9]+', '-', self.title.lower()).strip('-')}"

    def read(self, risk: Risk | None = None) -> Outcome[Any]:
        """Read the text with the options of the case; `risk` overrides the risk of the case."""
        options: dict[str, Any] = {key: self.expected[key] for key in ("truncated", "pick") if key in self.expected}
        if risk is None and "risk" in self.expected:
            risk = Risk[self.expected["risk"].upper()]
        return read(self.text, self.schema, risk=risk, **options)


def load_cases() -> list[Case]:
    """Load the cases of all files. Fails if one is malformed, naming it."""
    return [case for path in sorted(CASES.glob("*.md")) for case in _cases_of(path)]


def _cases_of(path: Path) -> list[Case]:
    whole = path.read_text(encoding="utf-8")
    head, *parts = _HEADING.split(whole)
    shared = _SCHEMAS.search(head)
    schemas: dict[str, Any] = yaml.safe_load(shared[1]) if shared else {}
    return [_case(path.stem, title, body, schemas) for title, body in zip(parts[::2], parts[1::2], strict=True)]


def _case(file: str, title: str, body: str, schemas: dict[str, Any]) -> Case:
    text, expected = _INPUT.findall(body), _EXPECTED.findall(body)
    assert len(text) == len(expected) == 1, f"{file}: {title}: needs one ~~~~text and one ```yaml block"
    kind, content = text[0]
    if kind == "codepoints":
        content = _CODEPOINT.sub(lambda found: chr(int(found[1], 16)), content)
    wanted: dict[str, Any] = yaml.safe_load(expected[0])
    assert wanted.keys() <= _KEYS, f"{file}: {title}: unknown keys {wanted.keys() - _KEYS}"
    assert ("value" in wanted) != ("reason" in wanted), f"{file}: {title}: needs a value or a reason"
    schema = wanted.get("schema", {})
    return Case(file, title, content, schemas[schema] if isinstance(schema, str) else schema, wanted)


def describe(outcome: Outcome[Any]) -> dict[str, Any]:
    """Return an outcome in the notation of the `yaml` block."""
    if isinstance(outcome, Accepted):
        assert outcome.trust is Trust.of(outcome.repairs)
        repairs = sorted({f"{r.code} {r.risk.name.lower()} {r.path}" for r in outcome.repairs})
        return {"value": outcome.value, "repairs": repairs}
    reported = outcome.to_dict()
    issue = reported["issues"][0]
    return {"reason": reported["reason"], "issue": f"{issue['code']} {issue['path']}"}


def wanted(case: Case) -> dict[str, Any]:
    """Return the expected result in the form of `describe`."""
    expected = case.expected
    if "reason" in expected:
        return {"reason": expected["reason"], "issue": expected["issue"]}
    return {"value": expected["value"], "repairs": sorted(expected.get("repairs", []))}
