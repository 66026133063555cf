"""Colours: Okabe and Ito's, which colour-blind readers tell apart; lightness differs too, so that grey prints say the same."""

from __future__ import annotations

from dataclasses import dataclass

from lifetime.heap.model import Verdict


@dataclass(frozen=True)
class Paint:
    """One theme. `root` to `more` fill the boxes of that kind, `suspect` and `cut` are the arrows."""

    ink: str
    soft: str
    paper: str
    root: str
    object: str
    autograd: str
    tensor: str
    more: str
    suspect: str
    cut: str


LIGHT = Paint("#1b1b1b", "#5a5a5a", "#ffffff", "#ffffff", "#f1f1f1", "#dcebf7", "#fdebd3", "#ffffff", "#c04f00", "#a3004a")
DARK = Paint("#ececec", "#a8a8a8", "#16181c", "#16181c", "#2a2d33", "#16344a", "#4a3312", "#16181c", "#f0883e", "#ff7ab6")
VERDICTS = {Verdict.GROWING: "#d55e00", Verdict.UNTIL_GC: "#0072b2", Verdict.LINGERING: "#7a7a7a"}
