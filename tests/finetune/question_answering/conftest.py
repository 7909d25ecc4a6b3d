"""Questions are cut to 3 tokens, and a prediction has 4 answers."""

import pytest

from maskedlm.finetune.question_answering import question_answering


@pytest.fixture(autouse=True)
def small(monkeypatch):
  monkeypatch.setattr(question_answering, "MAX_QUERY", 3)
  monkeypatch.setattr(question_answering, "N_BEST", 4)
