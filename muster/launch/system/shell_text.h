// A shell command into which values are inserted, so that a value is always text and never code, wherever it stands.
//
// A value of harmless characters is inserted as it is: 0.1, /data/my-project. Any other stays out of the command: it is
// in an environment variable, and the command has a reference to that, "${MUSTER_VALUE_NAME}", which a shell expands
// but never parses. So even a place that is misjudged here can't make code of a value.
//
// This class judges the place: which quotes, $( ) and here-documents are open, as POSIX shells read them. That decides
// how the reference is written, and whether the value would arrive unchanged. Where it wouldn't, or where that isn't
// known for sure, it is refused. docs/experiment_file.md lists these places. Not thread-safe.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace muster {

// Returns whether a value can stand in a command as it is: letters, digits and some marks, and no word of the shell's
// grammar.
bool IsHarmlessInShell(std::string_view value);

class ShellText {
 public:
  // Appends text of the command, unchanged.
  void Append(std::string_view text);
  // Appends a value. `variable` is the environment variable that has it, if the value isn't harmless. InvalidArgument
  // says why this value can't stand here and what to do; nothing is appended then.
  [[nodiscard]] absl::Status AppendValue(std::string_view value, std::string_view variable);

  const std::string& text() const { return text_; }
  // Returns the line of the command at its end, from 1.
  int line() const { return line_; }

 private:
  // What is open at a place; the innermost is the last.
  enum class Open {
    kSingleQuotes,
    kDoubleQuotes,
    kBackquotes,
    kParentheses,  // ( ) or $( )
    kArithmetic,   // one parenthesis of (( )) or $(( ))
    kBraces,       // ${ }
    kDocument,     // a here-document in which the shell expands $NAME
    kRawDocument,  // one whose delimiter has quotes, which is text
  };
  struct Document {
    std::string delimiter;
    bool raw = false;   // its delimiter has quotes
    bool tabs = false;  // <<-: tabs before its lines don't count
  };

  bool In(Open open) const { return !open_.empty() && open_.back() == open; }
  bool Within(Open open) const;
  // Returns whether words and operators are read here, not quoted text.
  bool IsCode() const {
    return open_.empty() || In(Open::kParentheses) || In(Open::kArithmetic) || In(Open::kBackquotes);
  }
  // Returns why a value isn't accepted here; empty if it is.
  std::string Refusal(std::string_view value) const;
  void Follow(char c);
  void FollowDelimiter(char c);
  void FollowDocumentLine(char c);
  void FollowQuote(char c);
  void FollowOperator(char c);
  void FollowWord(char c);
  void EndLine();
  void BeginDocument();
  // From here on only harmless values are accepted.
  void LoseTrack(std::string_view because_of);

  std::string text_;
  int line_ = 1;
  std::vector<Open> open_;
  bool escaped_ = false;  // the last character was a backslash that quotes the next
  bool comment_ = false;
  char previous_ = '\n';  // the last character; '\1' if it was quoted or part of a value
  std::string word_;      // the present word, as far as it isn't quoted
  std::string lost_;      // after what the place isn't known any more; empty: it is known

  // Here-documents: the one whose delimiter is being read, those that begin with the next line, the present one.
  enum class Delimiter { kNone, kOperator, kBlanks, kWord, kSingleQuotes, kDoubleQuotes };
  Delimiter delimiter_ = Delimiter::kNone;
  Document announced_;
  std::deque<Document> waiting_;
  Document document_;
  std::string document_line_;
};

}  // namespace muster
