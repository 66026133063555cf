"""On a device: what a captured backward says about itself. Runs only where there is a GPU (pytest -m cuda)."""

from __future__ import annotations

import pytest
import torch

from lifetime.heap.model import SiteVerdict
from lifetime.tracer import device, probe
from lifetime.tracer.sites import Sites
from lifetime.tracer.spots import Spot

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


def test_a_captured_harvest_is_counted_and_its_pool_named(monkeypatch: pytest.MonkeyPatch) -> None:
    spot = Spot("k", "LT001", "m.py", "/m.py", 1, 1, "F.backward")
    sites = Sites({"k": spot})
    monkeypatch.setattr(probe, "on_watch", sites.on_watch)
    leaf = torch.ones(1024, device="cuda", requires_grad=True)

    def backward() -> torch.Tensor | None:
        leaf.grad = None
        (leaf * 2).sum().backward()
        harvested: torch.Tensor | None = probe.watch("k", leaf).grad
        return harvested

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        backward()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gradient = backward()
    graph.replay()
    torch.cuda.synchronize()
    try:
        sites.at_boundary(judged=True)
        (site,) = sites.report({})
        assert (site.hits, site.captured_hits, site.verdict) == (2, 1, SiteVerdict.CONFIRMED)
        assert any("CUDA-graph capture" in gap.why for gap in sites.gaps())
        assert gradient is not None and device.pool_of(gradient.data_ptr()) is not None and bool((gradient == 2).all())
    finally:
        sites.reads.remove()


def test_the_allocators_figures_are_those_of_the_step() -> None:
    kept = torch.ones(1 << 20, device="cuda")
    before = device.measured(0, 0)
    del kept
    after = device.measured(1, 0)
    assert before.allocated_bytes is not None and after.allocated_bytes is not None
    assert before.allocated_bytes - after.allocated_bytes >= 4 << 20
    assert after.peak_bytes is not None and after.peak_bytes >= before.allocated_bytes
