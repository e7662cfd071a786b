#include "serve/notify/notice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/counted.hpp"
#include "base/internal/date_text.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "serve/notify/notice_command.hpp"
#include "serve/notify/trouble_log.hpp"

namespace argiope {

namespace {

constexpr std::size_t kMostNoticeText = 300;

std::string last_text(const Notice& notice) {
  return notice.text.empty() ? "" : ": " + printable(notice.text, kMostNoticeText);
}

// "schedule \"backup\"": whose trouble it is.
std::string owner_of(const Notice& notice) {
  const std::string subject = in_quotes(notice.subject);
  switch (notice.trouble) {
    case Trouble::buried:
    case Trouble::expired:
    case Trouble::depth:
    case Trouble::age: return "queue " + subject;
    case Trouble::missed:
    case Trouble::failed: return "schedule " + subject;
    case Trouble::alarm:
    case Trouble::paused: return "project " + subject;
    case Trouble::findings: return subject;
    case Trouble::daemon: return printable(notice.subject);
  }
  return subject;
}

std::string sentence_of_end(const Notice& notice) {
  const std::string owner = owner_of(notice);
  if (notice.trouble == Trouble::paused) return fmt::format("{} goes on{}", owner, last_text(notice));
  if (notice.text == kGone && over_by(notice.trouble) != OverBy::look) return owner + last_text(notice);
  if (notice.run != 0) {
    return fmt::format("{} is well again: its run {} has {}", owner, notice.run,
                       notice.trouble == Trouble::findings ? "found nothing" : "gone well");
  }
  if (notice.trouble == Trouble::failed) return owner + " can run again";
  return fmt::format("{} is well again{}", owner, last_text(notice));
}

std::string sentence_of_trouble(const Notice& notice) {
  const std::string owner = owner_of(notice);
  const bool once = notice.count == 1;
  const std::string times = once ? "" : fmt::format(" {} times", notice.count);
  switch (notice.trouble) {
    case Trouble::buried:
      return fmt::format(
          "{} of {} {} buried{}{}", once ? "a job" : counted(notice.count, "job"), owner, once ? "was" : "were",
          notice.jobs.empty() ? "" : fmt::format(", the first is job {}", notice.jobs.front()), last_text(notice));
    case Trouble::expired:
      return fmt::format("{} of {} ran out, or the worker has gone", once ? "a lease" : counted(notice.count, "lease"),
                         owner);
    case Trouble::missed: return fmt::format("{} has missed {}", owner, once ? "a run" : counted(notice.count, "run"));
    case Trouble::failed: return fmt::format("{} has failed{}{}", owner, times, last_text(notice));
    case Trouble::depth:
    case Trouble::age:
    case Trouble::daemon: return owner + last_text(notice);
    case Trouble::alarm:
      return fmt::format("{} has raised {}{}", owner, once ? "an alarm" : counted(notice.count, "alarm"),
                         last_text(notice));
    case Trouble::paused: return fmt::format("{} does not go on{}", owner, last_text(notice));
    case Trouble::findings: return fmt::format("{} has found something{}{}", owner, times, last_text(notice));
  }
  return owner;
}

// The line of one for people: a sentence, and the command that shows more.
std::string line_of(const Notice& notice, const MessageHead& head) {
  const std::string command = command_for(notice, head.daemon);
  return command.empty() ? to_sentence(notice) : fmt::format("{} ({})", to_sentence(notice), command);
}

std::string_view status_of(const MessageHead& head, const Notices& notices) {
  if (head.is_test) return "test";
  const bool all_over = std::ranges::all_of(notices, [](const auto& entry) { return entry.second.is_over; });
  return all_over && notices.left_out() == 0 ? "well" : "trouble";
}

// "2 troubles, 1 is over": without anybody's names.
std::string summary_of(const MessageHead& head, const Notices& notices) {
  if (head.is_test) return "a test";
  const auto over = std::ranges::count_if(notices, [](const auto& entry) { return entry.second.is_over; });
  const std::uint64_t troubles = notices.size() - static_cast<std::uint64_t>(over) + notices.left_out();
  std::string text;
  if (troubles > 0) text = counted(troubles, "trouble");
  if (over > 0) text += fmt::format("{}{} over", text.empty() ? "" : ", ", over);
  return text;
}

std::vector<std::string> lines_of(const MessageHead& head, const Notices& notices) {
  std::vector<std::string> lines;
  if (head.is_test) lines.emplace_back("This is a test: nothing is wrong.");
  for (const auto& [key, notice] : notices) lines.push_back(line_of(notice, head));
  if (notices.left_out() > 0) lines.push_back(fmt::format("And {} more.", notices.left_out()));
  return lines;
}

void write(JsonWriter& json, const Notice& notice, const MessageHead& head) {
  json.object([&] {
    json.member("trouble", kTroubleNames[static_cast<std::size_t>(notice.trouble)]);
    json.member("subject", notice.subject);
    json.member("status", notice.is_over ? "well" : "trouble");
    json.member("count", notice.count);
    json.member("first_at", notice.first_at);
    json.member("last_at", notice.last_at);
    json.member("text", notice.text);
    json.list("jobs", notice.jobs);
    json.member("sentence", to_sentence(notice));
    json.member("command", command_for(notice, head.daemon));
  });
}

std::string as_json(const NotifyRule& rule, const MessageHead& head, const Notices& notices) {
  return json_object([&](JsonWriter& json) {
    json.member("notify", rule.name);
    json.member("from", head.from);
    json.member("at", head.at);
    json.member("status", status_of(head, notices));
    json.member("summary", summary_of(head, notices));
    json.array("notices", [&] {
      for (const auto& [key, notice] : notices) write(json, notice, head);
    });
    json.member("left_out", notices.left_out());
  });
}

// In chats <…> is a link or calls people, and & begins an entity.
std::string without_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '@') {
      out += "@\u200b";  // calls nobody
    } else {
      out += c;
    }
  }
  return out;
}

std::string as_text(const MessageHead& head, const Notices& notices) {
  std::string text = fmt::format("argiope at {}: {}", head.from, summary_of(head, notices));
  for (const std::string& line : lines_of(head, notices)) text += "\n• " + line;
  return json_object([&](JsonWriter& json) { json.member("text", without_markup(text)); });
}

// The date as RFC 5322 wants it, in UTC.
std::string mail_date(WallTime at) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::seconds>(at - day)};
  return fmt::format("{}, {} {} {} {:02}:{:02}:{:02} +0000", kDays[std::chrono::weekday{day}.c_encoding()],
                     unsigned{date.day()}, kMonthNames[unsigned{date.month()} - 1], int{date.year()},
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

// Headers have only what the configuration and this program say.
std::string as_mail(const NotifyRule& rule, const MessageHead& head, const Notices& notices) {
  std::string mail = fmt::format(
      "From: {}\nTo: {}\nSubject: argiope: {}\nDate: {}\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n"
      "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n"
      "argiope at {}, {}\n\n",
      rule.from, rule.to, summary_of(head, notices), mail_date(head.at), printable(head.from), to_rfc3339(head.at));
  for (const std::string& line : lines_of(head, notices)) mail += "* " + line + "\n";
  return mail;
}

}  // namespace

bool Notices::add(Notice notice) {
  TroubleKey key = notice.key();
  const auto found = notices_.find(key);
  if (found == notices_.end()) {
    if (is_full()) {
      ++left_out_;
      return false;
    }
    notices_.emplace(std::move(key), std::move(notice));
    return true;
  }
  Notice& there = found->second;
  there.count += notice.count;
  there.last_at = notice.last_at;
  there.is_over = notice.is_over;
  there.text = std::move(notice.text);
  if (notice.run != 0) there.run = notice.run;
  for (const JobId job : notice.jobs) {
    if (there.jobs.size() < kMostJobs) there.jobs.push_back(job);
  }
  return true;
}

const Notice* Notices::find(const TroubleKey& key) const {
  const auto found = notices_.find(key);
  return found == notices_.end() ? nullptr : &found->second;
}

std::string to_sentence(const Notice& notice) {
  return notice.is_over ? sentence_of_end(notice) : sentence_of_trouble(notice);
}

std::string write_message(const NotifyRule& rule, const MessageHead& head, const Notices& notices) {
  switch (rule.format) {
    case NotifyFormat::json: break;
    case NotifyFormat::text: return as_text(head, notices);
    case NotifyFormat::mail: return as_mail(rule, head, notices);
  }
  return as_json(rule, head, notices);
}

}  // namespace argiope
