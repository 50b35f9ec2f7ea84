// The keys of an experiment file, as data: what each may be, its default and its meaning. key_check.h checks files by
// it, schema.h prints it as JSON schema, and docs/experiment_file.md lists it (key_table_test.cc compares). Rules that
// concern several keys, such as which section goes with which framework, are in experiment_file.cc. Constant,
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

enum class FormKind {
  kText,      // a scalar that isn't empty
  kAnyText,   // a scalar
  kPattern,   // a scalar that matches `pattern`
  kWord,      // one of `words`
  kWhole,     // a whole number, `least` to `most`
  kPositive,  // a number above 0
  kNumber,    // a number
  kTruth,     // true, false; also yes, no, on, off
  kMemory,    // ParseMemory
  kDuration,  // "250ms", "2s"; a bare number is seconds
  kList,      // of `of`, at least one
  kNames,     // a map from names, which match `pattern`, to `of`
  kSection,   // a map with the keys of `section`
};

// One of the forms that a value may have.
struct KeyForm {
  FormKind kind = FormKind::kText;
  std::string text;  // as messages and the page say it: "a whole number from 1 to 1000"
  int64_t least = 0, most = 0;
  std::vector<std::string> words;
  std::string pattern;  // ECMAScript, searched for
  std::string section;
  std::vector<KeyForm> of;
};

struct KeyRow {
  std::string name;
  std::vector<KeyForm> forms;
  std::string standard;  // the default, as the page has it; "required" for what must be there
  std::string meaning;

  bool required() const { return standard == "required"; }
  // What is accepted: its forms' texts.
  std::string Accepted() const;
};

// The keys that stand together in a map. The first of the table is the file itself.
struct KeySection {
  std::string name;   // "distributed"
  std::string where;  // "train.tensorflow.distributed, train.muster.distributed"
  std::vector<KeyRow> keys;

  std::vector<std::string> Names() const;
};

inline constexpr char kFileSection[] = "file";

const std::vector<KeySection>& ExperimentKeys();
// Of the table; the name must be there.
const KeySection& ExperimentKeySection(std::string_view name);

// "a, b or c".
std::string AcceptedText(const std::vector<KeyForm>& forms);

}  // namespace muster
