"""TIR expressions and statements -> C text, with the exact meaning TIR gives them.

A dialect (kernel_c.Dpu, host_c.Host) says how buffers are addressed and which functions exist;
everything common to both is here: one table for types, one for operators. The small functions that
C lacks are in small_c.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import For, ForKind, IfThenElse, SeqStmt, Stmt

from atim.codegen.affine import Ranges, affine
from atim.codegen.c_values import (
    AND,
    BIT,
    BUILTIN_FLOAT,
    CHOICE,
    EQUAL,
    OR,
    ORDER,
    PRIMARY,
    PRODUCT,
    SHIFT,
    SUM,
    UNARY,
    c_type,
    floating,
    integer,
)
from atim.codegen.columns import wrapped
from atim.codegen.kernel_func import has_load
from atim.codegen.names import ANONYMOUS, Names, axis_of
from atim.codegen.small_c import helper_text
from atim.codegen.split import operation
from atim.codegen.tidy import tidied
from atim.errors import UnsupportedError
from atim.target import ANNOTATE_ROLLED

# TIR class -> (C operator, precedence)
BINARY = {
    tirx.Add: ("+", SUM),
    tirx.Sub: ("-", SUM),
    tirx.Mul: ("*", PRODUCT),
    tirx.Div: ("/", PRODUCT),
    tirx.Mod: ("%", PRODUCT),
    tirx.LT: ("<", ORDER),
    tirx.LE: ("<=", ORDER),
    tirx.GT: (">", ORDER),
    tirx.GE: (">=", ORDER),
    tirx.EQ: ("==", EQUAL),
    tirx.NE: ("!=", EQUAL),
    tirx.And: ("&&", AND),
    tirx.Or: ("||", OR),
    tirx.BitwiseAnd: ("&", BIT),
    tirx.BitwiseOr: ("|", BIT),
    tirx.BitwiseXor: ("^", BIT),
    tirx.RShift: (">>", SHIFT),
}

WRAPPING = (tirx.Add, tirx.Sub, tirx.Mul)
COMPOUND = (*WRAPPING, tirx.BitwiseOr)  # written x op= e where x is the first operand
NARROW = ("int8", "int16", "uint8", "uint16")
# signed types in which C leaves overflow undefined -> types in which it wraps
UNSIGNED = {"int32": "uint32_t", "int64": "uint64_t"}


def loops_along(stmt: Stmt, axis: str) -> bool:
    """A loop inside runs along the same axis."""
    found = []
    tvm_ffi.structural_walk(stmt, [(For, lambda f: found.append(str(f.loop_var.name)))])
    return axis in map(axis_of, found)


def dtype_of(expr: ir.Expr) -> str:
    return str(expr.ty)


class Emitter:
    """Prints statements line by line. Subclasses are the dialects."""

    index_type = "int32_t"
    unroll = "#pragma unroll"
    unroll_some = "#pragma unroll 8"  # the number of iterations is known at run time only
    rolled = "#pragma nounroll"  # of loops with ANNOTATE_ROLLED
    where = "the kernel"
    functions: ClassVar[Mapping[str, str]] = {}

    def __init__(self, names: Names, ranges: Ranges) -> None:
        self.names, self.ranges = names, ranges
        self.text: dict[tirx.Var, str] = {}
        self.helpers: dict[str, str] = {}
        self.lines: list[str] = []
        self.depth = 1
        self.loops: list[str] = []  # axes of the loops around
        self.scopes: list[list[str]] = [[]]  # names to be given up at the end of a block

    # dialect ---------------------------------------------------------------------------------

    def element(self, buffer: tirx.Var, indices: Sequence[ir.Expr]) -> str:
        """C lvalue of one element."""
        raise NotImplementedError

    def load(self, buffer: tirx.Var, indices: Sequence[ir.Expr]) -> str:
        return self.element(buffer, indices)

    def store(self, buffer: tirx.Var, indices: Sequence[ir.Expr], value: ir.Expr) -> None:
        """One assignment; `x[i] = x[i] + e` is written `x[i] += e`."""
        target = self.element(buffer, indices)
        dtype = str(buffer.dtype)
        kind = type(value)
        compound = kind in COMPOUND and dtype_of(value) == dtype and dtype not in NARROW
        if compound and isinstance(value.a, ir.TensorLoad):
            same = value.a.source.same_as(buffer) and all(
                tvm_ffi.structural_equal(a, b)
                for a, b in zip(value.a.indices, indices, strict=True)
            )
            if same:
                text = self.stored(value.b, dtype)
                self.line(f"{target} {BINARY[kind][0]}= {text};")
                return
        self.line(f"{target} = {self.stored(value, dtype)};")

    def call(self, expr: ir.Call) -> tuple[str, int]:
        raise UnsupportedError(f"function {expr.op.name}: not available in {self.where}")

    # statements ------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        shown = "    " * self.depth + text if text and text[0] != "#" else text
        self.lines += [shown] if text.startswith("#") else wrapped(shown)

    def pragma(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def declare(self, scope: Stmt) -> None:
        """Declare what lives in this scope only."""

    def block(self, head: str, body: Stmt) -> None:
        self.line(head + " {")
        self.inside(body)
        self.line("}")

    def inside(self, body: Stmt) -> None:
        """The statements of a block; names declared there are free again behind it."""
        self.depth += 1
        self.scopes.append([])
        self.declare(body)
        self.stmt(body)
        self.names.release(self.scopes.pop())
        self.depth -= 1

    def stmt(self, stmt: Stmt) -> None:
        if isinstance(stmt, SeqStmt):
            for part in stmt.seq:
                self.stmt(part)
        elif isinstance(stmt, For):
            self.loop(stmt)
        elif isinstance(stmt, IfThenElse):
            self.block(f"if ({self.expr(stmt.condition)})", stmt.then_case)
            if stmt.else_case is not None:
                self.lines[-1] += " else {"
                self.inside(stmt.else_case)
                self.line("}")
        elif isinstance(stmt, tirx.BufferStore):
            self.store(stmt.buffer, list(stmt.indices), stmt.value)
        elif isinstance(stmt, tirx.Evaluate):
            if isinstance(stmt.value, ir.Call):
                self.line(f"{self.expr(stmt.value)};")
        else:
            raise UnsupportedError(f"statement: {type(stmt).__name__} has no C form")

    def loop(self, loop: For) -> None:
        constant = isinstance(loop.extent, tirx.IntImm)
        limit = self.expr(loop.extent)
        if not constant:
            end = self.names.new(f"{self.counter(loop)}_end")
            self.scopes[-1].append(end)
            self.line(f"const {self.index_type} {end} = {limit};")
            limit = end
        if loop.kind == ForKind.UNROLLED:
            self.pragma(self.unroll if constant else self.unroll_some)
        elif ANNOTATE_ROLLED in loop.annotations:
            self.pragma(self.rolled)
        self.iterate(loop, "0", limit)

    def iterate(self, loop: For, begin: str, end: str) -> None:
        """A loop over [begin, end). Its variable is named after the axis of the program that it
        runs along: `k` where it counts elements, `k_tile` around that."""
        name = self.names.new(self.counter(loop))
        self.text[loop.loop_var] = name
        self.loops.append(axis_of(str(loop.loop_var.name)))
        self.block(f"for ({self.index_type} {name} = {begin}; {name} < {end}; {name}++)", loop.body)
        self.loops.pop()
        self.names.release([name])
        del self.text[loop.loop_var]

    def counter(self, loop: For) -> str:
        """What the variable of a loop is to be called."""
        axis = axis_of(str(loop.loop_var.name))
        if not loops_along(loop.body, axis):
            return "item" if ANONYMOUS.fullmatch(axis) else axis
        return f"{axis}_step" if axis in self.loops else f"{axis}_tile"

    def variable(self, var: tirx.Var) -> str:
        if var not in self.text:
            self.text[var] = self.names.new(str(var.name))
        return self.text[var]

    # expressions -----------------------------------------------------------------------------

    def expr(self, expr: ir.Expr, least: int = 0) -> str:
        """C text, in parentheses if it binds weaker than `least`."""
        text, precedence = self.term(expr)
        return f"({text})" if precedence < least else text

    def stored(self, expr: ir.Expr, dtype: str) -> str:
        """The value where it is converted to `dtype` anyway and no overflow can be told from
        wrapping: sums and products need no casts of their own, but for C's own int."""
        if type(expr) in WRAPPING and dtype_of(expr) == dtype and dtype not in NARROW:
            return self._binary(expr)[0]
        return self.expr(expr)

    def term(self, expr: ir.Expr) -> tuple[str, int]:
        expr = tidied(expr, self.ranges)
        kind = type(expr)
        if kind is tirx.Var:
            return self.variable(expr), PRIMARY
        if kind is tirx.IntImm:
            return integer(int(expr.value), dtype_of(expr))
        if kind is tirx.FloatImm:
            return floating(float(expr.value), dtype_of(expr))
        if kind is ir.TensorLoad:
            return self.load(expr.source, list(expr.indices)), PRIMARY
        if kind in WRAPPING:
            return self._wrapping(expr)
        if kind in BINARY:
            return self._binary(expr)
        return self._other(expr)

    def _wrapping(self, expr: ir.Expr) -> tuple[str, int]:
        """A sum, difference or product whose value is looked at: it must have wrapped by then."""
        dtype = dtype_of(expr)
        if dtype in UNSIGNED and has_load(expr):
            return f"({c_type(dtype)})({self._modular(expr, UNSIGNED[dtype])})", UNARY
        text, precedence = self._binary(expr)
        return (f"({c_type(dtype)})({text})", UNARY) if dtype in NARROW else (text, precedence)

    def _modular(self, expr: ir.Expr, unsigned: str) -> str:
        """Nested sums and products in unsigned arithmetic."""
        if type(expr) not in WRAPPING:
            return f"({unsigned}){self.expr(expr, UNARY)}"
        operator = BINARY[type(expr)][0]
        parts = [self._modular(e, unsigned) for e in (expr.a, expr.b)]
        nested = [
            f"({p})" if type(e) in WRAPPING and (operator == "*" or e is expr.b) else p
            for e, p in zip((expr.a, expr.b), parts, strict=True)
        ]
        return f"{nested[0]} {operator} {nested[1]}"

    def _other(self, expr: ir.Expr) -> tuple[str, int]:
        kind = type(expr)
        if kind in (tirx.FloorDiv, tirx.FloorMod):
            return self._floor(expr)
        if kind in (tirx.Min, tirx.Max):
            name = self.helper("min" if kind is tirx.Min else "max", dtype_of(expr))
            return f"{name}({self.expr(expr.a)}, {self.expr(expr.b)})", PRIMARY
        if kind is tirx.Not:
            return f"!{self.expr(expr.a, UNARY)}", UNARY
        if kind is tirx.Select:
            return self._choice(expr.condition, expr.true_value, expr.false_value)
        if kind is tirx.Cast:
            return self._cast(expr)
        if kind is tirx.BitwiseNot:
            return f"({c_type(dtype_of(expr))})~{self.expr(expr.a, UNARY)}", UNARY
        if kind is tirx.LShift:
            return self._shift_left(expr)
        if kind is ir.Call:
            return self._call(expr)
        raise UnsupportedError(f"expression: {kind.__name__} has no C form in {self.where}")

    def _binary(self, expr: ir.Expr) -> tuple[str, int]:
        operator, precedence = BINARY[type(expr)]
        dtype = dtype_of(expr)
        if type(expr) is tirx.Mul and dtype == "uint16":
            # 65535 * 65535 overflows the int that C would promote to
            return f"(uint32_t){self.expr(expr.a, UNARY)} * {self.expr(expr.b, UNARY)}", PRODUCT
        return self._infix(expr.a, operator, expr.b, precedence, ring=type(expr) in WRAPPING)

    def _infix(
        self, a: ir.Expr, operator: str, b: ir.Expr, precedence: int, ring: bool = False
    ) -> tuple[str, int]:
        """a operator b. Operands of a ring operation need not have wrapped themselves."""
        left, right = precedence, precedence + 1
        if operator in ("&&", "||"):
            right = precedence
        if precedence in (SHIFT, BIT):
            # compilers warn about mixing these without parentheses
            left = right = UNARY
        elif precedence in (EQUAL, ORDER):
            left = precedence + 1
        elif precedence == OR:
            left = right = BIT
        return (
            f"{self._operand(a, left, ring)} {operator} {self._operand(b, right, ring)}",
            precedence,
        )

    def _operand(self, expr: ir.Expr, least: int, ring: bool) -> str:
        if ring and type(expr) in WRAPPING and dtype_of(expr) in UNSIGNED:
            text, precedence = self._binary(expr)
            return f"({text})" if precedence < least else text
        return self.expr(expr, least)

    def _floor(self, expr: ir.Expr) -> tuple[str, int]:
        """C division truncates: right for operands known not to be negative, else a helper."""
        division = type(expr) is tirx.FloorDiv
        dtype = dtype_of(expr)
        if dtype.startswith("uint") or (self._natural(expr.a) and self._natural(expr.b)):
            text, precedence = self._infix(expr.a, "/" if division else "%", expr.b, PRODUCT)
            return text, precedence
        name = self.helper("floordiv" if division else "floormod", dtype)
        return f"{name}({self.expr(expr.a)}, {self.expr(expr.b)})", PRIMARY

    def _natural(self, expr: ir.Expr) -> bool:
        linear = affine(expr, self.ranges)
        bounds = linear.bounds(self.ranges) if linear is not None else None
        return bounds is not None and bounds[0] >= 0

    def _choice(self, condition: ir.Expr, yes: ir.Expr, no: ir.Expr) -> tuple[str, int]:
        parts = (self.expr(condition, OR), self.expr(yes, OR), self.expr(no, CHOICE))
        return f"{parts[0]} ? {parts[1]} : {parts[2]}", CHOICE

    def _cast(self, expr: tirx.Cast) -> tuple[str, int]:
        dtype = dtype_of(expr)
        narrow = dtype.endswith(("int8", "int16"))
        if dtype == "bool":
            return f"{self.expr(expr.value, EQUAL + 1)} != 0", EQUAL
        # C leaves open what a float outside of a narrow type becomes, NumPy wraps it
        whole = "(int32_t)" if narrow and dtype_of(expr.value) in BUILTIN_FLOAT else ""
        return f"({c_type(dtype)}){whole}{self.expr(expr.value, UNARY)}", UNARY

    def _call(self, expr: ir.Call) -> tuple[str, int]:
        name = operation(expr)
        args = list(expr.args)
        if name == "likely":
            return self.term(args[0])
        if name == "if_then_else":
            return self._choice(*args)
        if name in ("fabs", "abs"):
            return self._absolute(args[0])
        if name in ("isnan", "isfinite", "isinf"):
            return f"__builtin_{name}({self.expr(args[0])})", PRIMARY
        if name in self.functions:
            suffix = BUILTIN_FLOAT[dtype_of(expr)]
            return f"{self.functions[name]}{suffix}({', '.join(map(self.expr, args))})", PRIMARY
        return self.call(expr)

    def _shift_left(self, expr: tirx.LShift) -> tuple[str, int]:
        """In unsigned arithmetic: C leaves the shift of a negative number undefined."""
        dtype = dtype_of(expr)
        unsigned = "uint64_t" if dtype.endswith("64") else "uint32_t"
        text = f"({unsigned}){self.expr(expr.a, UNARY)} << {self.expr(expr.b, UNARY)}"
        return f"({c_type(dtype)})({text})", UNARY

    def _absolute(self, value: ir.Expr) -> tuple[str, int]:
        dtype = dtype_of(value)
        if dtype in BUILTIN_FLOAT:
            return f"__builtin_fabs{BUILTIN_FLOAT[dtype]}({self.expr(value)})", PRIMARY
        return f"{self.helper('abs', dtype)}({self.expr(value)})", PRIMARY

    def helper(self, name: str, dtype: str) -> str:
        """The name of a small function for this type; its text goes before the code."""
        full = f"{name}_{dtype}"
        if full not in self.helpers:
            self.helpers[full] = helper_text(name, dtype)
        return full
