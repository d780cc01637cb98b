"""Frames per second of the page while it simulates, in a real browser on this machine's graphics.

Usage: python benchmarks/page_frames.py PAGE --browser CHROMIUM [--graphics swiftshader] [--out FILE]

PAGE is the index.html that `tokenflock page` writes. The browser opens it from a server of this script,
with one module more that plays 3-D self-attention at several numbers of tokens and posts what it
counted. Only the standard library is used, so that it runs on any machine that has a browser.
`--graphics` is what ANGLE draws with: swiftshader (software), gl-egl or vulkan (the machine's GPU).
"""

import argparse
import contextlib
import http.server
import json
import os
import platform
import queue
import subprocess
import tempfile
import threading
from pathlib import Path

SIZES = (64, 256, 1000, 4096)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--hide-scrollbars",
    "--use-gl=angle",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1280,800",
]
# Stands before the page: how long its scripts take for a frame, and how much of that is waiting for what
# the GPU computed. A machine with faster graphics saves the waiting and keeps the rest.
CLOCK = """
const clock = (window.frameClock = { script: 0, waiting: 0 });
const timed = (name, work) => { const began = performance.now(); try { return work(); } finally {
  clock[name] += performance.now() - began; } };
const paint = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (call) => paint((now) => timed("script", () => call(now)));
const { prototype } = WebGL2RenderingContext;
for (const name of ["readPixels", "getBufferSubData", "finish", "clientWaitSync"]) {
  const wait = prototype[name];
  prototype[name] = function (...given) { return timed("waiting", () => wait.apply(this, given)); };
}
"""
# Counts the repaints of the page itself, for SECONDS after a second to settle in. A frame is late when
# it took more than one and a half of 1/60 s.
PROBE = """
const SIZES = %s, SECONDS = 4;
const { store } = document.getElementById("tokenflock-page").tokenflock;
const spec = (n) => ({
  title: "frames", says: "", model: { name: "SA", beta: 9 },
  tokens: { law: "uniform", d: 3, n, seed: 0 },
  solve: { t1: 1e6, method: "fixed", dt: 0.001, seed: 0 },
});
const intervals = (seconds) => new Promise((done) => {
  const found = [];
  let before = null;
  const turn = (now) => {
    if (before !== null) found.push(now - before);
    before = now;
    if (found.reduce((a, b) => a + b, 0) < 1000 * seconds) requestAnimationFrame(turn); else done(found);
  };
  requestAnimationFrame(turn);
});
const rows = [];
for (const backend of ["webgl2", "js"]) for (const n of SIZES) {
  store.setSpec(spec(n));
  store.wantedBackend.value = backend;
  store.speed.value = 1;
  store.playing.value = true;
  await intervals(1);
  const before = { ...frameClock };
  const found = await intervals(SECONDS);
  const waiting = (frameClock.waiting - before.waiting) / found.length;
  const script = (frameClock.script - before.script) / found.length - waiting;
  found.sort((a, b) => a - b);
  rows.push({
    n, asked: backend, backend: store.backend.value,
    frames_per_second: 1000 * found.length / found.reduce((a, b) => a + b, 0),
    median_ms: found[Math.floor(found.length / 2)], p95_ms: found[Math.floor(0.95 * found.length)],
    script_ms: script, waiting_ms: waiting,
    late: found.filter((ms) => ms > 25).length / found.length,
  });
}
const gl = document.createElement("canvas").getContext("webgl2");
const names = gl && gl.getExtension("WEBGL_debug_renderer_info");
const renderer = names ? gl.getParameter(names.UNMASKED_RENDERER_WEBGL) : "no WebGL2";
const answer = { renderer, agent: navigator.userAgent, rows };
await fetch("/found", { method: "POST", body: JSON.stringify(answer) });
"""


def handler(page, answers):
    """Serve one page and hear one answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        """The page at every address; answers by POST."""

        def do_GET(self):
            """The page."""
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            if self.path == "/":
                self.wfile.write(page)

        def do_POST(self):
            """What the page counted."""
            answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            """Quiet."""

    return Handler


def count_frames(page, browser, graphics, free):
    """What the browser counts on the page."""
    answers = queue.Queue()
    html = page.read_text(encoding="utf-8")
    html = html.replace("<head>", f"<head><script>{CLOCK}</script>", 1)
    probe = f'<script type="module">{PROBE % json.dumps(SIZES)}</script>'
    html = html.replace("</body>", f"{probe}</body>")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(html.encode(), answers))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    flags = [*FLAGS, f"--use-angle={graphics}"]
    if free:
        flags += ["--disable-gpu-vsync", "--disable-frame-rate-limit"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [browser, *flags, f"--user-data-dir={profile}", "--remote-debugging-port=0",
             f"http://127.0.0.1:{server.server_port}/"],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            return answers.get(timeout=180)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            server.shutdown()


def main():
    """Count frames at the display's pace, and as fast as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--browser", required=True)
    parser.add_argument("--graphics", default="swiftshader")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    paced = count_frames(given.page, given.browser, given.graphics, free=False)
    unpaced = count_frames(given.page, given.browser, given.graphics, free=True)
    found = {
        "name": "page-frames",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "renderer": paced["renderer"],
        "browser": paced["agent"],
        "command": f"python benchmarks/page_frames.py PAGE --graphics {given.graphics}",
        "at 60 Hz": paced["rows"],
        "as fast as they come": unpaced["rows"],
    }
    text = json.dumps(found, indent=2) + "\n"
    if given.out is None:
        print(text)
    else:
        given.out.write_text(text)


if __name__ == "__main__":
    main()
