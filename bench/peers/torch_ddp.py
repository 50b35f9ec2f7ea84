#!/usr/bin/env python3
"""A rank of PyTorch's DistributedDataParallel over Gloo: synchronous, no parameter server."""

import torch.distributed
from torch.nn.parallel import DistributedDataParallel

import measure
import torch_models


def main():
    args = measure.arguments(__doc__)
    module = torch_models.make(args)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://{args.addresses}", rank=args.task,
                                         world_size=args.workers)
    measure.Meter(args, in_step=True).run(torch_models.stepper(args, DistributedDataParallel(module), args.task))
    torch.distributed.destroy_process_group()


main()
