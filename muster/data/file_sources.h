// What a Dataset makes of the files it reads. Plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/base/dtype.h"
#include "muster/data/csv.h"

namespace muster {

// Which columns of a CSV file are what. The files are read line by line, not as a whole.
struct CsvColumns {
  // One float32 feature of shape [columns], in this order, by name or by number from 0 ("0", for files without names).
  // Empty: all but the label's, in the file's order.
  struct Group {
    std::string feature;
    std::vector<std::string> columns;
  };
  std::vector<Group> groups = {{"features", {}}};
  // The label's column, by name or number ("-1" is the last); empty: there is none.
  std::string label = "-1";
  DType label_dtype = DType::kInt64;  // or kFloat32
  CsvOptions::Header header = CsvOptions::Header::kDetect;
  char delimiter = ',';
};

struct ImageFolderOptions {
  size_t channels = 3;  // 1 (grey) or 3; others are converted
  // Names of the classes' folders in the order of their labels. Empty: all, sorted by name.
  std::vector<std::string> classes;
};

}  // namespace muster
