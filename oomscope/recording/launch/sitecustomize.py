# mypy: disallow-untyped-calls=False, disallow-untyped-defs=False
"""Python imports this at start when its folder is on PYTHONPATH: how recording gets into an unchanged program.

``oomscope run`` puts it there for one program, an administrator for everyone's. The program is run by a plain ``python
program.py``, so its arguments, ``__main__``, tracebacks, signals and exit code are its own. Nothing may fail here or
take time: until torch is imported, nothing of oomscope is. Whatever ``sitecustomize`` would have been found without it
is still run.
"""

import os
import sys


class _TorchFinder:
    """Finds torch as it would have been found, and has the recording started behind its import."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    _call_after_import(spec.loader)
                return spec
        return None


def _call_after_import(loader):
    execute = loader.exec_module

    def exec_module(module):
        execute(module)
        del loader.exec_module
        try:
            _launching().start()
        except Exception as problem:
            sys.stderr.write(f"oomscope: the program runs without recording: {type(problem).__name__}: {problem}\n")

    loader.exec_module = exec_module


def _launching():
    try:
        from oomscope.recording import launching
    except ImportError:
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120
        sys.path.append(package)  # not installed for this Python: a checkout, or a folder that all share
        try:
            from oomscope.recording import launching
        finally:
            sys.path.remove(package)
    return launching


def _is_meant():
    """Whether this Python is the one of `oomscope run`, or, where nobody said which, one that oomscope can run in."""
    return os.environ.get("OOMSCOPE_RUN", sys.prefix) == sys.prefix and sys.version_info >= (3, 10)


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


if _is_meant():
    sys.meta_path.insert(0, _TorchFinder())
_run_hidden_sitecustomize()
