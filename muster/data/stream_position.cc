#include "muster/data/stream_position.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr char kPositionOf[] = " of ";

// Returns the 3 of "epoch=3" for the key "epoch".
absl::StatusOr<int64_t> NumberOf(absl::string_view word, absl::string_view key) {
  int64_t number = 0;
  if (absl::ConsumePrefix(&word, key) && absl::ConsumePrefix(&word, "=") && absl::SimpleAtoi(word, &number) &&
      number >= 0) {
    return number;
  }
  return absl::InvalidArgumentError(absl::StrCat("no ", key));
}

absl::StatusOr<StreamPosition> ParseWords(const std::vector<absl::string_view>& words) {
  StreamPosition position;
  if (words.size() == 2) {
    ASSIGN_OR_RETURN(position.epoch, NumberOf(words[0], "epoch"));
    RETURN_IF_ERROR(NumberOf(words[1], "offset").status());
    return position;
  }
  if (words.size() != 3) return absl::InvalidArgumentError("not three words");
  ASSIGN_OR_RETURN(position.elements, NumberOf(words[0], "elements"));
  ASSIGN_OR_RETURN(position.epoch, NumberOf(words[1], "epoch"));
  absl::string_view at = words[2];
  if (!absl::ConsumePrefix(&at, "at=")) return absl::InvalidArgumentError("no at");
  for (const absl::string_view word : absl::StrSplit(at, ',', absl::SkipEmpty())) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 0) return absl::InvalidArgumentError("no number");
    position.numbers.push_back(number);
  }
  return position;
}

}  // namespace

std::string FormatPosition(const StreamPosition& position) {
  return absl::StrCat("elements=", position.elements, " epoch=", position.epoch,
                      " at=", absl::StrJoin(position.numbers, ","), kPositionOf, position.of);
}

absl::StatusOr<StreamPosition> ParsePosition(absl::string_view text) {
  const size_t of = text.find(kPositionOf);
  const absl::string_view place = text.substr(0, of);
  absl::StatusOr<StreamPosition> position =
      of == absl::string_view::npos ? absl::InvalidArgumentError("of nothing") : ParseWords(absl::StrSplit(place, ' '));
  if (!position.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a position in an input"));
  }
  position->of = std::string(text.substr(of + sizeof kPositionOf - 1));
  return position;
}

}  // namespace muster
