"""The textbook's and the lecture's own examples, by hand.

Jurafsky & Martin, chapter 11 (two editions), and the slides on BERT. Each test
is named for what its example shows; docs/design/chapter.md has the rest.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference, model_logits
from maskedlm.data import sampling
from maskedlm.data.batches import text_pairs
from maskedlm.data.labelled import bio
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.finetune.common import entity_metrics
from maskedlm.finetune.spans import metrics as span_metrics
from maskedlm.finetune.tagging import rows
from maskedlm.modeling import masked_lm
from maskedlm.modeling.losses import loss_and_accuracy
from maskedlm.modeling.masking import tokens
from maskedlm.modeling.task_heads import tag_scores
from maskedlm.modeling.task_heads.tag_scores import first_subword_scores
from maskedlm.pretraining.objectives import spanbert

VOCABULARY = """
  [PAD] [UNK] [CLS] [SEP] [MASK] Mt . San ##itas is in Sunshine Canyon my dog
  cute hairy apple he likes play ##ing Jim Hen ##son was a puppet ##eer So long
  and thanks for all the fish apricot visually stunning rum ##ination on love
  Please turn your homework in the legislators believed that they were right
  side of history then bunny ate carrot I want to deposit money into bank
  run by river
"""
WORDS = list(dict.fromkeys(VOCABULARY.split()))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  path = tmp_path_factory.mktemp("chapter") / "vocab.txt"
  path.write_text("\n".join(WORDS) + "\n")
  return load_tokenizer(path)


def encode(tokenizer, text):
  return np.asarray(tokenizer.encode(text).ids)


def names(tokenizer, ids):
  return [tokenizer.tokens(int(i)) for i in ids]


def tagged_row(tokenizer, text, tags):
  """Returns the batch of one tagged sentence, and the ids of its tags."""
  of_tag = {tag: i for i, tag in enumerate(sorted(set(tags.split())))}
  example = rows.Example(tuple(text.split()), tuple(tags.split()))
  made = rows.make_rows([example], tokenizer, of_tag, length=32, stride=0)
  batch = {name: np.asarray(x[0])[None] for name, x in made.tokens.items()}
  return batch, of_tag


SANITAS = "Mt. Sanitas is in Sunshine Canyon ."
SANITAS_TAGS = "B-LOC I-LOC O O B-LOC I-LOC O"  # (11.16)


def test_subwords_of_mt_sanitas_do_not_align_with_its_tags(tokenizer):
  batch, _ = tagged_row(tokenizer, SANITAS, SANITAS_TAGS)
  assert names(tokenizer, batch["input_ids"][0][1:-1]) == [
    *("Mt", ".", "San", "##itas", "is", "in", "Sunshine", "Canyon", ".")
  ]
  # Each subword is of the word that it was cut from, counted from 1.
  assert batch["token_words"][0].tolist() == [0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 0]


def test_every_subword_of_mt_sanitas_is_trained_with_its_words_tag(tokenizer):
  batch, of_tag = tagged_row(tokenizer, SANITAS, SANITAS_TAGS)
  batch["example_weights"] = np.ones(1, np.float32)
  b, i, o = (of_tag[tag] for tag in ("B-LOC", "I-LOC", "O"))
  expected = [b, b, i, i, o, o, b, i, o]
  logits = np.zeros((1, 11, 3), np.float32)
  logits[0, np.arange(1, 10), expected] = 60  # Certain of these tags.
  terms, _ = tag_scores.token_loss(jnp.asarray(logits), batch)
  (total, count) = next(iter(terms.values()))
  assert float(jnp.sum(count)) == 9
  np.testing.assert_allclose(jnp.sum(total), 0, atol=1e-6)


def test_the_first_subword_decides_the_tag_of_mt_sanitas(tokenizer):
  batch, of_tag = tagged_row(tokenizer, SANITAS, SANITAS_TAGS)
  b, i, o = (of_tag[tag] for tag in ("B-LOC", "I-LOC", "O"))
  logits = np.zeros((1, 11, 3), np.float32)
  # "." and "##itas" say O; they are ignored.
  logits[0, np.arange(1, 10), [b, o, i, o, o, o, b, i, o]] = 1
  scores = first_subword_scores(jnp.asarray(logits), batch["word_starts"])
  found = np.asarray(jnp.argmax(scores, axis=-1))[0, :7]
  by_id = {i: tag for tag, i in of_tag.items()}
  assert [by_id[int(t)] for t in found] == SANITAS_TAGS.split()
  places = [Entity("LOC", 0, 2), Entity("LOC", 4, 6)]
  assert bio.find_entities(SANITAS_TAGS.split()) == places


def test_jim_henson_has_a_tag_at_first_subwords_alone(tokenizer):
  """The slides' X, of BERT's paper (section 5.3): no loss at ##son, ##eer."""
  batch, of_tag = tagged_row(
    tokenizer, "Jim Henson was a puppeteer", "I-PER I-PER O O O"
  )
  batch["example_weights"] = np.ones(1, np.float32)
  assert names(tokenizer, batch["input_ids"][0][1:-1]) == [
    *("Jim", "Hen", "##son", "was", "a", "puppet", "##eer")
  ]
  assert batch["word_starts"][0][:5].tolist() == [1, 2, 4, 5, 6]
  logits = np.zeros((1, 9, 2), np.float32)
  logits[0, [1, 2], of_tag["I-PER"]] = 60
  logits[0, [4, 5, 6], of_tag["O"]] = 60
  # Whatever "##son" and "##eer" get, the loss is that of the five words.
  logits[0, [3, 7], 0] = -60
  scores = first_subword_scores(jnp.asarray(logits), batch["word_starts"])
  terms, _ = tag_scores.word_loss(scores, batch)
  (total, count) = next(iter(terms.values()))
  assert float(jnp.sum(count)) == 5
  np.testing.assert_allclose(jnp.sum(total), 0, atol=1e-6)


@pytest.mark.parametrize(
  ("shares", "expected"),
  [((1.0, 0.0), "[MASK]"), ((0.0, 1.0), "apple"), ((0.0, 0.0), "hairy")],
)
def test_my_dog_is_hairy(tokenizer, shares, expected):
  """Masked, replaced or kept, "hairy" is what is predicted."""
  ids = text_pairs.text_row(tokenizer, encode(tokenizer, "my dog is hairy"))
  apple = np.zeros(len(WORDS), int)
  apple[WORDS.index("apple")] = 1
  corrupted, labels = tokens.replace_tokens(
    jax.random.key(0),
    jnp.asarray(ids)[None],
    jnp.array([[4]]),
    jnp.ones((1, 1)),
    mask_id=tokenizer.special.mask,
    mask_share=shares[0],
    random_share=shares[1],
    random_tokens=tokens.token_table(apple),
  )
  assert names(tokenizer, corrupted[0]) == [
    *("[CLS]", "my", "dog", "is", expected, "[SEP]")
  ]
  assert names(tokenizer, labels[0]) == ["hairy"]


def test_so_long_and_thanks_for_all_the_fish(tokenizer):
  """Figure 11.4: the loss is that of long, thanks and the, and of no other."""
  ids = encode(tokenizer, "So long and thanks for all the fish")
  assert len(ids) == 8
  chosen = [1, 3, 6]
  probabilities = np.full((1, 3, len(WORDS)), 1e-9)
  truth = [0.5, 0.25, 0.125]
  probabilities[0, np.arange(3), ids[chosen]] = truth
  rest = (1 - np.array(truth) - 1e-9 * (len(WORDS) - 2))[None, :]
  probabilities[..., 0] = rest
  (total, count), _ = loss_and_accuracy(
    jnp.log(jnp.asarray(probabilities)),
    jnp.asarray(ids[chosen])[None],
    weights=jnp.ones((1, 3)),
  )
  # -(log 1/2 + log 1/4 + log 1/8) / 3 = 2 log 2.
  mean = float(jnp.sum(total) / jnp.sum(count))
  np.testing.assert_allclose(mean, 2 * np.log(2), rtol=1e-5)


def test_the_boundaries_of_and_thanks_for(tokenizer):
  """Figure 11.12: thanks is predicted from z_2, z_6 and the second place."""
  ids = text_pairs.text_row(
    tokenizer, encode(tokenizer, "So long and thanks for all the fish")
  )
  outside = np.isin(ids, [tokenizer.special.cls, tokenizer.special.sep])
  found = spanbert.boundaries(
    jnp.asarray(outside)[None],
    jnp.array([[3, 4, 5]]),
    jnp.ones((1, 3)),
    jnp.array([[0, 0, 0]]),
    jnp.array([[2, 2, 2]]),
    max_span_targets=15,
  )
  left, right, place = (
    int(found[name][0, 1]) for name in ("sbo_left", "sbo_right", "sbo_place")
  )
  assert names(tokenizer, ids[[left, right]]) == ["long", "all"]
  assert (left, right, place + 1) == (2, 6, 2)
  assert found["sbo_weights"].tolist() == [[1, 1, 1]]


UNITED = ["B-PER", "I-PER", "O", "B-ORG", "I-ORG", "I-ORG", "O"]
WRONG = ["B-PER", "I-PER", "O", "I-ORG", "I-ORG", "I-ORG", "O"]  # (11.28)


def test_one_wrong_tag_of_united_airlines_holding_loses_the_entity():
  found = entity_metrics.evaluate_entities([UNITED], [WRONG], "bio")
  assert found["strict_recall"] == 0.5  # Jane Villanueva alone.
  assert found["accuracy"] == 6 / 7
  # conlleval, whose f1 is the default, forgives an I where a B belongs.
  assert found["recall"] == 1


def test_united_airlines_lies_within_united_airlines_holding():
  spans = [Entity("PER", 0, 2), Entity("ORG", 3, 5), Entity("ORG", 3, 6)]
  assert span_metrics.inner_spans(spans) == [Entity("ORG", 3, 5)]
  # One row of BIO tags holds one of the two organisations.
  tags = bio.entity_tags([spans[0], spans[2]], 7)
  assert tags == UNITED
  assert span_metrics.evaluate_spans([spans], [bio.find_entities(tags)]) == {
    "f1": 0.8,
    "precision": 1.0,
    "recall": 2 / 3,
  }


def test_rare_languages_are_drawn_more_often():
  """Equation 11.7: 1, 10 and 100 sentences, alpha = 0.3."""
  found = sampling.sampling_shares([1, 10, 100], 0.3)
  # 10^0.3 = 1.99526 and 100^0.3 = 3.98107; the shares were 0.9%, 9%, 90%.
  np.testing.assert_allclose(
    found, np.array([1, 1.99526, 3.98107]) / 6.97633, rtol=1e-5
  )


encode_layers = jax.jit(masked_lm.encode_layers, static_argnums=0)


def layers_of(tokenizer, text, **architecture):
  """Returns the vectors of every layer [N + 1, L, D] of an untrained encoder.

  Positions are RoPE's, so that layer 0 is the token's embedding alone.
  """
  cfg = encoder_reference.config(
    vocab_size=len(WORDS), position="rope", type_vocab_size=0, **architecture
  )
  ids = text_pairs.text_row(tokenizer, encode(tokenizer, text))
  params = {"encoder": encoder_reference.make_params(cfg)["encoder"]}
  return encode_layers(cfg, params, model_logits.one_row(ids))[:, 0]


def test_bank_has_one_static_vector_and_one_in_each_context(tokenizer):
  money = layers_of(tokenizer, "I want to deposit money into a bank")
  river = layers_of(tokenizer, "I want to run by the river bank")
  at = 8  # [CLS] and seven words come before it in both.
  np.testing.assert_array_equal(money[0, at], river[0, at])
  assert float(jnp.max(jnp.abs(money[-1, at] - river[-1, at]))) > 0.01


@pytest.mark.parametrize("causal", [False, True])
def test_right_is_read_with_the_words_after_it(tokenizer, causal):
  """Figure 11.1 with the lecture's text: a causal model doesn't see them."""
  side = layers_of(
    tokenizer, "they were on the right side of history", causal=causal
  )
  bank = layers_of(
    tokenizer, "they were on the right bank of history", causal=causal
  )
  change = jnp.max(jnp.abs(side - bank)[:, :6])  # Through "right".
  assert (float(change) == 0) == causal
