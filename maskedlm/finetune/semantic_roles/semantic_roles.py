"""Semantic roles: who did what to whom, when and where.

For each predicate of a sentence, given or found, the labelled spans of its
arguments (Jurafsky & Martin, section 11.5.2; PropBank's roles). The
sentence is encoded once. A word is a predicate if sigmoid(w z) > 1/2, and the
arguments of a predicate are BIO tags of all words
(modeling/task_heads/role_heads.py), decoded by Viterbi so that they are
well-formed (Shi and Lin 2019, arXiv:1904.05255).
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.options import copy_option
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled import bio
from maskedlm.data.labelled.formats import props, roles
from maskedlm.data.labelled.formats.predicates import VERB, Example
from maskedlm.finetune.common.decoding import Row, by_example
from maskedlm.finetune.common.head import Heads
from maskedlm.finetune.common.labels import file_of
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Outputs,
  Prediction,
  Rows,
  Setup,
)
from maskedlm.finetune.semantic_roles import metrics, text
from maskedlm.finetune.semantic_roles.rows import GOLD, make_rows
from maskedlm.modeling import reports
from maskedlm.modeling.heads import gather_positions
from maskedlm.modeling.losses import loss_and_accuracy, weighted_sum
from maskedlm.modeling.task_heads import bio_viterbi, ensemble
from maskedlm.modeling.task_heads.role_heads import RoleHead, WordHead
from maskedlm.runtime.console import log


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task."""

  stride: int = copy_option(Shared, "stride")


def has_label(example: Example) -> bool:
  """Returns whether the predicates and their arguments are known."""
  return example.predicates is not None and example.has_args


def describe_labels(examples: Sequence[Example]) -> dict[str, list[str]]:
  """Returns {"labels": the BIO tags of the training set's roles and V}.

  Raises:
    DataError: there is no predicate, or none has an argument.
  """
  where = file_of(examples)
  predicates = [p for x in examples if has_label(x) for p in x.predicates or ()]
  if not predicates:
    raise DataError(
      f"{where}: no predicate in the whole file; expected some to learn, with "
      "their arguments."
    )
  names = {arg.type for p in predicates for arg in p.args}
  if names <= {VERB, f"C-{VERB}"}:
    raise DataError(
      f"{where}: no argument of any of the {len(predicates):,} predicates; "
      "expected some to learn."
    )
  return {"labels": bio.all_tags({VERB, *names}, "bio")}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application: a WordHead and a RoleHead."""
  tokenizer, cfg, label_info, length = setup
  labels = tuple(label_info["labels"])
  vector, word = jnp.zeros((1, 1, cfg.width)), jnp.zeros((1, 1), jnp.int32)
  roles = RoleHead(cfg, len(labels))
  heads = Heads(
    cfg,
    {
      "words": (WordHead(cfg), (vector,)),
      "roles": (roles, (vector, vector, word)),
    },
  )
  labeller = RoleLabeller(labels, heads)
  return Application(
    make_rows=functools.partial(
      make_rows,
      tokenizer=tokenizer,
      labels=labels,
      length=length,
      stride=options.stride,
    ),
    init=heads.init,
    loss=labeller.loss,
    outputs=labeller.outputs,
    decode=labeller.decode,
    score=lambda examples, predictions: metrics.evaluate_roles(
      *_gold_given_found(examples, predictions)
    ),
    best="srl_f1",
    has_label=has_label,
    require_labels=labeller.require_labels,
  )


class RoleLabeller(NamedTuple):
  """The task with given labels."""

  labels: tuple[str, ...]  # BIO tags, by id.
  heads: Heads

  def _words(self, params: Params, batch: Batch, key: Key | None, train: bool):
    """Returns WordHead's result for the words of rows."""
    hidden = self.heads.encode(params, batch, key, train)
    vectors = gather_positions(hidden, batch["word_starts"])
    return self.heads.apply("words", params, vectors, key=key, train=train)

  def loss(self, params: Params, batch: Batch, key: Key, train: bool):
    """Returns the cross-entropies of tags, and of what is a predicate."""
    finds, word, own = self._words(params, batch, key, train)
    logits = self.heads.apply(
      "roles",
      params,
      word,
      own,
      batch["predicates"],
      key=jax.random.fold_in(key, 2) if train else key,
      train=train,
    )
    examples = batch["example_weights"][:, None]
    weights = batch["is_slot"] * examples
    is_word = batch["word_starts"] > 0
    tags, accuracy = loss_and_accuracy(
      logits, batch["role_tags"], weights=weights[..., None] * is_word[:, None]
    )
    truth = batch["is_predicate"] > 0
    nll = -jax.nn.log_sigmoid(jnp.where(truth, finds, -finds))
    judged = batch["is_judged"] * examples
    reports.report_binary(finds, judged)
    return (
      {"roles": tags, "predicates": weighted_sum(nll, judged)},
      {"tag_accuracy": accuracy},
    )

  def outputs(self, params: Params, batch: Batch, every=ensemble.alone):
    """Returns S predicates of each row, with the tags of all words.

    Returns:
      slots [B, S], their words, -1 for none; finds [B, S], their logits; tags
      [B, S, L]; and left_out [B], how many more may be predicates.
    """
    finds, word, own = self._words(params, batch, None, False)
    finds = ensemble.mean_sigmoid(every(finds))
    is_given = batch["is_given"] > 0
    is_found = (batch["is_judged"] > 0) & (finds > 0)
    # The given predicates, then the likeliest words.
    order = jnp.where(is_given, jnp.inf, jnp.where(is_found, finds, -jnp.inf))
    L = finds.shape[1]
    _, slots = jax.lax.top_k(order, min(L, 16 + L // 4))
    is_slot = jnp.take_along_axis(is_given | is_found, slots, axis=1)
    lengths = jnp.sum(batch["word_starts"] > 0, axis=1)
    is_verb = np.array([tag == f"B-{VERB}" for tag in self.labels])

    def best_tags(slot):
      at = slot[:, None]
      logits = self.heads.apply(
        "roles", params, word, own, at, key=None, train=False
      )[:, 0]
      logits = ensemble.mean_softmax(every(logits))
      # V begins at the predicate's word, and nowhere else.
      allowed = (jnp.arange(L) == at)[..., None] == is_verb
      logits = jnp.where(allowed, logits, bio_viterbi.FORBIDDEN)
      return bio_viterbi.viterbi_bio(logits, lengths)

    # Slots that no row of the batch fills cost nothing.
    tags = jax.lax.map(
      lambda x: jax.lax.cond(
        jnp.any(x[1]),
        lambda: best_tags(x[0]),
        lambda: jnp.zeros((len(finds), L), jnp.int32),
      ),
      (slots.T, is_slot.T),
    )
    return {
      "slots": jnp.where(is_slot, slots, -1).astype(jnp.int32),
      "finds": jnp.take_along_axis(finds, slots, axis=1),
      "tags": jnp.moveaxis(tags, 0, 1),
      "left_out": jnp.sum(is_given | is_found, axis=1)
      - jnp.sum(is_slot, axis=1),
    }

  def decode(
    self,
    examples: Sequence[Example],
    rows: Rows,
    outputs: Outputs,
    tuned: Mapping[str, float],
  ) -> list[Prediction]:
    """Returns the sentences' predictions, as role_prediction makes them."""
    if left_out := int(np.sum(outputs["left_out"])):
      log(
        f"warning: {counted(left_out, 'word')} that may be predicates, the "
        "least likely ones of their rows, got no arguments and were left out"
      )
    return by_example(self._predict)(examples, rows, outputs, tuned)

  def _predict(self, example: Example, rows: Sequence[Row]) -> Prediction:
    predicates = {}  # Index -> (predicate, its logit).
    for row in rows:
      first = int(row["first_word"])
      count = int(np.sum(row["word_starts"] > 0))
      for slot in np.flatnonzero(row["slots"] >= 0):
        index = first + int(row["slots"][slot])
        tags = [self.labels[t] for t in row["tags"][slot, :count]]
        predicate = text.read_tags(index, tags, first)
        predicates[index] = predicate, float(row["finds"][slot])
    return text.role_prediction(
      example, [predicates[i] for i in sorted(predicates)]
    )

  def require_labels(self, examples: Sequence[Example]) -> None:
    """Raises DataError if arguments are unknown, or the model knows no role."""
    roles = {bio.split_tag(tag)[1] for tag in self.labels} - {"", VERB}
    GOLD.require(_with_known_args(examples), sorted(roles))


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns report.txt by label, and the two files for srl-eval.pl."""
  gold, given, found = _gold_given_found(examples, predictions)
  words = [example.words for example in examples]
  return {
    "report.txt": metrics.format_report(gold, given, found),
    "gold.props": props.format_props(zip(words, gold, strict=True)),
    "predicted.props": props.format_props(zip(words, given, strict=True)),
  }


def export_predictions(predictions: Sequence[Prediction]) -> dict[str, str]:
  """Returns the words, predicates and roles in the formats that are read."""
  pairs = [(p["words"], text.predicted(p["predicates"])) for p in predictions]
  return {
    "roles.jsonl": roles.format_rows(predictions),
    "roles_2005.conll": props.format_sentences(pairs),
    "roles_2012.conll": roles.format_2012(pairs),
  }


def _with_known_args(examples: Sequence[Example]) -> list[Example]:
  """Returns the examples, with no predicates where arguments are unknown."""
  return [x if has_label(x) else x._replace(predicates=None) for x in examples]


def _gold_given_found(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> tuple[metrics.Sentences, metrics.Sentences, metrics.Sentences]:
  """Returns the gold predicates, those as predicted, and the model's own."""
  return (
    GOLD.of(_with_known_args(examples)),
    [text.predicted(p["predicates"]) for p in predictions],
    [
      text.predicted([x for x in p["predicates"] if x["found"]] + p["others"])
      for p in predictions
    ],
  )


def make_task(options: Options) -> FinetuneTask:
  return FinetuneTask(
    name="semantic_roles",
    options=options,
    read_examples=roles.read_file,
    parse_line=text.parse_line,
    describe_labels=describe_labels,
    make_application=functools.partial(make_application, options=options),
    format_prediction=text.format_prediction,
    format_tables=format_tables,
    export_predictions=export_predictions,
    demo_lines=("Jane sold her old house to a company in Paris last year.",),
  )
