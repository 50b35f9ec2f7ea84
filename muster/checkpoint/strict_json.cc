#include "muster/checkpoint/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

using nlohmann::json;

// Inspects the text without building anything, so that a refused text costs no allocations.
class Inspector final : public json::json_sax_t {
 public:
  explicit Inspector(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return Fail("binary value"); }
  bool start_object(size_t) override { return Enter(); }
  bool start_array(size_t) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool end_array() override { return Leave(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    return Fail(absl::StrCat("key '", name, "' is given twice"));
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("not JSON at byte ", position));
  }

  const std::string& mistake() const { return mistake_; }

 private:
  bool Enter() {
    if (static_cast<int>(keys_.size()) >= max_depth_) return Fail(absl::StrCat("nested deeper than ", max_depth_));
    keys_.emplace_back();
    return true;
  }
  bool Leave() {
    keys_.pop_back();
    return true;
  }
  bool Fail(std::string mistake) {
    mistake_ = std::move(mistake);
    return false;
  }

  const int max_depth_;
  std::vector<std::set<std::string>> keys_;  // keys of the objects that are open
  std::string mistake_;
};

}  // namespace

absl::StatusOr<json> ParseStrictJson(std::string_view text, int max_depth) {
  Inspector inspector(max_depth);
  if (!json::sax_parse(text.begin(), text.end(), &inspector)) return absl::InvalidArgumentError(inspector.mistake());
  return json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

absl::StatusOr<std::string> QuoteJson(std::string_view text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    return absl::InvalidArgumentError("not UTF-8");
  }
}

}  // namespace muster
