"""Python imports this at start when its folder is on PYTHONPATH: how ``oomscope run`` gets into an unchanged program.

The program is run by a plain ``python program.py``, so its arguments, ``__main__``, tracebacks, signals and exit code
are its own. Nothing may fail here, and whatever ``sitecustomize`` would have been found without it is still run.
"""

import os
import sys


def _start() -> None:
    if os.environ.get("OOMSCOPE_RUN") != sys.prefix:
        return  # another Python than the one oomscope is installed for
    try:
        from oomscope.recording import launching
    except ImportError:
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120
        sys.path.append(package)  # run from a checkout: found by the current folder, which no script has on its path
        try:
            from oomscope.recording import launching
        finally:
            sys.path.remove(package)
    launching.prepare()


def _run_hidden_sitecustomize() -> None:
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    before = list(sys.path)
    this = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]  # noqa: PTH100
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        if this is not None:
            sys.modules["sitecustomize"] = this
    finally:
        if sys.path == [path for path in before if os.path.abspath(path or ".") != here]:  # noqa: PTH100
            sys.path[:] = before


try:
    _start()
except Exception as problem:
    sys.stderr.write(f"oomscope: the program runs without recording: {type(problem).__name__}: {problem}\n")
_run_hidden_sitecustomize()
