"""The benchmark suite: ratios between contestants measured side by side in one run."""
