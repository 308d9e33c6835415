"""Markers are aligned exactly below the text that they mark, whatever its characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from flujo_aros.cli.render import Mark, marked


def rows(text: str, *spans: tuple[int, int], width: int = 60) -> list[str]:
    marks = [Mark(start, end, str(number)) for number, (start, end) in enumerate(spans, start=1)]
    return [row.plain for row in marked(text, marks, width)]


def test_carets_stand_beneath_the_span_with_the_label_below() -> None:
    assert rows('{"a": TRUE}', (6, 10)) == ['  1 │ {"a": TRUE}', "    │       ^^^^", "    │       1"]


def test_wide_characters_count_as_two_cells() -> None:
    assert rows("你好 x", (3, 4))[1] == "    │      ^"


def test_empty_span_is_one_caret_between_characters() -> None:
    assert rows("[1 2]", (3, 3))[1] == "    │    ^"


def test_a_place_after_the_end_of_the_text_is_marked() -> None:
    assert rows('{"a": 1', (7, 7))[1] == "    │        ^"


def test_inner_mark_stays_visible_inside_a_wider_one_and_labels_do_not_touch() -> None:
    assert rows("abcd", (0, 4), (0, 1))[1:] == ["    │ ^^^^", "    │ 1", "    │ 2"]


def test_stretches_without_marks_are_left_out() -> None:
    text = "\n".join(f"line {number}" for number in range(1, 10))
    assert rows(text, (28, 32)) == [
        "    ┆",
        "  4 │ line 4",
        "  5 │ line 5",
        "    │ ^^^^",
        "    │ 1",
        "  6 │ line 6",
        "    ┆",
    ]


def test_long_line_is_cut_into_rows_and_marked_where_the_place_is() -> None:
    shown = rows("x" * 70 + "!" + "x" * 9, (70, 71), width=48)
    assert max(cell_len(row) for row in shown) <= 48
    assert shown[1] == "    │ " + "x" * 30 + "!" + "x" * 9
    assert shown[2] == "    │ " + " " * 30 + "^"


def test_control_characters_never_reach_the_terminal() -> None:
    assert "\x1b" not in "".join(rows("a\x1b[31mb\r\u0007", (0, 1)))


@given(
    st.text(max_size=200), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), max_size=5), st.integers(30, 90)
)
def test_any_text_with_any_marks_fits_the_width(text: str, places: list[tuple[int, int]], width: int) -> None:
    spans = [(min(start, len(text)), min(start + size, len(text))) for start, size in places]
    for row in rows(text, *spans, width=width):
        assert cell_len(row) <= width
