"""`lifetime verify` as a user runs it: each conclusion and each refusal on a small program of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from lifetime.cli.verify import run
from lifetime.errors import UsageError

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "leaks"

HELD = """
    import torch

    KEPT = []

    class Recompute(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            leaf = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                out = leaf * leaf
            KEPT.append(out)
            torch.autograd.backward(out, grad)
            {harvest}

    weight = torch.nn.Parameter(torch.ones(256, 256))
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    for step in range(4):
        optimizer.zero_grad()
        {body}
        optimizer.step()
"""


def program(tmp_path: Path, harvest: str = "return leaf.grad", body: str = "Recompute.apply(weight).sum().backward()") -> Path:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(HELD).replace("{harvest}", harvest).replace("{body}", body))
    return path


def verify(script: Path, *options: str, cwd: Path | None = None) -> tuple[int, dict[str, Any] | None, str]:
    out = (cwd or script.parent) / "verify.json"
    command = [sys.executable, "-m", "lifetime", "verify", "-n", "2", "-o", str(out), *options, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd or script.parent)
    return done.returncode, json.loads(out.read_text()) if out.exists() else None, done.stdout + done.stderr


def test_a_held_gradient_is_lower_without_it_and_one_copy_fewer(tmp_path: Path) -> None:
    code, result, text = verify(program(tmp_path))
    assert code == 0 and result is not None, text
    metrics = {metric["name"]: metric for metric in result["metrics"]}
    assert result["conclusion"] == "lower" and result["gradients"] == {"identical": True, "first_difference": None}
    assert metrics["live_bytes"]["before"] - metrics["live_bytes"]["after"] == 3 * 256 * 256 * 4
    assert (metrics["gradient_copies"]["before"], metrics["gradient_copies"]["after"]) == (1, 0)
    assert [fix["line"] for fix in result["fixes"]] == [19] and result["fixes"][0]["path"] == "train.py"


@pytest.mark.slow
def test_a_second_backward_through_a_saved_leaf_is_corrected(tmp_path: Path) -> None:
    code, result, text = verify(FIXTURES / "saved_leaf.py", cwd=tmp_path)
    assert code == 1 and result is not None, text
    assert result["conclusion"] == "corrected" and "because they were wrong" in text and "LT011" in text
    assert result["gradients"]["first_difference"] == {"step": 0, "parameter": "leaf 0 (256x256)", "max_abs": 2.0}


@pytest.mark.slow
def test_a_program_that_differs_by_itself_concludes_nothing(tmp_path: Path) -> None:
    code, result, text = verify(program(tmp_path, body="(Recompute.apply(weight) * torch.rand(256, 256)).sum().backward()"))
    assert code == 2 and result is not None
    assert result["conclusion"] == "not-deterministic" and "Seed torch" in text and "first difference: step 0" in text


@pytest.mark.slow
def test_a_leaf_that_nobody_keeps_is_no_gain(tmp_path: Path) -> None:
    path = program(tmp_path)
    path.write_text(path.read_text().replace("KEPT.append(out)", "pass"))
    code, result, text = verify(path)
    assert code == 0 and result is not None, text
    assert result["conclusion"] == "no-gain" and "buys nothing" in text


@pytest.mark.slow
def test_several_sizes_are_fitted_and_what_lies_beyond_is_called_an_extrapolation(tmp_path: Path) -> None:
    path = program(tmp_path)
    path.write_text(path.read_text().replace("torch.ones(256, 256)", "torch.ones(256, int(__import__('sys').argv[-1]))"))
    code, result, text = verify(path, "--scale", "width=512,1024")
    assert code == 0 and result is not None, text
    guess = result["extrapolation"][0]
    assert guess["what"] == "floor_bytes saved at width=2048" and "extrapolation (" in text
    assert guess["value"] == pytest.approx(3 * 256 * 2048 * 4, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harvest", "body", "message"),
    [
        ("g = leaf.grad; leaf.grad = None; return g", "Recompute.apply(weight).sum().backward()", "nothing to fix"),
        ("return leaf.grad", "raise SystemExit(3)", "ends with exit code 3 without the fix"),
        ("return leaf.grad", "assert KEPT is not None", "no step was seen"),
    ],
)
def test_refusals(tmp_path: Path, harvest: str, body: str, message: str) -> None:
    path = program(tmp_path, harvest, body)
    if message == "no step was seen":
        path.write_text(path.read_text().replace("optimizer.step()", "pass"))
    code, result, text = verify(path)
    assert code == 2 and result is None and message in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "1", "x.py"], "-n must be at least 2"),
        (["-o", "x.html", "x.py"], "cannot write x.html"),
        ([], "no program to verify"),
        (["--scale", "a=1", "x.py"], "KEY=V1,V2"),
    ],
)
def test_bad_command_lines(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    from lifetime.cli import main

    assert main(["verify", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_run_ends_with_the_one_who_asked_for_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    (tmp_path / "folders").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "folders")}
    asked = subprocess.Popen([sys.executable, "-m", "lifetime", "verify", "program.py"], cwd=tmp_path, env=environment)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert asked.poll() is None
        time.sleep(0.05)
    asked.terminate()
    assert asked.wait() == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert not list((tmp_path / "folders").iterdir())


def test_a_file_that_cannot_be_written_is_said_before_the_first_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        run(["-o", str(tmp_path / "none" / "x.md"), "program.py"])
    with pytest.raises(UsageError, match="it is a folder"):
        run(["-o", str(tmp_path), "program.py"])
