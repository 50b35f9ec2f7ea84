// Collects all mistakes in a file, so that its author sees them at once. Not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace muster {

class FileMistakes {
 public:
  explicit FileMistakes(std::string file) : file_(std::move(file)) {}

  // `key` is the full name: "train.tensorflow.distributed.worker". `what` completes it: "is \"0\"", "is missing".
  void Add(int line, std::string_view key, std::string_view what, std::string_view accepted);
  // `mistake`: its message says what is wrong and what is accepted.
  void Add(int line, std::string_view key, const absl::Status& mistake);
  // Returns "FILE:LINE: KEY: WHAT; accepted: ACCEPTED" for each mistake, by line; OK if there are none.
  [[nodiscard]] absl::Status status() const;

 private:
  struct Mistake {
    int line;
    std::string text;
  };

  const std::string file_;
  std::vector<Mistake> mistakes_;
};

}  // namespace muster
