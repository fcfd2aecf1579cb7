"""Long lines of C, cut where a reader would cut them."""

from __future__ import annotations

from atim.codegen.columns import MAX_COLUMNS, wrapped

DEEP = " " * 40


def test_short_lines_stay():
    assert wrapped("    a = b;") == ["    a = b;"]


def test_conditions_are_cut_between_their_parts_before_sums_and_products():
    parts = ("row * 4 + i + offset >= 1", "row * 4 + i + offset < 15", "column * 8 + j * 2 < 14")
    lines = wrapped(f"{DEEP}total[i] = largest(total[i], {' && '.join(parts)} ? value[i] : 0.0f);")
    shown = [line.strip() for line in lines]
    assert shown[0] == "total[i] = largest(total[i],"
    assert all(len(line) <= MAX_COLUMNS for line in lines)
    assert all(line.startswith(("row", "&& ", "? ")) for line in shown[1:])


def test_products_are_cut_last():
    term = "coefficient * (value + offset)"
    lines = wrapped(f"{DEEP}sum = {term} + {term} + {term} * scale;")
    assert all(len(line) <= MAX_COLUMNS for line in lines)
    assert len(lines) > 1
    assert all(line.strip().startswith("+ coefficient") for line in lines[1:])
