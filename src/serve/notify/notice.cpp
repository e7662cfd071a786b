#include "serve/notify/notice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"

namespace argiope {

namespace {

constexpr std::size_t kMostNoticeText = 300;

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
  for (const auto& [key, notice] : notices) lines.push_back(to_sentence(notice));
  if (notices.left_out() > 0) lines.push_back(fmt::format("And {} more.", notices.left_out()));
  return lines;
}

void write(JsonWriter& json, const Notice& notice) {
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
      for (const auto& [key, notice] : notices) write(json, notice);
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
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::seconds>(at - day)};
  return fmt::format("{}, {} {} {} {:02}:{:02}:{:02} +0000", kDays[std::chrono::weekday{day}.c_encoding()],
                     unsigned{date.day()}, kMonths[unsigned{date.month()} - 1], int{date.year()}, time.hours().count(),
                     time.minutes().count(), time.seconds().count());
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

std::string last_text(const Notice& notice) {
  return notice.text.empty() ? "" : ": " + printable(notice.text, kMostNoticeText);
}

}  // namespace

void Notices::add(Notice notice) {
  const auto key = std::pair(notice.trouble, notice.subject);
  const auto found = notices_.find(key);
  if (found == notices_.end()) {
    if (notices_.size() >= kMost) {
      ++left_out_;
    } else {
      notices_.emplace(key, std::move(notice));
    }
    return;
  }
  Notice& there = found->second;
  there.count += notice.count;
  there.last_at = notice.last_at;
  there.is_over = notice.is_over;
  there.text = std::move(notice.text);
  for (const JobId job : notice.jobs) {
    if (there.jobs.size() < kMostJobs) there.jobs.push_back(job);
  }
}

const Notice* Notices::find(Trouble trouble, std::string_view subject) const {
  const auto found = notices_.find(std::pair(trouble, std::string(subject)));
  return found == notices_.end() ? nullptr : &found->second;
}

void Notices::erase(Trouble trouble, std::string_view subject) {
  notices_.erase(std::pair(trouble, std::string(subject)));
}

std::string to_sentence(const Notice& notice) {
  const std::string subject = in_quotes(notice.subject);
  const bool once = notice.count == 1;
  switch (notice.trouble) {
    case Trouble::buried:
      return fmt::format("{} of queue {} {} buried{}{}", once ? "a job" : counted(notice.count, "job"), subject,
                         once ? "was" : "were",
                         notice.jobs.empty() ? "" : fmt::format(", the first is job {}", notice.jobs.front()),
                         last_text(notice));
    case Trouble::expired:
      return fmt::format("{} of queue {} ran out, or the worker has gone",
                         once ? "a lease" : counted(notice.count, "lease"), subject);
    case Trouble::missed:
      return fmt::format("schedule {} has missed {}", subject, once ? "a run" : counted(notice.count, "run"));
    case Trouble::failed:
      if (notice.is_over && notice.text.empty()) return fmt::format("schedule {} can run again", subject);
      if (notice.is_over) return fmt::format("schedule {}{}", subject, last_text(notice));
      return fmt::format("schedule {} has failed{}{}", subject, once ? "" : fmt::format(" {} times", notice.count),
                         last_text(notice));
    case Trouble::depth:
    case Trouble::age:
      return fmt::format("queue {}{}{}", subject, notice.is_over ? " is well again" : "", last_text(notice));
    case Trouble::daemon:
      return fmt::format("{}{}{}", printable(notice.subject), notice.is_over ? " is well again" : "",
                         notice.is_over ? "" : last_text(notice));
    case Trouble::alarm:
      return fmt::format("project {} has raised {}{}", subject, once ? "an alarm" : counted(notice.count, "alarm"), last_text(notice));
    case Trouble::paused:
      return fmt::format("project {} {}{}", subject, notice.is_over ? "goes on" : "does not go on", last_text(notice));
    case Trouble::findings:
      return fmt::format("{} has found something{}{}", subject, once ? "" : fmt::format(" {} times", notice.count),
                         last_text(notice));
  }
  return subject;
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
