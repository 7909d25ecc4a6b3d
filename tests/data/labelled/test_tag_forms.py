"""The forms of entity tags: known, or refused by name; never O by mistake."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bio, tag_forms
from maskedlm.data.labelled.bio import Entity

# How a tag with a prefix and a type is written.
FORMS = {
  "dash": "{0}-{1}".format,
  "underscore": "{0}_{1}".format,
  "lower": lambda prefix, type_: f"{prefix.lower()}-{type_}",
  "type first": "{1}-{0}".format,
  "type first, underscore": "{1}_{0}".format,
}
# Scheme -> the prefixes of: a single word, the first, inner and last ones.
SCHEMES = {
  "bio": "BBII",
  "bioes": "SBIE",
  "bilou": "UBIL",
  "bmes": "SBME",
  "bmewo": "WBME",
}
TYPES = st.sampled_from(
  ["PER", "per", "B", "creative-work", "CARDINAL-1", "a_b"]
)


@st.composite
def sentences(draw):
  """Draws (length, entities)."""
  length, found, place = draw(st.integers(1, 13)), [], 0
  while place < length:
    end = draw(st.integers(place + 1, length))
    if draw(st.booleans()):
      found.append(Entity(draw(TYPES), place, end))
    place = end
  return length, found


def converted(tags, **options):
  convert_tags = bio.tag_converter([tags], "f", **options)
  return convert_tags(tags, range(1, len(tags) + 1))


def convert(text, **options):
  return " ".join(converted(text.split(), **options))


def written(length, entities, scheme, form):
  one, first, inner, last = SCHEMES[scheme]
  tags = ["O"] * length
  for type_, begin, end in entities:
    n = end - begin
    prefixes = one if n == 1 else first + inner * (n - 2) + last
    tags[begin:end] = [form(prefix, type_) for prefix in prefixes]
  return tags


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=12, deadline=None)
@given(drawn=sentences(), target=st.sampled_from(["bio", "bioes"]))
def test_every_scheme_in_every_form_means_its_entities(
  scheme, form, drawn, target
):
  length, entities = drawn
  tags = written(length, entities, scheme, FORMS[form])
  if form.startswith("type first"):
    # A type B with a prefix looks like a prefix B, unless another tag tells.
    entities = [e for e in entities if e.type != "B"]
    tags = written(length, entities, scheme, FORMS[form])
  made = converted(tags, file_scheme="any", scheme=target)
  assert bio.find_strict_entities(made, target) == entities
  # What is made is standard, and reads as itself.
  for form_of_file in ("auto", "any"):
    standard = tag_forms.standard_tags(made, scheme=form_of_file)
    assert standard == {tag: tag for tag in made}


@settings(max_examples=30, deadline=None)
@given(drawn=sentences())
def test_types_alone_are_entities_that_are_never_adjacent(drawn):
  length, entities = drawn
  tags = ["O"] * length
  for type_, begin, end in entities:
    tags[begin:end] = [{"B": "X"}.get(type_, type_)] * (end - begin)
  runs = []
  for i, tag in enumerate(tags):
    if tag != "O" and i and tags[i - 1] == tag:
      runs[-1] = runs[-1]._replace(end=i + 1)
    elif tag != "O":
      runs.append(Entity(tag, i, i + 1))
  made = converted(tags, file_scheme="io")
  assert bio.find_strict_entities(made, "bio") == runs


def test_tags_by_hand():
  assert convert("B I O B") == "B I O B"
  for text, made in (
    ("B M E S o", "B I I B O"),
    ("B-X L-X U-X", "B-X I-X B-X"),
    ("b-per i-per o", "B-per I-per O"),
    ("B_X I_X O", "B-X I-X O"),
    ("PER-B PER-I O S-B", "B-PER I-PER O B-S"),
  ):
    assert convert(text, file_scheme="any") == made
    with pytest.raises(DataError, match=r"set --config\.task\.file_scheme=any"):
      convert(text)
  assert convert("person-actor O person-x", file_scheme="io") == (
    "B-person-actor O B-person-x"
  )
  assert convert("I-A I-A O I-B", file_scheme="io") == "B-A I-A O B-B"


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("O PER PER", "f:2: 'PER' is not an entity tag"),
    ("O PER PER", "--config.task.file_scheme=io"),
    ("B-X PER O", "f:2: 'PER' is not an entity tag"),
    ("O B-", "f:2: 'B-' is not an entity tag"),
    ("O B-X|B-Y", "f:2: 'B-X|B-Y' (several tags)"),
    ("O B-X,I-Y", "f:2: 'B-X,I-Y' (several tags)"),
    ("(PER* *) *", "f:1: '(PER*' (brackets)"),
    ("O _", "f:2: '_' (not annotated)"),
    ("0 3", "f:1: '0' (a number; the names of the classes are missing)"),
    ("-DOCSTART- O", "f:1: '-DOCSTART-' is not an entity tag"),
    ("NOUN VERB", "--config.task.task=pos"),
  ],
)
def test_other_tags_are_refused_by_name(text, message):
  with pytest.raises(DataError) as error:
    convert(text)
  assert message in str(error.value)


@pytest.mark.parametrize(
  "tags", ["B:X", "B–X I–X", "I-", "BEGIN-X", "inside.X", "BX IX O"]
)
def test_what_begins_like_a_prefix_is_no_type(tags):
  """So the remedy of its error is not file_scheme=io, which would misread."""
  assert not tag_forms.are_types(tags.split())
  with pytest.raises(DataError) as error:
    convert(tags)
  assert "file_scheme=io" not in str(error.value)


def test_spaces_around_a_tag_are_not_of_its_type():
  tags = ["B-X\xa0", " I-X", "O "]
  assert tag_forms.standard_tags(tags, scheme="auto") == dict(
    zip(tags, ["B-X", "I-X", "O"], strict=True)
  )
  found = tag_forms.standard_tags(["X_B ", "O"], scheme="any")
  assert found == {"X_B ": "B-X", "O": "O"}


def test_the_odd_tag_is_named_whichever_form_the_others_have():
  for tags in (["PER-B", "PER-I", "X|Y", "O"], ["O", "B-PER", "X|Y"]):
    found = tag_forms.standard_tags(tags, scheme="any")
    assert [tag for tag, made in found.items() if made is None] == ["X|Y"]
