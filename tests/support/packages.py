"""Python packages of others, for tests that compare with them. Nobody has to have them: a test whose
packages are nowhere to be found is skipped.

    from support.packages import need
    need("tensorboard", "numpy")          # then import them

Looked for where the test runs, in $LOCKSTEP_TEST_PYTHON, and in the environments that `make test` and
`make bench` make (build-test-venv, and lockstep/peers in the cache); the test is run again by the one that has them all."""
import importlib.util
import os
import subprocess
import sys

SKIPPED = 77
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOOK = """import importlib.util, sys
sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))"""


def others():
    own = os.environ.get("LOCKSTEP_TEST_PYTHON")
    paths = [own] if own else []
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folders = os.path.join(ROOT, "build-test-venv"), os.path.join(cache, "lockstep", "peers")
    return paths + [os.path.join(folder, "bin", "python") for folder in folders]


def has(python, names):
    return os.access(python, os.X_OK) and subprocess.run([python, "-c", LOOK, *names]).returncode == 0


def need(*names):
    if all(importlib.util.find_spec(name) for name in names):
        return
    if "LOCKSTEP_TEST_AGAIN" not in os.environ:
        for python in others():
            if has(python, names):
                os.environ["LOCKSTEP_TEST_AGAIN"] = "1"
                os.execv(python, [python] + sys.argv)
    print(f"skipped: no Python with {', '.join(names)} (`tools/venv build-test-venv test`, as `make test` "
          "does, wants to fetch packages from PyPI)")
    sys.exit(SKIPPED)
