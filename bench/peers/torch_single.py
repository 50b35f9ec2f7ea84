#!/usr/bin/env python3
"""One process of PyTorch, alone: what `bench peers` calls torch_single."""

import measure
import torch_models


def main():
    args = measure.arguments(__doc__)
    measure.Meter(args).run(torch_models.stepper(args, torch_models.make(args), args.task))


main()
