"""Conditions: what they mean, and that nothing but a condition is ever run."""

import itertools
import math
import re
import sqlite3
import warnings
from pathlib import Path

import pytest

from tokenflock.errors import InputError
from tokenflock.records.axes import RecordAxis
from tokenflock.records.facts import COLUMNS, Facts
from tokenflock.records.naming import Names
from tokenflock.records.where import FUNCTIONS, Evaluator, parse_where

SETTINGS = {
    "model.name": "SA",
    "model.beta": 4.0,
    "tokens.n": 32,
    "tokens.seed": 1,
    "solve.seed": 0,
    "save.states": True,
    "model.V": "x",
}
FACTS = Facts({"kind": "run", "title": 'it\'s 5 % of "all"', "model": "SA"}, SETTINGS)
NAMES = Names([FACTS])


def holds(text):
    condition = parse_where(text, NAMES)
    values = {**FACTS.columns, **SETTINGS}
    return Evaluator(condition).count([[values.get(column) for column in condition.columns]]) == 1


def refused(text):
    with pytest.raises(InputError) as caught:
        Evaluator(parse_where(text, NAMES))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beta > 4", False),
        ("beta >= 4 and model == 'SA'", True),
        ("beta > 3.9e0 and not n in (8, 16)", True),
        ('"tokens.seed" = 1 and "solve.seed" = 0', True),
        ("tokens.seed + solve.seed == 1", True),
        ("n between 30 and 40", True),
        ("model like 's%'", True),
        ("title == 'it''s 5 % of \"all\"'", True),
        ("title like 'it''s%'", True),
        ("BETA > 3 AND Model = 'SA'", True),
        ("states", True),
        ("states == false", False),
        ("outcome is null and seconds is null", True),
        ("seconds > 0", False),
        ("abs(-beta) == 4 and max(n, 2) == 32", True),
        ("case when beta > 3 then n else 0 end == 32", True),
        ("-beta < -.5 or 0", True),
        ("beta % 3 == 1 and n / 2 == 16 and model || '!' == 'SA!'", True),
        ("1 == 1", True),
        ("'text'", False),
    ],
)
def test_sql_as_people_write_it(text, expected):
    assert holds(text) is expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bta > 4", "no result here has a column 'bta'; did you mean 'beta'?"),
        ('"tokens.m" > 4', "did you mean 'tokens.n'?"),
        ('model == "SA"', "texts stand in single quotes: 'SA'"),
        ("seed == 1", "ambiguous here; write solve.seed or tokens.seed"),
        ("beta >", "is not a condition"),
        ("beta > 4 5", "is not a condition"),
        ("(beta > 4", "brackets"),
        ("beta > 4)", "brackets"),
        ("1) or (1", "brackets"),
        ("(" * 200 + "1" + ")" * 200, "nest too deeply"),
        ("", "takes a condition"),
        ("1 or " * 5000 + "1", "takes a condition of at most"),
        ("'open", 'cannot use "\'open"'),
        ("4beta > 3", "cannot use '4beta"),
        ("beta > 4 -- and more", "cannot use '-- and more'"),
        ("bta(4)", "knows no function 'bta'"),
        ("\udcff", "'\\udcff', a byte that is no letter"),
        ("title == 'caf\udce9'", "'\\udce9', a byte that is no letter"),
    ],
)
def test_a_sentence_for_what_is_no_condition(text, words):
    assert words in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "1; drop table results",
        "1; attach database '/tmp/x.db' as x",
        "attach database '/tmp/x.db' as x",
        "load_extension('/tmp/evil.so')",
        "readfile('/etc/passwd')",
        "writefile('/tmp/x', 'y')",
        "fts3_tokenizer('x')",
        "randomblob(1000000000)",
        "zeroblob(1000000000)",
        "printf('%1000000000d', 1)",
        "exists (select 1)",
        "1 in (select name from sqlite_master)",
        "beta in sqlite_master",
        "1) union select name from sqlite_master where (1",
        "(with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c)",
        "pragma_table_info('x')",
        "sqlite_version() > 'a'",
        "beta > ?",
        "beta > ?1",
        "beta > :name or $1 or @x",
        "beta > 4 /* comment */",
        "[beta] > 4",
        "`beta` > 4",
        "x'00' == beta",
        "cast(beta as text)",
        "beta collate nocase",
        "raise(abort, 'x')",
        "\x00",
        "beta > 4\x00; drop table results",
    ],
)
def test_nothing_but_conditions(text):
    refused(text)


def test_the_database_allows_nothing_even_if_words_get_through():
    """The second wall: statements that the first would never let through."""
    database = Evaluator(parse_where("1", NAMES))._database
    for statement in (
        "ATTACH ':memory:' AS other",
        "PRAGMA writable_schema = 1",
        "CREATE TABLE x (y)",
        "SELECT name FROM sqlite_master",
        "SELECT load_extension('x')",
        "SELECT randomblob(9)",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
    ):
        with pytest.raises(sqlite3.Error):
            database.execute(statement).fetchall()


def test_time_is_limited():
    evaluator = Evaluator(parse_where("beta > 4", NAMES), seconds=0.2)
    with pytest.raises(InputError, match="takes longer"):
        evaluator.count([1.0] for _ in itertools.repeat(None))


def test_long_patterns_are_refused_and_slow_ones_bounded():
    assert "is not a condition" in refused(f"model like '{'%a' * 200}'")


def test_numbers_that_sqlite_cannot_hold():
    condition = parse_where("n > 9", NAMES)
    rows = [[2**70], [-(2**70)], [10**400], [math.inf], [math.nan], [True]]
    assert Evaluator(condition).count(rows) == 2


def test_an_axis_may_have_a_name_of_its_own():
    swept = Facts({}, {"tokens.n": 8}, (RecordAxis("heat", {"model.beta": [1.0, 2.0]}, 2),))
    names = Names([swept])
    assert names.find("heat", "--where") == names.find("beta", "--where") == "model.beta"
    assert names.short("model.beta") == "beta"


NESTED = {
    **SETTINGS,
    "model.noise.beta": 1.0,
    "model.noise.scale": 0.5,
    "model.weights.seed": 7,
    "model.perceptron.scale": 2.0,
}


def test_a_plain_name_means_the_least_nested_setting():
    names = Names([FACTS, Facts({}, NESTED)])
    assert names.find("beta", "--where") == names.find("BETA", "--where") == "model.beta"
    assert names.find("model.noise.beta", "--where") == "model.noise.beta"
    assert names.short("model.beta") == "beta"
    assert names.short("model.noise.beta") == "model.noise.beta"
    # Without a less nested one it is the nested one.
    assert Names([Facts({}, {"model.noise.beta": 1.0})]).find("beta", "--where") == (
        "model.noise.beta"
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("seed", "solve.seed or tokens.seed or model.weights.seed"),
        ("scale", "model.noise.scale or model.perceptron.scale"),
    ],
)
def test_equally_nested_settings_are_ambiguous(name, options):
    names = Names([Facts({}, NESTED)])
    with pytest.raises(InputError, match=f"--sort {name} is ambiguous here; write {options}$"):
        names.find(name, "--sort")
    assert all(names.short(path) == path for path in options.split(" or "))


def test_the_name_of_an_axis_is_never_hidden_by_a_setting():
    """Such a sweep says n for its temperatures: asking for n could mean either."""
    hot = RecordAxis("n", {"model.noise.temperature": [0.1, 0.2]}, 2)
    names = Names([Facts({}, {"tokens.n": 8}, (hot,))])
    with pytest.raises(InputError, match=r"write tokens\.n or model\.noise\.temperature$"):
        names.find("n", "--where")
    named_alike = RecordAxis("beta", {"model.noise.beta": [0.1, 0.2]}, 2)
    assert Names([FACTS, Facts({}, {}, (named_alike,))]).find("beta", "--where") == "model.beta"


def test_columns_win_over_settings_of_their_name():
    names = Names([Facts({}, {"title": "x", "tokens.id": 3})])
    assert all(names.find(column, "--sort") == column for column in COLUMNS)
    assert names.short("tokens.id") == "tokens.id"


def test_the_conditions_of_the_guide():
    text = (Path(__file__).parent.parent.parent / "docs" / "records.md").read_text()
    examples = re.findall(r'--where "(.*?)"(?: |$)', text, flags=re.M)
    assert len(examples) >= 4
    for example in examples:
        Evaluator(parse_where(example, NAMES))
    assert all(f"`{name}" in text or f" {name}" in text for name in (*COLUMNS, *FUNCTIONS))


def test_nothing_that_newer_pythons_refuse():
    """Python 3.12 warns of a sequence for numbered placeholders, 3.14 refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert holds("beta > 2 and n = 32 and beta < 5")
