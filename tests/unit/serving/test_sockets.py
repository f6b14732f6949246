import pytest

from official_transformer.errors import InputError
from official_transformer.serving import sockets as lib


@pytest.mark.parametrize("value", ["abc", "-1", "9" * 30, "1e3"])
def test_a_variable_that_names_no_socket_is_one_clear_error(monkeypatch, value):
  monkeypatch.setenv(lib.SOCKET_VARIABLE, value)
  with pytest.raises(InputError, match="no open socket"):
    lib.inherited_socket()


def test_without_the_variable_there_is_none(monkeypatch):
  monkeypatch.delenv(lib.SOCKET_VARIABLE, raising=False)
  assert lib.inherited_socket() is None
