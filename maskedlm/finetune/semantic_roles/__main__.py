"""Runs `maskedlm finetune semantic_roles`, as a module."""

from maskedlm.cli import main

main.run_task("semantic_roles")
