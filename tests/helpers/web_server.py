"""Serves a folder over HTTP, with ranges or without, and with faults."""

import contextlib
import pathlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

from helpers import http_serving


class Web:
  """A running server: its address, faults to set, and what it has sent."""

  def __init__(self, root: pathlib.Path):
    self.root = root
    self.address = ""
    self.ranges = True
    self.failing: Callable[[str], Any] = lambda path: False  # "drop", a code.
    self.requests: list[tuple[str, int]] = []  # (path, bytes), of GET.
    self.lock = threading.Lock()

  def sent(self, ending=""):
    """Returns (number, bytes) of the files sent whose names end so."""
    with self.lock:
      found = [n for path, n in self.requests if path.endswith(ending)]
    return len(found), sum(found)


@contextlib.contextmanager
def serve(root: pathlib.Path) -> Iterator[Web]:
  """Serves until the end of the block; like many, it lists no folders."""
  web = Web(root)
  with http_serving.serve(_Handler, web=web) as web.address:
    yield web


class _Handler(http_serving.Handler):
  def do_HEAD(self):
    self.answer(has_body=False)

  def do_GET(self):
    self.answer(has_body=True)

  def answer(self, *, has_body):
    web = self.web
    failure = web.failing(self.path)
    if failure == "drop":
      self.close_connection = True
      return
    file = web.root / self.path.lstrip("/")
    code = failure or (200 if file.is_file() else 404)
    if code != 200:
      return self.send(code, b"", has_body)
    body, wanted = file.read_bytes(), self.headers.get("Range")
    headers = {"Accept-Ranges": "bytes"} if web.ranges else {}
    if web.ranges and wanted:
      first, last = map(int, re.findall(r"\d+", wanted))
      if first >= len(body):
        return self.send(416, b"", has_body)
      headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
      code, body = 206, body[first : last + 1]
    self.send(code, body, has_body, headers)

  def send(self, code, body, has_body, headers=()):
    if has_body:
      with self.web.lock:
        self.web.requests.append((self.path, len(body)))
    self.send_response(code)
    for name, value in dict(headers).items():
      self.send_header(name, value)
    self.send_header("Content-Length", str(len(body)))
    self.end_headers()
    if has_body:
      self.wfile.write(body)
