#include "muster/launch/engines/driver/driver_programs.h"

#include <filesystem>
#include <string_view>

#include "muster/base/bytes.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"

namespace muster {

absl::Status PutDriver(const std::string& script, absl::Span<const DriverProgram> programs) {
  const std::filesystem::path driver = std::filesystem::path(script).parent_path() / kDriverFolder;
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(driver.string()));
  for (const absl::Span<const DriverProgram> some : {absl::MakeConstSpan(kSharedDriverPrograms), programs})
    for (const DriverProgram& program : some) {
      const std::string_view text = program.text;
      const absl::Status written =
          WriteFileAtomically(PosixFileSystem(), (driver / program.name).string(), AsBytes(text.data(), text.size()));
      // An engine without room for a job is something else than a disk without room.
      if (absl::IsResourceExhausted(written)) return absl::InternalError(written.message());
      RETURN_IF_ERROR(written);
    }
  return absl::OkStatus();
}

}  // namespace muster
