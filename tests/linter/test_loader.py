"""Bytes to text and back, and a sentence for what cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lifetime.errors import SourceError
from lifetime.linter import loader

BAD = {
    b"x = 1\n\0": ("holds a NUL byte", 2),
    b"x = 1\ny = '\xe9'\n": ("is not UTF-8: byte 0xe9", 2),
    b"# coding: nonsense-8\n": ("names an encoding that does not exist: nonsense-8", 1),
    b"# coding: hex\nx = 1\n": ("names an encoding that does not exist: hex", 1),
    "x = 1\n".encode("utf-16"): ("holds a NUL byte", 1),
    b"\xef\xbb\xbf# coding: ascii\n'\xc3\xa9'\n": ("is not ASCII: byte 0xc3", 2),
}


@pytest.mark.parametrize("data", BAD, ids=repr)
def test_what_cannot_be_decoded_is_named(data: bytes) -> None:
    with pytest.raises(SourceError) as caught:
        loader.decode(data, "a.py")
    assert (caught.value.message, caught.value.line) == BAD[data]


GOOD = {
    b"x = '\xc3\xa9'\n": "x = 'é'\n",
    b"\xef\xbb\xbfx = 1\r\n": "x = 1\r\n",
    b"# -*- coding: latin-1 -*-\r\nx = '\xe9'\r\n": "# -*- coding: latin-1 -*-\r\nx = 'é'\r\n",
    b"#!/bin/env python\n# vim: fileencoding=cp1252:\nx = '\x80'\n": "#!/bin/env python\n# vim: fileencoding=cp1252:\nx = '€'\n",
    b"x = 1\n# coding: nonsense\n": "x = 1\n# coding: nonsense\n",
    b"\x0cx = 1\r": "\x0cx = 1\r",
}


@pytest.mark.parametrize("data", GOOD, ids=repr)
def test_text_is_decoded_and_encoded_back_to_the_same_bytes(data: bytes) -> None:
    text = loader.decode(data, "a.py")
    assert text.source == GOOD[data]
    assert text.encode() == data


PARSE = {
    "def f(:\n": 1,
    'x = 1\nprint "two"\n': 2,
    "x = " + "(" * 300 + ")" * 300: 1,
    "x = " + "-" * 100_000 + "1": 0,
    "if x:\n    y\n  z\n": 3,
}


@pytest.mark.parametrize("source", PARSE, ids=lambda source: source[:20])
def test_what_does_not_parse_is_named(source: str) -> None:
    with pytest.raises(SourceError) as caught:
        loader.parse(source, "a.py")
    assert caught.value.line == PARSE[source]
    assert "\n" not in caught.value.message


def test_a_long_chain_is_parsed_or_named() -> None:
    """Python 3.10 parses it."""
    try:
        loader.parse("x = y" + ".a" * 100_000, "a.py")
    except SourceError as error:
        assert "nests too deep" in error.message


def test_parsing_says_nothing_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    loader.parse("x = '\\d'\nassert (x, 1)\nx is 1\n", "a.py")
    assert capfd.readouterr() == ("", "")


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    fstat, sizes = os.fstat, iter(range(100))

    def restless(descriptor: int) -> os.stat_result:
        file.write_text("x" * next(sizes))
        return fstat(descriptor)

    monkeypatch.setattr(os, "fstat", restless)
    with pytest.raises(SourceError, match="changed while it was read"):
        loader.read(str(file))


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: no such file or directory"):
        loader.read(str(tmp_path / "gone.py"))
