"""Findings put aside after the rules have spoken: below a severity, or listed in a baseline. Each is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lifetime.errors import UsageError
from lifetime.linter.regular import opened
from lifetime.linter.result import LintResult
from lifetime.linter.severity import Severity

if TYPE_CHECKING:
    from lifetime.linter.model import Finding

SCHEMA = "lifetime.baseline/1"
ORDER = list(Severity)


def hide_below(result: LintResult, least: Severity) -> LintResult:
    """Without the findings that are less severe than `least`."""
    return _hide(result, lambda finding: ORDER.index(finding.severity) > ORDER.index(least), f"below {least.value}")


def hide_known(result: LintResult, known: Mapping[str, int]) -> LintResult:
    """Without the findings whose fingerprint the baseline lists, each as often as it is listed."""
    left = dict(known)

    def is_known(finding: Finding) -> bool:
        left[finding.fingerprint] = left.get(finding.fingerprint, 0) - 1
        return left[finding.fingerprint] >= 0

    return _hide(result, is_known, "in the baseline")


def _hide(result: LintResult, is_hidden: Callable[[Finding], bool], why: str) -> LintResult:
    kept = tuple(finding for finding in result.findings if not is_hidden(finding))
    hidden = len(result.findings) - len(kept)
    return result._replace(findings=kept, suppressed={**result.suppressed, why: hidden}) if hidden else result


def baseline(result: LintResult) -> str:
    """The text of a baseline: the findings in an order and with words that make its changes reviewable."""
    import json

    rows = [
        {"fingerprint": f.fingerprint, "code": f.code, "path": f.path, "function": f.function, "message": f.message}
        for f in sorted(result.findings, key=lambda f: (f.path, f.code, f.fingerprint))
    ]
    return json.dumps({"schema": SCHEMA, "findings": rows}, indent=2) + "\n"


def read_baseline(file: str) -> dict[str, int]:
    """How often a baseline lists each fingerprint.

    Raises:
        UsageError: the file is missing or is not a baseline.
    """
    import json  # a run without a baseline starts faster without it

    try:
        with open(file, encoding="utf-8", opener=opened) as handle:
            content = json.load(handle)
        if content["schema"] != SCHEMA:
            raise UsageError(f"{file}: baseline of another version: {content['schema']!r}", "write it anew: --write-baseline")
        counts: dict[str, int] = {}
        for row in content["findings"]:
            counts[str(row["fingerprint"])] = counts.get(str(row["fingerprint"]), 0) + 1
        return counts
    except OSError as error:
        help = "make one: lifetime lint --write-baseline FILE"
        raise UsageError(f"{file}: cannot be read: {(error.strerror or str(error)).lower()}", help) from None
    except RecursionError:
        raise UsageError(f"{file}: is not a baseline: nests too deep", "write it anew: --write-baseline") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file}: is not a baseline: {error!r}", "write it anew: --write-baseline") from None
