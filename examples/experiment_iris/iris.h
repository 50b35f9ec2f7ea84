// Fisher's irises of two species, as this example's data: the file that lies beside it.
#pragma once

#include <string>

#include "muster/data/dataset/dataset.h"

// All 100 rows as one batch, again and again: "feature" float32 [100, 4], labels int32 [100, 1] (0: setosa, 1:
// versicolor).
muster::Dataset Irises(const std::string& csv);

// Where the file is: below the current directory, or below the root of the sources that this program was built from.
std::string IrisCsv();
