"""`lifetime lint` as its users meet it: exit codes, streams, options."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lifetime.cli import main
from tests.linter.sources import HARVEST, SECOND_ORDER

UNUSED = "x = 1  # lifetime: keep[LT001] old\n"


class Said(SimpleNamespace):
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(self.out)
        return found


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("LIFETIME_OUTPUT_FORMAT", "LIFETIME_OUTPUT_FILE", "LIFETIME_NO_CACHE", "LIFETIME_CACHE_DIR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "a.py").write_text(SECOND_ORDER)
    (tmp_path / "clean.py").write_text("x = 1\n")
    return tmp_path


class Lint:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: str) -> Said:
        try:
            code = main(["lint", *arguments])
        except SystemExit as stop:
            code = int(str(stop.code))
        out, err = self.capsys.readouterr()
        return Said(code=code, out=out, err=err)


@pytest.fixture
def lint(root: Path, capsys: pytest.CaptureFixture[str]) -> Lint:
    return Lint(capsys)


def test_exit_codes(lint: Lint, root: Path) -> None:
    assert lint("clean.py").code == 0
    assert lint("a.py").code == 1
    assert lint("--exit-zero", "a.py").code == 0
    (root / "broken.py").write_text("def f(:\n")
    assert lint(".").code == 2
    assert lint("--exit-zero", ".").code == 2
    assert lint("missing.py").code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--select", "LT999"],
        ["--baseline", "missing.json"],
        ["--fix", "--add-keep", "x"],
        ["--diff", "--write-baseline", "f"],
        ["--add-keep", " "],
        ["-", "a.py"],
        ["--why", "a.py"],
        ["--output", "json=no/such/folder/f"],
    ],
)
def test_what_cannot_be_done_is_exit_code_2_and_json_is_still_a_list(lint: Lint, arguments: list[str]) -> None:
    said = lint("--output-format", "json", *arguments)
    assert said.code == 2 and isinstance(said.rows, list)
    assert said.err.startswith("lifetime: ") and "Traceback" not in said.err


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--jobs", "many"], ["--output", "xml=f"], ["--output-format", "xml"]])
def test_a_wrong_option_is_exit_code_2(lint: Lint, arguments: list[str]) -> None:
    assert lint(*arguments).code == 2


def test_json_is_the_contract(lint: Lint) -> None:
    (row,) = lint("--output-format", "json", ".").rows
    fix = row.pop("fix")
    assert row.pop("fingerprint") and row.pop("message") and "evidence" in row and row.pop("evidence") is not None
    assert row == {
        "code": "LT008",
        "name": "create-graph-backward",
        "severity": "warning",
        "path": "a.py",
        "line": 2,
        "column": 5,
        "end_line": 2,
        "end_column": 37,
        "function": "step",
    }
    assert fix is None or isinstance(fix, dict) and set(fix) == {"title", "safety", "why", "edits"}


def test_counts_and_problems_go_to_stderr(lint: Lint, root: Path) -> None:
    (root / "broken.py").write_text("def f(:\n")
    (root / ".gitignore").write_text("gen.py\n")
    (root / "gen.py").write_text("")
    said = lint("--output-format", "json", ".")
    assert len(said.rows) == 1
    assert "broken.py:1: does not parse" in said.err
    assert "2 files checked, 1 file could not be checked, 1 skipped (1 git-ignored file)." in said.err


def test_the_text_form(lint: Lint) -> None:
    said = lint("a.py")
    head, *frame = said.out.splitlines()
    assert head.startswith("a.py:2:5: LT008 ")
    assert frame[:4] == ["  |", "1 | def step(loss):", "2 |     loss.backward(create_graph=True)", "  |     " + "^" * 32]
    assert "\x1b" not in said.out


def test_colour_only_when_wanted(lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in lint("a.py").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in lint("a.py").out


def test_several_outputs_in_one_run(lint: Lint, root: Path) -> None:
    said = lint("a.py", "--output", "sarif=s.json", "--output", "json=j.json", "--output", "junit=x.xml")
    assert said.out.startswith("a.py:2:5")
    assert json.loads((root / "s.json").read_text())["runs"][0]["results"][0]["ruleId"] == "LT008"
    assert json.loads((root / "j.json").read_text())[0]["code"] == "LT008"
    assert (root / "x.xml").read_text().startswith("<?xml")


def test_the_environment(lint: Lint, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIFETIME_OUTPUT_FORMAT", "json")
    monkeypatch.setenv("LIFETIME_CACHE_DIR", "elsewhere")
    assert lint("a.py").rows and (root / "elsewhere").is_dir() and not (root / ".lifetime_cache").exists()
    assert lint("a.py", "--output-format", "text").out.startswith("a.py:2"), "the command line is above it"
    monkeypatch.setenv("LIFETIME_OUTPUT_FILE", "out.json")
    assert lint("a.py").out == "" and json.loads((root / "out.json").read_text())
    monkeypatch.setenv("LIFETIME_OUTPUT_FORMAT", "xml")
    assert lint("a.py").code == 2


def test_no_cache(lint: Lint, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lint("--no-cache", "a.py")
    monkeypatch.setenv("LIFETIME_NO_CACHE", "true")
    lint("a.py")
    assert not (root / ".lifetime_cache").exists()
    monkeypatch.setenv("LIFETIME_NO_CACHE", "0")
    lint("a.py")
    assert (root / ".lifetime_cache").exists()


def test_fix_writes_and_diff_does_not(lint: Lint, root: Path) -> None:
    (root / "k.py").write_text(UNUSED)
    said = lint("--diff", "k.py")
    assert said.code == 1 and "-x = 1  # lifetime: keep[LT001] old\n+x = 1\n" in said.out
    assert "Would fix 1 finding." in said.err and (root / "k.py").read_text() == UNUSED
    said = lint("--fix", "k.py")
    assert said.code == 0 and (root / "k.py").read_text() == "x = 1\n" and "Fixed 1 finding." in said.err
    assert lint("--diff", "k.py").code == 0
    (root / "k.py").write_text(UNUSED)
    assert lint("--fix", "--exit-non-zero-on-fix", "k.py").code == 1


def test_unsafe_fixes_are_asked_for(lint: Lint, root: Path) -> None:
    (root / "h.py").write_text(HARVEST)
    lint("--fix", "h.py")
    safe = (root / "h.py").read_text()
    assert lint("--fix", "--unsafe-fixes", "h.py").code == 0
    assert ".grad = None" in (root / "h.py").read_text()
    (root / "h.py").write_text(HARVEST)
    (root / "pyproject.toml").write_text("[tool.lifetime]\nunsafe-fixes = true\n")
    assert lint("--fix", "h.py").code == 0 and (root / "h.py").read_text() != HARVEST
    assert safe.count("\n") >= HARVEST.count("\n")


def test_a_file_that_changes_before_it_is_fixed_is_left_alone(lint: Lint, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lifetime.linter import fixer

    (root / "k.py").write_text(UNUSED)
    repair = fixer.repair

    def meanwhile(*args: object, **options: object) -> fixer.Repaired:
        (root / "k.py").write_text("edited = True\n")
        return repair(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(fixer, "repair", meanwhile)
    said = lint("--fix", "k.py")
    assert said.code == 2 and (root / "k.py").read_text() == "edited = True\n" and "changed while it was being fixed" in said.err


def test_standard_input(lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    give(SECOND_ORDER)
    said = lint("-", "--stdin-filename", "pkg/b.py", "--output-format", "json")
    assert said.code == 1 and said.rows[0]["path"] == "pkg/b.py"
    give("def f(:\n")
    assert lint("-").code == 2


def test_standard_input_is_passed_on_fixed(root: Path) -> None:
    command = [sys.executable, "-m", "lifetime", "lint", "-", "--fix", "--select", "LT000,LT001"]
    done = subprocess.run(command, input=UNUSED.encode().replace(b"\n", b"\r\n"), capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"x = 1\r\n")
    done = subprocess.run(command, input=b"x = 1\r\n", capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"x = 1\r\n")


def test_excuses_are_added(lint: Lint, root: Path) -> None:
    said = lint("--add-keep", "torch's own example", "a.py")
    assert said.code == 0 and "Excused 1 finding." in said.err
    assert (root / "a.py").read_text().endswith("True)  # lifetime: keep[LT008] torch's own example\n")
    said = lint("a.py")
    assert said.code == 0 and "Not shown: 1 keep comment." in said.err


def test_a_baseline_hides_what_it_lists_and_survives_edits_elsewhere(lint: Lint, root: Path) -> None:
    said = lint("--write-baseline", "known.json", ".")
    assert said.code == 0 and "known.json lists 1 finding." in said.err
    (root / "a.py").write_text("import torch\n\n\n" + SECOND_ORDER)
    said = lint("--baseline", "known.json", ".")
    assert said.code == 0 and "1 in the baseline" in said.err
    (root / "a.py").write_text(SECOND_ORDER + "    loss.backward(create_graph=True)\n")
    assert lint("--baseline", "known.json", ".").code == 1, "a second one like it is new"
    (root / "pyproject.toml").write_text('[tool.lifetime]\nbaseline = "known.json"\n')
    (root / "a.py").write_text(SECOND_ORDER)
    assert lint(".").code == 0


def test_severity_and_statistics(lint: Lint) -> None:
    said = lint("--min-severity", "error", "a.py")
    assert said.code == 0 and "Not shown: 1 below error." in said.err
    assert lint("--statistics", "a.py").out == "1 LT008 [ ] create-graph-backward\n"
    (row,) = lint("--statistics", "--output-format", "json", "a.py").rows
    assert row["code"] == "LT008" and row["count"] == 1


def test_broken_configuration_is_named_and_the_files_are_still_checked(lint: Lint, root: Path) -> None:
    (root / "pyproject.toml").write_text("[tool.lifetime]\nselct = []\n")
    said = lint("--output-format", "json", ".")
    assert said.code == 2 and len(said.rows) == 1
    assert "pyproject.toml: [tool.lifetime] has an unknown key: 'selct'" in said.err


def test_a_rule_that_crashes_is_named_and_the_others_still_speak(lint: Lint, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lifetime.linter import registry

    rule = next(rule for rule in registry.load() if rule.code == "LT010")
    monkeypatch.setattr(type(rule), "check", lambda self, module: 1 / 0)
    (root / "a.py").write_text(SECOND_ORDER + "    loss.backward(retain_graph=True)\n")
    said = lint("--output-format", "json", "--no-cache", "a.py")
    assert said.code == 2 and [row["code"] for row in said.rows] == ["LT008"]
    assert "a.py: rule LT010 crashed: ZeroDivisionError('division by zero')" in said.err


def test_why_gives_reasons(lint: Lint, root: Path) -> None:
    assert "LT008" in lint("--why", "a.py:2").out
    assert lint("--why", "a.py:1").code == 0
    assert lint("--why", "a.py:99").code == 2
    (root / "a.py").write_text(SECOND_ORDER.replace("True)", "True)  # lifetime: keep[LT008] our example"))
    assert "excused on line 2: our example" in lint("--why", "a.py:2").out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (5, "LT009: not inside a loop of this function"),
        (7, "LT009: what is added is not known to carry a graph"),
        (8, "LT007: only hooks of tensors and nodes"),
        (9, "LT008: create_graph is decided at run time"),
    ],
)
def test_a_silence_is_explained_where_the_line_shows_it(lint: Lint, root: Path, line: int, says: str) -> None:
    (root / "b.py").write_text(
        "class Log:\n    def step(self, model, x, flag):\n        loss = model(x).sum()\n        loss.backward()\n"
        "        self.losses.append(loss)\n        for n in x:\n            self.count.append(n.lr)\n"
        "        model.register_forward_hook(lambda m, i, o: self.kept.append(o))\n"
        "        model(x).sum().backward(create_graph=flag)\n        t = x.grad\n        x.register_hook(print)\n"
    )
    said = lint("--why", f"b.py:{line}")
    assert said.code == 0 and says in said.out
