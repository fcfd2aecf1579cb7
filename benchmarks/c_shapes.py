"""Statements and functions that the passes over DPU code look for, as random C.

Running pointers, carries, index forms of loops, calls with every kind of argument: what random
statements alone seldom make. c_generator.py mixes them in; results are as defined as its own.
"""

from __future__ import annotations

import random
from typing import Protocol

# array -> (type of an element, elements); `halves` and `bytes` are extended when read
ARRAYS = {
    "words": ("uint32_t", 16),
    "longs": ("int64_t", 8),
    "bytes": ("int8_t", 32),
    "halves": ("uint16_t", 16),
}

HELPERS = """
typedef struct { int64_t a; int32_t b; } two_t;
typedef struct { int16_t x; uint8_t y; } small_t;
static __attribute__((noinline)) two_t make_two(int64_t a, int32_t b) {
    two_t t = { (int64_t)((uint64_t)a - (uint64_t)b), b ^ (int32_t)a };
    return t;
}
static __attribute__((noinline)) int64_t use_two(int32_t n, two_t t, small_t s) {
    return (int64_t)((uint64_t)t.a + (uint64_t)n + (uint32_t)t.b * (uint32_t)s.x + s.y);
}
static __attribute__((noinline)) small_t make_small(int32_t x) {
    small_t s = { (int16_t)x, (uint8_t)(x >> 9) };
    return s;
}
static __attribute__((noinline)) int64_t many(int64_t a, int32_t b, int8_t c, int64_t d, int64_t e,
    uint8_t f, int16_t g, int64_t h, uint32_t i, uint64_t j) {
    return (int64_t)((uint64_t)a - b + c * f + ((uint64_t)d ^ (uint64_t)e) + g + (uint64_t)h * 3
        + i - j);
}
static __attribute__((noinline)) int64_t sum_of(int n, ...) {
    __builtin_va_list list;
    __builtin_va_start(list, n);
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum = sum * 3 + (i & 1 ? __builtin_va_arg(list, uint64_t)
                               : (uint64_t)__builtin_va_arg(list, int));
    __builtin_va_end(list);
    return (int64_t)sum;
}
static __attribute__((noinline)) int64_t again(int64_t x, uint32_t depth) {
    if (depth == 0)
        return x ^ 5;
    int64_t deep = again((int64_t)((uint64_t)x * 3 + depth), depth - 1);
    return (int64_t)((uint64_t)deep + (uint64_t)x);
}
static int64_t plus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t minus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t less(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t shifted(int64_t a, int64_t b) { return a >> (b & 63); }
static int64_t (*volatile const operations[4])(int64_t, int64_t) = { plus, minus, less, shifted };
static volatile uint32_t seen;
"""


class Writer(Protocol):
    """What of the generator these statements need."""

    rng: random.Random
    variables: dict[str, str]

    def name(self, prefix: str) -> str: ...
    def type(self) -> str: ...
    def leaf(self, type_: str) -> str: ...
    def expression(self, type_: str, depth: int) -> str: ...
    def emit(self, text: str) -> None: ...


def _item(w: Writer, array: str, index: str) -> str:
    return f"{array}[({index}) & {ARRAYS[array][1] - 1}]"


def running_sum(w: Writer) -> None:
    """A sum over constant or unknown bounds; the index may start late, be wide, or be used after
    the loop; the loop may be do-while, nested, or write another array."""
    array = w.rng.choice(list(ARRAYS))
    half = ARRAYS[array][1] // 2
    limit, i, sum_, type_ = w.name("n"), w.name("i"), w.name("s"), w.type()
    index = w.rng.choice(("uint32_t", "int32_t", "uint8_t", "uint16_t", "uint64_t"))
    start = w.rng.choice((0, 0, 0, 1, 2))
    known = w.rng.random() < 0.3
    count = str(w.rng.randint(3, half)) if known else f"({w.expression('uint32_t', 1)} & 3) + 3"
    w.emit(f"const uint32_t {limit} = {count};")
    w.emit(f"const __typeof__({array}[0]) *{limit}p = {array} + ({w.leaf('uint32_t')} & 1);")
    w.emit(f"uint64_t {sum_} = (uint64_t){w.leaf(type_)};")
    w.emit(f"{index} {i} = {start};")
    turns = w.rng.randint(1, 3)
    if nested := w.rng.random() < 0.4:
        w.emit(f"for (uint32_t {i}o = 0; {i}o < {turns}; {i}o++, {i} = {start}) {{")
    extra = w.rng.choice(("", f" seen += {sum_};", f" {_item(w, 'longs', i)} ^= {sum_};"))
    value = w.rng.choice((f"{limit}p[{i}]", f"(int32_t){limit}p[{i}]", f"(int16_t){limit}p[{i}]"))
    other = w.rng.choice((w.leaf("int64_t"), f"{limit}p[{i}]", f"(uint32_t){i}", "7"))
    op, second = w.rng.choice("+-^"), w.rng.choice("+-*&")
    step = f"{sum_} {op}= (uint64_t)((uint64_t){value} {second} {other});{extra}"
    form = w.rng.randrange(3)
    if form == 0:
        w.emit(f"for (; {i} < {limit}; {i}++) {{ {step} }}")
    elif form == 1:
        w.emit(f"do {{ {step} }} while (++{i} != {limit});")
    else:
        leave = f"if ({sum_} {w.rng.choice('<>')} {w.leaf('uint64_t')}) break;"
        w.emit(f"while ({i} != {limit}) {{ {step} {i}++; {leave} }}")
    if nested:
        w.emit("}")
    w.variables[sum_] = "uint64_t"
    if not nested and w.rng.random() < 0.3:
        w.variables[i] = index


def pointer_walk(w: Writer) -> None:
    """Two pointers through one array, which is written and read, forward and backward."""
    array = w.rng.choice(list(ARRAYS))
    element, size = ARRAYS[array]
    p, q, sum_ = w.name("w"), w.name("q"), w.name("s")
    first, last = w.rng.randrange(size // 2), w.rng.randrange(size // 2, size)
    w.emit(f"__typeof__({array}[0]) *{p} = {array} + {first}, *{q} = {array} + {last};")
    w.emit(f"uint32_t {sum_} = 0;")
    added = f"*{p} = ({element})((uint64_t)*{p} + (uint64_t)*{q}); {p}++"
    steps = w.rng.choice((added, f"*{q}-- = *{p}++", f"*++{p} ^= *--{q}"))
    w.emit(f"while ({p} < {q}) {{ {sum_} += (uint32_t)*{p} * 3u; {steps}; }}")
    w.variables[sum_] = "uint32_t"


def wide_chain(w: Writer) -> None:
    """64-bit sums, differences, negations and comparisons in a row, and 96-bit carries."""
    a, b, c = w.name("x"), w.name("x"), w.name("x")
    w.emit(f"uint64_t {a} = {w.expression('uint64_t', 1)}, {b} = {w.expression('uint64_t', 1)};")
    w.emit(f"uint32_t {c} = {w.leaf('uint32_t')};")
    for _ in range(w.rng.randint(2, 6)):
        x, y = w.rng.sample((a, b), 2)
        number = w.rng.choice((1, 2, 0xFFFFFFFF, 1 << 32, 5, 0x80000000, 0x7FFFFFFF))
        texts = (
            f"{x} += {y}; {c} += {x} < {y};", f"{c} -= {x} < {y}; {x} -= {y};", f"{x} = -{x};",
            f"{x}++; {c} += {x} == 0;", f"{x}--;", f"{x}--; {y} -= {x};", f"{x} += {number}u;",
            f"{x} -= {c};",
            f"if ({x} == {y}) {c}++; else {y} ^= {x};", f"{x} = ~{x} - (uint64_t)(int32_t){c};",
            f"if ((int64_t){x} >= {number}LL) {x} -= {y};", f"{x} = ({x} << 13) | ({x} >> 51);",
            f"{x} = {y} - ({x} >> {w.rng.randrange(64)});", f"{x} += (uint64_t){c} << 7;",
            f"while ((int64_t){x} > 1000) {x} >>= 9;", f"{x} -= (uint64_t)({c} >> 3);",
        )  # fmt: skip
        w.emit(w.rng.choice(texts))
    w.variables |= {a: "uint64_t", b: "uint64_t", c: "uint32_t"}


def equalities(w: Writer) -> None:
    """Two words compared at once, in C and by memcmp; smallest, largest, absolute values."""
    c = w.name("x")
    w.emit(f"uint32_t {c} = {w.leaf('uint32_t')};")
    one, two, three, four = (w.leaf("uint32_t") for _ in range(4))
    test = w.rng.choice((f"({one} ^ {two}) | ({three} ^ {four})", f"({one} ^ {c}) | (7 ^ {two})"))
    w.emit(f"if (({test}) {w.rng.choice(('==', '!='))} 0) {c} += {w.rng.choice((two, four))};")
    i, j = w.rng.randrange(8), w.rng.randrange(8)
    size = w.rng.choice((4, 8, 8, 8, 16))
    w.emit(f"if (__builtin_memcmp(words + {2 * i % 13}, longs + {j % 6}, {size})) {c} ^= {three};")
    w.emit(f"{c} = {c} < {four} ? {c} : {four}; {c} += (int32_t){c} > 9 ? (int32_t){c} : 9;")
    w.variables[c] = "uint32_t"


def calls(w: Writer) -> None:
    """Arguments on the stack, structs by value, variable arguments, pointers to functions."""
    name = w.name("v")
    wide, word = w.leaf("int64_t"), w.leaf("int32_t")
    more = ", ".join(
        w.leaf(t) for t in ("int8_t", "int64_t", "int64_t", "uint8_t", "int16_t", "int64_t",
                            "uint32_t", "uint64_t")
    )  # fmt: skip
    variable = [f"(int){w.leaf('int32_t')}" if k % 2 == 0 else f"(uint64_t){w.leaf('uint64_t')}"
                for k in range(w.rng.randint(1, 7))]  # fmt: skip
    text = w.rng.choice(
        (
            f"many({wide}, {word}, {more})",
            f"use_two({word}, make_two({wide}, {word}), make_small({w.leaf('int32_t')}))",
            f"sum_of({len(variable)}, {', '.join(variable)})",
            f"again({wide}, {w.leaf('uint32_t')} & 7)",
            f"operations[{w.leaf('uint32_t')} & 3]({wide}, {w.leaf('int64_t')})",
        )
    )
    w.emit(f"int64_t {name} = {text};")
    w.variables[name] = "int64_t"


SHAPES = (running_sum, running_sum, running_sum, pointer_walk, wide_chain, equalities, calls)
