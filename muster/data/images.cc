#include "muster/data/images.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/data/csv.h"
#include "muster/data/idx.h"

namespace muster {
namespace {

constexpr size_t kDigitsSide = 8;
constexpr double kDigitsBrightest = 16;
constexpr size_t kClasses = 10;

// Returns `table`'s value, which must be whole and in 0 ... `most`.
absl::StatusOr<double> WholeNumber(const CsvTable& table, size_t row, size_t column, double most,
                                   const std::string& path) {
  const double value = table.at(row, column);
  if (value >= 0 && value <= most && value == std::floor(value)) return value;
  return absl::InvalidArgumentError(absl::StrCat(path, ", line ", table.line(row), ", column ", column + 1, ": ", value,
                                                 " where a whole number from 0 to ", most, " is expected"));
}

// Returns the path of one of the four files: `stem` is "train-images", `kind` "idx3-ubyte".
absl::StatusOr<std::string> FindMnistFile(FileSystem& files, const std::string& directory, const std::string& stem,
                                          const std::string& kind) {
  for (const char* joint : {"-", "."}) {
    for (const char* packed : {"", ".gz"}) {
      const std::string path = JoinPath(directory, absl::StrCat(stem, joint, kind, packed));
      if (files.Exists(path)) return path;
    }
  }
  return absl::NotFoundError(absl::StrCat(JoinPath(directory, absl::StrCat(stem, "-", kind)),
                                          ": there is no such file, nor one with .gz; the four files of MNIST are "
                                          "expected in that directory"));
}

struct MnistPart {
  LabelledRows rows;
  size_t height = 0;
  size_t width = 0;
  std::string images_path;
};

absl::StatusOr<MnistPart> LoadMnistPart(FileSystem& files, const std::string& directory, const std::string& stem) {
  ASSIGN_OR_RETURN(const std::string images_path, FindMnistFile(files, directory, stem + "-images", "idx3-ubyte"));
  ASSIGN_OR_RETURN(const std::string labels_path, FindMnistFile(files, directory, stem + "-labels", "idx1-ubyte"));
  ASSIGN_OR_RETURN(const IdxArray images, ReadIdx(files, images_path));
  ASSIGN_OR_RETURN(const IdxArray labels, ReadIdx(files, labels_path));
  if (images.shape.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat(images_path, ": ", images.shape.size(),
                                                   " dimensions where images need 3 (images, rows, columns)"));
  }
  if (labels.shape.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(labels_path, ": ", labels.shape.size(), " dimensions where labels need 1"));
  }
  if (images.shape[0] != labels.shape[0]) {
    return absl::InvalidArgumentError(absl::StrCat(labels_path, ": ", labels.shape[0], " labels for the ",
                                                   images.shape[0], " images of ", images_path));
  }
  for (size_t i = 0; i < labels.elements.size(); ++i) {
    if (labels.elements[i] < kClasses) continue;
    return absl::InvalidArgumentError(absl::StrCat(labels_path, ": label ", i, " is ", int{labels.elements[i]},
                                                   " where 0 to ", kClasses - 1, " is expected"));
  }
  std::vector<float> features(images.elements.size());
  for (size_t i = 0; i < features.size(); ++i) features[i] = images.elements[i] * (1.0f / 255.0f);
  MnistPart part{.height = images.shape[1], .width = images.shape[2], .images_path = images_path};
  ASSIGN_OR_RETURN(part.rows, LabelledRows::Create(part.height * part.width, std::move(features),
                                                   {labels.elements.begin(), labels.elements.end()}));
  return part;
}

}  // namespace

bool IsHeldOutDigit(size_t row) { return (row + 1) % 5 == row / 10 % 5; }

absl::StatusOr<ImageData> LoadDigits(const std::string& path, FileSystem& files) {
  constexpr size_t kPixels = kDigitsSide * kDigitsSide;
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(files, path, {.header = CsvOptions::Header::kDetect}));
  if (table.columns != kPixels + 1) {
    return absl::InvalidArgumentError(absl::StrCat(path, ", line ", table.line(0), ": ", table.columns,
                                                   " columns where ", kPixels + 1, " are expected (", kPixels,
                                                   " pixels and the label)"));
  }
  std::vector<float> features;
  std::vector<int64_t> labels;
  features.reserve(table.rows() * kPixels);
  for (size_t row = 0; row < table.rows(); ++row) {
    for (size_t pixel = 0; pixel < kPixels; ++pixel) {
      ASSIGN_OR_RETURN(const double value, WholeNumber(table, row, pixel, kDigitsBrightest, path));
      features.push_back(static_cast<float>(value / kDigitsBrightest));
    }
    ASSIGN_OR_RETURN(const double label, WholeNumber(table, row, kPixels, kClasses - 1, path));
    labels.push_back(static_cast<int64_t>(label));
  }
  ASSIGN_OR_RETURN(const LabelledRows all, LabelledRows::Create(kPixels, std::move(features), std::move(labels)));
  return ImageData{SplitRows(all, IsHeldOutDigit), kDigitsSide, kDigitsSide, kClasses};
}

absl::StatusOr<ImageData> LoadMnist(const std::string& directory, FileSystem& files) {
  ASSIGN_OR_RETURN(MnistPart train, LoadMnistPart(files, directory, "train"));
  ASSIGN_OR_RETURN(MnistPart test, LoadMnistPart(files, directory, "t10k"));
  if (train.height != test.height || train.width != test.width) {
    return absl::InvalidArgumentError(absl::StrCat(test.images_path, ": images of ", test.height, "x", test.width,
                                                   " where ", train.images_path, " has ", train.height, "x",
                                                   train.width));
  }
  return ImageData{{std::move(train.rows), std::move(test.rows)}, train.height, train.width, kClasses};
}

}  // namespace muster
