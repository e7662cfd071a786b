// A project while the engine runs it: what it says, what it knows, and what of it is under way.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "project/index/internal/page_frontier.hpp"
#include "project/index/internal/page_index.hpp"
#include "project/process/internal/rule_reader.hpp"
#include "project/rules/internal/project_map.hpp"
#include "project/run/internal/page_engine.hpp"
#include "project/run/internal/round_alarms.hpp"

namespace argiope {

struct PageVisit;

// The readers of pages by a project's rules, as these were at one time: one for the loop, one for the thread beside it.
class RuleReaders {
 public:
  // Errors: those of RuleReader::make().
  // The parts that all projects of an engine share.
  struct Shared {
    std::string agent;
    std::shared_ptr<RuleReader::Links> here;
    std::vector<std::shared_ptr<RuleReader::Links>> there;  // of each thread on which fields are read
  };
  static Result<std::shared_ptr<RuleReaders>> make(const ProjectDefinition& definition, ProjectMap map,
                                                   const Shared& shared);
  RuleReaders(RuleReader here, std::vector<std::shared_ptr<RuleReader::Links>> links, std::vector<std::string> names)
      : here_(std::move(here)), links_(std::move(links)), there_(links_.size()), names_(std::move(names)) {}

  RuleReader& here() { return here_; }
  // On that thread.
  RuleReader& there(std::size_t thread) {
    if (!there_[thread]) there_[thread] = here_.another(links_[thread]);
    return *there_[thread];
  }
  bool has_fields(std::size_t rule) const { return !here_.columns(rule).empty(); }
  const std::vector<std::string>& columns(std::size_t rule) const { return here_.columns(rule); }
  const std::string& name_of(std::size_t rule) const { return names_[rule]; }

 private:
  RuleReader here_;
  std::vector<std::shared_ptr<RuleReader::Links>> links_;
  std::vector<std::optional<RuleReader>> there_;  // each by its thread alone, once it has something to read
  std::vector<std::string> names_;                // of the rules
};

// The treatment of the pages that carry a rule, given by a file or a script.
struct LiveRule {
  std::string name;
  std::optional<std::size_t> place;  // in the definition's rules
  PageTerms terms;
  PageSettings settings;  // the script's, of the rule before those of all pages; behind them the requests of the file
  PageSettings settled;   // the same, of a page that says nothing of its own
  bool errors = false;    // the script gets answers that are no success, too
  std::shared_ptr<const ScriptFields> fields;  // that the script wants of its pages; null: none
};

struct LiveProject;
using SharedProject = std::shared_ptr<LiveProject>;

struct LiveProject {
  LiveProject(PageEngineOptions const& engine, ProjectRecord stored) : record(std::move(stored)), pause(engine.pause) {}

  // --- what it says
  ProjectRecord record;
  ProjectDefinition definition;
  std::string text, source, script;  // of its newest version
  ProjectStatus file_status{};       // as that says
  std::string file_group;
  std::optional<ProjectMap> map;
  std::shared_ptr<RuleReaders> readers;  // of the rules as they are
  std::vector<LiveRule> rules;           // by RuleNumber
  std::map<std::string, RuleNumber, std::less<>> rule_numbers;
  std::shared_ptr<Processor> processor;  // null: the rules are all there is; held by the calls of it, too
  std::uint64_t processor_number = 0;    // another one for each: what one says that was let go of is for nobody
  bool is_told_debug = false;            // its processor is
  std::optional<ProcessorDescription> description;
  Task<void> describing;
  std::unique_ptr<ResultSinks> sinks;  // null: it has none

  // --- what it knows
  PageIndex index;
  std::unique_ptr<PageFrontier> frontier;  // of the index
  FailurePause pause;
  ProjectCounters counters;
  std::deque<VisitNote> recent;
  std::map<std::string, WallTime, std::less<>> last_times;  // of its starts (kStartTime) and ticks (kTickPage)
  std::optional<WallTime> next_time;                        // of the first of them; nullopt: none

  // --- its round
  std::optional<RoundRecord> round;
  std::int64_t last_round = 0;
  std::uint64_t outstanding = 0;    // pages of the round that wait for a visit, or are visited
  std::vector<bool> in_round;       // by number
  RoundCounts counts;               // of its records' fields
  std::vector<std::string> alarms;  // of the last one that has ended
  std::deque<RoundRecord> untold;   // that have ended, and of which its script is still to be told, the first one first
  Event round_is_over;

  // --- what is under way
  std::unordered_map<PageIndex::Number, PageVisit*> visits;
  std::size_t reading = 0;  // visits that have been fetched, and are with the processor
  std::size_t taken = 0;    // of its pages, those whose record is to be read
  bool is_active = false;   // among those that may have something to visit
  std::uint64_t turn = 0;   // its place among them: the least goes first
  std::uint32_t turns = 0;  // visits that it may begin there before its place is behind all others'; of a new one none
  TimePoint wakes_at = kNever;
  bool is_changed = false;           // what is stored of it beside its pages
  bool is_gone = false;              // removed while something of it was under way
  std::function<void(PageLog)> log;  // of one that is tried: takes the lines of its log

  PageTerms const& terms_of(RuleNumber rule) const { return rules[rule].terms; }
  bool is_running() const noexcept {
    return definition.status == ProjectStatus::running || definition.status == ProjectStatus::debug;
  }
  // Whether it may visit anything, but for pauses.
  bool may_visit() const noexcept {
    return is_running() && !is_gone && map && (definition.processor.empty() || description.has_value());
  }
  bool is_in_round(PageIndex::Number page) const { return page < in_round.size() && in_round[page]; }
  // The number of the round under way, if the page is in it; else 0.
  std::int64_t round_of(PageIndex::Number page) const { return round && is_in_round(page) ? round->number : 0; }
  PageId id_of(PageIndex::Number page) const noexcept {
    return first_page_id(record.id) - 1 + static_cast<PageId>(page);
  }

  // It is of that version from now on; `pause_after`: where its file says none.
  Result<void> take_version(const ProjectVersion& version, const RuleReaders::Shared& shared,
                            std::uint32_t pause_after);
  // What is stored of it beside its pages.
  void write_to(PageBatch& batch);

  RuleNumber rule_number(std::string_view name);
  // The rules as its file, its version and its script have them now.
  void make_rules();
  void make_rule(LiveRule& rule) const;
  // A page's rule says what a project without a script does with it.
  bool has_lost_its_rule(PageIndex::Number page) const;
  // The page of that name, or of that URL, whose name it then is. 0: there is none.
  PageIndex::Number find_page(std::string& name) const;
  // Counts a page that was as `before` and is as `after`; nullopt: it is new.
  void recount(const std::optional<KnownPage>& before, const KnownPage& after);
  // A visit that has ended: the first of `recent`.
  void note(VisitNote visit);
  // `number`: 0: of none.
  void enter_round(PageIndex::Number page, std::int64_t number);
  // When its first start or tick comes, from what is known of the last ones.
  void plan_times(WallTime now);
  std::string stored_times() const;
  void read_times(std::string_view stored);
};

inline constexpr std::string_view kStartTime = "start";
// "data:,tick/RULE": the page of a tick.
inline constexpr std::string_view kTickPage = "data:,tick/";
inline constexpr std::string_view kStartPage = "data:,on_start";
inline constexpr std::string_view kFinishedPage = "data:,on_finished";

PageEvent event_of(const ProcessorDescription* description, std::string_view url, std::string_view rule) noexcept;

}  // namespace argiope
