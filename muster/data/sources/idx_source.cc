#include "muster/data/sources/idx_source.h"

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/data/example.h"
#include "muster/data/idx.h"
#include "muster/data/sources/file_example.h"

namespace muster {

std::string IdxSource::Name() const {
  return absl::StrCat("idx(", FileNameOf(images_), ", ", FileNameOf(labels_), ")");
}

absl::StatusOr<std::shared_ptr<const RowReader>> IdxSource::Load() const {
  ASSIGN_OR_RETURN(const IdxArray labels, ReadIdx(system_, labels_));
  if (labels.shape.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(labels_, ": ", labels.shape.size(), " dimensions where labels need ",
                                                   "1; is it the file of the images? The first file named is theirs"));
  }
  ASSIGN_OR_RETURN(const IdxArray images, ReadIdx(system_, images_));
  if (images.shape[0] != labels.shape[0]) {
    return absl::InvalidArgumentError(
        absl::StrCat(labels_, ": ", labels.shape[0], " labels for the ", images.shape[0], " images of ", images_));
  }
  auto rows = std::make_shared<Example>();
  rows->features.push_back({"image", Array::Of<uint8_t>({images.shape.begin(), images.shape.end()},
                                                        std::span<const uint8_t>(images.elements))});
  rows->labels = Array::Of<int64_t>({static_cast<int64_t>(labels.elements.size())},
                                    std::vector<int64_t>(labels.elements.begin(), labels.elements.end()));
  rows->has_labels = true;
  return ReadRowsOf(std::move(rows));
}

}  // namespace muster
