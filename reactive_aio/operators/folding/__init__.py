"""The stages of the ends that turn a whole stream into one value."""
