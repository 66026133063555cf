"""How a file knows about CUDA-graph capture: by code, never by comments or names alone."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from lifetime.linter.module import Module

QUERY = re.compile(rb"captur|CUDAGraph|cuda\.graph\(|make_graphed_callables")
QUERIES = ("is_graph_capturing", "is_current_stream_capturing")


@dataclass(frozen=True)
class Capture:
    """`line` shows that the file knows capture; `query` is the call that asks for it, empty where the file has none."""

    line: int
    what: str
    query: str = ""


def capture(module: Module) -> Capture | None:
    """The first sign of capture in the code of `module`, None where there is none."""
    if "capture" not in module.memo:
        module.memo["capture"] = _find(module)
    found = module.memo["capture"]
    assert found is None or isinstance(found, Capture)
    return found


def _find(module: Module) -> Capture | None:
    if not QUERY.search(module.source.encode(errors="replace")):
        return None
    signs = sorted((s for node in module.nodes for s in _signs(node)), key=lambda s: (not s.query, s.line))
    return signs[0] if signs else None


def _signs(node: ast.AST) -> list[Capture]:
    match node:
        case ast.FunctionDef(name=name) if name in QUERIES:
            return [Capture(node.lineno, f"def {name}", f"{name}()")]
        case ast.ImportFrom(names=names):
            found = {a.name: a.asname or a.name for a in names}
            return [Capture(node.lineno, f"import of {n}", f"{found[n]}()" if n in QUERIES else "") for n in found if n in KNOWN]
        case ast.Attribute(attr=("is_current_stream_capturing" | "is_graph_capturing") as name):
            return [Capture(node.lineno, name, f"{ast.unparse(node)}()")]
        case ast.Attribute(attr=("CUDAGraph" | "make_graphed_callables") as name):
            return [Capture(node.lineno, name)]
        case ast.Call(func=ast.Attribute(attr="graph", value=ast.Attribute(attr="cuda"))):
            return [Capture(node.lineno, "torch.cuda.graph(")]
        case ast.Call(func=ast.Name(id="is_graph_capturing" | "is_current_stream_capturing" as name)):
            return [Capture(node.lineno, name, f"{name}()")]
    return []


KNOWN = {*QUERIES, "CUDAGraph", "make_graphed_callables"}
