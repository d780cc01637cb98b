"""Runs in parts: whole, killed, resumed, stopped and batched, always with the same numbers."""

import numpy as np
import pytest
from small_runs import SPECS, Killed, kill_after, same, silent, start

import tokenflock as flock
from tokenflock.errors import InputError, StoreError
from tokenflock.lab import segments
from tokenflock.lab.files import parse, render
from tokenflock.lab.job import Job
from tokenflock.lab.run import run_spec, summary
from tokenflock.records.catalogue import list_records
from tokenflock.records.opening import find_result
from tokenflock.records.showing import describe_result
from tokenflock.results.names import SEGMENTS, STORE
from tokenflock.results.part_names import part_name
from tokenflock.store import segment_paths

pytestmark = [
    pytest.mark.usefixtures("shared_programs", "few_parts"),
    pytest.mark.xdist_group("lab"),
]
# Their programs take long to compile; the others are resumed by the same code.
LONG = ("batch", "merge", "stop")


class TestResume:
    @pytest.mark.parametrize(
        "name",
        [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in SPECS],
    )
    def test_a_run_killed_twice_ends_with_the_same_numbers(self, name, tmp_path):
        spec = start(name)
        whole = run_spec(spec, tmp_path / "whole", False, False, silent)
        broken = tmp_path / "broken"
        kill_after(2, spec, broken)
        assert flock.open(broken).outcome == "interrupted"
        kill_after(1, spec, broken, resume=True)
        partial = flock.open(broken)
        assert 0 < len(partial.time) < len(whole.time)
        assert "trajectory.zarr" not in {item.name for item in broken.iterdir()}
        resumed = run_spec(spec, broken, True, False, silent)
        same(whole, resumed)
        same(whole, flock.open(broken))
        assert sorted(item.name for item in broken.iterdir()) == ["spec.toml", STORE]

    def test_a_kill_before_the_first_part_leaves_a_store_that_opens(self, tmp_path, monkeypatch):
        spec = start("plain")

        def kill(job, state, part):
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(Job, "advance", kill)
            with pytest.raises(Killed):
                run_spec(spec, tmp_path / "run", False, False, silent)
        opened = flock.open(tmp_path / "run")
        assert opened.reached == 0.0
        np.testing.assert_array_equal(opened.final.points, opened.initial.points)
        resumed = run_spec(spec, tmp_path / "run", True, False, silent)
        same(run_spec(spec, tmp_path / "whole", False, False, silent), resumed)

    def test_ctrl_c_writes_what_waits(self, tmp_path, monkeypatch):
        monkeypatch.setattr(segments, "FLUSH_SECONDS", 1e9)

        def report(done, t, values):
            if done > 0.2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_spec(start("plain"), tmp_path / "run", False, False, report)
        assert flock.open(tmp_path / "run").reached > 1.0

    def test_half_written_parts_and_gaps_are_swept_away(self, tmp_path):
        spec = start("plain")
        whole = run_spec(spec, tmp_path / "whole", False, False, silent)
        folder = tmp_path / "run"
        kill_after(5, spec, folder)
        (folder / SEGMENTS / ".writing-x").mkdir()
        (folder / ".writing-summary.json").write_text("{")
        segment_paths(folder)[2].rename(tmp_path / "lost")
        same(whole, run_spec(spec, folder, True, False, silent))
        assert sorted(item.name for item in folder.iterdir()) == ["spec.toml", STORE]

    def test_strange_names_among_the_parts(self, tmp_path):
        """They are no parts: neither read nor in the way."""
        spec, folder = start("plain"), tmp_path / "run"
        kill_after(3, spec, folder)
        odd = ["0x-1.zarr", "1-2-3.zarr", "000001-000000.zarr", "0-0.zarr", "٣-٤.zarr", "z.zarr"]
        odd += ["000000-00000x.zarr", "000003-.zarr", "9" * 90 + "-" + "9" * 90 + ".zarr"]
        for name in odd:
            (folder / SEGMENTS / name).mkdir()
        assert [path.name for path in segment_paths(folder)] == [part_name(k, k) for k in range(3)]
        reached = flock.open(folder).reached
        assert reached > 0
        found = find_result(folder)
        assert found.store.name == part_name(2, 2)
        assert describe_result(found)["outcome"] == "interrupted"
        assert len(list_records([tmp_path]).records) == 1
        assert run_spec(spec, folder, True, False, silent).outcome == "finished"

    def test_a_damaged_part_is_named(self, tmp_path):
        spec = start("plain")
        kill_after(4, spec, tmp_path / "run")
        damaged = segment_paths(tmp_path / "run")[1]
        (damaged / "zarr.json").write_text("{")
        with pytest.raises(StoreError, match=f"{damaged.name} cannot be read"):
            run_spec(spec, tmp_path / "run", True, False, silent)

    def test_another_spec_is_refused(self, tmp_path):
        spec = start("plain")
        kill_after(2, spec, tmp_path / "run")
        other = parse(render(spec), ["beta=5.0"])
        with pytest.raises(InputError, match="holds another run"):
            run_spec(other, tmp_path / "run", True, False, silent)
        pictures = parse(render(spec), ["title=renamed", "figure=false"])
        assert run_spec(pictures, tmp_path / "run", True, False, silent).outcome == "finished"

    def test_nothing_to_resume(self, tmp_path):
        (tmp_path / "empty").mkdir()
        for name in ("empty", "absent"):
            with pytest.raises(InputError, match="no run to resume"):
                run_spec(start("plain"), tmp_path / name, True, False, silent)


class TestNumbers:
    def test_the_printed_spec_gives_the_same_numbers(self, tmp_path):
        spec = start("plain")
        first = run_spec(spec, tmp_path / "first", False, False, silent)
        again = run_spec(parse(render(spec)), tmp_path / "again", False, False, silent)
        same(first, again)

    @pytest.mark.slow
    def test_stopped_samples_wait_for_the_others(self, tmp_path):
        """A run in parts ends where one solve of the whole batch ends, sample by sample."""
        job = Job(start("batch"))
        parts = run_spec(job.spec, tmp_path / "run", False, False, silent)
        whole = flock.solve(
            job.model,
            job.x0,
            8.0,
            rtol=1e-10,
            atol=1e-12,
            stop=flock.at_clusters(2, 0.1),
            save=job.spec.save.build(),
        )
        codes = np.asarray(whole.array("outcome_code"))
        assert set(codes.ravel()) == {0, 1}
        np.testing.assert_array_equal(parts.array("outcome_code"), codes)
        np.testing.assert_allclose(parts.array("final_time"), whole.array("final_time"), rtol=1e-4)
        np.testing.assert_allclose(
            parts.array("final_points"), whole.array("final_points"), atol=1e-4
        )
        np.testing.assert_array_equal(
            np.isnan(parts.array("energy")), np.isnan(whole.array("energy"))
        )

    def test_a_stop_between_saves_closes_with_the_state_where_it_happened(self, tmp_path):
        text = render(start("stop")).replace("every = 1.0", "at = [30.0]")
        run = run_spec(parse(text), tmp_path / "run", False, False, silent)
        assert run.outcome == "stopped"
        np.testing.assert_array_equal(run.time, [0.0, run.reached])
        assert run.array("clusters")[-1] == 2
        np.testing.assert_array_equal(run.states[-1], run.array("final_points"))

    def test_the_step_limit_is_that_of_the_whole_run(self, tmp_path):
        spec = parse(render(start("plain")), ["max_steps=20"])
        run = run_spec(spec, tmp_path / "run", False, False, silent)
        assert run.outcome == "step-limit"
        assert 20 <= run.health["steps"] < 30
        assert 0 < run.reached < 8.0
        assert not summary("id", run, tmp_path, 1.0)["ok"]
