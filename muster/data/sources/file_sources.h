// What a Dataset makes of the files it reads. Plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/base/dtype.h"
#include "muster/data/csv.h"

namespace muster {

// Which columns of CSV files are what. The files are read line by line, not as a whole (csv.h has what they may look
// like), and have the same columns; a header may be in the first one only. Columns that aren't asked for may hold
// anything.
struct CsvColumns {
  // One float32 feature of shape [columns], in this order. A column is asked for by its name or by its number from 0
  // ("0", for files without names; "-1" is the last).
  struct Group {
    std::string feature;
    std::vector<std::string> columns;  // empty: all but the label's, in the file's order
  };
  std::vector<Group> groups = {{"features", {}}};
  // The label's column, likewise; empty: there is none.
  std::string label = "-1";
  DType label_dtype = DType::kInt64;  // labels are whole numbers; or kFloat32
  CsvOptions::Header header = CsvOptions::Header::kDetect;
  char delimiter = ',';
};

// Folders of pictures: PNG, JPEG (.jpg, .jpeg), binary PGM and PPM (.pgm, .ppm, .pnm), all of one size. Files and
// folders that begin with a dot are passed by in silence; what else is no picture is left out, and a warning counts it.
struct ImageFolderOptions {
  // 1 (grey) or 3. Pictures of another kind are converted: colours to grey by ITU-R BT.601's weights, grey to three
  // equal colours, 16 bits to 8; alpha is left out.
  size_t channels = 3;
  // Names of the classes' folders in the order of their labels. Empty: all, sorted by name.
  std::vector<std::string> classes;
};

}  // namespace muster
