"""A window on placements: a local web page that shows them, computes the exact cost of each move and saves results."""
