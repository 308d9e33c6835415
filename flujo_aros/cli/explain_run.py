"""`aros explain`: why a recorded run ended as it did, step by step and stage by stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding

from flujo_aros.cli.arguments import RunArgument, open_to_read
from flujo_aros.cli.render import reply_parts
from flujo_aros.cli.screen import STYLES, Text, stdout_console, worded
from flujo_aros.errors import UsageError
from flujo_aros.outcome import Reason
from flujo_aros.telemetry.formatting import clipped, counted, next_words, time_words, token_words
from flujo_aros.telemetry.reply import ShownReply

if TYPE_CHECKING:  # the command imports it when it runs: `aros --help` need not load a database
    from flujo_aros.telemetry.records import Chapter, JournalAsk, Part, Story

_INDENT = 2
_FAULT = 300
_REPLY = 400


def explain_run_command(
    run: RunArgument = "last",
    step: Annotated[
        str | None, typer.Argument(metavar="STEP", show_default=False, help="Only this step, such as `reply`.")
    ] = None,
) -> None:
    """Explain how each reply of a run was read.

    Shows what was repaired, and why each stage of the ladder ran or did not.

    Replies are shown with their repairs marked; secrets in them are masked.

    Example: aros explain last triage
    """
    with open_to_read() as journal:
        story = journal.story(run)
    console = stdout_console()
    for number, chapter in enumerate(chosen(story, step)):
        if number:
            console.print()
        _explain(chapter, story, console)


def chosen(story: Story, step: str | None) -> list[Chapter]:
    """The steps to explain: this one and those inside it, or all. The last part of a name is enough if only one step
    has it. Raises `UsageError` if there is no such step, or more than one.
    """
    names = list(dict.fromkeys(chapter.name for chapter in story.chapters if chapter.name))
    if step is None:
        found = list(story.chapters)
    else:
        ending = [name for name in names if name.endswith(f"/{step}")]
        if step not in names and len(ending) > 1:
            raise UsageError(f"run {story.run.run_id} has more than one step {step!r}: {', '.join(ending)}")
        full = ending[0] if ending and step not in names else step
        found = [chapter for chapter in story.chapters if chapter.name == full or chapter.name.startswith(f"{full}/")]
    if not found and step is not None:
        raise UsageError(f"run {story.run.run_id} has no step {step!r}; it has: {', '.join(names) or 'none'}")
    if not found:
        raise UsageError(f"run {story.run.run_id} has no steps: it {story.run.status} before the first")
    return found


_LOST: Final = "The process ended before this step did; its last actions were not recorded."


def _explain(chapter: Chapter, story: Story, console: Console) -> None:
    console.print(_title(chapter, story), soft_wrap=True)
    if not chapter.parts:
        nested = any(story.children(chapter.step.id if chapter.step else 0))
        lost = chapter.step is not None and chapter.step.status == "lost"
        words = "" if nested else _LOST if lost else "No model was called."
        if words:
            _print_indented(Text(words), console)
    for line in _values(chapter):
        _print_indented(line, console)
    running = {stage.stage for stage in chapter.stages if stage.outcome != "passed"}
    for part in chapter.parts:
        depth = 1 + (not hasattr(part, "because") and part.stage in running)
        for shown in _part(part, console.width - depth * _INDENT):
            _print_indented(shown, console, depth)
    for line in _ending(chapter):
        _print_indented(line, console)


def _print_indented(part: RenderableType, console: Console, depth: int = 1) -> None:
    console.print(Padding(part, (0, 0, 0, depth * _INDENT), expand=False))


def _values(chapter: Chapter) -> Iterator[Text]:
    """The argument of a function, and the output of a step without a reading."""
    step = chapter.step
    for name, value in () if step is None else (("input", step.input), ("output", step.output)):
        if value is not None:
            yield Text.assemble((f"{name}: ", "bold"), clipped(value, _REPLY))


def _title(chapter: Chapter, story: Story) -> Text:
    step = chapter.step
    if step is None:
        return Text.assemble((story.run.pipeline, "bold"), ": ", worded(story.run.status))
    worth = f", trust {step.trust}" if step.trust and step.trust != step.status else ""
    worth += f", input trust {step.input_trust}" if step.input_trust not in (None, "clean") else ""
    spent = f", {counted(step.usage.requests, 'call')}" if step.usage.requests else ""
    return Text.assemble((step.name, "bold"), ": ", worded(step.status), f"{worth}{spent}, {time_words(step.seconds)}")


def _ending(chapter: Chapter) -> Iterator[Text]:
    step = chapter.step
    if step is not None and step.error:
        yield Text(step.error, style=STYLES.get(step.status, ""))
    if step is not None and step.reason and step.reason in {reason.value for reason in Reason}:
        issues = chapter.readings[-1].issues if chapter.readings else ()
        yield Text(next_words(Reason(step.reason), issues), style="dim")


def _part(part: Part, width: int) -> Iterator[RenderableType]:
    from flujo_aros.telemetry.records import JournalAsk, JournalReading

    if isinstance(part, JournalAsk):
        if part.prompt:
            yield Text.assemble(("asked: ", "bold"), clipped(part.prompt, _REPLY))
        yield _ask_words(part)
    elif isinstance(part, JournalReading):
        reply = ShownReply.of_reading(part)
        yield Text.assemble("read as ", worded(reply.outcome), f": {reply.words}")
        yield from reply_parts(reply, width)
    elif part.outcome == "passed":
        yield Text.assemble((part.stage, "bold"), f" did not run: {part.why}")
    else:
        after = f", after {counted(part.calls, 'call')}" if part.calls else ""
        cause = "the provider failed" if part.because == Reason.PROVIDER else f"the reply was {part.because}"
        why = f" ran because {cause}" if part.because else " ran"
        yield Text.assemble((part.stage, "bold"), f"{why}; it ended {part.outcome}{after}")


def _ask_words(ask: JournalAsk) -> Text:
    who = ask.model or "the model"
    if ask.fault:
        return Text.assemble(f"{who} did not answer: ", (clipped(ask.fault, _FAULT), "red"))
    if ask.seconds is None:
        return Text(f"{who} was called and had not answered when the run ended")
    grammar = ", with the schema enforced" if ask.constrained else ""
    end = f", finish reason {ask.finish_reason}" if ask.finish_reason else ""
    return Text(f"{who} answered in {time_words(ask.seconds)}, {token_words(ask.usage)} tokens{grammar}{end}")
