"""What `maskedlm word-senses` prints: scores and answers."""

from maskedlm.core.counts import counted
from maskedlm.core.measured import to_json
from maskedlm.runtime import console, output_options


def print_scores(args, counts, lines, documents: int, *, own: bool) -> None:
  """Prints the scores, and writes them to --out."""
  from maskedlm.inference.word_senses import scores

  total = scores.ALL
  instances = counts[total, "instances"]
  console.clear_progress()
  table = [
    {
      **line._asdict(),
      "nearest": line.nearest._asdict(),
      "most_frequent": line.most_frequent._asdict(),
    }
    for line in lines
  ]
  text = to_json(table, indent=2) + "\n"
  if args.out:
    output_options.write_text(args.out, text, option="--out")
  if args.json:
    print(text, end="")
    return
  print(
    f"{counted(instances, 'instance')} in {counted(documents, 'document')} of "
    f"{args.data}" + (", held out of training" if own else "")
  )
  print(scores.format_rows(lines))
  missing = instances - counts[total, "answered"]
  if missing:
    print(
      f"no answer: {missing:,} instances, whose lemma was not in the training "
      "data with this part of speech; they count against recall"
    )
  if counts[total, "fallback"]:
    print(
      f"first sense: {counts[total, 'fallback']:,} instances, not in the "
      "training data, have that of --first_senses"
    )
  print(
    "ambiguous: instances of words with several senses in the training data; "
    "for the others both methods give the same answer"
  )


def format_rule(rule) -> str:
  """Formats how often words keep one sense in a document."""
  share = rule.kept / max(rule.words, 1)
  return (
    f"one sense per discourse: {rule.kept:,} of {rule.words:,} ambiguous words "
    f"that occur several times in a document ({share:.1%}) keep one gold sense "
    "in it"
  )


def answer_fields(learned, sentence, target, answer, top_k: int) -> dict:
  """Returns an answer as a JSON object."""
  from maskedlm.inference.word_senses import senses

  scores = answer.scores or (None,) * len(answer.senses)
  found = [
    {
      "sense": learned.names[i],
      "score": score,
      "example": learned.examples[i] if i < len(learned.examples) else None,
    }
    for i, score in zip(answer.senses, scores, strict=True)
  ]
  return {
    **({"file": sentence.file, "line": sentence.line} if sentence.file else {}),
    "target": sentence.words[target.word],
    "context": senses.format_context(sentence, target),
    "senses": found[:top_k],
    "candidates": len(found),
  }


def format_answer(learned, sentence, target, answer, top_k: int) -> str:
  """Formats an answer: the best sense, and the next ones."""
  fields = answer_fields(learned, sentence, target, answer, top_k)
  lines = [fields["context"]]
  for found in fields["senses"]:
    score, example = found["score"], found["example"]
    how = "first sense" if score is None else f"{score:.3f}"
    as_in = f"  as in: {example}" if example else ""
    lines.append(f"  {found['sense']}  {how}{as_in}")
  if not fields["senses"]:
    lines.append("  unknown: the word was not in the training data")
  return "\n".join(lines)
