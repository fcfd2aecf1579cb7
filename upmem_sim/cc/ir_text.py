"""Reading LLVM IR text: argument lists, debug places, what a function takes and gives."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DEPTH = {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1, ">": -1}


def split_arguments(text: str) -> list[str]:
    """Parts between commas that stand outside all brackets."""
    out, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += _DEPTH.get(char, 0)
        if char == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    out.append(text[start:].strip())
    return out


def debug_place(line: str) -> str:
    match = re.search(r", !dbg !\d+", line)
    return match[0] if match else ""


def place(lines: list[str], line: str, file: str) -> str:
    """file:line of an IR instruction, following inlined calls outwards."""
    match = re.search(r"!dbg (!\d+)", line)
    number = 0
    while match:
        head = match[1] + " = "
        entry = next((text for text in lines if text.startswith(head)), "")
        found = re.search(r"line: (\d+)", entry)
        number = int(found[1]) if found else number
        match = re.search(r"inlinedAt: (!\d+)", entry)
    return f"{file}:{number}" if number else file


_FUNCTION = re.compile(r"^(?:define|declare) (.*?)@([\w.$]+)\((.*)\)(?:[^)]*)$")
_RETURN = re.compile(r"(void|i\d+|float|double|ptr(?: addrspace\(255\))?|\{.*\}|\[.*\]|<.*>) $")
_WORDS = {"i1": 1, "i8": 1, "i16": 1, "i32": 1, "i64": 2, "float": 1, "double": 2, "ptr": 1}


@dataclass(frozen=True, slots=True)
class Signature:
    """How many 32-bit argument and result registers a function uses, None where unknown."""

    arguments: int | None
    results: int | None


def signatures(text: str) -> dict[str, Signature]:
    """Functions of a module: what their calls read, and what their returns hand over."""
    out: dict[str, Signature] = {}
    for line in text.split("\n"):
        if not line.startswith(("define ", "declare ")):
            continue
        match = _FUNCTION.match(line)
        if match and not match[2].startswith("llvm."):
            results = _result_words(match[1])
            # a result of unknown size may come back through a hidden pointer argument
            arguments = None if results is None else _argument_words(match[3])
            out[match[2]] = Signature(arguments, results)
    return out


def _result_words(head: str) -> int | None:
    match = _RETURN.search(head)
    if match is None:
        return None
    if match[1] == "void":
        return 0
    return _WORDS.get(match[1].split(" ")[0])


def _argument_words(text: str) -> int | None:
    """Registers of the arguments; unknown for variable or aggregate ones."""
    if not text:
        return 0
    if "..." in text or "{" in text or "[" in text or "<" in text:
        return None
    words = 0
    for part in split_arguments(text):
        count = _WORDS.get(part.split(" ")[0])
        if count is None:
            return None
        words += count
    return words
