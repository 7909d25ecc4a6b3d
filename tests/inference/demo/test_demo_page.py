"""The demo page in a browser: what users click and read.

  pytest -m slow tests/inference/demo

Needs Chromium (apt install chromium); without it the tests are skipped.
"""

import json
import urllib.parse

import numpy as np
import pytest

from helpers import chromium, untrained
from maskedlm.inference.demo import answers
from maskedlm.inference.vectors import standardise

pytestmark = [pytest.mark.slow, chromium.NEEDED]
TROUBLE = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
  with chromium.open_page(tmp_path_factory.mktemp("chromium")) as page:
    page.resize(1100, 800)
    yield page


@pytest.fixture
def page(browser, address):
  """Yields the page; fails if it has errors or loads other sites."""
  home = "http://{}:{}/".format(*address)
  del browser.events[:]
  open_tab(browser, home)
  yield browser
  requested = {
    event["params"]["request"]["url"]
    for event in browser.events
    if event["method"] == "Network.requestWillBeSent"
  }
  assert home in requested
  assert not [url for url in requested if not url.startswith(home)]
  assert not [e for e in browser.events if e["method"] in TROUBLE]
  logged = [
    event["params"]["entry"]
    for event in browser.events
    if event["method"] == "Log.entryAdded"
  ]
  # The browser logs by itself that an answer has status 400.
  assert not [e for e in logged if "status of 4" not in e["text"]], logged


def open_tab(page, url):
  page.go(url)
  page.wait("document.title.endsWith('– maskedlm')")


def fill_in(page, tab, **fields):
  """Clicks a tab, fills its fields (by id) and clicks its button."""
  page.run(f"document.querySelector('#tab-{tab}').click()")
  assert page.run(f"document.querySelector('#{tab}').checkVisibility()")
  for name, value in fields.items():
    field = f"document.querySelector('#{tab}-{name}')"
    page.run(f"{field}.value = {json.dumps(value)}")
  page.run(f"document.querySelector('#{tab} .result').replaceChildren()")
  page.run(f"document.querySelector('#{tab} .go').click()")
  page.wait(f"document.querySelector('#{tab} .result > *') !== null")
  return answer(page, tab)


def answer(page, tab):
  """Returns the text of the answer, as displayed."""
  return page.run(f"document.querySelector('#{tab} .result').innerText")


def count(page, selector):
  return page.run(f"document.querySelectorAll('{selector}').length")


def test_masks(page, models):
  text = "The 👩‍💻 [MASK] sat on <b>the</b> [MASK]."
  shown_text = fill_in(page, "mask", text=text)
  made = answers.answer_fill(models, {"text": text})
  best = [words[0]["word"] for words in made["masks"]]
  shown = page.run("document.querySelector('#mask .text').textContent")
  assert shown == f"The 👩‍💻 {best[0]} sat on <b>the</b> {best[1]}."
  for words in made["masks"]:
    assert all(candidate["word"] in shown_text for candidate in words)
  assert "Candidates of mask 2" in shown_text
  # The best candidate has a full bar, and the others in proportion.
  widths = page.run(
    "[...document.querySelectorAll('#mask .bar i')].map(i => "
    "parseFloat(i.style.width))"
  )
  shares = [[word["probability"] for word in words] for words in made["masks"]]
  expected = [100 * share / max(words) for words in shares for share in words]
  np.testing.assert_allclose(widths, expected, rtol=1e-4)
  assert count(page, "#mask .bars tbody tr") == 2 * answers.CANDIDATES


def test_mask_buttons(page):
  page.run("document.querySelector('#mask-text').value = 'the '")
  page.run("document.querySelector('#mask-text').setSelectionRange(4, 4)")
  page.run("document.querySelector('#insert-mask').click()")
  assert page.run("document.querySelector('#mask-text').value") == "the [MASK]"
  page.run("document.querySelector('#mask-examples button').click()")
  page.wait("document.querySelector('#mask .result .card') !== null")
  assert "Candidates" in answer(page, "mask")


def test_two_words(page, models):
  fields = {
    "first": "The cat sat.",
    "second": "A dog, a Cat",
    "word": "cat",
    "other": "dog",
  }
  shown_text = fill_in(page, "compare", **fields)
  assert "“cat” in the first and “dog” in the second" in shown_text
  rows = count(page, "#compare tbody tr")
  assert rows == untrained.N + 1 and "embeddings" in shown_text
  numbers = page.run(
    "[...document.querySelectorAll('#compare td.number')].map("
    "n => +n.innerText)"
  )
  expected = answers.answer_compare(models, fields)["layers"]
  np.testing.assert_allclose(
    np.reshape(numbers, (-1, 2)),
    [[layer["cosine"], layer["usual"]] for layer in expected],
    atol=0.0051,
  )


def test_standardised(page, models):
  """The page is given what a model with --standardise answers."""
  fields = {"first": "The cat", "second": "A dog", "word": "cat"}
  fields |= {"other": "dog"}
  ones = np.ones(untrained.D, np.float32)
  fitted = [(i, standardise.Standardiser(i * ones, ones, {})) for i in (1, 2)]
  made = answers.answer_compare(
    models._replace(standardisers=tuple(fitted)), fields
  )
  fetched = f"async () => new Response({json.dumps(json.dumps(made))})"
  page.run(f"window.fetch = {fetched}")
  shown_text = fill_in(page, "compare", **fields)
  assert "minus the mean of a corpus" in shown_text
  assert count(page, "#compare .card:nth-child(2) tbody tr") == 2
  numbers = page.run(
    "[...document.querySelectorAll('#compare .card:nth-child(2) td.number')]"
    ".map(n => +n.innerText)"
  )
  expected = [[x["cosine"], x["usual"]] for x in made["standardised"]]
  np.testing.assert_allclose(
    np.reshape(numbers, (-1, 2)), expected, atol=0.0051
  )


def test_attention(page):
  shown_text = fill_in(page, "attention", text="the cat [MASK]", layer="1")
  for word in ("[CLS]", "the", "cat", "[MASK]", "[SEP]"):
    assert word in shown_text
  assert count(page, "#attention .heads canvas") == untrained.H
  assert count(page, "#attention .map tbody tr") == 5
  cells = "document.querySelectorAll('#attention .map tbody td')"
  page.run("document.querySelectorAll('#attention .heads button')[2].click()")
  pressed = page.run(
    "document.querySelector('#attention [aria-pressed=true]').innerText"
  )
  assert pressed == "Head 3"
  assert "of the attention" in shown_text  # The scale.
  sides = page.run(
    "['.card', '.map'].map(s => document.querySelector('#attention .result '"
    " + s).getBoundingClientRect().width)"
  )
  assert sides[1] > 0.85 * sides[0]
  page.run(f"{cells}[7].dispatchEvent(new PointerEvent('pointerenter'))")
  assert "“the” gives " in answer(page, "attention")
  assert "of its attention to “cat”." in answer(page, "attention")


@pytest.mark.parametrize(
  ("name", "text", "expected"),
  [
    ("pos", "The cat sat.", ["The", "sat", "."]),
    ("mood", "A good film.", ["label", "bad", "good", "so so"]),
    ("qa", "Who sat?\nThe cat sat.", ["Who sat?", "Answers"]),
    ("four", "It\nran.\nsat.\nate.\nhid.", ["ran.", "sat.", "ate.", "hid."]),
    ("many", "A good film.", ["dull, long", "Probabilities"]),
  ],
  ids=["pos", "mood", "qa", "four", "many"],
)
def test_labels(page, name, text, expected):
  place = list(untrained.TUNED).index(name)
  shown_text = fill_in(page, "label", text=text, model=str(place))
  assert [word for word in expected if word not in shown_text] == []


def test_entities_are_marked_in_the_text(page, models):
  text = "👩‍💻 The man from New York sat."
  place = list(untrained.TUNED).index("ner")
  shown_text = fill_in(page, "label", text=text, model=str(place))
  made = answers.answer_label(models, {"text": text, "model": place})[
    "prediction"
  ]
  # Offsets count characters; the browser counts 16 bits.
  marked = page.run(
    "[...document.querySelectorAll('#label mark')].map(m => "
    "m.firstChild.textContent)"
  )
  assert marked == [entity["text"] for entity in made["entities"]]
  assert "man" in marked and "man: PER" in shown_text
  shown = page.run("document.querySelector('#label .text').textContent")
  assert shown.replace("PER", "") == text
  assert count(page, "#label mark.type.type0") == len(made["entities"])


def test_errors_are_shown(page):
  shown_text = fill_in(page, "mask", text="the cat")
  assert shown_text.startswith("no [MASK] in 'the cat': write it where")
  assert count(page, "#mask .error[role=alert]") == 1
  shown_text = fill_in(
    page, "compare", first="<i>a</i>", second="b", word="cat"
  )
  assert "'cat' is not a word of '<i>a</i>'; its words:" in shown_text
  assert count(page, "#compare .result i") == 0
  shown_text = fill_in(page, "attention", text=50 * "the ")
  assert "has 52 tokens" in shown_text and "shorten it" in shown_text
  assert "is empty: type something first" in fill_in(page, "label", text=" ")
  shown_text = fill_in(page, "mask", text=30_000 * "a")
  assert "30,000 characters; expected at most 2,000" in shown_text
  shown_text = fill_in(page, "mask", text=3_000_000 * "a")
  assert "over 65,536 bytes: shorten the text" in shown_text
  # Half a surrogate pair can't be typed, but it can be pasted.
  page.run("document.querySelector('#mask-text').value = '\\ud83d [MASK]'")
  page.run("document.querySelector('#mask .go').click()")
  page.wait("document.querySelector('#mask .result .card') !== null")


def test_the_address_restores_the_form(page):
  fill_in(page, "attention", text="the cat & a dog", layer="2")
  address = page.run("location.href")
  query = urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)
  assert query == {
    "tab": ["attention"],
    "text": ["the cat & a dog"],
    "layer": ["2"],
  }
  open_tab(page, address)
  page.wait("document.querySelector('#attention .map') !== null")
  assert page.run("document.querySelector('#attention').checkVisibility()")
  assert not page.run("document.querySelector('#mask').checkVisibility()")


def test_an_address_made_for_another_model(page):
  """The layer doesn't exist, so the form keeps its default."""
  home = page.run("location.origin")
  open_tab(page, f"{home}/?tab=attention&text=the cat&layer=99")
  page.wait("document.querySelector('#attention .map') !== null")
  chosen = page.run("document.querySelector('#attention-layer').value")
  assert chosen == str(untrained.N)


def test_right_to_left(page):
  fill_in(page, "mask", text="שלום [MASK] the.")
  for element in ("-text", " .text"):
    found = f"getComputedStyle(document.querySelector('#mask{element}'))"
    assert page.run(f"{found}.direction") == "rtl"


@pytest.mark.parametrize("width", [360, 1100])
def test_nothing_is_wider_than_the_window(page, width):
  page.resize(width, 800)
  fill_in(page, "mask", text="the [MASK] " + 300 * "x" + " [MASK]")
  fill_in(page, "compare", first="the cat", second="a cat", word="cat")
  fill_in(page, "attention", text=40 * "the ", layer="1")
  for tab in ("mask", "compare", "attention", "label"):
    page.run(f"document.querySelector('#tab-{tab}').click()")
    assert page.run("document.documentElement.scrollWidth") <= width
  page.resize(1100, 800)


def test_tabs_with_the_keyboard(page):
  page.run("document.querySelector('#tab-mask').focus()")
  for key, expected in [
    ("ArrowLeft", "tab-label"),
    ("ArrowRight", "tab-mask"),
    ("ArrowRight", "tab-compare"),
  ]:
    page.send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key)
    page.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)
    assert page.run("document.activeElement.id") == expected
    assert page.run("document.activeElement.ariaSelected") == "true"
