// Any bytes as a CSV file give an error or a rectangular table of finite numbers.
#include <cmath>
#include <string_view>

#include "muster/base/check.h"
#include "muster/data/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::CsvOptions;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  for (const auto header : {CsvOptions::Header::kNone, CsvOptions::Header::kPresent, CsvOptions::Header::kDetect}) {
    const auto table = muster::ParseCsv(content, "fuzz", {.header = header});
    if (!table.ok()) continue;
    MUSTER_CHECK(table->rows() > 0 && table->rows() * table->columns == table->values.size());
    for (const double value : table->values) MUSTER_CHECK(std::isfinite(value));
  }
  return 0;
}
