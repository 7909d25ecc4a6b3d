"""`maskedlm evaluate`: measures a model on text, or on labelled data."""

import dataclasses
import importlib.util
import pathlib
from collections import Counter
from collections.abc import Sequence

from maskedlm.cli import by_language, groups, shared
from maskedlm.cli.flags import REQUIRED, flag
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, check_name
from maskedlm.runtime import console, output_options

# Counts of a report that are no irregularity.
_USUAL = ("documents", "characters", "bytes read", "files read", "lines")


@dataclasses.dataclass(frozen=True)
class Evaluate:
  """Measures a pretrained or imported model on text: loss and accuracy of
  masked tokens, bits per character, next-sentence prediction. Scores a
  fine-tuned model (its best checkpoint) on a labelled file in the format of its
  training data, or on one of each of several languages. Ranks the passages of a
  collection for its queries: by the vectors of any model, by BM25, by both.
  """

  tuned: groups.FineTuned
  data: tuple[str, ...] = shared.data(
    REQUIRED,
    "Of a fine-tuned model: labelled files; or en=FILE,vi=FILE, which shows "
    "the difference from the language that it was trained on, and en,vi=FILE "
    "for one with several, in its column `language` (XNLI). Of others: "
    "text files, whose documents are separated by blank lines; - for stdin; or "
    "a source as in corpus.source: lines:GLOB, jsonl:GLOB, ... Of any: "
    "beir:FOLDER, a collection with queries, in BEIR's files.",
  )
  source: str | None = flag(
    None,
    "Of several languages, that of the training data; default: the first.",
    metavar="LANGUAGE",
  )
  out: str | None = shared.out(
    "Of a fine-tuned model: write the predictions here, as JSONL. Of beir: "
    "write the ranking by the vectors or the reranker, as lines of trec_eval."
  )
  reranker: str | None = flag(
    None,
    "Of beir: a workdir of `finetune reranking`, which ranks the 100 nearest "
    "passages anew; `joined` is with what they had before. As --checkpoint, it "
    "ranks the first 100 of BM25.",
    metavar="CHECKPOINT",
  )
  json: bool = shared.json()
  mask_rate: float | None = flag(
    None, "Share of the tokens that is masked; default: 0.15.", above=0, high=1
  )
  seed: int | None = shared.seed(
    None, "Decides which tokens are masked; default: 0."
  )
  field: str | None = flag(
    None, "The field of jsonl: and parquet: that holds the text; default: text."
  )

  def run(self) -> None:
    from maskedlm.data.labelled.formats import beir
    from maskedlm.runtime import startup
    from maskedlm.training.checkpoints import load

    paths, data = self.tuned.paths, ",".join(self.data)
    if data.startswith(beir.PREFIX):
      self._rank(data)
      return
    described = load.describe_checkpoint(paths[0])
    is_fine_tuned = "kind" in described.meta["task"]
    languages = by_language.parse_files(data) if is_fine_tuned else {}
    self._check_flags(paths, is_fine_tuned, languages)
    if not is_fine_tuned:
      startup.enable_compile_cache()
      self._evaluate_text(data)
    elif languages:
      self._compare(languages)
    else:
      self._evaluate_labelled(paths, data)

  def _check_flags(self, paths, is_fine_tuned: bool, languages) -> None:
    """Refuses flags that the kind of model, or of data, does not use."""
    names = ("mask_rate", "seed", "field") if is_fine_tuned else ("out",)
    tokens = () if is_fine_tuned else self.tuned.config
    kind = "fine-tuned" if is_fine_tuned else "pretrained"
    model = f"{self.tuned.checkpoint}, a {kind} model"
    self._refuse((*names, "reranker"), tokens, model)
    if len(paths) > 1 and not is_fine_tuned:
      raise ConfigError(
        f"--checkpoint={self.tuned.checkpoint}: several checkpoints are an "
        f"ensemble of fine-tuned models, but {paths[0]} is not fine-tuned; "
        "give one."
      )
    if self.source and not languages:
      raise ConfigError(
        f"--source={self.source} has no effect without --data=en=FILE,...: "
        "leave it out, or name the language of each file."
      )
    if not languages:
      return
    if self.out:
      raise ConfigError(
        f"--out={self.out} is for one file: leave it out, or give --data=FILE."
      )
    if self.source:
      check_name("--source", self.source, languages)
    for token in self.tuned.config:
      if token.startswith("--config.task.language="):
        raise ConfigError(
          f"{token} has no effect: --data names the language of each file."
        )

  def _refuse(self, names, tokens: Sequence[str], target: str) -> None:
    """Refuses flags, by their names, and other tokens that `target` ignores."""
    values = {name: getattr(self, name) for name in names}
    unused = [f"--{n}={x}" for n, x in values.items() if x is not None]
    if unused := [*unused, *tokens]:
      raise ConfigError(f"{unused[0]} has no effect on {target}: leave it out.")

  def _rank(self, data: str) -> None:
    from maskedlm.data.labelled.formats import beir
    from maskedlm.inference import reranking
    from maskedlm.inference.vectors import ranking, vectors
    from maskedlm.runtime import startup

    tokens = [*self.tuned.config]
    if self.tuned.batch_size != groups.FineTuned.batch_size:
      tokens.append(f"--batch_size={self.tuned.batch_size}")
    self._refuse(("source", "mask_rate", "seed", "field"), tokens, data)
    collection = beir.read_collection(data)
    startup.enable_compile_cache()
    path, length = self.tuned.checkpoint, self.tuned.length or 0
    first = reranker = reranking.open_if_reranker(path, length=length)
    if self.reranker and first:
      raise ConfigError(f"--reranker={self.reranker}: {path} is one; give one.")
    if self.reranker:
      reranker = reranking.open_reranker(self.reranker)
    show = groups.show_progress
    by_words = bool(first or importlib.util.find_spec("bm25s"))
    if not by_words:
      console.log("no column BM25: pip install 'maskedlm[bm25]'")
    model = None if first else vectors.open_text_encoder(path, length=length)
    depth = reranking.DEPTH if reranker else ranking.DEPTH
    runs = ranking.rank(
      model, collection, by_words=by_words, depth=depth, progress=show
    )
    last = "BM25" if first else "vectors"
    if reranker:
      run = reranking.rerank(reranker, runs[last], collection, show)
      joined = reranking.joined(runs[last], run)
      runs, last = runs | {"reranked": run, "joined": joined}, "reranked"
    console.clear_progress()
    scores = {n: ranking.measure(x, collection) for n, x in runs.items()}
    n, m = len(collection.queries), len(collection.passages)
    if self.json:
      result = {"queries": n, "passages": m, **scores[last]}
      console.print_json({**result, "rankings": scores})
    else:
      print(f"{data}: {counted(n, 'query')}, {counted(m, 'passage')}")
      print(" " * 12 + "".join(f"{name:>10}" for name in runs))
      for name in scores[last]:
        columns = (f"{x[name]:>10.4f}" for x in scores.values())
        print(f"  {name:<10}" + "".join(columns))
    if self.out:
      lines = ranking.format_run(runs[last])
      output_options.write_text(self.out, lines, option="--out")

  def _evaluate_labelled(self, paths: Sequence[str], data: str) -> None:
    from maskedlm.finetune import predict, results

    model = self.tuned.open()
    examples = predict.read_labelled(model.task, model.app, data)
    values, predictions = self._score(model, examples)
    several = {"checkpoints": paths} if len(paths) > 1 else {}
    if self.json:
      console.print_json({**several, "examples": len(examples), **values})
    else:
      if several:
        print(f"mean of {len(paths)} checkpoints: {', '.join(paths)}")
      print(f"{data}: {counted(len(examples), 'example')}")
      results.log_result(values, print)
    if self.out:
      with output_options.named_errors(self.out, option="--out"):
        results.write_predictions(examples, predictions, pathlib.Path(self.out))

  def _compare(self, files: dict[str, str]) -> None:
    """Prints the scores of each language beside those of the first."""
    model = self.tuned.open()
    examples = {
      name: by_language.read_examples(model, name, file)
      for name, file in files.items()
    }
    scores = {}
    for name, labelled in examples.items():
      console.log(f"{name}: {files[name]}, {counted(len(labelled), 'example')}")
      values, _ = self._score(model, labelled)
      scores[name] = {"file": files[name], "examples": len(labelled), **values}
    source = self.source or next(iter(files))
    result = by_language.compare_scores(scores, source, model.app.best)
    if self.json:
      console.print_json(result)
    else:
      print("\n".join(by_language.format_scores(result)))

  def _score(self, model, examples) -> tuple:
    """Returns (metrics, predictions)."""
    from maskedlm.finetune import predict

    cut: list[int] = []
    predictions = predict.predict(
      model,
      examples,
      batch_size=self.tuned.batch_size,
      progress=predict.show_progress,
      cut=cut,
    )
    predict.log_cut(model, cut, option="--length={}")
    return model.app.score(examples, predictions), predictions

  def _evaluate_text(self, data: str) -> None:
    from maskedlm.inference.pretrained import evaluate
    from maskedlm.training.checkpoints import load

    path = self.tuned.checkpoint
    model = evaluate.make_model(
      load.open_checkpoint(path), path, length=self.tuned.length or 0
    )
    report: Counter = Counter()
    values = evaluate.evaluate(
      model,
      groups.read_documents(data, self.field, report),
      mask_rate=self.mask_rate or evaluate.MASK_RATE,
      seed=self.seed or 0,
      batch_size=self.tuned.batch_size,
    )
    for name, count in sorted(report.items()):
      if name not in _USUAL:
        console.log(f"  {name}: {count:,}")
    if self.json:
      console.print_json(values)
    else:
      print("\n".join(_text_lines(values)))


def _text_lines(values) -> list[str]:
  from maskedlm.data.tokenizers import lost_text

  lines = [
    f"{counted(values['documents'], 'document')}, "
    f"{counted(values['tokens'], 'token')}, "
    f"{counted(values['characters'], 'character')}; "
    f"{counted(values['masked_tokens'], 'token')} masked: "
    f"{values['mask_rate']:.0%} of each row of up to "
    f"{values['length']}, seed {values['seed']}",
    f"  MLM loss            {values['mlm_loss']:.4f} nats (perplexity "
    f"{values['perplexity']:,.1f})",
    f"  bits per character  {values['bits_per_character']:.4f}",
    f"  MLM accuracy        {values['mlm_accuracy']:.1%}",
  ]
  if values["lost_share"] > lost_text.MIN_SHARE:
    lines.append(
      f"  lost                {values['lost_share']:.1%} of the characters "
      "(unknown, dropped, or without accents): bits per character can't be "
      "compared with those of other tokenizers"
    )
  if "nsp_pairs" in values:
    lines.append(
      f"  NSP accuracy        {values['nsp_accuracy']:.1%} of "
      f"{counted(values['nsp_pairs'], 'pair')}"
    )
  return lines
