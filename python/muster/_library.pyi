from collections.abc import Mapping, Sequence
import os
from typing import ClassVar

import torch


version: str = '0.2.0'

compiler: str = '12.2.0'

class ClusterSpec:
    """
    Which tasks a cluster has, and the address of each: the "cluster" of TF_CONFIG.
    """

    def __init__(self, jobs: Mapping[str, Sequence[str] | Mapping[int, str]]) -> None:
        """
        Each job's addresses: a list, or a dict from index to address where only some tasks are known.
        """

    @staticmethod
    def from_json(text: str) -> ClusterSpec: ...

    def to_json(self) -> str:
        """One line; from_json makes an equal spec of it."""

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs, sorted."""

    def tasks(self, job: str) -> dict[int, str]:
        """Index and address of each known task; empty for an unknown job."""

    def num_tasks(self, job: str) -> int: ...

    def task_address(self, job: str, index: int) -> str: ...

    def __bool__(self) -> bool:
        """False if there is no cluster."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

class TaskConfig:
    """Which task of which cluster this process is."""

    def __init__(self) -> None:
        """A process alone: worker 0, its own chief."""

    @staticmethod
    def from_environment() -> TaskConfig:
        """
        From TF_CONFIG, from what torchrun or srun set, or from none of these: alone.
        """

    @staticmethod
    def from_arguments(arguments: Sequence[str]) -> tuple[TaskConfig, list[str]]:
        """
        The same with a task's flags (--job_name, --ps_hosts, ...), which win. `arguments` are without the
        program's name; those that are the program's own come back beside the task.
        """

    @property
    def cluster(self) -> ClusterSpec:
        """Empty if there is no cluster, and for an evaluator."""

    @property
    def task(self) -> str:
        """"worker:1\""""

    @property
    def job(self) -> str: ...

    @property
    def index(self) -> int: ...

    @property
    def chief(self) -> str:
        """The task that initialises, saves and restores."""

    @property
    def is_chief(self) -> bool: ...

    @property
    def is_ps(self) -> bool: ...

    @property
    def is_evaluator(self) -> bool: ...

    @property
    def distributed(self) -> bool:
        """True if several processes train together."""

    @property
    def num_ps(self) -> int: ...

    @property
    def num_workers(self) -> int:
        """Tasks that train, including the chief; 1 alone."""

    @property
    def global_id(self) -> int:
        """The chief is 0, the ps are last; -1 for an evaluator."""

    @property
    def master(self) -> str:
        """The task's own address; empty alone and for an evaluator."""

    @property
    def ps_addresses(self) -> list[str]: ...

    @property
    def worker_tasks(self) -> list[str]:
        """The tasks that train, the chief first."""

    @property
    def model_dir(self) -> str:
        """Empty if not given."""

    @property
    def device(self) -> str:
        """"cpu", "cuda:1\""""

    @property
    def trace_part(self) -> str:
        """The file of this task's part of the trace; empty: none."""

    @property
    def stall_limit(self) -> float | None:
        """Seconds."""

    @property
    def join_timeout(self) -> float | None:
        """Seconds."""

    @property
    def linger(self) -> float | None:
        """Seconds."""

    @property
    def leaves_on_signal(self) -> bool: ...

    @property
    def notice(self) -> str:
        """
        One line about where the role comes from, if that isn't plain; else empty.
        """

    @property
    def definition(self) -> str:
        """Text: every task of the cluster, this one marked by *."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

class ScheduleSpec:
    def __init__(self, kind: str, *, decay_steps: int = 0, decay_rate: float = 0.1, end_learning_rate: float = 0.0001, power: float = 1.0, cycle: bool = False, alpha: float = 0.0, warmup_steps: int = 0, warmup_from: float = 0.0) -> None: ...

    def learning_rate_at(self, base: float, global_step: int) -> float: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

class RuleSpec:
    def __init__(self, name: str, hyperparameters: Mapping[str, float], clip: str, limit: float, schedule: ScheduleSpec) -> None: ...

    @property
    def text(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

def standard_rules() -> dict[str, dict[str, float]]:
    """Every rule's hyperparameters with their defaults."""

class CheckpointReader:
    """
    A checkpoint as whole variables by name, whatever slices and files hold them.
    """

    def __init__(self, path: str | os.PathLike[str], *, verify_checksums: bool = True) -> None:
        """
        `path` is a checkpoint ("dir/model.ckpt-100") or a folder, whose newest one is meant. With
        verify_checksums every file is read whole first.
        """

    @property
    def path(self) -> str: ...

    @property
    def global_step(self) -> int: ...

    @property
    def muster_version(self) -> str: ...

    @property
    def rule(self) -> str:
        """The rule that updated the variables: "adam"; empty: none."""

    @property
    def hyperparameters(self) -> dict[str, float]: ...

    def names(self) -> list[str]:
        """The names of the variables, in order of creation."""

    def shape(self, name: str) -> list[int]: ...

    def kind(self, name: str) -> str:
        """"trainable", "frozen", "buffer" or "rows"."""

    def slots(self, name: str) -> list[str]:
        """The names of the variable's slots: "adam_m"."""

    def read(self, name: str) -> torch.Tensor: ...

    def read_slot(self, name: str, slot: str) -> torch.Tensor: ...

    def state_dict(self) -> dict[str, torch.Tensor]:
        """All variables, for torch's load_state_dict."""

    def __contains__(self, name: str) -> bool: ...

    def __len__(self) -> int: ...

    def __repr__(self) -> str: ...
