#include "muster/data/image_files/pnm.h"

#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// Height times width times three channels of two bytes easily fits into 64 bits.
constexpr size_t kLargestPnmSide = 1'000'000'000;
constexpr size_t kLargestPnmValue = 65535;

// Parses the header from front to back.
class PnmHeader {
 public:
  PnmHeader(std::string_view content, const std::string& name) : rest_(content), name_(name) {}

  // Returns 3 for P6, 1 for P5.
  absl::StatusOr<size_t> TakeChannels() {
    const std::string_view magic = rest_.substr(0, 2);
    if (magic != "P5" && magic != "P6")
      return absl::InvalidArgumentError(absl::StrCat(name_, ": it doesn't begin with P5 or P6, as PGM and PPM do"));
    rest_.remove_prefix(2);
    return magic == "P6" ? 3 : 1;
  }

  absl::StatusOr<size_t> TakeNumber(const char* what, size_t most) {
    if (!SkipBlanks()) return Wrong(what, "isn't there");
    size_t number = 0;
    bool any = false;
    for (; !rest_.empty() && absl::ascii_isdigit(rest_.front()); rest_.remove_prefix(1)) {
      number = number * 10 + (rest_.front() - '0');
      if (number > most) return Wrong(what, absl::StrCat("is larger than ", most));
      any = true;
    }
    if (!any) return Wrong(what, "isn't a number");
    if (number == 0) return Wrong(what, "is 0");
    return number;
  }

  // Returns what follows the one blank that ends the header.
  absl::StatusOr<std::string_view> TakeRows() {
    if (rest_.empty() || !absl::ascii_isspace(rest_.front()))
      return Wrong("largest value", "isn't followed by a blank");
    return rest_.substr(1);
  }

 private:
  // Skips blanks and comments, of which there must be at least one. False: nothing follows.
  bool SkipBlanks() {
    bool any = false;
    while (!rest_.empty() && (absl::ascii_isspace(rest_.front()) || rest_.front() == '#')) {
      const size_t end = rest_.front() == '#' ? rest_.find('\n') : 0;
      if (end == std::string_view::npos) return false;
      rest_.remove_prefix(end + 1);
      any = true;
    }
    return any && !rest_.empty();
  }
  absl::Status Wrong(const char* what, const std::string& how) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": the header is wrong: its ", what, " ", how));
  }

  std::string_view rest_;
  const std::string& name_;
};

absl::Status FillPnmPixels(std::string_view rows, size_t largest, const std::string& name,
                           std::vector<uint8_t>& pixels) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(rows.data());
  if (largest == 255) {
    std::memcpy(pixels.data(), bytes, pixels.size());
    return absl::OkStatus();
  }
  const bool wide = largest > 255;
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t value = wide ? size_t{bytes[2 * i]} << 8 | bytes[2 * i + 1] : size_t{bytes[i]};
    if (value > largest) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": value ", i, " is ", value, ", above the ", largest, " that the header says is most"));
    }
    pixels[i] = static_cast<uint8_t>((value * 255 + largest / 2) / largest);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodePnm(std::string_view content, const std::string& name, AcceptImageSize accept, DecodedImage& into) {
  PnmHeader header(content, name);
  ASSIGN_OR_RETURN(into.channels, header.TakeChannels());
  ASSIGN_OR_RETURN(into.size.width, header.TakeNumber("width", kLargestPnmSide));
  ASSIGN_OR_RETURN(into.size.height, header.TakeNumber("height", kLargestPnmSide));
  ASSIGN_OR_RETURN(const size_t largest, header.TakeNumber("largest value", kLargestPnmValue));
  ASSIGN_OR_RETURN(const std::string_view rows, header.TakeRows());
  const size_t values = into.size.height * into.size.width * into.channels;
  const size_t wanted = values * (largest > 255 ? 2 : 1);
  if (rows.size() != wanted) {
    return absl::DataLossError(absl::StrCat(name, ": ", rows.size() < wanted ? "the file is cut short" : "bytes follow",
                                            ": ", rows.size(), " bytes where ", into.size.height, " x ",
                                            into.size.width, " x ", into.channels, " values are ", wanted));
  }
  RETURN_IF_ERROR(accept(into.size));
  into.pixels.resize(values);
  return FillPnmPixels(rows, largest, name, into.pixels);
}

}  // namespace muster
