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


def test_a_wrong_form_is_a_one_line_error(client):
  error = ask(client, status=400, text="no mask")["error"]
  assert "no [MASK] in 'no mask'" in error and "\n" not in error


def test_half_a_surrogate_pair_is_accepted(client):
  body = b'{"text": "\\ud83d the [MASK] \\udc00"}'
  made = client.post(
    "/api/fill",
    data=body,
    content_type="application/json",
    base_url="http://127.0.0.1/",
  )
  assert made.status_code == 200
  assert made.json["pieces"] == ["? the ", " ?"]


@pytest.mark.parametrize(
  ("body", "kind", "status", "message"),
  [
    (b"{", "application/json", 400, ""),
    (b'{"text": "\xff"}', "application/json", 400, ""),
    (b"[1]", "application/json", 400, "expected a JSON object."),
    (b"[" * 60_000, "application/json", 400, "expected a JSON object."),
    (b"", "application/json", 400, ""),
    # Content types that other sites' pages may send without permission.
    (b'{"text": "[MASK]"}', "text/plain", 415, ""),
    (b"text=[MASK]", "application/x-www-form-urlencoded", 415, ""),
    (b" " * 65_537, "application/json", 413, "over 65,536 bytes: shorten"),
  ],
  ids=["cut", "latin", "list", "deep", "none", "plain", "form", "huge"],
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
    ("GET", "/page/index.html", 404),
    ("GET", "/../main.py", 404),
    ("POST", "/api/nothing", 404),
    ("GET", "/api/fill", 405),
    ("DELETE", "/api/fill", 405),
    ("POST", "/", 405),
    ("POST", "/api/about", 405),
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


def test_bugs_are_reported_as_such(client, monkeypatch, capsys):
  def broken(models, fields):
    raise ZeroDivisionError("secret")

  monkeypatch.setitem(answers.ANSWERS, "fill", broken)
  made = ask(client, status=500, text=MASKED)
  assert made == {"error": "a bug in maskedlm: see the terminal."}
  assert "ZeroDivisionError: secret" in capsys.readouterr().err


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


def test_a_stalled_request_blocks_no_other(address, monkeypatch):
  with socket.create_connection(address) as stalled:
    stalled.sendall(
      b"POST /api/fill HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n"
      b"Content-Type: application/json\r\n\r\n{"
    )
    connection = http.client.HTTPConnection(*address, timeout=20)
    kind = {"Content-Type": "application/json"}
    body = json.dumps({"text": MASKED})
    connection.request("POST", "/api/fill", body, kind)
    with contextlib.closing(connection):
      assert connection.getresponse().status == 200
  monkeypatch.setattr(server, "SECONDS", 0.05)
  with socket.create_connection(address) as idle:
    idle.settimeout(20)
    assert idle.recv(1) == b""  # The server hangs up.


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


def test_a_body_in_chunks_is_answered(address):
  body = json.dumps({"text": MASKED}).encode()
  with socket.create_connection(address, timeout=20) as client:
    client.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    client.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    assert client.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize(
  "begin",
  [
    b"POST /api/fill HT",
    HEAD + b"X: ",
    HEAD + b"Content-Length: 900\r\n\r\n{",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n3ff\r\n",
  ],
  ids=["request line", "header", "body", "chunk"],
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
    b"Transfer-Encoding: chunked\r\n\r\nno number\r\n",
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
    "error: the demo needs werkzeug: pip install 'maskedlm[demo]', or "
    "werkzeug.\n",
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


def test_other_errors_of_the_verb(capsys, workdirs, tmp_path):
  code, err = run(capsys, "--checkpoint", "x", "--port=70000")
  assert (code, err) == (2, "error: --port=70000: expected 0 to 65535.\n")
  code, err = run(capsys, "--port=0", "--checkpoint", tmp_path / "none")
  assert code == 2 and "none: no such folder" in err
  both = ("--checkpoint", workdirs["pretrained"], "--finetuned")
  code, err = run(capsys, "--port=0", *both, workdirs["pretrained"])
  assert code == 2 and "was pretrained, not fine-tuned" in err
  assert err.count("\n") == 1


def test_a_fine_tuned_checkpoint_also_labels(workdirs):
  made = answers.open_models(str(workdirs["pos"]), [str(workdirs["mood"])])
  assert [path for path, _ in made.tuned] == [
    str(workdirs["mood"]),
    str(workdirs["pos"]),
  ]
  path = str(workdirs["pos"])
  assert len(answers.open_models(path, [path]).tuned) == 1
