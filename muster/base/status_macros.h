// Early return on a bad absl::Status: RETURN_IF_ERROR(expr) and ASSIGN_OR_RETURN(declaration, status_or_expr).
#pragma once

#include <utility>

#include "absl/status/status.h"

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                                         \
  do {                                                                \
    if (absl::Status _status = (expr); !_status.ok()) return _status; \
  } while (false)

#define ASSIGN_OR_RETURN(declaration, expr) \
  MUSTER_ASSIGN_OR_RETURN(MUSTER_CONCAT(_status_or_, __LINE__), declaration, expr)
#define MUSTER_ASSIGN_OR_RETURN(result, declaration, expr) \
  auto result = (expr);                                    \
  if (!result.ok()) return std::move(result).status();     \
  declaration = *std::move(result)
