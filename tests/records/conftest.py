import pytest


@pytest.fixture(autouse=True)
def own_index(tmp_path_factory, monkeypatch):
    """Every test has an index of its own."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("TOKENFLOCK_CACHE", str(folder))
    return folder / "records.sqlite"
