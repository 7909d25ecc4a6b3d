"""Plans runs on machines that aren't here: memory, traffic and time."""
