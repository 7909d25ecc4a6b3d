"""Models by name: downloads from the Hugging Face Hub, and uploads to it.

Only huggingface_hub talks to the hub, with its own login, cache and settings
(HF_TOKEN, HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE).
"""

import os
import pathlib
import subprocess
import sys

from maskedlm.core.errors import ConfigError, InteropError, StorageError
from maskedlm.interop.huggingface import tensors
from maskedlm.runtime import buckets, console, hub_names, storage_errors
from maskedlm.runtime.hub_names import HubName
from maskedlm.training.checkpoints import resume

# What may be fetched: never a pickle, never code.
_FETCHED = ("*.json", "*.safetensors", "*.txt", "*.model")
_LOGIN = "log in with `hf auth login`"
# An error of the library, or a status -> what is wrong, and what helps.
_MEANINGS = {
  "OfflineModeIsEnabled": "is not in this machine's cache, and HF_HUB_OFFLINE "
  "is set: unset it, or fetch the model elsewhere and give its folder.",
  "GatedRepoError": "is gated: ask for access at {page}, and {login}.",
  "RevisionNotFoundError": "is no revision of the model: its branches and tags "
  "are at {page}/tree/main.",
  "RepositoryNotFoundError": "is not on the hub, or is private: check the "
  "spelling, or {login} as someone who may read it.",
  "401": "is refused without a login, or to this one: {login}, or correct "
  "HF_TOKEN.",
  "403": "is forbidden to this login: {login} as someone who has the right, "
  "with a token that has it.",
}


def pin(path: str, workdir: str | os.PathLike = "") -> str:
  """Imports a model of the hub, if needed; returns its name with the commit.

  Args:
    path: hf:NAME[@REVISION], or any other path, which is returned as it is.
    workdir: of the run that is to start from it. A run that has begun keeps its
      commit.
  """
  if not hub_names.is_name(path):
    return path
  name = hub_names.parse(path)
  if not name.commit and workdir:
    path = _find_pinned(path, workdir) or path
    name = hub_names.parse(path)
  if name.commit and hub_names.place(name).is_dir():
    return path
  _, full_name = download(name)
  if not hub_names.place(full_name).is_dir():
    import_apart(full_name, hub_names.place(full_name))
  return path if name.commit else f"{path}#{full_name.commit}"


def import_apart(name: HubName, place: pathlib.Path) -> None:
  """Imports a model that was downloaded, in a process of its own.

  In this process, JAX must not be initialised (nor asked for the host, by
  console.log) before hosts are connected and XLA's flags are set.
  """
  from huggingface_hub import constants

  console.warn(f"importing {name} into {place}")
  command = f"-m maskedlm import --from hf {name} --out".split()
  environment = {
    "JAX_PLATFORMS": "cpu",
    "HF_HUB_CACHE": constants.HF_HUB_CACHE,
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
  }
  process = subprocess.run(
    [sys.executable, *command, str(place)],
    env=os.environ | environment,
    capture_output=True,
    text=True,
  )
  *lines, last = process.stderr.splitlines() or [""]
  if not place.is_dir():
    kind = StorageError if process.returncode == 74 else InteropError
    raise kind(last.removeprefix("error: ") or f"{name}: {process}")
  for line in filter(None, [*lines, last]):
    console.warn(line)


def _find_pinned(path: str, workdir: str | os.PathLike) -> str:
  """Returns `path` with the commit that the runs in a workdir use, or ""."""
  place = buckets.origin(workdir)
  with storage_errors.bucket_errors(workdir):
    for file in (place / "config.json", *sorted(place.glob("*/config.json"))):
      begun = resume.read_config(file.parent).get("init_from", "")
      if str(begun).startswith(f"{path}#"):
        return begun
  return ""


def find(model: str) -> tuple[pathlib.Path, str]:
  """Returns (folder, name) of the model that `maskedlm import --from hf` names.

  Args:
    model: hf:NAME[@REVISION], on the hub; a folder, whose name is ""; or a bare
      NAME, which is on the hub unless there is such a folder.

  Raises:
    ConfigError: a folder here is spelt as OWNER/NAME; or as `download`.
  """
  is_bare = not hub_names.is_name(model)
  name = f"{hub_names.PREFIX}{model}" if is_bare else model
  if is_bare and not hub_names.NAME.fullmatch(name):
    return pathlib.Path(model), ""
  if is_bare and os.path.exists(model):
    if "/" in model:
      raise ConfigError(
        f"{model} is spelt as a name on the hub, and is a folder here: give "
        f"{name} for the first, ./{model} for the other."
      )
    console.log(f"{model}: the folder here, not {name} on the hub")
    return pathlib.Path(model), ""
  try:
    folder, full_name = download(hub_names.parse(name))
  except (ConfigError, InteropError, StorageError) as error:
    here = f"{model}: no such folder here; " if is_bare else ""
    raise type(error)(f"{here}{error}") from error
  return folder, str(full_name)


def download(name: HubName) -> tuple[pathlib.Path, HubName]:
  """Returns the folder of a model in the library's cache, and its full name.

  Raises:
    ConfigError, StorageError: the hub refuses it, or can't be reached.
    InteropError: it has no safetensors.
  """
  import huggingface_hub

  with storage_errors.raise_as(lambda error: _explain(name, error)):
    folder = huggingface_hub.snapshot_download(
      name.model,
      revision=name.commit or name.revision or None,
      allow_patterns=[*_FETCHED],
    )
  full_name = name._replace(commit=os.path.basename(folder))
  if not any(pathlib.Path(folder).rglob("*.safetensors")):
    local_dir = pathlib.Path("models", name.model.rpartition("/")[2])
    raise InteropError(
      f"{name} has no *.safetensors, and a pickle (*.bin), which can run code, "
      f"is not read. If you trust it: hf download {name.model} --revision "
      f"{full_name.commit} --local-dir {local_dir} && "
      f"{tensors.convert_command(local_dir, 'pytorch_model*.bin')} && "
      f"maskedlm import --from hf ./{local_dir} --out runs/{local_dir.name}"
    )
  return pathlib.Path(folder), full_name


def push(folder: pathlib.Path, name: str, *, public: bool) -> None:
  """Uploads a folder's files as a model of that name, new or existing.

  Raises:
    ConfigError, StorageError: the hub refuses it, or the model exists and is
      private but `public` is set, or the reverse.
  """
  import huggingface_hub

  to, api = HubName(name, "", ""), huggingface_hub.HfApi()
  with storage_errors.raise_as(lambda error: _explain(to, error)):
    repo = api.create_repo(to.model, private=not public, exist_ok=True)
    if api.model_info(repo.repo_id).private == public:
      state = "private: leave out" if public else "public: add"
      raise ConfigError(
        f"--push={name} is on the hub, and {state} --public, or give another "
        "name."
      )
    upload = api.upload_folder(
      repo_id=repo.repo_id, folder_path=folder, commit_message="maskedlm export"
    )
  kind = "public" if public else "private"
  console.log(f"uploaded as {repo.repo_id}, {kind}: {upload.commit_url}")


def _explain(name: HubName, error: Exception) -> ConfigError | StorageError:
  """Returns an error of the library as one line, with what helps."""
  from huggingface_hub import constants, errors

  absent = errors.LocalEntryNotFoundError
  while isinstance(error, absent) and isinstance(error.__cause__, Exception):
    error = error.__cause__  # Nor is it in the cache: what did the hub say?
  code = getattr(getattr(error, "response", None), "status_code", "")
  names = {base.__name__ for base in type(error).__mro__} | {str(code)}
  page = f"{constants.ENDPOINT}/{name.model}"
  for kind, meaning in _MEANINGS.items():
    if kind in names:
      return ConfigError(f"{name} {meaning.format(page=page, login=_LOGIN)}")
  if code == 429:
    return StorageError(
      f"{name}: the hub has had too many requests from here (429): wait some "
      f"minutes, or {_LOGIN}, which raises the limit, and run the same command "
      "again."
    )
  is_disk = getattr(error, "errno", None)
  place = constants.HF_HUB_CACHE if is_disk else constants.ENDPOINT
  return storage_errors.as_user_error(
    f"{name}: {place} fails ({storage_errors.reason(error)})",
    error,
    if_wrong="set HF_HOME to a folder that can be written.",
  )
