"""Random C functions without undefined behaviour (c_runs.py runs them).

`generate(seed)` gives one C text with several functions and `run_all`, which calls each of them on
given inputs and stores 64-bit results. The same text is compiled by g++ and by `compile_c`; results
must be equal. Signed arithmetic is done in unsigned types and converted back.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from benchmarks.c_shapes import HELPERS, SHAPES

INPUTS = 4  # 64-bit values each function receives
TYPES = ("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t")
_WEIGHTS = (2, 2, 2, 2, 6, 5, 4, 4)
_BITS = {name: int(name.strip("uint_")) for name in TYPES}
_ARRAYS = (("words", 16), ("longs", 8), ("bytes", 32), ("halves", 16), ("packs", 4))
_CONSTANTS = (
    0, 1, 2, 3, 4, 5, 7, 8, 10, 15, 16, 31, 32, 63, 64, 100, 127, 128, 255, 256, 1000, 1023, 1024,
    2047, 2048, 4095, 32767, 32768, 65535, 65536, 0x7FFFFF, 0x800000, 0x7FFFFFFF, 0x80000000,
    0xFFFFFFFF, 0x100000000, 0x123456789ABCDEF, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000,
)  # fmt: skip

PRELUDE = """
#ifdef __cplusplus
#include <cstdint>
#else
#include <stdint.h>
#endif
typedef struct { int32_t a; int64_t b; int16_t c; uint8_t d[3]; } pack_t;
static inline int32_t near_f(float x) { return x > -1e9f && x < 1e9f ? (int32_t)x : 12345; }
static inline int64_t near_d(double x) { return x > -1e17 && x < 1e17 ? (int64_t)x : 12345; }
static uint32_t words[16];
static int64_t longs[8];
static int8_t bytes[32];
static uint16_t halves[16];
static pack_t packs[4];
"""
PRELUDE += HELPERS


def _signed(type_: str) -> bool:
    return not type_.startswith("u")


@dataclass
class _Generator:
    """Random choices, and what exists at the point being written."""

    rng: random.Random
    variables: dict[str, str] = field(default_factory=dict)  # name -> type
    constants: set[str] = field(default_factory=set)  # loop counters: not assigned
    functions: list[tuple[str, str, list[str]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    budget: int = 0
    loops: int = 0
    count: int = 0

    def type(self) -> str:
        return self.rng.choices(TYPES, _WEIGHTS)[0]

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    # ------------------------------------------------------------------ expressions

    def constant(self, type_: str) -> str:
        value = self.rng.choice(_CONSTANTS)
        if self.rng.random() < 0.3:
            value = self.rng.getrandbits(self.rng.choice((4, 8, 12, 16, 24, 32, 64)))
        value &= (1 << _BITS[type_]) - 1
        return f"(({type_}){value}ULL)"

    def leaf(self, type_: str) -> str:
        if self.variables and self.rng.random() < 0.75:
            same = [n for n, t in self.variables.items() if t == type_]
            pool = same if same and self.rng.random() < 0.6 else list(self.variables)
            return f"(({type_}){self.rng.choice(pool)})"
        if self.rng.random() < 0.25:
            return f"(({type_}){self.memory()})"
        return self.constant(type_)

    def memory(self) -> str:
        array, size = self.rng.choice(_ARRAYS)
        if self.rng.random() < 0.5:
            index = str(self.rng.randrange(size))
        else:
            index = f"({self.expression('uint32_t', 1)} & {size - 1})"
        if array == "packs":
            member = self.rng.choice(("a", "b", "c", "d[0]", "d[1]", "d[2]"))
            return f"packs[{index}].{member}"
        return f"{array}[{index}]"

    def expression(self, type_: str, depth: int) -> str:
        if depth <= 0:
            return self.leaf(type_)
        kind = self.rng.random()
        if kind < 0.45:
            return self.binary(type_, depth)
        if kind < 0.53:
            return self.shift(type_, depth)
        if kind < 0.60:
            return f"(({type_}){self.condition(depth - 1)})"
        if kind < 0.66:
            return f"({self.condition(depth - 1)} ? {self.expression(type_, depth - 1)} : " + (
                f"{self.expression(type_, depth - 1)})"
            )
        if kind < 0.76:
            return f"(({type_}){self.expression(self.type(), depth - 1)})"
        if kind < 0.82:
            return self.builtin(type_, depth)
        if kind < 0.88:
            return self.narrow_product(type_, depth)
        if kind < 0.91:
            return self.floating(type_, depth)
        op = self.rng.choice(("~", "-"))
        unsigned = f"uint{max(32, _BITS[type_])}_t"
        return f"(({type_})({op}({unsigned}){self.expression(type_, depth - 1)}))"

    def binary(self, type_: str, depth: int) -> str:
        op = self.rng.choices(("+", "-", "&", "|", "^", "*", "/", "%"), (9, 9, 5, 5, 4, 2, 1, 1))[0]
        a, b = self.expression(type_, depth - 1), self.expression(type_, depth - 1)
        unsigned = f"uint{max(32, _BITS[type_])}_t"
        if op in "/%":
            if _signed(type_):  # neither division by zero nor overflow
                return f"(({type_})({a} {op} ({b} > 0 ? {b} : ({type_})3)))"
            return f"(({type_})({a} {op} ({type_})({b} | 1)))"
        return f"(({type_})(({unsigned}){a} {op} ({unsigned}){b}))"

    def shift(self, type_: str, depth: int) -> str:
        bits = max(32, _BITS[type_])
        a = self.expression(type_, depth - 1)
        if self.rng.random() < 0.6:
            amount = str(self.rng.randrange(_BITS[type_]))
        else:
            amount = f"({self.expression('uint32_t', depth - 1)} & {bits - 1})"
        op = self.rng.choice(("<<", ">>", ">>"))
        if op == "<<":
            return f"(({type_})((uint{bits}_t){a} << {amount}))"
        return f"(({type_})({a} >> {amount}))"

    def condition(self, depth: int) -> str:
        type_ = self.type()
        if self.rng.random() < 0.15:
            op = self.rng.choice(("&&", "||"))
            return f"({self.condition(depth - 1)} {op} {self.condition(depth - 1)})"
        op = self.rng.choice(("==", "!=", "<", "<=", ">", ">="))
        left = self.expression(type_, depth - 1)
        right = self.constant(type_) if self.rng.random() < 0.4 else self.leaf(type_)
        return f"({left} {op} {right})"

    def builtin(self, type_: str, depth: int) -> str:
        wide = self.rng.random() < 0.3
        operand = self.expression("uint64_t" if wide else "uint32_t", depth - 1)
        suffix = "ll" if wide else ""
        name = self.rng.choice(("clz", "ctz", "popcount", "bswap", "minmax"))
        if name == "bswap":
            return f"(({type_})__builtin_bswap{64 if wide else 32}({operand}))"
        if name == "minmax":
            a, b = self.expression(type_, depth - 1), self.leaf(type_)
            return f"(({type_})({a} {self.rng.choice('<>')} {b} ? {a} : {b}))"
        fix = "" if name == "popcount" else " | 1" if name == "clz" else " | 0x80000000u"
        return f"(({type_})__builtin_{name}{suffix}({operand}{fix}))"

    def narrow_product(self, type_: str, depth: int) -> str:
        kinds = self.rng.choice((("int8_t", "uint8_t"), ("int16_t", "uint8_t", "int8_t")))
        a = self.expression(self.rng.choice(kinds), depth - 1)
        b = self.expression(self.rng.choice(kinds), depth - 1)
        return f"(({type_})({a} * {b}))"

    def floating(self, type_: str, depth: int) -> str:
        real, near = self.rng.choice((("float", "near_f"), ("double", "near_d")))
        a, b = (f"({real}){self.expression(self.type(), depth - 1)}" for _ in range(2))
        op = self.rng.choice(("+", "-", "*", "/", "<", ">=", "=="))
        return f"(({type_}){near}(({real})({a} {op} {b})))"

    def call(self) -> None:
        """A call stands alone: C leaves open in which order operands change memory."""
        name, result, parameters = self.rng.choice(self.functions)
        arguments = ", ".join(self.expression(t, 1) for t in parameters)
        variable = self.name("v")
        self.emit(f"{result} {variable} = {name}({arguments});")
        self.variables[variable] = result

    # ------------------------------------------------------------------ statements

    def block(self, statements: int) -> None:
        self.depth += 1
        outer = dict(self.variables)
        for _ in range(statements):
            self.statement()
        self.variables = outer
        self.depth -= 1

    def statement(self) -> None:
        self.budget -= 1
        simple = self.budget < 0 or self.depth > 4
        kind = self.rng.random() * (0.6 if simple else 1.0)
        if self.rng.random() < 0.25:
            self.rng.choice(SHAPES)(self)
        elif kind < 0.06 and self.functions:
            self.call()
        elif kind < 0.12:
            type_, name = self.type(), self.name("v")
            self.emit(f"{type_} {name} = {self.expression(type_, 3)};")
            self.variables[name] = type_
        elif kind < 0.45:
            self.assign()
        elif kind < 0.6:
            self.emit(f"{self.memory()} = {self.expression(self.type(), 3)};")
        elif kind < 0.75:
            self.emit(f"if ({self.condition(2)}) {{")
            self.block(self.rng.randint(1, 3))
            if self.rng.random() < 0.5:
                self.emit("} else {")
                self.block(self.rng.randint(1, 3))
            self.emit("}")
        elif kind < 0.85:
            self.loop()
        elif kind < 0.92:
            self.sweep()
        else:
            self.switch()

    def assign(self) -> None:
        targets = [n for n in self.variables if n not in self.constants]
        if not targets:
            return
        name = self.rng.choice(targets)
        type_ = self.variables[name]
        if self.rng.random() < 0.5:
            unsigned = f"uint{max(32, _BITS[type_])}_t"
            op = self.rng.choice("+-^&|")
            right = f"({unsigned}){self.expression(type_, 2)}"
            self.emit(f"{name} = ({type_})(({unsigned}){name} {op} {right});")
        else:
            self.emit(f"{name} = {self.expression(type_, 3)};")

    def loop(self) -> None:
        counter = self.name("i")
        limit = str(self.rng.randint(1, 9))
        if self.rng.random() < 0.5:
            limit = f"({self.expression('uint32_t', 1)} & 7)"
        style = self.rng.randrange(3)
        if style == 0:
            self.emit(f"for (uint32_t {counter} = 0; {counter} < {limit}; {counter}++) {{")
        elif style == 1:
            self.emit(f"for (int32_t {counter} = (int32_t){limit}; {counter} > 0; {counter}--) {{")
        else:
            self.emit(f"for (uint32_t {counter} = {limit}; {counter} != 0; {counter}--) {{")
        self.loops += 1
        self.variables[counter] = "int32_t" if style == 1 else "uint32_t"
        self.constants.add(counter)
        self.block(self.rng.randint(1, 3))
        if self.rng.random() < 0.3:
            verb = self.rng.choice(("break", "continue"))
            self.emit(f"    if ({self.condition(1)}) {verb};")
        self.emit("}")
        del self.variables[counter]
        self.loops -= 1

    def sweep(self) -> None:
        """Several sums over arrays that are only read, up to a limit; with enough calls in the body
        the limit does not stay in a register."""
        limit, counter = self.name("n"), self.name("i")
        self.emit(f"const uint32_t {limit} = {self.expression('uint32_t', 1)} & 3;")
        some = []
        for array, size in self.rng.sample(_ARRAYS[:-1], self.rng.randint(1, 3)):
            some.append(self.name("a"))
            first = f"{self.expression('uint32_t', 1)} & {size // 2 - 1}"
            self.emit(f"const __typeof__({array}[0]) *{some[-1]} = {array} + ({first});")
        sums = {self.name("s"): self.type() for _ in range(self.rng.choice((1, 3, 6, 9)))}
        for name, type_ in sums.items():
            self.emit(f"{type_} {name} = {self.leaf(type_)};")
        start = self.rng.choice((0, 0, 0, 1, 2))
        self.emit(f"for (uint32_t {counter} = {start}; {counter} < {limit}; {counter}++) {{")
        for name, type_ in sums.items():
            unsigned = f"uint{max(32, _BITS[type_])}_t"
            item, other = f"{self.rng.choice(some)}[{counter}]", self.leaf(type_)
            if self.rng.random() < 0.7:
                wide = self.rng.choice(("uint32_t", "uint64_t"))
                other = f"(({wide}){other} / (({wide}){item} | 1))"
            op = self.rng.choice("+-^")
            right = f"(({unsigned}){item} {self.rng.choice('+*^')} ({unsigned}){other})"
            self.emit(f"    {name} = ({type_})(({unsigned}){name} {op} {right});")
        self.emit("}")
        self.variables |= sums

    def switch(self) -> None:
        self.emit(f"switch ({self.expression('uint32_t', 2)} & 7) {{")
        labels = self.rng.sample(range(8), self.rng.randint(3, 8))
        for label in labels:
            self.emit(f"case {label}: {{")
            self.block(1)
            self.emit("    break; }" if self.rng.random() < 0.8 else "}")
        if self.rng.random() < 0.5:
            self.emit("default: {")
            self.block(1)
            self.emit("}")
        self.emit("}")

    # ------------------------------------------------------------------ functions

    def function(self, exported: bool) -> str:
        """One function; `exported` ones take INPUTS 64-bit values and return one."""
        name = self.name("f")
        result = "int64_t" if exported else self.type()
        parameters = ["int64_t"] * INPUTS
        if not exported:
            parameters = [self.type() for _ in range(self.rng.randint(0, 6))]
        self.variables = {f"p{i}": t for i, t in enumerate(parameters)}
        self.constants = set()
        self.budget = self.rng.randint(4, 12)
        attribute = self.rng.choice(("", "__attribute__((noinline)) "))
        listed = ", ".join(f"{t} p{i}" for i, t in enumerate(parameters)) or "void"
        self.emit_top(f"static {attribute}{result} {name}({listed}) {{")
        for _ in range(self.rng.randint(3, 7)):
            self.statement()
        self.emit(f"return {self.expression(result, 3)};")
        self.emit_top("}")
        if not exported:
            self.functions.append((name, result, parameters))
        return name

    def emit_top(self, text: str) -> None:
        self.lines.append(text)


def generate(seed: int, functions: int = 5) -> str:
    """C text with `functions` tested functions and some that they call."""
    generator = _Generator(random.Random(seed))
    tested = []
    for _ in range(functions):
        if generator.rng.random() < 0.6:
            generator.function(exported=False)
        tested.append(generator.function(exported=True))
    calls = "\n".join(
        f"    out[{i}] = {name}(in[0], in[1], in[2], in[3]);" for i, name in enumerate(tested)
    )
    body = "\n".join(generator.lines)
    return (
        f"{PRELUDE}\n{body}\nstatic void run_all(const int64_t *in, int64_t *out) {{\n{calls}\n}}\n"
    )
