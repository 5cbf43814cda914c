#include "store/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/json.h"
#include "base/sha256.h"
#include "store/bytes.h"
#include "store/row_digest.h"

namespace preval {

namespace {

enum Column { row_id, stored_digest, row_name, table, arm, dataset, subset, counts, first_value };

using Bytes32 = std::array<char, 32>;
using GroupKey = std::tuple<std::string, std::string, std::string, std::string>;

/// The labels of answers, in the order of the answers' ids.
class Labels {
 public:
  explicit Labels(Db& db)
      : query_(db,
               "SELECT prediction_id, option, logprob, probability, source FROM label ORDER BY "
               "prediction_id, position"),
        there_(query_.step()) {}

  void append_to(TypedRow& row, std::int64_t prediction) {
    while (there_ && query_.integer(0) < prediction) there_ = query_.step();
    for (; there_ && query_.integer(0) == prediction; there_ = query_.step()) {
      for (int column = 1; column < 5; ++column) row.column(query_, column);
    }
  }

 private:
  Stmt query_;
  bool there_;
};

std::string digest_of(const Stmt& query, Labels* labels) {
  TypedRow row;
  for (int column = first_value; column < query.columns(); ++column) row.column(query, column);
  if (labels != nullptr) labels->append_to(row, query.integer(row_id));
  return row.sha256();
}

class Digester {
 public:
  Digester(Db& db, const std::function<void(const ChangedRow&)>& changed)
      : db_(db), changed_(changed) {}

  LogicalDigest compute() {
    read_options();
    read(kRecordEvidence, nullptr);
    Labels labels(db_);
    read(kPredictionEvidence, &labels);
    read(kFailureEvidence, nullptr);
    LogicalDigest result;
    TypedRow all;
    for (auto& [key, digests] : groups_) {
      std::sort(digests.begin(), digests.end());
      std::string joined;
      joined.reserve(digests.size() * sizeof(Bytes32));
      for (const Bytes32& digest : digests) joined.append(digest.data(), digest.size());
      const auto& [of_table, of_arm, of_dataset, of_subset] = key;
      EvidenceGroup group{of_table,
                          of_arm,
                          of_dataset,
                          of_subset,
                          static_cast<std::int64_t>(digests.size()),
                          sha256_hex(joined)};
      all.text(group.table).text(group.arm).text(group.dataset).text(group.subset);
      all.integer(group.rows).text(group.digest);
      result.rows += group.rows;
      result.groups.push_back(std::move(group));
    }
    result.digest = sha256_hex(all.bytes());
    return result;
  }

 private:
  /// Digests of records hold their option set's, which has to be that of its keys.
  void read_options() {
    Stmt query(db_,
               "SELECT s.id, s.sha256, o.position, o.key FROM option_set s LEFT JOIN option o ON "
               "o.set_id = s.id ORDER BY s.id, o.position");
    bool there = changed_ && query.step();
    while (there) {
      const std::int64_t set = query.integer(0);
      const std::string stored = query.text(1);
      Json keys = Json::array();
      for (; there && query.integer(0) == set; there = query.step()) {
        const bool in_order = query.integer(2) == static_cast<std::int64_t>(keys.size());
        keys.push_back(in_order ? Json(query.text(3)) : Json());
      }
      const std::string digest =
          sha256_hex(keys.dump(-1, ' ', false, Json::error_handler_t::replace));
      if (digest != stored) changed_({"option_set", std::to_string(set), stored, digest});
    }
  }

  void read(const EvidenceQuery& evidence, Labels* labels) {
    Stmt query(db_, evidence.sql());
    while (query.step()) {
      const std::string digest = digest_of(query, labels);
      const std::string stored =
          query.is_null(stored_digest) ? std::string() : query.blob(stored_digest);
      if (changed_ && stored != digest) {
        changed_(
            {evidence.table, query.text(row_name), hex_of_bytes(stored), hex_of_bytes(digest)});
      }
      TypedRow leaf;
      leaf.blob(digest).integer(query.integer(counts));
      Bytes32 bytes{};
      const std::string leaf_digest = leaf.sha256();
      std::copy(leaf_digest.begin(), leaf_digest.end(), bytes.begin());
      groups_[{query.text(table), query.text(arm), query.text(dataset), query.text(subset)}]
          .push_back(bytes);
    }
  }

  Db& db_;
  const std::function<void(const ChangedRow&)>& changed_;
  std::map<GroupKey, std::vector<Bytes32>> groups_;
};

}  // namespace

std::string EvidenceGroup::name() const {
  return fmt::format("{}{}, {}/{}", table, arm.empty() ? "" : ", arm " + arm, dataset, subset);
}

std::vector<GroupDifference> group_differences(const std::vector<EvidenceGroup>& before,
                                               const std::vector<EvidenceGroup>& now) {
  const auto in = [](const std::vector<EvidenceGroup>& groups, const std::string& name) {
    return std::find_if(groups.begin(), groups.end(),
                        [&](const EvidenceGroup& each) { return each.name() == name; });
  };
  const auto rows = [](const EvidenceGroup& group) { return fmt::format("{} rows", group.rows); };
  const auto content = [&](const EvidenceGroup& group) {
    return rows(group) + ", " + group.digest;
  };
  std::vector<GroupDifference> different;
  for (const EvidenceGroup& group : before) {
    const auto found = in(now, group.name());
    if (found == now.end()) {
      different.push_back({group.name(), rows(group), "none"});
    } else if (!(*found == group)) {
      different.push_back({group.name(), content(group), content(*found)});
    }
  }
  for (const EvidenceGroup& group : now) {
    if (in(before, group.name()) == before.end()) {
      different.push_back({group.name(), "none", rows(group)});
    }
  }
  return different;
}

void renew_row_digests(Db& db, std::int64_t configuration) {
  Labels labels(db);
  Stmt query(db, kPredictionEvidence.sql(fmt::format("c.id = {}", configuration)));
  Stmt put(db, "UPDATE prediction SET row_sha256 = ? WHERE id = ?");
  while (query.step()) {
    put.bind_blob(1, digest_of(query, &labels)).bind(2, query.integer(row_id)).run();
  }
}

LogicalDigest logical_digest(Db& db, const std::function<void(const ChangedRow&)>& changed) {
  return Digester(db, changed).compute();
}

}  // namespace preval
