#include "apps/muster/terminal/help_format.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// CLI11's own also lists the options that exclude or need this one, and types and ranges as in C++.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const bool repeats = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    const std::string type = option->get_type_name();
    return absl::StrCat(type.empty() ? "" : " ", type, option->get_default_str().empty() ? "" : "=",
                        option->get_default_str(), repeats ? " ..." : "", option->get_required() ? " (required)" : "");
  }
};

}  // namespace

void UseHelpFormat(CLI::App& app) { app.formatter(std::make_shared<HelpFormat>()); }

std::vector<std::string> VisibleCommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* below : app.get_subcommands({}))
    if (!below->get_group().empty()) names.push_back(below->get_name());
  return names;
}

}  // namespace muster
