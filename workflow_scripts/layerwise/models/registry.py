"""Loaders by modality: which file reads which kind of model folder."""

LOADERS = {"text": "layerwise.models.text"}
