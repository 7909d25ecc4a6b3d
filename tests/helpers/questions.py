"""Questions on texts of letters, and the Application that answers them."""

from helpers import encoder_reference as reference
from helpers.letters import TOKENIZER
from maskedlm.data.labelled.formats.squad import Example, GoldAnswer
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.question_answering import question_answering
from maskedlm.finetune.question_answering.question_answering import Options

LENGTH = 13
SMALL = {"stride": 4, "max_answer_length": 3}
TEXT = "a b c d e f g h i j k"  # Token i is the character 2 i.
EXAMPLES = [
  Example("x y", "a b c d e", "q0", (GoldAnswer("b c", 2), GoldAnswer("e", 8))),
  # 11 tokens in windows of 13 - 3 - 1 - 2 = 7.
  Example("v w x y z", TEXT, "q1", (GoldAnswer("f g", 10),)),
  Example("v w x", TEXT, "q2", ()),
  Example("x", "", "q3", None),
]


def make(cfg=None, length=LENGTH, tokenizer=TOKENIZER, **options):
  return question_answering.make_application(
    Setup(tokenizer, cfg or reference.config(), {}, length),
    Options(**{**SMALL, **options}),
  )
