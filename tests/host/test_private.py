"""A secret known to a run never occurs in a repair prompt, however short, and is restored in the value."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr
from pydantic_ai import Agent, PromptedOutput

from flujo_aros import Aros, Ladder, LlmRepair, Processing, Runner, Step, observing
from flujo_aros.events import AgentStarted, Event
from flujo_aros.redaction import Vault, labelled_values, secrets_among
from flujo_aros.testing import ScriptedModel

REPAIR = Ladder(stages=(LlmRepair(),))


class Note(BaseModel):
    note: str
    qty: int


class Store(BaseModel):
    api_key: str
    region: str = "eu-west"


@dataclasses.dataclass
class Deps:
    store: Any = None
    password: str = ""
    pin: SecretStr | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])


class Client:
    def __init__(self, token: str) -> None:
        self.access_token = token


# (where it stands, the deps, the prompt, the model settings, the secret)
AT_HAND: dict[str, tuple[Any, str, dict[str, Any], str]] = {
    "a field of deps": (Deps(None, "hunter2"), "Go.", {}, "hunter2"),
    "a secret type": (Deps(pin=SecretStr("4711x")), "Go.", {}, "4711x"),
    "a model in deps": (Deps(store=Store(api_key="k-77-ab")), "Go.", {}, "k-77-ab"),
    "a mapping in deps": (Deps(settings={"db": {"DB_PASSWORD": "swordfish"}}), "Go.", {}, "swordfish"),
    "a list in deps": ({"api_keys": [], "access_token": ["zz-1234"]}, "Go.", {}, "zz-1234"),
    "an object": (Client("t0p4"), "Go.", {}, "t0p4"),
    "camel case": ({"clientSecret": "s3same"}, "Go.", {}, "s3same"),
    "a header": (None, "Go.", {"extra_headers": {"Authorization": "Token abc12xyz"}}, "abc12xyz"),
    "the prompt": (None, "The password: opensesame. Go.", {}, "opensesame"),
    "the prompt, as JSON": (None, 'With {"api_key": "aa-bb-cc"} go.', {}, "aa-bb-cc"),
    "the prompt, in a sentence": (None, "Your access token is q1w2e3. Go.", {}, "q1w2e3"),
    "the prompt, as a variable": (None, "export STRIPE_SECRET_KEY=whsec9\nGo.", {}, "whsec9"),
}
IN_REPLY = {
    "password: hunter2": "hunter2",
    '{"password": "hun ter2"}': "hun ter2",
    "{'api_key': 'abc12'}": "abc12",
    "**Passphrase:** opensesame": "opensesame",
    "Authorization: Bearer a.b.c1": "a.b.c1",
    "PIN: 0042": "0042",
    "client_secret=zz-9z": "zz-9z",
    "the token is 9f8e7d": "9f8e7d",
}


def test_there_are_twenty_secrets() -> None:
    assert len(AT_HAND) + len(IN_REPLY) == 20


@pytest.mark.parametrize("where", AT_HAND)
def test_a_known_secret_is_in_no_repair_prompt(where: str) -> None:
    deps, prompt, settings, secret = AT_HAND[where]
    broken = json.dumps({"note": f"it is {secret}, indeed", "qty": "it is 3"})
    model = ScriptedModel(broken, '{"note": "it is [secret-1], indeed", "qty": 3}')
    agent: Any = Agent(model, output_type=PromptedOutput(Note), deps_type=object, capabilities=[Aros(ladder=REPAIR)])
    result = asyncio.run(agent.run(prompt, deps=deps, model_settings=settings))
    asked = model.asked[1].prompt + model.asked[1].instructions
    assert secret not in asked
    assert "it is [secret-1], indeed" in asked
    assert result.output == Note(note=f"it is {secret}, indeed", qty=3)


@pytest.mark.parametrize("words", IN_REPLY)
def test_a_labelled_secret_in_a_reply_is_not_sent_in_a_repair_prompt(words: str) -> None:
    secret = IN_REPLY[words]
    model = ScriptedModel(json.dumps({"note": words, "qty": "it is 3"}), then="CANNOT_REPAIR")
    agent = Agent(model, output_type=PromptedOutput(Note), capabilities=[Aros(ladder=REPAIR)])
    with pytest.raises(Exception, match="no value"):
        asyncio.run(agent.run("Go."))
    repairs = [asked.prompt for asked in model.asked if "OUTPUT" in asked.prompt]
    assert repairs
    assert not any(secret in prompt for prompt in repairs)
    assert any("[secret-1]" in prompt for prompt in repairs)


@pytest.mark.parametrize("where", ["context", "input"])
def test_a_secret_of_a_pipeline_leaves_with_no_repair_prompt(where: str) -> None:
    model = ScriptedModel(
        '{"note": "sk-test-000 was given", "qty": "it is 1"}', '{"note": "[secret-1] was given", "qty": 1}'
    )
    step = Step("s", agent=Agent(model), contract=Note, input="Go.", processing=Processing(stages=("llm_repair",)))
    secret = {"api_key": "sk-test-000"}
    result = Runner(step).run_sync(secret if where == "input" else "x", secret if where == "context" else None)
    assert result.output == Note(note="sk-test-000 was given", qty=1)
    assert "sk-test-000" not in model.asked[1].prompt


def test_a_secret_of_the_environment_leaves_with_no_repair_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_TOKEN", "correct-horse")
    model = ScriptedModel('{"note": "correct-horse", "qty": "it is 3"}', '{"note": "[secret-1]", "qty": 3}')
    agent = Agent(model, output_type=PromptedOutput(Note), capabilities=[Aros(ladder=REPAIR)])
    assert asyncio.run(agent.run("Go.")).output.note == "correct-horse"
    assert "correct-horse" not in model.asked[1].prompt


@pytest.mark.parametrize(
    "text",
    [
        '{"key": "colour", "value": "red"}',
        "primary_key: id",
        "max_tokens: 500",
        "the password is required",
        "password: null",
        '"password": {"type": "string"}',
        "api_key: <your key>",
        "secretary: Bob",
        "password: ********",
        "The key: we must go",
    ],
)
def test_ordinary_text_is_not_masked(text: str) -> None:
    assert labelled_values(text) == ()
    assert Vault(text, labelled=True).hide(text) == text


@pytest.mark.parametrize("first", [True, False])
def test_a_long_list_next_to_a_secret_does_not_prevent_masking(*, first: bool) -> None:
    """Named values are searched before the items of lists."""
    rows, own = {"rows": [{"n": n} for n in range(20_000)]}, {"db": {"password": "hunter2"}}
    assert secrets_among({**own, **rows} if first else {**rows, **own}) == ("hunter2",)


def test_names_without_meaning_hide_nothing() -> None:
    plain = {"sort_key": "name", "token_count": "1200", "password": "", "monkey": "banana1", "api_key": None}
    assert secrets_among(plain) == ()


def test_a_short_secret_is_hidden_as_a_word_only() -> None:
    text = "pin: 1234, in all 12345, and \\n1234 once more"
    assert Vault(text, labelled=True).hide(text) == "pin: [secret-1], in all 12345, and \\n[secret-1] once more"


def test_a_secret_is_hidden_wherever_else_it_occurs() -> None:
    text = "password: hunter2. I wrote hunter2 to Ann, and hunter2hunter2."
    vault = Vault(text, labelled=True)
    assert "hunter2" not in vault.hide(text)
    assert vault.hide("'hunter2' is too short") == "'[secret-1]' is too short"
    assert vault.restore(vault.hide(text)) == text


@pytest.mark.parametrize(
    ("deps", "settings", "secrets"),
    [
        (Deps(password="hunter-22-key"), None, ("hunter-22-key",)),  # noqa: S106 (planted)
        (None, {"extra_headers": {"X-Api-Key": "k-9-and-8"}}, ("k-9-and-8",)),
        (None, None, ()),
    ],
)
def test_observers_receive_the_secrets_of_a_run(deps: Any, settings: Any, secrets: tuple[str, ...]) -> None:
    heard: list[AgentStarted] = []

    def hear(event: Event) -> None:
        if isinstance(event, AgentStarted):
            heard.append(event)

    agent: Agent[Any, str] = Agent(ScriptedModel("Hello."), model_settings=settings, capabilities=[Aros()])
    with observing(hear):
        asyncio.run(agent.run("Go.", deps=deps))
    assert [event.secrets for event in heard] == [secrets]
