"""Serves the demo page: its files, and the answers of answers.py as JSON.

A WSGI application on werkzeug. Requests are restricted: the Host header and
the content type must be the page's own, and bodies are limited in size. The
model answers one request at a time.
"""

import importlib.resources
import io
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable

from werkzeug import exceptions, serving
from werkzeug.wrappers import Request, Response

from maskedlm.core.errors import ConfigError
from maskedlm.core.measured import to_json
from maskedlm.core.parse_json import parse_json
from maskedlm.inference.demo import answers
from maskedlm.runtime import html

HOST = "127.0.0.1"
BYTES = 64 * 1024  # The most in a request.
MOST = 1 << 22  # Bytes that are read of a connection, answered or not.
SECONDS = 30  # The longest time in which a request must arrive.
# Path -> (file in page/, content type).
FILES = {
  "/": ("index.html", "text/html"),
  "/style.css": ("style.css", "text/css"),
  "/script.js": ("script.js", "text/javascript"),
  "/icon.svg": ("icon.svg", "image/svg+xml"),
}
HEAD = """
<link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="/style.css">
<script src="/script.js" defer></script>
"""
HEADERS = {
  "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
  "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
  "form-action 'none'; frame-ancestors 'none'",
  "Cache-Control": "no-store",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
}


def make_app(models: answers.Models) -> Callable:
  """Returns the WSGI application for the models."""
  files = _read_files()
  lock = threading.Lock()

  @Request.application
  def app(request: Request) -> Response:
    request.max_content_length = BYTES
    # Rejects other host names (DNS rebinding).
    request.trusted_hosts = [HOST, "localhost"]
    try:
      _ = request.host
      response = _respond(request, models, files, lock)
    except Exception as error:  # The page shows every error.
      response = _error_response(error)
    response.headers.update(HEADERS)
    return response

  return app


def _read_files() -> dict[str, tuple[str, str]]:
  """Returns {path: (content, content type)} for FILES."""
  folder = importlib.resources.files("maskedlm.inference.demo") / "page"
  texts = {
    path: (folder / name).read_text("utf-8")
    for path, (name, _) in FILES.items()
  }
  texts["/"] = html.frame("maskedlm", texts["/"], head=HEAD)
  texts["/style.css"] = html.STYLE + texts["/style.css"]
  return {
    path: (texts[path], f"{content_type}; charset=utf-8")
    for path, (_, content_type) in FILES.items()
  }


def _respond(request: Request, models: answers.Models, files, lock) -> Response:
  """Returns the file or the answer for a request."""
  if request.path in files and request.method in ("GET", "HEAD"):
    content, content_type = files[request.path]
    return Response(content, content_type=content_type)
  if request.path == "/api/about" and request.method == "GET":
    return _json(answers.describe_models(models))
  answer = answers.ANSWERS.get(request.path.removeprefix("/api/"))
  if answer is None and request.path not in (*files, "/api/about"):
    raise exceptions.NotFound(f"{request.path!r:.60} does not exist.")
  if answer is None or request.method != "POST":
    raise exceptions.MethodNotAllowed(description="expected another method.")
  if not request.is_json:
    raise exceptions.UnsupportedMediaType("expected application/json.")
  try:
    fields = parse_json(request.get_data())
  except exceptions.RequestEntityTooLarge:
    raise exceptions.RequestEntityTooLarge(
      f"the request has over {BYTES:,} bytes: shorten the text."
    ) from None
  except TimeoutError:  # Nobody waits for it any more.
    raise exceptions.RequestTimeout("the request didn't arrive.") from None
  except (OSError, ValueError):  # Cut off, or chunks of no known length.
    fields = None
  if not isinstance(fields, dict):
    raise exceptions.BadRequest("expected a JSON object.")
  with lock:
    return _json(answer(models, fields))


def _error_response(error: Exception) -> Response:
  """Returns a response with {"error": ...}; prints the trace of a bug."""
  if isinstance(error, exceptions.HTTPException):
    return _json({"error": error.description}, error.code or 500)
  if hasattr(error, "exit_code"):  # Errors that the user can fix.
    return _json({"error": str(error)}, 400)
  traceback.print_exception(error)
  return _json({"error": "a bug in maskedlm: see the terminal."}, 500)


def _json(value, status: int = 200) -> Response:
  return Response(
    to_json(value), status=status, content_type="application/json"
  )


class _BoundedReader(io.RawIOBase):
  """Reads at most MOST bytes of a connection, for at most SECONDS.

  After its answer, Werkzeug reads the rest of a request, however long it is,
  and a socket's timeout begins anew with each byte.
  """

  def __init__(self, connection: socket.socket) -> None:
    self._connection, self._left = connection, MOST
    self._end = time.monotonic() + SECONDS

  def readable(self) -> bool:
    return True

  def readinto(self, buffer) -> int:
    seconds = self._end - time.monotonic()
    if seconds <= 0:
      raise TimeoutError(f"the request took longer than {SECONDS} s")
    self._connection.settimeout(seconds)
    size = min(len(buffer), self._left)
    count = self._connection.recv_into(buffer, size) if size else 0
    self._connection.settimeout(SECONDS)  # For the answer.
    self._left -= count
    return count


class _RequestHandler(serving.WSGIRequestHandler):
  """Bounds the requests and logs nothing; `_error_response` prints bugs."""

  def setup(self) -> None:
    """Reads the connection, one request long, through _BoundedReader."""
    super().setup()
    self.rfile = io.BufferedReader(_BoundedReader(self.connection))

  def log_request(self, code="-", size="-") -> None:
    del code, size

  def log_error(self, format, *args) -> None:
    """Ignores errors: browsers open connections that they don't use."""
    del format, args


def listen(port: int) -> socket.socket:
  """Returns a socket on the loopback address; port 0 picks a free port.

  Raises:
    ConfigError: the port is taken or not allowed.
  """
  listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
  if sys.platform != "win32":  # On Windows this would share a taken port.
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
  """Returns the server of an application, which takes over the socket."""
  host, port = listening.getsockname()
  with listening:  # The server has a duplicate.
    return serving.make_server(
      host,
      port,
      app,
      threaded=True,
      request_handler=_RequestHandler,
      fd=listening.fileno(),
    )
