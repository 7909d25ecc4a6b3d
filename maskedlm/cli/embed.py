"""`maskedlm embed`: writes vectors of tokens, words or sentences to a file."""

import contextlib
import dataclasses
from collections import Counter

from maskedlm.cli import groups, shared
from maskedlm.cli.flags import flag
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console


@dataclasses.dataclass(frozen=True, kw_only=True)
class Embed:
  """Writes contextual vectors of texts to a file; formats and examples are in
  docs/guides/use/embeddings.md.
  """

  encoder: groups.Encoder
  texts: groups.Texts
  length: int | None = shared.length()
  unit: str = shared.unit("token", "word", "sentence")
  pool: str = flag(
    "",
    "How a unit's tokens are pooled, cls only of sentences; default: for "
    "sentences as the model was imported or trained, otherwise mean.",
    choices=("mean", "max", "cls"),
    needs={"unit": ("word", "sentence")},
  )
  layers: groups.Layers
  normalize: bool = flag(False, "Scale each vector to length 1.")
  truncate_dim: int = flag(
    0,
    "Keep the first N numbers of each vector; 0 = as the model was imported, "
    "or all.",
    metavar="N",
    low=0,
  )
  out: str | None = shared.out("The vectors.", (".npz", ".jsonl"))
  fit: str | None = shared.out(
    "Stores the mean and standard deviation of the vectors, for --standardise.",
    (".npz",),
  )
  codes: str = flag(
    "",
    "Also store a code of each vector, 8 bits or 1 bit a number, with which "
    "`vectors search` needs a quarter or 1/32 of the memory.",
    choices=("int8", "binary"),
    needs={"unit": ("sentence",)},
  )
  standardise: str | None = shared.standardise(
    "Subtracts the mean that --fit stored, divides by its standard deviation."
  )

  def check(self) -> None:
    if not self.out and not self.fit:
      raise ConfigError("give --out=FILE for the vectors, or --fit=FILE.")
    if self.codes and not (self.out or "").lower().endswith(".npz"):
      raise ConfigError(
        f"--codes={self.codes} has no effect without --out=FILE.npz."
      )
    if self.fit and self.standardise:
      raise ConfigError(
        "--fit measures vectors as they are: leave out --standardise."
      )

  def run(self) -> None:
    from maskedlm.inference.vectors import splade, standardise, vectors, writers

    fitted = None
    if self.standardise:
      fitted = standardise.load_standardiser(self.standardise)
    model = self.encoder.open(length=self.length)
    options = self.layers.options(
      model,
      unit=self.unit,
      pool=self.pool,
      normalize=self.normalize,
      truncate_dim=self.truncate_dim,
    )
    options = vectors.resolve_options(options, model)
    is_dense = self.fit or self.standardise or self.codes
    is_npz = (self.out or "").lower().endswith(".npz")
    if options.pool == splade.POOL and (is_dense or not is_npz):
      raise ConfigError(
        f"{self.encoder.checkpoint} makes sparse vectors (splade): expected "
        "--out=FILE.npz, without --fit, --standardise and --codes."
      )
    metadata = standardise.describe(
      model, options, checkpoint=self.encoder.checkpoint
    )
    metadata["length"] = model.sentences.length
    metadata |= {"standardised": self.standardise or "", "codes": self.codes}
    if fitted:
      standardise.check_standardiser(fitted, metadata, width=model.cfg.width)
    seen: Counter = Counter()
    show = self.texts.progress(seen)
    moments, count = None, 0
    long: list[int] = []
    with contextlib.ExitStack() as stack:
      write = None
      if self.out:
        write = stack.enter_context(writers.open_writer(self.out, metadata))
      texts = self.texts.read(seen)
      for batch in vectors.embed(model, texts, options, long=long):
        if self.fit:
          moments = standardise.update_moments(moments, batch.values)
        if fitted:
          values = standardise.apply_standardiser(fitted, batch.values)
          batch = batch._replace(values=values)
        if write:
          write(batch)
        count += len(batch.texts)
        show(count)
      if not count:
        raise ConfigError(f"the input has no {self.unit}: no vector to write.")
    if self.fit and moments:
      fitted = standardise.make_standardiser(moments, metadata)
      standardise.save_standardiser(self.fit, fitted)
    vectors.log_windows(model, options, long, option="--length={}")
    console.log(
      f"{counted(count, 'vector')} of {counted(seen['texts'], 'text')}"
    )
