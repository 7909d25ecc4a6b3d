"""Runs `maskedlm finetune multi_label`: classification/multi_label.py."""

from maskedlm.cli import main

main.run_task("multi_label")
