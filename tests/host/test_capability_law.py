"""An invariant of `Aros` on a pydantic-ai agent: what succeeds without it succeeds equally with it."""

import json

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent

from flujo_aros import Aros
from flujo_aros.contract import compile_contract
from flujo_aros.recovery.fidelity import blanks_in

from .scripted import Script
from .test_capability import MODES, Item, run, written

# Without control characters and backslashes: valid JSON with escapes such as `\frac` is guarded on purpose.
NAMES = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\\"), max_size=20)


@st.composite
def valid_replies(draw):
    """Generate replies that pydantic-ai accepts: any JSON layout, any order of keys, escaped or not."""
    value = {"name": draw(NAMES), "qty": draw(st.integers(-(10**9), 10**9)), "note": draw(st.none() | NAMES)}
    if value["note"] is None and draw(st.booleans()):
        del value["note"]
    # An unfilled template is refused on purpose, and Hypothesis also draws texts of the source, such as `<tool_call>`.
    assume(blanks_in(value, compile_contract(Item)) is None)
    keys = draw(st.permutations(list(value)))
    indent, ascii_only = draw(st.sampled_from([None, 0, 2])), draw(st.booleans())
    return json.dumps({key: value[key] for key in keys}, indent=indent, ensure_ascii=ascii_only)


@settings(max_examples=40)
@given(valid_replies(), st.sampled_from(sorted(MODES)))
def test_successful_outputs_are_the_same_with_aros(text, mode):
    seen = []
    for capabilities in ([], [Aros()]):
        script = Script(written(mode, text))
        result, _ = run(Agent(script.model, output_type=MODES[mode](Item), capabilities=capabilities))
        history = [(message.kind, [type(part) for part in message.parts]) for message in result.all_messages()]
        content = [getattr(part, "args", getattr(part, "content", None)) for part in result.all_messages()[1].parts]
        seen.append((result.output, script.calls, history, content))
    assert seen[0] == seen[1]
