"""Comparison of placers on frozen suites of designs: `macro-placement benchmark`."""
