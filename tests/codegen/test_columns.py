"""Long lines of C, cut where a reader would cut them, and declarations that would be too long."""

from __future__ import annotations

from atim.codegen.chain_kernel import _share_wram
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


def test_buffers_whose_comment_stands_before_them_are_shared_too():
    text = "\n".join(
        (
            "/* WRAM of each tasklet */",
            "static struct {",
            "    /* 4 of a */",
            "    __dma_aligned int32_t a_wram[4];",
            "} wram_of[NR_TASKLETS];",
            "",
            "/* 2 x 4 of b, shared by the tasklets */",
            "static __dma_aligned int32_t b_shared[2][4];",
            "static __dma_aligned int32_t c_shared[2]; /* 2 of c, shared by the tasklets */",
            "",
        )
    )
    shared = _share_wram(text, 56)
    assert "static" not in shared.replace("_Static_assert", "")
    assert shared.count("#define") == 3
    assert shared.index("2 x 4 of b, shared") < shared.index("int32_t b_shared")
