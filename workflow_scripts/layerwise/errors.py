"""The failures a user can act on. Each message is one sentence: what, which value, where, what to write instead."""


class LayerwiseError(Exception):
    """Base of every failure whose message is written for the user; rules print it without a traceback."""


class ConfigError(LayerwiseError):
    """The configuration asks for something that does not exist or does not fit together."""


class DataError(LayerwiseError):
    """A dataset, label or text cannot be used as it is."""


class ModelError(LayerwiseError):
    """Weights, tokenizer or architecture cannot be used as they are."""


class FileError(LayerwiseError):
    """A result file is absent, incomplete, damaged or of another schema version."""


class UndefinedMetric(LayerwiseError):
    """A metric has no value for this input; ``str(error)`` is the reason and is recorded with the layer."""
