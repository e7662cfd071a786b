// The rules of the house that a compiler does not check: includes only go down the ladder, time and chance are passed in,
// argiope.hpp has everything, and what the documentation calls a test is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = ARGIOPE_SOURCE_DIR;
// Lowest first (ARCHITECTURE.md, "The ladder").
const std::vector<std::string> kLadder = {"base",   "async",    "time", "jobs",  "store", "broker",
                                          "schedule", "web",   "calls", "crawl", "serve", "config", "simulate", "cli"};

std::vector<fs::path> sources_below(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::exists(folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto extension = entry.path().extension();
    if (extension == ".hpp" || extension == ".cpp") found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int rung(const std::string& module) {
  const auto found = std::ranges::find(kLadder, module);
  return found == kLadder.end() ? -1 : static_cast<int>(found - kLadder.begin());
}

// "async" of include/argiope/async/coro.hpp or src/async/x.cpp; empty for argiope.hpp.
std::string module_of(const fs::path& path, const fs::path& base) {
  const fs::path relative = path.lexically_relative(base);
  return relative.has_parent_path() ? relative.begin()->string() : "";
}

// The module an include line names, and who may include the header: everybody (include/argiope), our other modules
// (src/MODULE/internal), or its own module alone.
struct Include {
  std::string module;
  bool is_public, is_internal;
};
std::vector<Include> includes_of(const std::string& text) {
  static const std::regex line("#include \"(argiope/)?([a-z]+)/(internal/)?[^\"]+\"");
  std::vector<Include> found;
  for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it) {
    found.push_back({(*it)[2], (*it)[1].matched, (*it)[3].matched});
  }
  return found;
}

void expect_includes_go_down(const fs::path& base, bool is_public) {
  int checked = 0;
  for (const fs::path& path : sources_below(base)) {
    const std::string module = module_of(path, base);
    if (module.empty()) continue;
    ASSERT_GE(rung(module), 0) << path << ": \"" << module << "\" is no module of the ladder";
    for (const Include& include : includes_of(read(path))) {
      ++checked;
      EXPECT_LE(rung(include.module), rung(module))
          << path << " includes \"" << include.module << "\", which is above it";
      EXPECT_TRUE(include.is_public || !is_public) << path << " is public and includes a header that is not";
      EXPECT_TRUE(include.is_public || include.is_internal || include.module == module || module == "cli")
          << path << " includes a private header of \"" << include.module << "\"";
    }
  }
  EXPECT_GT(checked, 50);
}

TEST(Ladder, PublicHeadersIncludeOnlyDownward) { expect_includes_go_down(kRoot / "include/argiope", true); }
TEST(Ladder, SourcesIncludeOnlyDownward) { expect_includes_go_down(kRoot / "src", false); }

TEST(Ladder, EveryPublicHeaderIsGuardedAndInArgiopeHpp) {
  const std::string all = read(kRoot / "include/argiope/argiope.hpp");
  for (const fs::path& path : sources_below(kRoot / "include/argiope")) {
    if (path.filename() == "argiope.hpp") continue;
    EXPECT_NE(read(path).find("#pragma once"), std::string::npos) << path;
    const std::string name = path.lexically_relative(kRoot / "include").string();
    EXPECT_NE(all.find("#include \"" + name + "\""), std::string::npos) << name << " is missing in argiope.hpp";
  }
}

TEST(TimeAndChance, ArePassedInBelowTheCommandLine) {
  // Where the machine's clocks are wrapped, and where a loop in real time counts how long its steps take.
  const std::set<std::string> allowed = {"src/base/clock.cpp", "include/argiope/async/pace.hpp"};
  const std::regex forbidden(
      R"(system_clock::now|steady_clock::now|high_resolution_clock|random_device|\brand\(|\bsrand\(|\btime\(nullptr\)|gettimeofday|clock_gettime|sleep_for|sleep_until\(std)");
  for (const fs::path& folder : {kRoot / "include", kRoot / "src"}) {
    for (const fs::path& path : sources_below(folder)) {
      const std::string name = path.lexically_relative(kRoot).string();
      if (allowed.contains(name) || name.starts_with("src/cli/")) continue;
      std::smatch match;
      const std::string text = read(path);
      EXPECT_FALSE(std::regex_search(text, match, forbidden)) << name << " uses " << match.str();
    }
  }
}

// The tables of docs/from-*.md that say which test shows a fault absent.
TEST(Documentation, NamesTestsThatExist) {
  std::set<std::string> tests;
  const std::regex definition(R"((?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+),\s*(\w+)\))");
  for (const fs::path& path : sources_below(kRoot / "tests")) {
    const std::string text = read(path);
    for (std::sregex_iterator it(text.begin(), text.end(), definition), end; it != end; ++it) {
      tests.insert((*it)[1].str() + "." + (*it)[2].str());
    }
  }
  const std::regex name(R"(`([A-Z]\w+\.[A-Z]\w+)`)");
  int checked = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
    const std::string text = read(entry.path());
    const std::size_t faults = text.find("\n## The faults");
    if (!entry.path().filename().string().starts_with("from-") || faults == std::string::npos) continue;
    const std::string part = text.substr(faults);
    for (std::sregex_iterator it(part.begin(), part.end(), name), end; it != end; ++it, ++checked) {
      EXPECT_TRUE(tests.contains((*it)[1])) << entry.path() << " names the test " << (*it)[1];
    }
  }
  EXPECT_GT(checked, 20);
}

}  // namespace
