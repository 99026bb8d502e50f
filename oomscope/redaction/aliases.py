"""Aliases for private names: the same name, the same alias."""

from __future__ import annotations

import keyword
import re
import sys
from types import FunctionType, MethodType, ModuleType

from oomscope.model import FrameKind, Note, frame_kind, package_path, standard_path
from oomscope.redaction import cpp_names
from oomscope.redaction.torch_names import CLASSES, FUNCTIONS

WELL_KNOWN_PACKAGES = frozenset({
    "accelerate", "aiohttp", "apex", "bitsandbytes", "click", "colossalai", "cv2", "dask", "datasets", "deepspeed",
    "detectron2", "diffusers", "dill", "einops", "evaluate", "fairscale", "fairseq", "fastai", "fire", "flash_attn",
    "fsspec", "functorch", "gradio", "h5py", "huggingface_hub", "hydra", "ignite", "IPython", "ipykernel", "jax",
    "joblib", "jupyter_client", "kornia", "lightning", "lightning_fabric", "liger_kernel", "matplotlib", "megatron",
    "ml_dtypes", "mmcv", "mmengine", "monai", "networkx", "nltk", "numba", "numpy", "omegaconf", "onnx",
    "onnxruntime", "open_clip", "oomscope", "optuna", "pandas", "peft", "PIL", "pkg_resources", "pluggy",
    "prodigyopt", "pytest", "pytorch_lightning", "ray", "requests", "safetensors", "scipy", "sentence_transformers",
    "setuptools", "sglang", "sklearn", "sympy", "tensorboard", "tensordict", "timm", "tokenizers", "torch",
    "torch_npu", "torch_xla", "torchao", "torchaudio", "torchdata", "torchmetrics", "torchrl", "torchtune",
    "torchvision", "tornado", "tqdm", "transformer_engine", "transformers", "triton", "trl", "typer", "unsloth",
    "vllm", "wandb", "xformers",
})  # fmt: skip
"""Packages whose own names tell nothing about their user."""

_COMMON_NAMES = frozenset({
    "forward", "backward", "setup_context", "training_step", "validation_step", "optimizer_step", "zero_grad",
    "closure", "weight", "bias", "grad", "running_mean", "running_var", "num_batches_tracked", "step", "exp_avg",
    "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer",
})  # fmt: skip
"""Words of PyTorch's own interface, wherever they are used."""

_PACKAGE_PATH = re.compile(
    r"(?:.*?/)?((?:lib(?:64)?/(?:python3[\d.]*/)?)?(?:site|dist)-packages)/([^/]+)(/.*)?\Z", re.DOTALL | re.IGNORECASE
)
_CPP_SOURCE = re.compile(r".*?/((?:torch/csrc|aten|c10)/.*)\Z", re.DOTALL)
_VERSION_FOLDER = re.compile(r"(?:python|pypy)3[\d.]*t?\Z")
_OOMSCOPE = re.compile(r".*?/(oomscope/.*)\Z", re.DOTALL)
_PSEUDO = re.compile(r"<(frozen [\w.]+|string|stdin|eval_with_key|unknown|built-in)>(?:\.\d+)?\Z|\?*\Z")
_PSEUDO_FUNCTIONS = frozenset({
    "<module>", "<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<locals>", "<unwind unsupported>",
})  # fmt: skip
_CELL = re.compile(r"<ipython-input-(\d+)-.*\Z")
_TRACE_LINE = re.compile(r'\s*File "([^"\n]*)", line (\d+), in (\S+)')
_RANGE_OPTIMIZER = re.compile(r"(Optimizer\.(?:step|zero_grad))#(\w+)\.(step|zero_grad)\Z")
_RANGE_KNOWN = re.compile(
    r"(?:ProfilerStep#\d+|(?:train|eval|step|iter|iteration|epoch|batch|forward|backward|optimizer)[ _#:]*\d*"
    r"|(?:nccl|gloo):_?(?:all_?reduce|reduce|all_?gather(?:_base)?|gather|reduce_scatter(?:_base|_tensor)?|scatter"
    r"|broadcast|all_?to_?all(?:_base)?|send|recv|barrier|coalesced)(?:_coalesced)?)\Z",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(.*?)(\d*)\Z", re.DOTALL)
# Signs beyond ASCII that are no letters, as emoji and the vowels of some scripts, are part of names as well.
_IDENTIFIER = re.compile(r"(?:[^\W\d]|[^\x00-\x7f])(?:\w|[^\x00-\x7f])*")
_NAMED_FILE = re.compile(rf"(?P<file>(?<![\w.])[\w-]+\.pyx?)(?![\w.])|{_IDENTIFIER.pattern}")
_DUNDERS = frozenset(
    name
    for kind in (object, type, BaseException, FunctionType, MethodType, ModuleType)
    for name in dir(kind)
    if name.startswith("__") and name.endswith("__")
)
"""Attributes that Python itself gives to objects."""
_NUMBERS = re.compile(r"[\d/_!\[\]-]{0,16}\Z")
_COMPILED = re.compile(r"Torch-Compiled Region: [\d/_]{1,16}\Z")
_OWN_TEXTS = frozenset({"key", "kind"})
"""Values of notes that quote nothing: names of torch's own columns, and of Python's types."""
_WORDS = frozenset({"function", "name", "symbol", "Optimizer", "package"})
"""Kinds of aliases that share their names: a function and an attribute of one name are one word to a reader."""
_OPTIMIZERS = frozenset({
    "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "LBFGS", "Muon", "NAdam", "RAdam",
    "RMSprop", "Rprop", "SGD", "SparseAdam", "AdamW8bit", "Adam8bit", "Lion", "FusedAdam", "FusedAdamW",
    "DeepSpeedCPUAdam", "ZeroRedundancyOptimizer",
})  # fmt: skip


_TORCH_NAMES = CLASSES | FUNCTIONS | _OPTIMIZERS


class Aliases:
    """Gives out aliases such as ``module_3`` in the order in which names come by."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._last: dict[str, int] = {}
        self._modules: dict[str, str] = {}
        self._public_files: set[str] = set()

    def key(self) -> dict[str, str]:
        """What each alias stands for."""
        return {alias: name for (_, name), alias in self._given.items()}

    def alias(self, kind: str, name: str) -> str:
        """The alias of `name` among the names of its `kind`, ``kind_number``."""
        group = "word" if kind in _WORDS else kind
        known = self._given.get((group, name))
        if known is None:
            self._last[kind] = self._last.get(kind, 0) + 1
            known = self._given[group, name] = f"{kind}_{self._last[kind]}"
        return known

    def code(self, filename: str, function: str, line: int) -> tuple[str, int, str]:
        """File, line and function of a frame."""
        path, known = self._path(filename)
        if known:
            self._public_files.add(_base(filename))
        return path, line, function if known and not _is_native(filename) else self.function(function, filename)

    def function(self, name: str, filename: str = "module.py") -> str:
        """The name of a function in a file that is not well known."""
        if _is_native(filename):
            return (
                name if name in _PSEUDO_FUNCTIONS else cpp_names.aliased(name, lambda part: self.alias("symbol", part))
            )
        return ".".join(self._function(part) for part in name.split("."))

    def name(self, dotted: str) -> str:
        """The name of a tensor, or what holds it: ``model.layers.0.weight``, ``train: features[12]``."""
        return _NAMED_FILE.sub(self._file_or_word, dotted)

    def _file_or_word(self, match: re.Match[str]) -> str:
        """A file within a text, by its name alone: the alias that its frames have; else a word."""
        if match["file"] is None:
            return self._word("name", match[0])
        base = match["file"]
        if base not in self._modules and base in self._public_files:
            return base
        return self._modules.get(base) or self._file(base)

    def range_name(self, name: str) -> str:
        """The name of a `record_function` range; what tells steps and phases apart stays."""
        if match := _RANGE_OPTIMIZER.match(name):
            optimizer = match[2] if match[2] in _OPTIMIZERS else self.alias("Optimizer", match[2])
            return f"{match[1]}#{optimizer}.{match[3]}"
        if _RANGE_KNOWN.match(name):
            return name
        match = _NUMBERED.match(name)
        assert match is not None
        return self.alias("range", match[1]) + (f" {match[2]}" if match[2] else "")

    def text(self, text: str) -> str:
        """A text that the program attached; numbers (torch.compile's frame ids) and torch's own words for them stay."""
        return text if _NUMBERS.match(text) or _COMPILED.match(text) else self.alias("text", text)

    def traceback_line(self, line: str) -> str | None:
        """A line of a formatted traceback; lines of source are left out."""
        match = _TRACE_LINE.match(line)
        if match is None:
            return None
        path, number, function = self.code(match[1], match[3], int(match[2]))
        return f'File "{path}", line {number}, in {function}'

    def note(self, note: Note) -> Note:
        """A note about the file: every text in it becomes an alias, but for those that are oomscope's own."""
        return Note(
            note.code,
            {
                name: self.alias("text", value) if isinstance(value, str) and name not in _OWN_TEXTS else value
                for name, value in note.values.items()
            },
        )

    def _function(self, part: str) -> str:
        if part in _PSEUDO_FUNCTIONS:
            return part
        return self._word("function", part) if _IDENTIFIER.fullmatch(part) else self.alias("function", part)

    def _word(self, kind: str, word: str) -> str:
        if word in _COMMON_NAMES or word in _TORCH_NAMES or keyword.iskeyword(word) or word in _DUNDERS:
            return word
        return self.alias(kind, word)

    def _path(self, path: str) -> tuple[str, bool]:
        """The alias of a file, and whether it belongs to a well-known package."""
        plain = path.replace("\\", "/")
        if (match := _PSEUDO.match(plain)) and _is_public(match[1] or ""):
            # What is typed or generated stands in no file, and its functions are its author's.
            return plain, (match[1] or "").startswith("frozen ")
        if match := _CELL.match(plain):
            return f"<ipython-input-{match[1]}>", False
        if match := _PACKAGE_PATH.match(plain):
            return self._packaged(match[1], match[2], match[3] or "", path)
        return self._by_kind(path, plain)

    def _by_kind(self, path: str, plain: str) -> tuple[str, bool]:
        """The alias of a file outside ``site-packages``, of the same kind as the file; and whether it is well known."""
        kind = frame_kind(path)
        if kind is FrameKind.CPP:
            if match := _CPP_SOURCE.match(plain):
                return f"/pytorch/{match[1]}", True
            alias = f"/project/{self._file(path)}"
            return (alias if frame_kind(alias) is kind else f"{alias}.so"), False
        if kind is FrameKind.STANDARD:
            return self._standard(path)
        if kind is FrameKind.TORCH:
            known = package_path(path)
            return (f"/pytorch/{known}", True) if known else (f"/tmp/torchinductor_user/{self._file(path)}", False)  # noqa: S108
        if kind is FrameKind.LIBRARY:
            return f"/site-packages/{self.alias('package', 'downloaded')}/{self._file(path)}", False
        if kind is FrameKind.OOMSCOPE and (match := _OOMSCOPE.match(plain)):
            return f"/{match[1]}", True
        return ("<string>" if kind is FrameKind.PLUMBING else f"/project/{self._file(path)}"), False

    def _standard(self, path: str) -> tuple[str, bool]:
        folder, _, rest = (standard_path(path) or "").partition("/")
        if not _VERSION_FOLDER.match(folder):
            folder = "python3"
        known = rest.partition("/")[0].removesuffix(".py") in sys.stdlib_module_names
        return f"/lib/{folder}/{rest if known else self._file(path)}", known

    def _packaged(self, folder: str, package: str, rest: str, path: str) -> tuple[str, bool]:
        if package.removesuffix(".py") in WELL_KNOWN_PACKAGES:
            return f"/{folder}/{package}{rest}", True
        if not rest:
            return f"/{folder}/{self._file(path)}", False
        return f"/{folder}/{self.alias('package', package)}/{self._file(path)}", False

    def _file(self, path: str) -> str:
        suffix = re.search(r"\.\w{1,4}\Z", path)
        alias = self.alias("module", path) + (suffix[0] if suffix else "")
        # Of several files with one name, the first: a text names a file without its folder.
        self._modules.setdefault(_base(path), alias)
        return alias


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _is_public(pseudo: str) -> bool:
    return not pseudo.startswith("frozen ") or pseudo[7:].partition(".")[0] in sys.stdlib_module_names


def _is_native(filename: str) -> bool:
    return frame_kind(filename) is FrameKind.CPP
