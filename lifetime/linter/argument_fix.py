"""Takes a keyword argument out of a call, with LibCST, so that commas and line breaks come out right."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from lifetime.linter.model import Edit, Span
from lifetime.linter.module import Module

if TYPE_CHECKING:
    import libcst as cst

WIDTH = 88


def without_keyword(module: Module, call: ast.Call, name: str) -> Edit | None:
    """An edit of the parenthesis of `call`; None where a comment stands inside it and would be lost."""
    import libcst as cst  # 70 ms that only a finding is worth

    whole, func = module.text(call), module.text(call.func)
    if not whole.startswith(func):
        return None
    tail = whole[len(func) :]
    if "#" in tail:
        return None
    try:
        parsed = cst.parse_expression("f" + tail)
    except cst.ParserSyntaxError:
        return None
    if not isinstance(parsed, cst.Call):
        return None
    start = module.span(call.func)
    end = module.span(call)
    span = Span(start.end_line, start.end_column, end.end_line, end.end_column)
    return Edit(span, _spelled(parsed, name, start.end_column))


def _spelled(call: cst.Call, name: str, column: int) -> str:
    """The parenthesis without the keyword; on one line if nothing is left to break for."""
    import libcst as cst

    kept = [a for a in call.args if a.keyword is None or a.keyword.value != name]
    trailing = isinstance(call.args[-1].comma, cst.Comma)
    if not kept:
        return "()"
    flat = [a.with_changes(comma=cst.MaybeSentinel.DEFAULT) for a in kept]
    one_line = cst.Module([]).code_for_node(cst.Call(cst.Name("f"), flat))[1:]
    if not trailing and "\n" not in one_line and column + len(one_line) <= WIDTH:
        return one_line
    kept[-1] = kept[-1].with_changes(comma=call.args[-1].comma)
    return cst.Module([]).code_for_node(call.with_changes(args=kept))[1:]
