"""The fixed positions of ViT-MAE, which transformers 5.24 leaves at zero in a model that comes from no file."""

from typing import Any


def set_positions(module: Any) -> None:  # noqa: ANN401 - any model of transformers
    """Give encoder and decoder of a new ViT-MAE their sines and cosines; other models stay as they are.

    The library's own initialisation skips the encoder, whose patch projection it has marked as done, and sets the decoder's
    to zero after they were computed. Without them a model cannot tell one patch from another.
    """
    if module.config.model_type != "vit_mae":
        return
    embeddings = getattr(module, "vit", module).embeddings
    embeddings.patch_embeddings.projection._is_hf_initialized = False
    embeddings.initialize_weights()
    if hasattr(module, "decoder"):
        module.decoder.initialize_weights(embeddings.patch_embeddings.num_patches)
