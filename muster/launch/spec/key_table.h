// The keys of an experiment file as data: what each accepts, its default and its meaning. key_check.h checks files with
// it, schema.h prints it as JSON schema, and docs/experiment_file.md lists it (key_table_test.cc compares). Rules that
// concern several keys, such as which section belongs to which framework, are in experiment_file.cc. Constant,
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
  kNothing,   // null, or no value
  kPattern,   // a scalar that matches `pattern`
  kWord,      // one of `words`
  kWhole,     // a whole number, `least` to `most`
  kPositive,  // a number above 0
  kNumber,    // a number
  kTruth,     // true, false; also yes, no, on, off
  kMemory,    // ParseMemory
  kDuration,  // "250ms", "2s"; a bare number is seconds
  kList,      // a list of `of`, at least one
  kNames,     // a map from names that match `pattern` to `of`
  kSection,   // a map with the keys of `section`
  kAnything,  // whatever another system reads; maps have each key once
};

// One of the forms that a value may have.
struct KeyForm {
  FormKind kind = FormKind::kText;
  std::string text;  // its text in messages and the page: "a whole number from 1 to 1000"
  int64_t least = 0, most = 0;
  std::vector<std::string> words;
  std::string pattern;  // ECMAScript; may match anywhere
  std::string section;
  std::vector<KeyForm> of;
};

struct KeyRow {
  std::string name;
  std::vector<KeyForm> forms;
  std::string standard;  // the default, as in the page; "required" if it must be given
  std::string meaning;

  bool required() const { return standard == "required"; }
  // Returns what is accepted: the forms' texts.
  std::string Accepted() const;
};

// The keys of one map. The first section of the table is the file itself.
struct KeySection {
  std::string name;   // "distributed"
  std::string where;  // "train.tensorflow.distributed, train.muster.distributed"
  std::vector<KeyRow> keys;

  std::vector<std::string> Names() const;
};

inline constexpr char kFileSection[] = "file";

const std::vector<KeySection>& ExperimentKeys();
// Returns a section of the table; the name must exist.
const KeySection& ExperimentKeySection(std::string_view name);

// Returns "a, b or c".
std::string AcceptedText(const std::vector<KeyForm>& forms);

}  // namespace muster
