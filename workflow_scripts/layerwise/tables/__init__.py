"""Tables: one long table of metric curves, one of scores, and what follows from the two."""
