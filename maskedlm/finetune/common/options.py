"""Options that several tasks have: each copies those that it needs."""

import dataclasses

from maskedlm.data.labelled import bio
from maskedlm.finetune.contract import task_option
from maskedlm.modeling.task_heads.span_vectors import REPRESENTATIONS


@dataclasses.dataclass(frozen=True)
class Shared:
  """Copied by core.options.copy_option, some with another default."""

  # How files are read.
  header: tuple[str, ...] = task_option(
    (),
    "Names of the columns, for files without a header line.",
    overridable=True,
  )
  language: str = task_option(
    "", "Skip rows whose column `language` has another value.", overridable=True
  )
  token_column: int = task_option(
    0,
    "Column of the word in CoNLL files, from 0, or negative from the end. "
    "In CoNLL-U, 0 is FORM.",
    overridable=True,
  )
  file_scheme: str = task_option(
    "auto",
    "How files write entities; auto recognises bio, iob1 and bioes, any also "
    "BILOU, BMES, B_PER, b-per and PER-B; io: types alone.",
    choices=bio.FILE_SCHEMES,
    overridable=True,
  )
  repair_bio: bool = task_option(
    False,
    "Read ill-formed BIO as conlleval does, instead of refusing it.",
    overridable=True,
  )
  # How long sentences become rows.
  stride: int = task_option(
    0,
    "Tokens from one window to the next, for sentences longer than a row; 0 "
    "for half a row.",
    low=0,
  )
  # What the head reads.
  pooler: bool = task_option(
    True,
    "Pass z_CLS through the pretrained dense layer and tanh of BERT.",
    of_head=True,
  )
  representation: str = task_option(
    "endpoints_mean",
    "How the vector of a span is made.",
    choices=tuple(REPRESENTATIONS),
    of_head=True,
  )
