// Fisher's irises of two species, the data of this example, in a file beside it.
#pragma once

#include <string>

#include "muster/data/dataset/dataset.h"

// Returns all 100 rows as one batch, repeated: "feature" float32 [100, 4], labels int32 [100, 1] (0: setosa, 1:
// versicolor).
muster::Dataset Irises(const std::string& csv);

// Returns the path of the file: below the current directory, or below the root of the sources that this program was
// built from.
std::string IrisCsv();
