"""Activations: one forward pass, every layer, every readout, the token statistics."""
