"""Drives headless Chromium through a pipe by its DevTools protocol."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest

PATH = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDED = pytest.mark.skipif(
  not PATH, reason="there is no browser: apt install chromium"
)


class Page(NamedTuple):
  """A tab."""

  send: Callable  # (method, **params) -> result.
  events: list  # Events sent by the browser.

  def go(self, address: str) -> None:
    """Opens an address and waits until the page has loaded."""
    before = len(self.events)
    self.send("Page.navigate", url=address)
    while not any(
      event["method"] == "Page.loadEventFired" for event in self.events[before:]
    ):
      time.sleep(0.05)
      self.send("Browser.getVersion")  # Receives the events so far.

  def run(self, script: str):
    """Returns the value of an expression, awaiting a promise."""
    made = self.send(
      "Runtime.evaluate",
      expression=script,
      awaitPromise=True,
      returnByValue=True,
      userGesture=True,
    )
    assert "exceptionDetails" not in made, made["exceptionDetails"]
    return made["result"].get("value")

  def wait(self, script: str, seconds: float = 60):
    """Waits until an expression is true; returns its value."""
    end = time.monotonic() + seconds
    while not (value := self.run(script)):
      assert time.monotonic() < end, f"not within {seconds} s: {script}"
      time.sleep(0.1)
    return value

  def resize(self, width: int, height: int, *, dark: bool = False) -> None:
    """Sets the window's size in pixels, and whether the system is dark."""
    self.send(
      "Emulation.setDeviceMetricsOverride",
      width=width,
      height=height,
      deviceScaleFactor=1,
      mobile=False,
    )
    scheme = {
      "name": "prefers-color-scheme",
      "value": "dark" if dark else "light",
    }
    self.send("Emulation.setEmulatedMedia", features=[scheme])

  def picture(self) -> bytes:
    """Returns a PNG of the window's contents."""
    return base64.b64decode(self.send("Page.captureScreenshot")["data"])


@contextlib.contextmanager
def open_page(profile):
  """Yields a Page; profile is an empty folder for the browser's files."""
  their_in, our_out = os.pipe()
  our_in, their_out = os.pipe()
  arguments = [
    PATH,
    "--headless",
    # root can't have a sandbox; only the test's own page is opened.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    # It asks nobody for updates.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    f"--user-data-dir={profile}",
    # The ends of the pipe are file descriptors 3 and 4.
    "--remote-debugging-pipe",
  ]
  process = subprocess.Popen(
    ["bash", "-c", f'exec "$@" 3<&{their_in} 4>&{their_out}', "_", *arguments],
    pass_fds=(their_in, their_out),
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
  )
  os.close(their_in)
  os.close(their_out)
  send, events = _connect(our_in, our_out)
  try:
    target = send("Target.createTarget", url="about:blank")["targetId"]
    session = send("Target.attachToTarget", targetId=target, flatten=True)
    send, events = _connect(our_in, our_out, session["sessionId"])
    for domain in ("Page", "Runtime", "Network", "Log"):
      send(f"{domain}.enable")
    yield Page(send, events)
  finally:
    with contextlib.suppress(OSError, AssertionError):
      send("Browser.close")
    os.close(our_out)
    os.close(our_in)
    try:
      process.wait(20)
    except subprocess.TimeoutExpired:
      process.kill()
      process.wait()


def _connect(our_in: int, our_out: int, session: str | None = None):
  """Returns (send, events); messages are JSON, each ended by a zero byte."""
  events: list[dict] = []
  held, number = bytearray(), 0

  def send(method: str, **params):
    nonlocal number
    number += 1
    message = {"id": number, "method": method, "params": params}
    if session:
      message["sessionId"] = session
    os.write(our_out, json.dumps(message).encode() + b"\0")
    while True:
      answer = read()
      if answer.get("id") == number and answer.get("sessionId") == session:
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]
      if "method" in answer:
        events.append(answer)

  def read() -> dict:
    while b"\0" not in held:
      ready, _, _ = select.select([our_in], [], [], 60)
      assert ready, "Chromium says nothing."
      chunk = os.read(our_in, 1 << 16)
      assert chunk, "Chromium has ended."
      held.extend(chunk)
    end = held.index(b"\0")
    message = json.loads(held[:end])
    del held[: end + 1]
    return message

  return send, events
