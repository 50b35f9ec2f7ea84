// How many of the held-out digits a model reads, and the line in which the example programs say it at their end. Used
// by one thread.
#pragma once

#include <torch/torch.h>

#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "muster/data/labelled_rows.h"

// The share of `guesses` ([batch, classes], the largest is the guess) that are as `labels` ([batch], on any device).
double Accuracy(const torch::Tensor& guesses, const torch::Tensor& labels);
// Of the net's guesses.
double Accuracy(Net& net, const Examples& examples);

// "Test accuracy 0.972 after 400 steps" on stdout.
void PrintTestAccuracy(double accuracy, int64_t steps);
// … of the net on the held-out part.
void PrintTestAccuracy(Net& net, const muster::ImageData& data, int64_t steps);
