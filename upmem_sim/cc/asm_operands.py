"""64-bit operands of inline assembly in LLVM IR: put into register pairs, and marked as such.

The SDK's compiler holds a 64-bit "r" operand in a pair and prints dN, whatever the instruction.
clang's RV32 takes any two registers for "r" (pairs are "R") and prints the one of the low word: an
instruction on 32 bits would take half of the value, silently.
"""

from __future__ import annotations

import re

from upmem_sim.cc.ir_text import place, split_arguments
from upmem_sim.cc.translate import REGISTERS
from upmem_sim.errors import CompileError

MARK = "pair_"
_CALL = re.compile(r'^(.*\bcall (.*?) ?asm (?:\w+ )*)"([^"]*)", "([^"]*)"\((.*)$')
_OPERAND = re.compile(r"\$\$|\$(?:(\d+)|\{(\d+)[^}]*\})")
_WIDE = ("i64", "double")
_RV_NAME = re.compile(rf"(?<![\w.$%])({'|'.join(sorted(set(REGISTERS) - {'zero'}))})(?![\w.])")


def refuse_register_names(lines: list[str], file: str) -> None:
    """Errors: CompileError for assembly with a symbol that RV32, whose names clang prints for
    operands, calls a register: `s1` would silently become one."""
    for line in lines:
        match = _CALL.match(line) if " asm " in line else None
        if match is None:
            continue
        found = _RV_NAME.search(re.sub(r"\\0[9A]", "\n", match[3]) + _enclosed(match[5]))
        if found:
            raise CompileError(
                f"{place(lines, line, file)}: error: inline assembly cannot name {found[1]!r}: a"
                " register of the compiler is called so; rename it or pass it as an operand"
            )


def mark_pairs(lines: list[str]) -> list[str]:
    """IR lines with `pair_` in front of every 64-bit operand in the text of an asm statement.

    Such operands get the constraint "R" for "r".
    """
    return [_marked(line) if " asm " in line and _is_wide(line) else line for line in lines]


def _is_wide(line: str) -> bool:
    return any(kind in line for kind in _WIDE)


def _marked(line: str) -> str:
    match = _CALL.match(line)
    if match is None:
        return line
    head, result, template, constraints, rest = match.groups()
    wide = _wide_operands(result, constraints, rest)

    def mark(operand: re.Match[str]) -> str:
        number = operand[1] or operand[2]
        return MARK + operand[0] if number and int(number) in wide else operand[0]

    if not wide:
        return line
    kinds = constraints.split(",")
    for number in wide:
        kinds[number] = kinds[number].replace("r", "R")
    constraints = ",".join(kinds)
    return f'{head}"{_OPERAND.sub(mark, template)}", "{constraints}"({rest}'


def _enclosed(text: str) -> str:
    """What stands before the parenthesis that closes the one in front of `text`."""
    depth = 0
    for i, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            return text[:i]
    return text


def _wide_operands(result: str, constraints: str, rest: str) -> set[int]:
    """Numbers of the operands in registers that have 64 bits."""
    arguments = iter(split_arguments(_enclosed(rest)))
    results = iter(split_arguments(result.strip("{} ")))
    wide = set()
    kinds = [c for c in constraints.split(",") if not c.startswith("~")]
    for number, constraint in enumerate(kinds):
        direct = constraint.startswith("=") and "*" not in constraint
        type_ = next(results if direct else arguments, "")
        if type_.startswith(_WIDE) and "*" not in constraint:
            wide.add(number)
    return wide
