"""From text to tokens: every piece accounted for, unknown text refused, windows that cover it all."""

import shutil

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from hypothesis import given
from hypothesis import strategies as st
from real_parts import minilm_folder, rxnmapper_folder, tiny_bert, tiny_gguf, tiny_gpt2, tiny_llama

from tokenflock.errors import InputError
from tokenflock.tracing import tokenise as module
from tokenflock.tracing.load import open_checkpoint
from tokenflock.tracing.tokenise import Words, encode, fit, limit, read_texts, read_tokens
from tokenflock.tracing.vocabulary import cut, vocabulary

REACTION = "CC(=O)OC1=CC=CC=C1C(=O)O.[Na+].[OH-]>>OC(=O)c1ccccc1O.Br/C=C\\Cl~[C@@H]%10"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "quick", "fox", "##es", "run", "1"]


@pytest.fixture(scope="module")
def albert():
    return open_checkpoint(rxnmapper_folder())


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory):
    """A BERT that ships vocab.txt only, which its own tokenizer can read."""
    folder = tmp_path_factory.mktemp("bert")
    tiny_bert().save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    return folder


@pytest.fixture(scope="module")
def bert(bert_folder):
    return open_checkpoint(bert_folder)


@pytest.fixture(scope="module")
def silent():
    return open_checkpoint(tiny_gpt2())


def refusal(action, *arguments, **keywords):
    with pytest.raises(InputError) as caught:
        action(*arguments, **keywords)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


# --- reaction SMILES with vocab.txt alone ---


def test_a_reaction_is_cut_without_loss_and_framed(albert):
    found = encode(albert, REACTION, split="smiles")
    assert "".join(found.labels[1:-1]) == REACTION
    assert (found.labels[0], found.labels[-1]) == ("[CLS]", "[SEP]")
    assert (found.prefix, found.suffix, found.ids[0], found.ids[-1]) == (1, 1, 12, 13)
    assert found.labels.count(">>") == 1
    lines = (rxnmapper_folder() / "vocab.txt").read_text().split("\n")
    assert [lines[i] for i in found.ids] == found.labels
    assert encode(albert, REACTION, split="smiles", special=False).ids == found.ids[1:-1]


def test_every_piece_of_the_vocabulary_is_reached(albert):
    known = vocabulary(albert)
    assert len(known) == 591
    for piece in known:
        assert cut(f"C{piece}C", "smiles") == ["C", piece, "C"]


def test_the_automatic_tokenizer_is_refused_and_the_way_out_named(albert):
    assert albert.tokenizer is not None
    sentence = refusal(encode, albert, REACTION)
    assert "1 of 1 tokens are unknown" in sentence
    assert "--split smiles" in sentence
    assert "vocab.txt" in sentence


def test_a_fifth_of_unknown_pieces_is_the_border(albert):
    accepted = encode(albert, "CCCCX", split="smiles")
    assert accepted.labels == ["[CLS]", "C", "C", "C", "C", "[UNK]", "[SEP]"]
    sentence = refusal(encode, albert, "CCCXC CX", split="smiles")
    assert "2 of 7 tokens" in sentence
    assert "'X'" in sentence


def test_text_between_matches_is_never_lost():
    assert cut("ab 12 cd3", r"[0-9]+") == ["ab", "12", "cd", "3"]
    assert cut("a-b", r"(a)|(b)") == ["a", "-", "b"]
    assert cut("abc", r"x*") == ["a", "b", "c"]
    assert "neither built in" in refusal(cut, "a", "(")


@given(st.text(alphabet="CNOcn()=#[]+-@%0123456789>.Br l\\/", max_size=40))
def test_cutting_keeps_every_visible_character(text):
    assert "".join(cut(text, "smiles")).replace(" ", "") == text.replace(" ", "")


# --- the checkpoint's own tokenizer ---


def test_the_own_tokenizer_is_used_and_its_special_tokens_counted(bert):
    found = encode(bert, "the quick foxes run")
    assert found.labels == ["[CLS]", "the", "quick", "fox", "##es", "run", "[SEP]"]
    assert found.ids == [2, 5, 6, 7, 8, 9, 3]
    assert (found.prefix, found.suffix) == (1, 1)
    assert encode(bert, "the fox", special=False).ids == [5, 7]


def test_unknown_words_are_counted_without_special_tokens(bert):
    assert encode(bert, "the quick fox run zebra").labels.count("[UNK]") == 1
    sentence = refusal(encode, bert, "the quick zebra run")
    assert "1 of 4 tokens" in sentence
    assert "'zebra'" in sentence


def test_a_byte_level_tokenizer_knows_everything(tmp_path):
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    tiny_gguf(tmp_path / "tiny.gguf")
    found = encode(open_checkpoint(tmp_path / "tiny.gguf"), "abc")
    assert found.labels == ["a", "b", "c"]
    assert (found.prefix, found.suffix) == (0, 0)


def test_a_model_without_tokenizer_names_the_ways_out(silent):
    sentence = refusal(encode, silent, "hello")
    assert "--tokens" in sentence
    assert "--split" in sentence
    assert "--split needs a vocabulary" in refusal(encode, silent, "hello", split="l+")


def test_a_tokenizer_larger_than_its_model_is_a_sentence(bert_folder, tmp_path):
    folder = tmp_path / "grown"
    shutil.copytree(bert_folder, folder)
    (folder / "vocab.txt").write_text("\n".join([*PIECES, *(f"w{i}" for i in range(99))]) + "\n")
    grown = open_checkpoint(folder)
    assert "does not fit its model: the id 109" in refusal(encode, grown, "the w98")


@pytest.mark.parametrize("text", ["", "  \n\t", "\udcff bad"])
def test_texts_that_are_none(bert, text):
    assert "the text is" in refusal(encode, bert, text)


# --- files ---


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_texts_one_per_line_or_whole(tmp_path):
    path = write(tmp_path / "t.txt", b"\xef\xbb\xbfone line\r\n\n  \nsecond \xe2\x80\xa8 line\n")
    assert read_texts(path) == ["one line", "second \u2028 line"]
    assert len(read_texts(path, lines=False)) == 1


def test_bad_text_files_are_sentences(tmp_path, monkeypatch):
    assert "there is no file" in refusal(read_texts, tmp_path / "none.txt")
    assert "directory" in refusal(read_texts, tmp_path)
    for lines in (True, False):
        assert "no text" in refusal(read_texts, write(tmp_path / "e", " \n\n"), lines=lines)
    assert "byte 2" in refusal(read_texts, write(tmp_path / "b", b"ab\xff\xfe"))
    monkeypatch.setattr(module, "TEXTS_LIMIT", 3)
    assert "4 texts, more than 3" in refusal(read_texts, write(tmp_path / "m", "a\n" * 4))
    monkeypatch.setattr(module, "BYTES_LIMIT", 2**20)
    assert "1 MiB" in refusal(read_texts, write(tmp_path / "l", "a" * (2**20 + 1)))


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        ("5 6 7\n\n9 9\n", [[5, 6, 7], [9, 9]]),
        ("[CLS] the 1\n1 1", [[2, 5, 10], [10, 10]]),
        ("[5, 6]\n[7, 9]\n", [[5, 6], [7, 9]]),
        ("[5, 6]", [[5, 6]]),
        ('[["the", "1"], [1, 2]]', [[5, 10], [1, 2]]),
    ],
)
def test_tokens_as_ids_strings_or_json(bert, tmp_path, content, ids):
    found = read_tokens(bert, write(tmp_path / "tokens", content))
    assert [each.ids for each in found] == ids
    assert [each.labels for each in found] == [[PIECES[i] for i in row] for row in ids]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("5 97", "text 1: the id 97 is not in the model's vocabulary of 97 tokens (0 to 96)"),
        ("5 5\n-1 5", "text 2: the id -1"),
        ("the zebra", "'zebra' is not in its 11 tokens"),
        ("[5, 2.5]", "got 2.5"),
        ("[5, true]", "got True"),
        ("[[5], []]", "there are no tokens"),
        ("[]", "holds no tokens"),
        ("\n", "holds no tokens"),
    ],
)
def test_bad_tokens_are_sentences(bert, tmp_path, content, says):
    assert says in refusal(read_tokens, bert, write(tmp_path / "tokens", content))


def test_ids_need_no_tokenizer_but_strings_do(silent, tmp_path):
    (found,) = read_tokens(silent, write(tmp_path / "ids", "3 96"))
    assert (found.ids, found.labels) == ([3, 96], ["3", "96"])
    assert "lacks" in refusal(read_tokens, silent, write(tmp_path / "s", "a b"))


# --- length ---


@pytest.mark.parametrize("make", [tiny_bert, tiny_gpt2, tiny_llama])
def test_the_limit_is_the_configured_context(make):
    assert limit(open_checkpoint(make())) == 64


@pytest.mark.parametrize("padding", [1, 3])
def test_positions_of_roberta_start_behind_the_padding(padding):
    import transformers

    config = transformers.RobertaConfig(
        vocab_size=97,
        hidden_size=32,
        num_attention_heads=4,
        num_hidden_layers=1,
        intermediate_size=48,
        max_position_embeddings=20,
        pad_token_id=padding,
    )
    model = transformers.RobertaModel(config)
    most = limit(open_checkpoint(model))
    assert most == 20 - padding - 1
    model(torch.full((1, most), 7))
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, most + 1), 7))


def test_a_module_without_configuration_has_no_limit():
    assert limit(open_checkpoint(torch.nn.Linear(2, 2))) is None


def line(count, prefix=1, suffix=1):
    ids = list(range(count))
    return Words(ids, [str(i) for i in ids], "text", prefix, suffix)


def test_a_text_that_fits_is_untouched():
    assert fit(line(10), 10) == [line(10)]
    assert fit(line(10), None) == [line(10)]


def test_a_long_text_needs_a_decision():
    sentence = refusal(fit, line(11), 10)
    for part in ("11 tokens", "holds 10", "--truncate", "--window"):
        assert part in sentence
    (cut_short,) = fit(line(11), 10, truncate=True)
    assert cut_short.ids == [*range(9), 10]
    assert cut_short.labels == [str(i) for i in cut_short.ids]


@given(
    count=st.integers(2, 60),
    window=st.integers(3, 20),
    prefix=st.integers(0, 1),
    suffix=st.integers(0, 1),
)
def test_windows_cover_the_text_in_order(count, window, prefix, suffix):
    count += prefix + suffix
    whole = line(count, prefix, suffix)
    found = fit(whole, 20, window=window)
    first, last = whole.ids[:prefix], whole.ids[count - suffix :]
    covered = []
    for each in found:
        assert 2 <= len(each) <= window
        assert each.ids[:prefix] == first
        assert each.ids[len(each) - suffix :] == last
        inner = each.ids[prefix : len(each) - suffix]
        assert inner == list(range(inner[0], inner[0] + len(inner)))
        covered += [i for i in inner if i not in covered]
    assert covered == whole.ids[prefix : count - suffix]
    assert sum(len(each) - prefix - suffix for each in found) <= len(covered) + 1
    assert all(len(each) == window for each in found[:-1])


def test_bad_lengths_are_sentences():
    assert "has 1 token" in refusal(fit, line(1, 0, 0), 10)
    assert "between 3 and 10" in refusal(fit, line(20), 10, window=11)
    assert "between 3 and 10" in refusal(fit, line(20), 10, window=2)
    assert "between 3 and any length" in refusal(fit, line(20), None, window=-1)
    assert "exclude each other" in refusal(fit, line(20), 10, truncate=True, window=5)


@pytest.mark.slow
def test_minilm_reads_english_and_refuses_what_it_cannot_read():
    minilm = open_checkpoint(minilm_folder())
    found = encode(minilm, "The quick brown fox jumps over the lazy dog.")
    assert found.labels[:4] == ["[CLS]", "the", "quick", "brown"]
    assert limit(minilm) == 512
    assert "unknown" in refusal(encode, minilm, "𓀀 𓀁 𓀂")
