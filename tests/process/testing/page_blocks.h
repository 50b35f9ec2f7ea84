// What a page of docs/ tells its reader to write or to run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muster {

// Returns the blocks of this language ("bash") in a chapter of a page: "slurm.md". Chapter "": what is before the
// first.
std::vector<std::string> BlocksOfPage(const std::string& page, const std::string& chapter, const std::string& language);
// Returns how many blocks of any language the page has, and indented ones, whose language nobody can know. One that
// names no language shows what is printed, and doesn't count.
size_t CountOfBlocks(const std::string& page);
// Returns the cells of the tables in a chapter, row by row, without their heads.
std::vector<std::vector<std::string>> RowsOfPage(const std::string& page, const std::string& chapter);

}  // namespace muster
