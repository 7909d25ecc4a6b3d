"""`maskedlm import`: turns another library's model into a workdir."""

import dataclasses
import pathlib

from maskedlm.cli import shared
from maskedlm.cli.flags import REQUIRED, argument, flag
from maskedlm.runtime import console


@dataclasses.dataclass(frozen=True)
class Import:
  """Reads a model that transformers saved (BERT, RoBERTa, XLM-R, CamemBERT,
  DistilBERT, ELECTRA, DeBERTa-v3, ModernBERT, EuroBERT, Llama, ESM-2), or
  sentence-transformers, with its pooling, from a folder or from the Hugging
  Face Hub; or the word vectors of word2vec and GloVe. It runs no pickle and no
  remote code.
  """

  from_: str = flag(
    REQUIRED,
    "hf: a Hugging Face directory, or a model's name on the hub; word2vec: a "
    "file of word vectors, text or binary, of word2vec, GloVe or fastText "
    "(.vec).",
    choices=("hf", "word2vec"),
  )
  path: str = argument(
    REQUIRED,
    "The file, the directory with config.json, model.safetensors and the "
    "tokenizer's files, or NAME[@REVISION] of a model on the hub; hf:NAME if a "
    "folder has the same name.",
  )
  out: str = shared.out_folder()
  part: str = flag(
    "",
    "encoder = without the heads; default: everything.",
    choices=("encoder",),
    needs={"from_": ("hf",)},
  )
  words: int = flag(
    0,
    "Read only the first N words, usually the most frequent ones; 0 = all.",
    metavar="N",
    low=0,
    needs={"from_": ("word2vec",)},
  )

  def run(self) -> None:
    (self._hugging_face if self.from_ == "hf" else self._word_vectors)()

  def _hugging_face(self) -> None:
    import jax

    from maskedlm.interop.huggingface import hub, importer
    from maskedlm.runtime import output_options

    output_options.check_new_folder(self.out)  # Before a model is fetched.
    folder, name = hub.find(self.path)
    model = importer.import_model(
      folder, pathlib.Path(self.out), part=self.part, name=name, log=console.log
    )
    count = sum(x.size for x in jax.tree.leaves(model.params))
    print(
      f"{self.out}: {', '.join(model.params)}; {count:,} parameters; rows of "
      f"up to {model.length:,} tokens"
    )

  def _word_vectors(self) -> None:
    from maskedlm.interop import word_vectors

    table = word_vectors.import_word_vectors(
      self.path, pathlib.Path(self.out), most=self.words, log=console.log
    )
    print(
      f"{self.out}: {table.words:,} words, {table.width} numbers each; text is "
      f"{'lowercased' if table.lowercase else 'read with its capitals'}"
    )
