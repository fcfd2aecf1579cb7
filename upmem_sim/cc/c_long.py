"""Give `long` its 8 bytes: rewrite preprocessed C for a 64-bit `long` and `long double` = double.

On a DPU `long` has 8 bytes and `long double` is `double`; RV32 has 4 and 16. The text is cut into
tokens; in each run of type specifiers `long` becomes `long long`, `long double` becomes `double`;
suffixes of constants and the builtins that take `long` follow. A specifier run cannot be broken by
anything but qualifiers, storage classes and attributes (C17 6.7), so this is exact after the
preprocessor, and strings, character constants and comments are left alone.
"""

from __future__ import annotations

import re
from pathlib import Path

from upmem_sim.cc.clang import INCLUDE_DIR
from upmem_sim.errors import CompileError

_TOKEN = re.compile(
    r"""
      (?P<string> (?:u8|[LuU])?"(?:[^"\\\n]|\\.)*" | [LuU]?'(?:[^'\\\n]|\\.)*' )
    | (?P<line>   ^[ \t]*\#[^\n]* )
    | (?P<number> \.?[0-9](?:[eEpP][+-]|[0-9A-Za-z_.])* )
    | (?P<word>   [A-Za-z_$][A-Za-z0-9_$]* )
    | (?P<space>  [ \t\r\n\f\v]+ | /\*.*?\*/ | //[^\n]* )
    | (?P<other>  . )
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
# Words that can stand in one run of declaration specifiers with `long`.
_SPECIFIERS = frozenset(
    re.findall(
        r"\w+",
        """
        long int unsigned signed double _Complex __complex__ __signed __signed__ const
        volatile restrict __const __const__ __volatile __volatile__ __restrict __restrict__
        _Atomic static extern typedef register auto inline __inline __inline__ _Noreturn
        _Thread_local __thread __extension__
        """,
    )
)
_ATTRIBUTES = frozenset(("__attribute__", "__attribute", "_Alignas", "__declspec", "__asm__"))
_SUFFIX = re.compile(r"([0-9a-fA-F.])([uU]?)([lL])([uU]?)$")
_BUILTINS = {
    f"__builtin_{name}l": f"__builtin_{name}ll"
    for name in ("clz", "ctz", "ffs", "parity", "popcount", "clrsb")
} | {
    f"__builtin_{sign}{op}l_overflow": f"__builtin_{sign}{op}ll_overflow"
    for sign in "su"
    for op in ("add", "sub", "mul")
}
_BUILTINS |= {"__builtin_labs": "__builtin_llabs", "__builtin_expect": "__upmem_expect"}
_REFUSED = frozenset(("__builtin_expect_with_probability",))
# `__builtin_expect` takes and gives `long`, which must stay 64 bits wide.
_PRELUDE = (
    "static inline __attribute__((always_inline, unused)) long long __upmem_expect"
    "(long long x, long long y) { return __builtin_expect(x == y, 1) ? y : x; }\n"
)
# Anything that could put `long`, or a constant of that type, into the preprocessed text.
_SUSPECT = re.compile(
    r"\blong\b|\b[0-9][0-9A-Za-z.]*[lL]\b|\b[0-9][0-9A-Za-z.]*[lL][uU]\b|##|%:%:|__builtin_expect"
    r"|__builtin_[a-z_]*l(?:_overflow)?\b|__builtin_labs"
)
_INCLUDE = re.compile(r"^[ \t]*(?:#|%:|\?\?=)[ \t]*include[ \t]*(.*)$", re.MULTILINE)


def needs_preprocessing(text: str, defines: tuple[tuple[str, str | None], ...]) -> bool:
    """False only if the preprocessed text cannot differ from what RV32 rules say.

    True if a word, constant, paste operator or builtin of interest occurs in the text or in a
    macro of the command line, or if it includes anything that is not one of our own headers.
    """
    joined = text.replace("\\\r\n", "").replace("\\\n", "")
    if _SUSPECT.search(joined) or any(_SUSPECT.search(v) for _, v in defines if v):
        return True
    return any(not _own_header(line) for line in _INCLUDE.findall(joined))


def _own_header(operand: str) -> bool:
    match = re.match(r"<([\w./]+)>", operand)
    return match is not None and ".." not in match[1] and (INCLUDE_DIR / match[1]).is_file()


def rewrite(preprocessed: str) -> str:
    """The same C with 64-bit `long` spelled `long long` and `long double` spelled `double`."""
    tokens = [(m.lastgroup or "other", m.group()) for m in _TOKEN.finditer(preprocessed)]
    out: list[str] = []
    uses_expect = False
    i = 0
    while i < len(tokens):
        kind, text = tokens[i]
        if kind == "word" and text in _SPECIFIERS:
            end = _run_end(tokens, i)
            out += _rewrite_run(tokens[i:end])
            i = end
            continue
        if kind == "word" and text in _BUILTINS:
            uses_expect |= text == "__builtin_expect"
            text = _BUILTINS[text]
        elif kind == "word" and text in _REFUSED:
            raise CompileError(f"{text}: takes long, which has 8 bytes on a DPU; use an if")
        elif kind == "number":
            text = _rewrite_number(text)
        out.append(text)
        i += 1
    return (_PRELUDE_MARK + "".join(out)) if uses_expect else "".join(out)


_PRELUDE_MARK = f'# 1 "<upmem>"\n{_PRELUDE}# 1 "<source>"\n'


def _run_end(tokens: list[tuple[str, str]], start: int) -> int:
    """Index after the run of specifiers, attributes and white space that starts at `start`."""
    i = end = start
    while i < len(tokens):
        kind, text = tokens[i]
        if kind == "word" and text in _SPECIFIERS:
            i += 1
            end = i
        elif kind == "word" and text in _ATTRIBUTES:
            i = _skip_parentheses(tokens, i + 1)
        elif kind in ("space", "line"):
            i += 1
        else:
            break
    return end


def _skip_parentheses(tokens: list[tuple[str, str]], i: int) -> int:
    depth = 0
    while i < len(tokens):
        depth += {"(": 1, ")": -1}.get(tokens[i][1], 0)
        i += 1
        if depth == 0 and tokens[i - 1][0] != "space":
            break
    return i


def _rewrite_run(run: list[tuple[str, str]]) -> list[str]:
    words = [text for kind, text in run if kind == "word"]
    texts = [text for _, text in run]
    longs = [i for i, (kind, text) in enumerate(run) if kind == "word" and text == "long"]
    if len(longs) != 1:
        return texts
    texts[longs[0]] = "" if "double" in words else "long long"
    return texts


def _rewrite_number(text: str) -> str:
    match = _SUFFIX.search(text)
    if not match or re.search(r"[lL][lL]", text):
        return text
    is_hex = text[:2] in ("0x", "0X")
    is_float = "." in text or re.search(r"[pP]" if is_hex else r"[eEpP]", text)
    if is_float:
        return text[:-1]
    return text[: match.start(2)] + match[2] + "LL" + match[4]


def source_text(source: str | Path) -> str:
    """Text of a unit given as text or as a file. Errors: OSError."""
    if isinstance(source, str):
        return source
    return source.read_text("utf-8", "surrogateescape")
