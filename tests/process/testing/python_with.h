// The Python that has a module, for tests whose tasks are Python scripts.
#pragma once

#include <string>

namespace muster {

// Returns the folder of this project's own python, whose modules tools/setup.sh installs.
std::string FolderOfPython();

// Returns the folder of a python that can import it, this project's own or that of `./dev bench peers`; "" if there is
// none. Blocks for as long as an import takes.
std::string PythonFolderWith(const std::string& module);

// Returns the lines of `train` by which tasks find the python in this folder first. (Nothing of a shell goes to hosts.)
std::string PythonFirst(const std::string& folder);

}  // namespace muster
