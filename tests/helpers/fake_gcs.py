"""A stand-in for Google Cloud Storage: a bucket in memory, served over HTTP.

Implements the part of the JSON API that TensorStore's driver and gcsfs call,
with the generations and conditions that make writes atomic. Other processes on
the machine can use it with the variables in `environment`.
"""

import base64
import contextlib
import hashlib
import itertools
import json
import re
import threading
import urllib.parse
from collections.abc import Iterator
from typing import NamedTuple

from helpers import http_serving

OBJECT = re.compile(r"/(?:download/)?storage/v1/b/([^/]+)/o/([^/]+)")
BUCKET = re.compile(r"/storage/v1/b/([^/]+)")
LIST = re.compile(r"/storage/v1/b/([^/]+)/o")
UPLOAD = re.compile(r"/(?:resumable/)?upload/storage/v1/b/([^/]+)/o")
MOVE = re.compile(r"/storage/v1/b/([^/]+)/o/([^/]+)/moveTo/o/([^/]+)")


class Gcs(NamedTuple):
  """The server: objects by "bucket/name", and variables that point to it."""

  objects: dict[str, tuple[bytes, int]]  # (content, generation).
  refused: set[str]  # Parts of names that may not be written.
  environment: dict[str, str]


@contextlib.contextmanager
def serve() -> Iterator[Gcs]:
  """Serves until the end of the block."""

  objects, refused = {}, set()
  state = {
    "objects": objects,
    "refused": refused,
    "uploads": {},
    "generations": itertools.count(1),
    "lock": threading.RLock(),
  }
  with http_serving.serve(_Handler, **state) as url:
    yield Gcs(
      objects,
      refused,
      {
        "STORAGE_EMULATOR_HOST": url,  # gcsfs
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # The server has no gRPC.
        "TENSORSTORE_GCS_HTTP_URL": url,
        # Else TensorStore would ask Google for a token.
        "GOOGLE_AUTH_TOKEN_FOR_TESTING": "abc",
      },
    )


class _Handler(http_serving.Handler):
  def answer(self, code, body=b"", headers=()):
    if isinstance(body, dict):
      body = json.dumps(body).encode()
      headers = {"Content-Type": "application/json", **dict(headers)}
    self.send_response(code)
    for name, value in dict(headers).items():
      self.send_header(name, value)
    self.send_header("Content-Length", str(len(body)))
    self.end_headers()
    self.wfile.write(body)

  def error(self, code, reason):
    self.answer(code, {"error": {"code": code, "message": reason}})

  def handle_one(self):
    parts = urllib.parse.urlsplit(self.path)
    self.query = dict(urllib.parse.parse_qsl(parts.query))
    body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
    for pattern, act in (
      (MOVE, self.move),
      (OBJECT, self.object),
      (BUCKET, self.bucket),
      (LIST, self.list),
      (UPLOAD, self.upload),
    ):
      if found := pattern.fullmatch(parts.path):
        with self.lock:
          return act(*map(urllib.parse.unquote, found.groups()), body)
    return self.error(501, f"not of this stand-in: {self.command} {self.path}")

  def do_GET(self):
    self.handle_one()

  def do_POST(self):
    self.handle_one()

  def do_PUT(self):
    self.handle_one()

  def do_DELETE(self):
    self.handle_one()

  def metadata(self, key):
    content, generation = self.objects[key]
    bucket, _, name = key.partition("/")
    return {
      "kind": "storage#object",
      "bucket": bucket,
      "name": name,
      "size": str(len(content)),
      "generation": str(generation),
      "md5Hash": base64.b64encode(hashlib.md5(content).digest()).decode(),
      "updated": "2026-01-01T00:00:00.000Z",
      "timeCreated": "2026-01-01T00:00:00.000Z",
    }

  def unmet(self, key):
    """Returns whether a condition on the object's generation is not met."""
    generation = self.objects[key][1] if key in self.objects else 0
    wanted = self.query.get("ifGenerationMatch")
    unwanted = self.query.get("ifGenerationNotMatch")
    return (wanted is not None and int(wanted) != generation) or (
      unwanted is not None and int(unwanted) == generation
    )

  def write(self, key, content):
    if self.unmet(key):
      return self.error(412, "conditionNotMet")
    if any(word in key for word in self.refused):
      return self.error(403, f"no permission to write {key}")
    self.objects[key] = (content, next(self.generations))
    return self.answer(200, self.metadata(key))

  def bucket(self, name, _):
    # As to an account that has the role "Storage Object Admin", no other.
    return self.error(403, f"no permission to see {name}, only its objects")

  def object(self, bucket, name, _):
    key = f"{bucket}/{name}"
    if key not in self.objects:
      return self.error(404, f"No such object: {key}")
    if self.unmet(key):
      if "ifGenerationNotMatch" in self.query:
        return self.answer(304)
      return self.error(412, "conditionNotMet")
    if self.command == "DELETE":
      del self.objects[key]
      return self.answer(204)
    if self.query.get("alt") != "media":
      return self.answer(200, self.metadata(key))
    content, generation = self.objects[key]
    headers = {"x-goog-generation": str(generation)}
    if found := re.fullmatch(
      r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")
    ):
      first, last = int(found[1]), int(found[2] or len(content) - 1)
      if first >= len(content):
        return self.error(416, "range not satisfiable")
      last = min(last, len(content) - 1)
      headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
      return self.answer(206, content[first : last + 1], headers)
    return self.answer(200, content, headers)

  def list(self, bucket, _):
    prefix, end = self.query.get("prefix", ""), self.query.get("delimiter")
    start, stop = (self.query.get(f"{x}Offset", "") for x in ("start", "end"))
    items, prefixes = [], []
    for key in sorted(self.objects):
      if not key.startswith(f"{bucket}/{prefix}"):
        continue
      name = key.removeprefix(f"{bucket}/")
      if name < start or (stop and name >= stop):
        continue
      rest = name.removeprefix(prefix)
      if end and end in rest:
        prefixes.append(prefix + rest.partition(end)[0] + end)
      else:
        items.append(self.metadata(key))
    found = {"kind": "storage#objects", "items": items}
    return self.answer(200, {**found, "prefixes": sorted({*prefixes})})

  def move(self, bucket, old, new, _):
    if f"{bucket}/{old}" not in self.objects:
      return self.error(404, f"No such object: {old}")
    content, _ = self.objects.pop(f"{bucket}/{old}")
    return self.write(f"{bucket}/{new}", content)

  def upload(self, bucket, body):
    kind, name = self.query.get("uploadType"), self.query.get("name")
    if kind == "media":
      return self.write(f"{bucket}/{name}", body)
    if kind == "multipart":
      edge = re.search(r'boundary="?([^";]+)', self.headers["Content-Type"])[1]
      parts = body.split(f"--{edge}".encode())
      described, content = (
        re.split(rb"\r?\n\r?\n", part, maxsplit=1)[1] for part in parts[1:3]
      )
      content = content.removesuffix(b"\n").removesuffix(b"\r")
      return self.write(f"{bucket}/{json.loads(described)['name']}", content)
    # Resumable: the first request, then the pieces.
    if "upload_id" not in self.query:
      number = str(len(self.uploads))
      self.uploads[number] = [f"{bucket}/{name}", b""]
      url = f"http://{self.headers['Host']}{self.path}&upload_id={number}"
      return self.answer(200, b"", {"Location": url})
    upload = self.uploads[self.query["upload_id"]]
    upload[1] += body
    if self.headers["Content-Range"].endswith(f"/{len(upload[1])}"):
      return self.write(*upload)
    return self.answer(308, b"", {"Range": f"bytes=0-{len(upload[1]) - 1}"})
