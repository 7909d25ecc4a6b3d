"""Runs `maskedlm finetune retrieval`, as a module."""

from maskedlm.cli import main

main.run_task("retrieval")
