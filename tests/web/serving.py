"""Test support: a real server of the page in a thread, and a page that talks to it."""

import asyncio
import contextlib
import functools
import json
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
from packed import unpack
from websockets.sync.client import connect

import tokenflock as flock
from tokenflock.web.bundle import BUNDLE, BUNDLE_VARIABLE
from tokenflock.web.page_limits import Limits
from tokenflock.web.serve import bind, make_server

# What the server is tested with does not depend on whether the front end was built.
STAND_IN = "export function mount() {}\n"
ENDS = ("done", "cancelled", "error")


def settings(**changes):
    """Settings of a page: 16 tokens on the sphere, changed as asked."""
    spec = {
        "title": "a page",
        "says": "tokens",
        "model": {"name": "SA", "beta": 4},
        "tokens": {"law": "uniform", "d": 3, "n": 16, "seed": 3},
        "solve": {"t1": 4, "method": "fixed", "dt": 0.05, "seed": 0},
    }
    return {**spec, **changes}


def start(spec=None, t1=4.0, every=0.5, **more):
    return {"type": "start", "spec": spec or settings(), "t1": t1, "every": every, **more}


# A run whose parts last much longer than a test, and one with many short parts.
ENDLESS = start(
    settings(
        model={"name": "SA", "beta": 4, "noise": {"kind": "brownian", "temperature": 0.1}},
        tokens={"law": "uniform", "d": 3, "n": 2048, "seed": 3},
        solve={"t1": 400, "method": "fixed", "dt": 0.01, "seed": 0},
    ),
    t1=400.0,
    every=10.0,
)
LAYERS = {"t1": 1990, "method": "layers", "step": 0.05, "seed": 0}
TOKENS = {"law": "uniform", "d": 3, "n": 128, "seed": 3}
LONG = start(settings(tokens=TOKENS, solve=LAYERS), t1=1990.0, every=1.0)
# Eight megabytes of frames, by the same compiled program.
BULKY = start(
    settings(tokens=TOKENS, solve={**LAYERS, "t1": 199, "step": 0.1}), t1=199.0, every=0.1
)


@functools.cache
def small_run():
    """One run of the engine for all tests that need a real one: three frames of eight tokens."""
    return flock.solve(
        flock.SA(2.0),
        flock.uniform(flock.Sphere(3), 8, 0),
        1.0,
        dt=0.1,
        save=flock.Save(every=0.5, states=True, observe=[flock.energy]),
    )


@contextlib.contextmanager
def serving(folders=(), workers=1, **limits):
    """A server in a thread; it is shut down in order at the end."""
    place = bind("127.0.0.1", 0)
    server = make_server(place, list(folders), workers, Limits(**limits))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place.listener]})
    thread.start()
    try:
        until(lambda: server.started, "the server does not start")
        yield Served(place, server)
    finally:
        server.should_exit = True
        thread.join(15)
        assert not thread.is_alive(), "the server does not end"


class Served:
    """The address of a server, and short ways to ask it."""

    def __init__(self, place, server):
        self.url = place.address.rstrip("/")
        self.port = place.port
        self.app = server.config.app.app
        self.http = httpx.Client(base_url=self.url, timeout=60)

    def get(self, path, **headers):
        return self.http.get(path, headers=headers)

    def ping(self):
        return self.get("/api/ping").json()

    @property
    def workers(self):
        """Process ids of the workers."""
        return [worker.id for worker in self.app.state.pool.workers]

    @contextlib.contextmanager
    def slow_page(self):
        """An open page that reads no more than it is asked to: 16 kB and one message ahead."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        connection.connect(("127.0.0.1", self.port))
        with self.page(sock=connection, max_queue=1, close_timeout=0.5) as page:
            yield page

    @contextlib.contextmanager
    def page(self, **options):
        """An open page that has been greeted."""
        address = f"ws://127.0.0.1:{self.port}/api/exact"
        with connect(address, max_size=None, compression=None, **options) as socket:
            page = OpenPage(socket)
            assert page.hear()["type"] == "hello"
            yield page


class OpenPage:
    """The other side of the WebSocket."""

    def __init__(self, socket):
        self.socket = socket

    def say(self, message):
        self.socket.send(message if isinstance(message, (str, bytes)) else json.dumps(message))

    def hear(self, timeout=60):
        return json.loads(self.socket.recv(timeout))

    def hear_until(self, *kinds):
        """All messages up to the first of these kinds."""
        heard = [self.hear()]
        while heard[-1]["type"] not in kinds:
            heard.append(self.hear())
        return heard

    def run(self, message):
        """A whole run, as one."""
        self.say(message)
        return Heard(self.hear_until(*ENDS))


class Heard:
    """The messages of a run, joined."""

    def __init__(self, messages):
        self.messages = messages
        self.kinds = [message["type"] for message in messages]
        self.end = messages[-1]
        self.parts = [message for message in messages if message["type"] == "frames"]
        self.fractions = [part["fraction"] for part in self.parts]

    @property
    def times(self):
        return np.concatenate([part["times"] for part in self.parts])

    def array(self, name="points"):
        return np.concatenate([unpack(part[name]) for part in self.parts])

    def series(self, name):
        return np.concatenate([part["series"][name] for part in self.parts])


def until(true, otherwise, seconds=15.0):
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, otherwise
        time.sleep(0.02)


def is_alive(process):
    """Whether a process runs; one that ended and was not collected does not."""
    try:
        with open(f"/proc/{process}/stat") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@contextlib.contextmanager
def stand_in_bundle(folder):
    """A front end that does nothing, in the place of the built one."""
    path = folder / BUNDLE.name
    path.write_text(STAND_IN)
    before = os.environ.get(BUNDLE_VARIABLE)
    os.environ[BUNDLE_VARIABLE] = str(path)
    try:
        yield path
    finally:
        os.environ.pop(BUNDLE_VARIABLE)
        if before is not None:
            os.environ[BUNDLE_VARIABLE] = before


def in_a_loop(work, seconds=60):
    """What a coroutine function gives, in a thread of its own: the browser keeps a loop in this one."""

    def run():
        return asyncio.run(asyncio.wait_for(work(), seconds))

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()
