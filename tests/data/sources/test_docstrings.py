"""Docstrings as a source: prose is kept, the rest is dropped."""

from collections import Counter

import pytest

from helpers.read_source import read
from maskedlm.data.sources import docstrings

NOT_PROSE = "paragraphs of docstrings dropped as not prose"
REPEATED = "repeated paragraphs of docstrings dropped"


def prose_of(docstring):
  texts = map(docstrings.clean_prose, docstrings.paragraphs(docstring))
  return [text for text in texts if text]


def test_numpydoc():
  docstring = """Return the arc cosine of x.

    The result lies in the closed interval, as that of ``cos`` or
    :func:`~numpy.sin` or `sin <a/b>`_; it is *never* **NaN** [1]_.

    Parameters
    ----------
    x : array_like, optional
        The x-coordinate on the unit circle.
    out, where : ndarray
        Not for you

    Notes
    -----
    This is how it is used::

        y = arccos(x)  # And this comment is no prose.

    .. math:: x = 1 of the and is a formula.

    .. note::
        The domain is the closed interval.

    Examples
    --------
    >>> np.arccos([1, -1])
    This is the output of the example.

    References
    ----------
    .. [1] M. Abramowitz and I.A. Stegun, "Handbook of the functions".
    """
  assert prose_of(docstring) == [
    "Return the arc cosine of x.",
    "The result lies in the closed interval, as that of cos or numpy.sin or "
    "sin; it is never NaN.",
    "The x-coordinate on the unit circle.",
    "The domain is the closed interval.",
  ]


def test_google_style_sphinx_fields_and_markdown():
  docstring = """
    Saves the state to a path.

    Args:
      path: The folder that is written to,
        with all of its parents.
      step (int): The number of the step.
      **kwargs: ignored

    Returns:
      True if the state was saved.

    :param force: Whether to replace what is there.
    :type force: bool

    - An item that is a sentence.
    - items, of, names
    1. The first item of a list.

    See [the guide](https://example.com/a) for all of this. For example:

    ```python
    save("/the/path")  # This is not for the reader.
    ```

    | a | table of the values. |
    """
  assert prose_of(docstring) == [
    "Saves the state to a path.",
    "The folder that is written to, with all of its parents.",
    "The number of the step.",
    "True if the state was saved.",
    "Whether to replace what is there.",
    "An item that is a sentence.",
    "The first item of a list.",
    "See the guide for all of this.",
  ]


@pytest.fixture
def package(tmp_path, monkeypatch):
  """A function that makes a site-packages folder of the given files."""

  def build(files):
    root = tmp_path / "site-packages"
    for name, source in files.items():
      path = root / name
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_bytes(source if isinstance(source, bytes) else source.encode())
    monkeypatch.syspath_prepend(root)

  return build


def test_a_package(package):
  package(
    {
      "odd_pkg/__init__.py": '"""The first module of the package."""\n',
      "odd_pkg/b.py": '''
class C:
  r"""A class with a docstring in it."""
  async def f(self):
    """A method that awaits the result."""
    def g():
      """A function within the method."""
    text = """This is a string that is no docstring."""
if True:
  def h():
    """A function under a condition."""
def i():
  """The first module of the package."""
def j():
  """x = 1"""
''',
      "odd_pkg/a.py": "'''An earlier file by its name, caf\\xe9.\n\n"
      "A control \\x08 character and a \\ud800 surrogate of the other.'''",
      "odd_pkg/empty.py": "x = 1\n",
      "odd_pkg/raises.py": '"""This module is never imported."""\n1 / 0\n',
      "odd_pkg/broken.py": '"""The file has a mistake in it."""\ndef f(:\n',
      "odd_pkg/nul.py": b'"""The file has a NUL in it."""\n\0',
      "odd_pkg/latin.py": b'#coding:latin-1\n"""The caf\xe9 is in the file."""',
      "odd_pkg/tests/t.py": '"""The tests are not read at all."""',
      "odd_pkg/test_it.py": '"""The tests are not read at all."""',
      "odd_pkg/_vendor/v.py": '"""The copies are not read at all."""',
      "odd_single.py": '"""A module that is a single file."""',
    }
  )
  found, report = read("docstrings:odd_pkg")
  assert found == [
    ["The first module of the package."],
    [
      "An earlier file by its name, café.",
      "A control   character and a \ufffd surrogate of the other.",
    ],
    [
      "A class with a docstring in it.",
      "A method that awaits the result.",
      "A function within the method.",
      "A function under a condition.",
    ],
    ["The café is in the file."],
    ["This module is never imported."],
  ]
  assert report["files read"] == 8
  assert report["modules dropped because they do not parse"] == 2
  assert report[REPEATED] == 1
  assert report[NOT_PROSE] == 1
  assert (report["documents"], report["lines"]) == (5, 9)
  both, _ = read("docstrings:odd_single, odd_pkg,odd_single")
  assert both == [["A module that is a single file."], *found]


def test_processes_read_what_one_reads(monkeypatch):
  monkeypatch.setattr(docstrings, "GROUP", 3)  # Otherwise too few for two.
  paths = docstrings.find_modules(["json", "email", "logging"])
  assert len(paths) > 4 * 2 * 3
  found, counts = zip(
    *(
      (
        list(
          docstrings.read_documents(paths, report=report, num_workers=number)
        ),
        report,
      )
      for number, report in ((1, Counter()), (2, Counter()))
    ),
    strict=True,
  )
  assert found[0] == found[1] and counts[0] == counts[1]
