"""Reports survive a round trip, follow the schema that ships, and bad ones are refused in one sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import lifetime.report
from lifetime.errors import ReportError
from lifetime.heap.model import Gap
from lifetime.report.records import from_json, read, report_schema, to_json
from tests.report.samples import report

SCHEMA = Path(lifetime.report.__file__).parent / "report-1.schema.json"


def test_round_trip() -> None:
    assert from_json(to_json(report())) == report()


def test_the_shipped_schema_is_the_one_of_the_model_and_admits_a_report() -> None:
    shipped = json.loads(SCHEMA.read_text())
    assert shipped == report_schema()
    jsonschema.validate(json.loads(to_json(report())), shipped)


def broken(path: list[Any], value: object) -> str:
    data = json.loads(to_json(report()))
    at = data
    for key in path[:-1]:
        at = at[key]
    if value is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["schema"], "lifetime.report/9", "report has schema 'lifetime.report/9', this version reads 'lifetime.report/1'"),
        (["schema"], KeyError, "report is not a lifetime report"),
        (["survivors"], KeyError, "report lacks 'survivors'"),
        (["survivors", 0, "bytes"], -5, "report: survivor a1b2c3d4 has a negative size"),
        (["survivors", 0, "bytes"], "many", "report.survivors[0].bytes is not a number"),
        (["survivors", 0, "bytes"], True, "report.survivors[0].bytes is not a number"),
        (["survivors", 0, "hint"], "x" * 10_000_000, "report.survivors[0].hint is longer than 65536 characters"),
        (["survivors", 0, "chain", "cycle"], 99, "report: survivor a1b2c3d4 points at link 99 of 4"),
        (["survivors", 0, "verdict"], "<script>", "'<script>', not one of: growing, until-gc, lingering"),
        (["steps"], {}, "report.steps is not a list"),
        (["environment", "world_size"], 10**12, "report: rank 0 of 1000000000000"),
        (["steps", 0, "live_bytes"], -1, "report: step 0 has a negative number"),
        (["sites", 0, "hits"], -1, "report: site train.py:9 has a negative number"),
        (["survivors", 0, "bytes_per_step"], -1, "report: survivor a1b2c3d4 has a negative size"),
        (["survivors", 0, "bytes"], 10**30, "report.survivors[0].bytes is larger than any number that lifetime writes"),
        (["survivors", 0, "count_per_step"], float("nan"), "is not JSON: NaN is no number"),
        (["survivors", 0, "count_per_step"], 1e300, "report.survivors[0].count_per_step is larger than any number"),
        (["survivors", 0, "chain", "links"], {"0": []}, "report.survivors[0].chain.links is not a list"),
    ],
)
def test_bad_reports_are_refused(path: list[Any], value: object, message: str) -> None:
    with pytest.raises(ReportError) as caught:
        from_json(broken(path, value))
    assert message in str(caught.value)


def test_a_truncated_or_missing_file(tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    target.write_text(to_json(report())[:-30])
    with pytest.raises(ReportError, match="is not JSON"):
        read(target)
    with pytest.raises(ReportError, match="cannot read"):
        read(tmp_path / "none.json")
    with pytest.raises(ReportError, match="is not JSON"):
        from_json("[" * 100_000)
    with pytest.raises(ReportError, match="is not JSON"):
        from_json('{"schema": ' + "9" * 5000 + "}")
    target.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReportError, match="cannot read"):
        read(target)


def test_names_that_no_encoding_takes_are_written_and_come_back(tmp_path: Path) -> None:
    odd = replace(report(), gaps=(Gap("caf\udce9.py", "a name from the file system"),))
    (tmp_path / "r.json").write_bytes(to_json(odd).encode())
    assert read(tmp_path / "r.json") == odd


@pytest.mark.parametrize("path", ["a\0b.py", "lone\ud800.py"])
def test_a_site_whose_path_is_no_file_name_is_refused(path: str) -> None:
    given = report()
    odd = replace(given, sites=(replace(given.sites[0], path=path),))
    with pytest.raises(ReportError, match="is no file name"):
        from_json(to_json(odd))
