// Jobs as people like to read them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/jobs/job_record.hpp"

namespace argiope {

// Columns as wide as what is in them, two spaces apart; the first row is the heading. Numbers go to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) { add(std::move(heading)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// One line of at most `most` characters, whatever the text was: control characters and broken UTF-8 are replaced.
std::string one_line(std::string_view text, std::size_t most);

std::vector<std::string> job_heading();
std::vector<std::string> job_row(const JobRecord& record);
std::string job_details(const JobRecord& record, const std::vector<Attempt>& history);
// As to_json(record), with the attempts that failed.
std::string job_details_json(const JobRecord& record, const std::vector<Attempt>& history);

}  // namespace argiope
