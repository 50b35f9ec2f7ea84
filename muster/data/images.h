// Loads the two image sets that the examples train on, each divided into training and test rows the same way on every
// machine and in every run. Thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/data/labelled_rows.h"

namespace muster {

// Returns whether `row` (counted from 0) of examples/data/digits.csv is held out: two of every ten rows, one place
// further in each next ten ((row + 1) % 5 == row / 10 % 5). The file often runs through the digits 0 ... 9 in order, so
// holding out every fifth row would take twice as many of one digit as of another.
bool IsHeldOutDigit(size_t row);

// The 8x8 digits: a CSV file with 64 columns of pixels 0 ... 16 and the label 0 ... 9. 1,438 rows to learn from and 359
// held out. InvalidArgument naming file and line for anything else.
absl::StatusOr<ImageData> LoadDigits(const std::string& path, FileSystem& files = PosixFileSystem());

// Loads MNIST from the directory that holds its four files under their usual names (train-images-idx3-ubyte,
// train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte; with .gz or without; also with a dot before
// "idx"). InvalidArgument or DataLoss, naming the file, if they are damaged or don't belong together.
absl::StatusOr<ImageData> LoadMnist(const std::string& directory, FileSystem& files = PosixFileSystem());

}  // namespace muster
