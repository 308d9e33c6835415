"""The base class of rules, and a blueprint as the rules see it.

A rule has a code, a name, a severity, documentation and a check. A blueprint has its text, its tree, its steps, their
effective options, and the facts known before a run about the values of the steps and their readers.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from flujo_aros.blueprint.blocks import BLOCKS
from flujo_aros.blueprint.dialect import BODY_KEYS, OTHER_KEYS
from flujo_aros.blueprint.document import MAX_FINDINGS, Node
from flujo_aros.blueprint.load import Inspected, inspect_blueprint
from flujo_aros.blueprint.loading import Located, member
from flujo_aros.blueprint.references import NO_AGENT, Unready
from flujo_aros.configured import hints_of
from flujo_aros.contract import JsonSchema, compile_schema
from flujo_aros.errors import Code, ContractError, Place, Problem, TemplateError
from flujo_aros.json_data import follow_refs, is_dict
from flujo_aros.lint.edits import Applicability, Edit, Editor, Finding, Fix, Positions, Severity, apply_edits
from flujo_aros.pipeline.condition import Condition
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.names import OUTPUT_NAMES, ROOTS, VARIABLES, Read, is_input
from flujo_aros.pipeline.step import Call, Facts, Step, is_agent_step, keys_besides, stored_contract
from flujo_aros.pipeline.template import InputTemplate, names_in
from flujo_aros.spelling import only_near

SECTIONS: Final = ("What it does", "Why is this bad", "Example", "Use instead", "Fix safety")
"""The headings in the documentation of every rule, in this order."""

_SUGGESTS_A_NAME: Final = (
    "If a known name is similar, the fix uses it. Only you know whether that name was meant, so the fix is unsafe."
)
_SUGGESTS_A_WORD: Final = (
    "If a known name is similar, the fix uses it. It is safe if nothing else can be meant: exactly one keyword "
    "is similar, or another tool's term has exactly one counterpart here, and the surrounding part then loads. "
    "Otherwise only you know whether that name was meant, and the fix is unsafe."
)
_NO_FIX: Final = "There is no fix: only you know what was meant."


class Rule(ABC):
    """A kind of problem in a blueprint. The docstring of a rule is its documentation.

    Its first line is the summary; then come the sections of `SECTIONS`, each as `## Heading`. A rule is named after the
    pattern that it finds, never after the fix.
    """

    code: ClassVar[str] = ""
    name: ClassVar[str]
    """The name of the class in words: `unused-output`."""
    severity: ClassVar[Severity]
    fixable: ClassVar[Applicability | None] = None
    """The safety of the rule's best fix, or None if it has no fix."""
    safety: ClassVar[str]
    """The section `Fix safety` of a rule whose docstring has none."""

    def __init_subclass__(
        cls,
        *,
        code: str = "",
        severity: Severity = Severity.WARNING,
        fixable: Applicability | None = None,
        suggests_name: Applicability | None = None,
    ) -> None:
        super().__init_subclass__()
        cls.code, cls.severity = code, severity
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
        cls.fixable = suggests_name or fixable
        words = {Applicability.UNSAFE: _SUGGESTS_A_NAME, Applicability.SAFE: _SUGGESTS_A_WORD}
        cls.safety = words[suggests_name] if suggests_name is not None else _NO_FIX

    @abstractmethod
    def check(self, subject: Subject) -> Iterator[Finding]:
        """Return every finding in one blueprint."""

    @classmethod
    def docs(cls) -> str:
        """Return the documentation in Markdown."""
        written = inspect.cleandoc(cls.__doc__ or "")
        if f"## {SECTIONS[-1]}" in written:
            return written
        return f"{written}\n\n## {SECTIONS[-1]}\n\n{cls.safety}"

    @classmethod
    def headline(cls) -> str:
        """Return the first line of the documentation."""
        return cls.docs().partition("\n")[0]

    @classmethod
    def sections(cls) -> Mapping[str, str]:
        """Return the documentation by heading."""
        parts = re.split(r"^## (.+)$", cls.docs(), flags=re.M)
        return {head.strip(): body.strip() for head, body in zip(parts[1::2], parts[2::2], strict=True)}

    def finding(
        self,
        message: str,
        span: tuple[Place, Place],
        *,
        step: str | None = None,
        fix: Fix | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """Return a finding of this rule. `{step}` in the message stands for the name of the step."""
        words = message.replace("{step}", f"step {step!r}")
        return Finding(self.code, severity or self.severity, words, span[0], span[1], step, fix, advice=message)


def span_of(node: Node) -> tuple[Place, Place]:
    """Return the span of a value, from its first to its last character."""
    return node.place, node.end


def key_span(mapping: Node, name: str) -> tuple[Place, Place]:
    """Return the span of a key of a mapping."""
    place = mapping.keys[name]
    return place, Place(place.line, place.column + len(name), place.path)


def fix_of(title: str, edits: Iterable[Edit | None], applicability: Applicability = Applicability.SAFE) -> Fix | None:
    """Return a fix with these edits, or None if one of them is not possible."""
    made = tuple(edits)
    sound = tuple(sorted(edit for edit in made if edit is not None))
    return Fix(title, sound, applicability) if sound and len(sound) == len(made) else None


def rule_to_markdown(rule: type[Rule]) -> str:
    """Return one rule as a page."""
    facts = [f"Severity: {rule.severity.value}", f"Name: `{rule.name}`"]
    facts.append(f"Fix: {rule.fixable.word}" if rule.fixable is not None else "Fix: none")
    body = rule.docs().partition("\n")[2].strip()
    return f"# {rule.code}: {rule.headline()}\n\n{' · '.join(facts)}\n\n{body}\n"


def rule_to_json(rule: type[Rule]) -> dict[str, Any]:
    """Return one rule as plain JSON."""
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "fix": None if rule.fixable is None else rule.fixable.word,
        "summary": rule.headline(),
        "docs": dict(rule.sections()),
    }


_LAST_INDEX: Final = re.compile(r"\[(\d+)\]$")


class _Placed(NamedTuple):
    """The position of a step: its outer step, its list and its index there, and its nested steps."""

    holder: Located | None
    row: list[Located]
    at: int
    children: list[Located]


@dataclass(frozen=True)
class Outline:
    """All steps of one blueprint, including nested ones, in the order of the text."""

    steps: tuple[Located, ...]

    @cached_property
    def _places(self) -> Mapping[str, _Placed]:
        """The position of each step, by its path."""
        by_path = {step.path: step for step in self.steps}
        rows: dict[str, list[Located]] = {}
        found: dict[str, _Placed] = {}
        for step in self.steps:
            path = sequence_of(step)
            row = rows.setdefault(path, [])
            while "." in path and (path := path.rpartition(".")[0]) not in by_path:
                pass
            found[step.path] = _Placed(by_path.get(path), row, len(row), [])
            row.append(step)
        for step in self.steps:
            holder = found[step.path].holder
            if holder is not None:
                found[holder.path].children.append(step)
        return found

    def holder(self, step: Located) -> Located | None:
        """Return the step that this one is nested in, or None at the top."""
        return self._places[step.path].holder

    def holders(self, step: Located) -> Iterator[Located]:
        """Yield the steps around this one, innermost first."""
        here = self.holder(step)
        while here is not None:
            yield here
            here = self.holder(here)

    def role(self, step: Located) -> str:
        """Return the keys from the parent to a nested step, such as `branches.a` or `loop.body`, or an empty string at
        the top.
        """
        holder = self.holder(step)
        return sequence_of(step).removeprefix(f"{holder.path}.") if holder else ""

    def children(self, step: Located) -> Sequence[Located]:
        """Return the direct children of this step."""
        return self._places[step.path].children

    def inside(self, step: Located) -> Iterator[Located]:
        """Yield every step nested in this one, at any depth."""
        for child in self.children(step):
            yield child
            yield from self.inside(child)

    def first_inside(self, step: Located) -> Iterator[Located]:
        """Return the first step of each body of this one."""
        return (child for child in self.children(step) if self._places[child.path].at == 0)

    def following(self, step: Located) -> Located | None:
        """Return the step that runs next in the same list. A reading has none, because its outer
        step uses its value.
        """
        place = self._places[step.path]
        if sequence_of(step).endswith(".readings"):
            return None
        return place.row[place.at + 1] if place.at + 1 < len(place.row) else None

    def before(self, step: Located) -> Sequence[Located]:
        """Return the earlier steps of the same list."""
        place = self._places[step.path]
        return place.row[: place.at]


def sequence_of(step: Located) -> str:
    """Return the path of the list that contains a step; its own path if it is not in a list."""
    return _LAST_INDEX.sub("", step.path)


def index_of(step: Located) -> int | None:
    """Return the index of a step in its list, or None if it is not in a list."""
    found = _LAST_INDEX.search(step.path)
    return int(found[1]) if found else None


@dataclass(frozen=True)
class Subject:
    """The input of a rule. `folder` is the folder of imports and prompt files, or None if there is none."""

    source: str
    text: str
    inspected: Inspected
    folder: Path | None = None

    @property
    def root(self) -> Node:
        """The tree of the document."""
        return self.inspected.root

    @cached_property
    def steps(self) -> tuple[Located, ...]:
        """Every step, including nested ones, in the order of the text.

        A step whose agent could not be loaded counts as missing: nothing is known about its value, so nothing is
        reported.
        """
        return tuple(
            replace(each, step=None) if is_agent_step(each.step) and each.step.agent is NO_AGENT else each
            for each in self.inspected.steps
        )

    @cached_property
    def outline(self) -> Outline:
        """The relations between the steps."""
        return Outline(self.steps)

    @cached_property
    def positions(self) -> Positions:
        """The lines of the text."""
        return Positions(self.text)

    @cached_property
    def editor(self) -> Editor:
        """Creates edits of the text."""
        return Editor(self.positions, self.root)

    @cached_property
    def schemas(self) -> Sequence[WrittenSchema]:
        """Every valid schema of the blueprint, once: the schemas of the agents, then the schemas of the steps. The
        loader reports those that are not valid.
        """
        valid: list[WrittenSchema] = []
        places: set[tuple[int, int]] = set()
        for each in _all_schemas(self):
            place = (each.node.place.line, each.node.place.column)
            if isinstance(each.node.value, dict) and place not in places:
                places.add(place)
                with suppress(ContractError):
                    compile_schema(each.node.plain())
                    valid.append(each)
            if len(places) - len(valid) >= MAX_FINDINGS:
                break  # the loader stops here, too
        return valid

    def agent_steps(self) -> Iterator[tuple[Located, Step, Facts]]:
        """Yield every agent step that could be built, with its effective options, as the runner computes them."""
        for located in self.steps:
            if is_agent_step(located.step):
                yield located, located.step, located.step.facts

    def end_of(self, place: Place) -> Place:
        """Return the end of the key or value that begins at a position; the end of the line if none begins there."""
        found = self._ends.get((place.line, place.column))
        if found is not None:
            return found
        line = self.positions.line(place.line).rstrip()
        return Place(place.line, max(len(line) + 1, place.column), place.path)

    def keys_beside(self, place: Place) -> frozenset[str]:
        """Return the keys of the mapping that has a key at this position, or an empty set if there is no key."""
        found = self._mappings.get((place.line, place.column))
        return frozenset(found.keys) if found is not None else frozenset()

    @cached_property
    def suggested(self) -> Mapping[Problem, Fix]:
        """The fix of each loader error that suggests a name: the wrong name is replaced by the suggested one. It is
        safe if there is no other candidate, and if afterwards the enclosing mapping is complete and without errors, and
        nothing below it has a new one, except for those with such a fix.
        """
        inspected = self.inspected
        edits = {
            problem: edit
            for problem in (*inspected.findings, *inspected.warnings, *inspected.unset)
            if (edit := self._renaming(problem)) is not None
        }
        becomes = {problem: (problem.path.rpartition(".")[0], edit.text) for problem, edit in edits.items()}
        alike = Counter(becomes[problem] for problem in edits if self.keys_beside(problem.place or Place(1, 1)))
        edits = {problem: edit for problem, edit in edits.items() if alike[becomes[problem]] < 2}  # only you can choose
        sure = {problem: edit for problem, edit in edits.items() if _is_sure(problem)}
        known = {(problem.path, problem.message) for problem in inspected.findings}
        after = self._inspected_after(sure.values()) if sure else inspected
        left = (*after.findings, *(each for each in after.warnings if each.code is Code.NO_AGENT))
        open_ = [each for each in left if not _is_sure(each)]
        broken = [each.path for each in open_ if (each.path, each.message) not in known]
        lacking = {path for each in open_ for path in (each.path, each.path.rpartition(".")[0])}
        found: dict[Problem, Fix] = {}
        for problem, edit in edits.items():
            beside = problem.path.rpartition(".")[0] in lacking or any(
                _is_around(problem.path, path) for path in broken
            )
            why = ", which is safe once the other errors here are corrected" if problem in sure and beside else ""
            fix = Fix(f"Write `{edit.text}`{why}", (edit,))
            found[problem] = fix if problem in sure and not beside else fix.as_unsafe()
        return found

    def _renaming(self, problem: Problem) -> Edit | None:
        """Write the suggested name if the wrong one occurs once."""
        if problem.suggestion is None or problem.place is None:
            return None
        place, suggestion = problem.place, problem.suggestion.meant
        start, end = self.positions.offset(place), self.positions.offset(self.end_of(place))
        if problem.suggestion.whole:
            written = problem.suggestion.written
            block = None if written else self._mappings.get((place.line, place.column))
            end = end if block is None else self.positions.offset(block.end)
            text = self.text[start:end]
            if not written:  # a mapping; comments and anchors in it would be lost
                return None if {*"#&*"} & {*text} else Edit(start, end, suggestion)
            # in a block scalar, or after an anchor, the YAML value would become part of a string
            return Edit(start, end, suggestion) if text in (written, f"'{written}'", f'"{written}"') else None
        found = problem.suggestion.only_in(self.text[start:end])
        if found is None or suggestion in self.keys_beside(place):
            return None
        return Edit(start + found[0], start + found[1], suggestion)

    @cached_property
    def moved(self) -> Mapping[Problem, Fix]:
        """The fix of each unknown key that belongs elsewhere in its step: `until` and others next to `loop:` or `map:`,
        which are moved under it; `loop:` or `map:` without its `kind`; `for_each`, `as` and `do`, which become a map;
        `if`, which becomes a conditional; and the name of a step above its keys, which becomes its `name`.

        It is safe because the loader then accepts the key, and reports nothing new.
        """
        known = {(each.path, each.message) for each in self.inspected.findings}
        found: dict[Problem, Fix] = {}
        fixes = (self._moving, self._kind_of, self._repeating, self._branching, self._naming)
        for problem in self.inspected.findings:
            fix = next((made for fix_for in fixes if (made := fix_for(problem)) is not None), None)
            if fix is not None:
                left = {(each.path, each.message) for each in self._inspected_after(fix.edits).findings}
                if left < known and (problem.path, problem.message) not in left:
                    found[problem] = fix
        return found

    def _moving(self, problem: Problem) -> Fix | None:
        """Move the line of the key at this position into the mapping next to it."""
        place = problem.place or Place(1, 1)
        holder = self._mappings.get((place.line, place.column))
        key = problem.path.rpartition(".")[2]
        if holder is None or key not in holder.keys or not holder.members.keys() & {"loop", "map"}:
            return None
        hint = BODY_KEYS.get(key)
        if key in OTHER_KEYS and hint is None:  # `output` of a loop is its whole value, not a name for it
            return None
        meant = hint.suggestion.meant if hint is not None and hint.suggestion is not None else key
        into = "loop" if "loop" in holder.members else "map"
        edits = self.editor.move_line(holder, key, into, meant)
        return Fix(f"Move it under `{into}:` as `{meant}`", edits) if edits else None

    def _kind_of(self, problem: Problem) -> Fix | None:
        """Write the kind of a step that has `loop:` or `map:`."""
        place = problem.place or Place(1, 1)
        holder = self._mappings.get((place.line, place.column))
        key = problem.path.rpartition(".")[2]
        if holder is None or key not in ("loop", "map") or not holder.keys.keys().isdisjoint(("kind", "uses", "agent")):
            return None
        return fix_of(f"Write `kind: {key}`", [self.editor.add_member(holder, "kind", key, ["name"])])

    def _naming(self, problem: Problem) -> Fix | None:
        """Write the keys of a step next to its name, not below it."""
        place = problem.place or Place(1, 1)
        holder = self._mappings.get((place.line, place.column))
        key = problem.path.rpartition(".")[2]
        inner = holder.members.get(key) if holder is not None else None
        if holder is None or inner is None or inner.keys.keys().isdisjoint(("uses", "agent", "kind")):
            return None
        edits = self.editor.unwrap(holder, key)
        return Fix(f"Write `name: {key}`, and the keys of the step next to it", edits) if edits else None

    def _unnaming(self, holder: Node, named: Node, body: Node) -> tuple[Sequence[Edit], Sequence[Edit]] | None:
        """Write `item` in the body for the name that `as` gives to the element of a map, and remove the line of the
        `as`; return None if the name may mean something else, or is in a different form.
        """
        name, line = str(named.value), self.positions.starts[holder.keys["as"].line - 1]
        other = not name.isidentifier() or name in ROOTS or (name in VARIABLES and name != "item")
        if other or self.text[line : self.editor.key(holder, "as")].strip():
            return None
        if any(node.keys.keys() & _MAPS or self.editor.is_anchored(node) for node in body.walk()):
            return None  # in an inner map `item` is another element, and an alias may use an anchored value elsewhere
        end = self.positions.line_end(self.editor.end(named))
        renamed = self._renamed(body, name)
        return None if renamed is None else (renamed, [Edit(line - len(self.positions.newline), end, "")])

    def _renamed(self, body: Node, name: str) -> Sequence[Edit] | None:
        """Write `item` for a variable in the templates of a body, or return None if not every use of it is certain."""
        edits: list[Edit] = []
        for node in body.walk():
            if not isinstance(node.value, str):
                continue
            start = self.editor.start(node)
            found, plain = names_in(self.text[start : self.editor.end(node)]), names_in(node.value)
            if found is None or plain is None or [each for each, _ in found] != [each for each, _ in plain]:
                return None  # what YAML escapes is part of the template
            names = {each for each, _ in found}
            if name != "item" and "item" in names:
                return None
            if not names and re.search(rf"(?<![\w.]){name}\b", node.value):
                return None  # an expression without braces
            if name in names and start < self.editor.start(body):
                return None  # merged with `<<`
            edits += [Edit(start + at, start + at + len(name), "item") for each, at in found if each == name]
        return edits if all(self.text.startswith(name, edit.start) for edit in edits) else None

    def _repeating(self, problem: Problem) -> Fix | None:
        """Write `for_each` and `do`, or other names for them, as a map, and `until` and `do` as a loop. The name that
        `as` gives to the element of a map becomes `item`. `while` and `do` become a loop that ends if the opposite is
        true, which needs a review, since a loop evaluates its condition after its body.

        There is no fix if other keys are unknown to a step: `output` names the value there, and is the value in a loop.
        """
        place = problem.place or Place(1, 1)
        holder = self._mappings.get((place.line, place.column))
        if holder is None or holder.keys.keys() & {"loop", "map", "uses", "agent"}:
            return None
        meant = {key: hint.suggestion.meant for key, hint in BODY_KEYS.items() if hint.suggestion is not None}
        meant |= {"while": "exit_expression", "max_iterations": "max_loops"}
        for kind, over, limit in (
            ("map", "iterable_input", "max_concurrency"),
            ("loop", "exit_expression", "max_loops"),
        ):
            known = {key: meant.get(key) or only_near(key, [limit]) or key for key in holder.keys}
            under = {key: name for key, name in known.items() if name in (over, "body", limit)}
            named = holder.members.get("as") if kind == "map" else None
            taken = under.keys() | ({"as"} if named is not None else set[str]())
            if holder.keys.keys() - taken - hints_of(BLOCKS[kind]).keys():
                continue
            if problem.path.rpartition(".")[2] in taken and {over, "body"} <= {*under.values()}:
                if len({*under.values()}) < len(under):
                    return None
                row = [] if "kind" in holder.keys else [f"kind: {kind}"]
                rows = f"{self.positions.newline}{' ' * (place.column - 1)}".join([*row, f"{kind}:"])
                body = next(holder.members[key] for key, meaning in under.items() if meaning == "body")
                renaming = self._unnaming(holder, named, body) if named is not None else ((), ())
                opposite = self._negated(holder.members["while"]) if "while" in under else ()
                if renaming is None or opposite is None:
                    return None
                edits = self.editor.nest(holder, under, [rows], (*renaming[0], *opposite))
                fix = Fix(f"Write it as `kind: {kind}`", (*edits, *renaming[1]))
                return None if not edits else fix.as_unsafe() if opposite else fix
        return None

    def _negated(self, condition: Node) -> Sequence[Edit] | None:
        """Write the opposite of a condition, or return None for one in a form that cannot be replaced."""
        start, end = self.editor.start(condition), self.editor.end(condition)
        if not isinstance(condition.value, str) or self.text[start] in "|>&*!":
            return None
        text = condition.value.strip().removeprefix("{{").removesuffix("}}").strip()
        return [Edit(start, end, json.dumps(f"not ({text})", ensure_ascii=False))]

    def _branching(self, problem: Problem) -> Fix | None:
        """Write `if` or `condition`, `then` and `else` as a conditional with two branches, and a step with `if` as one
        with a branch, if the condition is true or false.

        Without `else`, the value is passed on unchanged if the condition is false, which needs a review.
        """
        place = problem.place or Place(1, 1)
        holder = self._mappings.get((place.line, place.column))
        if holder is None or problem.path.rpartition(".")[2] not in ("if", "then", "else"):
            return None
        keys, newline = holder.keys.keys(), f"{self.positions.newline}{' ' * (place.column - 1)}"
        conditions = [key for key in ("if", "condition", "condition_expression") if key in keys]
        if len(conditions) != 1 or "branches" in keys or not is_truth(str(holder.members[conditions[0]].value)):
            return None
        nothing = "default_branch: [{name: otherwise, uses: passthrough}]"
        whole, added = "else" in keys, [] if "kind" in keys else ["kind: conditional"]
        if "then" in keys:
            edits = self.editor.nest(holder, {"then": '"true"', "else": '"false"'}, ["branches:"])
            added += [] if whole else [nothing]
        elif conditions == ["if"] and "name" in keys and keys & {"uses", "agent"} and not keys & {"kind", "else"}:
            name = holder.members["name"]
            named = f"name: {self.text[self.editor.start(name) : self.editor.end(name)]}"
            inner = {key: key for key in keys if key not in ("name", "if")}
            edits = self.editor.nest(holder, inner, ["branches:", '"true":', named])
            added += [nothing]
        else:
            return None
        start = self.editor.key(holder, conditions[0])
        key = newline.join([*added, "condition_expression"])
        renaming = Edit(start, start + len(conditions[0]), key)
        fix = Fix("Write it as `kind: conditional` with `branches`", (renaming, *edits))
        return None if not edits else fix if whole else fix.as_unsafe()

    def _inspected_after(self, edits: Iterable[Edit]) -> Inspected:
        """Return what the loader knows about the blueprint after these edits."""
        text = apply_edits(self.text, set(edits))
        return inspect_blueprint(text, source=self.source, folder=self.folder, allow=["*"])

    @cached_property
    def _mappings(self) -> dict[tuple[int, int], Node]:
        """The mapping of each key, by the position of the key."""
        found: dict[tuple[int, int], Node] = {}
        for node in self.root.walk():
            for each in node.keys.values():
                found.setdefault((each.line, each.column), node)
        return found

    def step_at(self, place: Place) -> str | None:
        """Return the full name of the innermost step that contains a position."""
        here = (place.line, place.column)
        for index in reversed(range(bisect_right(self._starts, here))):
            end = self.steps[index].node.end
            if here <= (end.line, end.column):
                return self.steps[index].name
        return None

    @cached_property
    def _starts(self) -> list[tuple[int, int]]:
        """The beginnings of the steps, in the order of the text."""
        return [(located.node.place.line, located.node.place.column) for located in self.steps]

    @cached_property
    def _ends(self) -> dict[tuple[int, int], Place]:
        return self.root.ends()

    def sequence_node(self, located: Located) -> tuple[Node, int] | None:
        """Return the list that contains a step and its index, or None if it is not in a list."""
        holders = self._lists.get(id(located.node))
        index = index_of(located)
        return (holders, index) if holders is not None and index is not None else None

    @cached_property
    def _lists(self) -> dict[int, Node]:
        """The list that contains each value."""
        return {id(each): node for node in self.root.walk() for each in node.elements}


_MAPS: Final = frozenset({"as", "map", *(key for key, hint in BODY_KEYS.items() if "iterable_input" in hint)})


def _is_sure(problem: Problem) -> bool:
    """Return whether the suggestion is the only candidate. A common name for the input refers to the input only in the
    first step; in a later one it may refer to the value of any step.
    """
    found = problem.suggestion
    if found is None or not found.sure:
        return False
    is_key = problem.path.endswith(f".{found.written}")
    of_input = found.meant == "input" and is_input(found.written) and not is_key
    return not of_input or problem.path.startswith("steps[0].")


def is_truth(source: str) -> bool:
    """Return whether an expression can only be true or false."""
    text = source.strip().removeprefix("{{").removesuffix("}}").strip()
    try:
        tree = ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return _truth(tree)


def _truth(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        return all(_truth(value) for value in node.values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("startswith", "endswith")
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _is_around(path: str, other: str) -> bool:
    """Return whether a path is in the mapping that contains the key at the first path."""
    around = path.rpartition(".")[0]
    return other == around or other.startswith((f"{around}.", f"{around}[")) or not around


@dataclass(frozen=True, slots=True)
class WrittenSchema:
    """One schema: its position, its owner in words (`{step}` for a step), and the step to which it belongs, if any."""

    node: Node
    owner: str
    step: str | None = None


_ELSEWHERE: Final = frozenset({"from", "from_file"})
"""Keys that refer to a schema instead of containing it."""


def _all_schemas(subject: Subject) -> Iterator[WrittenSchema]:
    """Yield every schema in the blueprint itself; one in a separate file has no position in it."""
    for name, agent in subject.inspected.agents.items():
        if "output_schema" in agent.members and not _ELSEWHERE & agent.members["output_schema"].members.keys():
            yield WrittenSchema(agent.members["output_schema"], f"agent {name!r}")
    for located in subject.steps:
        for keys in (("output_schema",), ("processing", "schema"), ("agent", "output_schema")):
            found = member(located.node, *keys)
            if found is not None and not _ELSEWHERE & found.members.keys():
                yield WrittenSchema(found, "{step}", located.name)


def template_nodes(subject: Subject) -> Iterator[tuple[Located, Node, InputTemplate]]:
    """Yield every template in the input of a step, with its text in the document."""
    for located in subject.steps:
        given = located.node.members.get("input")
        if given is None or located.step is None:
            continue
        compiled = {template.source: template for template in located.step.templates}
        for node in given.walk():
            is_template = isinstance(node.value, str) and "{" in node.value
            template = compiled.get(str(node.value)) if is_template else None
            if template is not None:
                yield located, node, template


@dataclass(frozen=True, slots=True)
class WrittenRead:
    """A reference in a template or an expression: the step that has it, its text, and the step whose value it reads."""

    located: Located
    node: Node
    read: Read
    writer: Located | None


def written_reads(subject: Subject) -> Iterator[WrittenRead]:
    """Yield every reference in an `input`, a condition, an exit, the list of a map, or a check."""
    for located, node, template in template_nodes(subject):
        for read in template.reads:
            yield WrittenRead(located, node, read, writer_of(subject, located, read))
    for located in subject.steps:
        before = () if "input" in located.node.members else subject.outline.before(located)
        body = [each for each in subject.outline.children(located) if subject.outline.role(each) == "loop.body"]
        checks = located.node.members.get("checks")
        places: list[tuple[Node | None, str, Sequence[Located]]] = [
            (member(located.node, "condition_expression"), "previous_step", before),
            (member(located.node, "map", "iterable_input"), "previous_step", before),
            (member(located.node, "loop", "exit_expression"), "previous_step", body),
            *((check, "output", (located,)) for check in (checks.elements if checks is not None else ())),
        ]
        for place, root, row in places:
            if place is None or not isinstance(place.value, str):
                continue
            for read in _reads_in(place.value):
                if read.root in (root, "steps"):
                    yield WrittenRead(
                        located, place, read, _writer_in(row, read) or _outer_writer(subject, located, read)
                    )


def writer_of(subject: Subject, located: Located, read: Read) -> Located | None:
    """Return the step whose value a template reads: in the same list or, by its name, around it."""
    return _writer_in(subject.outline.before(located), read) or _outer_writer(subject, located, read)


def _outer_writer(subject: Subject, located: Located, read: Read) -> Located | None:
    """Return the step of that name before a step that contains this one, innermost first."""
    if read.root != "steps":
        return None
    found = (_writer_in(subject.outline.before(holder), read) for holder in subject.outline.holders(located))
    return next((each for each in found if each is not None), None)


def _writer_in(row: Sequence[Located], read: Read) -> Located | None:
    if read.root != "steps":
        return row[-1] if row else None
    return next((each for each in row if each.step is not None and each.step.name == read.step), None)


def value_schema(subject: Subject, located: Located, read: Read) -> JsonSchema | None:
    """Return the schema of the value that is read, if it is an agent's value or a part of it."""
    writer = writer_of(subject, located, read)
    step = writer.step if writer is not None else None
    if writer is None or not is_agent_step(step) or step.on_degraded is not None or step.fallback is not None:
        return None
    return read_schema(step, read) or None


def read_schema(step: Step, read: Read) -> JsonSchema:
    """Return the schema of the value of an agent step, or of the part of it that is read; empty if it is unknown."""
    contract = step.facts.contract
    root = contract.json_schema if contract is not None and contract.mode in ("json", "tagged") else {}
    here = follow_refs(root, root)
    for part in read.path if read.root == "previous_step" else read.path[2:]:
        properties = here.get("properties")
        inner = here.get("items") if isinstance(part, int) else is_dict(properties) and properties.get(part)
        here = follow_refs(inner, root)
    return here


def text_or_schema(writer: Located | None, read: Read, key: str) -> Sequence[str] | None:
    """Return the keys of a value that cannot have this key (none for a string), or None if it may have the key."""
    step = writer.step if writer is not None else None
    if writer is None or step is None or step.fallback is not None:
        return None
    if isinstance(step, Call):
        if step.imported_agent is None and step.gives_mapping is False:
            return ()
        step = step.imported_agent
    if not is_agent_step(step):
        return None
    if read.root == "steps" and (len(read.path) < 3 or read.path[1] not in OUTPUT_NAMES):
        return None
    known = step.facts
    contract = stored_contract(step) if known.mode == "own" else known.contract
    if contract is None:
        return () if known.mode != "own" and step.completion_signal is None else None
    return keys_besides(contract, key)


_PREVIOUS: Final = ("previous_step", "output", "resume_input")
_FUNCTIONS: Final = ("condition", "exit_condition", "initial_input_mapper", "iteration_input_mapper")
_BODIES: Final = ("body", "branches", "default_branch", "wrapped_step", "fallback", "steps")


def reads_of(located: Located) -> Iterator[Read]:
    """Yield every reference in the templates and conditions of a step itself, including those of a
    loop's iterations.
    """
    yield from entry_reads(located)
    yield from iteration_reads(located)


def takes_previous(outline: Outline, located: Located) -> bool:
    """Return whether a step, or the first step of one of its bodies, reads the value right before it.

    A step that could not be built may read anything, and so may a Python function.
    """
    step = made_step(located)
    loop = located.node.members.get("loop")
    if step is None or any(key in located.node.members or (loop and key in loop.members) for key in _FUNCTIONS):
        return True
    # A parallel step passes its input to its branches, so without its own input, the branches read the value.
    if step.kind != "parallel" or "input" in located.node.members:
        own = any(read.root in _PREVIOUS for read in entry_reads(located))
        if own or step.kind in ("step", "imports", "parallel"):
            return own
    inside = outline.first_inside(located)
    return any(takes_previous(outline, first) for first in inside if outline.role(first) != "map.body")


def made_step(located: Located) -> PipelineStep | None:
    """Return the step if it was built and can run, or None. What a step that was not built reads is unknown."""
    return None if isinstance(located.step, Unready) else located.step


def entry_reads(located: Located) -> Iterator[Read]:
    """Yield the references of a step when it starts: `previous_step` is the value of the step before it."""
    for compiled in (*located.step.templates, *located.step.conditions) if located.step is not None else ():
        yield from compiled.reads
    for key in ("loop", "map"):
        began = member(located.node, key, "init")
        for text in _strings(began) if began is not None else ():
            yield from _reads_in(text)


def iteration_reads(located: Located) -> Iterator[Read]:
    """Yield the references of a loop or map after an iteration: `previous_step` is the last value of its body."""
    for key in ("loop", "map"):
        inner = located.node.members.get(key)
        for name, part in inner.members.items() if inner is not None else ():
            for text in _strings(part) if name != "init" and name not in _BODIES else ():
                yield from _reads_in(text)


def _strings(node: Node) -> Iterator[str]:
    if isinstance(node.value, str):
        yield node.value
    for name, inner in node.members.items():
        if name not in _BODIES:
            yield from _strings(inner)
    for inner in node.elements:
        yield from _strings(inner)


def _reads_in(text: str) -> Iterable[Read]:
    try:
        return InputTemplate(text).reads if "{" in text else Condition(text).reads
    except TemplateError:  # neither a template nor a condition; the loader reports what should be one
        return ()
