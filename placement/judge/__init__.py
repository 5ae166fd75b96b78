"""A learned judge: what the flat check would say of a placement of the macros, without placing a cell."""
