"""The machinery of the gallery, on a figure invented here: stored data, reuse, files, errors."""

import numpy as np
import pytest
import xarray as xr

from tokenflock.errors import InputError
from tokenflock.ledger.figure_files import (
    check_path,
    compute_and_store,
    data_path,
    stored_data,
    write_picture,
)
from tokenflock.ledger.paper import Paper


@pytest.fixture
def invented():
    paper = Paper("", "0000.00000", "Invented", "Nobody", seen="never")

    @paper.figure(
        "line", title="A line", shows="a line", quick={"n": 3, "slope": 2.0}, paper={"n": 9}
    )
    def line(job):
        x = np.arange(float(job.n))
        job.report(1.0)
        return xr.Dataset({"y": ("x", job.slope * x + job.seed)}, coords={"x": x})

    @line.drawing
    def _(plt, data):
        figure, axes = plt.subplots()
        axes.plot(data.x, data.y)
        return figure

    return line


def test_scales_seed_and_changes(invented):
    assert invented.compute().y.values.tolist() == [0.0, 2.0, 4.0]
    assert invented.compute("paper").sizes["x"] == 9
    assert invented.compute(seed=5, slope=0.0).y.values.tolist() == [5.0, 5.0, 5.0]
    with pytest.raises(InputError, match="has no setting m; it has n, slope"):
        invented.compute(m=1)


@pytest.mark.parametrize("suffix", [".pdf", ".svg", ".png"])
def test_the_picture_is_drawn_from_stored_data(invented, tmp_path, suffix):
    path = tmp_path / "new" / f"line{suffix}"
    assert stored_data(invented, path, "quick", 0) is None
    computed = compute_and_store(invented, path, "quick", 0)
    stored = stored_data(invented, path, "quick", 0)
    xr.testing.assert_equal(computed, stored)
    write_picture(invented, stored, path)
    assert path.read_bytes()[:4] in (b"%PDF", b"<?xm", b"\x89PNG")
    assert {p.name for p in path.parent.iterdir()} == {path.name, "line.zarr"}


def test_data_of_another_request_or_damaged_data_is_not_reused(invented, tmp_path):
    path = tmp_path / "line.pdf"
    compute_and_store(invented, path, "quick", 0)
    assert stored_data(invented, path, "quick", 1) is None
    assert stored_data(invented, path, "paper", 0) is None
    chunk = next(p for p in sorted(data_path(path).rglob("c/*")) if p.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-1])
    assert stored_data(invented, path, "quick", 0) is None


def test_a_failing_drawing_leaves_no_file(invented, tmp_path):
    data = invented.compute()

    @invented.drawing
    def _(plt, data):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write_picture(invented, data, tmp_path / "line.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("line.mp4", "does not move"),
        ("line.docx", "must end in one of .pdf, .svg, .png"),
        ("line", "must end in one of"),
        ("folder.pdf", "is a folder"),
        ("file/line.pdf", "cannot write into"),
    ],
)
def test_bad_paths_are_refused_before_computing(invented, tmp_path, name, words):
    (tmp_path / "folder.pdf").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=words):
        check_path(invented, tmp_path / name)
