// A third driver, for tests only: a directory with a file for each row. It shows that the interface of drivers is
// narrow: all that the rules and a store ask for is in one source, without an index. Rows are in memory, too; shelves,
// names and counts are looked for among all of them.
//
// A transaction is written into one file, `commit`, which has its name when it is whole; then the rows' files follow.
// Opening the directory does what such a file says before all else. Nothing is synced: a store survives its process,
// not its machine.
#pragma once

#include <memory>
#include <string>

#include "argiope/store/store.hpp"

namespace argiope {

// The directory is made where it is not there. Throws what std::filesystem throws, and DatabaseFailed for files that
// are damaged.
std::unique_ptr<Store> open_directory(const std::string& root);

}  // namespace argiope
