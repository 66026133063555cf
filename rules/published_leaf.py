"""LT006: a leaf gets out of the backward that fills it."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter.flow.flow import flow
from lifetime.linter.model import Finding
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule

RUN = "def backward(fn, x, dy):\n    leaf = x.detach().requires_grad_()\n    fn(leaf).backward(dy)\n"
TAKE = "    grad, leaf.grad = leaf.grad, None\n"


class PublishedLeaf(Rule):
    """LT006: a backward stores its detached leaves outside, or returns them beside the gradients.

    Why: whoever gets the leaf decides how long it and its `.grad` live, and may read or add to that `.grad` at any time: a
    release inside the backward is then not enough to bound the memory, and not obviously safe. Store what is needed (a shape, a
    detached copy, the gradient).

    Fix safety: no fix. What the receiver needs instead of the leaf cannot be read off the source.

    Source: DESIGN of this linter: leaves that `forward` stores for a later backward of the same class are a protocol and no
    publication.
    """

    code = "LT006"
    name = "published-leaf"
    needles = ((rb"\.grad\b", rb"backward\w*\(\s*[^)\s]", rb"detach|requires_grad|Variable"),)
    bad = (
        Bad("SEEN = []\n\n\n" + RUN + TAKE + "    SEEN.append((fn, leaf))\n    return grad\n", (8,)),
        Bad(RUN + TAKE + "    return grad, leaf\n", (5,)),
        Bad(
            "class Stage:\n    def backward(self, fn, x, dy):\n        leaf = x.detach().requires_grad_()\n"
            "        fn(leaf).backward(dy)\n"
            "        self.last = leaf\n        return leaf.grad\n",
            (5,),
            also=("LT001", "LT011"),
        ),
    )
    good = (
        Good(
            "import weakref\n\nSEEN = []\n\n\n" + RUN + TAKE + "    SEEN.append(weakref.ref(leaf))\n    return grad\n",
            "a weak reference",
        ),
        Good(
            "SEEN = {}\n\n\n" + RUN + TAKE + "    SEEN['x'] = leaf.shape\n    SEEN['dx'] = grad\n    return grad\n",
            "no leaf is kept",
        ),
        Good(
            "class Stage:\n    def backward(self, fn, x, dy):\n        self.leaf = x.detach().requires_grad_()\n"
            "        fn(self.leaf).backward(dy)\n        grad, self.leaf.grad = self.leaf.grad, None\n        self.leaf = None\n"
            "        return grad\n",
            "the attribute is emptied on every way out",
        ),
        Good(
            "def fresh(xs):\n    return [x.detach().requires_grad_() for x in xs]\n\n\ndef backward(fn, xs, dy):\n"
            "    leaves = fresh(xs)\n"
            "    fn(*leaves).backward(dy)\n    grads = [t.grad for t in leaves]\n    for t in leaves:\n        t.grad = None\n"
            "    return grads\n",
            "a factory hands out leaves that are not filled yet",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for published in flow(module).published:
            where = f"stored in `{published.path}`" if published.path else "returned beside the gradients"
            message = f"a leaf of this backward is {where}: a release here does not end its life"
            yield self.finding(module, published.node, message, evidence={"path": published.path or "return"})
