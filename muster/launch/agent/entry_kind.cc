#include "muster/launch/agent/entry_kind.h"

#include "absl/strings/str_cat.h"

namespace muster {

bool IsNumbered(EntryKind kind) {
  switch (kind) {
    case EntryKind::kNone:
    case EntryKind::kAttach:
    case EntryKind::kAttached:
    case EntryKind::kRefused:
    case EntryKind::kUsage:
      return false;
    default:
      return true;
  }
}

bool IsForAgent(EntryKind kind) {
  switch (kind) {
    case EntryKind::kNone:
    case EntryKind::kAttach:
    case EntryKind::kReserve:
    case EntryKind::kLaunch:
    case EntryKind::kEnd:
    case EntryKind::kStop:
    case EntryKind::kHosts:
    case EntryKind::kInput:
      return true;
    default:
      return false;
  }
}

std::string CommandId::ToString() const { return absl::StrCat(supervisor, ".", number); }

}  // namespace muster
