"""Plans runs on other machines than this one: memory, traffic and time."""
