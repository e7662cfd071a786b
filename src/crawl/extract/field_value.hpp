// From the text that a page has to the value that a field wants: numbers, dates, yes and no, as people write them.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

// The first number in `text`, as JSON writes it: "1,234.56 €", "1.234,56", "1 234,56" and "1'234.56" are 1234.56, "−5
// %" is -5. So are digits of other scripts: "١٬٢٣٤٫٥٦", "１，２３４．５６" and "१,२३४.५६".
//
// Of two kinds of separators the last is the decimal one. One alone, once, is a decimal point, but a comma before
// exactly three digits separates thousands; several of one kind do that always. `decimal` ('.' or ',') says it for
// pages where that is not so. nullopt where there is no number, or one of more than 40 digits, and where the first
// digits are those of several numbers: a date (31.12.2027), an address (192.168.10.1), a list (36,37,38; 128 256 512),
// a telephone number. So is a number that what is around it makes another one: 1.5M, 3 Mio, £5m, 1½, 10², 0x1F. Before
// a dash in the place of cents a point separates thousands: 1.299,- is 1299, and so is 1.299:-. A minus is before the
// number, or behind it or in the shape of brackets where it has cents, as accounts have it: 5.00- and (5.00) are -5,
// (12) is 12. Cents may be raised: "$12^99".
std::optional<std::string> number_in(std::string_view text, char decimal = '\0');
// The same where it is whole, and fits 64 bits: "1.234,00" is 1234 too, "1e3" is 1000.
std::optional<std::string> integer_in(std::string_view text, char decimal = '\0');

// true, yes, y, on, 1; false, no, n, off, 0. In any case.
std::optional<bool> truth_in(std::string_view text);

// The date that `text` is, as RFC 3339 has it, with as much of it as the text says: "2026-03-12", "2026-03",
// "2026-03-12T14:30:00", "2026-03-12T14:30:00+01:00". It may be written as
//
//   2026-03-12T14:30:00.5+01:00, 20260312T143000Z, 2026/03/12 2:30 pm       ISO 8601, RFC 3339
//   Thu, 12 Mar 2026 14:30:00 +0100, Thursday, 12-Mar-26 14:30:00 GMT       RFC 2822, RFC 850
//   March 12th, 2026; 12. März 2026; le 12 mars 2026; 12 de marzo de 2026   English, German, Romance and Nordic
//   12 марта 2026 г.; 12. března 2026; 12 Mart 2026 Perşembe                languages, Dutch, Russian, Ukrainian,
//                                                                           Polish, Czech, Slovak, Finnish, Turkish,
//                                                                           Hungarian, Greek, Arabic
//   12.03.2026, 31/12/2026, 12/31/26                                        day first with points
//   2026年3月12日, 2026年03月12日(木) 14時30分, 2026년 3월 12일               Chinese, Japanese, Korean
//   1773325800, 1773325800000, /Date(1773325800000)/                        seconds or milliseconds since 1970
//
// Words that name what the date is may stand before it ("Updated: …"), and the day of the week beside it. A zone whose
// offset depends on the day ("ET", "Europe/Berlin") is passed over.
//
// Of 03/12/2026 nobody knows which is the month: `day_first` has to say it.
// Errors: invalid_input, saying which of these it is: no date, one that does not exist, one that is ambiguous.
Result<std::string> date_in(std::string_view text, std::optional<bool> day_first = std::nullopt);

}  // namespace argiope
