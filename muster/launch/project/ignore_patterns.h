// Which files of a project aren't part of it: the patterns of .musterignore, as .gitignore has them (gitignore(5)).
// Immutable, thread-safe.
//
//   *.log         files and folders of that name anywhere: '*' any characters, '?' one, [a-z] one of these
//   data/         folders only
//   /results      in the project's folder only; likewise every pattern with a '/' that isn't at its end
//   **/x  a/**  a/**/b    any number of folders
//   !keep.log     not left out after all. The last pattern that fits decides; what is in a folder that is left out
//   stays
//                 out
//   # a comment; \# and \! are themselves
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

class IgnorePatterns {
 public:
  IgnorePatterns() = default;
  // `text`: of the file. There is nothing that it can't be.
  explicit IgnorePatterns(std::string_view text);

  // `path`: below the project's folder, none of the folders above it left out.
  bool Ignores(std::string_view path, bool is_folder) const;

 private:
  struct Pattern {
    std::vector<std::string> parts;  // between the '/'
    bool whole_path = false;         // otherwise it is about a name, wherever it stands
    bool only_folders = false;
    bool negated = false;
  };
  std::vector<Pattern> patterns_;
};

}  // namespace muster
