#!/usr/bin/env bash
# Checks what a contributor can get wrong: format, lint, types, tests.
# Installs what it needs into .venv, once.
#
#   bash run_tests.sh              the quick tests, in minutes
#   bash run_tests.sh --all        and faults, several devices and workers,
#                                  recipes, the documents' commands
#   bash run_tests.sh --long       the long forms of some of these alone
#   bash run_tests.sh tests/unit   the checks, and some of the tests
set -euo pipefail
cd "$(dirname "$0")"

source ./setup_environment.sh dev

which=(-m "not slow and not long")
case "${1:-}" in
  --all) which=(-m "not long") && shift ;;
  --long) which=(-m long) && shift ;;
esac

echo "== format"
ruff format --check .
echo "== lint"
ruff check .
echo "== types"
mypy
# A process a processor, but no more than memory has room for.
processes=$(nproc 2> /dev/null || echo 2)
[ "$processes" -le 4 ] || processes=4
# File by file, in the order that tests/durations.py has put them in.
runs=0 empty=0 failed=0
run() {
  echo "== tests${*:+ $*}"
  local code=0
  python -m pytest -n "$processes" --dist loadfile --no-loadscope-reorder \
    --durations=20 "${which[@]}" "$@" || code=$?
  runs=$((runs + 1))
  case $code in
    0) ;;
    2 | 3 | 4) exit $code ;;   # Interrupted, or wrong arguments.
    5) empty=$((empty + 1)) ;; # No test was selected.
    *) failed=$code ;;
  esac
}
if [ "${which[1]}" = "not long" ] && [[ "$*" != *tests* ]]; then
  # In three runs: what a process has traced and compiled stays in its memory.
  run tests/unit/training "$@"
  run tests/unit --ignore=tests/unit/training "$@"
  run --ignore=tests/unit "$@"
else
  run "$@"
fi
[ "$failed" = 0 ] || exit "$failed"
[ "$empty" -lt "$runs" ] || exit 5
