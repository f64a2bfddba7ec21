"""How much of an activation file a metric holds: what it reads of more, it reads block by block."""

HELD_BYTES = 2**28  # one layer's vectors in float64
BLOCK_BYTES = 2**26
