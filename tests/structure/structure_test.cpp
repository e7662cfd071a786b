// The rules that no compiler checks: includes and links only go down the ladder, that of the modules and those of
// their rooms, and never in a circle, no folder is crowded and no class has too many functions, every header is of one
// of three kinds, lines end at column 120, time and chance are passed in, argiope.hpp has everything, names of
// anonymous namespaces differ within a module, and what the documentation calls a test is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

const fs::path kRoot = ARGIOPE_SOURCE_DIR;
// Lowest first (ARCHITECTURE.md, "The ladder").
const std::vector<std::string> kLadder = {"base",     "async",  "time",   "jobs",     "store", "engine", "web",
                                          "document", "render", "warc",   "calls",    "site",  "crawl",  "project",
                                          "remote",   "serve",  "config", "simulate", "cli"};

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

Names words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// A folder of a module's sources, as its line in the module's CMakeLists.txt has it.
struct Room {
  std::string name;
  Names below;
  Names headers;  // for users, or what those are made of, without .hpp
};

// Lowest first; of most modules none.
const std::vector<Room>& rooms_of(const std::string& module) {
  static std::map<std::string, std::vector<Room>> known;
  const auto [at, is_new] = known.try_emplace(module);
  if (!is_new) return at->second;
  const std::string text = read(kRoot / "src" / module / "CMakeLists.txt");
  static const std::regex line(
      R"((?:^|\n)argiope_room\(([a-z]+)(?:\s+BELOW([a-z\s]*))?(?:\s+HEADERS([a-z0-9_\s]*))?\))");
  for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it) {
    at->second.push_back({.name = (*it)[1], .below = words((*it)[2]), .headers = words((*it)[3])});
  }
  return at->second;
}

const Room* find_room(const std::string& module, const std::string& name) {
  const auto found = std::ranges::find(rooms_of(module), name, &Room::name);
  return found == rooms_of(module).end() ? nullptr : &*found;
}

// Who may include a header. A source file is as private as its module's private headers.
enum class Kind {
  for_users,    // include/argiope
  for_modules,  // folders named internal of src/MODULE; or include/argiope/MODULE/detail, where headers for users
                // are made of it
  for_itself,   // the rest of src/MODULE
};

// A file of include/ or src/, by the name that an #include has for it.
struct Source {
  fs::path path;
  std::string name;
  std::string module;  // empty: argiope.hpp and its like, which are above all that is installed
  std::string room;    // empty: above the module's rooms, if it has any
  Kind kind = Kind::for_itself;
  std::vector<std::string> includes;

  bool is_header() const { return path.extension() == ".hpp"; }
  bool is_above_modules() const { return module.empty(); }
};

// Of headers by their names in quotes, and of ours in any case.
std::vector<std::string> includes_of(const std::string& text) {
  static const std::regex line("(^|\n)#include (?:\"|<(?=argiope/))([^\">]+)[\">]");
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it) found.push_back((*it)[2]);
  return found;
}

Source describe(const fs::path& path, const fs::path& base) {
  Source source{.path = path, .name = path.lexically_relative(base).string(), .includes = includes_of(read(path))};
  static const std::regex parts("(argiope/)?([a-z]+)/(([a-z0-9_]+/)*)([a-z0-9_]+)[.].*");
  std::smatch match;
  if (!std::regex_match(source.name, match, parts) || source.name == "argiope/argiope.hpp") return source;
  const bool is_installed = match[1].matched;
  source.module = match[2];
  const std::string folders = match[3], stem = match[5];
  if (is_installed) source.kind = folders == "detail/" ? Kind::for_modules : Kind::for_users;
  if (!is_installed && folders.ends_with("internal/")) source.kind = Kind::for_modules;
  for (const Room& room : rooms_of(source.module)) {
    if (is_installed ? room.headers.contains(stem) : folders.starts_with(room.name + '/')) source.room = room.name;
  }
  return source;
}

// All of include/ and src/, by name.
const std::map<std::string, Source>& all_sources() {
  static const std::map<std::string, Source> sources = [] {
    std::map<std::string, Source> found;
    for (const fs::path& base : {kRoot / "include", kRoot / "src"}) {
      for (const fs::path& path : sources_below(base)) {
        Source source = describe(path, base);
        if (base == kRoot / "include" && source.name.find('/', 8) == std::string::npos) {
          source.module.clear();
          source.kind = Kind::for_users;
        }
        found.emplace(source.name, std::move(source));
      }
    }
    return found;
  }();
  return sources;
}

// The sources among what `source` includes; not those of other libraries, nor what the build makes.
std::vector<const Source*> included_by(const Source& source) {
  std::vector<const Source*> found;
  for (const std::string& name : source.includes) {
    const auto it = all_sources().find(name);
    if (it != all_sources().end()) found.push_back(&it->second);
  }
  return found;
}

// What CMake links to a module of ours: the words after BELOW, or, of the command, its argiope::… and what those link.
Names read_links_of(const std::string& module);
const Names& links_of(const std::string& module) {
  static std::map<std::string, Names> known;
  const auto found = known.find(module);
  return found != known.end() ? found->second : known.emplace(module, read_links_of(module)).first->second;
}

Names read_links_of(const std::string& module) {
  const std::string text = read(kRoot / "src" / module / "CMakeLists.txt");
  std::smatch match;
  if (std::regex_search(text, match, std::regex("argiope_module\\([^)]*\\bBELOW([a-z\\s]*)"))) return words(match[1]);
  Names found;
  static const std::regex linked("argiope::([a-z]+)");
  for (std::sregex_iterator it(text.begin(), text.end(), linked), end; it != end; ++it) {
    found.insert((*it)[1]);
    for (const std::string& further : links_of((*it)[1])) found.insert(further);
  }
  return found;
}

TEST(Ladder, CMakeLinksOnlyDownward) {
  for (const std::string& module : kLadder) {
    for (const std::string& below : links_of(module)) {
      EXPECT_TRUE(rung(below) >= 0 && rung(below) < rung(module)) << module << " links " << below;
      for (const std::string& further : links_of(below)) {
        EXPECT_TRUE(links_of(module).contains(further)) << module << " links " << below << " without " << further;
      }
    }
  }
}

TEST(Ladder, IncludesAreOfModulesThatCMakeLinks) {
  int checked = 0;
  for (const auto& [name, source] : all_sources()) {
    if (source.is_above_modules()) continue;
    ASSERT_GE(rung(source.module), 0) << name << ": \"" << source.module << "\" is no module of the ladder";
    for (const Source* included : included_by(source)) {
      ++checked;
      EXPECT_FALSE(included->is_above_modules()) << name << " includes " << included->name << ", which is for programs";
      EXPECT_TRUE(included->module == source.module || links_of(source.module).contains(included->module))
          << name << " includes " << included->name << ", and " << source.module << " does not link that";
    }
  }
  EXPECT_GT(checked, 500);
}

TEST(Ladder, WhatIsUsefulAloneNeedsLittle) {
  EXPECT_EQ(links_of("async"), (Names{"base"}));
  EXPECT_EQ(links_of("time"), (Names{"base"}));
  EXPECT_EQ(links_of("jobs"), (Names{"async", "base", "time"}));
  EXPECT_EQ(links_of("web"), (Names{"async", "base"}));
  EXPECT_EQ(links_of("document"), (Names{"async", "base", "web"}));
  EXPECT_EQ(links_of("warc"), (Names{"async", "base", "web"}));
}

TEST(Ladder, EveryFolderIsAModule) {
  for (const auto& entry : fs::directory_iterator(kRoot / "src")) {
    EXPECT_GE(rung(entry.path().filename().string()), 0) << entry.path();
  }
}

TEST(Rooms, AreNamedFromTheLowestWithAllThatIsBelowThem) {
  for (const std::string& module : kLadder) {
    Names lower;
    for (const Room& room : rooms_of(module)) {
      for (const std::string& below : room.below) {
        EXPECT_TRUE(lower.contains(below)) << module << ": " << room.name << " is not above " << below;
        if (!lower.contains(below)) continue;
        for (const std::string& further : find_room(module, below)->below) {
          EXPECT_TRUE(room.below.contains(further))
              << module << ": " << room.name << " has " << below << " below it without " << further;
        }
      }
      lower.insert(room.name);
    }
  }
}

TEST(Rooms, AreTheFoldersOfTheirModules) {
  for (const std::string& module : kLadder) {
    if (rooms_of(module).empty()) continue;
    const fs::path folder = kRoot / "src" / module;
    for (const Room& room : rooms_of(module)) EXPECT_FALSE(sources_below(folder / room.name).empty()) << room.name;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(!entry.is_directory() || name == "internal" || find_room(module, name) != nullptr) << entry.path();
    }
  }
}

TEST(Rooms, IncludeOnlyThoseBelowThem) {
  int checked = 0;
  for (const auto& [name, source] : all_sources()) {
    if (source.room.empty()) continue;
    const Names& below = find_room(source.module, source.room)->below;
    for (const Source* included : included_by(source)) {
      if (included->module != source.module) continue;
      ++checked;
      EXPECT_TRUE(included->room == source.room || below.contains(included->room))
          << name << " includes " << included->name;
    }
  }
  EXPECT_GT(checked, 500);
}

TEST(Rooms, HaveEachInstalledHeaderOnce) {
  for (const std::string& module : kLadder) {
    if (rooms_of(module).empty()) continue;
    std::map<std::string, int> named;
    for (const Room& room : rooms_of(module)) {
      for (const std::string& header : room.headers) {
        const std::string folder = "argiope/" + module + '/', in_detail = folder + "detail/" + header + ".hpp";
        ++named[all_sources().contains(in_detail) ? in_detail : folder + header + ".hpp"];
      }
    }
    for (const auto& [name, source] : all_sources()) {
      if (source.module != module || !name.starts_with("argiope/")) continue;
      EXPECT_EQ(named[name], 1) << name;
    }
    for (const auto& [name, times] : named) EXPECT_TRUE(all_sources().contains(name)) << name << " is not there";
  }
}

TEST(Folders, HaveFiftySourcesAtMost) {
  std::map<fs::path, int> counts;
  for (const char* top : {"include", "src", "tests"}) {
    for (const fs::path& path : sources_below(kRoot / top)) ++counts[path.parent_path()];
  }
  for (const auto& [folder, count] : counts) EXPECT_LE(count, 50) << folder << " has " << count << " sources";
}

// --- lines

// As .clang-format has it. What it may not break stays: raw strings, and tables between `off` and `on`.
TEST(Lines, EndAtColumn120) {
  static const std::regex raw_begin("R\"([A-Za-z_]*)\\(");
  const auto columns = [](const std::string& line) {
    return std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  };
  for (const char* top : {"include", "src", "tests", "bench", "examples", "fuzz"}) {
    for (const fs::path& path : sources_below(kRoot / top)) {
      std::ifstream file(path);
      bool is_table = false;
      std::string raw_end;  // of the raw string in which the line begins
      int number = 0;
      for (std::string line; std::getline(file, line);) {
        ++number;
        if (line.contains("clang-format off")) is_table = true;
        if (line.contains("clang-format on")) is_table = false;
        bool is_raw = !raw_end.empty();
        std::smatch match;
        if (is_raw) {
          if (line.contains(raw_end)) raw_end.clear();
        } else if (std::regex_search(line, match, raw_begin)) {
          is_raw = true;
          const std::string end = ")" + match[1].str() + "\"";
          if (!match.suffix().str().contains(end)) raw_end = end;
        }
        EXPECT_TRUE(is_table || is_raw || columns(line) <= 120) << path << ":" << number << ": " << line;
      }
    }
  }
}

// --- functions of classes

// Without comments, texts, characters and lines of the preprocessor.
std::string code_of(const std::string& text) {
  static const std::regex raw_begin("^R\"([^(\" ]*)\\(");
  std::string code;
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t i = 0; i < text.size();) {
    const bool begins_word = i == 0 || !in_word(text[i - 1]);
    std::smatch match;
    const std::string begin = text.substr(i, 20);
    if (begin.starts_with("//") || (text[i] == '#' && (i == 0 || text[i - 1] == '\n'))) {
      while (i < text.size() && (text[i] != '\n' || text[i - 1] == '\\')) ++i;
    } else if (begin.starts_with("/*")) {
      i = text.find("*/", i) + 2;
    } else if (begins_word && std::regex_search(begin, match, raw_begin)) {
      const std::string end = ')' + match[1].str() + '"';
      i = text.find(end, i) + end.size();
    } else if (text[i] == '"' || (text[i] == '\'' && begins_word)) {
      const char quote = text[i++];
      while (text[i] != quote) i += text[i] == '\\' ? 2 : 1;
      ++i;
    } else {
      code += text[i++];
    }
  }
  return code;
}

// The place of the bracket that closes the one at `open`.
std::size_t closing(const std::string& code, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < code.size(); ++i) {
    depth += std::string_view("({[").contains(code[i]) ? 1 : std::string_view(")}]").contains(code[i]) ? -1 : 0;
    if (depth == 0) return i;
  }
  return code.size();
}

// Of a member's declaration without its body: whether it is a function that the source declares.
bool declares_function(const std::string& declaration) {
  static const std::regex other("^\\s*(using|friend|static_assert|typedef|enum)\\b"),
      unwritten("=\\s*(delete|default)\\s*$"), is_operator("\\boperator\\b"),
      no_name("\\b(noexcept|decltype|alignas|explicit|requires)\\s*$");
  if (std::regex_search(declaration, other) || std::regex_search(declaration, unwritten)) return false;
  if (std::regex_search(declaration, is_operator)) return true;
  int angles = 0;
  for (std::size_t i = 0; i < declaration.size(); ++i) {
    const char c = declaration[i];
    if (c == '<') ++angles;
    if (c == '>' && declaration[i - 1] != '-') --angles;
    if (angles > 0) continue;
    if (c == '=' || c == '{') return false;
    if (c != '(') continue;
    if (!std::regex_search(declaration.substr(0, i), no_name))
      return declaration.find_first_not_of(' ', i + 1) != declaration.find('*', i + 1);
    i = closing(declaration, i);
  }
  return false;
}

// The brace behind the head of a class that begins at `at`, and its name; nullopt: none does.
std::optional<std::pair<std::size_t, std::string>> class_at(const std::string& code, std::size_t at) {
  static const std::regex head("^(?:class|struct) +(?:\\[\\[[^\\]]*\\]\\] *)?([A-Za-z_][A-Za-z0-9_:]*)"),
      no_class("(enum|friend|<|,)\\s*$");
  if (code[at] != 'c' && code[at] != 's') return std::nullopt;
  if (at > 0 && (std::isalnum(static_cast<unsigned char>(code[at - 1])) != 0 || code[at - 1] == '_'))
    return std::nullopt;
  std::smatch match;
  const std::string begin = code.substr(at, 200);
  if (!std::regex_search(begin, match, head)) return std::nullopt;
  if (std::regex_search(code.substr(at < 20 ? 0 : at - 20, at < 20 ? at : 20), no_class)) return std::nullopt;
  const std::size_t end = code.find_first_of("{;()=", at + static_cast<std::size_t>(match.length()));
  if (end == std::string::npos || code[end] != '{') return std::nullopt;
  return std::pair(end, match[1].str());
}

// Adds the class whose body is between `from` and `to`, and those within it.
void count_functions(const std::string& code, std::size_t from, std::size_t to, const std::string& name,
                     std::map<std::string, int>& counts) {
  int count = 0;
  std::string declaration;
  for (std::size_t i = from; i < to;) {
    if (const auto nested = class_at(code, i)) {
      const std::size_t end = closing(code, nested->first);
      count_functions(code, nested->first + 1, end, name + "::" + nested->second, counts);
      i = code.find(';', end) + 1;
      declaration.clear();
    } else if (code[i] == '(' || code[i] == '[' || code[i] == '{') {
      const std::size_t end = closing(code, i);
      const std::size_t next = code.find_first_not_of(" \n", end + 1);
      const bool is_body = code[i] == '{' && declares_function(declaration) && code[next] != ',' && code[next] != '{';
      if (is_body) {
        ++count;
        declaration.clear();
      } else {
        declaration += code.substr(i, end + 1 - i);
      }
      i = end + 1;
    } else if (code[i] == ';') {
      if (declares_function(declaration)) ++count;
      declaration.clear();
      ++i;
    } else {
      declaration += code[i++];
      static const std::regex access("^\\s*(public|private|protected)\\s*:$");
      if (code[i - 1] == ':' && code[i] != ':' && std::regex_match(declaration, access)) declaration.clear();
    }
  }
  counts[name] = std::max(counts[name], count);
}

std::map<std::string, int> functions_of_classes(const std::string& text) {
  std::map<std::string, int> counts;
  const std::string code = code_of(text);
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto found = class_at(code, i);
    if (!found) continue;
    const std::size_t end = closing(code, found->first);
    count_functions(code, found->first + 1, end, found->second, counts);
    i = end;
  }
  return counts;
}

// What is above the bound, and is there for all to see or on the way of every line of a process: these bounds only
// fall.
TEST(Classes, HaveFiftyFunctionsAtMost) {
  const std::map<std::string, int> allowed = {{"EventLoop", 97}, {"JobQueue", 85}, {"ProcessorChild", 54}};
  std::size_t seen = 0;
  for (const char* top : {"include", "src"}) {
    for (const fs::path& path : sources_below(kRoot / top)) {
      for (const auto& [name, count] : functions_of_classes(read(path))) {
        ++seen;
        const auto bound = allowed.find(name);
        EXPECT_LE(count, bound == allowed.end() ? 50 : bound->second) << path << ": " << name;
      }
    }
  }
  EXPECT_GT(seen, 1000u) << "they are found";
}

TEST(Classes, FunctionsAreCountedWhereTheyAreDeclared) {
  const auto counts = functions_of_classes(R"(
class A final : public B<int> {
 public:
  explicit A(int x) : a_{x}, b_(x) {}
  A(const A&) = delete;
  ~A() = default;
  void f() const;  // g();
  bool operator<(const A&) const { return f(1, "}"); }
  template <class T>
  std::function<void(int)> g(T t);
  struct Inner {
    int h() { return 1; }
    std::function<void()> no;
  } inner_;
 private:
  friend void k();
  std::function<void(int)> none_ = [](int) {};
  int a_{0}, b_ = max(1, 2);
};
enum class C { one };
)");
  EXPECT_EQ(counts, (std::map<std::string, int>{{"A", 4}, {"A::Inner", 1}}));
}

// The way from `source` back to itself, if there is one.
std::optional<std::string> circle_from(const Source& source, std::set<const Source*>& finished,
                                       std::vector<const Source*>& way) {
  if (const auto begin = std::ranges::find(way, &source); begin != way.end()) {
    std::string circle;
    for (auto it = begin; it != way.end(); ++it) circle += (*it)->name + " -> ";
    return circle + source.name;
  }
  if (finished.contains(&source)) return std::nullopt;
  way.push_back(&source);
  for (const Source* included : included_by(source)) {
    if (auto circle = circle_from(*included, finished, way)) return circle;
  }
  way.pop_back();
  finished.insert(&source);
  return std::nullopt;
}

TEST(Headers, NeverIncludeEachOtherInACircle) {
  std::set<const Source*> finished;
  for (const auto& [name, source] : all_sources()) {
    std::vector<const Source*> way;
    const auto circle = circle_from(source, finished, way);
    ASSERT_FALSE(circle) << *circle;
  }
}

TEST(Headers, ForUsersNeedNothingThatIsNotInstalled) {
  for (const auto& [name, source] : all_sources()) {
    if (!name.starts_with("argiope/")) continue;
    for (const std::string& included : source.includes) {
      EXPECT_TRUE(included.starts_with("argiope/")) << name << " includes " << included;
    }
  }
}

TEST(Headers, ThatArePrivateAreIncludedByTheirModuleAlone) {
  for (const auto& [name, source] : all_sources()) {
    for (const Source* included : included_by(source)) {
      EXPECT_TRUE(included->kind != Kind::for_itself || included->module == source.module)
          << name << " includes " << included->name << ", which is private to " << included->module;
    }
  }
}

TEST(Headers, ForModulesAreNotForUsers) {
  for (const fs::path& path : sources_below(kRoot / "examples")) {
    for (const std::string& name : includes_of(read(path))) {
      const auto included = all_sources().find(name);
      EXPECT_TRUE(included == all_sources().end() || included->second.kind == Kind::for_users)
          << path << " includes " << name;
    }
  }
}

TEST(Headers, AreGuardedAndThoseForUsersAreInArgiopeHpp) {
  const auto& in_all = all_sources().at("argiope/argiope.hpp").includes;
  for (const auto& [name, source] : all_sources()) {
    if (!source.is_header()) continue;
    EXPECT_NE(read(source.path).find("#pragma once"), std::string::npos) << name;
    if (source.is_above_modules()) continue;
    const bool is_there = std::ranges::find(in_all, name) != in_all.end();
    const bool is_for_users = source.kind == Kind::for_users;
    EXPECT_EQ(is_there, is_for_users) << name << (is_for_users ? " is missing in" : " is in") << " argiope.hpp";
  }
}

// A program includes what it uses, and reads what is beside that. The bound only falls (docs/decisions.md, "Modules").
TEST(Headers, ForUsersAreFew) {
  const auto is_for_users = [](const auto& entry) { return entry.second.kind == Kind::for_users; };
  EXPECT_LE(std::ranges::count_if(all_sources(), is_for_users), 40);
}

// --- names of anonymous namespaces

// What a line at the beginning of a line of an anonymous namespace brings: a name, and what must differ where the name
// is the same.
struct Brought {
  std::string name;
  std::string sort;  // "type", "value", "alias …" with its text, or "function" with its parameters' types
};

// Without what a function's caller never sees: the parameters' names and defaults.
std::string types_of(const std::string& parameters) {
  static const std::regex named("^(.*[ &*>])[A-Za-z_][A-Za-z0-9_]*$");
  std::string types, one;
  int depth = 0;
  const auto take = [&] {
    one = one.substr(0, one.find(" = "));
    one.erase(0, one.find_first_not_of(" \n"));
    std::smatch match;
    if (std::regex_match(one, match, named)) one = match[1];
    while (one.ends_with(' ')) one.pop_back();
    types += one + ';';
    one.clear();
  };
  for (const char c : parameters) {
    depth += (c == '<' || c == '(' || c == '{') - (c == '>' || c == ')' || c == '}');
    if (c == ',' && depth == 0) {
      take();
    } else {
      one += c == '\n' ? ' ' : c;
    }
  }
  take();
  return types;
}

// Of a declaration as clang-format writes it. nullopt: it brings no name of its own.
std::optional<Brought> brought_by(const std::string& declaration) {
  static const std::regex type("^(?:template <[^\n]*>\\s)?(?:struct|class|enum class|enum|union) (\\w+)"),
      alias("^(?:using|namespace) (\\w+) =");
  std::smatch match;
  if (std::regex_search(declaration, match, alias)) return Brought{match[1], "alias " + declaration};
  if (std::regex_search(declaration, match, type)) return Brought{match[1], "type"};
  if (declaration.starts_with("using ") || declaration.starts_with("static_assert") ||
      declaration.starts_with("extern "))
    return std::nullopt;
  const std::size_t head = declaration.starts_with("template") ? declaration.find('\n') : 0;
  std::size_t end = head;
  for (int angles = 0; end < declaration.size() &&
                       (angles > 0 || std::string_view("(={[;").find(declaration[end]) == std::string_view::npos);
       ++end) {
    angles += (declaration[end] == '<') - (declaration[end] == '>');
  }
  if (end == declaration.size() || end == 0) return std::nullopt;
  std::size_t begin = declaration.find_last_not_of(' ', end - 1);
  const std::size_t behind = begin + 1;
  const auto in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':' || c == '~';
  };
  while (begin != std::string::npos && begin > 0 && in_name(declaration[begin - 1])) --begin;
  const std::string name = declaration.substr(begin, behind - begin);
  if (name.empty() || !in_name(name[0])) return std::nullopt;
  if (declaration[end] != '(') return Brought{name, "value"};
  int depth = 0;
  std::size_t close = end;
  for (; close < declaration.size(); ++close) {
    depth += (declaration[close] == '(') - (declaration[close] == ')');
    if (depth == 0) break;
  }
  return Brought{name,
                 "function " + declaration.substr(0, head) + types_of(declaration.substr(end + 1, close - end - 1))};
}

// The declarations of a source's anonymous namespaces, without the texts that raw strings hold.
std::vector<std::string> anonymous_declarations_of(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string line, raw_end;
  bool is_inside = false, goes_on = false;
  static const std::regex raw_begin("R\"([^(\" ]*)\\(");
  while (std::getline(lines, line)) {
    if (!raw_end.empty()) {
      if (line.contains(raw_end)) raw_end.clear();
      goes_on = false;
      continue;
    }
    if (line == "namespace {") {
      is_inside = true;
    } else if (line.starts_with("}  // namespace")) {
      is_inside = false;
    } else if (is_inside) {
      const bool begins = !line.empty() && std::isalpha(static_cast<unsigned char>(line[0])) != 0;
      if (begins && !goes_on) found.emplace_back();
      if (begins || goes_on) {
        found.back() += line + '\n';
        // A template's head stands on a line of its own, and parameters go on where there are many.
        const bool is_head = line.starts_with("template <") && line.ends_with('>');
        goes_on = is_head || (line.find_first_of("{;") == std::string::npos && !line.empty());
      }
    }
    std::smatch match;
    if (std::regex_search(line, match, raw_begin) &&
        line.find(')' + match[1].str() + '"', static_cast<std::size_t>(match.position())) == std::string::npos) {
      raw_end = ')' + match[1].str() + '"';
    }
  }
  return found;
}

// Counts what the sources of the folder bring.
std::size_t expect_different_names(const fs::path& folder) {
  std::size_t count = 0;
  std::map<std::string, std::map<std::string, Brought>> by_name;
  for (const fs::path& path : sources_below(folder)) {
    if (path.extension() != ".cpp") continue;
    const std::string file = path.lexically_relative(kRoot).string();
    for (const std::string& declaration : anonymous_declarations_of(read(path))) {
      const auto brought = brought_by(declaration);
      if (!brought) continue;
      ++count;
      for (const auto& [other, its] : by_name[brought->name]) {
        const bool is_overload =
            brought->sort.starts_with("function") && its.sort.starts_with("function") && brought->sort != its.sort;
        const bool is_same_alias = brought->sort.starts_with("alias") && brought->sort == its.sort;
        EXPECT_TRUE(other == file || is_overload || is_same_alias)
            << file << " and " << other << " both have " << brought->name;
      }
      by_name[brought->name].emplace(file, *brought);
    }
  }
  return count;
}

// Where there is no compiler cache, a module's sources are compiled joined (cmake/Argiope.cmake), and its tests, too;
// which ones together changes with each new one.
TEST(AnonymousNamespaces, OfAModuleBringDifferentNames) {
  const std::string tests = read(kRoot / "tests" / "CMakeLists.txt");
  std::size_t count = 0;
  for (const std::string& module : kLadder) {
    count += expect_different_names(kRoot / "src" / module);
    if (!tests.contains("argiope_test(" + module + " SEPARATE")) expect_different_names(kRoot / "tests" / module);
  }
  EXPECT_GT(count, 1000u) << "they are found";
}

TEST(AnonymousNamespaces, AreReadAsTheyAreWritten) {
  const auto found = anonymous_declarations_of(
      "int outside();\nnamespace {\n\nstruct A {\n  int b;\n};\nconst char* k = R\"(\nint no();\n)\";\n"
      "template <class T>\nvoid f(T first,\n       int second = 2) {\n}\nstd::function<int()> g() { return {}; "
      "}\nusing B = int;\n\n}  // namespace\nint behind();\n");
  std::vector<std::string> told;
  for (const std::string& declaration : found) {
    const auto brought = brought_by(declaration);
    told.push_back(brought ? brought->name + ": " + brought->sort : "nothing");
  }
  EXPECT_EQ(told, (std::vector<std::string>{"A: type", "k: value", "f: function template <class T>T;int;",
                                            "g: function ;", "B: alias using B = int;\n"}));
}

TEST(TimeAndChance, ArePassedInBelowTheCommandLine) {
  // Where the machine's clocks are wrapped, where a loop in real time counts how long its steps take, and where a crawl
  // or a project brings a clock and chance of its own.
  const std::set<std::string> allowed = {"src/base/clock.cpp", "include/argiope/async/detail/pace.hpp",
                                         "src/crawl/run/local_crawl.cpp", "src/project/run/local_project.cpp"};
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
    if (!entry.is_regular_file()) continue;
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
