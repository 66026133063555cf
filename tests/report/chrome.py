"""A real Chromium without a window, spoken to over a pipe: the DevTools protocol, no package needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
TIMEOUT_S = 60.0


class Chrome:
    """One page in one browser. `problems` collects console errors, refused loads and uncaught exceptions."""

    def __init__(self, profile: Path) -> None:
        program = next((path for name in NAMES if (path := shutil.which(name))), None)
        if program is None:
            pytest.skip("no Chromium here: the page is not tried in a browser")
        ours_in, its_out = os.pipe()
        its_in, ours_out = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec 3<&{its_in} 4>&{its_out}; exec "$@"', "sh", program, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(its_in, its_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(its_in)
        os.close(its_out)
        self._in, self._out = ours_in, ours_out
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def open(self, page: Path, script: bool = True) -> None:
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call("Page.navigate", url=page.as_uri())
        while self.eval("document.readyState") != "complete":
            time.sleep(0.02)

    def eval(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def key(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def look(self, width: int, height: int, theme: str = "light", media: str = "") -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": theme}])

    def screenshot(self, target: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png")["data"]
        target.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._in)
        os.close(self._out)

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(deadline - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            self._buffer += os.read(self._in, 1 << 16)
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(str(params["args"]))
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:", "about:")):
            self.problems.append(f"request: {params['request']['url']}")
