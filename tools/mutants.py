"""Small changes to Python and Cython source, each of which some test should notice. Used by mutate.py."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SWAPS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "+": "-",
    "-": "+",
    "*": "+",
    "//": "*",
    "|": "&",
    "&": "|",
    "^": "|",
    "<<": ">>",
    ">>": "<<",
    "+=": "-=",
    "-=": "+=",
    "|=": "&=",
    "%": "*",
    "and": "or",
    "or": "and",
    "not": "",
    "is": "is not",
    "in": "not in",
    "True": "False",
    "False": "True",
    "break": "continue",
    "continue": "break",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
}
CONDITIONS = ("if", "elif", "while")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "is", "in", "not", "and", "or")
DECLARE_NOTHING_TESTABLE = ("__slots__", "__match_args__", "__all__")
# What begins a line that says how something is called and typed, not what it does.
DECLARATIONS = ("import", "from", "cimport", "include", "ctypedef", "class", "def", "async", "@", "assert", "global")
KEPT_WHOLE = ("if", "elif", "else", "for", "while", "try", "except", "finally", "with", "cdef", "pass", "case", "match")
TYPES = {"Any", "Callable", "Iterable", "Mapping", "Sequence", "dict", "list", "tuple"}
CAST = re.compile(r"<(?:const |unsigned |long )*[A-Za-z_]\w*(?: long| char)?\s*\**\??>(?=[\w(&-])")


@dataclass(frozen=True)
class Mutant:
    """One change of a file: the text between two places becomes another one."""

    file: str
    start: int
    stop: int
    new: str
    line: int
    first_line: int
    """Of the statement; its lines say which tests run it."""
    last_line: int
    old_line: str
    new_line: str

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.stop :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}\n    - {self.old_line}\n    + {self.new_line}"


class _Source:
    """A file by places: offsets, lines, and the spans that are left alone."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.text = path.read_text(encoding="utf-8")
        self.is_python = path.suffix == ".py"
        self.starts = [0]
        for line in self.text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        spans = _left_alone(self.text) if self.is_python else []
        self.spans = [(self.at(*start), self.at(*stop)) for start, stop in spans]
        if not self.is_python:
            self.spans += [match.span() for match in CAST.finditer(self.text)]

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def logical_lines(self) -> Iterator[list[tokenize.TokenInfo]]:
        line: list[tokenize.TokenInfo] = []
        text = self.text if self.is_python else self.text.replace("except?", "except ")
        layout = (tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.COMMENT)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE and line:
                yield line
                line = []
            elif token.type not in layout:
                line.append(token)

    def change(self, line: list[tokenize.TokenInfo], start: int, stop: int, new: str) -> Mutant | None:
        if any(low <= start < high for low, high in self.spans):
            return None
        number = bisect_right(self.starts, start)
        low, high = self.starts[number - 1], self.starts[bisect_right(self.starts, max(start, stop - 1))]
        old_line = " ".join(self.text[low:high].split())
        new_line = " ".join((self.text[low:start] + new + self.text[stop:high]).split())
        return Mutant(self.name, start, stop, new, number, line[0].start[0], line[-1].end[0], old_line, new_line)


def _left_alone(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Annotations, docstrings and what is for type checkers only."""
    tree = ast.parse(text)
    found: list[ast.AST | None] = []
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=annotation):
                found.append(annotation)
            case ast.AnnAssign(annotation=annotation, value=value):
                found.append(annotation if value else node)
            case ast.FunctionDef(returns=returns) | ast.AsyncFunctionDef(returns=returns):
                found.append(returns)
            case ast.If(test=ast.Name("TYPE_CHECKING")) | ast.Expr(value=ast.Constant()):
                found.append(node)
            case ast.ClassDef(bases=[ast.Name("Protocol")]):
                found.append(node)
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign) else None
        names = {part.id for part in ast.walk(value or ast.Pass()) if isinstance(part, ast.Name)}
        if isinstance(value, ast.Subscript | ast.BinOp) and names & TYPES:  # an alias of types: X = dict[str, Any]
            found.append(node)
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        for node in found
        if isinstance(node, ast.stmt | ast.expr)
    ]


def mutants_of(path: Path, name: str) -> list[Mutant]:
    """Every mutant of a file. A few are no valid program: whoever runs them will see."""
    source = _Source(path, name)
    made = [mutant for line in source.logical_lines() for mutant in _of_line(source, line) if mutant is not None]
    return list({(mutant.start, mutant.stop, mutant.new): mutant for mutant in made}.values())


def _of_line(source: _Source, line: list[tokenize.TokenInfo]) -> Iterator[Mutant | None]:
    first = line[0].string
    is_cython_signature = first == "cdef" and (line[-1].string == ":" or not any(t.string == "=" for t in line))
    is_parameters = source.is_python is False and first in ("cpdef", "def")
    is_docstring = all(token.type == tokenize.STRING for token in line)
    if first in DECLARATIONS or first in DECLARE_NOTHING_TESTABLE:
        if first not in ("def", "async") or is_parameters:
            return
    elif is_cython_signature or is_docstring:
        return
    if not source.is_python and [token.string for token in line] == ["return", "0"]:
        return  # of a function that can only fail
    yield from _of_tokens(source, line)
    start, stop = source.at(*line[0].start), source.at(*line[-1].end)
    if first in CONDITIONS:
        colon = next((t for t in reversed(line) if t.string == ":"), None)
        inside = [t.string for t in line[1:]]
        if colon is not None and not any(word in COMPARISONS for word in inside):
            low, high = source.at(*line[1].start), source.at(*colon.start)
            yield source.change(line, low, high, f"not ({source.text[low:high]})")
    elif first == "return" and len(line) > 1:
        if [t.string for t in line[1:]] not in (["None"], ["NULL"], ["0"]) and source.is_python:
            yield source.change(line, start, stop, "return None")
    elif first not in KEPT_WHOLE and first not in DECLARATIONS and line[-1].string != ":":
        is_bare_annotation = len(line) > 1 and line[1].string == ":" and not any(t.string == "=" for t in line)
        if not is_bare_annotation and first not in ("return", "break", "continue", "yield"):
            yield source.change(line, start, stop, "pass")


def _of_tokens(source: _Source, line: list[tokenize.TokenInfo]) -> Iterator[Mutant | None]:
    words = [token.string for token in line]
    loops = "for" in words
    for place, token in enumerate(line):
        start, stop = source.at(*token.start), source.at(*token.end)
        before = words[place - 1] if place else ""
        after = words[place + 1] if place + 1 < len(words) else ""
        if token.type == tokenize.NUMBER:
            yield source.change(line, start, stop, f"({token.string} + 1)")
        elif token.type == tokenize.STRING:
            yield _of_string(source, line, token, start)
        elif token.string == "is" and after == "not":
            yield source.change(line, start, source.at(*line[place + 1].end), "is")
        elif token.string == "not" and after == "in":
            yield source.change(line, start, stop, "")
        elif token.string in SWAPS and not (
            (token.string in ("in", "not") and (before in ("is", "not") or (loops and token.string == "in")))
            or (token.string in ("min", "max", "any", "all") and after != "(")
        ):
            yield source.change(line, start, stop, SWAPS[token.string])


def _of_string(source: _Source, line: list[tokenize.TokenInfo], token: tokenize.TokenInfo, start: int) -> Mutant | None:
    """A word gets another letter; sentences are for people, and formatted ones too."""
    text = token.string
    quote = min((text.find(q) for q in "\"'" if q in text), default=-1)
    inside = text[quote + 1 : -1]
    if quote < 0 or "f" in text[:quote].lower() or text[quote : quote + 3] in ('"""', "'''") or " " in inside.strip():
        return None
    if not source.is_python and line[0].string in ("cdef", "def", "cpdef"):
        return None
    if not source.is_python and text[:quote] == "b" and len(inside.replace("\\", "")) == 1:
        return source.change(line, start, start + len(text), f"({text} + 1)")  # a byte, in C
    return source.change(line, start + quote + 1, start + quote + 1, "X")
