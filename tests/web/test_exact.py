"""The engine behind the page: it streams the engine's own numbers, and a page can let go of it."""

import json
import os
import signal
import time

import numpy as np
import pytest
from serving import BULKY, ENDLESS, LONG, in_a_loop, is_alive, serving, settings, start, until

import tokenflock as flock
from tokenflock.web.exact import stream
from tokenflock.web.messages import parse
from tokenflock.web.page_limits import Limits
from tokenflock.web.pool import Pool, WorkerDied

# One process of the test run starts this server, not each.
pytestmark = pytest.mark.xdist_group("exact-runs")


@pytest.fixture(scope="module")
def server():
    with serving(stall_seconds=4.0, grace_seconds=1.0) as served:
        yield served


@pytest.fixture
def page(server):
    with server.page() as opened:
        yield opened


def uniform(n=16, d=3, seed=3):
    return flock.uniform(flock.Sphere(d), n, seed)


def test_the_flow_is_the_engines_to_its_tolerance(page):
    heard = page.run(start())
    exact = flock.solve(
        flock.SA(4.0),
        uniform(),
        4.0,
        rtol=1e-12,
        atol=1e-13,
        save=flock.Save(every=0.5, states=True, observe=[flock.energy]),
    )
    np.testing.assert_allclose(heard.times, exact.time, rtol=0, atol=1e-14)
    np.testing.assert_allclose(heard.array(), exact.states, rtol=0, atol=1e-6)
    np.testing.assert_allclose(heard.series("energy"), exact.array("energy"), rtol=1e-7)
    assert heard.end["outcome"] == "finished"
    assert heard.end["health"]["norm_drift"] < 1e-12


def test_a_run_that_breaks_off_says_how_far_it_came_and_why():
    """With V = -I tokens slide where the hardmax jumps: the frames up to there come, and a sentence."""
    tokens = {"law": "gaussian", "space": "euclidean", "scale": 1.0, "d": 2, "n": 8, "seed": 0}
    sliding = settings(model={"name": "HardmaxFlow", "weights": {"V": -1.0}}, tokens=tokens)
    request = parse(json.dumps(start(sliding, every=0.02))).model_dump(exclude_none=True)
    heard = []
    stream(request, Limits(steps=2_000), lambda kind, **news: heard.append((kind, news)), bool)
    times = [time for kind, news in heard if kind == "frames" for time in news["times"]]
    kind, end = heard[-1]
    assert (kind, end["outcome"]) == ("done", "step-limit")
    assert len(times) > 2
    assert f"it came {times[-1]:.4g} of 4 time units far" in end["advice"]
    assert "layers" in end["advice"]


def test_news_comes_in_order_with_progress(page):
    heard = page.run(start(every=0.1))
    assert heard.kinds[0] == "compiling"
    assert set(heard.kinds[1:-1]) == {"frames"}
    assert heard.fractions == sorted(heard.fractions)
    assert heard.fractions[-1] == 1.0
    assert len(heard.fractions) > 10
    assert np.all(np.diff(heard.times) > 0)


def test_what_is_measured_is_measured_on_the_frames_sent(page):
    heard = page.run(start())
    points = heard.array()
    n = points.shape[1]
    gram = points @ np.swapaxes(points, 1, 2)
    cosine = (gram.sum(axis=(1, 2)) - n) / (n * (n - 1))
    np.testing.assert_allclose(heard.series("mean_cosine"), cosine, atol=1e-12)
    order = np.linalg.norm(points.mean(axis=1), axis=-1)
    np.testing.assert_allclose(heard.series("order_parameter"), order, atol=1e-12)
    assert heard.series("clusters")[0] > heard.series("clusters")[-1] >= 1


@pytest.mark.slow
def test_layers_are_the_network_itself(page):
    model = {"name": "SA", "beta": 4, "normalisation": {"scheme": "pre"}}
    solve = {"t1": 2, "method": "layers", "step": 0.25, "seed": 0}
    heard = page.run(start(settings(model=model, solve=solve), t1=2.0, every=0.25))
    network = flock.solve(
        flock.SA(4.0, normalisation=flock.normalisation.PreLN()),
        uniform(),
        2.0,
        method=flock.Layers(0.25),
        save=flock.Save(every=0.25, states=True),
    )
    np.testing.assert_allclose(heard.array(), network.states, atol=1e-12)
    np.testing.assert_allclose(heard.array("radii"), network.array("radii"), atol=1e-12)
    assert np.all(np.diff(heard.array("radii").mean(axis=1)) > 0)


@pytest.mark.slow
def test_noise_keeps_its_steps_and_its_path(page):
    model = {"name": "SA", "beta": 2, "noise": {"kind": "brownian", "temperature": 0.2}}
    solve = {"t1": 1, "method": "fixed", "dt": 0.05, "seed": 7}
    heard = page.run(start(settings(model=model, solve=solve), t1=1.0, every=0.25))
    path = flock.solve(
        flock.SA(2.0, noise=flock.Brownian(0.2)),
        uniform(),
        1.0,
        dt=0.05,
        seed=7,
        save=flock.Save(every=0.25, states=True),
    )
    np.testing.assert_allclose(heard.array(), path.states, atol=1e-10)


@pytest.mark.slow
def test_models_on_the_plane_have_clusters_at_a_distance_and_may_have_no_energy(page):
    tokens = {"law": "gaussian", "space": "euclidean", "scale": 1.0, "d": 2, "n": 12, "seed": 1}
    hardmax = settings(model={"name": "HardmaxFlow"}, tokens=tokens)
    heard = page.run(start(hardmax, t1=1.0, every=0.25))
    assert heard.end["type"] == "done", heard.end
    assert heard.array().shape == (5, 12, 2)
    assert 1 <= heard.series("clusters")[-1] <= 12
    assert set(heard.parts[0]["series"]) == {"clusters", "order_parameter"}


@pytest.mark.slow
def test_too_many_frames_are_thinned_with_a_note(page):
    solve = {"t1": 250, "method": "layers", "step": 0.1, "seed": 0}
    heard = page.run(start(settings(solve=solve), t1=250.0, every=0.1))
    assert len(heard.times) <= 2_000
    np.testing.assert_allclose(heard.times / 0.1, np.round(heard.times / 0.1), atol=1e-6)
    assert "apart" in heard.end["notes"][0]


def test_what_the_engine_refuses_is_a_sentence(page):
    wrong = settings(
        tokens={"law": "arcs", "d": 3, "centres": [0.0], "per_cluster": 4, "width": 0.1, "seed": 0}
    )
    assert page.run(start(wrong)).end["type"] == "error"
    crooked = settings(model={"name": "SA", "beta": 1, "weights": {"V": [[1, 0], [0, 1]]}})
    refused = page.run(start(crooked)).end
    assert refused["type"] == "error"
    assert "3" in refused["message"]
    assert page.run(start()).end["type"] == "done"


def test_cancel_frees_the_worker_and_keeps_it_warm(server, page):
    before = server.workers
    page.say(LONG)
    page.hear_until("frames")
    assert server.ping()["idle"] == 0
    page.say({"type": "cancel"})
    page.hear_until("cancelled")
    until(lambda: server.ping()["idle"] == 1, "the worker is not free")
    assert server.workers == before
    assert page.run(start()).end["type"] == "done"


@pytest.mark.slow
def test_a_run_that_does_not_listen_is_ended_with_its_process(server, page):
    before = server.workers
    page.say(ENDLESS)
    page.hear_until("compiling")
    time.sleep(0.5)
    page.say({"type": "cancel"})
    page.hear_until("cancelled")
    until(lambda: server.workers != before and server.ping()["idle"] == 1, "no new worker")
    assert not is_alive(before[0])
    assert page.run(start()).end["type"] == "done"


def test_closing_the_page_frees_its_run(server):
    with server.page() as page:
        page.say(LONG)
        page.hear_until("frames")
    until(lambda: server.ping()["idle"] == 1, "the run goes on without its page")
    assert server.ping()["pages"] == 0


@pytest.mark.slow
def test_a_second_start_cancels_the_first(page):
    page.say(LONG)
    page.hear_until("frames")
    page.say(start(settings(tokens={"law": "uniform", "d": 2, "n": 5, "seed": 0})))
    first = page.hear_until("cancelled")
    assert {message["type"] for message in first[:-1]} <= {"frames"}
    second = page.hear_until("done")
    shapes = [message["points"]["shape"][1:] for message in second if message["type"] == "frames"]
    assert shapes
    assert all(shape == [5, 2] for shape in shapes)


def test_runs_wait_their_turn_and_know_their_place(server):
    with server.page() as first, server.page() as second, server.page() as third:
        first.say(LONG)
        first.hear_until("frames")
        second.say(start())
        assert second.hear() == {"type": "queued", "ahead": 0}
        third.say(start())
        assert third.hear() == {"type": "queued", "ahead": 1}
        first.say({"type": "cancel"})
        assert second.hear_until("done")[0]["type"] == "compiling"
        news = third.hear_until("done")
        assert news[0] == {"type": "queued", "ahead": 0}


@pytest.mark.slow
def test_a_slow_page_slows_its_own_run_only(server):
    """What it has not read waits in the worker, not in the server."""
    with server.slow_page() as slow, server.page() as quick:
        slow.say(BULKY)
        slow.hear_until("frames")
        time.sleep(2.5)
        assert server.ping()["idle"] == 0, "the whole run was sent to a page that does not read"
        quick.say({"type": "ping", "id": 5})
        assert quick.hear() == {"type": "pong", "id": 5}
        assert server.ping()["idle"] == 0, "the answer waited for the slow page"
        heard = slow.hear_until("done")
    frames = [message for message in heard if message["type"] == "frames"]
    times = np.concatenate([message["times"] for message in frames])
    assert np.all(np.diff(times) > 0)
    assert times[-1] == pytest.approx(199.0)


@pytest.mark.slow
def test_a_page_that_never_reads_is_given_up(server):
    with server.slow_page() as page:
        page.say(BULKY)
        page.hear_until("frames")
        until(lambda: server.ping()["idle"] == 1, "a page that does not read keeps its run", 12)


def test_a_worker_that_dies_is_told_and_replaced(server, page):

    page.say(LONG)
    page.hear_until("frames")
    os.kill(server.workers[0], signal.SIGKILL)
    assert "ended unexpectedly" in page.hear_until("error")[-1]["message"]
    assert page.run(start()).end["type"] == "done"


@pytest.mark.slow
def test_a_worker_that_died_while_idle_is_replaced_unseen(server, page):
    before = server.workers
    os.kill(before[0], signal.SIGKILL)
    until(lambda: not is_alive(before[0]), "the worker lives")
    assert page.run(start()).end["type"] == "done"
    assert server.workers != before


@pytest.mark.slow
def test_processor_time_is_limited():
    """With the limit of a second, the long run ends with its process, and a sentence says why."""

    async def ask():
        pool = Pool(1, Limits(cpu_seconds=1))
        await pool.start()
        try:
            async with pool.lease() as worker:
                message = parse(json.dumps(ENDLESS))
                await worker.ask("run", {"start": message.model_dump(exclude_none=True)})
                while worker.busy:
                    await worker.hear()
        finally:
            await pool.close()

    with pytest.raises(WorkerDied, match="processor time"):
        in_a_loop(ask)


@pytest.mark.slow
def test_wall_time_is_limited():
    with serving(run_seconds=3.0, grace_seconds=0.2) as served, served.page() as page:
        end = page.run(ENDLESS).end
    assert "longer than 3 seconds" in end["message"]


def test_all_workers_end_with_the_server():
    with serving(workers=2) as served:
        processes = served.workers
        assert len(processes) == 2
        assert all(is_alive(process) for process in processes)
    assert not any(is_alive(process) for process in processes)


@pytest.mark.slow
def test_a_worker_that_has_grown_is_replaced_between_runs():
    with serving(tidy_gib=0.05) as small, small.page() as page:
        first = small.workers
        assert page.run(start(t1=1.0)).end["type"] == "done"
        assert page.run(start(t1=1.0)).end["type"] == "done"
        assert small.workers != first
