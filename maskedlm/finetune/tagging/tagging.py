"""Tagging: a tag for every word, such as named entities or parts of speech.

y_i = softmax(W z_i), t_i = argmax y_i for each token i (equations 11.14 and
11.15), or a CRF over the words. Words are tokenised one by one (words.py), so
tags stay aligned; sentences longer than a row are read in windows (windows.py),
so every word gets a tag.
"""

import dataclasses
import functools
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.core.options import copy_option
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled import bio, columns, label_scheme, sentences
from maskedlm.data.labelled.formats import tags
from maskedlm.data.labelled.formats.tags import Example
from maskedlm.finetune.common import entity_metrics
from maskedlm.finetune.common.decoding import Row, by_example
from maskedlm.finetune.common.head import Head, make_head
from maskedlm.finetune.common.label_metrics import confusion_table
from maskedlm.finetune.common.labels import file_of
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.common.parts import format_entities, part
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Prediction,
  Setup,
  task_option,
)
from maskedlm.finetune.tagging.rows import ENTITIES, GOLD, make_rows
from maskedlm.modeling.task_heads import crf, ensemble
from maskedlm.modeling.task_heads.label_heads import TagHead
from maskedlm.modeling.task_heads.tag_scores import (
  combined_subword_scores,
  crf_loss,
  first_subword_scores,
  likeliest_tags,
  token_loss,
  viterbi_tags,
  word_loss,
)

_OF_ENTITIES = {"task.task": ("ner",)}


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task."""

  task: str = task_option(
    "ner",
    "ner: entities, scored as a whole; pos: any tags, scored word by word.",
    choices=("ner", "pos"),
  )
  token_column: int = copy_option(Shared, "token_column")
  tag_column: int = task_option(
    -1, "Column of the tag. In CoNLL-U, -1 is conllu_tag.", overridable=True
  )
  conllu_tag: str = task_option(
    "upos",
    "Column of the tag in CoNLL-U, unless tag_column names another.",
    choices=tuple(tags.CONLLU_TAGS),
    overridable=True,
    needs={"task.tag_column": (-1,)},
  )
  file_scheme: str = copy_option(Shared, "file_scheme", needs=_OF_ENTITIES)
  scheme: str = task_option(
    "bio",
    "The model's own tags of entities.",
    choices=("bio", "bioes"),
    needs=_OF_ENTITIES,
  )
  repair_bio: bool = copy_option(Shared, "repair_bio", needs=_OF_ENTITIES)
  decode: str = task_option(
    "first",
    "first: a word's tag is trained on all of its subwords and read at the "
    "first; combine: it is the likeliest under the product of their "
    "distributions; words: it is trained and read at the first; crf: so too, "
    "with a CRF over the words.",
    choices=("first", "combine", "words", "crf"),
  )
  stride: int = copy_option(Shared, "stride")


def read_examples(source: str, options: Options) -> list[Example]:
  """Returns the sentences of a file; formats/tags.py lists the formats."""
  examples = tags.read_file(
    source,
    token_column=options.token_column,
    tag_column=options.tag_column,
    conllu_tag=options.conllu_tag,
    entities=options.task == "ner",
  )
  if options.task != "ner":
    return examples
  return tags.read_entities(
    examples,
    file_scheme=options.file_scheme,
    scheme=options.scheme,
    repair_bio=options.repair_bio,
  )


def describe_labels(
  examples: Sequence[Example], options: Options
) -> dict[str, list[str]]:
  """Returns {"labels": the tags}: sorted for pos, with O first for ner.

  Every type of entity gets all of its tags, even those that the training set
  lacks, such as I-PER if all names have one word.

  Raises:
    DataError: there are no tags, or all are the same.
  """
  names = {tag for example in examples for tag in example.tags or ()}
  where = file_of(examples)
  if not names:
    raise DataError(
      f"{where}: the words have no tags; expected a column of tags to learn."
    )
  if len(names) == 1:
    raise DataError(
      f"{where}: every word has the tag {names.pop()!r}; expected at least two "
      "different tags. Is it the right column? --config.task.tag_column, "
      "--config.task.conllu_tag."
    )
  if options.task == "pos":
    return {"labels": sorted(names)}
  types = {
    type_ for prefix, type_ in map(bio.split_tag, names) if prefix != "O"
  }
  return {"labels": bio.all_tags(types, options.scheme)}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application with a TagHead, and a CRF if it decodes."""
  head = make_head(
    setup.cfg,
    "tagger",
    TagHead(setup.cfg, len(setup.label_info["labels"])),
    (np.zeros((1, 1, setup.cfg.width), np.float32),),
  )
  return make_tagger(setup, options, head)


def make_tagger(setup: Setup, options: Options, head: Head) -> Application:
  """Returns the Application of a head with logits [B, L, T] of the tokens.

  Args:
    setup, options: as in FinetuneTask.make_application.
    head: gives the scores of the T tags of each token.
  """
  labels = tuple(setup.label_info["labels"])
  meaning = _read_meanings(labels, options)
  legal = crf.zero_transitions(len(labels))
  if options.decode == "crf" and options.task == "ner":
    legal = crf.legal_transitions(
      labels, functools.partial(bio.may_follow, scheme=options.scheme)
    )
  tagger = Tagger(options, head, meaning, legal)
  return Application(
    make_rows=functools.partial(
      make_rows,
      tokenizer=setup.tokenizer,
      tag_ids=meaning.ids,
      length=setup.length,
      stride=options.stride,
    ),
    init=tagger.init,
    loss=tagger.loss,
    outputs=tagger.outputs,
    decode=by_example(tagger.predict),
    score=tagger.score,
    best="f1" if options.task == "ner" else "accuracy",
    require_labels=functools.partial(
      (ENTITIES if options.task == "ner" else GOLD).require,
      known=[tag for tag in meaning.ids if tag != "O"],
    ),
  )


class Tagger(NamedTuple):
  """Tagging with given labels and a given head."""

  options: Options
  head: Head  # With logits [B, L, T].
  meaning: label_scheme.LabelMeanings
  legal: crf.TransitionScores  # What the CRF's parameters are added to.

  @property
  def is_crf(self) -> bool:
    """Whether sequences of tags are scored."""
    return self.options.decode == "crf"

  def init(self, key: Key) -> Params:
    """Returns the head's parameters and those of a CRF."""
    params = self.head.init(key)
    if self.is_crf:
      # A fresh CRF is a softmax over the legal sequences.
      steps = crf.zero_transitions(len(self.meaning.tags))
      params = {**params, "crf": jax.tree.map(jnp.asarray, steps._asdict())}
    return params

  def loss(self, params: Params, batch: Batch, key: Key, train: bool):
    """Returns the loss of tokens, of words or of sequences of tags."""
    scores = self.head.logits(params, batch, key, train)
    if self.options.decode in ("first", "combine"):
      return token_loss(scores, batch)
    scores = first_subword_scores(scores, batch["word_starts"])
    if not self.is_crf:
      return word_loss(scores, batch)
    return crf_loss(scores, self._steps(params, batch), batch)

  def _steps(self, params: Params, batch: Batch) -> crf.TransitionScores:
    return crf.row_transitions(params["crf"], self.legal, batch)

  def outputs(self, params: Params, batch: Batch, every=ensemble.alone):
    """Returns the tags of words and their probabilities, [B, L] each."""
    scores = self.head.logits(params, batch, None, False)
    if self.options.decode == "combine":
      scores = combined_subword_scores(scores, batch)
    else:
      scores = first_subword_scores(scores, batch["word_starts"])
    scores = every(scores)
    if not self.is_crf:
      return likeliest_tags(ensemble.mean_softmax(scores))
    # A sequence scores the mean of its members' scores.
    steps = jax.tree.map(every, self._steps(params, batch))
    scores, steps = jax.tree.map(ensemble.mean, (scores, steps))
    return viterbi_tags(scores, steps, batch)

  def predict(self, example: Example, rows: Sequence[Row]) -> Prediction:
    """Returns the prediction for a sentence, as tag_prediction makes it."""
    decoded, probabilities = [], []
    for row in rows:
      count = int(np.sum(row["word_starts"] > 0))
      decoded += [self.meaning.tags[t] for t in row["tags"][:count]]
      probabilities += row["probabilities"][:count].tolist()
    has_entities = self.options.task == "ner"
    # A CRF's tags are legal within a window, but maybe not where two windows
    # meet.
    if self.meaning.is_iob1 or (self.is_crf and has_entities):
      decoded = bio.repair_tags(decoded, self.options.scheme)
    return tag_prediction(
      example, decoded, probabilities, has_entities=has_entities
    )

  def score(
    self, examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    """Returns the scores of entities, or the accuracy of words."""
    gold = GOLD.of(examples)
    predicted = [p["tags"] for p in predictions]
    if self.options.task == "ner":
      return entity_metrics.evaluate_entities(
        gold, predicted, self.options.scheme
      )
    return {"accuracy": entity_metrics.word_accuracy(gold, predicted)}


def tag_prediction(
  example: Example,
  found: Sequence[str],
  probabilities: Sequence[float],
  *,
  has_entities: bool,
) -> Prediction:
  """Returns the prediction for a sentence, JSON-able.

  Args:
    found, probabilities: the decoded tags and their probabilities, by word.
    has_entities: whether the tags are entity tags.

  Returns:
    text, tokens, tags, probabilities and perhaps entities, each a part of the
    text (common/parts.py) with its type and score.
  """
  text, offsets = sentences.sentence_text(example)
  prediction: Prediction = {
    "text": text,
    "tokens": list(example.words),
    "tags": list(found),
    "probabilities": [round(float(p), 4) for p in probabilities],
  }
  if not has_entities:
    return prediction
  return {
    **prediction,
    "entities": [
      {
        "type": label,
        **part(text, offsets, begin, end),
        # An entity is as certain as its least certain word.
        "score": min(prediction["probabilities"][begin:end]),
      }
      for label, begin, end in bio.find_entities(found)
    ],
  }


def format_prediction(prediction: Prediction) -> str:
  """Returns the text and a line for each entity, or word/tag pairs."""
  if "entities" not in prediction:
    pairs = zip(prediction["tokens"], prediction["tags"], strict=True)
    return " ".join(f"{word}/{tag}" for word, tag in pairs)
  return format_entities(prediction)


def _read_meanings(
  labels: Sequence[str], options: Options
) -> label_scheme.LabelMeanings:
  """Returns the tags that labels mean; for entities, see label_scheme.py."""
  if options.task == "ner":
    return label_scheme.read_labels(labels, options.scheme)
  ids = {label: i for i, label in enumerate(labels)}
  return label_scheme.LabelMeanings(tuple(labels), ids, is_iob1=False)


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns report.txt by type, confusion.tsv of words, predictions.conll.

  The last has the word, the gold tag and the predicted tag, separated by tabs,
  which the script conlleval reads with -d "\\t".
  """
  gold = GOLD.of(examples)
  predicted = [p["tags"] for p in predictions]
  by_tag = entity_metrics.format_table(
    entity_metrics.count_words(gold, predicted), "tag"
  )
  text = by_tag
  if any("entities" in prediction for prediction in predictions):
    counts = entity_metrics.count_entities(gold, predicted, bio.find_entities)
    text = f"{entity_metrics.format_table(counts, 'entity')}\n{by_tag}"
  words = [example.words for example in examples]
  return {
    "report.txt": text,
    "confusion.tsv": confusion_table(chain(*gold), chain(*predicted)),
    "predictions.conll": columns.format_columns(
      list(zip(words, gold, predicted, strict=True))
    ),
  }


def export_predictions(
  predictions: Sequence[Prediction], options: Options
) -> dict[str, str]:
  """Returns files of words and predicted tags, for read_examples."""
  pairs = [(p["tokens"], p["tags"]) for p in predictions]
  files = {"predictions.conll": columns.format_columns(pairs)}
  if options.task == "pos":
    files["predictions.conllu"] = tags.format_conllu(
      pairs, conllu_tag=options.conllu_tag
    )
  return files


def make_task(options: Options) -> FinetuneTask:
  return FinetuneTask(
    name="tagging",
    options=options,
    read_examples=functools.partial(read_examples, options=options),
    parse_line=lambda line: Example(**sentences.parse_line(line)._asdict()),
    describe_labels=functools.partial(describe_labels, options=options),
    make_application=functools.partial(make_application, options=options),
    format_prediction=format_prediction,
    format_tables=format_tables,
    export_predictions=functools.partial(export_predictions, options=options),
    demo_lines=("Jane Villanueva of United Airlines spoke in New York.",),
  )
