#include <memory>
#include <utility>

#include "muster/data/dataset/dataset.h"
#include "muster/data/sources/csv_source.h"
#include "muster/data/sources/file_sources.h"
#include "muster/data/sources/idx_source.h"
#include "muster/data/sources/image_folder_source.h"

namespace muster {

Dataset Dataset::FromCsv(std::vector<std::string> files, CsvColumns columns, FileSystem& system) {
  return Dataset(std::make_shared<CsvSource>(std::move(files), std::move(columns), system));
}

Dataset Dataset::FromIdx(std::string images, std::string labels, FileSystem& system) {
  return Dataset(std::make_shared<IdxSource>(std::move(images), std::move(labels), system));
}

Dataset Dataset::FromImageFolders(std::string directory, ImageFolderOptions options, FileSystem& system) {
  return Dataset(std::make_shared<ImageFolderSource>(std::move(directory), std::move(options), system));
}

}  // namespace muster
