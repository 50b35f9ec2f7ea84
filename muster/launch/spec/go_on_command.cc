#include "muster/launch/spec/go_on_command.h"

#include "absl/strings/str_cat.h"
#include "muster/launch/system/shell_word.h"

namespace muster {

std::string GoOnCommand(const std::string& id, const std::string& file_name) {
  const bool is_usual = file_name.empty() || file_name == "muster.yml";
  return absl::StrCat("muster train ", is_usual ? "" : absl::StrCat("-f ", ShellWord(file_name), " "), "--experiment ",
                      id);
}

std::string GoesOnBy(const std::string& id, const std::string& file_name) {
  return absl::StrCat("; ", GoOnCommand(id, file_name), " goes on with it, from its last checkpoint");
}

}  // namespace muster
