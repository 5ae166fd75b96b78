"""Comparison of placers on frozen suites of designs: `macro-placement benchmark`, and the page made from its
results.
"""
