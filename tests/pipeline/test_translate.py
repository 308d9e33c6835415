"""flujo's own template forms: how they are translated, and that positions refer to the original."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flujo_aros import TemplateError
from flujo_aros.pipeline.model import step_outputs
from flujo_aros.pipeline.names import Read
from flujo_aros.pipeline.template import InputTemplate, translate

NAMES: dict[str, Any] = {
    "input": "a ticket",
    "previous_step": {"text": "hi", "items": ["x", "y"], "none": None},
    "steps": step_outputs({"a": {"k": "v", "result": 7}, "my step": [1, 2]}),
    "context": {"initial_prompt": "go", "empty": [], "by": {"one": 1, "two": 2}},
}


def render(source: str, **names: Any) -> str:
    return InputTemplate(source, where="input of step 'x'").text({**NAMES, **names})


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{#if previous_step.text}}yes{{/if}}", "yes"),
        ("{{#if context.missing}}yes{{/if}}", ""),
        ("{{#if context.missing.deeper}}yes{{else}}no{{/if}}", "no"),
        ("{{#if context.missing and input}}yes{{else}}no{{/if}}", "no"),
        ("{{#if context.missing == 'x'}}yes{{else}}no{{/if}}", "no"),
        ("{{#if not context.missing}}yes{{/if}}", "yes"),
        ("{{ #if input }}yes{{ /if }}", "yes"),
        ("{{#unless context.missing}}none{{/unless}}", "none"),
        ("{{#unless input or context.missing}}none{{else}}some{{/unless}}", "some"),
        ("{{#each previous_step.items}}{{this}};{{/each}}", "x;y;"),
        ("{{#each previous_step.items}}{{ loop.index }}{{ this }}{{/each}}", "1x2y"),
        ("{{#each context.missing}}{{this}}{{/each}}", ""),
        ("{{#each context.missing}}{{this}}{{else}}nobody{{/each}}", "nobody"),
        ("{{#each context.by}}{{this}}{{/each}}", "12"),
        ("{{#each previous_step.items}}{{#if this == 'x'}}!{{/if}}{{this}}{{/each}}", "!xy"),
        ("{{ context.missing or 'dflt' }}", "dflt"),
        ("{{ context.initial_prompt or 'What do you want?' }}", "go"),
        ("{{ context.a or context.b or 'c' }}", "c"),
        ("{{ context.missing | default('d') }}", "d"),
        ("{{ context.missing.deeper | default('d') }}", "d"),
        ("{{ steps.a.output.k }}", "v"),
        ("{{ steps['a'].output.k }}", "v"),
        ("{{ steps.a }}", '{"k": "v", "result": 7}'),
        ("{{ steps['my step'] }}", "[1, 2]"),
        ("{{ steps.a.result }}", '{"k": "v", "result": 7}'),
        ("{{ steps.a.value.k }}", "v"),
        ("{{ steps.a.output.result }}", "7"),
        ("{{ steps['my step'].output[0] }}", "1"),
        ("{% if previous_step.none is None %}null{% endif %}", "null"),
        ("{% if input is not None %}there{% endif %}", "there"),
        ("{{ previous_step.items | join(', ') | upper }}", "X, Y"),
        ("{{ previous_step | tojson }}", '{"text": "hi", "items": ["x", "y"], "none": null}'),
        ("{{ previous_step.items | length }}", "2"),
    ],
)
def test_a_flujo_form_has_its_documented_meaning(source: str, text: str):
    assert render(source) == text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ context.missing }}", "there is no 'missing'; known: by, empty, initial_prompt"),
        ("{{ context.initial_prmpt or contxt }}", "there is no 'contxt'; did you mean 'context'?"),
        ("{{ context.a or context.b }}", "there is no 'b'"),
        ("{{ input.output }}", "there is no 'output' in a string: write the value itself, without `.output`"),
        ("{{#each input}}{{this}}{{/each}}", "`each` iterates over a list, not a string"),
        ("{{#if contxt}}x{{/if}}", "there is no 'contxt'; did you mean 'context'?"),
        ("{{ item }}", "there is no 'item' here; it exists only inside a map"),
        ("{{ this }}", "there is no 'this' here; it exists only inside a map or {{#each}}"),
        ("{{#if input}}", "the 'if' is never closed"),
        ("line one\n{{#if input}}\n{{ context.usr }}\n{{/if}}", "line 3: there is no 'usr'"),
        ("{{#each previous_step.items}}\n\n{{ ths }}{{/each}}", "line 3: there is no 'ths'"),
    ],
)
def test_a_missing_name_is_an_error_at_its_place(source: str, message: str):
    with pytest.raises(TemplateError) as caught:
        render(source)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "source", ["{{ this }} {{ item.name }} {{ index }}", "{{ loop.iteration }}", "{{ resume_input }}"]
)
def test_the_variables_of_maps_loops_and_answers_are_known(source: str):
    variables = {"this": 1, "item": {"name": "n"}, "index": 0, "loop": {"iteration": 2}, "resume_input": "yes"}
    assert render(source, **variables)


def test_reads_report_every_consumption_with_its_place():
    source = "{{#if context.user}}\n  {{ steps['a'].output.k | upper }} {{ previous_step }}\n{{/if}}{{ steps.b }}"
    assert InputTemplate(source).reads == (
        Read("context", ("user",), source.index("context"), 1, 7),
        Read("steps", ("a", "output", "k"), source.index("steps["), 2, 6),
        Read("previous_step", (), source.index("previous_step"), 2, source.splitlines()[1].index("previous") + 1),
        Read("steps", ("b", "output"), source.index("steps.b"), 3, 11),
    )


def test_reads_hold_loop_sources_and_indexes_but_no_loop_variables():
    source = "{% for x in steps.a.output %}{{ x.y }}{{ loop.index }}{% endfor %}{{ input[context.n] }}{{ input[0] }}"
    found = {(read.root, read.path) for read in InputTemplate(source).reads}
    assert found == {("steps", ("a", "output")), ("input", ()), ("context", ("n",)), ("input", (0,))}


pieces = st.sampled_from(
    [
        "{{#if input}}",
        "{{/if}}",
        "{{else}}",
        "{{#each context.by}}",
        "{{/each}}",
        "{{this}}",
        "text ",
        "\n",
        "{{ input }}",
    ]
)


@given(st.lists(pieces, max_size=12).map("".join))
def test_each_character_of_a_translation_comes_from_its_original_place(source: str):
    translated = translate(source)
    for offset, character in enumerate(translated.text):
        origin = translated.origin(offset)
        assert 0 <= origin <= len(source)
        if character in "\nx":
            assert origin < len(source)
    if "{{#" not in source and "{{/" not in source and "{{else" not in source:
        assert translated.text == source


@given(st.lists(pieces, max_size=12).map("".join))
def test_any_mixture_of_forms_renders_or_is_a_template_error(source: str):
    try:
        InputTemplate(source).text({**NAMES, "this": "T"})
    except TemplateError as error:
        assert str(error)
