"""Defines the exit codes of the command; 0 = success.

maskedlm's own exceptions carry theirs as `exit_code`: 2, 3 (training diverged),
74 (EX_IOERR: storage can't be written or reached now) and 75 (fine-tuning
interrupted, or another host gone).
"""

ERROR = 2  # The user's input is wrong or can't be used.
INTERRUPTED_AND_SAVED = 75  # EX_TEMPFAIL: the same command continues.
INTERRUPTED = 130  # By Ctrl-C; the code after a SIGINT.
BROKEN_PIPE = 141  # Nobody reads the output; the code after a SIGPIPE.
