"""`maskedlm vectors search|similarity|isotropy`: what vectors tell."""

import dataclasses
from collections import Counter

from maskedlm.cli import groups, shared
from maskedlm.cli.flags import REQUIRED, STDIN, flag
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_options

QUERIES = 64  # Of a file, that are answered at a time.


@dataclasses.dataclass(frozen=True)
class Search:
  """Prints the sentences whose vectors are nearest to a query's, by their
  cosine. `maskedlm embed --unit=sentence --out=FILE.npz` makes the vectors;
  every one is compared, or its code if the file has codes.
  """

  checkpoint: str = shared.checkpoint()
  vectors: str = flag(
    REQUIRED,
    "Vectors of sentences that the checkpoint made.",
    metavar="FILE.npz",
  )
  top_k: int = shared.top_k(5, "Sentences for each query")
  candidates: int | None = flag(
    None,
    "Of vectors with codes (`embed --codes`): compare the whole vectors of so "
    "many that are nearest by their codes; 0 = of all; default: 10 for each of "
    "--top_k.",
    low=0,
    not_beside=("bm25",),
  )
  bm25: bool = flag(
    False, "Join the cosines with BM25's scores: what both find is first."
  )
  reranker: str | None = flag(
    None,
    "A workdir of `finetune reranking`, which reads the first 100 sentences "
    "with the query: its scores decide, joined with those of --bm25.",
    metavar="CHECKPOINT",
  )
  json: bool = shared.json("Print a JSON line for each query.")
  text: tuple[str, ...] = shared.text("Queries; none = lines of stdin.")

  def run(self) -> None:
    from maskedlm.data.labelled import text_lines
    from maskedlm.inference import bm25, reranking
    from maskedlm.inference.vectors import search

    model, top = groups.open_encoder(self.checkpoint), self.top_k
    if self.reranker:
      reranker = reranking.open_reranker(self.reranker)
      top = max(top, reranking.DEPTH)
      if self.candidates and self.candidates < top:
        raise ConfigError(
          f"--candidates={self.candidates} beside --reranker, which reads "
          f"{top}: expected at least as many, or 0 for all."
        )
    index = search.open_index(self.vectors, model)
    words = bm25.index(search.all_texts(index)) if self.bm25 else None
    queries = text_lines.given_texts(self.text, STDIN)
    for group in text_lines.request_groups(
      queries, QUERIES, self.text, [STDIN]
    ):
      places, texts = zip(*group, strict=True)
      results = search.search(
        model, index, texts, top=top, candidates=self.candidates, words=words
      )
      if self.reranker:
        results = reranking.rerank_hits(
          reranker, texts, results, top=self.top_k
        )
      for place, query, hits in zip(places, texts, results, strict=True):
        if self.json:
          nearest = [hit._asdict() for hit in hits]
          console.print_json({**place, "query": query, "nearest": nearest})
          continue
        print(query)
        for hit in hits:
          # The first is the cosine, or the score that decides.
          print(f"  {hit[0]:.3f}  {hit.text}  ({hit.file}:{hit.line})")


CHUNK = 1024  # Pairs to read at a time.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Similarity:
  """Prints the cosine of two words in context, each between asterisks: 'On the
  *bank* of the river.' 'The *bank* lent him money.'
  docs/guides/use/embeddings.md explains it.
  """

  ONE_OF = ("wic", "input", "text")

  encoder: groups.Encoder
  input: tuple[str, ...] = shared.input_(
    "Files with two texts on a line, a tab between them, or objects (JSON, or "
    "rows of a .csv or .tsv with a header) with text and text_b"
  )
  format: str = shared.text_format("text", "wic")
  layers: groups.Layers
  standardise: str | None = shared.standardise(
    "Also compare standardised vectors, by the mean and deviation that "
    "`embed --unit=word --fit` stored."
  )
  wic: str | None = flag(
    None,
    "Score WiC's pairs: NAME.data.txt with NAME.gold.txt beside it, or "
    "SuperGLUE's .jsonl.",
    metavar="FILE",
    reads=True,
  )
  dev: str | None = flag(
    None,
    "Pairs in the same format, on which the threshold for --wic is chosen.",
    metavar="FILE",
    reads=True,
    needs="wic",
  )
  json: bool = shared.json("Print JSON: a line for each pair, or WiC's scores.")
  out: str | None = shared.out(
    "Write the scores of --wic here, as JSON.", (".json",), needs="wic"
  )
  keys: str | None = shared.keys("--wic, T or F a line", needs="wic")
  text: tuple[str, ...] = shared.text("Two marked texts.")

  def check(self) -> None:
    if self.text and len(self.text) != 2:
      raise ConfigError(
        f"{counted(len(self.text), 'text')}; expected two, each with a word "
        "between asterisks; for many pairs give --input."
      )
    if self.wic and not self.dev:
      raise ConfigError(
        "--wic needs --dev=FILE, the pairs on which the threshold is chosen."
      )

  def run(self) -> None:
    from maskedlm.inference.vectors import standardise, unknown_words, vectors
    from maskedlm.inference.words_in_context import compare

    model = self.encoder.open()
    options = self.layers.options(model)
    vectors.resolve_layers(options, model.cfg)
    fitted = standardise.open_word_standardiser(
      self.standardise, model, options
    )
    words: Counter = Counter()

    def compared(pairs):
      words.update(x.word for pair in pairs for x in (pair.a, pair.b))
      return compare.compare(model, pairs, options, standardiser=fitted)

    if self.wic and self.dev:
      self._score_wic(compared, self.wic, self.dev)
    else:
      self._print_pairs(compared)
    unknown_words.log_unknown(model.tokenizer, words)

  def _print_pairs(self, compared) -> None:
    """Prints the similarity of each pair."""
    from maskedlm.data.labelled import text_lines
    from maskedlm.inference.words_in_context import pairs

    if self.text:
      requests = iter([pairs.make_pair(*self.text)])
    else:
      requests = pairs.read_pairs(self.input, form=self.format)
    for group in text_lines.request_groups(
      requests, CHUNK, self.text, self.input
    ):
      for pair, similarity in compared(group):
        if self.json:
          console.print_json(_fields(pair, similarity))
          continue
        lines = [_marked(pair.a), _marked(pair.b)]
        lines += [f"  cosine        {similarity.cosine:z.3f}"]
        if similarity.standardised is not None:
          lines += [f"  standardised  {similarity.standardised:z.3f}"]
        print("\n".join(lines), flush=True)

  def _score_wic(self, compared, test_path: str, dev_path: str) -> None:
    """Prints how well a threshold answers WiC's question."""
    from maskedlm.inference.words_in_context import compare, pairs

    dev, test = pairs.read_wic(dev_path), pairs.read_wic(test_path)
    compare.require_answers(dev, dev_path)
    of_dev, of_test = list(compared(dev)), list(compared(test))
    scores = compare.score_wic(of_dev, of_test)
    *_, last = scores.values()
    report = {
      "pairs": len(test),
      "dev_pairs": len(dev),
      "accuracy": last.accuracy,
      **{name: score._asdict() for name, score in scores.items()},
    }
    if self.keys:
      answers = compare.answers(of_test, scores)
      keys = "".join("T\n" if same else "F\n" for same in answers)
      output_options.write_text(self.keys, keys, option="--keys")
    head = (
      f"{counted(len(test), 'pair')} of {self.wic}; thresholds of "
      f"{counted(len(dev), 'pair')} of {self.dev}"
    )
    groups.print_report(self, report, [head, *_wic_table(scores)])


def _wic_table(scores) -> list[str]:
  rows = [
    (
      name,
      f"{score.threshold:z.3f}",
      f"{score.dev_accuracy:.1%}",
      "unknown" if score.accuracy is None else f"{score.accuracy:.1%}",
    )
    for name, score in scores.items()
  ]
  return console.table(("", "threshold", "dev accuracy", "accuracy"), rows)


def _fields(pair, similarity) -> dict:
  file, line = pair.a.text.file, pair.a.text.line
  fields = {"file": file, "line": line} if file else {}
  fields["words"] = [pair.a.word, pair.b.word]
  fields["texts"] = [pair.a.text.text, pair.b.text.text]
  fields["cosine"] = similarity.cosine
  if similarity.standardised is not None:
    fields["standardised"] = similarity.standardised
  return fields


def _marked(instance) -> str:
  text, begin, end = instance.text.text, instance.begin, instance.end
  return f"{text[:begin]}*{text[begin:end]}*{text[end:]}"


@dataclasses.dataclass(frozen=True)
class Isotropy:
  """Prints for each layer the expected cosine of two vectors, the dimensions
  that cause it, and its value without those or after standardising;
  docs/guides/use/embeddings.md explains the table.
  """

  encoder: groups.Encoder
  texts: groups.Texts
  unit: str = shared.unit("word", "token")
  sample: int = flag(10_000, "Vectors to compare.", low=2)
  seed: int = shared.seed(0, "The sample's seed.")
  sts: str | None = flag(
    None, "Pairs with scores, as in STS-B's dev.tsv.", metavar="FILE"
  )
  json: bool = shared.json("Print the table as JSON.")
  out: str | None = shared.out("Write the table here, as JSON.")

  def run(self) -> None:
    from maskedlm.inference.vectors import (
      isotropy,
      unknown_words,
      word_frequencies,
    )

    pairs = isotropy.read_pairs(self.sts) if self.sts else []
    model = self.encoder.open()
    seen: Counter = Counter()
    counts: Counter = Counter()
    words: Counter = Counter()
    texts = unknown_words.count_words(self.texts.read(seen), words)
    if pairs:
      texts = word_frequencies.count_words(texts, counts)
    drawn = isotropy.sample_vectors(
      model,
      texts,
      unit=self.unit,
      count=self.sample,
      seed=self.seed,
      progress=self.texts.progress(seen),
    )
    layers = isotropy.measure_layers(drawn)
    if pairs:
      layers = isotropy.correlate_with_scores(
        model, pairs, drawn, layers, counts=counts
      )
    console.clear_progress()
    unknown_words.log_unknown(model.tokenizer, words)
    head = (
      f"{len(drawn.x):,} of {drawn.moments.count:,} {self.unit}s of "
      f"{counted(seen['texts'], 'text')}"
    )
    lines = _table(layers)
    if pairs:
      head += f"; Spearman of {counted(len(pairs), 'pair')} of {self.sts}"
      lines += ["", *_frequency_table(layers)]
    table = [layer._asdict() for layer in layers]
    groups.print_report(self, table, [head, *lines])


def _frequency_table(layers) -> list[str]:
  """Returns a table of the frequency effect, a row for each layer."""
  rows = [
    (layer.layer, *(f"{x:z.3f}" for x in layer.frequency.values()))
    for layer in layers
  ]
  return [
    "frequency effect: rank correlation of cosine and log frequency at equal "
    "human scores; below 0, frequent words are underestimated",
    *console.table(["layer", *layers[0].frequency], rows),
  ]


def _table(layers) -> list[str]:
  """Returns a table of inference.vectors.isotropy's rows; 0 = embeddings."""
  names = list(layers[0].anisotropy)[1:]  # The first: vectors as they are.
  columns = ["layer", "anisotropy", *names]
  if layers[0].spearman:
    columns += ["Spearman", *names]
  rows = []
  for layer in layers:
    values = (*layer.anisotropy.values(), *(layer.spearman or {}).values())
    rogue = ", ".join(f"{d} ({share:.1%})" for d, share in layer.rogue)
    rows.append((layer.layer, *(f"{value:z.3f}" for value in values), rogue))
  columns.append("rogue dimensions and their shares")
  align = ">" * (len(columns) - 1) + "<"
  return console.table(columns, rows, align=align)
