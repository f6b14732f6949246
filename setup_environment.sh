# Sourced by quickstart.sh and run_tests.sh: makes .venv and installs the
# project into it with the tested versions, unless that has been done already.
#
#   source ./setup_environment.sh [EXTRA]

extra="${1:-}"
python="${PYTHON:-python3}"
stamp=".venv/installed${extra:+-$extra}"

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3" >&2
  exit 1
fi
if [ ! -e "$stamp" ] || [ setup.py -nt "$stamp" ] ||
  [ constraints.txt -nt "$stamp" ]; then
  echo "Installing into .venv (TensorFlow is large: this takes minutes once)"
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --constraint constraints.txt --editable ".${extra:+[$extra]}"
  touch "$stamp"
fi
export PATH="$PWD/.venv/bin:$PATH"
export PYTHONUTF8=1
