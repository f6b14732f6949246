# Sourced by quickstart.sh and run_tests.sh: makes .venv and installs the
# project into it with the tested versions, unless that has been done already.
#
#   source ./setup_environment.sh [EXTRA]

extra="${1:-}"
python="${PYTHON:-python3}"
stamp=".venv/installed${extra:+-$extra}"

if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'
then
  echo "$python is not Python 3.11, 3.12 or 3.13, which TensorFlow needs;" \
    "set PYTHON=/path/to/python3.12, say" >&2
  exit 1
fi
if [ ! -e "$stamp" ] || [ setup.py -nt "$stamp" ] ||
  [ constraints.txt -nt "$stamp" ]; then
  echo "Installing into .venv (TensorFlow is large: this takes minutes once)"
  # A half-made environment, without pip, is made anew.
  .venv/bin/python -m pip --version > /dev/null 2>&1 ||
    "$python" -m venv --clear .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --constraint constraints.txt --editable ".${extra:+[$extra]}"
  touch "$stamp"
fi
export PATH="$PWD/.venv/bin:$PATH"
export PYTHONUTF8=1
