// Options for a Dataset that reads files. Plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/base/dtype.h"
#include "muster/data/csv.h"

namespace muster {

// Says how the columns of CSV files are used. The files are read line by line, not as a whole (csv.h describes the
// format), and must have the same columns; only the first needs a header. Columns that aren't used may hold anything.
struct CsvColumns {
  // One float32 feature of shape [columns], in this order. A column is given by its name or by its number from 0 ("0",
  // for files without names; "-1" is the last).
  struct Group {
    std::string feature;
    std::vector<std::string> columns;  // empty: all except the label's, in the file's order
  };
  std::vector<Group> groups = {{"features", {}}};
  // The label's column, given in the same way; empty: no label.
  std::string label = "-1";
  DType label_dtype = DType::kInt64;  // kInt64, for labels that are whole numbers, or kFloat32
  CsvOptions::Header header = CsvOptions::Header::kDetect;
  char delimiter = ',';
};

// Folders of pictures: PNG, JPEG (.jpg, .jpeg), binary PGM and PPM (.pgm, .ppm, .pnm), all of one size. Files and
// folders whose names begin with a dot are silently skipped; anything else that isn't a picture is skipped with a
// warning that counts it.
struct ImageFolderOptions {
  // 1 (grey) or 3. Other pictures are converted: colours to grey by ITU-R BT.601's weights, grey to three equal
  // colours, 16 bits to 8; alpha is dropped.
  size_t channels = 3;
  // Names of the classes' folders in the order of their labels. Empty: all folders, sorted by name.
  std::vector<std::string> classes;
};

}  // namespace muster
