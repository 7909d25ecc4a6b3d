"""Runs `maskedlm finetune tagging`, as a module."""

from maskedlm.cli import main

main.run_task("tagging")
