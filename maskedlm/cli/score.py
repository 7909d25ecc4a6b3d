"""`maskedlm score`: how probable texts are, and whether one follows another."""

import argparse
import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from maskedlm.cli import options
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.core.measured import to_json
from maskedlm.runtime import console, output_files, output_options

CHUNK = 256  # Lines that are answered together.


class Request(NamedTuple):
  """A line of input: a text, or a pair of texts."""

  line: int  # From 1; 0 = from the command line.
  text: str
  text_b: str | None


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  args = _parser().parse_args(argv)
  _check(args)

  from maskedlm.inference import token_model
  from maskedlm.inference.score import texts
  from maskedlm.runtime import startup
  from maskedlm.training.checkpoints import load

  judge_pairs = _minimal_pairs(args) if args.minimal_pairs else None
  startup.enable_compile_cache()
  opened = load.open_best(args.checkpoint)
  shape = {"length": args.length or 0, "batch_tokens": args.batch_tokens}
  scorer = functools.cache(
    lambda: token_model.make_token_model(opened, args.checkpoint, **shape)
  )
  seen: Counter = Counter()
  with _writer(args) as write:
    if judge_pairs:
      judge_pairs(scorer(), seen, write)
    else:
      _score_lines(args, opened, scorer, seen, write)
  console.clear_progress()
  if seen["scored"]:
    texts.log_summary(scorer(), seen, option="--length={}")
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="maskedlm score",
    description="Prints how probable a pretrained model finds texts: the "
    "pseudo-log-likelihood of a masked model, the log-likelihood of a causal "
    "one, in nats, with each token's. Of two texts with a tab between them, or "
    'a JSON object with "text" and "text_b", the probability that the second '
    "follows, by the NSP head. docs/guides/use/score.md has examples.",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  options.add_input(parser)
  parser.add_argument(
    "--pll",
    help="what is masked to predict a token: original (default), that token | "
    "l2r, also the rest of its word",
  )
  parser.add_argument(
    "--minimal-pairs",
    nargs="+",
    action="extend",
    default=[],
    metavar="FILE",
    help="instead of texts: BLiMP's files (sentence_good, sentence_bad, UID, "
    "linguistics_term, field); prints how often the good one scores higher",
  )
  options.add_json(
    parser, "print a JSON line for each text; of minimal pairs, one"
  )
  options.add_out(
    parser, "write a JSON line for each text or minimal pair here"
  )
  options.add_batch_tokens(parser)
  options.add_length(parser)
  parser.add_argument("text", nargs="*", help="texts, instead of --input")
  return parser


def _check(args: argparse.Namespace) -> None:
  """Checks what can be checked before anything slow begins."""
  from maskedlm.core.errors import check_name
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.score.rows import PLL

  if sum(map(bool, (args.input, args.minimal_pairs, args.text))) > 1:
    raise ConfigError("give one of --input, --minimal-pairs and texts.")
  if args.pll is not None:
    check_name("--pll", args.pll, PLL)
  if args.minimal_pairs or args.text:
    for name, default in (("format", ""), ("field", "text")):
      if (value := getattr(args, name)) != default:
        raise ConfigError(
          f"--{name}={value} has an effect on --input and stdin only: leave it "
          "out."
        )
  options.check_field(args, args.input or [text_lines.STDIN])
  options.check_at_least(args, batch_tokens=1, length=8)
  text_lines.check_files(args.minimal_pairs, form="", option="--minimal-pairs")
  text_lines.check_files(args.input, form=args.format)
  if args.out:
    output_options.check_file(args.out, option="--out")
    options.check_not_read("--out", args.out, args.input + args.minimal_pairs)


@contextlib.contextmanager
def _writer(args) -> Iterator[Callable[[Any], None] | None]:
  """Yields a function that writes an object to --out, or None."""
  if not args.out:
    yield None
    return
  with (
    output_options.named_errors(args.out, option="--out"),
    output_files.whole_file(args.out) as file,
  ):
    yield lambda value: file.write(to_json(value).encode() + b"\n")


def _minimal_pairs(args) -> Callable:
  """Reads the pairs; returns a function that judges them and prints."""
  from maskedlm.inference.score import minimal_pairs

  pairs = minimal_pairs.read_pairs(args.minimal_pairs)

  def judged(model, seen: Counter, write) -> Iterator[minimal_pairs.Judged]:
    show = _make_progress(seen)
    for one in minimal_pairs.judge(
      model, pairs, pll=args.pll or "original", seen=seen
    ):
      show()
      if write:
        write(_pair_record(one))
      yield one

  def run(model, seen: Counter, write) -> None:
    values = minimal_pairs.count(judged(model, seen, write))
    console.clear_progress()
    if args.json:
      console.print_json(values)
    else:
      print("\n".join(format_accuracy(values)))

  return run


def _pair_record(one) -> dict[str, Any]:
  return {
    **one.pair.groups,
    "sentence_good": one.pair.good,
    "sentence_bad": one.pair.bad,
    "score_good": one.good.log_likelihood,
    "score_bad": one.bad.log_likelihood,
    "correct": one.is_correct,
    "tie": one.is_tie,
  }


def format_accuracy(values: dict[str, Any]) -> list[str]:
  """Returns the lines of a table of minimal_pairs.count."""
  groups = [
    (name, group, found)
    for name, of_name in values.items()
    if isinstance(of_name, dict)
    for group, found in of_name.items()
  ]
  rows = [
    (name, group, found["pairs"], found["ties"], f"{found['accuracy']:.1%}")
    for name, group, found in [*groups, ("all", "", values)]
  ]
  columns = ("by", "phenomenon", "pairs", "ties", "accuracy")
  return console.table(columns, rows, align="<<")


def _score_lines(args, opened, scorer, seen: Counter, write) -> None:
  """Answers the lines of the input, some at a time."""
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.score import next_sentence, texts

  pair_scorer = functools.cache(
    lambda: next_sentence.make_pair_scorer(
      opened,
      args.checkpoint,
      length=args.length or 0,
      batch_tokens=args.batch_tokens,
    )
  )
  paths = args.input or [text_lines.STDIN]
  cut: list[int] = []
  show = _make_progress(seen) if write else lambda: None
  count = 0
  for some in text_lines.request_groups(
    _requests(args, paths), CHUNK, args.text, paths
  ):
    count += len(some)
    single = [one.text for one in some if one.text_b is None]
    pairs = [(one.text, one.text_b) for one in some if one.text_b is not None]
    scores = iter(
      texts.score(scorer(), single, pll=args.pll or "original", seen=seen)
      if single
      else ()
    )
    shares = iter(
      next_sentence.next_sentence(pair_scorer(), pairs, cut=cut)
      if pairs
      else ()
    )
    for one in some:
      where = {"line": one.line} if one.line else {}
      if one.text_b is None:
        made = next(scores)
        record = _text_record(made, causal=scorer().cfg.causal)
        lines = format_score(made, causal=scorer().cfg.causal)
      else:
        p = float(next(shares))
        record = {"text": one.text, "text_b": one.text_b, "probability": p}
        lines = [f"{one.text}\t{one.text_b}", f"  follows: {p:.1%}"]
      if write:
        write({**where, **record})
        show()
      elif args.json:
        console.print_json({**where, **record})
      else:
        print("\n".join(lines), flush=True)
  if cut:
    next_sentence.log_cut(pair_scorer(), cut, option="--length={}")
  if not count:
    names = ", ".join("stdin" if p == text_lines.STDIN else p for p in paths)
    raise DataError(f"{names}: no line with text; expected at least one.")
  if seen["scored"] > 1:
    total, n = seen["log_likelihood"], seen["tokens"]
    name = "perplexity" if scorer().cfg.causal else "pseudo-perplexity"
    console.log(
      f"{counted(seen['scored'], 'text')}, {counted(n, 'token')}: {name} "
      f"{texts.perplexity(total, n):,.2f}"
    )


def _requests(args, paths: Sequence[str]) -> Iterator[Request]:
  """Yields the lines of the input that are not blank.

  Raises:
    DataError: a line is not text, half of a pair is missing, or an object
      lacks a text.
  """
  from maskedlm.data.labelled import text_lines

  for path in paths:
    name = "stdin" if path == text_lines.STDIN else path
    for number, line in text_lines.given_texts(args.text, path):
      where = f"{name}:{number}" if number else f"input {line[:40]!r}"
      is_json = not args.text and text_lines.is_jsonl(path, args.format)
      yield _request(args, number, line, where, is_json)


def _request(args, number: int, line: str, where: str, is_json) -> Request:
  from maskedlm.data.labelled import objects, tables

  if is_json or (args.format != "text" and tables.is_object(line)):
    such_as = '{"text": "..."}, with "text_b" for a pair'
    fields = objects.parse_object(line, where, such_as=such_as)
    record = tables.Record(0, fields, where)
    text = tables.get_text(record, args.field)
    text_b = tables.get_text(record, "text_b") if "text_b" in fields else None
    return Request(number, text, text_b)
  text, *more = line.split("\t")
  if not more:
    return Request(number, line, None)
  if len(more) > 1 or not (text.strip() and more[0].strip()):
    raise DataError(
      f"{where}: {counted(len(more) + 1, 'text')} separated by tabs, or an "
      "empty one; expected a text, or two with a tab between them."
    )
  return Request(number, text, more[0])


def _text_record(made, *, causal: bool) -> dict[str, Any]:
  """Returns the JSON object of a text's score."""
  pseudo = "" if causal else "pseudo_"
  return {
    "text": made.text,
    f"{pseudo}log_likelihood": made.log_likelihood,
    f"{pseudo}perplexity": made.perplexity,
    "tokens": [
      {"token": token, "log_probability": p, "begin": begin, "end": end}
      for token, p, (begin, end) in zip(
        made.tokens,
        made.log_probabilities.tolist(),
        made.offsets.tolist(),
        strict=True,
      )
    ],
  }


def format_score(made, *, causal: bool) -> list[str]:
  """Returns lines for the terminal: the text, its score, its tokens'."""
  pseudo = "" if causal else "pseudo-"
  lines = [
    made.text,
    f"  {pseudo}log-likelihood {made.log_likelihood:.3f}, {pseudo}perplexity "
    f"{made.perplexity:,.2f}, {counted(len(made.tokens), 'token')}",
  ]
  lines += [
    f"  {p:9.3f}  {console.isolate(token)}"
    for token, p in zip(made.tokens, made.log_probabilities, strict=True)
  ]
  return lines


def _make_progress(seen: Counter) -> Callable[[], None]:
  read = Counter()
  show = options.make_progress(0, read, what="token")

  def update() -> None:
    read["texts"] = seen["scored"]
    show(seen["tokens"])

  return update
