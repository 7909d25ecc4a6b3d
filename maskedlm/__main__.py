"""`python -m maskedlm VERB` is `maskedlm VERB`.

And `python -m maskedlm.finetune.TASK` is `maskedlm finetune TASK`.
"""

import sys

from maskedlm.cli import main


def finetune(package: str) -> None:
  """Ends the program as `maskedlm finetune TASK` does, with its arguments.

  Args:
    package: the folder of the task, maskedlm.finetune.TASK.
  """
  task = package.rpartition(".")[2]
  sys.exit(main.main(["finetune", task, *sys.argv[1:]]))


if __name__ == "__main__":
  sys.exit(main.main())
