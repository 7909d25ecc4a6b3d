"""Runs `maskedlm finetune constituency`, as a module."""

from maskedlm.cli import main

main.run_task("constituency")
