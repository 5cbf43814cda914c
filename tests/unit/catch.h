#pragma once
// The one include of Catch2: version 2 (one header) on Debian 12, version 3 on Debian 13.
#if PREVAL_CATCH2_MAJOR == 3
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
