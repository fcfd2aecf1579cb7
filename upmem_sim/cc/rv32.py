"""Parse RV32 assembly text, as clang prints it, into typed lines grouped by section.

Comments and debug sections are dropped, data directives become bytes and relocations, C places come
from `.file` and `.loc`. Instructions stay text operands; inline assembly is marked.
"""

from __future__ import annotations

import ast
import operator
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from upmem_sim.errors import CompileError
from upmem_sim.isa import Sym
from upmem_sim.objfile import Section

Place = tuple[str, int] | None


@dataclass(slots=True)
class Line:
    """One label or instruction of a text section.

    kind   "label" (op is its name), "insn" (an RV32 instruction), "asm" (a DPU instruction written
           in inline assembly, still with RV32 register names), "asm_label" (a label there) or
           "end" (an asm statement is over)
    """

    kind: str
    op: str
    operands: list[str] = field(default_factory=list)
    place: Place = None


@dataclass(slots=True)
class Text:
    """A text section: its name and lines in order."""

    name: str
    lines: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class Assembly:
    """What one assembly file holds."""

    texts: list[Text] = field(default_factory=list)
    data: list[Section] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)
    weak: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)


_LABEL = re.compile(r'\s*([\w.$]+|"[^"]*"):\s*(.*)$', re.DOTALL)
_ASSIGN = re.compile(r"\s*([\w.$]+)\s*=\s*(.+)$")
_COMMENT = re.compile(r"#.*$")
_SYMBOL = re.compile(r"([A-Za-z_.$][\w.$]*)\s*([+-].*)?$")
_SIZES = {
    ".byte": 1, ".2byte": 2, ".half": 2, ".short": 2, ".hword": 2, ".4byte": 4, ".word": 4,
    ".long": 4, ".8byte": 8, ".quad": 8, ".dword": 8,
}  # fmt: skip


_SECTION_LIMITS = {".mram": ("MRAM", 1 << 26), "": ("WRAM", 1 << 16)}  # bytes of content
_ADDRESSES = 1 << 32


class _Parser:
    """State while the lines of one file are read."""

    def __init__(self) -> None:
        self.out = Assembly()
        self.files: dict[str, str] = {}
        self.place: Place = None
        self.text: Text | None = None
        self.section: Section | None = None
        self.sections: dict[str, Text | Section] = {}
        self.in_asm = False
        self.enter(".text", "")

    # ------------------------------------------------------------------ sections

    def enter(self, name: str, flags: str) -> None:
        if name.startswith((".debug", ".note", ".comment", ".llvm", ".riscv")):
            self.text = self.section = None
            return
        found = self.sections.get(name)
        if found is None:
            if name.startswith(".text"):
                found = Text(name)
                self.out.texts.append(found)
            else:
                nobits = "@nobits" in flags or name.startswith((".bss", ".sbss"))
                found = Section(name, nobits=nobits)
                self.out.data.append(found)
            self.sections[name] = found
        self.text = found if isinstance(found, Text) else None
        self.section = found if isinstance(found, Section) else None

    def label(self, name: str) -> None:
        if self.text is not None:
            kind = "asm_label" if self.in_asm else "label"
            self.text.lines.append(Line(kind, name.strip('"')))
        elif self.section is not None:
            self.section.labels[name.strip('"')] = self.offset()

    def offset(self) -> int:
        assert self.section is not None
        return self.section.size if self.section.nobits else len(self.section.data)

    # ------------------------------------------------------------------ statements

    def line(self, raw: str) -> None:
        text = raw.strip()
        if text.startswith("#"):
            if "file scope inline assembly" in text:
                self.in_asm = text.startswith("# Start")
            elif text.startswith(("#APP", "#NO_APP")):
                self.in_asm = text.startswith("#APP")
                if not self.in_asm and self.text is not None:
                    self.text.lines.append(Line("end", ""))
            return
        if '"' not in text and "#" in text:
            text = _COMMENT.sub("", text).rstrip()
        if not text:
            return
        if ";" in text and '"' not in text:
            for part in text.split(";"):
                self.statement(part.strip())
        else:
            self.statement(text)

    def statement(self, text: str) -> None:
        match = _LABEL.match(text) if ":" in text else None
        if match:
            self.label(match[1])
            text = match[2].strip()
        if not text:
            return
        if text[0] == ".":
            name, _, rest = text.replace("\t", " ").partition(" ")
            self.directive(name, rest.strip())
        elif match := _ASSIGN.match(text):
            self.assign(match[1], match[2].strip())
        elif self.text is not None:
            op, _, rest = text.replace("\t", " ").partition(" ")
            kind = "asm" if self.in_asm else "insn"
            self.text.lines.append(Line(kind, op, split_operands(rest), self.place))
        elif self.section is not None:
            raise CompileError(f"instruction {text!r} in data section {self.section.name}")

    def assign(self, name: str, value: str) -> None:
        number = constant(value)
        if number is not None:
            self.out.values[name] = number
        else:
            self.out.aliases[name] = value

    # ------------------------------------------------------------------ directives

    def directive(self, name: str, rest: str) -> None:
        handler = _DIRECTIVES.get(name)
        if handler is not None:
            handler(self, rest)
        elif name in _SIZES:
            self.words(_SIZES[name], rest)
        elif self.in_asm and name not in _IGNORED:
            raise CompileError(f"assembly directive {name} is not supported")

    def words(self, size: int, rest: str) -> None:
        if self.section is None:
            return
        for item in split_operands(rest):
            number = constant(item)
            if number is None:
                self.section.relocs.append((len(self.section.data), size, symbol(item)))
                number = 0
            self.emit((number & ((1 << 8 * size) - 1)).to_bytes(size, "little"))

    def emit(self, data: bytes) -> None:
        if self.section is None:
            return
        if self.section.nobits:
            if any(data):
                raise CompileError(f"initial value in section {self.section.name}")
            self.section.size += len(data)
        else:
            self.section.data += data

    def zero(self, rest: str) -> None:
        parts = split_operands(rest)
        count = bounded(parts[0] if parts else "", _ADDRESSES)
        fill = (constant(parts[1]) if len(parts) > 1 else 0) or 0
        if self.section is not None and self.section.nobits and not fill:
            self.section.size += count
        else:
            self.check_size(count)
            self.emit(bytes([fill & 255]) * count)

    def check_size(self, count: int) -> None:
        """Refuse content that no memory holds, before it is made. Errors: CompileError."""
        if self.section is None:
            return
        kind = ".mram" if self.section.name.startswith(".mram") else ""
        memory, limit = _SECTION_LIMITS[kind]
        if self.offset() + count > limit:
            name = next(reversed(self.section.labels), self.section.name)
            raise CompileError(f"{name}: {count} bytes of {memory}, limit {limit}")

    def align(self, alignment: int) -> None:
        if self.section is not None and alignment > 0:
            self.section.align = max(self.section.align, alignment)
            self.emit(bytes(-self.offset() % alignment))

    def file(self, rest: str) -> None:
        match = re.match(r'(\d+)\s+"((?:[^"\\]|\\.)*)"(?:\s+"((?:[^"\\]|\\.)*)")?', rest)
        if match:
            folder, name = (match[2], match[3]) if match[3] else ("", match[2])
            own = name.startswith("<")  # text that is in no file
            self.files[match[1]] = name if own else os.path.join(os.getcwd(), folder, name)

    def loc(self, rest: str) -> None:
        parts = rest.split(maxsplit=2)
        if len(parts) >= 2 and parts[1] != "0":  # line 0: no place in the source
            self.place = (self.files.get(parts[0], "?"), bounded(parts[1], 1 << 31))

    def size(self, rest: str) -> None:
        name, _, value = rest.partition(",")
        number = constant(value.strip())
        if number is not None:
            self.out.sizes[name.strip()] = number

    def type(self, rest: str) -> None:
        name, _, kind = rest.partition(",")
        if kind.strip().lstrip("@%") == "function":
            self.out.functions.add(name.strip())

    def comm(self, rest: str) -> None:
        if "," not in rest:
            raise CompileError(f"assembly: .comm {rest} has no size")
        name, size, *alignment = split_operands(rest)
        self.enter(f".bss.{name}", "@nobits")
        self.align(bounded(alignment[0], 1 << 16) if alignment else 4)
        self.label(name)
        self.out.globals.add(name)
        self.zero(size)

    def set(self, rest: str) -> None:
        name, _, value = rest.partition(",")
        self.assign(name.strip(), value.strip())


def _enter(parser: _Parser, rest: str) -> None:
    name, _, flags = rest.partition(",")
    parser.enter(name.strip().strip('"'), flags)


def _string(terminated: bool) -> Callable[[_Parser, str], None]:
    def emit(parser: _Parser, rest: str) -> None:
        for item in re.findall(r'"((?:[^"\\]|\\.)*)"', rest, re.DOTALL):
            parser.emit(_unescape(item) + (b"\0" if terminated else b""))

    return emit


_DIRECTIVES: dict[str, Callable[[_Parser, str], None]] = {
    ".section": _enter,
    ".text": lambda p, rest: p.enter(".text", ""),
    ".data": lambda p, rest: p.enter(".data", ""),
    ".bss": lambda p, rest: p.enter(".bss", "@nobits"),
    ".rodata": lambda p, rest: p.enter(".rodata", ""),
    ".globl": lambda p, rest: p.out.globals.add(rest.strip()),
    ".global": lambda p, rest: p.out.globals.add(rest.strip()),
    ".weak": lambda p, rest: p.out.weak.add(rest.strip()),
    ".p2align": lambda p, rest: p.align(1 << bounded(rest.split(",")[0], 16)),
    ".balign": lambda p, rest: p.align(bounded(rest.split(",")[0], 1 << 16)),
    ".zero": _Parser.zero,
    ".space": _Parser.zero,
    ".skip": _Parser.zero,
    ".ascii": _string(False),
    ".asciz": _string(True),
    ".string": _string(True),
    ".file": _Parser.file,
    ".loc": _Parser.loc,
    ".size": _Parser.size,
    ".type": _Parser.type,
    ".comm": _Parser.comm,
    ".set": _Parser.set,
    ".equ": _Parser.set,
}
_IGNORED = frozenset((".local", ".hidden", ".protected", ".internal", ".ident", ".addrsig"))
_ESCAPES = {"n": 10, "t": 9, "r": 13, "b": 8, "f": 12, "v": 11, "a": 7}


def _unescape(text: str) -> bytes:
    def one(match: re.Match[str]) -> str:
        body = match[1]
        if body[0] in "01234567":
            return chr(int(body, 8) & 255)
        if body[0] == "x":
            return chr(int(body[1:], 16) & 255)
        return chr(_ESCAPES.get(body, ord(body)))

    raw = text.encode("utf-8", "surrogateescape").decode("latin-1")
    return re.sub(r"\\([0-7]{1,3}|x[0-9a-fA-F]+|.)", one, raw, flags=re.DOTALL).encode("latin-1")


def split_operands(text: str) -> list[str]:
    """Operands between commas; commas within parentheses do not count."""
    text = text.strip()
    if "(" not in text:
        return [part.strip() for part in text.split(",")] if text else []
    out, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    out.append(text[start:].strip())
    return out


_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Div: operator.floordiv, ast.Mod: operator.mod,
    ast.LShift: lambda a, b: a << (b & 63), ast.RShift: lambda a, b: a >> (b & 63),
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip


def constant(text: str) -> int | None:
    """Value of a constant expression, None if it names a symbol or is no expression."""
    try:
        return int(text, 0)
    except ValueError:
        pass
    if re.search(r"[A-Za-z_.$]", re.sub(r"0[xX][0-9a-fA-F]+", "", text)):
        return int(text, 8) if re.fullmatch(r"0[0-7]+", text) else None
    try:
        return _evaluate(ast.parse(re.sub(r"\b0+(?=\d)", "", text), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _evaluate(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_evaluate(node.left), _evaluate(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return ~_evaluate(node.operand)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd):
        return _evaluate(node.operand)
    raise ValueError


def bounded(text: str, limit: int) -> int:
    """A count from 0 to `limit`. Errors: CompileError."""
    number = constant(text.strip())
    if number is None or not 0 <= number <= limit:
        raise CompileError(f"assembly: {text.strip()!r} must be a number from 0 to {limit}")
    return number


def symbol(text: str) -> Sym:
    """`name`, `name+4`, `(name)` as a symbol. Errors: CompileError."""
    match = _SYMBOL.match(text.strip().strip("()").strip('"'))
    addend = constant(match[2].lstrip("+")) if match and match[2] else 0
    if not match or addend is None:
        raise CompileError(f"assembly: cannot understand the value {text!r}")
    return Sym(match[1], addend)


def parse(text: str) -> Assembly:
    """Read a whole file. Errors: CompileError."""
    parser = _Parser()
    for line in text.split("\n"):
        parser.line(line)
    return parser.out
