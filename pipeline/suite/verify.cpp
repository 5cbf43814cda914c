#include "suite/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/sha256.h"

namespace preval {
namespace {

using Warn = std::function<void(const std::string&)>;
using Stop = std::function<bool()>;

constexpr std::uintmax_t kLargestFile = std::uintmax_t{1} << 30;  // it is read into memory

void check_stop(const Stop& stop) {
  if (!stop || !stop()) return;
  throw Error(ErrorKind::interrupted, "stopped by the user while the data was verified",
              "nothing is lost: the same command begins again");
}

/// What the bytes of a data file turned out to hold.
struct Contents {
  std::vector<Record> records;
  int count = 0, families = 0;
  TooWide too_wide;
  std::string problem;  ///< the first thing that is wrong; empty when nothing is
  int problem_line = 0;
};

/// Why a record cannot be asked although it is whole, or empty.
std::string unaskable(const Record& record, const Subset& subset) {
  const Question& question = record.question;
  if (question.type != subset.type) {
    return fmt::format("line {}: record \"{}\" is a {} question, registered is {}", record.line,
                       record.id, to_text(question.type), to_text(subset.type));
  }
  return {};
}

Contents read_contents(std::string_view bytes, const Subset& subset, const std::string& where,
                       bool keep, const Warn& warn, const Stop& stop) {
  Contents contents;
  RecordReader reader(bytes, subset.id, where, warn);
  try {
    while (auto record = reader.next()) {
      check_stop(stop);
      if (contents.problem.empty()) {
        contents.problem = unaskable(*record, subset);
        if (!contents.problem.empty()) contents.problem_line = record->line;
      }
      contents.too_wide.count(*record);
      if (keep) contents.records.push_back(std::move(*record));
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    if (contents.problem.empty()) contents.problem_line = reader.line();
    contents.problem += (contents.problem.empty() ? "" : "; ") + std::string(error.what());
  }
  contents.count = reader.records();
  contents.families = reader.families();
  return contents;
}

std::string with_line_feeds_only(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\r' && i + 1 < bytes.size() && bytes[i + 1] == '\n') continue;
    result += bytes[i];
  }
  return result;
}

/// How bytes of another digest differ, as far as it can be known from a digest alone.
std::string byte_difference(std::string_view bytes, const std::string& registered_sha256) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (bytes.find("\r\n") != std::string_view::npos &&
      sha256_hex(with_line_feeds_only(bytes)) == registered_sha256) {
    return "only line ends differ";
  }
  if (bytes.starts_with(mark) && sha256_hex(bytes.substr(mark.size())) == registered_sha256) {
    return "only a byte order mark differs";
  }
  return "other bytes than registered";
}

void add_problem(SubsetCheck& check, const std::string& problem) {
  if (!check.problem.empty()) check.problem += "; ";
  check.problem += problem;
}

void judge(SubsetCheck& check, std::string_view bytes, const Contents& contents) {
  if (check.found_sha256 != check.registered_sha256) {
    check.problem = byte_difference(bytes, check.registered_sha256);
    check.status = SubsetStatus::mismatch;
    if (check.problem.starts_with("only ")) return;  // then the contents are as registered
  }
  if (!contents.problem.empty()) {
    add_problem(check, contents.problem);
    check.first_bad_line = contents.problem_line;
  }
  if (check.found_records != check.registered_records) {
    add_problem(check, fmt::format("{} records, registered {}", check.found_records,
                                   check.registered_records));
  }
  if (check.found_families != check.registered_families) {
    add_problem(check, fmt::format("{} families, registered {}", check.found_families,
                                   check.registered_families));
  }
  check.status = check.problem.empty() ? SubsetStatus::ok : SubsetStatus::mismatch;
}

/// One subset's check. The records of a file that is what was registered go to `keep`.
SubsetCheck check_subset(Files& files, const DatasetGroup& group, const Subset& subset,
                         const std::filesystem::path& folder, bool by_token, const Warn& warn,
                         const Stop& stop, std::vector<Record>* keep) {
  check_stop(stop);
  SubsetCheck check;
  check.group = group.id;
  check.subset = subset.id;
  check.path = folder / subset.id / "all.jsonl";
  check.registered_sha256 = subset.sha256;
  check.registered_records = subset.records;
  check.registered_families = subset.families;
  std::string bytes;
  try {
    if (!files.exists(check.path)) {
      check.problem = fmt::format("no file {}", check.path.string());
      return check;
    }
    if (const auto size = files.size(check.path); size > kLargestFile) {
      check.status = SubsetStatus::mismatch;
      check.problem = fmt::format("{} bytes: no data file of this suite is that large", size);
      return check;
    }
    bytes = files.read(check.path);
  } catch (const Error& error) {  // unreadable: a finding about this subset, the others go on
    check.status = SubsetStatus::mismatch;
    check.problem = error.what();
    return check;
  }
  check_stop(stop);
  check.found_sha256 = sha256_hex(bytes);
  Contents contents =
      read_contents(bytes, subset, check.path.string(), keep != nullptr, warn, stop);
  check.found_records = contents.count;
  check.found_families = contents.families;
  if (by_token && contents.too_wide.records > 0) check.note = in_words(contents.too_wide);
  judge(check, bytes, contents);
  if (keep != nullptr) *keep = std::move(contents.records);
  return check;
}

}  // namespace

std::string_view to_text(SubsetStatus value) {
  switch (value) {
    case SubsetStatus::ok:
      return "ok";
    case SubsetStatus::missing:
      return "missing";
    case SubsetStatus::mismatch:
      return "mismatch";
  }
  throw std::logic_error("unknown subset status");
}

VerifyResult verify_data(Files& files, const OpenPlan& plan,
                         const std::optional<std::filesystem::path>& data, const Warn& warn,
                         const std::function<void(const DatasetGroup&, const Subset&,
                                                  std::vector<Record>&&)>& on_records,
                         const Stop& stop) {
  VerifyResult result;
  const Plan& effective = plan.effective;
  const bool by_token = std::any_of(
      effective.arms.begin(), effective.arms.end(),
      [&](const Arm& arm) { return effective.backend(arm.backend).read != ReadMode::native; });
  for (const DatasetGroup& group : plan.effective.datasets) {
    const std::filesystem::path folder = data ? *data : plan.resolve(group.data);
    for (const Subset& subset : group.subsets) {
      std::vector<Record> records;
      SubsetCheck check = check_subset(files, group, subset, folder, by_token, warn, stop,
                                       on_records ? &records : nullptr);
      const SubsetStatus status = check.status;
      result.subsets.push_back(std::move(check));
      switch (status) {
        case SubsetStatus::ok:
          ++result.ok;
          if (on_records) on_records(group, subset, std::move(records));
          break;
        case SubsetStatus::missing:
          ++result.missing;
          break;
        case SubsetStatus::mismatch:
          ++result.mismatch;
          break;
      }
    }
  }
  return result;
}

}  // namespace preval
