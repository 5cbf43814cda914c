"""Counts what a Catch2 JUnit report and the SKIPPED lines of its stderr say: `N passed N failed N skipped`.

Prints the failures, and exits with 1 when the report is no whole XML file (the tests crashed)."""
import sys
import xml.etree.ElementTree as ET

report, errors = sys.argv[1], sys.argv[2]
try:
    cases = list(ET.parse(report).getroot().iter("testcase"))
except (ET.ParseError, OSError) as error:
    sys.exit(f"count_tests: {report}: {error}")
failed = 0
for case in cases:
    problems = [*case.iter("failure"), *case.iter("error")]
    if problems:
        failed += 1
        print(f"FAILED {case.get('classname')}: {case.get('name')}", file=sys.stderr)
        for problem in problems:
            print((problem.text or problem.get("message") or "").strip(), file=sys.stderr)
with open(errors, encoding="utf-8", errors="replace") as lines:
    skipped = sum(line.startswith("SKIPPED ") for line in lines)
if not cases:
    sys.exit("count_tests: no test ran")
print(len(cases) - failed - skipped, "passed", failed, "failed", skipped, "skipped")
