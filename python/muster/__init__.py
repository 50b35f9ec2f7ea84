"""muster: torch programs that train on many processes.

So far the package has what needs no training: the task of this process (TaskConfig), update rules and schedules, and
checkpoints. It brings the command `muster`. The training itself is C++'s (muster/muster.h) until the binding has it."""

from __future__ import annotations

import dataclasses

from . import _build, _torch_match

try:
    import torch
except ModuleNotFoundError as _missing:
    if _missing.name != "torch":
        raise
    raise ImportError(_torch_match.not_installed(_build.TORCH_VERSION)) from None

# What torch is comes from torch itself: an installed package and a module on the path may differ.
_torch_match.check(_build.TORCH_VERSION, _build.TORCH_CXX11_ABI, str(torch.__version__),
                   torch.compiled_with_cxx11_abi())

try:
    from . import _library
except ImportError as _cause:
    raise ImportError(_torch_match.not_opened(_build.TORCH_VERSION, str(torch.__version__), _cause)) from _cause

from ._library import CheckpointReader, ClusterSpec, TaskConfig
from .errors import Error
from .rules import (SGD, Adadelta, Adagrad, Adam, AdamW, ClipByGlobalNorm, ClipByNorm, ClipByValue, ConstantSchedule,
                    CosineSchedule, ExponentialSchedule, Ftrl, Momentum, PlainAdd, PolynomialSchedule, RMSprop, Rule,
                    Schedule, StepSchedule)

__version__: str = _library.version


@dataclasses.dataclass(frozen=True)
class BuildInfo:
    """What this muster was built with, and the torch that it has found."""

    version: str
    compiler: str
    built_for_torch: str
    torch: str
    cxx11_abi: bool


def build_info() -> BuildInfo:
    """For reports of errors: `print(muster.build_info())`."""
    return BuildInfo(version=__version__, compiler=_library.compiler, built_for_torch=_build.TORCH_VERSION,
                     torch=str(torch.__version__), cxx11_abi=_build.TORCH_CXX11_ABI)


__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "BuildInfo", "CheckpointReader", "ClipByGlobalNorm",
           "ClipByNorm", "ClipByValue", "ClusterSpec", "ConstantSchedule", "CosineSchedule", "Error", "ExponentialSchedule",
           "Ftrl", "Momentum", "PlainAdd", "PolynomialSchedule", "RMSprop", "Rule", "Schedule", "StepSchedule", "TaskConfig",
           "build_info"]
