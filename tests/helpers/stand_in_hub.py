"""A stand-in for the Hugging Face Hub: repositories in memory, over HTTP.

Speaks the calls that huggingface_hub makes to read models and data sets, and to
upload a model: with commits, ETags, and large files at another address, as the
hub has them. `use` points the library of this process to it, `environment`
that of another process.
"""

import base64
import contextlib
import dataclasses
import hashlib
import json
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from helpers import http_serving

API = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)(/.*)?")
RESOLVE = re.compile(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
BATCH = re.compile(r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch")
LARGE = (".safetensors", ".parquet", ".bin")  # Files of LFS.


@dataclasses.dataclass
class Repo:
  """A repository: its commits, and what its branches and tags name."""

  commits: dict[str, dict[str, bytes]] = dataclasses.field(default_factory=dict)
  refs: dict[str, str] = dataclasses.field(default_factory=dict)
  gated: bool = False
  private: bool = False

  def commit(self, files: Mapping[str, bytes], branch: str = "main") -> str:
    """Adds a commit with exactly these files to a branch; returns its hash."""
    sizes = f"{len(self.commits)} {sorted(files)}"
    commit = hashlib.sha1(sizes.encode()).hexdigest()
    self.commits[commit] = dict(files)
    self.refs[branch] = commit
    return commit


class Hub:
  """A running stand-in: its repositories, faults to set, and what was asked."""

  def __init__(self):
    self.address = ""
    self.repos: dict[str, Repo] = {}  # "acme/tiny", "datasets/acme/texts".
    self.large: dict[str, bytes] = {}  # SHA-256 -> content.
    # (method, path) -> a status to answer with, or "half" of the content.
    self.failing: Callable[[str, str], Any] = lambda method, path: None
    self.asked: list[str] = []  # "GET /api/..."; with " 5-" of a range.
    self.token = ""  # The login that may write; "" = anybody's.

  def add(self, name: str, files: Mapping[str, bytes], **more: Any) -> Repo:
    """Adds a repository with one commit."""
    repo = self.repos[name] = Repo(**more)
    repo.commit(files)
    return repo

  @property
  def environment(self) -> dict[str, str]:
    return {
      "HF_ENDPOINT": self.address,
      "HF_HUB_DISABLE_XET": "1",
      "HF_HUB_OFFLINE": "0",
    }

  def use(self, patch, cache) -> None:
    """Points this process's library to the hub, with an empty cache."""
    from huggingface_hub import constants

    template = constants.HUGGINGFACE_CO_URL_TEMPLATE
    template = template.replace(constants.ENDPOINT, self.address)
    patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    patch.setattr(constants, "ENDPOINT", self.address)
    patch.setattr(constants, "HF_HUB_CACHE", str(cache / "hub"))
    patch.setattr(constants, "HF_TOKEN_PATH", str(cache / "token"))
    patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    patch.setattr(constants, "HF_HUB_OFFLINE", False)
    patch.delenv("HF_TOKEN", raising=False)
    patch.setenv("XDG_CACHE_HOME", str(cache))


@contextlib.contextmanager
def serve() -> Iterator[Hub]:
  """Serves until the end of the block."""
  hub = Hub()
  with http_serving.serve(_Handler, hub=hub) as hub.address:
    yield hub


def lfs(path: str, content: bytes) -> dict[str, Any]:
  """Returns how the hub lists a file."""
  blob = hashlib.sha1(b"blob %d\0%s" % (len(content), content)).hexdigest()
  listed = {"type": "file", "oid": blob, "size": len(content), "path": path}
  if path.endswith(LARGE):
    oid = hashlib.sha256(content).hexdigest()
    listed["lfs"] = {"oid": oid, "size": len(content), "pointerSize": 130}
  return listed


class _Handler(http_serving.Handler):
  hub: Hub

  def answer(self, code=200, body: Any = b"", headers=(), *, half=False):
    if not isinstance(body, bytes):
      body = json.dumps(body).encode()
    self.send_response(code)
    for name, value in dict(headers).items():
      self.send_header(name, value)
    self.send_header("Content-Length", str(len(body)))
    self.end_headers()
    if self.command != "HEAD":
      self.wfile.write(body[: len(body) // 2] if half else body)
    self.close_connection = half

  def refuse(self, code, kind=""):
    self.answer(code, {"error": kind}, {"X-Error-Code": kind} if kind else {})

  def handle_one(self):
    hub, parts = self.hub, urllib.parse.urlsplit(self.path)
    self.query = dict(urllib.parse.parse_qsl(parts.query))
    body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
    range_ = self.headers.get("Range", "").removeprefix("bytes=")
    path = urllib.parse.unquote(parts.path)
    hub.asked.append(f"{self.command} {path} {range_}".strip())
    self.fault = hub.failing(self.command, path)
    if isinstance(self.fault, int):
      return self.refuse(self.fault)
    if path == "/api/repos/create":
      return self.create(json.loads(body))
    if path == "/api/validate-yaml":
      return self.answer(body={"errors": [], "warnings": []})
    if path.startswith("/large/"):
      return self.large_file(path.removeprefix("/large/"), body)
    if found := BATCH.fullmatch(path):
      return self.batch(json.loads(body))
    if found := RESOLVE.fullmatch(path):
      return self.resolve((found[1] or "") + found[2], found[3], found[4])
    if found := API.fullmatch(path):
      name = found[2] if found[1] == "models" else f"datasets/{found[2]}"
      return self.api(name, found[3] or "/revision/main", body)
    return self.refuse(501)

  def do_GET(self):
    self.handle_one()

  def do_HEAD(self):
    self.handle_one()

  def do_POST(self):
    self.handle_one()

  def do_PUT(self):
    self.handle_one()

  def may_write(self):
    given = self.headers.get("Authorization", "")
    return not self.hub.token or given == f"Bearer {self.hub.token}"

  def files(self, name, revision):
    """Returns (commit, files); None after an answer that refuses them."""
    repo = self.hub.repos.get(name)
    if repo is None or (repo.private and not self.may_write()):
      return self.refuse(404 if self.may_write() else 401, "RepoNotFound")
    if repo.gated:
      return self.refuse(403, "GatedRepo")
    commit = repo.refs.get(revision, revision)
    if commit not in repo.commits:
      return self.refuse(404, "RevisionNotFound")
    return commit, repo.commits[commit]

  def api(self, name, rest, body):
    what, _, revision = rest.strip("/").partition("/")
    if what in ("preupload", "commit"):
      if not self.may_write():
        return self.refuse(401)
      return getattr(self, what)(name, body)
    revision, _, below = revision.partition("/")
    if (found := self.files(name, revision)) is None:
      return None
    commit, files = found
    if what == "tree":
      return self.tree(files, below)
    if what == "paths-info":
      asked = urllib.parse.parse_qs(body.decode())
      asked = asked.get("paths") or json.loads(body)["paths"]
      return self.answer(body=[lfs(p, files[p]) for p in asked if p in files])
    siblings = [{"rfilename": path} for path in files]
    facts = {"id": name.removeprefix("datasets/"), "siblings": siblings}
    facts |= {"sha": commit, "private": self.hub.repos[name].private}
    return self.answer(body=facts)

  def tree(self, files, folder):
    prefix = f"{folder}/" if folder else ""
    found = {p: x for p, x in files.items() if p.startswith(prefix)}
    if not found:
      return self.refuse(404, "EntryNotFound")
    if self.query.get("recursive", "").lower() == "true":
      return self.answer(body=[lfs(path, x) for path, x in found.items()])
    parts = [p.removeprefix(prefix).partition("/") for p in found]
    folders = {prefix + name for name, slash, _ in parts if slash}
    listed = [{"type": "directory", "oid": "0", "path": p} for p in folders]
    here = [prefix + name for name, slash, _ in parts if not slash]
    return self.answer(body=[*listed, *(lfs(p, found[p]) for p in here)])

  def resolve(self, name, revision, path):
    if (found := self.files(name, revision)) is None:
      return None
    commit, files = found
    about = {"X-Repo-Commit": commit}
    if path not in files:
      return self.answer(404, b"", about | {"X-Error-Code": "EntryNotFound"})
    content = files[path]
    if not path.endswith(LARGE):
      etag = lfs(path, content)["oid"]
      return self.content(content, about | {"ETag": f'"{etag}"'})
    oid = hashlib.sha256(content).hexdigest()
    self.hub.large[oid] = content
    about |= {"X-Linked-Etag": f'"{oid}"', "X-Linked-Size": str(len(content))}
    # Another host, as the hub's: there the library sends no token.
    address = self.hub.address.replace("127.0.0.1", "localhost")
    location = f"{address}/large/{oid}"
    return self.answer(302, b"", about | {"Location": location})

  def content(self, content, about):
    """Answers with a file, or the asked part of it."""
    first, _, last = (
      self.headers.get("Range", "").partition("=")[2].partition("-")
    )
    if not first:
      return self.answer(200, content, about, half=self.fault == "half")
    end = min(int(last or len(content)) + 1, len(content))
    about = {
      "Content-Range": f"bytes {first}-{end - 1}/{len(content)}",
      **about,
    }
    return self.answer(206, content[int(first) : end], about)

  def large_file(self, oid, body):
    if self.command == "PUT":
      if hashlib.sha256(body).hexdigest() != oid:
        return self.refuse(400)
      self.hub.large[oid] = body
      return self.answer()
    return self.content(self.hub.large[oid], {"ETag": f'"{oid}"'})

  def create(self, asked):
    if not self.may_write():
      return self.refuse(401)
    name = f"{asked.get('organization') or 'me'}/{asked['name']}"
    url = {"url": f"{self.hub.address}/{name}", "id": name}
    if name in self.hub.repos:
      return self.answer(409, url)
    private = asked.get("visibility", "") == "private" or asked.get("private")
    self.hub.add(name, {}, private=bool(private))
    return self.answer(body=url)

  def preupload(self, name, body):
    modes = [
      {"path": file["path"], "shouldIgnore": False}
      | {"uploadMode": "lfs" if file["path"].endswith(LARGE) else "regular"}
      for file in json.loads(body)["files"]
    ]
    return self.answer(body={"files": modes})

  def batch(self, asked):
    to = f"{self.hub.address}/large"
    objects = [
      each | {"actions": {"upload": {"href": f"{to}/{each['oid']}"}}}
      for each in asked["objects"]
    ]
    return self.answer(body={"transfer": "basic", "objects": objects})

  def commit(self, name, body):
    repo = self.hub.repos[name]
    files = dict(repo.commits[repo.refs["main"]])
    for line in body.splitlines():
      kind, value = (each := json.loads(line))["key"], each["value"]
      if kind == "file":
        files[value["path"]] = base64.b64decode(value["content"])
      elif kind == "lfsFile":
        files[value["path"]] = self.hub.large[value["oid"]]
    commit = repo.commit(files)
    url = f"{self.hub.address}/{name}/commit/{commit}"
    return self.answer(body={"commitUrl": url, "commitOid": commit})
