"""Writes a checkpoint as docs/checkpoint_format.md says, without muster: what CheckpointReader is held against."""

import json
import pathlib

import safetensors.torch
import torch


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def slice_of(tensor: str, shape: list[int], part: int = 0, offset: int = 0) -> dict[str, object]:
    return {"part": part, "tensor": tensor, "offset": offset, "shape": shape}


def variable(name: str, value: torch.Tensor, slices: list[dict[str, object]], kind: str = "trainable",
             slots: tuple[dict[str, object], ...] = ()) -> dict[str, object]:
    return {"name": name, "dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape), "kind": kind,
            "slices": slices, "slots": list(slots)}


def write(folder: pathlib.Path, step: int = 7) -> dict[str, torch.Tensor]:
    """Two parts, the weight divided between them; returns the values."""
    values = {"fc.weight": torch.arange(12, dtype=torch.float32).reshape(4, 3) / 7,
              "fc.bias": torch.tensor([1.5, -2.25], dtype=torch.bfloat16), "batches": torch.tensor(9)}
    momentum = torch.full((2,), 0.5)
    parts = [{"a": values["fc.weight"][:1].clone(), "bias": values["fc.bias"], "m": momentum},
             {"b": values["fc.weight"][1:].clone(), "n": values["batches"]}]
    listed: list[dict[str, object]] = []
    for number, part in enumerate(parts):
        file = folder / f"model.ckpt-{step}.ps-{number}-of-2.safetensors"
        safetensors.torch.save_file(part, file)
        data = file.read_bytes()
        listed.append({"file": file.name, "bytes": len(data), "crc32c": crc32c(data)})
    slot = {"name": "momentum", "dtype": "float32", "stride": 1, "slices": [slice_of("m", [2])]}
    manifest = {"format": "muster checkpoint", "format_version": 1, "global_step": step, "saved_at": 1, "save_id": "t1",
                "job": "j", "lease_epoch": 1, "writer": "ps:0", "muster_version": "0.2.0",
                "rule": {"name": "momentum", "hyperparameters": {"learning_rate": 0.5, "momentum": 0.75}},
                "parts": listed,
                "variables": [
                    variable("fc.weight", values["fc.weight"],
                             [slice_of("a", [1, 3]), slice_of("b", [3, 3], part=1, offset=3)]),
                    variable("fc.bias", values["fc.bias"], [slice_of("bias", [2])], slots=(slot,)),
                    variable("batches", values["batches"], [slice_of("n", [], part=1)], kind="buffer")],
                "extras": {}}
    text = json.dumps(manifest)[1:] + "\n"
    (folder / f"model.ckpt-{step}.manifest.json").write_text(f'{{"crc32c":"{crc32c(text.encode()):08x}",{text}')
    return values
