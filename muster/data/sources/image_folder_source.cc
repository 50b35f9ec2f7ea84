#include "muster/data/sources/image_folder_source.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/image_files/image_file.h"
#include "muster/data/sources/file_example.h"

namespace muster {
namespace {

// The contents of the folders, by class and name.
struct ImageList {
  struct File {
    std::string path;
    int64_t label = 0;
  };
  std::vector<File> files;
  std::vector<std::string> left_out;  // paths of files that aren't pictures
};

// Lists the names in a directory, sorted. Skips names that begin with a dot: they belong to some program and aren't
// data.
absl::StatusOr<std::vector<std::string>> ListImageFolder(FileSystem& system, const std::string& path) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, system.ListDirectory(path));
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  std::sort(names.begin(), names.end());
  return names;
}

// Returns whether `error` is what listing something that isn't a directory returns.
bool IsNoFolder(const absl::Status& error) { return absl::IsNotFound(error) || absl::IsFailedPrecondition(error); }

// `names` are the contents of `folder`.
absl::Status AddImagesOfClass(const std::string& folder, const std::vector<std::string>& names, int64_t label,
                              ImageList& list) {
  const size_t before = list.files.size();
  for (const std::string& name : names) {
    if (IsImageName(name)) {
      list.files.push_back({JoinPath(folder, name), label});
    } else {
      list.left_out.push_back(JoinPath(folder, name));
    }
  }
  if (list.files.size() > before) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(folder, ": the folder of class ", label, " holds no pictures; ",
                                                 "accepted: .png, .jpg, .jpeg, .pgm, .ppm, .pnm"));
}

absl::StatusOr<ImageList> ListAllClasses(FileSystem& system, const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListImageFolder(system, directory));
  ImageList list;
  int64_t label = 0;
  for (const std::string& entry : entries) {
    const std::string folder = JoinPath(directory, entry);
    const auto names = ListImageFolder(system, folder);
    if (names.ok()) {
      RETURN_IF_ERROR(AddImagesOfClass(folder, *names, label++, list));
    } else if (IsNoFolder(names.status())) {
      list.left_out.push_back(folder);
    } else {
      return names.status();
    }
  }
  if (label > 0) return list;
  return absl::InvalidArgumentError(
      absl::StrCat(directory, ": there are no folders in it; one for each class is needed, with its pictures"));
}

absl::StatusOr<ImageList> ListNamedClasses(FileSystem& system, const std::string& directory,
                                           const std::vector<std::string>& classes) {
  ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListImageFolder(system, directory));
  ImageList list;
  for (size_t i = 0; i < classes.size(); ++i) {
    const std::string folder = JoinPath(directory, classes[i]);
    const auto names = ListImageFolder(system, folder);
    if (IsNoFolder(names.status())) {
      return absl::NotFoundError(
          absl::StrCat(folder, ": there is no folder for class ", i, NearestHint(classes[i], entries)));
    }
    RETURN_IF_ERROR(names.status());
    RETURN_IF_ERROR(AddImagesOfClass(folder, *names, static_cast<int64_t>(i), list));
  }
  return list;
}

class ImageFolderReader final : public RowReader {
 public:
  ImageFolderReader(FileSystem& system, ImageList list, size_t channels)
      : system_(system), files_(std::move(list.files)), channels_(channels) {}

  // Takes the first picture's size as the size of all.
  absl::Status ReadFirst() {
    DecodedImage image;
    RETURN_IF_ERROR(Decode(
        files_[0].path, [](const ImageSize&) { return absl::OkStatus(); }, image));
    size_ = image.size;
    shape_ = {static_cast<int64_t>(channels_), static_cast<int64_t>(size_.height), static_cast<int64_t>(size_.width)};
    return absl::OkStatus();
  }

  size_t rows() const override { return files_.size(); }

  absl::Status Read(size_t row, Example& into) const override {
    const ImageList::File& file = files_[row];
    const auto accept = [&](const ImageSize& size) -> absl::Status {
      if (size == size_) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat(file.path, ": a picture of ", size.height, " x ", size.width,
                                                     " (height x width) where ", files_[0].path, " is of ",
                                                     size_.height, " x ", size_.width, "; all are of one size"));
    };
    DecodedImage image;
    RETURN_IF_ERROR(Decode(file.path, accept, image));
    into.features.resize(1);
    FillPlanes(image, channels_, FitFeature(into, 0, "image", DType::kUInt8, shape_).As<uint8_t>());
    FitLabel(into, DType::kInt64).As<int64_t>()[0] = file.label;
    return absl::OkStatus();
  }

 private:
  absl::Status Decode(const std::string& path, AcceptImageSize accept, DecodedImage& into) const {
    ASSIGN_OR_RETURN(const std::string content, system_.ReadFile(path));
    return DecodeImage(content, path, accept, into);
  }

  // Constant after ReadFirst.
  FileSystem& system_;
  const std::vector<ImageList::File> files_;
  const size_t channels_;
  ImageSize size_;
  std::vector<int64_t> shape_;
};

}  // namespace

std::string ImageFolderSource::Name() const {
  std::string classes;
  for (const std::string& name : options_.classes) absl::StrAppend(&classes, ", ", name);
  return absl::StrCat("image_folders(", FileNameOf(directory_), classes, ", channels=", options_.channels, ")");
}

absl::Status ImageFolderSource::Check() const {
  if (directory_.empty()) return WrongOptionError("no directory is named");
  if (options_.channels != 1 && options_.channels != 3)
    return WrongOptionError(absl::StrCat(options_.channels, " channels; accepted: 1 (grey), 3 (RGB)"));
  std::set<std::string> classes;
  for (const std::string& name : options_.classes) {
    if (name.empty()) return WrongOptionError("a class has no name");
    if (!classes.insert(name).second) return WrongOptionError(absl::StrCat("class \"", name, "\" is named twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const RowReader>> ImageFolderSource::Load() const {
  ASSIGN_OR_RETURN(ImageList list, options_.classes.empty() ? ListAllClasses(system_, directory_)
                                                            : ListNamedClasses(system_, directory_, options_.classes));
  if (!list.left_out.empty()) {
    LogLineOnce(LogLevel::kWarning, absl::StrCat(directory_, ": left out, as they aren't pictures: ",
                                                 list.left_out.size(), ", the first of them ", list.left_out.front()));
  }
  auto reader = std::make_shared<ImageFolderReader>(system_, std::move(list), options_.channels);
  RETURN_IF_ERROR(reader->ReadFirst());
  return reader;
}

}  // namespace muster
