#pragma once
// The process's standard streams, which may be closed, full, or gone half-way.

namespace preval {

/// Whoever starts a program without its standard streams (`preval run >&-`) would have the next
/// files that are opened take their numbers, and what is printed end up in a store. After this,
/// reading from a closed one gives nothing, and writing to it is an error like any other.
void keep_standard_streams();

/// Flushes standard output. The exit code: `code`, unless what was printed did not all arrive,
/// which is said on standard error. A reader that went away is no error.
int written(int code);

}  // namespace preval
