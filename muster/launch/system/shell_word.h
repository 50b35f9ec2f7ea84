// Words for a POSIX shell. Stateless, thread-safe. (shell_text.h inserts values into whole commands.)
#pragma once

#include <string>
#include <string_view>

namespace muster {

// Returns `text` as one word, in single quotes.
std::string QuotedWord(std::string_view text);
// Returns the same, quoted only if a shell would split or change it.
std::string ShellWord(std::string_view text);

}  // namespace muster
