#include "muster/base/file_mistakes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/absl_view.h"

namespace muster {

void FileMistakes::Add(int line, std::string_view key, std::string_view what, std::string_view accepted) {
  Add(line, key, absl::InvalidArgumentError(absl::StrCat(AbslView(what), "; accepted: ", AbslView(accepted))));
}

void FileMistakes::Add(int line, std::string_view key, const absl::Status& mistake) {
  mistakes_.push_back(
      {line, absl::StrCat(file_, ":", line, ": ", AbslView(key), key.empty() ? "" : ": ", mistake.message())});
}

absl::Status FileMistakes::status() const {
  if (mistakes_.empty()) return absl::OkStatus();
  std::vector<Mistake> sorted = mistakes_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Mistake& a, const Mistake& b) { return a.line < b.line; });
  return absl::InvalidArgumentError(absl::StrJoin(
      sorted, "\n", [](std::string* out, const Mistake& mistake) { absl::StrAppend(out, mistake.text); }));
}

}  // namespace muster
