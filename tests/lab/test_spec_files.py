"""Specs: overrides, printed specs that give themselves back, and refusals that name the key."""

import os
import tomllib

import pytest

from tokenflock.errors import InputError, StoreError, TooLargeError
from tokenflock.lab import files
from tokenflock.lab import job as job_module
from tokenflock.lab.catalogue import example_names, example_text
from tokenflock.lab.files import content, identity, parse, read_text, render
from tokenflock.lab.folder import check_folder, read_summary
from tokenflock.lab.job import Job

SPHERE = example_text("sphere")


class TestExamples:
    def test_one_for_each_family(self):
        names = set(example_names())
        assert len(names) >= 14
        assert {"sphere", "circle", "usa", "causal", "hardmax", "sinkhorn", "noise"} <= names
        families = {tomllib.loads(example_text(name))["model"]["name"] for name in names}
        assert {"SA", "USA", "CausalSA", "HardmaxFlow", "SinkhornSA", "RescaledSA"} <= families
        assert {"NoisyUSA", "StochasticSA"} <= families

    @pytest.mark.parametrize("name", example_names())
    def test_each_parses_builds_and_says_what_to_watch(self, name):
        spec = parse(example_text(name))
        assert spec.title == name
        assert spec.says.endswith(".")
        assert Job(spec).parts

    @pytest.mark.parametrize("name", example_names())
    def test_the_printed_spec_is_the_same_spec(self, name):
        spec = parse(example_text(name))
        printed = render(spec)
        again = parse(printed)
        assert again == spec
        assert render(again) == printed
        assert identity(again) == identity(spec)
        assert content(again) == tomllib.loads(printed)

    def test_an_unknown_name_is_answered_with_the_nearest(self):
        with pytest.raises(InputError, match="no example 'sphre'; did you mean 'sphere'"):
            example_text("sphre")


class TestOverrides:
    @pytest.mark.parametrize(
        ("setting", "read", "value"),
        [
            ("tokens.n=128", lambda s: s.tokens.n, 128),
            ("n=128", lambda s: s.tokens.n, 128),
            ("beta=4", lambda s: s.model.beta, 4.0),
            ("beta=[1, 2.5]", lambda s: s.model.beta, [1.0, 2.5]),
            ("model.weights.V=-1", lambda s: s.model.weights.V, -1.0),
            ("solve.log_clock=2.0", lambda s: s.solve.log_clock, 2.0),
            ("log_clock=2.0", lambda s: s.solve.log_clock, 2.0),
            ("every=.5", lambda s: s.save.every, 0.5),
            ("title=plain words", lambda s: s.title, "plain words"),
            ("animation=gif", lambda s: s.output.animation, "gif"),
            ("save.observe=['energy']", lambda s: s.save.observe, ["energy"]),
            ("stop.clusters={count=2, angle=0.1}", lambda s: s.stop.clusters.count, 2),
            (" tokens . n = 7 ", lambda s: s.tokens.n, 7),
        ],
    )
    def test_a_path_or_a_unique_leaf(self, setting, read, value):
        assert read(parse(SPHERE, [setting])) == value

    def test_the_last_of_two_wins(self):
        assert parse(SPHERE, ["n=5", "n=6"]).tokens.n == 6

    def test_a_partial_path_is_completed(self):
        spec = parse(example_text("multihead-random"), ["weights.seed=9"])
        assert spec.model.weights.seed == 9
        assert spec.tokens.seed == 4

    @pytest.mark.parametrize(
        ("setting", "words"),
        [
            ("n", "--set takes path=value"),
            ("=3", "--set takes path=value"),
            ("tokens..n=3", "--set takes path=value"),
            ("bta=3", "did you mean 'beta'"),
            ("tokens.n.x=3", "n is not a table"),
            ("beta=[1.,2.]", "is not a TOML value"),
        ],
    )
    def test_a_setting_that_cannot_be_made(self, setting, words):
        with pytest.raises(InputError, match=words):
            parse(SPHERE, [setting])

    def test_an_ambiguous_leaf_lists_the_paths(self):
        with pytest.raises(
            InputError, match=r"ambiguous; write model\.weights\.seed or tokens\.seed"
        ):
            parse(example_text("multihead-random"), ["seed=1"])

    def test_steps_imply_the_method_and_the_printed_spec_says_it(self):
        without = SPHERE.replace("rtol = 1e-8", "").replace("atol = 1e-10", "")
        assert parse(SPHERE).solve.method == "adaptive"
        assert 'method = "fixed"' in render(parse(without, ["dt=0.1"]))
        assert 'method = "layers"' in render(parse(without, ["step=0.25"]))


class TestIdentity:
    def test_names_and_pictures_do_not_change_it(self):
        changed = parse(SPHERE, ["title=other", "says=other", "animation=none"])
        assert identity(changed) == identity(parse(SPHERE))

    @pytest.mark.parametrize(
        "setting", ["n=65", "beta=9.1", "tokens.seed=1", "every=0.5", "rtol=1e-7"]
    )
    def test_everything_else_does(self, setting):
        assert identity(parse(SPHERE, [setting])) != identity(parse(SPHERE))


# (settings, what the sentence must contain)
REFUSED = [
    (["n=0"], "tokens.n must be at least 2, got 0"),
    (["n=1"], "tokens.n must be at least 2, got 1"),
    (["n=64.5"], "tokens.n must be a whole number"),
    (["n=many"], "tokens.n must be a whole number, got 'many'"),
    (["d=1"], "d >= 2, got d=1"),
    (["beta=-1"], "beta must be finite and >= 0"),
    (["beta=[1, -2]"], "beta must be finite and >= 0"),
    (["beta=nan"], "model.beta must be a finite number"),
    (["beta=inf"], "model.beta must be a finite number"),
    (["beta=true"], "model.beta must be a number or a list, got True"),
    (["beta=[]"], "model.beta"),
    (["beta=" + "9" * 400], "model.beta must be a number"),
    (["n=" + "9" * 400], "tokens.n must be at most"),
    (["seed=" + "9" * 30], "tokens.seed must be at most"),
    (["seed=-1"], "tokens.seed must be at least 0"),
    (["model.weights.Q=[[1.0, 2.0], [3.0, 4.0]]"], "Q has shape (2, 2) but the tokens have d=3"),
    (["model.weights.V=[[1.0, 2.0, 3.0]]"], "V must be square"),
    (["model.weights.K=[[1.0, 2.0, 3.0], [4.0]]"], "rows of K must have equal lengths"),
    (["model.weights.heads=4"], "weights.heads belongs to matrices drawn from a law"),
    (["model.weights.period=1e-9", "model.weights.Q={law='GOE'}"], "redraws the weights 3e+10"),
    (["model.plus={width=4, period=1e-9}"], "period = 1e-09 redraws the weights 3e+10"),
    (["rtol=0"], "solve.rtol must be greater than 0"),
    (["atol=-1e-9"], "solve.atol must be greater than 0"),
    (["rtol=1e-20"], "rtol=1e-20 is below double precision"),
    (["t1=0"], "solve.t1 must be greater than 0"),
    (["t1=-1"], "solve.t1 must be greater than 0"),
    (["t1=1e400"], "solve.t1 must be a finite number"),
    (["model.bet=3"], "unknown key model.bet; did you mean 'beta'?"),
    (["tokens.sed=3"], "unknown key tokens.sed; did you mean 'seed'?"),
    (["solve.rtoll=3"], "unknown key solve.rtoll; did you mean 'rtol'?"),
    (["model.mask={kind='causal', self=true}"], "unknown key model.mask.self"),
    (["model.name=SSA"], "did you mean 'SA'?"),
    (["model.name=Quux"], "choose one of CausalSA"),
    (["law=unform"], "did you mean 'uniform'?"),
    (["model.mask={kind='causal'}", "ordered=false"], "Causal masks need an order"),
    (["model.mask={kind='alibi'}"], "needs a slope"),
    (["n=1000000"], "use reduction=Auto() or Tiled()"),
    (["reduction=spectral"], "needs a tol, for example tol = 1e-10"),
    (["reduction=spectral", "tol=1e-8", "d=9"], "reduction=Tiled()"),
    (["tol=1e-8"], "tol belongs to reduction = 'spectral' or 'auto', not 'dense'"),
    (["reduction=auto", "precision=float32"], "precision belongs to reduction = 'tiled'"),
    (["reduction=kernel"], "needs an NVIDIA GPU"),
    (["reduction=tiled", "n=100000000", "samples=1000"], "these tokens need about"),
    (["reduction=tiled", "n=60000", "method=stiff"], "Jacobians of an implicit solver"),
    (["model.weights={Q={law='GOE'}, heads=4096}", "d=16000"], "these weights need about"),
    (["model.plus={width=1000000}", "d=16000"], "weights of this perceptron need about"),
    (["model.plus={bias=[1.0]}"], "bias is their size, one number"),
    (["model.plus={inner=[[1,0,0]], outer=[[1],[0],[0]], period=0.1}"], "plus.period belongs to"),
    (["model.plus={inner=[[1,0,0]], outer=[[1],[0],[0]], bias=1.0}"], "size of drawn biases"),
    (["model.plus={gradient=true, bias=1.0}"], "has no bias"),
    (["model.plus={period=0.0}"], "plus.period"),
    (["every=1e-9"], "the limit is 2000000"),
    (["save.observe=['enrgy']"], "no observable 'enrgy'; did you mean 'energy'?"),
    (["save.observe=['energy', 'energy']"], "must have different names"),
    (["save.observe=[{name='clusters'}]"], "state what a cluster is"),
    (["save.observe=[{name='clusters', angle='wide'}]"], "clusters: angle must be a number"),
    (["save.observe=[{name='clusters', angl=0.1}]"], "did you mean 'angle'?"),
    (["save.observe=[{name='clusters', link='knn'}]"], "link must be 'spacing', got 'knn'"),
    (["save.observe=[{name='clusters', link=true}]"], "clusters: link must be a word, got True"),
    (["save.observe=[{name='clusters', link='spacing', angle=0.1}]"], "in one way"),
    (["stop.clusters={count=1}"], "in one way"),
    (["save.observe=[{angle=0.1}]"], "an observable needs a name"),
    (["save.observe='energy'"], "save.observe must be a list"),
    (["save.observe=[{name='gram_histogram', bins=100000000000}]"], "gram_histogram"),
    (["save.observe=[{name='energy', as='Big Energy'}]"], "cannot name an observable"),
    (["save.observe=[{name='energy', as='states'}]"], "cannot name an observable"),
    (["save.observe=[64]"], "save.observe.0 must be a text in quotes or a table, got 64"),
    (["t1=1e300", "every=1e-300"], "is inf saves; the limit is 2000000"),
    (["save.at=[1.0]"], "choose one of every, at and log"),
    (["method=layers"], "method = 'layers' needs step"),
    (["method=fixed"], "method = 'fixed' needs dt"),
    (["method=adaptive", "dt=0.1"], "dt belongs to method = 'fixed', not 'adaptive'"),
    (["method=stiff", "step=0.1"], "step belongs to method = 'layers', not 'stiff'"),
    (["dt=0.1"], "give either dt"),
    (["step=0.1"], "leave out rtol, atol"),
    (["method=euler"], "'adaptive', 'stiff', 'fixed' or 'layers'"),
    (["model.noise={kind='brownian', temperature=0.1}"], "noise needs a fixed step"),
    (["model.noise={kind='brownian'}"], "needs a temperature"),
    (["model.normalisation={scheme='mix'}"], "mix needs tau"),
    (["tokens.weights=[1.0, 2.0]"], "weights must have shape (64,)"),
    (["tokens.space=euclidean"], "R^d has no uniform law"),
    (["law=cap", "tokens.radius=0.1", "tokens.centre=[1.0]"], "centre must have shape (3,)"),
    (["tokens=3"], "tokens must be a table, got 3"),
    (["model=SA"], "model must be a table, got 'SA'"),
    (["stop.clusters={count=0, angle=0.1}"], "stop.clusters.count must be at least 1"),
    (["every=2024-01-01"], "save.every must be a number"),
]
POINTS = """
[model]
name = "SA"
beta = 1.0
[tokens]
law = "points"
d = 2
points = {points}
[solve]
t1 = 1.0
rtol = 1e-6
atol = 1e-8
"""
REFUSED_POINTS = [
    ("[[1.0, 0.0], [0.0, 1.1]]", "off the sphere by up to 0.1"),
    ("[[1.0, 0.0], [0.0, nan]]", "tokens.points.1.1 must be a finite number"),
    ("[[1.0, 0.0], [0.0]]", "rows of tokens.points must have equal lengths"),
    ("[[1.0, 0.0]]", "need n >= 2 tokens"),
    ("[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]", "tokens must have shape (..., n, 2)"),
    ("[]", "one row each"),
]


# Keys of tables inside tables, and lists inside lists, in a file and on the command line.
DEEP = [
    lambda depth: ("a" + ".a" * depth + " = 1\n", []),
    lambda depth: ("x = " + "[" * depth + "]" * depth + "\n", []),
    lambda depth: ("x = " + "{a = " * depth + "1" + "}" * depth + "\n", []),
    lambda depth: (SPHERE, ["model.weights" + ".a" * depth + "=1"]),
    lambda depth: (SPHERE, ["model.weights=" + "{a = " * depth + "1" + "}" * depth]),
    lambda depth: (SPHERE, ["save.at=" + "[" * depth + "]" * depth]),
    lambda depth: (SPHERE, ["model.weights.pieces=" + "[{pieces=" * depth + "[]" + "}]" * depth]),
]


class TestRefusals:
    @pytest.mark.parametrize("made", DEEP)
    @pytest.mark.parametrize("depth", [40, 900, 1500, 3000])
    def test_tables_inside_tables(self, made, depth):
        text, settings = made(depth)
        for more in ([], ["beta=3"]):
            with pytest.raises(InputError, match=r"nested too deeply|inside one another"):
                parse(text, [*settings, *more])

    @pytest.mark.parametrize("centres", ["1.0", "[]", "[1.0]", "[[1.0]]", "[[]]"])
    def test_centres_of_a_mixture(self, centres):
        tokens = (
            f"tokens={{law='mixture', d=2, per_cluster=3, radius=0.1, seed=0, centres={centres}}}"
        )
        with pytest.raises(InputError, match=r"centres must have shape \(k, 2\), one row each"):
            Job(parse(SPHERE, [tokens]))

    def test_centres_of_arcs(self):
        tokens = "tokens={law='arcs', d=2, per_cluster=3, width=0.1, seed=0, centres=[[0.0, 2.0]]}"
        with pytest.raises(InputError, match="centres must be angles"):
            Job(parse(SPHERE, [tokens]))

    @pytest.mark.parametrize(("settings", "words"), REFUSED, ids=lambda value: str(value)[:50])
    def test_a_sentence_that_names_the_key(self, settings, words, monkeypatch):
        monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "4")
        with pytest.raises(InputError) as caught:
            Job(parse(SPHERE, settings))
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(("points", "words"), REFUSED_POINTS)
    def test_tokens_one_by_one(self, points, words):
        with pytest.raises(InputError) as caught:
            Job(parse(POINTS.replace("{points}", points)))
        assert words in str(caught.value)

    @pytest.mark.parametrize("missing", ["rtol = 1e-8\n", "atol = 1e-10\n"])
    def test_an_accuracy_must_be_stated(self, missing):
        with pytest.raises(InputError, match="state the accuracy you need"):
            Job(parse(SPHERE.replace(missing, "")))

    def test_several_betas_of_a_common_noise_are_a_batch(self):
        job = Job(parse(example_text("stochastic"), ["beta=[1.0, 2.0]"]))
        assert job.plan.lead_shape[0] == 2

    def test_clusters_on_the_plane_stop_at_a_distance(self):
        text = example_text("polytope")
        assert Job(parse(text, ["stop.clusters={count=2, distance=0.1}"])).plan.stops
        with pytest.raises(InputError, match=r"angle|distance"):
            Job(parse(text, ["stop.clusters={count=2}"]))

    def test_fixed_steps_beyond_the_limit_are_counted_before_the_run(self):
        text = SPHERE.replace("rtol = 1e-8", "dt = 1e-9").replace("atol = 1e-10", "")
        with pytest.raises(InputError, match=r"3e\+10 steps, more than max_steps = 100000"):
            Job(parse(text))

    @pytest.mark.parametrize("key", ["model", "tokens", "solve"])
    def test_a_missing_table_is_named(self, key):
        table = tomllib.loads(SPHERE)
        del table[key]
        import tomli_w

        with pytest.raises(InputError, match=f"{key} is missing"):
            parse(tomli_w.dumps(table))

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "model is missing"),
            ("model = ", "not valid TOML"),
            ("x = " + "[" * 3000 + "]" * 3000, "too deeply"),
            ("x = " + "9" * 10_000, "not valid TOML"),
            ("[model]\nname = 'SA'\n[model]\n", "not valid TOML"),
        ],
        ids=["empty", "broken", "deep", "digits", "twice"],
    )
    def test_a_file_that_is_no_spec(self, text, words):
        with pytest.raises(InputError, match=words):
            parse(text)

    def test_files_that_cannot_be_read(self, tmp_path):
        (tmp_path / "latin").write_bytes("title = 'é'".encode("latin-1"))
        cases = [("nothing", "no file"), (".", "is a folder"), ("latin", "not UTF-8")]
        for name, words in cases:
            with pytest.raises(InputError, match=words):
                read_text(tmp_path / name)

    def test_a_bad_memory_limit_is_an_input_error(self, monkeypatch):
        monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "lots")
        with pytest.raises(InputError, match="TOKENFLOCK_MEMORY_GIB must be a positive number"):
            Job(parse(SPHERE))


class TestBeforeSpending:
    """What cannot fit, or takes for ever to read, is refused from the numbers and the text alone."""

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            (
                ["samples=1000000"],
                "1000000 samples.* need about .* GiB.*use fewer|these tokens need about",
            ),
            (["n=100000000"], "n=100000000 tokens.* GiB.*reduction = 'auto' or 'tiled'"),
            (["n=4000000", "reduction=tiled", "samples=20"], "20 samples.* GiB.*use fewer samples"),
            (["n=20000", "reduction=tiled", "every=0.0001"], "stored states need about"),
        ],
    )
    def test_nothing_is_drawn_for_a_run_that_does_not_fit(self, settings, words, monkeypatch):
        monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "4")
        monkeypatch.setattr(job_module, "build_tokens", lambda spec: pytest.fail("it was drawn"))
        with pytest.raises(TooLargeError, match=words):
            Job(parse(SPHERE, settings))

    def test_a_key_of_40000_names(self, monkeypatch):
        """The reader of TOML, which takes time with the square of them, never sees it."""
        key = ".".join(["a"] * 40_000)
        monkeypatch.setattr(files.tomllib, "loads", lambda text: pytest.fail("it was read"))
        quoted = key.replace("a", "'b c'")
        for text in (f"{key} = 1", f"[{key}]", f"x = {{ {quoted} = 1 }}", key.replace(".", " . ")):
            with pytest.raises(
                InputError, match="line 2 has 100 names or more joined by dots"
            ) as caught:
                parse(f"title = 'x'\n{text}")
            assert len(str(caught.value)) < 300
        with pytest.raises(
            InputError, match="--set beta is nested too deeply: line 1 has 100 names"
        ):
            files._value("beta", f"{{ {key} = 1 }}")

    def test_settings_that_are_too_deep_or_too_many(self, monkeypatch):
        key = ".".join(["a"] * 40_000)
        with pytest.raises(InputError, match="names 40001 tables inside one another") as caught:
            parse(SPHERE, [f"model.{key}=1"])
        assert len(str(caught.value)) < 300
        with pytest.raises(InputError, match="is nested too deeply"):
            parse(SPHERE, ["model.beta=" + "[" * 31 + "]" * 31])
        with pytest.raises(InputError, match=r"--set is given 40000 times.*write what is set into"):
            parse(SPHERE, ["model.beta=1"] * 40_000)

    def test_a_table_is_not_walked_through_for_every_setting(self, monkeypatch):
        seen = []
        monkeypatch.setattr(files, "check_depth", lambda table, source: seen.append(source))
        files.load(SPHERE, ["model.beta=1"] * 50, "spec")
        assert len(seen) == 1

    def test_texts_and_numbers_with_dots_are_no_long_keys(self):
        text = "says = 'a.b.c, d.e.f ... and so on'\nx = [" + "0.5, 1.5, " * 200 + "]"
        assert files.load(text, None, "spec")["x"][1] == 1.5

    def test_a_pipe_in_the_place_of_a_stored_spec_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "spec.toml")
        with pytest.raises(StoreError, match="is not a plain file"):
            check_folder(parse(SPHERE), tmp_path, resume=True, overwrite=False)
        os.mkfifo(tmp_path / "summary.json")
        assert read_summary(tmp_path) is None
