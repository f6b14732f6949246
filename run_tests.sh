#!/usr/bin/env bash
# Checks everything a contributor can get wrong: format, lint, types, tests.
# Installs what it needs into .venv, once.
#
#   bash run_tests.sh              all of it
#   bash run_tests.sh tests/unit   the checks, and some of the tests
set -euo pipefail
cd "$(dirname "$0")"

source ./setup_environment.sh dev

echo "== format"
ruff format --check .
echo "== lint"
ruff check .
echo "== types"
mypy
echo "== tests"
exec python -m pytest "$@"
