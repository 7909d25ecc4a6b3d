"""Runs HTTP servers of this machine in threads."""

import contextlib
import http.server
import threading
from collections.abc import Iterator


class Handler(http.server.BaseHTTPRequestHandler):
  """Keeps connections, answers at once and logs nothing."""

  protocol_version = "HTTP/1.1"
  disable_nagle_algorithm = True

  def log_message(self, *args):
    pass


@contextlib.contextmanager
def serve(handler: type[Handler], **fields) -> Iterator[str]:
  """Yields the server's address; its handler gets the fields as well."""
  handler = type("Handler", (handler,), fields)
  server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
  server.handle_error = lambda *_: None  # The client has gone.
  poll = {"poll_interval": 0.01}  # Seconds after which it ends.
  threading.Thread(
    target=server.serve_forever, kwargs=poll, daemon=True
  ).start()
  try:
    yield f"http://127.0.0.1:{server.server_port}"
  finally:
    server.shutdown()
    server.server_close()
