#!/usr/bin/env python3
"""Gloo's side of `bench collective` (bench_collective.cc starts it): one rank of torch.distributed.

gloo_all_reduce.py --rank R --ranks N --port P --megabytes M,... --calls C,... --out FILE

Writes the seconds of the median all-reduce of each size to FILE. The data are rewritten before each call, which all
ranks begin together."""

import argparse
import statistics
import time

import torch
import torch.distributed as dist

WARM_UP = 5


def main():
    parser = argparse.ArgumentParser()
    for name in ("rank", "ranks", "port"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--megabytes", required=True)
    parser.add_argument("--calls", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{args.port}", rank=args.rank, world_size=args.ranks)
    medians = []
    for megabytes, calls in zip(args.megabytes.split(","), args.calls.split(",")):
        count = int(float(megabytes) * 1e6 / 4)
        base = (torch.arange(count) % 17).float()
        data = torch.empty(count)
        seconds = []
        for call in range(-WARM_UP, int(calls)):
            data.copy_(base)
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(data)
            if call >= 0:
                seconds.append(time.perf_counter() - start)
            assert data[-1] == args.ranks * base[-1]
        medians.append(statistics.median(seconds))
    dist.barrier()
    with open(args.out, "w") as out:
        out.write(" ".join(f"{m:.9f}" for m in medians) + "\n")


main()
