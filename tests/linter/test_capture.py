"""How a file knows capture."""

from __future__ import annotations

import ast

import pytest

from lifetime.linter.capture import capture
from lifetime.linter.module import Module

KNOWS = [
    ("def is_graph_capturing():\n    return False\n", "is_graph_capturing()"),
    ("from megatron.core.transformer.cuda_graphs import is_graph_capturing\n", "is_graph_capturing()"),
    ("from torch.cuda import is_current_stream_capturing as busy\n", "busy()"),
    ("import torch\nok = torch.cuda.is_current_stream_capturing()\n", "torch.cuda.is_current_stream_capturing()"),
    ("import torch\ng = torch.cuda.CUDAGraph()\n", ""),
    ("import torch\nwith torch.cuda.graph(g):\n    pass\n", ""),
    ("import torch\nf = torch.cuda.make_graphed_callables(f, x)\n", ""),
]
DOES_NOT = [
    '"""torch.cuda.CUDAGraph is for others."""\n',
    "# is_graph_capturing()\nx = 1\n",
    "from torch import fx\ng = fx.Graph()\n",
    "class CUDAGraphFriendly:\n    pass\n",
    "import networkx\ng = networkx.graph(1)\n",
]


@pytest.mark.parametrize(("text", "query"), KNOWS)
def test_code_knows(text: str, query: str) -> None:
    found = capture(Module("a.py", text, ast.parse(text)))
    assert found is not None and found.query == query


@pytest.mark.parametrize("text", DOES_NOT)
def test_words_do_not(text: str) -> None:
    assert capture(Module("a.py", text, ast.parse(text))) is None
