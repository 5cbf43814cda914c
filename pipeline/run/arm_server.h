#pragma once
// The server of one arm, whichever way the plan has it: started and watched by preval, reached at
// an address, replayed from a transcript, or none at all (simulated).
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "run/pipeline.h"
#include "run/server.h"

namespace preval {

/// What every step of an arm needs.
struct ArmContext {
  const RunSeams& seams;
  Store& store;
  const OpenPlan& plan;
  const RunOptions& options;
  const Arm& arm;
  const BackendSpec& spec;
  const Checkpoint& checkpoint;

  bool stopped() const { return seams.interrupt.level() > 0; }
  /// A warning that is worth keeping, in the store and for whoever listens; nothing when empty.
  void tell(const std::string& warning) const;
};

class ArmServer {
 public:
  explicit ArmServer(const ArmContext& context) : context_(context) {}

  /// The engine's own word on its version, from a command, so that no boot is needed to know it.
  /// Empty when the plan has no such command.
  const std::string& engine_version();

  /// Compares the checkpoint's files with the plan, for servers that preval starts: somebody else's
  /// server says itself what it serves. Throws backend (no such file) or drift (other bytes).
  void check_checkpoint();

  /// Starts or reaches the server and waits until it serves. Throws backend when it does not within
  /// the plan's limit, drift for a transcript with other bytes, usage for a key that cannot be
  /// used.
  void boot(const Backend& backend);
  bool booted() const { return booted_; }
  /// From here on writes down every exchange, so that how often a booting server was asked whether
  /// it is ready stays out. `fresh` is a backend that has learned nothing yet, `facts` who answers
  /// now: throws usage when the transcript that is there was recorded from another server.
  void record(const Backend& fresh, const Json& facts);

  Transport& transport() { return *transport_; }
  /// One per server: replicas follow the first one.
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  /// For everything but the reads, which have a schedule of their own. Failures that are not the
  /// last word become rows of this stage.
  Ask patient(const std::string& stage, std::size_t replica = 0);

  /// How a server that preval started has ended, with its last words; nothing while it runs.
  std::optional<std::string> ended();
  /// Where its log is; empty for a server that preval did not start.
  std::string log_hint() const;
  void stop();

 private:
  std::filesystem::path checkpoint_path() const;
  std::map<std::string, std::string> placeholders(int port) const;
  std::filesystem::path fresh_log() const;
  void start(const Backend& backend);
  void launch(std::size_t replica);
  double await(std::size_t replica, const Backend& backend);
  void reach(const Backend& backend);
  std::unique_ptr<Transport> replayed() const;

  const ArmContext& context_;
  std::vector<std::unique_ptr<Server>> servers_;  // those that preval started
  std::unique_ptr<Transport> transport_;
  std::vector<Endpoint> endpoints_;
  std::string engine_version_;
  bool booted_ = false;
};

}  // namespace preval
