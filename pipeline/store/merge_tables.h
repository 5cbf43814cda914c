#pragma once
// How the rows of each table come from several stores into one: which columns tell a row apart,
// which have to be equal where two stores have the same row, and which hold numbers of other rows,
// that are others in the new store. A table that the schema gains is one more entry here.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/merge_input.h"
#include "store/row_digest.h"

namespace preval {

enum class MergeRole {
  key,    ///< with the other keys, what tells rows apart
  same,   ///< where keys are equal, this has to be, too
  first,  ///< where keys are equal, the first store's stands
  flag,   ///< 1 where any store says 1
};

struct MergeColumn {
  const char* name;
  MergeRole role = MergeRole::first;
  const char* refers = nullptr;  ///< the table whose row number it holds
  /// How it is read, where not as it is. "{stale}" stands for the ids of subsets that another store
  /// has verified and this one has not.
  const char* read = nullptr;
};

struct MergeTable {
  const char* name;
  bool numbered;  ///< has an id, which is another one in the new store
  std::vector<MergeColumn> columns;
  const EvidenceQuery* evidence =
      nullptr;  ///< what its rows are called; else they go by their keys
};

/// What was registered: whole tables, each after those that it refers to.
extern const std::vector<MergeTable> kRegisteredTables;
/// Runs, which have no key: merge.cpp knows one that two stores share by everything it says.
extern const MergeTable kRunTable;
/// What was answered, in the order of row numbers.
extern const std::vector<MergeTable> kAnswerTables;
/// What happened in runs: without keys, run by run. All have a column run_id.
extern const std::vector<MergeTable> kRunLogTables;

/// The rows of one table of one input, on their way.
class TableCopy {
 public:
  /// `inputs`: all of them, of which those before `index` have been copied. `order`: of the rows.
  TableCopy(const MergeTable& table, std::vector<MergeInput>& inputs, std::size_t index,
            const std::vector<std::int64_t>& stale, Db& out, const std::string& order);
  ~TableCopy();
  TableCopy(const TableCopy&) = delete;
  TableCopy& operator=(const TableCopy&) = delete;

  bool step();  ///< true while there is a row
  /// The row's value of a column that it has.
  std::int64_t integer(const char* column) const;
  /// Adds the row, or finds it there already: false. Throws drift where it is there and differs.
  bool put();

 private:
  struct Statements;

  void bind(Stmt& statement, bool (*wanted)(MergeRole));
  [[noreturn]] void throw_differs();

  const MergeTable& table_;
  std::vector<MergeInput>& inputs_;
  std::size_t index_;
  Db& out_;
  std::unique_ptr<Statements> statements_;
};

}  // namespace preval
