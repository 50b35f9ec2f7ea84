"""Update rules, clipping and schedules, as a program writes them: muster.Adam(learning_rate=1e-3).

Plain values, checked by C++ when they are made; the defaults are those of muster/optim/rule_options.h."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from ._library import RuleSpec, ScheduleSpec


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How the learning rate changes with the global step; one of the classes below."""

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        self.spec()

    def spec(self) -> ScheduleSpec:
        """What C++ takes. Raises InvalidArgumentError."""
        raise NotImplementedError

    def learning_rate_at(self, base: float, global_step: int) -> float:
        """The rate of the update that increments `global_step`."""
        return self.spec().learning_rate_at(base, global_step)


@dataclasses.dataclass(frozen=True)
class ConstantSchedule(Schedule):
    """The base rate, after a warm-up of `warmup_steps` steps that rises linearly from `warmup_from` times the rate."""

    warmup_steps: int = 0
    warmup_from: float = 0.0
    kind: ClassVar[str] = "constant"

    def spec(self) -> ScheduleSpec:
        return ScheduleSpec(self.kind, warmup_steps=self.warmup_steps, warmup_from=self.warmup_from)


@dataclasses.dataclass(frozen=True)
class StepSchedule(Schedule):
    """base * decay_rate ** floor(step / decay_steps)"""

    decay_steps: int
    decay_rate: float = 0.1
    warmup_steps: int = 0
    warmup_from: float = 0.0
    kind: ClassVar[str] = "step"

    def spec(self) -> ScheduleSpec:
        return ScheduleSpec(self.kind, decay_steps=self.decay_steps, decay_rate=self.decay_rate,
                                     warmup_steps=self.warmup_steps, warmup_from=self.warmup_from)


@dataclasses.dataclass(frozen=True)
class ExponentialSchedule(StepSchedule):
    """base * decay_rate ** (step / decay_steps)"""

    kind: ClassVar[str] = "exponential"


@dataclasses.dataclass(frozen=True)
class PolynomialSchedule(Schedule):
    """(base - end_learning_rate) * (1 - step / decay_steps) ** power + end_learning_rate"""

    decay_steps: int
    end_learning_rate: float = 0.0001
    power: float = 1.0
    cycle: bool = False
    warmup_steps: int = 0
    warmup_from: float = 0.0
    kind: ClassVar[str] = "polynomial"

    def spec(self) -> ScheduleSpec:
        return ScheduleSpec(self.kind, decay_steps=self.decay_steps, end_learning_rate=self.end_learning_rate,
                                     power=self.power, cycle=self.cycle, warmup_steps=self.warmup_steps,
                                     warmup_from=self.warmup_from)


@dataclasses.dataclass(frozen=True)
class CosineSchedule(Schedule):
    """base * ((1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2 + alpha)"""

    decay_steps: int
    alpha: float = 0.0
    warmup_steps: int = 0
    warmup_from: float = 0.0
    kind: ClassVar[str] = "cosine"

    def spec(self) -> ScheduleSpec:
        return ScheduleSpec(self.kind, decay_steps=self.decay_steps, alpha=self.alpha,
                                     warmup_steps=self.warmup_steps, warmup_from=self.warmup_from)


@dataclasses.dataclass(frozen=True)
class ClipByValue:
    """Each element of a gradient into [-limit, limit]."""

    limit: float
    kind: ClassVar[str] = "value"


@dataclasses.dataclass(frozen=True)
class ClipByNorm:
    """Each variable's gradient to a norm of at most the limit."""

    limit: float
    kind: ClassVar[str] = "norm"


@dataclasses.dataclass(frozen=True)
class ClipByGlobalNorm:
    """All gradients to a norm, of all together, of at most the limit."""

    limit: float
    kind: ClassVar[str] = "global_norm"


Clip = ClipByValue | ClipByNorm | ClipByGlobalNorm


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
    """An update rule with its hyperparameters; one of the classes below."""

    name: ClassVar[str]
    clip: Clip | None = None

    def __post_init__(self) -> None:
        self.spec()

    def hyperparameters(self) -> dict[str, float]:
        """The values that the rule has beside clipping and schedule, flags as 0 and 1."""
        fields = [field.name for field in dataclasses.fields(self) if field.name not in ("clip", "schedule")]
        return {name: float(getattr(self, name)) for name in fields}

    def spec(self) -> RuleSpec:
        """What C++ takes. Raises InvalidArgumentError."""
        return self._spec(ScheduleSpec("constant"))

    def _spec(self, schedule: ScheduleSpec) -> RuleSpec:
        clip, limit = (self.clip.kind, self.clip.limit) if self.clip else ("none", 0.0)
        return RuleSpec(self.name, self.hyperparameters(), clip, limit, schedule)

    def text(self) -> str:
        """As flags and logs write it: "adam:learning_rate=0.1". Clipping and schedule aren't in it."""
        return self.spec().text


@dataclasses.dataclass(frozen=True, kw_only=True)
class _RuleWithRate(Rule):
    """A rule that has a learning rate."""

    learning_rate: float = 0.01
    weight_decay: float = 0.0
    schedule: Schedule = ConstantSchedule()

    def spec(self) -> RuleSpec:
        return self._spec(self.schedule.spec())


@dataclasses.dataclass(frozen=True, kw_only=True)
class SGD(_RuleWithRate):
    """p - rate * g"""

    name: ClassVar[str] = "sgd"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Momentum(_RuleWithRate):
    """torch.optim.SGD with momentum."""

    momentum: float = 0.9
    nesterov: bool = False
    name: ClassVar[str] = "momentum"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adam(_RuleWithRate):
    """torch.optim.Adam."""

    learning_rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    name: ClassVar[str] = "adam"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdamW(Adam):
    """torch.optim.AdamW."""

    weight_decay: float = 0.01
    name: ClassVar[str] = "adamw"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adagrad(_RuleWithRate):
    """torch.optim.Adagrad."""

    learning_rate_decay: float = 0.0
    initial_accumulator: float = 0.0
    epsilon: float = 1e-10
    name: ClassVar[str] = "adagrad"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RMSprop(_RuleWithRate):
    """torch.optim.RMSprop; `rho` is its alpha."""

    rho: float = 0.99
    epsilon: float = 1e-8
    momentum: float = 0.0
    centered: bool = False
    name: ClassVar[str] = "rmsprop"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adadelta(_RuleWithRate):
    """torch.optim.Adadelta."""

    learning_rate: float = 1.0
    rho: float = 0.9
    epsilon: float = 1e-6
    name: ClassVar[str] = "adadelta"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ftrl(_RuleWithRate):
    """TensorFlow's Ftrl."""

    learning_rate: float = 0.001
    learning_rate_power: float = -0.5
    initial_accumulator: float = 0.1
    l1: float = 0.0
    l2: float = 0.0
    name: ClassVar[str] = "ftrl"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlainAdd(Rule):
    """Adds the pushed values: for programs that push their own deltas."""

    name: ClassVar[str] = "add"
