"""What objectives hide and show: BERT's masks, AIM's prefix, normalised patches, MAE's positions, captions, batches."""

import itertools
from pathlib import Path

import pandas as pd
import pytest
import torch
from layerwise.errors import DataError
from layerwise.models.training import loop
from layerwise.models.training.aim_prefix import NextPatch, prefix_mask
from layerwise.models.training.clip import captions
from layerwise.models.training.mae import MaskedPatches
from layerwise.models.training.masked_lm import MaskedTokens
from layerwise.models.training.next_token import IGNORED, NextToken
from layerwise.models.training.pixels import patches
from layerwise.models.training.tokens import CAPTION, DECODER, ENCODER, encode, train_tokenizer
from training_inputs import options, pictures, texts


def test_a_prefix_sees_itself_and_what_follows_sees_what_is_before() -> None:
    mask = prefix_mask(torch.tensor([1, 3]), 4)[:, 0].int().tolist()
    assert mask[0] == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert mask[1] == [[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_aim_draws_a_patch_from_those_before_it_only(tmp_path: Path) -> None:
    """A change of patch k changes what is drawn for patches after k (or, inside the prefix, for all of it)."""
    made = NextPatch(pictures(tmp_path), tmp_path, options("aim"))
    pixels, count, prefix = made.pixels[:1], made.targets.shape[1], 3
    other = pixels.clone()
    other[..., 8:12, 4:8] += 1.0  # patch 9 of 16
    mask = prefix_mask(torch.tensor([prefix]), count)
    with torch.no_grad():
        a, b = (made.module["trunk"].forward_features(x, attn_mask=mask)[0] for x in (pixels, other))
    same = [bool(torch.allclose(a[i], b[i], atol=1e-6)) for i in range(count)]
    assert same == [i < 9 for i in range(count)]


def test_patches_are_in_reading_order_with_mean_zero_and_variance_one() -> None:
    pixels = torch.randn(2, 3, 8, 12) * 3 + 1
    cut = patches(pixels, 4)
    assert cut.shape == (2, 6, 48)
    block = pixels[1, :, 4:8, 8:12].permute(1, 2, 0).reshape(-1)
    assert torch.allclose(cut[1, 5], (block - block.mean()) / (block.var() + 1e-6).sqrt())
    assert cut.mean(-1).abs().max() < 1e-6
    assert torch.allclose(cut.var(-1), torch.ones(2, 6), atol=1e-4)
    assert patches(torch.full((1, 3, 8, 8), 0.4), 4).abs().max() < 1e-3


def test_mae_knows_where_its_patches_are(tmp_path: Path) -> None:
    """transformers 5.24 leaves all positions of a new model at zero: nothing could be drawn then."""
    made = MaskedPatches(pictures(tmp_path), tmp_path, options("mae"))
    for positions in (made.module.decoder.decoder_pos_embed, made.module.vit.embeddings.position_embeddings):
        assert len(torch.unique(positions[0, 1:], dim=0)) == made.patches
        assert not positions.requires_grad


def test_bert_hides_fifteen_percent_of_each_text() -> None:
    made = MaskedTokens(texts()["text"].tolist(), options("masked_lm", tokens=40))
    ids = made.ids.repeat(50, 1)
    changed, labels = made.hide(ids, torch.Generator().manual_seed(0))
    chosen, special = labels != IGNORED, ids < len(ENCODER)
    assert not (chosen & special).any()
    assert torch.equal(labels[chosen], ids[chosen])
    assert torch.equal(changed[~chosen], ids[~chosen])
    wanted = ((~special).sum(1) * 0.15).round().clamp(min=1)
    assert torch.equal(chosen.sum(1), wanted.long())
    masked = changed[chosen] == made.tokenizer.mask_token_id
    kept = changed[chosen] == ids[chosen]
    assert masked.float().mean().item() == pytest.approx(0.8, abs=0.05)
    assert kept.float().mean().item() == pytest.approx(0.1, abs=0.05)


def test_padding_is_not_predicted() -> None:
    made = NextToken(["in the beginning", "in"], options("causal_lm"))
    assert made.mask.sum(1).tolist() != [made.ids.shape[1]] * 2

    class Notes(torch.nn.Module):
        def forward(self, labels: torch.Tensor, **_given: object) -> object:
            self.labels = labels
            return type("Output", (), {"loss": torch.zeros(())})

    made.module = Notes()
    made.loss(torch.tensor([0, 1]), torch.Generator())
    assert torch.equal(made.module.labels != IGNORED, made.mask.bool())


@pytest.mark.parametrize(("special", "around"), [(DECODER, 0), (ENCODER, 2), (CAPTION, 2)])
def test_a_tokenizer_reads_every_text_back(special: dict[str, str], around: int) -> None:
    made = train_tokenizer(["in the beginning was the word"] * 3, 290, special, 64)
    text = "the word: ἐν ἀρχῇ 🙂"
    ids = made(text)["input_ids"]
    assert made.decode(ids, skip_special_tokens=True) == text
    assert len(made(text, add_special_tokens=False)["input_ids"]) == len(ids) - around
    assert len(made) <= 290
    cut, mask = encode(made, [text, "in"], 8)
    assert cut.shape == mask.shape == (2, 8)
    assert mask[1].sum() < 8


def test_captions_name_their_columns() -> None:
    frame = pd.DataFrame({"letter": ["B", "C"], "place": ["upper left", 4]})
    assert captions(frame, ["letter", "place"]) == ["letter B, place upper left", "letter C, place 4"]
    with pytest.raises(DataError, match="there is no column 'font'"):
        captions(frame, ["font"])


def test_an_epoch_sees_every_sample_once_and_held_out_ones_never() -> None:
    schedule = loop.Schedule(steps=9, checkpoints=(0, 9), batch=10, learning_rate=0.1, seed=3)
    order, training, held_out = loop._split(100, schedule)
    assert (len(training), len(held_out)) == (90, 10)
    assert set(training.tolist()).isdisjoint(held_out.tolist())
    batches = loop._batches(training, 10, order)
    epochs = [torch.cat([next(batches) for _ in range(9)]) for _ in range(2)]
    assert [sorted(epoch.tolist()) for epoch in epochs] == [sorted(training.tolist())] * 2
    assert not torch.equal(*epochs)


def test_the_learning_rate_rises_then_falls_to_a_tenth() -> None:
    rates = [loop._rate(step, 100) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * step for step in range(1, 11)])
    assert max(rates) == 1.0
    assert all(a >= b for a, b in itertools.pairwise(rates[10:]))
    assert rates[-1] == pytest.approx(0.1, abs=0.01)
    assert loop._rate(0, 1) == 1.0


def test_the_untrained_twin_of_a_mae_has_positions_too(tmp_path: Path) -> None:
    from layerwise.models import untrained
    from safetensors.torch import load_file

    made = MaskedPatches(pictures(tmp_path), tmp_path, options("mae"))
    for folder in ("trained", "twin"):
        (tmp_path / folder).mkdir()
    made.save(tmp_path / "trained")
    untrained.build(tmp_path / "trained", 3, tmp_path / "twin")
    positions = load_file(tmp_path / "twin" / "model.safetensors")["embeddings.position_embeddings"]
    assert torch.equal(positions, made.module.vit.embeddings.position_embeddings)
