"""The pull request that this project began with, on the installed Megatron-LM sources: find it, see it, fix it, name the holder,
measure it, and later ask whether the holder is still there."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lifetime.linter.engine import check_source

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
RANDOM = "megatron/core/tensor_parallel/random.py"
HARVEST = "grads = tuple(inp.grad if isinstance(inp, torch.Tensor) else inp for inp in detached_inputs)"
BARE_RELEASE = """
        for inp in detached_inputs:
            if isinstance(inp, torch.Tensor):
                inp.grad = None
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A copy of the installed package beside the driver: `python train.py` imports the copy."""
    found = importlib.util.find_spec("megatron.core")
    assert found is not None and found.origin is not None
    shutil.copytree(Path(found.origin).parents[1], tmp_path / "megatron", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(FIXTURES / "peers" / "megatron_checkpoint.py", tmp_path / "train.py")
    return tmp_path


def lifetime(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "lifetime", *arguments], cwd=folder, capture_output=True, text=True)


def trace(folder: Path, name: str) -> dict[str, Any]:
    done = lifetime(folder, "trace", "--fail-on", "never", "-o", name, "train.py")
    assert done.returncode == 0 and done.stdout.startswith("loss "), done.stderr
    result: dict[str, Any] = json.loads((folder / name).read_text())
    return result


def site(report: dict[str, Any]) -> dict[str, Any]:
    return next(s for s in report["sites"] if s["path"] == RANDOM and s["function"] == "CheckpointFunction.backward")


def lint(folder: Path, *options: str) -> list[tuple[str, str]]:
    done = lifetime(folder, "lint", "--output-format", "json", *options, RANDOM)
    return [(f["code"], f["message"]) for f in json.loads(done.stdout) if f["function"] == "CheckpointFunction.backward"]


def test_from_one_suspect_line_to_a_release_whose_comment_is_checked(scratch: Path) -> None:
    source = (scratch / RANDOM).read_text()
    line = 1 + source[: source.index(HARVEST)].count("\n")
    assert [code for code, _ in lint(scratch)] == ["LT001"]

    before = trace(scratch, "before.json")
    assert (site(before)["verdict"], site(before)["line"], site(before)["bytes_per_step"]) == ("confirmed", line, 2 * 256 * 64 * 4)
    (leak,) = [s for s in before["survivors"] if s["verdict"] == "until-gc"]
    assert leak["cut"]["reference"] == ".out" and leak["cut"]["proof"] == "proved"
    assert leak["chain"]["root"]["kind"] == "reference-cycle"
    assert "KeepOutputBackward" in {link["holder"] for link in leak["chain"]["links"]}

    verified = lifetime(scratch, "verify", "-n", "2", "-o", "v.json", "--site", f"{RANDOM}:{line}", "train.py")
    result = json.loads((scratch / "v.json").read_text())
    assert verified.returncode == 0 and result["conclusion"] == "lower" and result["gradients"]["identical"]
    live = next(m for m in result["metrics"] if m["name"] == "live_bytes")
    assert live["before"] - live["after"] == 7 * site(before)["bytes_per_step"]
    assert (scratch / RANDOM).read_text() == source, "verify touches no file"

    assert lifetime(scratch, "lint", "--fix", "--select", "LT001", RANDOM).returncode == 1  # the other Function of the file stays
    assert lifetime(scratch, "comment", "before.json", "--site", f"{RANDOM}:{line}", "--write").returncode == 0
    fixed = (scratch / RANDOM).read_text()
    assert "if not is_graph_capturing():" in fixed and f"# lifetime: holder {leak['fingerprint']}" in fixed
    assert "KeepOutputBackward.out" in fixed and lint(scratch) == []

    after = trace(scratch, "after.json")
    assert site(after)["code"] == "LT003" and site(after)["survivors"] == [leak["fingerprint"]]
    (held,) = [s for s in after["survivors"] if s["verdict"] == "until-gc"]
    assert leak["bytes_per_step"] - held["bytes_per_step"] == site(before)["bytes_per_step"]
    assert lint(scratch, "--report", "after.json") == [], "the holder that the comment names still holds"

    driver = (scratch / "train.py").read_text()
    (scratch / "train.py").write_text(driver.replace("ctx.out = out", "pass"))
    trace(scratch, "gone.json")
    (finding,) = lint(scratch, "--report", "gone.json")
    assert finding[0] == "LT003" and "dead code" in finding[1]

    kept = driver.replace("ctx.out = out", "HELD.append(out)").replace("import gc\n", "import gc\nHELD = []\n", 1)
    (scratch / "train.py").write_text(kept)
    trace(scratch, "other.json")
    (finding,) = lint(scratch, "--report", "other.json")
    assert finding[0] == "LT003" and "HELD" in finding[1]


def test_a_bare_release_is_unguarded_and_a_purpose_is_no_holder(scratch: Path) -> None:
    source = (scratch / RANDOM).read_text()
    bare = source.replace(HARVEST, HARVEST + BARE_RELEASE)
    loop = "        for inp in detached_inputs:"
    vague = bare.replace(loop, "        # free the memory early\n" + loop)
    texts = {"bare": bare, "vague": vague}
    found = {name: check_source(text, RANDOM, file=str(scratch / RANDOM)) for name, text in texts.items()}
    codes = {name: [f.code for f in each if f.function == "CheckpointFunction.backward"] for name, each in found.items()}
    assert codes == {"bare": ["LT002"], "vague": ["LT002", "LT003"]}
