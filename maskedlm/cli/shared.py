"""Flags that several verbs share, each a field of a dataclass."""

from collections.abc import Sequence
from typing import Any

from maskedlm.cli.flags import ANY, REQUIRED, STDIN, argument, flag

PICTURES = (".png", ".svg", ".pdf")


def checkpoint(also: str = "", **more) -> Any:
  """Returns the field of --checkpoint."""
  return flag(
    REQUIRED,
    "A workdir, one of its checkpoints, or hf:NAME on the Hugging Face Hub"
    f"{also}.",
    **more,
  )


def length() -> Any:
  """Returns the field of --length."""
  return flag(
    None,
    "Tokens in a row, special ones included; a longer text is cut, or read in "
    "windows; default: as the model was trained or imported.",
    low=8,
  )


def top_k(default: int, what: str) -> Any:
  """Returns the field of --top_k; `what` is counted."""
  return flag(default, f"{what}.", low=1, old=("--top",))


def json(doc: str = "Print JSON instead of text.") -> Any:
  """Returns the field of --json."""
  return flag(False, doc)


def input_(doc: str, default: Any = (STDIN,)) -> Any:
  """Returns the field of --input, which may be stdin."""
  doc += "; - or none = stdin."
  return flag(default, doc, metavar="FILE", reads=True)


def text(doc: str, default: Any = ()) -> Any:
  """Returns the field of texts on the command line."""
  return argument(default, doc)


def seed(default: int | None, doc: str) -> Any:
  """Returns the field of --seed."""
  return flag(default, doc, low=0)


def unit(default: str, *others: str) -> Any:
  """Returns the field of --unit."""
  return flag(default, "What a vector is of.", choices=(default, *others))


def data(default: Any, doc: str, **more) -> Any:
  """Returns the field of --data: files, with commas between them."""
  return flag(default, doc, metavar="FILE", **{"nargs": 1, **more})


def runs(doc: str) -> Any:
  """Returns the field of workdirs on the command line."""
  return argument(REQUIRED, doc, metavar="WORKDIR")


def out(
  doc: str, suffixes: Sequence[str] = ANY, default: Any = None, **more
) -> Any:
  """Returns the field of --out, or of another file to write."""
  return flag(default, doc, metavar="FILE", writes=suffixes, **more)


def keys(of: str, **more) -> Any:
  """Returns the field of --keys; `of` says what is answered, and how."""
  doc = f"Write the answers to {of}, here, as the official scorer reads them."
  return out(doc, (".txt",), **more)


def out_folder() -> Any:
  """Returns the field of --out, a workdir or a directory to create."""
  return flag(REQUIRED, "The directory to create.", metavar="DIR")


def workdir(
  doc: str = "Checkpoints, logs, results; default: runs/NAME. Without "
  "--config, the run that is there continues with its own config.",
) -> Any:
  """Returns the field of --workdir."""
  return flag(None, doc)


def picture() -> Any:
  """Returns the field of --out, a picture that must be written."""
  return out("A .png, .svg or .pdf.", PICTURES, REQUIRED)


def standardise(doc: str) -> Any:
  """Returns the field of --standardise, what `embed --fit` wrote."""
  return flag(None, doc, metavar="FILE.npz", reads=True)


def text_field(of: str, **more) -> Any:
  """Returns the field of --text_field; `of` is the flag of the text."""
  return flag(
    "text",
    f"The field or column of jsonl:, parquet: and tfds: that holds the text of "
    f"{of}.",
    metavar="FIELD",
    **more,
  )


def field(doc: str = "The field of JSON objects that holds the text.") -> Any:
  """Returns the field of --field."""
  return flag("text", doc, not_beside=("text", "minimal_pairs"))


def text_format(*not_beside: str) -> Any:
  """Returns the field of --format."""
  return flag(
    "",
    "How --input is read; default: by the file's name.",
    choices=("text", "jsonl"),
    not_beside=not_beside,
  )


def layers(default: str = "last", more: str = "") -> Any:
  """Returns the field of --layers; `more` describes the default."""
  return flag(
    default,
    "last | all | numbers such as -1,-2 or 0,6: 0 is the embeddings, 1 the "
    f"first layer, -1 the last{more}.",
    old=("--layer",),
  )


def combine(default: str = "mean", why: str = "") -> Any:
  """Returns the field of --combine; `why` is the reason for the default."""
  how = "mean | sum | concat"
  return flag(default, f"How several layers are combined{why}: {how}.")
