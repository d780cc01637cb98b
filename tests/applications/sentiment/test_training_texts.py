"""Words of a review, the vocabulary, the file they come from, the split."""

import csv
import json

import numpy as np
import pytest

from tokenflock.applications.sentiment import (
    Settings,
    make_reviews,
    read_reviews,
    synthetic_reviews,
)
from tokenflock.applications.sentiment.reviews import prepare
from tokenflock.applications.sentiment.synthetic import (
    NEGATIVE,
    POSITIVE,
    WORDS,
    neutral_words,
    synthetic_pairs,
)
from tokenflock.applications.sentiment.texts import PAD, numbered, vocabulary_of, words_of
from tokenflock.errors import InputError


def written(path, rows, header=("text", "label")):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def test_words_are_lower_case_and_free_of_markup_links_and_stop_words():
    text = "I LOVED it!<br /><br />See https://x.org/a?b=1 &amp; www.y.com: don’t miss 10/10, sooooo good."
    assert words_of(text) == ["loved", "see", "don't", "miss", "soo", "good"]
    assert words_of("... 42 <p></p> the") == []


def test_letters_of_any_alphabet_make_words():
    assert words_of("A naïve cliché: Über-gut, señor, l’été!") == [
        "naïve", "cliché", "über", "gut", "señor", "l'été",
    ]  # fmt: skip
    assert words_of("Прекрасный фильм, 10 из 10!") == ["прекрасный", "фильм", "из"]
    assert words_of("cliche\u0301") == ["cliché"], "an accent may be a character of its own"
    assert words_of("2½ stars², part Ⅷ") == ["stars", "part"], "numerals are no letters"
    assert words_of("snake_case x2 été_9 ééééé") == ["snake", "case", "x", "été", "éé"]


def test_only_tags_are_markup():
    assert words_of("I <3 this film. It is not bad -> great") == ["film", "not", "bad", "great"]
    assert words_of("2 < 3 and 5 > 4 words") == ["words"]
    tags = "fine<br/>film <a href='x'>link</a><!-- a <b> note --> <H1 class=y>head</H1>"
    assert words_of(tags) == ["fine", "film", "link", "head"]


def test_a_file_of_another_alphabet_is_read(tmp_path):
    rows = [("прекрасный фильм", "1"), ("скучный фильм", "0")]
    found = read_reviews(written(tmp_path / "a.csv", rows))
    assert found.words == (["прекрасный", "фильм"], ["скучный", "фильм"])


def test_the_vocabulary_counts_reviews_not_words_and_breaks_ties_by_alphabet():
    reviews = [["b", "b", "b", "c"], ["a", "c"], ["a", "d"]]
    assert vocabulary_of(reviews, 3) == ("a", "c", "b")
    assert vocabulary_of(reviews, 99) == ("a", "c", "b", "d")


def test_numbers_start_at_one_skip_unknown_words_and_end_with_padding():
    found = numbered([["x", "a", "b", "a"], [], ["b", "b", "b", "b"]], ("a", "b"), 3)
    np.testing.assert_array_equal(found, [[1, 2, 1], [PAD] * 3, [2, 2, 2]])


def test_a_file_loses_repeated_and_empty_reviews_and_orders_its_labels(tmp_path):
    rows = [("good one", "1"), ("bad one", "-1"), ("good one", "-1"), ("!!", "1"), ("", "1")]
    found = read_reviews(written(tmp_path / "a.csv", rows))
    assert found.words == (["good"], ["bad"])
    assert found.names == ("-1", "1")
    np.testing.assert_array_equal(found.labels, [True, False])
    assert found.dropped == {"repeated": 1, "without a word": 2}
    assert make_reviews([("a b", "pos"), ("c d", "neg")], "here").names == ("neg", "pos")


def test_only_keeps_the_rows_asked_for(tmp_path):
    rows = [("good x", "1", "u"), ("bad x", "0", "u"), ("fine y", "1", "w")]
    path = written(tmp_path / "a.csv", rows, ("text", "label", "source"))
    assert len(read_reviews(path, "source=u").words) == 2
    for only, says in (("source=z", "no row"), ("where=u", "COLUMN=VALUE"), ("u", "COLUMN=VALUE")):
        with pytest.raises(InputError, match=says):
            read_reviews(path, only)


def test_what_is_no_set_of_reviews_is_refused_in_a_sentence(tmp_path):
    cases = {
        "no column label": written(tmp_path / "b.csv", [("a", "1")], ("text", "mood")),
        "its columns: none": written(tmp_path / "c.csv", [], ()),
        "1 kind of label": written(tmp_path / "d.csv", [("a film", "1"), ("b film", "1")]),
        "3 kinds of label": written(tmp_path / "e.csv", [(f"film {c}", c) for c in "xyz"]),
        "no text with a word": written(tmp_path / "f.csv", [("", "1"), ("?", "0")]),
        "no file": tmp_path / "nowhere.csv",
        "cannot read": tmp_path,
    }
    (tmp_path / "g.csv").write_bytes(b"text,label\n\xff\xfe\x00bad,1\n")
    cases["as a CSV file"] = tmp_path / "g.csv"
    for says, path in cases.items():
        with pytest.raises(InputError, match=says):
            read_reviews(path)


def test_the_split_is_disjoint_fixed_by_the_seed_and_counts_words_in_training_alone():
    reviews = make_reviews(
        [(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}", str(i % 2)) for i in range(200)], "x"
    )
    settings = Settings(length=1, batch=8, validation=0.1, test=0.2)
    data, again = prepare(reviews, settings), prepare(reviews, settings)
    assert [len(part.labels) for part in data[:3]] == [140, 20, 40]
    assert len(data.vocabulary) == 140
    assert np.all(data.train.tokens != PAD)
    assert np.all(data.test.tokens == PAD)
    np.testing.assert_array_equal(data.train.tokens, again.train.tokens)
    other = prepare(reviews, Settings(length=1, batch=8, validation=0.1, test=0.2, seed=1))
    assert set(other.vocabulary) != set(data.vocabulary)


def test_parts_without_both_labels_or_a_batch_are_refused():
    few = make_reviews([(f"film {i * 'x'}", str(int(i == 0))) for i in range(40)], "x")
    with pytest.raises(InputError, match="does not hold both labels"):
        prepare(few, Settings())
    even = make_reviews([(f"film {i * 'xy'}", str(i % 2)) for i in range(60)], "x")
    with pytest.raises(InputError, match="lower --batch"):
        prepare(even, Settings(batch=64))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"d": 0}, "d, the dimension"),
        ({"tau": 0.0}, "tau"),
        ({"rate": float("inf")}, "rate"),
        ({"test": 1.5}, "between 0 and 1"),
        ({"test": 0.6, "validation": 0.5}, "leaves none"),
        ({"seed": -1}, "seed"),
        ({"d": 2.5}, "d, the dimension of a word, must be a whole number"),
        ({"epochs": 1.5}, "whole number"),
        ({"batch": 8.0}, "whole number"),
        ({"depth": True}, "whole number"),
        ({"length": "32"}, "whole number"),
        ({"seed": 0.5}, "whole number"),
        ({"rate": "fast"}, "rate, the learning rate, must be a number"),
        ({"epochs": 10**12}, "at most 100,000"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong, says):
    with pytest.raises(InputError, match=says):
        Settings(**wrong)


def test_settings_of_numpy_are_plain_numbers():
    settings = Settings(d=np.int64(3), rate=np.float32(0.5), epochs=np.int32(2))
    assert json.loads(json.dumps(settings.as_json())) == Settings(3, epochs=2, rate=0.5).as_json()


def test_H10_the_synthetic_reviews_are_what_they_say():
    """3 to 7 polar words of 32 (2 where a tie lost one), a majority decides, a fifth contradicts."""
    assert (len(POSITIVE), len(NEGATIVE), len(set(neutral_words()))) == (20, 20, 160)
    polar, against = [], 0
    for text, label in synthetic_pairs(2000, seed=3):
        words = text.split()
        assert len(words) == WORDS
        up, down = (sum(word in side for word in words) for side in (POSITIVE, NEGATIVE))
        assert (up > down) == (label == "positive")
        assert up != down
        polar.append(up + down)
        against += min(up, down)
    assert set(polar) <= {3, 4, 5, 6, 7}
    # Reviews in which most words contradict the mood are labelled by them: below a fifth, not by far.
    assert 0.14 < against / sum(polar) < 0.2
    names = synthetic_reviews(500).labels
    assert abs(names.mean() - 0.5) < 4 * 0.5 / np.sqrt(500)
    assert (
        synthetic_reviews(50, seed=1).fingerprint() == synthetic_reviews(50, seed=1).fingerprint()
    )
    assert (
        synthetic_reviews(50, seed=1).fingerprint() != synthetic_reviews(50, seed=2).fingerprint()
    )
