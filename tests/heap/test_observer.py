"""The traced program does not notice: the same output, random state, tensors and survivors as without a tracer.

Survivors are storages: where the tracer has read a gradient or a saved output, torch keeps the Python object that this made for
as long as the tensor lives. Each program is run twice in processes of their own, with an epilogue that prints all this. gc is off
in both, so that nothing depends on how many objects the tracer made.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent.parent
FIXTURES = sorted([*REPO.glob("fixtures/leaks/*.py"), *REPO.glob("fixtures/healthy/*.py")])
HEAD = "import gc as _gc, random as _random, torch as _torch; _gc.disable(); _random.seed(7); _torch.manual_seed(7)\n"
EPILOGUE = """

def _state():
    import hashlib, gc, random, sys, threading, types
    import torch
    from lifetime.heap.watch import Watch
    def digest(*parts):
        return hashlib.sha256(b"".join(parts)).hexdigest()[:16]
    things, seen = list(globals().values()), set()
    for one in things:  # grows as we go: all that the program can name
        if id(one) in seen or issubclass(type(one), (type, types.ModuleType, types.CodeType)):
            continue
        seen.add(id(one))
        things += (one.__closure__ or ()) if type(one) is types.FunctionType else gc.get_referents(one)
        things += [one.grad] if issubclass(type(one), torch.Tensor) and one.is_leaf else []
    tensors = {id(one): one for one in things if issubclass(type(one), torch.Tensor)}.values()
    flat = lambda t: t.detach().contiguous().view(-1).view(torch.uint8)
    bits = [f"{t.dtype} {tuple(t.shape)} {digest(bytes(flat(t).tolist()))}" for t in tensors]
    watch = Watch()
    print("state: random", digest(repr(random.getstate()).encode()), digest(bytes(torch.get_rng_state().tolist())))
    print("state: tensors", len(bits), digest(repr(sorted(bits)).encode()))
    print("state: live bytes", watch.observe(0), sorted(one.nbytes for one in watch.alive().values()))
    print("state: settings", gc.isenabled(), gc.get_threshold(), len(gc.callbacks), gc.get_freeze_count(), threading.active_count())
    print("state: torch", torch.is_grad_enabled(), torch.get_num_threads(), torch.Tensor.grad is torch._C.TensorBase.grad)
    print("state: hooks", sys.gettrace(), sys.getprofile(), [type(one).__name__ for one in sys.meta_path], len(sys.path))

_state()
"""

PARTS = (
    "KEPT.append(loss)",
    "SEEN[f'step {i}'] = loss.detach()",
    "out.register_hook(lambda g: (LOG.append(out.sum()), g)[1])",
    "model.weight.grad_fn_like = (loss * 2).exp()",
    "QUEUE.append(torch.rand(5)); random.random()",
    "print('noise', torch.rand(1).item(), random.random())",
    "torch.autograd.grad(((model(x) ** 2).sum()), model.weight, create_graph=True)",
    "ring = [torch.rand(3)]; ring.append(ring)",
    "RETURNED.append((lambda t: (lambda: t))(torch.nn.functional.dropout(out, 0.5)))",
    "torch.manual_seed(i) if i == 3 else None",
    "ITER.append(value for value in [out.clone()])",
    "WEAK[i] = weakref.ref(out); print('dead', sum(r() is None for r in WEAK.values()))",
    "torch.utils.checkpoint.checkpoint(lambda v: (model(v) ** 2).sum(), x.requires_grad_(), use_reentrant=False).backward()",
)


def generated(seed: int) -> str:
    """A training loop with some of the parts, and either optimizer."""
    choice = random.Random(seed)
    parts = choice.sample(PARTS, choice.randint(2, 6))
    body = "\n".join(f"    {part}" for part in parts)
    optimizer = choice.choice(("SGD(model.parameters(), lr=0.1, momentum=0.9)", "AdamW(model.parameters())"))
    return f"""
import collections, random, weakref
import torch, torch.utils.checkpoint
torch.manual_seed({seed}); random.seed({seed})
KEPT, LOG, RETURNED, ITER, SEEN, WEAK = [], [], [], [], {{}}, {{}}
QUEUE = collections.deque(maxlen=3)
model = torch.nn.Linear(6, 6)
optimizer = torch.optim.{optimizer}
for i in range(9):
    optimizer.zero_grad()
    x = torch.rand(4, 6)
    out = model(x)
    loss = torch.nn.functional.dropout(out, 0.1).pow(2).mean()
{body}
    loss.backward()
    optimizer.step()
    print(i, loss.item())
"""


def compare(source: str, folder: Path, *options: str) -> None:
    """The trace has to be over when the epilogue comes."""
    (folder / "program.py").write_text(f"{HEAD}{source}{EPILOGUE}")
    plain = _run([sys.executable, "program.py"], folder)
    traced = _run([sys.executable, "-m", "lifetime", "trace", *options, "-o", "r.json", "--fail-on", "never", "program.py"], folder)
    assert plain[0] == 0, plain[1]
    assert (folder / "r.json").is_file() and "state: tensors" in plain[1]
    assert traced == plain


def _run(command: list[str], folder: Path) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, env=environment)
    return done.returncode, re.sub(r"0x[0-9a-f]+", "0x", done.stdout) + (done.stderr if done.returncode else "")


def test_a_program_with_a_bit_of_everything(tmp_path: Path) -> None:
    compare(generated(1), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("program", FIXTURES, ids=[f"{path.parent.name}-{path.stem}" for path in FIXTURES])
def test_the_fixtures(program: Path, tmp_path: Path) -> None:
    source = program.read_text().replace("from __future__ import annotations", "")
    compare(source, tmp_path, "--steps", "2")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_generated_programs(seed: int, tmp_path: Path) -> None:
    compare(generated(seed), tmp_path)
