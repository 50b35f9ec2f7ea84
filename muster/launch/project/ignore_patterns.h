// Decides which files of a folder don't belong to the project, by the patterns of .musterignore, which are those of
// .gitignore (gitignore(5)). Immutable, thread-safe.
//
//  *.log         files and folders of that name anywhere: '*' any characters, '?' one, [a-z] one of these
//  data/         folders only
//  /results      in the project's folder only; likewise every pattern with a '/' that isn't at its end
//  **/x  a/**  a/**/b    any number of folders
//  !keep.log     not ignored after all. The last pattern that matches decides; the contents of an ignored folder
//                stay ignored
//  # a comment; \# and \! match the characters themselves
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

class IgnorePatterns {
 public:
  IgnorePatterns() = default;
  // `text`: the contents of the file. Any text is valid.
  explicit IgnorePatterns(std::string_view text);

  // `path`: below the project's folder; none of the folders above it may be ignored.
  bool Ignores(std::string_view path, bool is_folder) const;

 private:
  struct Pattern {
    std::vector<std::string> parts;  // between the '/'
    bool whole_path = false;         // otherwise the pattern matches a name in any folder
    bool only_folders = false;
    bool negated = false;
  };
  std::vector<Pattern> patterns_;
};

}  // namespace muster
