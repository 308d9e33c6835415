"""Rules about the errors of the loader, one for each kind; they report what the runner would report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from flujo_aros.errors import Code, Place
from flujo_aros.lint.edits import Applicability, Finding, Severity
from flujo_aros.lint.rule import Rule, Subject


class LoaderRule(Rule):
    """A rule whose findings are problems that the loader reports.

    Anything that prevents loading is an error, and so is a step that can never run. Anything that another version may
    run, such as a skill of flujo, is a warning, and so is anything that is ignored.
    """

    about: ClassVar[Code]
    """The kind of error that the rule reports."""
    never_runs: ClassVar[bool]
    """Whether a step with this problem can never run, even if the blueprint loads."""

    def __init_subclass__(
        cls, *, about: Code, severity: Severity = Severity.ERROR, never_runs: bool = False, **options: Any
    ) -> None:
        super().__init_subclass__(severity=severity, **options)
        cls.about, cls.never_runs = about, never_runs

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Yield every error of this kind."""
        inspected = subject.inspected
        for severity, problems in (
            (self.severity, inspected.findings),
            (self.severity if self.never_runs else Severity.WARNING, (*inspected.warnings, *inspected.unset)),
        ):
            for problem in problems:
                if problem.code is self.about:
                    place = problem.place or Place(1, 1)
                    fix = (subject.suggested.get(problem) or subject.moved.get(problem)) if self.fixable else None
                    span = (place, subject.end_of(place))
                    step = subject.step_at(place)
                    yield self.finding(problem.message, span, step=step, fix=fix, severity=severity)


class UnreadableYaml(LoaderRule, code="YAML-PARSE", about=Code.UNREADABLE):
    """The file cannot be read as YAML.

    ## What it does

    Finds files that are not valid YAML, or use YAML features that blueprints do not allow: duplicate keys, Python tags,
    more than one document, or text that is not UTF-8.

    ## Why is this bad

    Nothing else in the file can be checked.

    ## Example

    ```yaml
    steps:
      - name: greet
         uses: agents.greeter
    ```

    ## Use instead

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
    ```
    """


class ImportCycle(LoaderRule, code="V-I3", about=Code.IMPORT_CYCLE):
    """A blueprint imports itself, directly or through others.

    ## What it does

    Finds `imports` that lead back to the importing blueprint.

    ## Why is this bad

    The blueprint cannot be loaded, because the imports never end.

    ## Example

    ```yaml
    # review.yaml
    imports:
      again: ./review.yaml
    steps:
      - name: look
        uses: imports.again
    ```

    ## Use instead

    ```yaml
    # review.yaml
    steps:
      - name: look
        uses: agents.reviewer
    ```
    """


class InvalidImport(LoaderRule, code="V-I4", about=Code.INVALID_IMPORT):
    """An imported blueprint has errors.

    ## What it does

    Finds `imports` whose file cannot be loaded, with its first errors. The file itself is linted too, unless you pass
    `--no-imports`.

    ## Why is this bad

    A blueprint can be loaded only if all its imports can.

    ## Example

    ```yaml
    imports:
      review: ./review.yaml # which has errors
    steps:
      - name: look
        uses: imports.review
    ```

    ## Use instead

    ```yaml
    imports:
      review: ./review.yaml # which can be loaded
    steps:
      - name: look
        uses: imports.review
    ```
    """


class MissingImport(LoaderRule, code="V-I1", about=Code.MISSING_IMPORT):
    """An imported blueprint cannot be read.

    ## What it does

    Finds `imports` whose file does not exist, cannot be read, or is outside the folder of the blueprint.

    ## Why is this bad

    The blueprint cannot be loaded.

    ## Example

    ```yaml
    imports:
      review: ./reveiw.yaml
    steps:
      - name: look
        uses: imports.review
    ```

    ## Use instead

    ```yaml
    imports:
      review: ./review.yaml
    steps:
      - name: look
        uses: imports.review
    ```
    """


class UnknownFilter(
    LoaderRule, code="V-T3", about=Code.UNKNOWN_FILTER, suggests_name=Applicability.SAFE, never_runs=True
):
    """A template uses an unknown filter.

    ## What it does

    Finds `| name` in templates if there is no filter with that name.

    ## Why is this bad

    The run fails before it starts.

    ## Example

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
        input: "{{ input | uper }}"
    ```

    ## Use instead

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
        input: "{{ input | upper }}"
    ```
    """


class UnknownStepReference(LoaderRule, code="V-T4", about=Code.UNKNOWN_STEP, suggests_name=Applicability.UNSAFE):
    """A template refers to a step that does not exist or has not run yet.

    ## What it does

    Finds `steps.NAME` if no earlier step has that name, and `steps.NAME.key` where `steps.NAME.output.key` is meant.

    ## Why is this bad

    The blueprint cannot be loaded.

    ## Example

    ```yaml
    steps:
      - name: draft
        uses: agents.writer
      - name: review
        uses: agents.reviewer
        input: "{{ steps.drafts.output }}"
    ```

    ## Use instead

    ```yaml
    steps:
      - name: draft
        uses: agents.writer
      - name: review
        uses: agents.reviewer
        input: "{{ steps.draft.output }}"
    ```
    """


class DuplicateStepName(LoaderRule, code="V-B2", about=Code.DUPLICATE_STEP):
    """Two steps in one list have the same name.

    ## What it does

    Finds steps whose name is already used by an earlier step in the same list.

    ## Why is this bad

    `steps.NAME` could mean either, and so could a line of the run ledger. The blueprint cannot be loaded.

    ## Example

    ```yaml
    steps:
      - name: ask
        uses: agents.first
      - name: ask
        uses: agents.second
    ```

    ## Use instead

    ```yaml
    steps:
      - name: ask
        uses: agents.first
      - name: ask_again
        uses: agents.second
    ```
    """


class BrokenTemplate(LoaderRule, code="V-T2", about=Code.INVALID_TEMPLATE, suggests_name=Applicability.SAFE):
    """A template or a condition cannot be compiled.

    ## What it does

    Finds templates and expressions with an error: an unknown name, a call, or an unclosed bracket. The check is the
    same as the runner's. A warning names `{input}` with single braces, and an input such as `input.name` without any,
    which are not templates: the model sees them literally.

    ## Why is this bad

    The blueprint cannot be loaded.

    ## Example

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
        input: "Greet {{ inptu.name }}"
    ```

    ## Use instead

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
        input: "Greet {{ input.name }}"
    ```
    """


class UnknownAgent(LoaderRule, code="V-A6", about=Code.UNKNOWN_AGENT, suggests_name=Applicability.SAFE):
    """A step uses an agent, a built-in or a callable that does not exist.

    ## What it does

    Finds `uses` and `agent` that name no agent of the blueprint, no import, no built-in and no `package.module:name`.
    An unsupported skill of flujo is a warning: such a blueprint loads, but its run fails before it starts.

    ## Why is this bad

    The blueprint cannot be loaded.

    ## Example

    ```yaml
    agents:
      writer:
        model: openai:gpt-4o-mini
    steps:
      - name: draft
        uses: agents.writter
    ```

    ## Use instead

    ```yaml
    agents:
      writer:
        model: openai:gpt-4o-mini
    steps:
      - name: draft
        uses: agents.writer
    ```
    """


class StepWithoutAgent(LoaderRule, code="V-A1", about=Code.NO_AGENT, never_runs=True):
    """A step does not say what it runs.

    ## What it does

    Finds steps that load but cannot run, because they have neither `uses` nor `agent`.

    ## Why is this bad

    The run fails before it starts.

    ## Example

    ```yaml
    steps:
      - name: greet
    ```

    ## Use instead

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
    ```
    """


class IgnoredKey(LoaderRule, code="V-B3", severity=Severity.WARNING, about=Code.IGNORED):
    """A key has no effect.

    ## What it does

    Finds keys of flujo's blueprints that have no effect here, each with the reason, values that should be written
    differently, and misspelt annotations of schemas, such as `desciption`.

    ## Why is this bad

    A reader of the blueprint believes that the key does something.

    ## Example

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
        validate_fields: true
    ```

    ## Use instead

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
    ```
    """


class InvalidBlueprint(LoaderRule, code="V-B1", about=Code.INVALID, suggests_name=Applicability.SAFE):
    """The blueprint cannot be loaded.

    ## What it does

    Finds errors of the loader that no other rule explains: unknown keys, missing keys, values of the wrong kind,
    and schemas that cannot be compiled.

    ## Why is this bad

    A blueprint that cannot be loaded cannot be run. The linter uses the same loader as the runner, so it misses none of
    its errors.

    ## Example

    ```yaml
    steps:
      - name: classify
        uses: agents.classifier
        procesing:
          structured_output: openai_json
    ```

    ## Use instead

    ```yaml
    steps:
      - name: classify
        uses: agents.classifier
        processing:
          structured_output: openai_json
    ```
    """
