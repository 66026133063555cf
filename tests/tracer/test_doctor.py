"""`lifetime doctor` and the probes behind it. A torch release that breaks one of them fails here, loudly."""

from __future__ import annotations

import pytest

from lifetime.cli import doctor
from lifetime.tracer import private, tested


@pytest.mark.parametrize("probe", private.probes(), ids=lambda probe: probe.name)
def test_all_that_the_tracer_relies_on_is_here(probe: private.Probe) -> None:
    if probe.name == "CUDA":
        pytest.skip("a device is not needed")
    is_said = probe.name == "calibration of the counts" and tested.here().endswith("counted owners")
    assert (probe.why is None) is not is_said


def test_what_is_missing_is_named_with_what_it_costs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def gone() -> bool:
        raise AttributeError("no attribute '_use_count'")

    monkeypatch.setattr(private, "_CHECKS", [("Tensor._use_count", "owners counted", gone), ("os.fork", "proof", lambda: True)])
    assert doctor.run([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in lines[-3:]] == [
        "! Tensor._use_count AttributeError: no attribute '_use_count'",
        "without it: owners counted",
        "os.fork proof",
    ]


def test_an_answer_that_differs_is_said() -> None:
    assert private._try(lambda: False) == "gives another answer than on the versions this was built for"
    assert private._try(lambda: "no CUDA device") == "no CUDA device"
