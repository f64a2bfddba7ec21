"""Samples: where they come from, and the transforms that derive one dataset from another."""
