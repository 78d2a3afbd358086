"""Chromium without a window, driven through two pipes by its own protocol: no driver and no package is needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

__all__ = ["Browser", "is_wanted", "program"]

READS, WRITES = 3, 4  # file descriptors that the browser expects
PATIENCE = 60.0


def program() -> str | None:
    """The browser of this machine, if it has one."""
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


def is_wanted() -> bool:
    """Whether tests open a browser: where there is one, and in continuous integration, which installs one first."""
    return program() is not None or "CI" in os.environ


class Browser:
    """One page in a browser."""

    def __init__(self, folder: Path) -> None:
        if program() is None:
            raise RuntimeError("there is no browser on this machine: make browser installs Debian's chromium")
        to_read, self._writes = os.pipe()
        self._reads, to_write = os.pipe()
        words = [
            str(program()), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
            "--window-size=1200,800", f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip

        command = ["bash", "-c", f'exec "$@" {READS}<&{to_read} {WRITES}>&{to_write}', "bash", *words]
        self._process = subprocess.Popen(
            command, pass_fds=(to_read, to_write), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        os.close(to_read)
        os.close(to_write)
        os.set_blocking(self._reads, False)
        self._number, self._left = 0, b""
        self.complaints: list[str] = []
        self._events: list[str] = []
        target = self.ask("Target.createTarget", {"url": "about:blank"}, page=False)["targetId"]
        self._session = self.ask("Target.attachToTarget", {"targetId": target, "flatten": True}, page=False)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._reads)
        os.close(self._writes)

    def _message(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._left:
            try:
                part = os.read(self._reads, 1 << 20)
            except BlockingIOError:
                part = b""
                time.sleep(0.005)
            self._left += part
            if time.monotonic() > end or self._process.poll() is not None:
                raise RuntimeError("the browser does not answer")
        text, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        method = message.get("method", "")
        if method == "Runtime.exceptionThrown":
            self.complaints.append(message["params"]["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif method == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.complaints.append(message["params"]["entry"]["text"])
        self._events.append(method)
        return message

    def ask(self, method: str, parameters: dict[str, Any] | None = None, page: bool = True) -> Any:
        """Call a method of the protocol; what it answers."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters or {}}
        if page:
            message["sessionId"] = self._session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while (answer := self._message()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, file: Path) -> None:
        """Load a page from a file, to its end."""
        self._events.clear()
        self.ask("Page.navigate", {"url": file.resolve().as_uri()})
        while "Page.loadEventFired" not in self._events:
            self._message()

    def value(self, expression: str) -> Any:
        """What JavaScript gives."""
        found = self.ask("Runtime.evaluate", {"expression": expression, "returnByValue": True})
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def pointer(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Let the pointer do something at a place."""
        self.ask("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def click(self, x: float, y: float) -> None:
        """Press and release at a place."""
        self.pointer("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.pointer(kind, x, y, button="left", buttons=1, clickCount=1)

    def type(self, text: str) -> None:
        """Type where the focus is."""
        self.ask("Input.insertText", {"text": text})

    def screenshot(self) -> bytes:
        """The page as a PNG file."""
        return base64.b64decode(self.ask("Page.captureScreenshot", {"format": "png"})["data"])
