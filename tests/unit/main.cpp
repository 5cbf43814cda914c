// Catch2 2 wants its main compiled once; Catch2 3 brings one in a library.
#if PREVAL_CATCH2_MAJOR == 2
#define CATCH_CONFIG_MAIN
#endif
#include "catch.h"
