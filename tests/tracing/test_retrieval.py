"""The retrieval response: equal to transformers by hand, zero where causality says so, honest errors."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("transformers")

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))
from interrupts import HEARING_SIGINT
from real_parts import smollm_file, tiny_bert, tiny_gpt2, tiny_llama

import tokenflock as flock
from tokenflock.cli import app
from tokenflock.theory.kinetic import retrieval_profile
from tokenflock.tracing import Words
from tokenflock.tracing.retrieval import standard_error
from tokenflock.tracing.retrieval_files import THEORY, draw_retrieval
from tokenflock.tracing.retrieval_narrative import (
    contrast,
    errors_needed,
    part_response,
    parts,
    plain_words,
    summary,
)
from tokenflock.tracing.retrieval_prompts import make_prompts

pytestmark = pytest.mark.xdist_group("trace-command")
N = 12
# A direction carries 1e-7 of float32 (RMSNorm computes in it) in each of 32 coordinates; squared.
ROUNDING = 32 * 1e-14


def tokens(seed, n=N):
    ids = [int(i) for i in np.random.default_rng(seed).integers(0, 97, n)]
    return Words(ids=ids, labels=[str(i) for i in ids], text="")


PROMPTS = [tokens(1), tokens(2), tokens(3)]


@pytest.fixture(scope="module")
def llama():
    return tiny_llama()


@pytest.fixture(scope="module")
def found(llama):
    return flock.tracing.retrieval_response(llama, words=PROMPTS, positions=6, draws=5, sets=2)


# --- what it is ---


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def by_hand(model, ids, place, drawn, late, gain):
    """Response and covariance with nothing but transformers and numpy."""
    import torch

    copies = np.repeat(np.asarray([ids]), len(drawn), axis=0)
    copies[:, place - 1] = drawn
    with torch.no_grad():
        states = model.model(torch.tensor(copies), output_hidden_states=True).hidden_states
    states = [state.double().numpy() for state in states]
    states[-1] = states[-1] / gain
    start = unit(states[0][:, place - 1])
    reads = [unit(state[:, late - 1]) for state in states]
    response = [np.trace(np.cov(x.T)) for x in reads]
    both = [np.cov(x.T, start.T)[: x.shape[1], x.shape[1] :] for x in reads]
    return response, [late * np.trace(c) for c in both]


def test_equals_plain_transformers(llama, found):
    gain = llama.model.norm.weight.detach().double().numpy()
    checkpoint = flock.tracing.load.open_checkpoint(llama)
    prompts = make_prompts(checkpoint, None, PROMPTS, None, None, None, "vocabulary", 0)
    for prompt, number, place in ((0, 0, 1), (1, 1, 5), (2, 0, N)):
        drawn = prompts.replacements(prompt, number, 5)
        assert len(set(drawn)) == 5
        response, covariance = by_hand(llama, PROMPTS[prompt].ids, place, drawn, N, gain)
        here = found.isel(prompt=prompt, set=number).sel(position=place)
        np.testing.assert_allclose(here.response_samples, response, rtol=1e-4, atol=ROUNDING)
        np.testing.assert_allclose(here.covariance_samples, covariance, rtol=1e-4, atol=1e-5)


def test_labels_of_the_result(found):
    assert found.response.dims == ("layer", "position")
    assert found.sizes == {"prompt": 3, "set": 2, "layer": 4, "position": 6}
    np.testing.assert_allclose(found.s0, found.position / N)
    assert found.position.values[[0, -1]].tolist() == [1, N]
    np.testing.assert_allclose(found.response, found.response_samples.mean(("prompt", "set")))


def test_before_the_first_layer_a_token_knows_only_itself(found):
    """No layer yet: the read position answers to its own token alone, and N times fully."""
    start = found.sel(layer=0)
    # Equal vectors minus their mean leave a rounding of 1e-16, squared.
    assert np.all(start.response.values[:-1] < 1e-30)
    assert start.response.values[-1] > 0.1
    np.testing.assert_allclose(start.covariance.values[-1], N * start.response.values[-1])


def test_without_attention_no_layer_carries_anything(llama):
    change = flock.tracing.Interventions(attention=False)
    got = flock.tracing.retrieval_response(
        llama, words=PROMPTS[:1], positions=4, draws=3, change=change
    )
    assert np.all(got.response.values[:, :-1] < ROUNDING)
    assert np.all(got.response.values[:, -1] > 0.01)


def test_causality_later_tokens_change_nothing(llama):
    got = flock.tracing.retrieval_response(
        llama, words=PROMPTS[:2], positions=[1, 4, 6, 7, 9, N], read=6, draws=4, sets=1
    )
    later = got.position.values > 6
    assert np.all(np.abs(got.response.values[:, later]) < ROUNDING)
    assert np.all(got.response.values[1:, ~later] > 1e-6)
    assert float(got.s0[2]) == 1.0


def test_all_of_a_pool_leaves_nothing_to_chance(llama):
    """With every token of the pool drawn once the seed only shuffles; fewer draws are right on average."""
    options = {"words": PROMPTS[:1], "positions": [3, N], "pool": "prompts"}
    size = len(set(PROMPTS[0].ids))
    exact = [
        flock.tracing.retrieval_response(llama, draws=size, sets=1, seed=seed, **options)
        for seed in (0, 5)
    ]
    np.testing.assert_allclose(exact[0].response, exact[1].response, rtol=1e-4)
    some = flock.tracing.retrieval_response(llama, draws=3, sets=40, **options)
    for name in ("response", "covariance"):
        gap = np.abs(some[name] - exact[0][name]).values[1:]
        assert np.all(gap <= 4 * some[f"{name}_error"].values[1:])


def test_learned_positions_and_random_prompts_work_too():
    got = flock.tracing.retrieval_response(tiny_gpt2(), random=2, length=10, positions=4, draws=3)
    assert got.attrs["source"] == "random"
    assert np.all(got.response.values[1:] > 0)
    again = flock.tracing.retrieval_response(tiny_gpt2(), random=2, length=10, positions=4, draws=3)
    np.testing.assert_array_equal(got.response, again.response)


def test_standard_errors_are_over_prompts_then_sets_then_unknown():
    random = np.random.default_rng(0)
    values = random.normal(size=(400, 3, 1)) + random.normal(size=(400, 1, 1))
    # Variance of a prompt's mean: 1 of the prompt, 1/3 of its sets.
    assert standard_error(values)[0] == pytest.approx(np.sqrt((1 + 1 / 3) / 400), rel=0.15)
    assert standard_error(values[:1])[0] == pytest.approx(values[0].std(ddof=1) / np.sqrt(3))
    assert np.isnan(standard_error(values[:1, :1])[0])


# --- what it is said to show ---


def test_parts_cover_every_position_once(found):
    masks = np.stack(list(parts(found).values()))
    np.testing.assert_array_equal(masks.sum(axis=0), 1)


def shaped(found, weights):
    """The same result with responses made by hand, different from prompt to prompt by one percent."""
    wobble = 1 + 0.01 * np.arange(3)[:, None, None, None]
    samples = np.ones_like(found.response_samples) * wobble * np.asarray(weights)
    return found.assign(response_samples=(found.response_samples.dims, samples))


def test_primacy_recency_and_the_first_token_are_told_apart(found):
    assert [int(mask.sum()) for mask in parts(found).values()] == [1, 1, 2, 1, 1]
    u_shape = shaped(found, [50.0, 2.0, 1.0, 1.0, 3.0, 90.0])
    early, late, first = (contrast(u_shape, name, 3) for name in ("early", "recent", "first"))
    assert (early.answer, late.answer, first.answer) == ("yes", "yes", "yes")
    assert early.ratio == pytest.approx(2.0)
    assert late.ratio == pytest.approx(3.0)
    assert part_response(u_shape, "own", 3).response == pytest.approx(90.9)
    fallen = shaped(found, [1.0, 0.5, 1.0, 1.0, 1.0, 9.0])
    assert contrast(fallen, "early", 3).answer == "no"
    assert contrast(fallen, "recent", 3).answer == "unclear"
    assert errors_needed(2) == pytest.approx(12.706, abs=1e-3)
    assert errors_needed(8) == pytest.approx(2.3646, abs=1e-4)


@pytest.mark.parametrize("shape", [(1, 2), (3, 1)])
def test_noise_is_seen_in_one_case_of_twenty(shape):
    """Normal noise in 2000 layers: 5 % of answers, within 4 standard deviations of that count."""
    import xarray as xr

    noise = np.random.default_rng(8).normal(size=(*shape, 2000, 4))
    axes = ("prompt", "set", "layer", "position")
    place = {"position": [1, 2, 5, 10], "s0": ("position", np.array([1, 2, 5, 10]) / 10)}
    data = xr.Dataset({"response_samples": (axes, 1 + noise)}, place, {"read": 10})
    answers = [contrast(data, "early", layer).answer for layer in range(2000)]
    seen = sum(answer != "unclear" for answer in answers)
    assert seen == pytest.approx(100, abs=4 * np.sqrt(95))


def test_words_say_what_it_is_and_is_not(found):
    said = " ".join(plain_words(found))
    assert "no check of the theorem" in said
    assert "standard error" in said
    content = json.dumps(summary(found), allow_nan=False)
    assert "2605.09213" in content


def test_picture_shows_the_theory_beside_it_as_another_model(found):
    """P2-6: the curve drawn for t = 1 is S_t with beta = lambda = 1, M = 8."""
    figure = draw_retrieval(found)
    measured, _, theory = figure.axes
    assert "not a check" in measured.get_title()
    assert "another model" in theory.get_title()
    curve = next(line for line in theory.lines if "t=1$" in line.get_label())
    x, y = curve.get_data()
    golden = {0.25: 1.195470498, 0.5: 1.265523693, 0.75: 1.422820574, 0.95: 1.590771759}
    for s0, value in golden.items():
        assert np.interp(s0, x, y) == pytest.approx(value, abs=1e-4)
        assert float(retrieval_profile(s0, t=1.0, **THEORY)) == pytest.approx(value, abs=1e-8)


# --- wrong usage ---


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"draws": 1}, "2 or more replacements"),
        ({"sets": 0}, "at least one set"),
        ({"read": 1}, "between 2 and 12"),
        ({"read": 13}, "between 2 and 12"),
        ({"read": 5.5}, "read must be a whole number"),
        ({"seed": -1}, "seed must be a whole number, at least 0"),
        ({"draws": 2.5}, "draws must be a whole number"),
        ({"positions": [0, 3]}, "from 1 to 12"),
        ({"positions": [1.7, 5.9]}, "whole numbers from 1 to 12"),
        ({"positions": 4.5}, "positions must be a whole number"),
        ({"positions": 1}, "2 or more positions"),
        ({"length": 40}, "use --length 12"),
        ({"length": 4}, "needs 8 or more"),
        ({"pool": "letters"}, "vocabulary, prompts"),
        ({"pool": "prompts", "draws": 90}, "use fewer draws"),
        ({"random": 2}, "give one of text, words or random"),
        ({"change": flock.tracing.Interventions(start="random")}, "starts elsewhere"),
    ],
)
def test_wrong_usage_is_a_sentence(llama, options, sentence):
    with pytest.raises(flock.errors.InputError, match=sentence):
        flock.tracing.retrieval_response(llama, words=PROMPTS, **options)


def test_a_model_that_is_not_causal_is_refused():
    with pytest.raises(flock.errors.InputError, match="not causal"):
        flock.tracing.retrieval_response(tiny_bert(), words=PROMPTS)


def test_prompts_longer_than_the_context_are_refused(llama):
    with pytest.raises(flock.errors.InputError, match="context holds 64"):
        flock.tracing.retrieval_response(llama, random=1, length=80)


# --- the command ---


@pytest.fixture(scope="module")
def folder(llama, tmp_path_factory):
    """The decoder on disk, without a tokenizer, and a file of two prompts."""
    place = tmp_path_factory.mktemp("retrieval")
    llama.save_pretrained(place)
    rows = [" ".join(map(str, prompt.ids)) for prompt in PROMPTS[:2]]
    (place / "ids.txt").write_text("\n".join(rows) + "\n")
    return place


def command(*words):
    return CliRunner().invoke(app, ["trace", "retrieval", *map(str, words)])


def refused(*words):
    answer = command(*words)
    assert answer.exit_code == 2, answer.output
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    return answer.stderr


def test_command_prints_and_writes(folder, tmp_path):
    out = tmp_path / "deep" / "r"
    few = ["--tokens", folder / "ids.txt", "--positions", 6, "--draws", 3, "--sets", 1]
    answer = command(folder, *few, "--out", out)
    assert answer.exit_code == 0, answer.stderr
    assert "no check of the theorem" in answer.stdout.replace("\n", " ")
    names = {item.name for item in out.iterdir()}
    assert names == {"retrieval.zarr", "retrieval.png", "summary.json"}
    stored = json.loads((out / "summary.json").read_text())
    printed = json.loads(command(folder, *few, "--json").stdout)
    assert printed["response"] == stored["response"]
    assert np.shape(printed["response"]) == (4, 6)
    assert printed["primacy"][3]["answer"] in ("yes", "no", "unclear")
    assert "exists" in refused(folder, *few, "--out", out)
    assert command(folder, *few, "--out", out, "--overwrite").exit_code == 0


def test_command_refuses_in_a_sentence(folder, tmp_path):
    out = ["--out", tmp_path / "never"]
    assert "no tokenizer" in refused(folder, "some text", *out)
    assert "nothing to read" in refused(folder, *out)
    assert "not both" in refused(folder, "x", "--random", 2, *out)
    assert "needs 8" in refused(folder, "--random", 1, "--length", 3, *out)
    tiny_bert().save_pretrained(tmp_path / "bert")
    assert "not causal" in refused(tmp_path / "bert", "--random", 1, "--length", 9, *out)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert "refusing" in refused(folder, "--random", 1, "--out", tmp_path / "mine", "--overwrite")
    assert "--seed" in refused(folder, "--random", 1, "--seed", "-1", *out)
    assert not (tmp_path / "never").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no files")
def test_a_place_that_takes_no_folder_is_refused_at_once(folder):
    """Before the model is read: a folder without one is not reached."""
    assert "cannot write /proc/none/here" in refused(folder / "nothing", "--out", "/proc/none/here")


def test_help_says_what_is_measured():
    said = command("--help").stdout
    for word in ("lost in the", "--random", "--draws", "not a check"):
        assert word in said


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_of_a_retrieval(folder, tmp_path):
    tool = str(Path(sys.executable).with_name("tokenflock"))
    words = ["--random", "2000", "--length", "60", "--out", tmp_path / "never"]
    process = subprocess.Popen(
        [*HEARING_SIGINT, tool, "trace", "retrieval", folder, *words],
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(10)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert not any(tmp_path.iterdir())


# --- a trained model ---


@pytest.mark.slow
def test_smollm_knows_its_own_token_best_and_its_first_token_apart():
    """On eight reviews (docs/trace.md): own over others 15 at the end, first over middle 1.7 to 2.4.

    One short text must show the same signs.
    """
    text = (
        "The old lighthouse keeper walked slowly down to the harbour every morning, carrying a small "
        "brass lamp and a letter that nobody had ever answered, and he told the fishermen stories."
    )
    got = flock.tracing.retrieval_response(
        str(smollm_file()), text, length=32, positions=7, draws=4, sets=2
    )
    last = got.response.values[-1]
    assert last[-1] > 2 * last[:-1].max()
    middle = got.response.values[5:16, 2:5].mean()
    assert got.response.values[5:16, 0].mean() > middle
    assert np.all(got.response.values[0, :-1] < 1e-12)
