"""The original model runs: with hooks and without it gives the same bits."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from real_parts import TINY, tiny_albert, tiny_bert, tiny_gpt2, tiny_llama, tiny_vit  # noqa: E402

from tokenflock.tracing.architecture import FAMILIES as KNOWN  # noqa: E402
from tokenflock.tracing.architecture import Architecture  # noqa: E402
from tokenflock.tracing.hooks import Listener, watching  # noqa: E402
from tokenflock.tracing.interventions import Interventions, intervened  # noqa: E402
from tokenflock.tracing.state_statistics import sphere_tokens  # noqa: E402


def ids(n=11):
    return {"input_ids": torch.arange(n)[None] * 7 % 97}


def picture():
    return {"pixel_values": torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))}


def tiny_relative(name, **sizes):
    """A random model of a family whose layers are named as those of BERT or Llama are."""
    settings = {**TINY, "num_hidden_layers": 2, "initializer_range": 0.3, **sizes}
    config = getattr(transformers, f"{name}Config")(**settings)
    torch.manual_seed(0)
    head = "ForMaskedLM" if "BERT" in name.upper() else "ForCausalLM"
    return getattr(transformers, f"{name}{head}")(config).eval()


def distilbert():
    return tiny_relative("DistilBert", dim=32, n_heads=4, n_layers=2, hidden_dim=48)


FAMILIES = {
    "albert": (tiny_albert, ids),
    "bert": (tiny_bert, ids),
    "llama": (tiny_llama, ids),
    "gpt2": (tiny_gpt2, ids),
    "vit": (tiny_vit, picture),
    "roberta": (lambda: tiny_relative("Roberta"), ids),
    "distilbert": (distilbert, ids),
    "mistral": (lambda: tiny_relative("Mistral", num_key_value_heads=2, sliding_window=4), ids),
    "qwen2": (lambda: tiny_relative("Qwen2", num_key_value_heads=2), ids),
}
each_family = pytest.mark.parametrize("name", FAMILIES)


def test_the_table_of_families_is_tested():
    assert FAMILIES.keys() == KNOWN.keys()


class Tape(Listener):
    """Everything that can be heard, kept."""

    def __init__(self):
        self.states, self.affine, self.calls, self.updates = [], [], [], []

    def state(self, index, hidden, affine):
        assert index == len(self.states)
        self.states.append(hidden.clone())
        self.affine.append(affine)

    def attention(self, layer, call):
        self.calls.append((layer, call))

    def update(self, layer, part, residual, update):
        self.updates.append((layer, part, residual.clone(), update.clone()))


def made(name):
    maker, inputs = FAMILIES[name]
    return maker(), inputs()


def run(model, inputs, **keywords):
    if hasattr(model.config, "use_cache"):
        keywords["use_cache"] = False  # a looped layer would read its own earlier keys
    with torch.no_grad():
        return model(**inputs, **keywords)


@each_family
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_watching_changes_no_bit(name, attention):
    model, inputs = made(name)
    model.set_attn_implementation(attention)
    plain = run(model, inputs, output_hidden_states=True)
    tape = Tape()
    with watching(Architecture.of(model), tape):
        watched = run(model, inputs)
    again = run(model, inputs)
    assert torch.equal(watched.logits, plain.logits)
    assert torch.equal(again.logits, plain.logits)
    assert len(tape.states) == len(plain.hidden_states)
    for ours, theirs in zip(tape.states, plain.hidden_states, strict=True):
        assert torch.equal(ours, theirs)
    assert [layer for layer, _ in tape.calls] == list(range(1, len(tape.states)))


@each_family
def test_attention_is_what_the_model_computes(name):
    model, inputs = made(name)
    model.set_attn_implementation("eager")
    weights = run(model, inputs, output_attentions=True).attentions
    tape = Tape()
    with watching(Architecture.of(model), tape):
        run(model, inputs)
    for (_, call), expected in zip(tape.calls, weights, strict=True):
        key = call.key.repeat_interleave(call.query.shape[1] // call.key.shape[1], dim=1)
        scores = call.query @ key.transpose(2, 3) * call.scaling
        scores = scores if call.mask is None else scores + call.mask
        torch.testing.assert_close(scores.softmax(-1), expected, rtol=0, atol=1e-6)


@each_family
def test_updates_add_up_to_the_layer(name):
    """Pre-LN: state + attention + mlp is the next state; post-LN: so it is inside the last norm."""
    model, inputs = made(name)
    architecture, tape = Architecture.of(model), Tape()
    with watching(architecture, tape):
        run(model, inputs)
    for first, second in zip(tape.updates[::2], tape.updates[1::2], strict=True):
        layer, (_, part, residual, attention) = first[0], first
        assert (part, second[1]) == ("attention", "mlp")
        assert torch.equal(residual, tape.states[layer - 1])
        after = second[2] + second[3]
        if architecture.scheme == "pre":
            torch.testing.assert_close(second[2], residual + attention, rtol=0, atol=0)
        if architecture.scheme == "post":
            found = torch.nn.functional.layer_norm(after, after.shape[-1:])
            expected = sphere_tokens(tape.states[layer][0], tape.affine[layer])
            found = sphere_tokens(found[0], None)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
        elif layer < len(tape.states) - 1 or name == "vit":
            torch.testing.assert_close(after, tape.states[layer], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["albert", "bert", "llama", "gpt2"])
def test_the_affine_map_leads_to_the_sphere_exactly(name):
    """Undoing gain and bias gives norm sqrt(d), and for LayerNorm mean zero, before normalising."""
    model, inputs = made(name)
    architecture, tape = Architecture.of(model), Tape()
    with watching(architecture, tape):
        run(model, inputs)
    affine = tape.affine[-1]
    assert affine is not None
    bias = 0.0 if affine.bias is None else affine.bias
    undone = (tape.states[-1][0] - bias).double() / affine.gain.double()
    lengths = undone.norm(dim=-1) / architecture.width**0.5
    torch.testing.assert_close(lengths, torch.ones_like(lengths), rtol=0, atol=1e-4)
    if name != "llama":
        assert float(undone.mean(dim=-1).abs().max()) < 1e-6


def test_an_outer_watch_survives_an_inner_one():
    class Count(Listener):
        calls = 0

        def attention(self, layer, call):
            self.calls += 1

    model, inputs = made("bert")
    outer, inner = Count(), Count()
    architecture = Architecture.of(model)
    with watching(architecture, outer):
        with watching(architecture, inner):
            run(model, inputs)
        run(model, inputs)
    assert (inner.calls, outer.calls) == (3, 6)


def test_hooks_are_gone_after_an_error():
    model, inputs = made("gpt2")
    before = run(model, inputs).logits

    class Broken(Listener):
        def attention(self, layer, call):
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"), watching(Architecture.of(model), Broken()):
        run(model, inputs)
    assert torch.equal(run(model, inputs).logits, before)
    assert not any(part._forward_hooks for part in model.modules())


CHANGES = {
    "no mlp": Interventions(mlp=False),
    "no attention": Interventions(attention=False),
    "repeat": Interventions(repeat=3),
    "beta": Interventions(beta_scale=0.5),
    "values": Interventions(swap_values="identity"),
    "random": Interventions(start="random", seed=3),
}


@each_family
@pytest.mark.parametrize("which", CHANGES)
def test_interventions_act_and_are_undone(name, which):
    model, inputs = made(name)
    architecture = Architecture.of(model)
    depth, plain = architecture.passes, run(model, inputs)
    tape = Tape()
    with intervened(architecture, CHANGES[which], tape):
        changed = run(model, inputs)
    assert not torch.allclose(changed.logits, plain.logits, atol=1e-3)
    assert torch.equal(run(model, inputs).logits, plain.logits)
    assert architecture.passes == depth
    assert len(tape.states) == 1 + depth * CHANGES[which].repeat
    if which == "no mlp":
        assert all(not update.any() for _, part, _, update in tape.updates if part == "mlp")
    if which == "no attention":
        assert all(not update.any() for _, part, _, update in tape.updates if part == "attention")


def test_a_repeated_stack_is_the_stack_on_its_own_output():
    """Pre-LN blocks have no positions of their own in ViT: two rounds are two forward passes."""
    model, inputs = made("vit")
    architecture, tape, second = Architecture.of(model), Tape(), Tape()
    with intervened(architecture, Interventions(repeat=2), tape):
        run(model, inputs)
    hidden = tape.states[2]
    for layer in architecture.layers:
        with torch.no_grad():
            hidden = layer(hidden)
        second.states.append(hidden)
    torch.testing.assert_close(tape.states[3:], second.states, rtol=0, atol=1e-6)


def test_identity_values_move_tokens_by_the_average_of_the_heads():
    model, inputs = made("bert")
    architecture, tape = Architecture.of(model), Tape()
    model.set_attn_implementation("eager")
    with intervened(architecture, Interventions(swap_values="identity"), tape):
        weights = run(model, inputs, output_attentions=True).attentions
    for layer, part, residual, update in tape.updates:
        if part == "attention":
            expected = weights[layer - 1].mean(dim=1) @ residual
            torch.testing.assert_close(update, expected, rtol=0, atol=1e-5)


def test_identity_values_with_grouped_heads():
    model, inputs = made("llama")
    architecture, tape = Architecture.of(model), Tape()
    seen = {}
    norm = architecture.layers[0].input_layernorm
    norm.register_forward_hook(lambda module, args, output: seen.setdefault("x", output))
    model.set_attn_implementation("eager")
    with intervened(architecture, Interventions(swap_values="identity"), tape):
        weights = run(model, inputs, output_attentions=True).attentions
    expected = weights[0].mean(dim=1) @ seen["x"]
    torch.testing.assert_close(tape.updates[0][3], expected, rtol=0, atol=1e-5)


def test_beta_zero_is_the_plain_average():
    model, inputs = made("albert")
    model.set_attn_implementation("eager")
    with intervened(Architecture.of(model), Interventions(beta_scale=0.0), Listener()):
        weights = run(model, inputs, output_attentions=True).attentions
    assert all(torch.allclose(each, torch.full_like(each, 1 / 11)) for each in weights)


def test_a_random_start_keeps_the_norms():
    model, inputs = made("gpt2")
    architecture, plain, random = Architecture.of(model), Tape(), Tape()
    with watching(architecture, plain):
        run(model, inputs)
    with intervened(architecture, CHANGES["random"], random):
        run(model, inputs)
    torch.testing.assert_close(
        random.states[0].norm(dim=-1), plain.states[0].norm(dim=-1), rtol=1e-5, atol=0
    )
    cosines = torch.nn.functional.cosine_similarity(random.states[0], plain.states[0], dim=-1)
    assert float(cosines.abs().mean()) < 0.4


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"repeat": 0}, "repeat must be a whole number from 1"),
        ({"beta_scale": float("nan")}, "beta-scale must be a finite number"),
        ({"beta_scale": -1.0}, "beta-scale must be a finite number"),
        ({"start": "nowhere"}, "start must be one of text, random, permuted"),
        ({"swap_values": "identity", "attention": False}, "choose one"),
    ],
)
def test_impossible_interventions_are_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        Interventions(**settings)
