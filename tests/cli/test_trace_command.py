"""tokenflock trace: JSON, table, report, comparison, and a sentence for everything that is wrong."""

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from interrupts import HEARING_SIGINT
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("transformers")

sys.path.insert(0, str(Path(__file__).parent.parent / "tracing"))
from real_parts import rxnmapper_folder, tiny_gpt2, tiny_llama

import tokenflock as flock
from tokenflock.cli import app

pytestmark = pytest.mark.xdist_group("trace-command")
REACTION = "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F"
COMMAND = str(Path(sys.executable).with_name("tokenflock"))


def tokenflock(*words):
    return CliRunner().invoke(app, ["trace", *map(str, words)])


def fails(*words):
    """The sentence on stderr of a request that is refused with exit code 2."""
    answer = tokenflock(*words)
    assert answer.exit_code == 2, answer.output
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    return answer.stderr


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A small decoder on disk, without a tokenizer, and a file of tokens for it."""
    folder = tmp_path_factory.mktemp("llama")
    tiny_llama().save_pretrained(folder)
    (folder / "ids.txt").write_text(" ".join(str(7 * i % 97) for i in range(12)) + "\n")
    return folder


def test_json_is_one_object_with_lists_per_layer():
    answer = tokenflock(rxnmapper_folder(), REACTION, "--split", "smiles", "--json")
    assert answer.exit_code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["model"]["family"] == "albert"
    assert len(found["tokens"]) == 56
    for name in ("mean_cosine", "clusters", "effective_rank", "norm"):
        assert len(found["layers"][name]) == 13
    assert found["layers"]["clusters"][0] == 56
    assert 0.05 < found["layers"]["mean_cosine"][0] < 0.13
    assert found["verdict"]["word"] == "spread"
    assert found["interventions"] == {}


def test_flags_reach_the_model():
    words = [rxnmapper_folder(), REACTION, "--split", "smiles", "--json"]
    flags = ["--no-mlp", "--repeat", 2, "--beta-scale", 0.5, "--start", "permuted", "--seed", 3]
    found = json.loads(tokenflock(*words, *flags).stdout)
    assert found["interventions"] == {
        "mlp": False, "repeat": 2, "beta_scale": 0.5, "start": "permuted", "seed": 3,
    }  # fmt: skip
    assert len(found["layers"]["mean_cosine"]) == 25
    assert found["verdict"]["word"] == "collapse"
    assert sum("outside the training regime" in note for note in found["notes"]) == 4


def test_out_holds_a_run_that_opens(llama, tmp_path):
    out = tmp_path / "deep" / "trace"
    answer = tokenflock(llama, "--tokens", llama / "ids.txt", "--states", "--out", out)
    assert answer.exit_code == 0, answer.stderr
    assert "verdict:" in answer.stdout
    run = flock.open(out)
    assert run.states.shape == (4, 12, 32)
    stored = json.loads((out / "summary.json").read_text())
    np.testing.assert_allclose(stored["layers"]["mean_cosine"], run.array("mean_cosine"))
    again = [llama, "--tokens", llama / "ids.txt", "--out", out]
    assert "exists" in fails(*again)
    (out / "notes.txt").write_text("mine")
    assert tokenflock(*again, "--overwrite").exit_code == 0
    assert (out / "notes.txt").read_text() == "mine"
    assert "states" not in flock.open(out)


def test_report_and_comparison(llama, tmp_path):
    full, bare = tmp_path / "full", tmp_path / "bare"
    words = [llama, "--tokens", llama / "ids.txt"]
    assert tokenflock(*words, "--report", "--out", full).exit_code == 0
    page = (full / "report.html").read_text()
    assert "verdict" in page.lower()
    assert len(list(full.glob("*.png"))) >= 6
    assert tokenflock(*words, "--no-mlp", "--out", bare).exit_code == 0
    answer = tokenflock("compare", full, bare, "--out", tmp_path / "both", "--json")
    assert answer.exit_code == 0, answer.stderr
    assert json.loads(answer.stdout)["words"]
    assert (tmp_path / "both" / "compare.html").is_file()
    answer = tokenflock("compare", full, bare, full, "--layers", "all")
    assert answer.exit_code == 0, answer.stderr
    assert "cosine C  clusters A  clusters B" in answer.stdout
    sentence = fails("compare", full, bare, tmp_path / "thrid")
    assert "thrid', and stored traces have been read already" in sentence
    assert "--tokens: stored traces" in fails("compare", full, bare, "--tokens", llama / "ids.txt")
    assert "needs at least two" in fails("compare", full)
    assert "there is no file or folder" in fails("compare", full, "bare", full)


def test_two_checkpoints_are_compared_on_the_same_tokens(llama, tmp_path):
    tiny_gpt2().save_pretrained(tmp_path / "gpt2")
    answer = tokenflock("compare", llama, tmp_path / "gpt2", "--tokens", llama / "ids.txt")
    assert answer.exit_code == 0, answer.stderr
    assert "Mean cosines of A and B first differ" in answer.stdout


def layers_of(table):
    """The first column of the rows: a number followed by a number."""
    return [
        int(layer)
        for layer in re.findall(r"^ *(\d+) +-?[\d.]+ ", table.split("\n- ")[0], flags=re.M)
    ]


def test_the_table_says_which_layers_it_leaves_out(llama):
    words = [llama, "--tokens", llama / "ids.txt", "--repeat", 6]
    some = tokenflock(*words)
    assert "14 of the layers 0 to 18 (0 is the embedding); all with --layers all or --json" in (
        " ".join(some.stdout.split())
    )
    every = layers_of(tokenflock(*words, "--layers", "all").stdout)
    assert every == list(range(19))
    named = tokenflock(*words, "--layers", "0,4-5").stdout
    assert layers_of(named) == [0, 4, 5]
    assert "3 of the layers 0 to 18" in named
    assert "layers as in 0,5,10-12; got 'x'" in fails(*words, "--layers", "x")
    assert "there is no layer 19" in " ".join(fails(*words, "--layers", "3-19").split())


def test_help_teaches():
    answer = tokenflock("--help")
    assert answer.exit_code == 0
    for word in ("--no-mlp", "--beta-scale", "--report", "compare", "Exit codes"):
        assert word in answer.stdout
    assert "compare" in tokenflock("compare", "--help").stdout


def bad_pickle(folder, marker):
    """A .bin whose unpickling would run a command."""

    class Bomb:
        def __reduce__(self):
            return os.system, (f"touch {marker}",)

    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"x": Bomb()}))


def test_every_bad_request_is_a_sentence_and_writes_nothing(llama, tmp_path):
    out = ["--out", tmp_path / "never"]
    tokens = ["--tokens", llama / "ids.txt", *out]
    assert "never downloads" in fails(tmp_path / "nowhere", "hello", *out)
    (tmp_path / "empty").mkdir()
    assert "config.json" in fails(tmp_path / "empty", "hello", *out)
    assert "--tokens" in fails(llama, "hello world", *out)
    assert "nothing to read" in fails(llama, *out)
    assert "not text and file" in fails(llama, "x", "--file", llama / "ids.txt", *out)
    assert "--split smiles" in fails(rxnmapper_folder(), REACTION, *out)
    assert "empty" in fails(rxnmapper_folder(), "  ", "--split", "smiles", *out)
    long = tmp_path / "long.txt"
    long.write_text(" ".join(["5"] * 80))
    sentence = fails(llama, "--tokens", long, *out)
    assert "64" in sentence
    assert "--truncate" in sentence
    assert "--window" in sentence
    assert "repeat must be" in fails(llama, *tokens, "--repeat", 0)
    assert "float32" in fails(llama, *tokens, "--precision", "int8")
    assert not (tmp_path / "never").exists()
    assert sorted(item.name for item in tmp_path.iterdir()) == ["empty", "long.txt"]


def test_damaged_weights_are_sentences(llama, tmp_path):
    tokens = ["--tokens", llama / "ids.txt", "--out", tmp_path / "never"]
    weights = (llama / "model.safetensors").read_bytes()
    for name, content in (("cut", weights[: len(weights) // 2]), ("noise", b"\xff" * 5000)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text((llama / "config.json").read_text())
        (folder / "model.safetensors").write_bytes(content)
        assert "safetensors" in fails(folder, *tokens)
    folder = tmp_path / "bomb"
    folder.mkdir()
    (folder / "config.json").write_text((llama / "config.json").read_text())
    bad_pickle(folder, tmp_path / "exploded")
    assert "pickle" in fails(folder, *tokens)
    assert not (tmp_path / "exploded").exists()
    assert not (tmp_path / "never").exists()


def test_windows_and_lines_give_bands(llama, tmp_path):
    long = tmp_path / "long.txt"
    long.write_text(" ".join(str(i % 97) for i in range(100)))
    found = json.loads(tokenflock(llama, "--tokens", long, "--window", 40, "--json").stdout)
    assert found["texts"] == 3
    band = found["bands"]["mean_cosine"]
    middle = np.asarray(found["layers"]["mean_cosine"])
    assert np.all(np.asarray(band["low"]) <= middle)
    assert np.all(middle <= np.asarray(band["high"]))
    cut = json.loads(tokenflock(llama, "--tokens", long, "--truncate", "--json").stdout)
    assert len(cut["tokens"]) == 64


def test_ctrl_c_leaves_nothing(llama, tmp_path):
    words = ["--tokens", llama / "ids.txt", "--repeat", "10000", "--out", tmp_path / "never"]
    process = subprocess.Popen(
        [*HEARING_SIGINT, COMMAND, "trace", llama, *words],
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert not any(tmp_path.iterdir())
