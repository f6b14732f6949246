# Makes .venv and installs the project into it with the tested versions, unless
# that has been done already; puts its commands on the PATH, and has Python read
# and write UTF-8. To be sourced, by a shell in the project's directory or by
# quickstart.sh and run_tests.sh.
#
#   source ./setup_environment.sh       the project alone
#   source ./setup_environment.sh dev   with an extra of pyproject.toml

set_up_environment() {
  local extra="$1" python="${PYTHON:-python3}"
  local stamp=".venv/installed${extra:+-$extra}"
  if [ ! -e setup.py ] || [ ! -e constraints.txt ]; then
    echo "$PWD is not the project's directory; cd there first" >&2
    return 1
  fi
  if [ ! -e "$stamp" ] || [ pyproject.toml -nt "$stamp" ] ||
    [ constraints.txt -nt "$stamp" ]; then
    if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'
    then
      echo "$python is not Python 3.11, 3.12 or 3.13, which TensorFlow needs;" \
        "set PYTHON=/path/to/python3.12, say" >&2
      return 1
    fi
    echo "Installing into .venv (TensorFlow is large: this takes minutes once)"
    # An environment may be half made, or another tool's, without pip.
    .venv/bin/python -m pip --version > /dev/null 2>&1 ||
      .venv/bin/python -m ensurepip > /dev/null 2>&1 ||
      "$python" -m venv --clear .venv || return 1
    .venv/bin/python -m pip install --quiet --disable-pip-version-check \
      --constraint constraints.txt --editable ".${extra:+[$extra]}" || return 1
    touch "$stamp"
  fi
}

# Where there is nothing to return from, this is run and not sourced.
set_up_environment "${1:-}" || return 1 2> /dev/null || exit 1
case ":$PATH:" in
  *":$PWD/.venv/bin:"*) ;;
  *) export PATH="$PWD/.venv/bin:$PATH" ;;
esac
export PYTHONUTF8=1
