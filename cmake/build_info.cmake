# Writes OUTPUT with the commit the binary is built from, at every build but only when it changed.
# Called with -DSOURCE=… -DOUTPUT=….
find_package(Git QUIET)
set(commit "")
set(dirty false)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    set(dirty true)
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#pragma once
// Generated at build time.
namespace preval::build {
inline constexpr char kCommit[] = "@commit@";
inline constexpr bool kDirty = @dirty@;
}  // namespace preval::build
]])
