"""The page over HTTP: its files, and answers.py as JSON.

A WSGI application of werkzeug. It trusts nobody: of other hosts' pages it
takes nothing (names, content types), of its own no more than a form can hold;
and the model answers one at a time.
"""

import importlib.resources
import json
import socket
import sys
import threading
import traceback
from collections.abc import Callable

from werkzeug import exceptions, serving
from werkzeug.wrappers import Request, Response

from maskedlm.core.errors import ConfigError
from maskedlm.inference.demo import answers

HOST = "127.0.0.1"
BYTES = 64 * 1024  # Of a request, at most.
SECONDS = 30  # Without a byte of it, at most.
# Path -> (file of page/, type).
FILES = {
  "/": ("index.html", "text/html"),
  "/style.css": ("style.css", "text/css"),
  "/script.js": ("script.js", "text/javascript"),
  "/icon.svg": ("icon.svg", "image/svg+xml"),
}
HEADERS = {
  "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
  "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
  "form-action 'none'; frame-ancestors 'none'",
  "Cache-Control": "no-store",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
}


def make_app(models: answers.Models) -> Callable:
  """The application of these models."""
  folder = importlib.resources.files("maskedlm.inference.demo") / "page"
  files = {
    path: ((folder / name).read_bytes(), f"{kind}; charset=utf-8")
    for path, (name, kind) in FILES.items()
  }
  lock = threading.Lock()

  @Request.application
  def app(request: Request) -> Response:
    request.max_content_length = BYTES
    # No other name may lead here, as one would that a stranger's DNS has.
    request.trusted_hosts = [HOST, "localhost"]
    try:
      _ = request.host
      response = _respond(request, models, files, lock)
    except Exception as error:  # The page is told of every kind.
      response = _failed(error)
    response.headers.update(HEADERS)
    return response

  return app


def _respond(request: Request, models: answers.Models, files, lock) -> Response:
  if request.path in files and request.method in ("GET", "HEAD"):
    content, kind = files[request.path]
    return Response(content, content_type=kind)
  if request.path == "/api/about" and request.method == "GET":
    return _json(answers.about(models))
  answer = answers.ANSWERS.get(request.path.removeprefix("/api/"))
  if answer is None and request.path not in (*files, "/api/about"):
    raise exceptions.NotFound(f"there is no {request.path!r:.60} here.")
  if answer is None or request.method != "POST":
    raise exceptions.MethodNotAllowed(description="expected another method.")
  try:
    fields = request.get_json()
  except exceptions.RequestEntityTooLarge:
    raise exceptions.RequestEntityTooLarge(
      f"the request has over {BYTES:,} bytes: shorten the text."
    ) from None
  except RecursionError:
    fields = None  # Nested too deeply.
  if not isinstance(fields, dict):
    raise exceptions.BadRequest("expected a JSON object.")
  with lock:
    return _json(answer(models, fields))


def _failed(error: Exception) -> Response:
  """What the page says of an error: {"error": ...}."""
  if isinstance(error, exceptions.HTTPException):
    return _json({"error": error.description}, error.code or 500)
  if hasattr(error, "exit_code"):  # What the user can mend.
    return _json({"error": str(error)}, 400)
  traceback.print_exception(error)
  return _json({"error": "a bug of ours: the terminal tells more."}, 500)


def _json(value, status: int = 200) -> Response:
  return Response(
    json.dumps(value), status=status, content_type="application/json"
  )


class _Quiet(serving.WSGIRequestHandler):
  """Waits for no one, and says nothing: of our errors `_failed` tells."""

  timeout = SECONDS

  def log_request(self, code="-", size="-") -> None:
    del code, size

  def log_error(self, format, *args) -> None:
    """Browsers open connections that they then don't use."""
    del format, args


def listen(port: int) -> socket.socket:
  """A socket of this machine's own address; port 0 is any free one.

  Raises:
    ConfigError: the port is taken, or not allowed.
  """
  listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
  if sys.platform != "win32":  # There it would share a port that is taken.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
  try:
    listening.bind((HOST, port))
    listening.listen()
  except OSError as error:
    listening.close()
    raise ConfigError(
      f"--port={port}: {error.strerror}; give another, or 0 for any."
    ) from None
  return listening


def make_server(app: Callable, listening: socket.socket):
  """The server of an application, which takes the socket over."""
  with listening:  # The server has a copy of it.
    return serving.make_server(
      *listening.getsockname(),
      app,
      threaded=True,
      request_handler=_Quiet,
      fd=listening.fileno(),
    )
