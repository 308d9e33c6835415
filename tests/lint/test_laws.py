"""Invariants of fixes on any blueprint: they terminate, add no findings, break nothing, and change nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flujo_aros.blueprint.document import parse_document
from flujo_aros.blueprint.load import inspect_blueprint
from flujo_aros.lint import Applicability, Finding, Options, lint_text
from flujo_aros.lint.check import MARK
from flujo_aros.lint.edits import Positions

from .given import blueprints
from .literate import load_cases

CASES = [case.text for case in load_cases()]
PIECES = [
    *(
        "",
        "",
        " ",
        "\n",
        "null",
        "[]",
        "{}",
        "1",
        "true",
        "- ",
        ": ",
        '"',
        "*x",
        "&x ",
        "<<: ",
        "!!str ",
        "{{ previous_step }}",
    ),
    *(
        "enum: [1]",
        "anyOf: 3",
        "properties: []",
        "required: x",
        "minLength: x",
        "stages: [3]",
        "agents.typed",
        "type: [1]",
    ),
]
LEVELS = (Applicability.SAFE, Applicability.UNSAFE)
law = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def fixed(text: str, level: Applicability) -> str:
    return lint_text(text, options=Options(fix=level)).text


def loads(text: str) -> bool:
    return not inspect_blueprint(text.removeprefix(MARK), allow=["*"]).findings


def counted(findings: Iterable[Finding]) -> Counter[tuple[str, str]]:
    return Counter((each.code, each.message) for each in findings)


@law
@given(blueprints())
def test_fixing_is_idempotent_and_the_result_loads(text: str) -> None:
    """A second run changes nothing, and a blueprint that loaded still loads."""
    assert loads(text), inspect_blueprint(text.removeprefix(MARK), allow=["*"]).findings
    for level in LEVELS:
        after = fixed(text, level)
        assert fixed(after, level) == after
        assert loads(after)


@law
@given(blueprints())
def test_a_fix_adds_no_finding(text: str) -> None:
    """Every finding after the fixes existed before, and the fixed ones are gone."""
    before = counted(lint_text(text).findings)
    for level in LEVELS:
        after = lint_text(fixed(text, level)).findings
        new, gone = (Counter(code for code, _ in each) for each in (counted(after) - before, before - counted(after)))
        assert set(new) <= {"V-O3", "V-R3"}
        assert new["V-R3"] <= gone["V-T5"]
        assert not [each for each in after if each.fix and each.fix.edits and each.fix.applicability >= level]


@law
@given(blueprints())
def test_lines_without_a_fix_stay_as_they_are(text: str) -> None:
    """Every line without an edit is in the result, byte for byte and in the same order."""
    for level in LEVELS:
        touched = touched_lines(text, level)
        rest = [line for number, line in enumerate(lines_of(text), start=1) if number not in touched]
        after = iter(lines_of(fixed(text, level)))
        assert all(any(line == other for other in after) for line in rest)


@law
@given(blueprints())
def test_line_ends_and_byte_order_mark_stay(text: str) -> None:
    """A file with CRLF gets no bare line feed, and the end of the file does not change."""
    for level in LEVELS:
        after = fixed(text, level)
        assert after.startswith(MARK) == text.startswith(MARK)
        assert ("\n" in after.replace("\r\n", "")) == ("\n" in text.replace("\r\n", ""))
        assert after.endswith("\n") == text.endswith("\n")


@law
@given(blueprints())
def test_safe_fixes_change_only_the_intended_text(text: str) -> None:
    """As data, the blueprint differs only in the keys that safe fixes write."""
    before = parse_document(text.removeprefix(MARK), "before").plain()
    after = parse_document(fixed(text, Applicability.SAFE).removeprefix(MARK), "after").plain()
    assert without_fixes(after) == without_fixes(before)


@law
@given(blueprints())
def test_every_finding_points_at_text(text: str) -> None:
    """The span of a finding is not empty, and lies in the text and in the step that it names."""
    body = text.removeprefix(MARK)
    positions = Positions(body)
    steps = {step.name: step.node for step in inspect_blueprint(body, allow=["*"]).steps}
    for each in lint_text(text).findings:
        start, end = positions.offset(each.place), positions.offset(each.end)
        assert body[start:end].strip()
        assert positions.place(start) == positions.place(positions.offset(each.place))
        if each.step is not None and each.code != "V-O3":
            node = steps[each.step]
            assert positions.offset(node.place) <= start < end <= positions.offset(node.end)


def touched_lines(text: str, level: Applicability) -> set[int]:
    """Return the lines that edits of the first round may touch, including places that they only inspect."""
    body = text.removeprefix(MARK)
    positions = Positions(body)
    findings = [each for each in lint_text(text).findings if applies(each, level)]
    offsets = [at for each in findings if each.fix for edit in each.fix.edits for at in (edit.start, edit.end)]
    return {positions.place(at).line for at in offsets}


def applies(finding: Finding, level: Applicability) -> bool:
    return finding.fix is not None and finding.fix.applicability >= level


def lines_of(text: str) -> list[str]:
    return text.removeprefix(MARK).split("\n")


FIXED_KEYS = ("structured_output", "mergeable_output", "updates_context")


def is_wrapper(step: object) -> bool:
    """Return whether this is the step that V-C1 inserts after one whose output cannot be merged."""
    return isinstance(step, dict) and step.get("uses") == "flujo.builtins.wrap_dict" and "params" in step


def without_fixes(value: object) -> object:
    """Return the data without the changes of safe fixes."""
    if isinstance(value, list):
        return [without_fixes(each) for each in value if not is_wrapper(each)]
    if not isinstance(value, dict):
        return value.replace("previous_step.output", "previous_step") if isinstance(value, str) else value
    kept = {key: without_fixes(each) for key, each in value.items() if key not in FIXED_KEYS}
    return {key: each for key, each in kept.items() if key != "processing" or each not in (None, {})}


@law
@given(st.data())
def test_no_text_crashes_the_linter(data: st.DataObject) -> None:
    """Mutated cases of all rules yield findings or none, and fixes terminate."""
    text = data.draw(st.sampled_from(CASES))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        end = at + data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[end:]
    linted = lint_text(text, options=Options(fix=Applicability.UNSAFE))
    if loads(text):
        assert loads(linted.text)
        assert fixed(linted.text, Applicability.UNSAFE) == linted.text
