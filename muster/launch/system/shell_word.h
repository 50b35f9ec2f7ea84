// Text for a POSIX shell: words that it takes as they are, and commands that values are put into. No globals; one
// ShellText isn't thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// One word, in single quotes.
std::string QuotedWord(std::string_view text);
// The same, in quotes only where a shell would take it apart or change it.
std::string ShellWord(std::string_view text);

// A command, in the order in which a shell reads it. It knows which quotes are open, so that a value is text wherever
// it is put: "{{ name }}", '{{ name }}', $(cat {{ name }}). Here-documents aren't known as such.
class ShellText {
 public:
  // As it is.
  void Append(std::string_view text);
  // A word, or a part of one. In a comment its line ends are blanks.
  void AppendValue(std::string_view value);
  const std::string& text() const { return text_; }

 private:
  void Follow(char c);

  std::string text_;
  std::string open_;      // quotes and brackets, ' " ` or (, the innermost last
  bool escaped_ = false;  // a backslash came last
  bool comment_ = false;
};

}  // namespace muster
