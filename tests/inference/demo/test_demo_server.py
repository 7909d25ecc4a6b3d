"""The demo over HTTP: its files, its answers, and requests it refuses."""

import contextlib
import http.client
import json
import re
import select
import socket
import sys
import threading
import time

import pytest

from maskedlm.cli import main
from maskedlm.inference.demo import answers

werkzeug_test = pytest.importorskip("werkzeug.test")
from maskedlm.inference.demo import server  # noqa: E402 - it needs werkzeug.

MASKED = "the [MASK] sat"


@pytest.fixture(scope="module")
def client(models):
  return werkzeug_test.Client(server.make_app(models))


def ask(client, path="/api/fill", *, status=200, host="127.0.0.1:8080", **form):
  """Posts a form; returns the JSON of the answer."""
  made = client.post(path, json=form, base_url=f"http://{host}/")
  assert made.status_code == status, made.text
  assert made.content_type == "application/json"
  return made.json


@pytest.mark.parametrize("path", server.FILES)
def test_files(client, path):
  made = client.get(path, base_url="http://127.0.0.1:8080/")
  assert made.status_code == 200
  assert made.content_type == f"{server.FILES[path][1]}; charset=utf-8"
  assert len(made.data) > 300
  assert made.headers["X-Content-Type-Options"] == "nosniff"
  policy = made.headers["Content-Security-Policy"]
  assert policy.startswith("default-src 'none'; ") and "http" not in policy
  head = client.head(path, base_url="http://127.0.0.1:8080/")
  assert head.status_code == 200 and head.data == b""


def test_the_page_refers_to_its_own_files_only(client):
  for path, (name, _) in server.FILES.items():
    text = client.get(path, base_url="http://localhost/").text
    found = set(re.findall(r"\w+://[^\"'\s]*", text))
    assert found <= {"http://www.w3.org/2000/svg"}, name
    for address in re.findall(r'(?:href|src)="([^"]*)"', text):
      assert address in server.FILES, address


def test_every_request_of_the_page(client, models):
  about = client.get("/api/about", base_url="http://localhost:8080/")
  assert about.json == answers.describe_models(models)
  made = ask(client, text=MASKED)
  assert made == answers.answer_fill(models, {"text": MASKED})
  assert set(answers.ANSWERS) == {"fill", "compare", "attend", "label"}
  two = {"first": "a cat", "second": "the cat", "word": "cat"}
  assert len(ask(client, "/api/compare", **two)["layers"]) == 3
  assert ask(client, "/api/attend", text="a cat", layer=1)["tokens"]
  assert ask(client, "/api/label", text="a cat", model=0)["prediction"]["tags"]


@pytest.mark.parametrize(
  ("body", "kind", "status", "message"),
  [
    (b"{", "application/json", 400, ""),
    (b'{"text": "\xff"}', "application/json", 400, ""),
    (b"[1]", "application/json", 400, "expected a JSON object."),
    (b"[" * 60_000, "application/json", 400, "expected a JSON object."),
    # Content types that other sites' pages may send without permission.
    (b'{"text": "[MASK]"}', "text/plain", 415, ""),
    (b" " * 65_537, "application/json", 413, "over 65,536 bytes: shorten"),
  ],
  ids=["cut", "latin", "list", "deep", "plain", "huge"],
)
def test_wrong_bodies(client, body, kind, status, message):
  made = client.post(
    "/api/fill",
    data=body,
    content_type=kind,
    base_url="http://127.0.0.1/",
  )
  assert made.status_code == status
  assert made.json["error"] and message in made.json["error"]


@pytest.mark.parametrize(
  ("method", "path", "status"),
  [
    ("GET", "/nowhere", 404),
    ("GET", "/../main.py", 404),
    ("GET", "/api/fill", 405),
    ("POST", "/", 405),
  ],
)
def test_wrong_paths_and_methods(client, method, path, status):
  made = client.open(path, method=method, base_url="http://127.0.0.1/")
  assert made.status_code == status
  assert made.json["error"]
  assert made.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
  "host", ["evil.example", "127.0.0.1.evil.example:8080"]
)
def test_other_host_names_are_refused(client, host):
  assert ask(client, status=400, host=host, text=MASKED)["error"]
  made = client.get("/api/about", base_url=f"http://{host}/")
  assert made.status_code == 400 and "checkpoint" not in made.text


# The server and its verb.


def test_over_a_socket(address, capsys):
  def post(body):
    connection = http.client.HTTPConnection(*address)
    kind = {"Content-Type": "application/json"}
    connection.request("POST", "/api/fill", body, kind)
    answer = connection.getresponse()
    with contextlib.closing(connection):
      return answer.status, json.load(answer)

  body = json.dumps({"text": MASKED}).encode()
  found = []
  threads = [
    threading.Thread(target=lambda: found.append(post(body))) for _ in range(5)
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert len(found) == 5 and all(made == found[0] for made in found)
  assert found[0][0] == 200
  status, made = post(b'{"text": "' + 3_000_000 * b"a" + b'"}')
  assert status == 413 and "shorten" in made["error"]
  assert capsys.readouterr() == ("", "")  # Only errors are logged.


HEAD = (
  b"POST /api/fill HTTP/1.1\r\nHost: 127.0.0.1\r\n"
  b"Content-Type: application/json\r\n"
)


def test_an_endless_chunked_body_is_not_read_to_its_end(address, capsys):
  chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
  sent = 0
  with socket.create_connection(address, timeout=20) as endless:
    endless.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    with contextlib.suppress(ConnectionError):
      while sent < 100 * server.MOST:
        endless.sendall(chunk)
        sent += len(chunk)
  # What the two sides' sockets hold was sent, but not read.
  assert sent < 8 * server.MOST
  assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
  "begin",
  [
    HEAD + b"X: ",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n3ff\r\n",
  ],
  ids=["header", "chunk"],
)
def test_a_client_that_sends_a_byte_at_a_time_is_cut_off(
  address, monkeypatch, capsys, begin
):
  monkeypatch.setattr(server, "SECONDS", 0.5)
  start = time.monotonic()
  with socket.create_connection(address, timeout=20) as slow:
    slow.sendall(begin)
    with contextlib.suppress(ConnectionError):
      while time.monotonic() < start + 15:
        slow.sendall(b"a")  # Each byte within the time.
        if select.select([slow], [], [], 0.1)[0] and not slow.recv(4096):
          break
  assert time.monotonic() < start + 10
  assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
  "rest",
  [
    b"Content-Length: 900\r\n\r\n{",
    b"Transfer-Encoding: chunked\r\n\r\n3ff\r\n{",
    b"Transfer-Encoding: chunked\r\n\r\n-5\r\n",
  ],
)
def test_a_client_that_hangs_up_is_no_bug(address, capsys, rest):
  with socket.create_connection(address, timeout=20) as client:
    client.sendall(HEAD + rest)
    client.shutdown(socket.SHUT_WR)
    assert b" 400 " in client.recv(4096)
  assert capsys.readouterr() == ("", "")


def run(capsys, *argv):
  code = main.main(["demo", *map(str, argv)])
  return code, capsys.readouterr().err


def test_without_werkzeug(capsys, monkeypatch):
  monkeypatch.setitem(sys.modules, "werkzeug", None)
  assert run(capsys, "--checkpoint", "x") == (
    2,
    "error: the demo needs werkzeug: pip install 'maskedlm[demo]'.\n",
  )


def test_a_taken_port(capsys):
  with socket.socket() as taken:
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    port = taken.getsockname()[1]
    code, err = run(capsys, "--checkpoint", "x", "--port", port)
  assert code == 2
  assert err == (
    f"error: --port={port}: Address already in use; give another, or 0 for "
    "any.\n"
  )
