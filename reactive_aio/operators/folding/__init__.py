"""The stages of the ends that make one value of a whole stream."""
