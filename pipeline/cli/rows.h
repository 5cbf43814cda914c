#pragma once
// Rows of a query as text: for people (table, md), for spreadsheets (csv), for programs (json,
// jsonl).
#include <iosfwd>
#include <string_view>

#include "store/db.h"

namespace preval {

/// Steps the statement to its end and prints every row. `format`: table | csv | json | jsonl | md.
/// NULL is NULL in table and md, nothing in csv, null in JSON; blobs are hexadecimal; a column name
/// that comes twice gets a number behind it in JSON.
void print_rows(std::ostream& out, Stmt& statement, std::string_view format);

}  // namespace preval
