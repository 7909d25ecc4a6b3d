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
