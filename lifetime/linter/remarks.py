"""The comment that goes with a statement, and whether it names something that can hold a tensor."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Collection

from lifetime.linter.module import Module

PRAGMA = re.compile(
    r"^(?:expect:|lifetime:|noqa|type:|pylint:|fmt:|ruff:|mypy:|pyright:|isort:|pragma|nosec|pyre|flake8|codespell)", re.I
)
REFERENCE = re.compile(r"\w+://\S+|(?:\b[\w-]+/[\w.-]+)?#\d+|\b[\w/.-]+\.(?:py|md|rst|cpp|cu|h)\b(?::\d+)?|\b[A-Z]+-\d+\b")
TICKED = re.compile(r"`([^`]+)`")
WORD = re.compile(r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*|\[[^\]\s]*\])*(?:\(\))?")
PROSE = re.compile(r"(?:e\.g|i\.e|etc|vs|cf)\.?$", re.I)
CAMEL = re.compile(r"_*[A-Z][a-z0-9]+(?:[A-Z]\w*)|_*[A-Z]{2,}[a-z]\w*")
COMMON = frozenset(
    re.findall(
        r"\w+",
        """
        PyTorch NumPy CUDA GPU GPUs CPU OOM OOMs NOTE TODO FIXME XXX HACK BUG PR PRs API APIs HBM RAM VRAM DDP FSDP NVIDIA AMD
        ROCm HIP NCCL IMPORTANT WARNING MiB GiB WAR RFC JIT FP8 BF16 FP16 FP32 NaN AMP ZeRO MoE LLM GPT None True False
        DeepSpeed GitHub OpenAI JAX TensorFlow MegatronLM cuDNN cuBLAS torch python autograd tensor
        """,
    )
)
"""Words that look like a name and hold nothing."""


def remark(module: Module, *statements: ast.stmt) -> str:
    """The comment right above or behind one of `statements`; pragmas left out; empty where there is none."""
    comments = _comments(module)
    found: list[str] = []
    for statement in statements:
        line = statement.lineno - 1
        above: list[str] = []
        while line in comments and not module.lines[line - 1][: comments[line][0]].strip():
            above.insert(0, comments[line][1])
            line -= 1
        found += above
        for number in {statement.lineno, _head_end(statement)}:
            if number in comments:
                found.append(comments[number][1])
    return "\n".join(text for text in dict.fromkeys(found) if text)


def _head_end(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    return body[0].lineno - 1 if body else statement.end_lineno or statement.lineno


def _comments(module: Module) -> dict[int, tuple[int, str]]:
    """Line to column and text of its comment."""
    found = module.memo.get("comments")
    if not isinstance(found, dict):
        found = module.memo["comments"] = _read(module.plain)
    return found


def _read(source: str) -> dict[int, tuple[int, str]]:
    found: dict[int, tuple[int, str]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                parts = [part.lstrip("#:!").strip() for part in re.split(r"\s+(?=#\s)", token.string)]
                found[token.start[0]] = token.start[1], " ".join(p for p in parts if not PRAGMA.match(p))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return found


def names_holder(comment: str, own: Collection[str]) -> bool:
    """Whether `comment` has an identifier or a code path of something that can hold. `own` are names of the leaves and
    gradients themselves."""
    text = REFERENCE.sub(" ", comment)
    ticked = [word for quoted in TICKED.findall(text) for word in WORD.findall(quoted)]
    rest = TICKED.sub(" ", text)
    return any(_holds(word, own, True) for word in ticked) or any(_holds(w, own, False) for w in WORD.findall(rest))


def _holds(word: str, own: Collection[str], quoted: bool) -> bool:
    word = word.removesuffix("()")
    first, last = re.split(r"[.\[]", word, maxsplit=1)[0], re.split(r"[.\[]", word)[-1]
    if word in COMMON or first in own or last == "grad" or PROSE.match(word):
        return False
    if first in {"torch", "cuda"}:
        return False
    dotted = "." in word or "[" in word
    looks = "_" in word.strip("_") or bool(CAMEL.fullmatch(first)) or (word.isupper() and len(word) > 2)
    return looks or dotted or (quoted and word not in {"None", "grad", "backward", "forward"})
