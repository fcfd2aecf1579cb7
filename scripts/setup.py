#!/usr/bin/env python3
"""Make .venv hold this checkout with everything it needs; do nothing when it is up to date.

Needs only a Python with `venv` and a C++ compiler: CMake and Ninja come from the package index.
The installation is editable: Python files are used where they are, the native core is built again
when one of its sources has changed. What was installed is remembered by content, so a set-up that
was interrupted starts again.

    python3 scripts/setup.py [EXTRA ...]        EXTRA: test, lint (pyproject.toml)
"""

import contextlib
import hashlib
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "installed.txt"
SOURCES = (
    "pyproject.toml",
    "CMakeLists.txt",
    "upmem_sim/core",
    "upmem_sim/host",
    "upmem_sim/params.py",
    "upmem_sim/transfer.py",
)
OLDEST = (3, 11)


def source_files():
    """Every file that is not used where it is, in a fixed order."""
    for name in SOURCES:
        path = ROOT / name
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (p for p in found if p.is_file() and "__pycache__" not in p.parts)


def fingerprint():
    """Hash of the sources and of the Python they are installed for."""
    digest = hashlib.sha256(f"{sys.version} {VENV}".encode())
    for path in source_files():
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def installed():
    """(fingerprint, extras) of what .venv holds, or (None, empty set)."""
    try:
        mark, *extras = STAMP.read_text().split()
        subprocess.run([VENV / "bin/python", "-c", "import atim"], check=True, capture_output=True)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None, set()
    return mark, set(extras)


@contextlib.contextmanager
def step(what):
    """One line on standard error: what is being done, and afterwards how long it took."""
    print(f"setup: {what} ...", end="", file=sys.stderr, flush=True)
    start = time.monotonic()
    try:
        yield
    except BaseException:
        print(" failed", file=sys.stderr)
        raise
    print(f" {time.monotonic() - start:.0f} s", file=sys.stderr)


def pip(*arguments):
    """Run pip of .venv quietly; the error keeps what it said."""
    command = [VENV / "bin/python", "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
    done = subprocess.run([*command, *arguments], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, done.args, stderr=done.stderr)


def build_requirements():
    """What building needs: pyproject.toml's list, and CMake and Ninja for a bare machine."""
    return [*settings()["build-system"]["requires"], "cmake>=3.20", "ninja>=1.10"]


def settings():
    """What pyproject.toml says."""
    import tomllib  # here, so that an older Python gets the message of main()

    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def requirements(extras):
    """What running needs, and for each extra; one that names another extra of ours brings it."""
    table = settings()["project"]
    found = list(table["dependencies"])
    waiting = sorted(extras)
    while waiting:
        for line in table["optional-dependencies"][waiting.pop()]:
            if line.startswith("atim["):
                waiting += line.removeprefix("atim[").rstrip("]").split(",")
            else:
                found.append(line)
    return found


def create():
    """An empty virtual environment with the build requirements."""
    with step("making .venv"):
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
    with step("1 of 3: CMake and what else building needs"):
        pip(*build_requirements())


def install(extras):
    """Build and install this checkout; the build directory stays, so rebuilds are incremental."""
    options = [f"-Cbuild-dir={VENV / 'build'}", "-Ceditable.rebuild=false"]
    with step("2 of 3: compiling the simulator"):
        pip("--no-build-isolation", "--no-deps", *options, "-e", ".")
    with step("3 of 3: TVM, XGBoost and the other packages (minutes, the first time)"):
        pip(*requirements(extras))


def main(extras):
    """Bring .venv up to date; returns the exit status."""
    if sys.version_info < OLDEST:
        print(f"setup: Python {sys.version.split()[0]} is too old: 3.11 or newer", file=sys.stderr)
        return 1
    if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        print("setup: no C++ compiler found (c++, g++ or clang++): install one", file=sys.stderr)
        return 1
    mark, had = installed()
    now = fingerprint()
    if mark == now and set(extras) <= had:
        return 0
    try:
        if mark is None:
            create()
        else:
            print("setup: sources or what is wanted changed, installing again", file=sys.stderr)
        STAMP.unlink(missing_ok=True)
        extras = had | set(extras)
        install(extras)
    except subprocess.CalledProcessError as error:
        print(error.stderr or "", end="", file=sys.stderr)
        print(f"setup: failed: {' '.join(map(str, error.cmd))}", file=sys.stderr)
        return 1
    STAMP.write_text(" ".join([now, *sorted(extras)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
