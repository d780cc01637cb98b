"""The report: self-contained, safe with hostile tokens, never half written; and its pictures."""

import base64
import itertools
import re
from html.parser import HTMLParser

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")

import matplotlib as mpl  # noqa: E402
from made_runs import add, collapsing, made_run, merging, stacked, unit, with_heads  # noqa: E402

from tokenflock.errors import StoreError  # noqa: E402
from tokenflock.tracing import html_page, report  # noqa: E402
from tokenflock.tracing.pictures import PICTURES, available, caption, draw_all  # noqa: E402
from tokenflock.tracing.pictures_map import leading  # noqa: E402
from tokenflock.tracing.report import write_report  # noqa: E402

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "$\\frac{",
    "$x$",
    "_hidden",
    "\x00\n",
    "\ud800",
    "漢字",
    "&amp;",
    "a" * 500,
]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def without_a_screen():
    mpl.use("Agg")


@pytest.fixture
def quick_pictures(monkeypatch):
    """Two pictures instead of twelve, for what does not look at them."""
    from matplotlib.figure import Figure

    blank = Figure()
    monkeypatch.setattr(report, "draw_all", lambda run: {"cosines": blank, "clusters": blank})
    monkeypatch.setattr(report, "to_png", lambda figure: PNG)


class Reader(HTMLParser):
    """Tags with their attributes, and the text outside of style."""

    def __init__(self, document):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    run = with_heads(made_run(merging(), labels=HOSTILE, model={"name": HOSTILE[0]}))
    run.array("norms")[3] *= np.where(
        np.arange(10) == 4, 50.0, 1.0
    )  # token 4 has a line and a label
    return folder, write_report(run, folder).read_text(encoding="utf-8")


def test_hostile_tokens_stay_text(hostile):
    _, document = hostile
    reader = Reader(document)
    names = {tag for tag, _ in reader.tags}
    assert not names & {"script", "iframe", "object", "embed", "link", "base", "form"}
    assert not [a for _, a in reader.tags if any(name.startswith("on") for name in a)]
    assert "<script>alert(1)</script>" in reader.text


def test_the_page_asks_for_nothing_outside(hostile):
    _, document = hostile
    reader = Reader(document)
    assert all(image["src"].startswith("data:image/png;base64,") for image in reader.all("img"))
    assert not reader.all("a")
    assert "url(" not in document
    assert "@import" not in document
    policy = next(each for each in reader.all("meta") if "http-equiv" in each)
    assert "default-src 'none'" in policy["content"]


def test_the_page_can_be_read_by_all(hostile):
    _, document = hostile
    reader = Reader(document)
    assert len(reader.all("h1")) == 1
    levels = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(len(image["alt"]) > 20 for image in reader.all("img"))
    assert reader.all("html")[0]["lang"] == "en"
    assert any("width=device-width" in each.get("content", "") for each in reader.all("meta"))
    assert "prefers-color-scheme: dark" in document


def test_the_pictures_of_the_page_are_the_files(hostile):
    folder, document = hostile
    files = {path.stem: path.read_bytes() for path in folder.glob("*.png")}
    assert set(files) == set(PICTURES)
    embedded = [
        base64.b64decode(image["src"].split(",")[1]) for image in Reader(document).all("img")
    ]
    assert sorted(embedded) == sorted(files.values())
    assert all(content.startswith(PNG) for content in embedded)
    assert {path.name for path in folder.iterdir()} == {"report.html", *(f"{n}.png" for n in files)}


def test_the_table_holds_the_numbers(hostile):
    _, document = hostile
    assert len(re.findall("<tr>", document)) == 1 + 9
    run = with_heads(made_run(merging()))
    assert f"<td>{run.array('sphere_cosine')[5]:.4g}</td>" in document
    # A turning angle belongs to the layer that made it: the row of layer 0 has none.
    first = re.findall("<tr>.*?</tr>", document)[1]
    assert "<td></td>" in first


@pytest.mark.usefixtures("quick_pictures")
def test_a_run_outside_its_regime_says_so_before_its_verdict(tmp_path):
    notes = ["outside the training regime: the stack is run 4 times over"]
    run = made_run(collapsing(), notes=notes, interventions={"repeat": 4})
    document = write_report(run, tmp_path).read_text(encoding="utf-8")
    assert 0 < document.index("Read with care") < document.index("Verdict")
    assert "the stack is run 4 times over" in document
    plain = write_report(made_run(collapsing()), tmp_path).read_text(encoding="utf-8")
    assert "Read with care" not in plain


@pytest.mark.usefixtures("quick_pictures")
def test_a_new_report_replaces_the_old_one_and_nothing_else(tmp_path):
    (tmp_path / "map.png").write_bytes(b"of an earlier report")
    (tmp_path / "notes.txt").write_text("mine")
    write_report(made_run(merging()), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "report.html",
        "cosines.png",
        "clusters.png",
        "notes.txt",
    }


@pytest.mark.usefixtures("quick_pictures")
def test_a_report_that_fails_leaves_the_earlier_one(tmp_path, monkeypatch):
    target = write_report(made_run(merging()), tmp_path / "a" / "b")
    before = target.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(StoreError, match="No space left on device; choose a folder"):
        write_report(made_run(collapsing()), tmp_path / "a" / "b")
    assert target.read_bytes() == before
    with pytest.raises(StoreError):
        write_report(made_run(collapsing()), tmp_path / "new" / "deep")
    assert {path.name for path in tmp_path.iterdir()} == {"a"}
    assert not list(tmp_path.rglob(".writing-*"))


@pytest.mark.usefixtures("quick_pictures")
def test_a_file_in_the_place_of_the_folder_is_a_sentence(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StoreError, match="cannot write"):
        write_report(made_run(merging()), tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "a file"


def test_pictures_need_only_what_they_draw():
    bare = made_run(merging())
    assert available(bare) == ["histogram", "cosines", "clusters", "map", "map_3d", "norms"]
    del bare.arrays["states"]
    assert "map" not in available(bare)
    assert set(available(with_heads(bare))) == set(PICTURES) - {"map", "map_3d"}


@pytest.mark.parametrize("tokens", [1, 2])
def test_pictures_of_very_few_tokens(tokens):
    for figure in draw_all(made_run(merging()[:, :tokens])).values():
        html_page.to_png(figure)


def test_pictures_of_many_texts_have_bands():
    run = stacked([made_run(merging(seed=seed)) for seed in range(5)])
    figures = draw_all(run)
    assert set(figures) == {"histogram", "cosines", "clusters", "norms"}
    (axes,) = figures["cosines"].axes
    low, high = np.percentile([r for r in run.array("sphere_cosine")], (5, 95), axis=0)
    corners = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert corners.min() == pytest.approx(low.min())
    assert corners.max() == pytest.approx(high.max())
    for figure in figures.values():
        html_page.to_png(figure)


@pytest.mark.parametrize("factor", [1.0, 70.0])
def test_a_caption_says_logarithmic_where_an_axis_is(factor):
    states = merging()
    states[4:, 2] *= factor
    run = made_run(states)
    figure = PICTURES["norms"].draw(mpl.pyplot, run)
    top, bottom = figure.axes
    assert (top.get_yscale(), bottom.get_yscale()) == ("linear" if factor == 1 else "log", "linear")
    said = "Logarithmic axis: norm of a hidden state."
    assert (said in caption("norms", figure)) == (factor != 1)
    assert "ogarithmic" not in PICTURES["norms"].shows
    mpl.pyplot.close(figure)


def test_heads_are_drawn_from_one_like_layers():
    run = with_heads(made_run(merging()))
    figure = PICTURES["attention"].draw(mpl.pyplot, run)
    layers, heads = run.array("attention_entropy_share").shape
    left, right, low, high = figure.axes[0].images[0].get_extent()
    assert (left, right) == (0.5, layers + 0.5)
    assert (high, low) == (0.5, heads + 0.5)
    mpl.pyplot.close(figure)
    shared = with_heads(made_run(merging(), model={"distinct_layers": 1}))
    figure = PICTURES["spectra"].draw(mpl.pyplot, shared)
    assert figure.axes[0].get_title().startswith("head 1: ")
    mpl.pyplot.close(figure)


def test_a_norm_far_from_the_others_is_drawn_apart():
    states = merging()
    states[4:, 2] *= 70.0
    figure = PICTURES["norms"].draw(mpl.pyplot, made_run(states, labels=[*"abSdefghij"]))
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert names == ["token 2: S", "median"]
    assert figure.axes[0].get_yscale() == "log"
    html_page.to_png(figure)


def test_the_map_keeps_planar_paths_as_they_are():
    random = np.random.default_rng(3)
    plane = np.linalg.qr(random.normal(size=(9, 2)))[0]
    flat = random.normal(size=(5, 6, 2)) * [3.0, 1.0]
    paths, held = leading(flat @ plane.T + 7.0, 2)
    assert held.sum() == pytest.approx(1.0)
    assert held[0] > held[1]
    gaps = np.linalg.norm(flat[1:] - flat[:-1], axis=-1)
    np.testing.assert_allclose(np.linalg.norm(paths[1:] - paths[:-1], axis=-1), gaps, atol=1e-12)


def test_the_map_finds_the_principal_directions():
    random = np.random.default_rng(1)
    states = random.normal(size=(6, 20, 40)) * 0.8 ** np.arange(40)
    _, held = leading(states, 3)
    flat = states.reshape(-1, 40)
    exact = np.linalg.svd(flat - flat.mean(0), compute_uv=False) ** 2
    np.testing.assert_allclose(held, exact[:3] / exact.sum(), rtol=1e-6)


def test_the_map_does_not_flip_with_rounding():
    states = unit(np.random.default_rng(0).normal(size=(4, 6, 9)))
    one, _ = leading(states, 3)
    other, _ = leading(states * (1 + 1e-13), 3)
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_a_sink_without_a_name_is_still_drawn():
    run = with_heads(made_run(merging(), labels=["token", *"abcdefghi"]))
    run.attributes["trace"]["without_first"] = True
    mass = np.concatenate([np.full((8, 1), 0.9), 0.1 * run.array("column_mass")], axis=1)
    add(run, {"column_mass": mass}, ("layer", "attended"))
    figure = PICTURES["sinks"].draw(mpl.pyplot, run)
    names = [tick.get_text() for tick in figure.axes[2].get_yticklabels()]
    assert {"the first token", "token (0)", "a (1)"} <= set(names)
    html_page.to_png(figure)
