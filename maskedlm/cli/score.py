"""`maskedlm score`: how probable texts are, and whether one follows another."""

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from maskedlm.cli import groups, shared
from maskedlm.cli.flags import STDIN, flag
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.core.measured import to_json
from maskedlm.inference.batch_tokens import BATCH_TOKENS
from maskedlm.runtime import console, output_files, output_options

CHUNK = 256  # Lines that are answered together.


@dataclasses.dataclass(frozen=True)
class Score:
  """Prints how probable a pretrained model finds texts: the
  pseudo-log-likelihood of a masked model, the log-likelihood of a causal one
  or of ELMo's, in nats, with each token's. Of two texts with a tab between
  them, or a JSON object with "text" and "text_b", the probability that the
  second follows, by the NSP head. docs/guides/use/score.md has examples.
  """

  ONE_OF = ("input", "minimal_pairs", "text")

  encoder: groups.Encoder
  texts: groups.Texts
  pll: str = flag(
    "original",
    "What is masked to predict a token: original, that token, or l2r, also the "
    "rest of its word.",
    choices=("original", "l2r"),
  )
  causal: bool = flag(
    False,
    "Score each token by those before it, with a model of the objective "
    "gptbert, which is masked and causal; default: with masks.",
  )
  minimal_pairs: tuple[str, ...] = flag(
    (),
    "Instead of texts: BLiMP's files (sentence_good, sentence_bad, UID, "
    "linguistics_term, field); prints how often the good one scores higher; a "
    "tie is wrong.",
    metavar="FILE",
    reads=True,
  )
  json: bool = shared.json(
    "Print a JSON line for each text; of minimal pairs, one."
  )
  out: str | None = shared.out(
    "Write a JSON line for each text or minimal pair here."
  )
  length: int | None = shared.length()
  text: tuple[str, ...] = shared.text("Texts, instead of --input.")

  def run(self) -> None:
    from maskedlm.inference import token_model
    from maskedlm.inference.score import minimal_pairs, next_sentence, texts
    from maskedlm.runtime import startup
    from maskedlm.training.checkpoints import load

    pairs = None
    if self.minimal_pairs:
      pairs = minimal_pairs.read_pairs(self.minimal_pairs)
    startup.enable_compile_cache()
    path = self.encoder.checkpoint
    checkpoint = load.open_best(path)
    shape = {
      "length": self.length or 0,
      "batch_tokens": self.encoder.batch_tokens or BATCH_TOKENS,
    }
    scorer = functools.cache(
      lambda: token_model.make_token_model(
        checkpoint, path, **shape, causal=self.causal
      )
    )
    pair_scorer = functools.cache(
      lambda: next_sentence.make_pair_scorer(checkpoint, path, **shape)
    )
    seen: Counter = Counter()
    with self._writer() as write:
      if pairs is not None:
        self._judge(pairs, scorer(), seen, write)
      else:
        self._score_lines(scorer, pair_scorer, seen, write)
    console.clear_progress()
    if seen["scored"]:
      texts.log_summary(scorer(), seen, option="--length={}")

  @contextlib.contextmanager
  def _writer(self) -> Iterator[Callable[[Any], None] | None]:
    """Yields a function that writes an object to --out, or None."""
    if not self.out:
      yield None
      return
    with (
      output_options.named_errors(self.out, option="--out"),
      output_files.whole_file(self.out) as file,
    ):

      def write(value) -> None:
        file.write(to_json(value).encode() + b"\n")

      yield write

  def _judge(self, pairs, model, seen: Counter, write) -> None:
    """Prints how often the good text of a pair scores higher."""
    from maskedlm.inference.score import minimal_pairs

    show = _make_progress(seen)

    def judged() -> Iterator[minimal_pairs.Judged]:
      for judgement in minimal_pairs.judge(
        model, pairs, pll=self.pll, seen=seen
      ):
        show()
        if write:
          write(_pair_record(judgement))
        yield judgement

    counts = minimal_pairs.count(judged())
    console.clear_progress()
    values = {"causal": model.cfg.causal, **counts}
    if self.json:
      console.print_json(values)
    else:
      print("\n".join(_accuracy_table(values)))
      print(f"by {_pseudo(model)}log-likelihood; a tie is wrong")

  def _score_lines(self, scorer, pair_scorer, seen: Counter, write) -> None:
    """Answers the lines of the input, some at a time."""
    from maskedlm.data.labelled import text_lines
    from maskedlm.inference.score import next_sentence, texts

    paths = self.texts.input
    cut: list[int] = []
    show = _make_progress(seen) if write else lambda: None
    count = 0
    for group in text_lines.request_groups(
      self._requests(), CHUNK, self.text, paths
    ):
      count += len(group)
      single = [example.text for _, example in group if example.text_b is None]
      of_pairs = [x for x in group if x[1].text_b is not None]
      pairs = [example[:2] for _, example in of_pairs]
      if pairs and (self.causal or self.pll != "original"):
        option = "--causal" if self.causal else f"--pll={self.pll}"
        line = " ".join(f"{n} {x}" for n, x in of_pairs[0][0].items())
        raise ConfigError(
          f"{line or repr(pairs[0][0][:40])}: {option} has no effect on two "
          "texts: leave it out, or score such lines apart."
        )
      scores: Iterator[texts.TextScore] = iter(())
      shares: Iterator[float] = iter(())
      if single:
        scores = texts.score(scorer(), single, pll=self.pll, seen=seen)
      if pairs:
        shares = iter(
          next_sentence.next_sentence(pair_scorer(), pairs, cut=cut)
        )
      for place, example in group:
        if example.text_b is None:
          score, pseudo = next(scores), _pseudo(scorer())
          record = _text_record(score, pseudo=pseudo)
          lines = _format_score(score, pseudo=pseudo)
        else:
          p = float(next(shares))
          record = {
            "text": example.text,
            "text_b": example.text_b,
            "probability": p,
          }
          lines = [f"{example.text}\t{example.text_b}", f"  follows: {p:.1%}"]
        if write:
          write({**place, **record})
          show()
        elif self.json:
          console.print_json({**place, **record})
        else:
          print("\n".join(lines), flush=True)
    if cut:
      next_sentence.log_cut(pair_scorer(), cut, option="--length={}")
    if not count:
      names = ", ".join("stdin" if p == STDIN else p for p in paths)
      raise DataError(f"{names}: no line with text; expected at least one.")
    if seen["scored"] > 1:
      total, n = seen["log_likelihood"], seen["tokens"]
      console.log(
        f"{counted(seen['scored'], 'text')}, {counted(n, 'token')}: "
        f"{_pseudo(scorer())}perplexity {texts.perplexity(total, n):,.2f}"
      )

  def _requests(self) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yields (place, texts.Example) of the input; see given_texts."""
    from maskedlm.data.labelled import text_lines
    from maskedlm.data.labelled.formats import texts

    form = self.texts.format
    layout = texts.FileLayout(
      (self.texts.field,), texts.SECOND_TEXTS, alone=True
    )
    split = texts.split_line if form == "text" else texts.parse_line
    parse = functools.partial(split, layout=layout)
    for path in self.texts.input:
      yield from text_lines.given_texts(self.text, path, parse, form=form)


def _pair_record(judgement) -> dict[str, Any]:
  return {
    **judgement.pair.groups,
    "sentence_good": judgement.pair.good,
    "sentence_bad": judgement.pair.bad,
    "score_good": judgement.good.log_likelihood,
    "score_bad": judgement.bad.log_likelihood,
    "correct": judgement.is_correct,
    "tie": judgement.is_tie,
  }


def _accuracy_table(values: dict[str, Any]) -> list[str]:
  by_group = [
    (name, group, scores)
    for name, of_name in values.items()
    if isinstance(of_name, dict)
    for group, scores in of_name.items()
  ]
  rows = [
    (name, group, scores["pairs"], scores["ties"], f"{scores['accuracy']:.1%}")
    for name, group, scores in [*by_group, ("all", "", values)]
  ]
  columns = ("by", "phenomenon", "pairs", "ties", "accuracy")
  return console.table(columns, rows, align="<<")


def _pseudo(model) -> str:
  """Returns "pseudo-" or "", which the names of a model's scores begin with."""
  return "pseudo-" if model.cfg.reads == "both" else ""


def _text_record(score, *, pseudo: str) -> dict[str, Any]:
  """Returns the JSON object of a text's score."""
  pseudo = pseudo.replace("-", "_")
  return {
    "text": score.text,
    f"{pseudo}log_likelihood": score.log_likelihood,
    f"{pseudo}perplexity": score.perplexity,
    "tokens": [
      {"token": token, "log_probability": p, "begin": begin, "end": end}
      for token, p, (begin, end) in zip(
        score.tokens,
        score.log_probabilities.tolist(),
        score.offsets.tolist(),
        strict=True,
      )
    ],
  }


def _format_score(score, *, pseudo: str) -> list[str]:
  """Returns lines for the terminal: the text, its score, its tokens'."""
  lines = [
    score.text,
    f"  {pseudo}log-likelihood {score.log_likelihood:.3f}, {pseudo}perplexity "
    f"{score.perplexity:,.2f}, {counted(len(score.tokens), 'token')}",
  ]
  lines += [
    f"  {p:9.3f}  {console.isolate(token)}"
    for token, p in zip(score.tokens, score.log_probabilities, strict=True)
  ]
  return lines


def _make_progress(seen: Counter) -> Callable[[], None]:
  read: Counter = Counter()
  show = groups.make_progress(0, read, what="token")

  def update() -> None:
    read["texts"] = seen["scored"]
    show(seen["tokens"])

  return update
