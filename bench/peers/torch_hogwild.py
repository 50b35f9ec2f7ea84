#!/usr/bin/env python3
"""PyTorch's Hogwild: processes that train one model in shared memory, without locks. This one starts them all."""

import torch.multiprocessing

import measure
import torch_models


def work(args, task, model):
    args.task = task
    if args.threads:
        torch.set_num_threads(args.threads)
    measure.Meter(args).run(torch_models.stepper(args, model, task))


def main():
    args = measure.arguments(__doc__)
    model = torch_models.make(args)
    model.share_memory()
    context = torch.multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(args, task, model)) for task in range(args.workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
