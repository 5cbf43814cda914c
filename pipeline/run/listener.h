#pragma once
// Who listens on a port of this machine. A health check that is answered by somebody else's server
// would start a study on the wrong model.

namespace preval {

enum class Listener { of_group, somebody_else, cannot_tell };

/// Whether a process of this process group listens on the TCP port. From /proc; cannot_tell where
/// that names no listener at all.
Listener who_listens(int port, int group);

}  // namespace preval
