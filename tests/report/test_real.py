"""Real traces, drawn: the README's picture, and a notebook cell."""

from __future__ import annotations

import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REPO = Path(__file__).resolve().parent.parent.parent
CELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "lifetime")
shell.run_cell("import torch; kept = []; layer = torch.nn.Linear(64, 64); step = torch.optim.SGD(layer.parameters(), 1e-3)")
report = shell.run_cell_magic("lifetime", "--steps 5", '''
for _ in range(8):
    step.zero_grad(); loss = layer(torch.randn(32, 64)).pow(2).mean(); loss.backward(); step.step(); kept.append(loss)
''')
data, _ = shell.display_formatter.format(report)
assert "<iframe" in data["text/html"]
print(data["text/plain"])
"""


def texts(svg: Path) -> set[str]:
    return {element.text or "" for element in ElementTree.parse(svg).iter() if element.tag.endswith("}text")}


def test_the_command_beside_the_picture_draws_it(tmp_path: Path) -> None:
    line = next(line for line in (REPO / "README.md").read_text().splitlines() if line.startswith("<sub>`lifetime trace"))
    words = shlex.split(line.split("`")[1])
    target = tmp_path / "recompute.svg"
    words[words.index("--render") + 1] = str(target)
    done = subprocess.run([sys.executable, "-m", *words], cwd=REPO, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    kept_in = REPO / "fixtures/golden/recompute.svg"
    drawn, kept = texts(target), texts(kept_in)
    for told in ("UNTIL-GC: 72.0 MiB in 18 storages, +12.0 MiB a step", "ScaleBackward", "cut here: frees 72.0 MiB (proved)"):
        assert told in drawn and told in kept
    assert str(REPO) not in kept_in.read_text()


def test_a_traced_cell_names_what_the_notebook_keeps(tmp_path: Path) -> None:
    pytest.importorskip("IPython", reason="IPython is not installed")
    done = subprocess.run([sys.executable, "-c", CELL], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "GC Root: global __main__.kept" in done.stdout and "GROWING  20 B in 5 storages" in done.stdout
