"""`maskedlm word-senses train|evaluate|predict`: disambiguates word senses."""

import dataclasses
import pathlib
import sys
from collections import Counter
from collections.abc import Iterable

from maskedlm.cli import groups, shared, word_senses_report
from maskedlm.cli.flags import REQUIRED, flag
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_files, output_options

CHUNK = 1024  # Lines to read at a time.


@dataclasses.dataclass(frozen=True)
class Labelled:
  """A file of words with senses."""

  data: str = flag(
    REQUIRED,
    "Columns such as semcor.tsv, or NAME.data.xml with NAME.gold.key.txt.",
    metavar="FILE",
    reads=True,
  )
  max_documents: int = flag(
    0, "Use only the first N documents; 0 = all.", metavar="N", low=0
  )

  def sha256(self) -> str:
    """Returns the file's SHA-256."""
    return output_files.sha256(pathlib.Path(self.data))

  def sentences(self, is_kept, seen: Counter, words: Counter):
    """Yields the sentences of the documents that are kept, counting words."""
    from maskedlm.inference.word_senses import data

    sentences = data.read_sentences(self.data, seen=seen)
    return _count_targets(
      data.select_documents(sentences, is_kept, limit=self.max_documents), words
    )

  def progress(self, seen: Counter):
    """Returns groups.make_progress() for the file."""
    from maskedlm.data.labelled import text_lines

    return groups.make_progress(text_lines.total_bytes([self.data]), seen)

  def count_documents(self, documents: set) -> int:
    """Returns how many of the documents were used."""
    return min(len(documents), self.max_documents or sys.maxsize)


@dataclasses.dataclass(frozen=True)
class Train:
  """Trains sense embeddings: word sense disambiguation by the nearest one.
  docs/guides/use/word-senses.md is its tutorial.
  """

  encoder: groups.Encoder
  labelled: Labelled
  out: str = shared.out("The sense embeddings.", (".npz",), REQUIRED)
  heldout_share: float = flag(
    0.0,
    "Share of the documents held out of training, for evaluate.",
    low=0,
    below=1,
  )
  layers: str = shared.layers(
    "", "; default: the last four, or all if there are fewer"
  )
  combine: str = shared.combine(
    "sum", ", by default as in Jurafsky & Martin's recipe"
  )
  first_senses: str | None = flag(
    None,
    "First senses, the answers for words not seen in training: WordNet's "
    "index.sense, or lemma, part of speech and sense between tabs.",
    metavar="FILE",
  )

  def check(self) -> None:
    groups.check_layers(self.layers, self.combine, default="sum")

  def run(self) -> None:
    from maskedlm.inference.vectors import unknown_words
    from maskedlm.inference.word_senses import data, senses

    first = None
    if self.first_senses:
      first = data.read_first_senses(self.first_senses)
    digest = self.labelled.sha256()
    model = self.encoder.open()
    layers: tuple[int, ...] = ()
    if self.layers:
      layers = groups.parse_layers(self.layers, model.cfg.num_layers)
    seen: Counter = Counter()
    words: Counter = Counter()
    documents: dict[bool, set] = {True: set(), False: set()}

    def is_kept(document: str) -> bool:
      held_out = data.is_held_out(document, self.heldout_share)
      documents[held_out].add(document)
      return not held_out

    learned = senses.train_senses(
      model,
      self.labelled.sentences(is_kept, seen, words),
      senses.word_vector_options(model.cfg, layers, self.combine),
      first_senses=first,
      progress=self.labelled.progress(seen),
    )
    unknown_words.log_unknown(model.tokenizer, words)
    metadata = {
      **learned.about,
      "checkpoint": self.encoder.checkpoint,
      "data": self.labelled.data,
      "data_sha256": digest,
      "heldout_share": self.heldout_share,
    }
    senses.save_senses(self.out, learned._replace(about=metadata))
    trained = self.labelled.count_documents(documents[False])
    console.log(
      f"{counted(len(learned.vectors), 'sense')} of "
      f"{counted(len(learned.candidates), 'word')}, from "
      f"{counted(metadata['targets'], 'instance')} in "
      f"{counted(trained, 'document')} -> {self.out}"
    )
    if self.heldout_share and not self.labelled.max_documents:
      console.log(f"held out: {counted(len(documents[True]), 'document')}")


@dataclasses.dataclass(frozen=True)
class Asked:
  """A model with its sense embeddings, which answers."""

  encoder: groups.Encoder
  learned: groups.Senses
  one_sense_per_discourse: bool = flag(
    False,
    "Give all occurrences of a word in a document (in predict: of one "
    "command's texts or file) the sense with the highest mean cosine.",
  )

  def open(self) -> tuple:
    """Returns (model, learned senses, sentences -> answers).

    An answer is (sentence, target, senses.Answer).
    """
    from maskedlm.inference.word_senses import discourse, senses

    model = self.encoder.open()
    learned, options, fitted = self.learned.open(model)
    rank = senses.make_ranker(learned, fitted)

    def answer(sentences):
      answered = (
        (sentence, target, rank(sentence, target, x))
        for targets, values in senses.embed_targets(model, sentences, options)
        for (sentence, target), x in zip(targets, values, strict=True)
      )
      if self.one_sense_per_discourse:
        return discourse.agree_in_documents(answered)
      return answered

    return model, learned, answer


@dataclasses.dataclass(frozen=True)
class Evaluate:
  """Scores sense embeddings, and the most frequent sense, on labelled words; on
  their training file, the documents that were held out.
  """

  asked: Asked
  labelled: Labelled
  json: bool = shared.json("Print the table as JSON.")
  out: str | None = shared.out("Write the table here, as JSON.", (".json",))
  keys: str | None = shared.keys("the words")

  def run(self) -> None:
    from maskedlm.inference.vectors import unknown_words
    from maskedlm.inference.word_senses import data, discourse, scores

    model, learned, answer = self.asked.open()
    file = self.labelled.data
    seen: Counter = Counter()
    documents: set[str] = set()
    replies = []
    show = self.labelled.progress(seen)
    # Senses that were trained and saved in Python have no data_sha256.
    is_training_file = self.labelled.sha256() == learned.about.get(
      "data_sha256"
    )
    share = learned.about.get("heldout_share", 0.0)
    if is_training_file and not share:
      raise ConfigError(
        f"{self.asked.learned.senses} was trained on all of {file}: train it "
        "with --heldout_share=0.1, or give other --data."
      )

    def is_scored(document: str) -> bool:
      scored = not is_training_file or data.is_held_out(document, share)
      documents.update([document] if scored else [])
      return scored

    counts: Counter = Counter()
    words: Counter = Counter()
    keys = []
    for reply in answer(self.labelled.sentences(is_scored, seen, words)):
      _, target, answered = reply
      counts.update(scores.count_answers(learned, [(target, answered)]))
      if answered.senses:
        keys.append(f"{target.id} {learned.names[answered.senses[0]]}\n")
      show(counts[scores.ALL, "instances"])
      if self.asked.one_sense_per_discourse:
        replies.append(reply)
    unknown_words.log_unknown(model.tokenizer, words)
    lines = scores.make_rows(counts)
    if not lines:
      raise ConfigError(
        f"no word to score: of {file}, no document was held out by "
        f"--heldout_share={share}; train with a larger one."
      )
    of = f"{counted(self.labelled.count_documents(documents), 'document')} of "
    of += f"{file}" + (", held out of training" if is_training_file else "")
    printed = word_senses_report.score_lines(counts, lines, of)
    if self.asked.one_sense_per_discourse:
      rule = discourse.measure_rule(replies)
      printed.append(word_senses_report.format_rule(*rule))
    console.clear_progress()
    table = [
      {
        **line._asdict(),
        "nearest": line.nearest.scores(),
        "most_frequent": line.most_frequent.scores(),
      }
      for line in lines
    ]
    groups.print_report(self, table, printed)
    if self.keys:
      output_options.write_text(self.keys, "".join(keys), option="--keys")


@dataclasses.dataclass(frozen=True)
class Predict:
  """Predicts the senses of all words of a text, or of marked ones only: 'The
  *bank* rose.', or '*banks|bank|NOUN*' with lemma and part of speech.
  """

  ONE_OF = ("input", "text")

  asked: Asked
  texts: groups.Texts
  top_k: int = shared.top_k(3, "Senses to print")
  json: bool = shared.json("Print a JSON line for each word.")
  text: tuple[str, ...] = shared.text("Texts, instead of --input.")

  def run(self) -> None:
    from maskedlm.data.labelled import text_lines
    from maskedlm.inference.vectors import unknown_words
    from maskedlm.inference.word_senses import inputs

    model, learned, answer = self.asked.open()
    files = self.texts.input
    sentences = inputs.read_marked_words(
      files, form=self.texts.format, field=self.texts.field
    )
    if self.text:
      sentences = map(inputs.parse_marked_text, self.text)
    words: Counter = Counter()
    tagged: Counter = Counter()
    sentences = _count_targets(_target_all(sentences, learned, tagged), words)
    batches: Iterable
    if self.asked.one_sense_per_discourse:  # Each file is a document.
      batches = [(s._replace(document=s.file) for s in sentences)]
    else:
      batches = text_lines.request_groups(sentences, CHUNK, self.text, files)
    for batch in batches:
      for sentence, target, answered in answer(batch):
        fields = word_senses_report.answer_fields(
          learned, sentence, target, answered, self.top_k
        )
        if self.json:
          console.print_json(fields)
        else:
          print(word_senses_report.format_answer(fields), flush=True)
    if untagged := tagged["words"] - tagged["known"]:
      console.log(
        f"{untagged:,} of {counted(tagged['words'], 'word')} of unmarked texts "
        "have no answer: they had no sense in training"
      )
    unknown_words.log_unknown(model.tokenizer, words)


def _target_all(sentences, learned, counts: Counter):
  """Yields the sentences, of which unmarked ones ask for all known words."""
  from maskedlm.inference.word_senses import senses

  for sentence in sentences:
    targeted = senses.target_known_words(learned, sentence)
    if not sentence.targets:
      counts.update(words=len(targeted.words), known=len(targeted.targets))
    yield targeted


def _count_targets(sentences, words: Counter):
  """Yields the sentences; adds the forms of their targets to `words`."""
  for sentence in sentences:
    words.update(sentence.words[target.word] for target in sentence.targets)
    yield sentence
