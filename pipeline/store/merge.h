#pragma once
// Several stores of one plan become one: the shards of several machines, or arms that were run on
// different ones. The result has the logical digest that a run in one piece would have. Whatever
// does not fit together is refused by name before anything is written, and the new store has its
// name only once it is whole. Rows are streamed: memory holds one range of row numbers per input
// and table, besides what digests take (store/digest.h).
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "store/seal.h"
#include "store/store.h"

namespace preval {

/// A store in the making. It is written as NAME.part beside its place and gets its name by
/// publish(); without that, whatever happens, nothing stands at its place. What a killed maker left
/// is overwritten.
class NewStore {
 public:
  /// Throws usage where there is a store already, or the seal of one.
  NewStore(Files& files, const std::filesystem::path& path);
  ~NewStore();
  NewStore(const NewStore&) = delete;
  NewStore& operator=(const NewStore&) = delete;

  Db& db() { return *db_; }
  /// Closes the store and gives it its name.
  void publish();

 private:
  void remove_part() const;

  std::filesystem::path path_, part_;
  StoreLock lock_;
  std::optional<Db> db_;
};

/// What came together.
struct Merged {
  std::vector<SealOrigin> origins;  ///< one per input, in the order in which they were begun
  std::int64_t answers = 0;         ///< in the new store
  std::int64_t kept_once = 0;       ///< answers that more than one input holds, all alike
};

/// Fills a new store with what the inputs hold, scores and seals excepted. The inputs are only
/// read; their order says nothing. `stop` is asked now and then, and ends it when true
/// (interrupted). Throws usage for inputs that are no stores of one plan, of other numbers of
/// shards, of shards that overlap or are missing, or whose answers of one arm come from different
/// servers; drift for one that was changed since it was sealed, and for different content under one
/// key.
Merged merge_stores(Files& files, Clock& clock, const std::vector<std::filesystem::path>& inputs,
                    Db& out, const std::function<bool()>& stop = {});

}  // namespace preval
