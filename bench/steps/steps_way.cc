#include "bench/steps/steps_way.h"

#include "absl/strings/str_cat.h"

namespace muster::bench {

std::string NameOf(const StepsWay& way) {
  std::string name = way.mode;
  const auto add = [&name](const std::string& word, const char* usual) {
    if (word != usual) absl::StrAppend(&name, " ", word);
  };
  add(way.apply, "-");
  add(way.transport, "-");
  add(way.wire, "fp32");
  if (way.reduce != "auto") add(way.reduce, "-");
  if (!way.undo) absl::StrAppend(&name, ", no undo");
  if (way.traced) absl::StrAppend(&name, ", traced");
  if (!way.amd) absl::StrAppend(&name, ", switch off");
  return name;
}

}  // namespace muster::bench
