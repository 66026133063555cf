"""A traced program behaves as Python runs it: what it prints, how it ends, what it sees of itself. No torch is imported here."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

PYTHON = sys.executable
SCRIPTS = {
    "arguments": """
        import sys
        print(sys.argv, __name__, __file__, sys.path[0], __spec__, __package__, __doc__, sys.orig_argv[1:])
        print(sorted(k for k in globals() if k != "sys"), type(__loader__).__name__)
        print(sys.modules["__main__"].__dict__ is globals())
    """,
    "exit code": "import sys; sys.exit(3)",
    "exit with text": "import sys; sys.exit('no luck')",
    "exit with nothing": "import sys; sys.exit()",
    "exit with true": "import sys; sys.exit(True)",
    "exit in a function": "def f():\n    raise SystemExit(7)\nf()",
    "no error but silence": "raise SystemExit(None)",
    "exception": "def f(x):\n    return 1 / x\n\nf(0)",
    "chained": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e",
    "in handling": "try:\n    {}['a']\nexcept KeyError:\n    int('b')",
    "syntax error": "x = = 2",
    "latin": "# -*- coding: latin-1 -*-\nprint(ascii('\xe4'))",
    "future": "'''doc'''\nfrom __future__ import annotations\ndef f(x: Undefined): ...\nprint(__doc__, f.__annotations__)",
    "own excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0",
    "broken excepthook": "import sys\ndef hook(*a):\n    raise TypeError('x')\nsys.excepthook = hook\n1 / 0",
    "interrupt": "raise KeyboardInterrupt",
    "atexit": "import atexit\natexit.register(print, 'bye')\nprint('hi')",
    "atexit after a failure": "import atexit, sys\natexit.register(lambda: print('bye', sys.last_type))\n1 / 0",
    "hard exit": "import os\nprint('x', flush=True)\nos._exit(5)",
    "threads": """
        import threading, time
        def late():
            time.sleep(0.2); print("late")
            threading.Thread(target=print, args=("later",)).start()
        threading.Thread(target=late).start()
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        print("main is done")
    """,
    "failure in a thread": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t')\nt.start(); t.join()",
    "fork": """
        import os, sys
        if os.fork() == 0:
            print("child", flush=True); sys.exit(0)
        os.wait(); print("parent")
    """,
    "forked child goes on to the end": "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('end', flush=True)",
    "spawn": """
        import multiprocessing as mp
        def work(q): q.put(__name__)
        if __name__ == "__main__":
            context = mp.get_context("spawn"); q = context.Queue()
            p = context.Process(target=work, args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode)
    """,
    "pool": """
        from multiprocessing import get_context
        def twice(x): return 2 * x
        if __name__ == "__main__":
            with get_context("fork").Pool(2) as pool: print(pool.map(twice, range(4)))
    """,
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A, A.__module__)",
    "source": "import inspect\ndef f():\n    return 1  # here\nprint(inspect.getsource(f))",
    "warning": "import warnings\nwarnings.warn('careful')",
    "stdin": "import sys\nprint(sys.stdin.read())",
    "dataclass": """
        import dataclasses, typing
        @dataclasses.dataclass
        class A:
            x: "int" = 0
        print(A(), typing.get_type_hints(A))
    """,
    "neighbour": "import neighbour\nprint(neighbour.__name__, neighbour.__file__)",
    "exit in finally": "try:\n    1 / 0\nfinally:\n    print('finally')",
    "exception group": "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
}


def run(command: list[str], folder: Path) -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60, input="typed", env=environment)
    return done.returncode, done.stdout, done.stderr


def traced(arguments: list[str], folder: Path) -> tuple[int, str, str]:
    code, out, err = run([PYTHON, "-m", "lifetime", "trace", "--format", "json", "-o", "r.json", *arguments], folder)
    kept = [line for line in err.splitlines(keepends=True) if not line.startswith(("lifetime: ", "  help: "))]
    return code, out, "".join(kept)


def same(arguments: list[str], folder: Path) -> None:
    code, out, err = run([PYTHON, *arguments], folder)
    # A program that ends well but has no two steps is what we cannot do: exit code 2.
    assert traced(arguments, folder) == (code or 2, out, err)
    assert (folder / "r.json").exists()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_as_under_python(name: str, tmp_path: Path) -> None:
    if name == "exception group" and sys.version_info < (3, 11):
        pytest.skip("exception groups came with Python 3.11")
    text = textwrap.dedent(SCRIPTS[name])
    (tmp_path / "script.py").write_bytes(text.encode("latin-1"))
    (tmp_path / "neighbour.py").write_text("")
    same(["script.py", "a", "-b", "--step", "x"], tmp_path)


@pytest.mark.parametrize("source", [b"x = 1\0", b"# coding: latin-7\nx = 1"])
def test_what_python_cannot_read_is_its_syntax_error(source: bytes, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_bytes(source)
    code, out, err = traced(["script.py"], tmp_path)
    assert (code, out) == (1, "") and "SyntaxError" in err and "lifetime" not in err


def test_a_script_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "script.py").write_text("import sys\nprint(sys.argv, sys.path[0], __file__)\n")
    same(["deep/script.py"], tmp_path)
    same([str(tmp_path / "deep" / "script.py"), "-m", "x"], tmp_path)


def package(folder: Path) -> None:
    (folder / "pkg").mkdir()
    (folder / "pkg" / "__init__.py").write_text("print('package', __name__)\n")
    (folder / "pkg" / "helper.py").write_text("VALUE = 3\n")
    facts = "__name__, __package__, __spec__.name, sys.argv, sys.path[0], VALUE, __file__"
    report = f"import sys\nfrom .helper import VALUE\nprint({facts})\n"
    (folder / "pkg" / "train.py").write_text(report)
    (folder / "pkg" / "__main__.py").write_text(report)


@pytest.mark.parametrize("name", ["pkg.train", "pkg", "pkg.__main__"])
def test_a_module_runs_as_under_python(name: str, tmp_path: Path) -> None:
    package(tmp_path)
    same(["-m", name, "--lr", "3", "-m"], tmp_path)


def test_a_folder_and_a_zip_file(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text("import sys, other\nprint(__name__, sys.argv, sys.path[0], __package__)\n")
    (tmp_path / "app" / "other.py").write_text("")
    same(["app"], tmp_path)
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.write(tmp_path / "app" / "__main__.py", "__main__.py")
        archive.write(tmp_path / "app" / "other.py", "other.py")
    same(["app.zip", "x"], tmp_path)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.py"], "no script 'nowhere.py'"),
        (["-"], "a script from standard input cannot be traced"),
        (["-m", "no.such.module"], "no module named 'no.such.module'"),
        (["empty"], "'empty' is a folder without a __main__.py"),
        ([], "no script to trace"),
        (["--step", "a b", "script.py"], "'a b' is no step"),
        (["--step", "nope", "script.py"], "script.py defines no function 'nope'"),
        (["--step", "A.nope", "script.py"], "script.py defines no function 'A.nope'"),
        (["--step", "step", "script.py"], "the step 'step' was never called"),
        (["--step", "A.once", "script.py"], "the step 'A.once' was called once"),
        (["--step", "other:step", "script.py"], "module 'other' was never imported"),
        (["--step", "json:step", "script.py"], "module 'json' defines no function 'step'"),
        (["script.py"], "script.py never imports torch"),
        (["-o", "no/such/r.json", "script.py"], "cannot write no/such/r.json: there is no folder no/such"),
        (["--baseline", "no.json", "script.py"], "cannot read no.json"),
        (["--format", "json", "script.py"], "--format json needs -o REPORT.json"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "script.py").write_text("import json\ndef step(): ...\nclass A:\n    def once(self): ...\nA().once()\n")
    code, out, err = run([PYTHON, "-m", "lifetime", "trace", *arguments], tmp_path)
    assert (code, out) == (2, "")
    assert f"lifetime: {sentence}" in err and "Traceback" not in err
