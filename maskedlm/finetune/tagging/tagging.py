"""Tagging: a tag for every word: named entities in BIO, parts of speech.

y_i = softmax(W z_i), t_i = argmax y_i for each token i (equations 11.14 and
11.15), or a CRF over the words. Words are tokenised one by one (words.py), so
tags never shift; sentences longer than a row are read in windows (windows.py),
so every word gets its tag.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError, DataError, check_known
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import bio, entity_metrics
from maskedlm.finetune.common.confusion import confusion_table
from maskedlm.finetune.contract import Application, Outputs, Prediction, Rows
from maskedlm.finetune.tagging import conll, crf, label_scheme
from maskedlm.finetune.tagging import head as tagger
from maskedlm.finetune.tagging import text as tag_text
from maskedlm.finetune.tagging.rows import Example, make_rows
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig


class Options(NamedTuple):
  """config.task of this kind."""

  task: str = "ner"  # ner: entities, scored whole | pos: any tags, by word.
  # Columns of CoNLL files, from 0, or from the end; CoNLL-U knows its own.
  token_column: int = 0
  tag_column: int = -1
  conllu_tag: str = "upos"  # upos | xpos.
  # ner: how files write entities; auto = as each file is recognised.
  file_scheme: str = "auto"  # auto | bio | iob1 | bioes (and BILOU).
  scheme: str = "bio"  # The model's own tags: bio | bioes.
  # Ill-formed BIO is read as conlleval does, instead of being refused.
  repair_bio: bool = False
  # In training a word's tag is on all of its subwords, or on the first alone.
  tag_all_subwords: bool = True
  # A word's tag is that of its first subword, or of the product of its
  # subwords' distributions.
  decode: str = "first"  # first | combine.
  crf: bool = False  # A CRF over the words, each seen at its first subword.
  # The CRF's scores of steps are this times its parameters. As Adam moves those
  # by the learning rate, the scores move so much faster: at 1, with a rate that
  # suits an encoder, they hardly leave 0. The gradient is as much larger.
  crf_rate: float = 100.0
  # Tokens from one window to the next, of sentences longer than a row; 0 =
  # half a row.
  stride: int = 0


READING = (
  "token_column",
  "tag_column",
  "conllu_tag",
  "file_scheme",
  "repair_bio",
)
EXAMPLES = ("Jane Villanueva of United Airlines spoke in New York.",)
# Name of an option -> what it may be.
_CHOICES = {
  "task": ("ner", "pos"),
  "conllu_tag": tuple(conll.CONLLU_TAGS),
  "file_scheme": ("auto", *bio.SCHEMES),
  "scheme": ("bio", "bioes"),
  "decode": ("first", "combine"),
}


def read(source: str, options: Options) -> list[Example]:
  """The sentences of a file of CoNLL columns or CoNLL-U.

  Raises:
    DataError: see conll.read and bio.well_formed.
    ConfigError: an option that is none.
  """
  check(options)
  sentences = conll.read_sentences(
    source,
    token_column=options.token_column,
    tag_column=options.tag_column,
    conllu_tag=options.conllu_tag,
  )
  tags: Sequence[Sequence[str] | None] = [s.tags for s in sentences]
  if options.task == "ner" and None not in tags:
    tags = bio.convert_tags(
      [(s.tags, s.lines) for s in sentences],
      source,
      file_scheme=options.file_scheme,
      scheme=options.scheme,
      repair_bio=options.repair_bio,
    )
  return [
    Example(
      words=sentence.words,
      tags=None if of_words is None else tuple(of_words),
      lines=sentence.lines,
      where=f"{source}:{sentence.lines[0]}",
    )
    for sentence, of_words in zip(sentences, tags, strict=True)
  ]


def parse(line: str, options: Options) -> Example:
  """A line of predict's input: see tag_text.parse."""
  del options
  return tag_text.parse_line(line)


def describe(
  examples: Sequence[Example], options: Options
) -> dict[str, list[str]]:
  """{"labels": the tags}: of pos as they are, sorted; of ner O first.

  Of each type of entity there are all tags, be they in the training set or
  not: I-PER where there were only names of one word.

  Raises:
    DataError: no tags, or only one.
  """
  check(options)
  found = {tag for example in examples for tag in example.tags or ()}
  where = examples[0].file if examples else "the training set"
  if not found:
    raise DataError(
      f"{where}: the words have no tags; expected a column of tags to learn."
    )
  if len(found) == 1:
    raise DataError(
      f"{where}: every word has the tag {found.pop()!r}; expected two tags or "
      "more to tell apart. Is it the right column? --config.task.tag_column, "
      "--config.task.conllu_tag."
    )
  if options.task == "pos":
    return {"labels": sorted(found)}
  kinds = {kind for prefix, kind in map(bio.split_tag, found) if prefix != "O"}
  return {"labels": bio.all_tags(kinds, options.scheme)}


def make(
  tokenizer: Tokenizer,
  cfg: EncoderConfig,
  about: Mapping[str, Any],
  options: Options,
  *,
  length: int,
) -> Application:
  """The Application: the encoder, W, and the CRF if there is to be one.

  Raises:
    ConfigError: options that don't exist or don't go together.
  """
  head = tagger.TagHead(cfg, len(about["labels"]))

  def init(key: Key) -> Params:
    hidden = jnp.zeros((1, 1, cfg.width))
    return {"tagger": head.init(key, hidden, train=False)["params"]}

  def logits(params: Params, batch: Batch, key: Key, train: bool):
    hidden = masked_lm.encode(cfg, params, batch, key, train)
    return head.apply(
      {"params": params["tagger"]},
      hidden,
      train=train,
      rngs=masked_lm.head_rngs(key, train),
    )

  return assemble(
    tokenizer, about, options, length=length, init=init, logits=logits
  )


def assemble(
  tokenizer: Tokenizer,
  about: Mapping[str, Any],
  options: Options,
  *,
  length: int,
  init: Callable[[Key], Params],
  logits: Callable[[Params, Batch, Key, bool], Any],
) -> Application:
  """A tagger of whatever gives logits for tokens.

  Args:
    tokenizer, about, options, length: as those of `make`.
    init: key -> the parameters of what gives them.
    logits: (params, batch, key, train) -> float32 [B, L, T].
  """
  check(options)
  labels = tuple(about["labels"])
  meaning = _meaning(labels, options)
  if options.crf and options.task == "ner":
    legal = crf.legal_transitions(labels, options.scheme)
  else:
    legal = crf.zero_transitions(len(labels))

  def init_all(key: Key) -> Params:
    # A CRF begins as a softmax without what is forbidden.
    steps = crf.zero_transitions(len(labels))._asdict()
    return {**init(key), **({"crf": steps} if options.crf else {})}

  def steps_of(params: Params, batch: Batch) -> crf.TransitionScores:
    # Adam's steps don't depend on the gradient's scale: scaled, it learns
    # faster; but the norm that is clipped does.
    learnt = (options.crf_rate * params["crf"][name] for name in legal._fields)
    steps = crf.TransitionScores(
      *(a + b for a, b in zip(learnt, legal, strict=True))
    )
    # What is beyond a window is not known: no score for it.
    begins, ends = batch["begins"][:, None], batch["ends"][:, None]
    return steps._replace(start=steps.start * begins, end=steps.end * ends)

  def loss(params: Params, batch: Batch, key: Key, train: bool):
    scores = logits(params, batch, key, train)
    if options.crf:
      emissions = tagger.first_subword_scores(scores, batch)
      return tagger.crf_loss(emissions, steps_of(params, batch), batch)
    if options.tag_all_subwords:
      return tagger.token_loss(scores, batch)
    return tagger.word_loss(tagger.first_subword_scores(scores, batch), batch)

  def outputs(params: Params, batch: Batch):
    scores = logits(params, batch, None, False)
    if options.decode == "combine":
      return tagger.likeliest_tags(
        tagger.combined_subword_scores(scores, batch)
      )
    scores = tagger.first_subword_scores(scores, batch)
    if options.crf:
      return tagger.viterbi_tags(scores, steps_of(params, batch), batch)
    return tagger.likeliest_tags(scores)

  def decode(
    examples: Sequence[Example],
    rows: Rows,
    outputs: Outputs,
    tuned: Mapping[str, float],
  ) -> list[Prediction]:
    del tuned
    tags: list[list[str]] = [[] for _ in examples]
    probabilities: list[list[float]] = [[] for _ in examples]
    for i, index in enumerate(rows.example):
      count = int(np.sum(rows.tokens["word_starts"][i] > 0))
      tags[index] += [meaning.tags[t] for t in outputs["tags"][i][:count]]
      probabilities[index] += outputs["probabilities"][i][:count].tolist()
    # Of a CRF each window's are legal, but perhaps not where two of them meet.
    if meaning.is_iob1 or (options.crf and options.task == "ner"):
      tags = [bio.repair_tags(found, options.scheme) for found in tags]
    parts = zip(examples, tags, probabilities, strict=True)
    has_entities = options.task == "ner"
    return [
      tag_text.tag_prediction(*part, has_entities=has_entities)
      for part in parts
    ]

  def score(
    examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    gold = _gold(examples)
    predicted = [p["tags"] for p in predictions]
    if options.task == "ner":
      return entity_metrics.evaluate_entities(gold, predicted, options.scheme)
    return {"accuracy": entity_metrics.accuracy(gold, predicted)}

  return Application(
    rows=lambda examples: make_rows(
      examples, tokenizer, meaning.ids, length=length, stride=options.stride
    ),
    init=init_all,
    loss=loss,
    outputs=outputs,
    decode=decode,
    score=score,
    best="f1" if options.task == "ner" else "accuracy",
    gold=_gold,
  )


def _meaning(
  labels: Sequence[str], options: Options
) -> label_scheme.LabelMeanings:
  """Of entities as tag_labels.py reads them; other tags are what they are."""
  if options.task == "ner":
    return label_scheme.read_labels(labels, options.scheme)
  ids = {label: i for i, label in enumerate(labels)}
  return label_scheme.LabelMeanings(tuple(labels), ids, is_iob1=False)


show = tag_text.format_prediction


def report(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Files: report.txt by type, confusion.tsv of words, predictions.conll.

  The last has word, gold tag and predicted tag between tabs, which is what the
  script conlleval reads with -d "\\t".
  """
  gold = _gold(examples)
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
    "predictions.conll": conll.format_columns(
      list(zip(words, gold, predicted, strict=True))
    ),
  }


def export(
  predictions: Sequence[Prediction], options: Options
) -> dict[str, str]:
  """Files that `read` reads: the words and the tags they were given."""
  pairs = [(p["tokens"], p["tags"]) for p in predictions]
  files = {"predictions.conll": conll.format_columns(pairs)}
  if options.task == "pos":
    files["predictions.conllu"] = conll.format_conllu(
      pairs, conllu_tag=options.conllu_tag
    )
  return files


def check(options: Options) -> None:
  """Raises ConfigError for options that don't exist or don't go together."""
  check_known("task", options, _CHOICES)
  if options.stride < 0:
    raise ConfigError(
      f"task.stride={options.stride} is below 0; expected tokens, or 0 for "
      "half a row."
    )
  if not options.crf_rate > 0:
    raise ConfigError(
      f"task.crf_rate={options.crf_rate} must be above 0; 1 is the rate of the "
      "heads."
    )
  if options.decode == "combine" and not options.tag_all_subwords:
    raise ConfigError(
      "task.decode='combine' reads subwords that task.tag_all_subwords=False "
      "doesn't train; set one of them otherwise."
    )
  if options.decode == "combine" and options.crf:
    raise ConfigError(
      "task.crf=True sees words at their first subwords: set task.decode="
      "'first'."
    )


def _gold(examples: Sequence[Example]) -> list[tuple[str, ...]]:
  """DataError where there is none."""
  for example in examples:
    if example.tags is None:
      raise DataError(
        f"{example.file}: the words have no tags to score against; expected a "
        "column of tags."
      )
  return [example.tags for example in examples]
