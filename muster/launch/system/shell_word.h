// Text for a POSIX shell: quoted words, and commands into which values are inserted. No globals; one ShellText isn't
// thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// Returns `text` as one word, in single quotes.
std::string QuotedWord(std::string_view text);
// Returns the same, quoted only if a shell would split or change it.
std::string ShellWord(std::string_view text);

// Builds a command in the order in which a shell reads it. Tracks which quotes are open, so that a value stays plain
// text wherever it is inserted: "{{ name }}", '{{ name }}', $(cat {{ name }}). Doesn't recognise here-documents.
class ShellText {
 public:
  // Appends text of the command, unchanged.
  void Append(std::string_view text);
  // Appends a value as a word or a part of one. In a comment, its line ends become blanks.
  void AppendValue(std::string_view value);
  const std::string& text() const { return text_; }

 private:
  void Follow(char c);

  std::string text_;
  std::string open_;      // open quotes and brackets, ' " ` or (, the innermost last
  bool escaped_ = false;  // the last character was a backslash
  bool comment_ = false;
};

}  // namespace muster
