"""Several readings of a document are merged field by field, and each field lists its votes."""

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, model_validator

from flujo_aros import ABSENT, Accepted, Agreement, Reason, Rejected, Trust, UsageError, agree, read


class Line(BaseModel):
    sku: str
    qty: int


class Order(BaseModel):
    customer: str
    total: float
    lines: list[Line] = []
    note: str | None = None


ANY: dict[str, Any] = {"type": "object"}
REFUSED = Rejected(Reason.NO_JSON, (), "")


def order(customer: str = "Ada", total: float = 9.5, **more: Any) -> dict[str, Any]:
    return {"customer": customer, "total": total, **more}


def test_a_unanimous_value_is_typed_and_clean() -> None:
    made = agree([order(), order(), order()], Order)
    assert made.value == Order(customer="Ada", total=9.5)
    assert made.trust is Trust.CLEAN
    assert made.contested == ()


def test_a_field_reports_its_votes_and_who_dissents() -> None:
    made = agree([order("Ada"), order("Bob"), order("Ada")], Order)
    field = made.fields["$.customer"]
    assert (field.votes, field.of, field.value, field.dissent) == (2, 3, "Ada", (("Bob", 1),))
    assert (field.trust, field.agreed) == (Trust.INFERRED, True)
    assert made.fields["$.total"].trust is Trust.CLEAN


def test_an_agreement_is_printed_in_one_line_and_suggests_the_path_of_a_field() -> None:
    made = agree([order(total=1.5), order(total=2.5), order(total=3.5)], Order)
    assert repr(made) == "<Agreement: 3 of 3 readings voted; 1 of 2 fields agreed; contested: $.total>"
    assert repr(agree([5, 5], int)) == "<Agreement: 2 of 2 readings voted; 1 of 1 fields agreed; 5>"
    with pytest.raises(KeyError, match=r"no field 'total'; did you mean '\$\.total'\?"):
        _ = made.fields["total"]


def test_a_tie_is_contested_and_has_no_value() -> None:
    made = agree([order("Ada"), order("Bob")], Order, need=1)
    assert made.value is None
    assert made.contested == ("$.customer",)
    assert made.draft["customer"] == "Ada"
    assert made.fields["$.customer"].trust is Trust.DEGRADED


def test_too_few_votes_are_contested_without_a_tie() -> None:
    readings = [order("Ada"), order("Ada"), order("Bob"), order("Cy"), order("Dee")]
    assert agree(readings, Order).contested == ("$.customer",)
    assert agree(readings, Order, need=2).contested == ()


def test_one_reading_alone_cannot_agree_with_itself_when_others_abstain() -> None:
    assert agree([order(), REFUSED, REFUSED], Order).value is None


def test_a_rejected_reading_abstains() -> None:
    made = agree([order(), REFUSED, order()], Order)
    assert made.value == Order(customer="Ada", total=9.5)
    field = made.fields["$.customer"]
    assert (field.votes, field.of, field.abstained, field.trust) == (2, 2, 1, Trust.INFERRED)


def test_without_any_vote_there_is_nothing() -> None:
    made = agree([REFUSED, REFUSED], Order)
    assert (made.value, made.draft, made.voted, made.trust, made.fields) == (None, None, 0, Trust.DEGRADED, {})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (3, 3.0),
        ("New  York", "new york"),
        ("“smart” – text.", '"smart" - text'),
        ("1,200.50", "1200.5"),
        (None, None),
    ],
)
def test_equality_is_typed(one: Any, other: Any) -> None:
    assert agree([{"a": one}, {"a": other}], ANY).contested == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        ("3.5", "35"),
        ("A.1", "A1"),
        ("007", "7"),
        ("-5", "5"),
        ("(5)", "5"),
        ("C++", "C"),
        ("was", "was not"),
    ],
)
def test_different_meanings_are_not_equal(one: Any, other: Any) -> None:
    assert agree([{"a": one}, {"a": other}], ANY).contested == ("$.a",)


def test_a_choice_is_compared_as_written() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "X"]}}}
    assert agree([{"a": "x"}, {"a": "X"}], schema).contested == ("$.a",)


@pytest.mark.parametrize(("votes", "left_out"), [("a-", False), ("aa-", True), ("a--", False)])
def test_a_key_is_left_out_or_null_as_most_write_it(votes: str, left_out: bool) -> None:
    draft = agree([{"b": 1} if vote == "a" else {"a": None, "b": 1} for vote in votes], ANY).draft
    assert ("a" not in draft) is left_out


def test_an_item_missing_from_one_reading_does_not_shift_the_others() -> None:
    items = [{"sku": "A-1", "qty": 1}, {"sku": "B-2", "qty": 2}, {"sku": "C-3", "qty": 3}]
    made = agree([order(lines=items), order(lines=items[1:]), order(lines=items)], Order)
    assert made.value is not None
    assert [line.sku for line in made.value.lines] == ["A-1", "B-2", "C-3"]
    there = made.fields["$.lines[0]"]
    assert (there.votes, there.dissent) == (2, ((ABSENT, 1),))
    assert made.fields["$.lines[0].sku"].abstained == 1
    assert made.fields["$.lines[2].qty"].votes == 3


def test_an_item_that_most_leave_out_is_left_out_and_named() -> None:
    item, ghost = {"sku": "A-1", "qty": 1}, {"sku": "Z-9", "qty": 7}
    made = agree([order(lines=[item]), order(lines=[ghost, item]), order(lines=[item])], Order)
    assert made.value is not None
    assert [line.sku for line in made.value.lines] == ["A-1"]
    left_out = made.fields["$.lines[1]"]
    assert (left_out.value, left_out.agreed, left_out.dissent) == (ABSENT, True, ((ghost, 1),))


def test_items_in_another_order_are_the_same_items() -> None:
    items = [{"sku": "A-1", "qty": 1}, {"sku": "B-2", "qty": 2}]
    made = agree([order(lines=items), order(lines=items[::-1]), order(lines=items)], Order)
    assert made.contested == ()
    assert made.fields["$.lines[0].sku"].votes == 3


def test_two_equal_items_stay_two() -> None:
    twice = [{"sku": "A-1", "qty": 1}] * 2
    made = agree([order(lines=twice), order(lines=twice)], Order)
    assert made.value is not None
    assert len(made.value.lines) == 2


def test_an_object_and_another_type_vote_on_the_same_place() -> None:
    made = agree([{"a": {"b": 1}}, {"a": None}, {"a": {"b": 1}}], ANY)
    assert made.draft == {"a": {"b": 1}}
    assert (made.fields["$.a"].votes, made.fields["$.a"].dissent) == (2, ((None, 1),))


def test_the_trust_of_a_field_is_the_lower_of_its_repairs_and_its_agreement() -> None:
    repaired = read('{"customer": "Ada", "total": "9.5"}', Order)
    assert isinstance(repaired, Accepted)
    made = agree([repaired, read('{"customer": "Ada", "total": 9.5}', Order)], Order)
    assert made.fields["$.total"].trust is Trust.INFERRED
    assert made.fields["$.customer"].trust is Trust.CLEAN


def test_a_value_made_up_lowers_every_field() -> None:
    made_up = Accepted(order(), Trust.SYNTHESIZED, "synthesize", (), "")
    assert agree([made_up, order()], Order).fields["$.customer"].trust is Trust.SYNTHESIZED


def test_an_agreed_value_that_violates_the_contract_is_not_a_value() -> None:
    class Span(BaseModel):
        first: int
        last: int

        @model_validator(mode="after")
        def in_order(self) -> "Span":
            if self.first > self.last:
                raise ValueError("first is after last")
            return self

    made = agree([{"first": 1, "last": 2}, {"first": 5, "last": 2}, {"first": 5, "last": 9}], Span)
    assert made.contested == ()
    assert made.value is None
    assert "first is after last" in made.issues[0].message


def test_typed_votes_name_one_of_the_cast() -> None:
    cast = Literal["ada", "bob"]
    made = agree([read('"ada"', cast), read('"nobody"', cast), read('"ada"', cast)], cast)
    assert (made.value, made.fields["$"].votes, made.fields["$"].abstained) == ("ada", 2, 1)


def test_it_is_decided_once_no_reading_can_change_it() -> None:
    three = [order()] * 3
    assert agree(three, Order, need=3, of=5).decided
    assert not agree(three[:2], Order, need=3, of=5).decided
    open_ = agree([order("Ada"), order("Ada"), order("Bob")], Order, need=3, of=5)
    assert open_.open == ("$.customer",)


def test_a_field_that_nothing_can_save_is_surely_contested() -> None:
    made = agree([order("Ada"), order("Bob"), order("Cy")], Order, need=4, of=5)
    assert made.surely_contested == ("$.customer",)
    assert agree([order("Ada"), order("Bob")], Order, need=4, of=5).surely_contested == ()


def test_an_item_that_may_still_be_named_keeps_a_list_open() -> None:
    line = {"sku": "A-1", "qty": 1}
    assert "$.lines" in agree([order(lines=[line])], Order, need=2, of=3).open


@pytest.mark.parametrize("need", [0, 4, True, 0.0, 1.5, float("nan"), "2/3"])
def test_an_impossible_need_is_rejected(need: Any) -> None:
    with pytest.raises(UsageError, match="need="):
        agree([order()] * 3, Order, need=need)


def test_more_readings_than_announced_are_rejected() -> None:
    with pytest.raises(UsageError, match="of=1"):
        agree([order(), order()], Order, of=1)


BILL = "Invoice A-1017 of Harbour Paints Ltd, 3 May 2026. Twelve tins. Total to pay: EUR 307,02. Paid in seven days."


class Paid(BaseModel):
    seller: str
    currency: str | None
    total: float
    days: int | None = None
    kind: Literal["invoice", "reminder"] = "invoice"
    is_paid: bool = False


def paid(currency: str | None, total: float = 307.02, **more: Any) -> dict[str, Any]:
    return {"seller": "harbour paints ltd", "currency": currency, "total": total, **more}


def test_a_value_that_the_source_does_not_state_has_no_vote_however_many_readings_give_it() -> None:
    made = agree([paid("USD"), paid("USD"), paid("USD")], Paid, source=BILL)
    field = made.fields["$.currency"]
    assert (made.value, made.contested, made.surely_contested) == (None, ("$.currency",), ("$.currency",))
    assert (field.votes, field.of, field.value, field.abstained, field.made_up) == (0, 0, "USD", 3, 3)
    assert field.trust is Trust.DEGRADED
    assert made.explain().splitlines()[1] == '  $.currency  contested 0 of 0  "USD"; 3 not in the source'
    assert agree([paid("USD"), paid("USD"), paid("USD")], Paid).contested == ()


def test_readings_found_in_the_source_outvote_a_larger_number_of_invented_readings() -> None:
    made = agree([paid("USD"), paid("USD"), paid("EUR"), paid("USD"), paid("EUR")], Paid, source=BILL)
    field = made.fields["$.currency"]
    assert (field.value, field.votes, field.of, field.dissent, field.made_up) == ("EUR", 2, 2, (), 3)
    assert field.trust is Trust.INFERRED


def test_values_stated_in_other_words_and_schema_choices_count_as_votes() -> None:
    said = paid(None, days=7, kind="reminder", is_paid=True)
    assert agree([said, said], Paid, source=BILL).contested == ()
    assert agree([paid("EUR", 312.0)] * 2, Paid, source=BILL).contested == ("$.total",)


def test_a_person_reads_the_contested_fields_first() -> None:
    reported = agree([order("Ada"), order("Bob")], Order).explain().splitlines()
    assert reported[0].startswith("2 of 2 readings voted")
    assert reported[1].startswith("  $.customer  contested 1 of 2")


def test_plain_json_has_no_value_where_nothing_is() -> None:
    plain = agree([{"a": 1, "b": 2}, {"a": 1}, {"a": 1}], ANY).to_dict()
    absent = next(field for field in plain["fields"] if field["path"] == "$.b")
    assert "value" not in absent
    assert absent["dissent"] == [{"value": 2, "votes": 1}]


SMALL = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b", "A."]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(SMALL, min_size=1, max_size=5),
    st.sampled_from([1.0, 2 / 3, 0.5, 1]),
    st.sampled_from([None, "The a has 2 of them."]),
)
def test_a_decision_before_the_end_is_the_final_decision(readings: list[Any], need: float, source: str | None) -> None:
    def result(made: Agreement[Any]) -> tuple[bool, bool]:
        return made.contested == (), made.value is None

    whole = agree(readings, True, need=need, source=source)
    for count in range(1, len(readings)):
        early = agree(readings[:count], True, need=need, of=len(readings), source=source)
        if early.decided:
            assert result(early) == result(whole)
        if early.surely_contested:
            assert whole.value is None


@settings(max_examples=50, deadline=None)
@given(SMALL, st.integers(2, 4))
def test_readings_that_are_the_same_give_that_value(value: Any, count: int) -> None:
    made = agree([value] * count, True, need=1.0)
    assert made.contested == ()
    assert made.draft == value


@pytest.mark.parametrize(("votes", "decided"), [("aa-", False), ("a--", False), ("aaa", True), ("---", True)])
def test_a_field_that_may_still_change_from_absent_to_null_is_not_decided(votes: str, decided: bool) -> None:
    said = [{"b": 1} if vote == "a" else {"a": None, "b": 1} for vote in votes]
    assert agree(said, ANY, need=0.6, of=5).decided is decided


def test_unread_texts_and_missing_readings_are_errors() -> None:
    with pytest.raises(UsageError, match=r"reading 1 is text, not a value: pass read\(text, contract\)"):
        agree([order(), '{"customer": "Ada"}'], Order)
    with pytest.raises(UsageError, match="there are no readings"):
        agree([], Order)
    assert agree(["red", "red"], str).value == "red"
