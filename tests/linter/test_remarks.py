"""Which comments name a holder."""

from __future__ import annotations

import ast

import pytest

from lifetime.linter.module import Module
from lifetime.linter.remarks import names_holder, remark

OWN = {"leaf", "leaves", "dx", "hidden_leaf", "grad_hidden"}
NAMED = [
    "MTPBlock.embedding_cache keeps leaves[0]",
    "held by RECENT until the next step",
    "self.fwd_cache[chunk_id] points at it",
    "the closure `pack` of the offload context refers to leaf",
    "kept by run_function's graph",
    "layer.mlp.probs still refers to leaves[1]",
    "OffloadContext keeps it (see #123)",
]
VAGUE = [
    "free memory",
    "avoids a leak, see #1234",
    "something keeps the leaves alive",
    "clear .grad so that memory does not grow with the number of segments",
    "`hidden_leaf.grad` is no longer needed once `grad_hidden` has been read",
    "see https://github.com/pytorch/pytorch/issues/1",
    "release leaf.grad, e.g. after an OOM on the GPU",
    "NOTE: PyTorch keeps .grad otherwise",
    "as in megatron/core/random.py:669",
    "torch.autograd would add to it",
]


@pytest.mark.parametrize("comment", NAMED)
def test_a_holder_is_named(comment: str) -> None:
    assert names_holder(comment, OWN)


@pytest.mark.parametrize("comment", VAGUE)
def test_no_holder_is_named(comment: str) -> None:
    assert not names_holder(comment, OWN)


def test_the_comment_stands_above_or_behind() -> None:
    text = "x = 1\n# above\n# it\nfor t in x:  # behind\n    t = 1  # noqa: F841\ny = '# text'\n"
    module = Module("a.py", text, ast.parse(text))
    loop = module.tree.body[1]
    assert isinstance(loop, ast.For)
    assert remark(module, loop) == "above\nit\nbehind"
    assert remark(module, loop.body[0]) == remark(module, module.tree.body[2]) == ""


def test_a_pragma_behind_a_comment_is_no_part_of_it() -> None:
    text = "x = None  # frees memory  # noqa: E501\ny = None  # see #12\nz = None  # pylint: disable=X  # Layer.cache keeps it\n"
    module = Module("a.py", text, ast.parse(text))
    assert [remark(module, s) for s in module.tree.body] == ["frees memory", "see #12", "Layer.cache keeps it"]
