"""Health: rates, worst steps and models, frequent repairs, stages, and the resulting advice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flujo_aros import Call, Journal, Output, Parallel, Runner, Step
from flujo_aros.telemetry.health import Health

from .scripted import BAD, GOOD, MESSY, boat_agent, boat_step, model, pipeline


def run(journal: Journal, *steps: Any) -> None:
    Runner(pipeline(*steps), observers=[journal]).run_sync("")


def health(journal: Journal, **options: Any) -> Health:
    return journal.health(since=datetime.now(UTC) - timedelta(hours=1), **options)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    with Journal(tmp_path_factory.mktemp("health") / "runs.sqlite") as journal:
        for _ in range(6):
            run(journal, boat_step("ask", MESSY), boat_step("again", GOOD))
            run(journal, boat_step("ask", BAD, GOOD))
        run(journal, boat_step("ask", *[BAD] * 9))
        yield journal


def test_totals_and_rates(filled: Journal) -> None:
    found = health(filled)
    assert found.runs == {"completed": 12, "degraded": 1}
    assert found.steps == {"success": 18, "degraded": 1}
    assert (found.replies, found.rejected, found.repaired) == (19, 7, 6)
    assert found.rates["degraded"] == pytest.approx(1 / 19)
    assert found.usage.requests == sum(each.usage.requests for each in filled.runs(limit=None))


def test_the_worst_comes_first(filled: Journal) -> None:
    found = health(filled)
    assert [(step.step, step.degraded) for step in found.worst_steps] == [("ask", 1), ("again", 0)]
    assert [each.model for each in found.models] == ["model-ask", "model-again"]


def test_stages_say_how_often_they_saved_a_value(filled: Journal) -> None:
    stages = {stage.stage: stage for stage in health(filled).stages}
    assert (stages["llm_repair"].ran, stages["llm_repair"].accepted) == (7, 6)
    assert stages["llm_repair"].usage.requests == 7
    assert stages["degrade"].accepted == 0


def test_a_frequent_repair_is_shown_with_its_place_share_and_advice(filled: Journal) -> None:
    found = health(filled)
    repair = next(each for each in found.repairs if each.code == "string-to-number")
    assert (repair.place, repair.step, repair.model) == ("crew", "ask", "model-ask")
    assert (repair.replies, repair.of) == (6, 12)
    texts = [advice.text for advice in found.advice]
    assert any(
        text.startswith("`crew` arrives as text in 50% of the accepted replies of model model-ask") for text in texts
    )
    assert any("54% of first replies" in text and "invalid" in text for text in texts)


def test_advice_on_a_step_that_often_fails_has_its_most_frequent_error(journal: Journal) -> None:
    def price(row: str) -> str:
        if row:
            raise ValueError(row)
        return row

    for row in ("", "another", *["no price"] * 8):
        Runner(Parallel("both", {"a": Call("price", price)}), observers=[journal]).run_sync(row)
    found = health(journal)
    assert {step.step: step.failed for step in found.worst_steps} == {"both": 9, "both/a": 9, "both/a/price": 9}
    (advice,) = found.advice
    words = "step both/a/price of both has no trustworthy value in 90% of its runs, most often because of this: "
    assert advice.text.startswith(f"{words}ValueError: no price")


def test_only_one_step_or_model_may_be_looked_at(filled: Journal) -> None:
    again = health(filled, step="again")
    assert (again.runs, again.steps, again.replies) == ({"completed": 6}, {"success": 6}, 6)
    of_model = health(filled, model="model-again")
    assert (of_model.steps, of_model.usage.requests) == ({"success": 6}, 6)


def test_the_trend_adds_up_to_the_total(filled: Journal) -> None:
    found = health(filled, trend=4)
    assert len(found.trend) == 4
    assert sum(piece.runs for piece in found.trend) == 13
    assert sum(piece.rejected for piece in found.trend) == found.rejected


def test_wrapped_prose_is_counted_in_the_fallback_rate_and_its_threshold(journal: Journal) -> None:
    contract = Output.event(["say", "vote"])
    for number in range(12):
        reply = "I would rather talk." if number % 4 == 0 else '{"kind": "say", "text": "hello"}'
        agent = boat_agent().__class__(model(reply, reply, name="talker"), name="talker")
        run(journal, Step("speak", agent, contract))
    found = health(journal)
    assert found.rates["fallback"] == pytest.approx(0.25)
    assert found.models[0].fallback_rate == pytest.approx(0.25)
    assert any(advice.code == "fallback" and "25%" in advice.text for advice in found.advice)


def test_an_empty_journal_is_healthy(journal: Journal) -> None:
    found = health(journal, trend=3)
    assert found.runs == {}
    assert set(found.rates.values()) == {0.0}
    assert found.advice == ()
