// AskDesk: the outcome of asks for pages: of links, of scripts and programs, of starts and messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "project/run/host_table.hpp"
#include "project/run/project_turns.hpp"
#include "project/run/row_desk.hpp"

namespace argiope {

class RoundDesk;

class AskDesk final : public PageEnginePart {
 public:
  AskDesk(PageEngineCore& core, HostTable& hosts, ProjectTurns& turns, RowDesk& rows, RoundDesk& rounds)
      : PageEnginePart(core), hosts_(hosts), turns_(turns), rows_(rows), rounds_(rounds) {}

  struct Asking {
    std::string_view name, url;
    RuleNumber rule = 0;
    std::string_view settings, context;  // JSON; empty: nothing
    Ask ask;
    std::int64_t round = 0;
    PageId from = 0;
  };
  AskDecision take(LiveProject& project, const Asking& asking, PageBatch& batch, WallTime now);
  // The page that an ask is for, as the project has it.
  struct AskMeant {
    std::string name, url;
    std::optional<RuleNumber> rule;  // nullopt: `place` says why there is none
    ProjectMap::Place place = ProjectMap::Place::page;
    Ask ask;
  };
  // Errors: invalid_input for its URL.
  static Result<AskMeant> meant_by(LiveProject& project, const AskedPage& page, WallTime now);
  // Errors: what is wrong with the page, in words; then nothing has become of it.
  Result<AskDecision> take_page(LiveProject& project, const AskedPage& page, std::int64_t round, PageId from,
                                PageBatch& batch, WallTime now);
  Result<void> take_message(std::string_view from, const PageMessage& message, PageBatch& batch, WallTime now);
  // The same of a script of the project `from`.
  Result<void> take_message_of_script(std::string_view from, const PageMessage& message, PageBatch& batch,
                                      WallTime now);
  void take_event(LiveProject& project, std::string_view name, std::string_view rule, std::string context,
                  std::int64_t round, PageBatch& batch, WallTime now);

 private:
  HostTable& hosts_;
  ProjectTurns& turns_;
  RowDesk& rows_;
  RoundDesk& rounds_;
};

}  // namespace argiope
