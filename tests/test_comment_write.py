"""`lifetime comment --write`: one block above the release, in the file's own style, whatever the report says."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from lifetime import comment
from lifetime.errors import LifetimeError
from lifetime.heap.model import Link, Site, SiteVerdict
from lifetime.report.comment import Release
from tests.report.samples import report, survivor

SOURCE = """\
import torch

class Recompute(torch.autograd.Function):
    @staticmethod
    def backward(ctx, g):
        d = ctx.x.detach().requires_grad_()
        torch.autograd.backward(ctx.run(d), g)
        grads = None, d.grad
        d.grad = None
        return grads
"""


def release(path: Path) -> Release:
    site = Site("LT001", str(path), 8, "Recompute.backward", 7, 0, SiteVerdict.CONFIRMED, ("900acb959948",), 4096, 4096, ())
    return Release(site, replace(survivor(), fingerprint="900acb959948"), report().environment, "d")


def written(path: Path, source: str) -> list[str]:
    path.write_bytes(source.encode())
    assert comment.write(release(path))
    assert not comment.write(release(path)), "a second time changes nothing"
    text = path.read_bytes().decode()
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))
    return [line for line in text.splitlines(keepends=True) if line.lstrip().startswith("#")]


@pytest.mark.parametrize(
    ("source", "begins", "ends"),
    [
        (SOURCE, "        # ", "\n"),
        (SOURCE.replace("\n", "\r\n"), "        # ", "\r\n"),
        (SOURCE.replace("    ", "\t"), "\t\t# ", "\n"),
        (SOURCE.replace("d.grad\n        d.grad = None", "d.grad; d.grad = None"), "        # ", "\n"),
        (SOURCE.replace("import torch\n", "import torch\n\f\n"), "        # ", "\n"),
    ],
    ids=["plain", "crlf", "tabs", "one line", "form feed"],
)
def test_the_block_has_the_style_of_the_file(source: str, begins: str, ends: str, tmp_path: Path) -> None:
    block = written(tmp_path / "train.py", source)
    assert block[0].strip() == "# lifetime: holder 900acb959948"
    assert all(line.startswith(begins) and line.endswith(ends) for line in block)


def test_no_text_of_a_report_becomes_code(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    evil = replace(release(path), leaves="d\nimport os\x1b[31m", doubts=("x.py\rimport sys",))
    link = Link("a\nraise SystemExit", "m.A", ".b\u2028pass", "attribute")
    held = replace(evil.survivor, chain=replace(evil.survivor.chain, links=(link,), cycle=None))
    comment.write(replace(evil, survivor=held))
    assert ast.dump(ast.parse(path.read_text())) == ast.dump(ast.parse(SOURCE)) and "\x1b" not in path.read_text()


def test_a_fingerprint_that_is_none_is_refused(tmp_path: Path) -> None:
    site = release(tmp_path / "train.py").site
    held = replace(survivor(), fingerprint="900acb\nimport os")
    wrong = replace(report(held), sites=(replace(site, survivors=(held.fingerprint,)),))
    with pytest.raises(LifetimeError, match="changed by hand"):
        comment.choose(wrong, None)


def test_a_release_that_moved_away_is_said(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SOURCE.replace("        d.grad = None\n", ""))
    with pytest.raises(LifetimeError, match="releases nothing"):
        comment.write(release(path))


def test_the_leaf_is_called_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    site = release(path).site
    assert comment.describe(replace(report(), sites=(site,)), site, survivor()).leaves == "d"
