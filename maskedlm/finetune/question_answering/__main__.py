"""Runs `maskedlm finetune question_answering`, as a module."""

from maskedlm.cli import main

main.run_task("question_answering")
