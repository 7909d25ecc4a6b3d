"""What `maskedlm word-senses` prints: scores and answers."""


def score_lines(counts, rows, documents: str) -> list[str]:
  """Returns what `evaluate` prints: a table, and what it leaves out."""
  from maskedlm.core.counts import counted
  from maskedlm.inference.word_senses import scores

  total = scores.ALL
  instances = counts[total, "instances"]
  lines = [
    f"{counted(instances, 'instance')} in {documents}",
    scores.format_rows(rows),
  ]
  if missing := instances - counts[total, "answered"]:
    lines.append(
      f"no answer: {missing:,} instances, whose lemma was not in the training "
      "data with this part of speech; they count against recall"
    )
  if first := counts[total, "fallback"]:
    lines.append(
      f"first sense: {first:,} instances, not in the training data, have that "
      "of --first_senses"
    )
  lines.append(
    "ambiguous: instances of words with several senses in the training data; "
    "for the others both methods give the same answer"
  )
  return lines


def format_rule(words: int, kept: int) -> str:
  """Formats how often words keep one sense in a document."""
  share = kept / max(words, 1)
  return (
    f"one sense per discourse: {kept:,} of {words:,} ambiguous words that "
    f"occur several times in a document ({share:.1%}) keep one gold sense "
    "in it"
  )


def answer_fields(learned, sentence, target, answer, top_k: int) -> dict:
  """Returns an answer as a JSON object."""
  from maskedlm.inference.word_senses import senses

  scores = answer.scores or (None,) * len(answer.senses)
  ranked = [
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
    "senses": ranked[:top_k],
    "candidates": len(ranked),
  }


def format_answer(fields: dict) -> str:
  """Formats the fields of an answer: the best sense, and the next ones."""
  lines = [fields["context"]]
  for sense in fields["senses"]:
    score, example = sense["score"], sense["example"]
    how = "first sense" if score is None else f"{score:.3f}"
    as_in = f"  as in: {example}" if example else ""
    lines.append(f"  {sense['sense']}  {how}{as_in}")
  if not fields["senses"]:
    lines.append("  unknown: the word was not in the training data")
  return "\n".join(lines)
