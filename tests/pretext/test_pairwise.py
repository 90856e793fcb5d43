"""The factorized decoder equals the literal one at every spread of logits."""

from __future__ import annotations

import copy

import pytest
import torch

from braindecode_pars.pretext import PARS
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder, PairwiseMLPDecoder
from braindecode_pars.pretraining import PretrainingNet

FEATURES, N_MASKED, N_PATCHES = 64, 6, 9


def logits(decoder: CrossAttentionDecoder, features: torch.Tensor) -> list[torch.Tensor]:
    """The two parts of the attention logits, a_ji and b_ki."""
    attention = decoder.attention
    first, second = (attention.query.weight @ decoder.pair_query.weight).chunk(2, dim=1)
    keys = attention.split_heads(attention.key(features)).mT * (FEATURES / 4) ** -0.5
    queries = features[:, :N_MASKED]
    return [attention.split_heads(queries @ part.T) @ keys for part in (first, second)]


def decoder_with_range(logit_range: float) -> tuple[CrossAttentionDecoder, torch.Tensor]:
    """A float64 decoder and features; the parts of the logits have the range ``spread``."""
    decoder = CrossAttentionDecoder(FEATURES, 4).double()
    features = torch.randn(3, N_PATCHES, FEATURES, dtype=torch.float64)
    with torch.no_grad():
        widest = max((part.amax(-1) - part.amin(-1)).max() for part in logits(decoder, features))
        decoder.attention.query.weight.mul_(logit_range / widest)
    return decoder, features


def run(decoder, features, dtype, cotangent, compiled=False):
    decoder = copy.deepcopy(decoder).to(dtype)
    features = features.detach().to(dtype, copy=True).requires_grad_()
    forward = torch.compile(decoder, fullgraph=True) if compiled else decoder
    prediction = forward(features[:, :N_MASKED], features)
    (prediction * cotangent.to(dtype)).sum().backward()
    gradients = {name: p.grad for name, p in decoder.named_parameters()}
    return {"prediction": prediction.detach(), "features": features.grad, **gradients}


def assert_close(actual, expected, tolerance):
    largest = max(v.abs().max().item() for n, v in expected.items() if n != "prediction")
    for name, value in expected.items():
        assert actual[name].isfinite().all(), name
        error = (actual[name].double() - value).abs().max().item()
        # The gradient of the keys' bias is exactly zero, so its error is relative to the largest.
        scale = largest if name == "attention.key.bias" else value.abs().max().item()
        assert error <= tolerance * scale, (name, error / scale)


@pytest.mark.parametrize(
    ("logit_range", "compiled"),
    [
        *((2, False), (30, False), (100, False), (300, False)),
        # Exponentials of these logits overflow in single precision, so only this is compiled.
        pytest.param(300, True, marks=pytest.mark.slow),
    ],
)
def test_factorized_equals_literal_in_float64(logit_range, compiled):
    decoder, features = decoder_with_range(logit_range)
    cotangent = torch.randn(3, N_MASKED, N_MASKED, dtype=torch.float64)
    literal = copy.deepcopy(decoder)
    literal.method = "literal"
    expected = run(literal, features, torch.float64, cotangent)

    exact = run(decoder, features, torch.float64, cotangent)
    assert_close(exact, expected, 1e-10)
    single = run(decoder, features, torch.float32, cotangent, compiled)
    assert_close(single, expected, 1e-4)


@torch.no_grad()
def test_literal_equals_equation_2_for_every_pair():
    """Equation 2, one query at a time, with torch's own attention module."""
    decoder = CrossAttentionDecoder(16, 2, method="literal").double()
    reference = torch.nn.MultiheadAttention(16, 2, batch_first=True).double()
    attention = decoder.attention
    parts = (attention.query, attention.key, attention.value)
    reference.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    reference.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    reference.out_proj.load_state_dict(attention.output.state_dict())

    y = torch.randn(2, 5, 16, dtype=torch.float64)
    prediction = decoder(y[:, :3], y)
    for j in range(3):
        for k in range(3):
            query = decoder.pair_query(torch.cat([y[:, j], y[:, k]], dim=-1))[:, None]
            attended, _ = reference(query, y, y)
            expected = decoder.head(attended)[:, 0, 0]
            torch.testing.assert_close(prediction[:, j, k], expected)


@pytest.mark.parametrize("logit_range", [300, 3000])
def test_a_prediction_is_right_or_nan(logit_range):
    """Beyond a combined spread of 690, the denominator underflows in float64, too."""
    decoder, features = decoder_with_range(logit_range)
    queries = features[:, :N_MASKED]
    with torch.no_grad():
        for layer in (decoder.pair_query, decoder.attention.query):
            layer.bias.zero_()
        actual = decoder.train()(queries, features)
        evaluated = decoder.eval()(queries, features)
        decoder.method = "literal"
        expected = decoder(queries, features)
    # In evaluation, a batch with such pairs is computed in the literal form.
    torch.testing.assert_close(evaluated, expected, rtol=1e-9, atol=1e-9)
    wrong = ((actual - expected).abs() > 1e-10 * expected.abs().max()) & actual.isfinite()
    assert not wrong.any()
    a, b = logits(decoder, features)
    sums = (a[:, :, :, None] + b[:, :, None]).amax(-1)
    spreads = a.amax(-1)[..., None] + b.amax(-1)[:, :, None] - sums
    exact = (spreads < 690).all(dim=1)  # in every head
    assert actual[exact].isfinite().all()
    assert exact.all() == (logit_range == 300)


def test_training_beyond_the_exact_spread_ends_with_an_error():
    task = PARS(1000, 100, embed_dim=16, num_layers=1, num_heads=1)
    with torch.no_grad():
        task.decoder.attention.query.weight.mul_(1e6)
    net = PretrainingNet(task, max_epochs=1, batch_size=4, verbose=0)
    with pytest.raises(ValueError, match="nan"):
        net.fit(torch.randn(8, 1000))


def test_the_decoder_disables_autocast():
    decoder, features = decoder_with_range(30)
    decoder, features = decoder.float(), features.float()
    expected = decoder(features[:, :N_MASKED], features)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(decoder(features[:, :N_MASKED], features), expected)


@pytest.mark.slow
def test_torch_export_of_the_decoder():
    decoder = CrossAttentionDecoder(16, 2)
    y = torch.randn(2, 5, 16)
    exported = torch.export.export(decoder, (y[:, :3], y)).module()
    torch.testing.assert_close(exported(y[:, :3], y), decoder(y[:, :3], y))


@torch.no_grad()
def test_mlp_decoder_equals_an_mlp_on_every_pair():
    decoder = PairwiseMLPDecoder(8, hidden_dim=12)
    y = torch.randn(2, 4, 8)
    prediction = decoder(y, y)
    for j in range(4):
        for k in range(4):
            hidden = decoder.hidden(torch.cat([y[:, j], y[:, k]], dim=-1)).clamp_min(0)
            torch.testing.assert_close(prediction[:, j, k], decoder.head(hidden)[:, 0])
