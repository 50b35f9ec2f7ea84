// Measures how many of the held-out digits a model recognises, and prints the line with which the example programs end.
// Used by one thread.
#pragma once

#include <torch/torch.h>

#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "muster/data/labelled_rows.h"

// Returns the share of `guesses` ([batch, classes]; the largest is the guess) that equal `labels` ([batch], on any
// device).
double Accuracy(const torch::Tensor& guesses, const torch::Tensor& labels);
// Returns the share of the net's correct guesses.
double Accuracy(Net& net, const Examples& examples);

// Prints "Test accuracy 0.972 after 400 steps" on stdout.
void PrintTestAccuracy(double accuracy, int64_t steps);
// The same for the net on the held-out part.
void PrintTestAccuracy(Net& net, const muster::ImageData& data, int64_t steps);
