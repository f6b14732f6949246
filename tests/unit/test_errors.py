import pytest

from official_transformer.errors import (
  InputError,
  Interrupted,
  RunError,
  describe_failures,
)


def status(function):
  with pytest.raises(SystemExit) as caught:
    describe_failures(function)([])
  return caught.value.code


def test_a_users_mistake_costs_one_message(capsys):
  def main(argv):
    raise InputError("no such thing")

  assert status(main) == 2
  assert capsys.readouterr().err.endswith("error: no such thing\n")


def test_the_systems_refusal_and_an_interrupt(capsys):
  def full(argv):
    raise OSError(28, "No space left on device", "out")

  def stopped(argv):
    raise KeyboardInterrupt

  assert status(full) == 1
  assert "No space left on device: 'out'" in capsys.readouterr().err
  assert status(stopped) == 130


def test_a_run_that_cannot_go_on_and_one_that_a_signal_ended(capsys):
  def failing(argv):
    raise RunError("not finite")

  def stopped(argv):
    raise Interrupted(15, "step 3 was the last")

  assert status(failing) == 1
  assert capsys.readouterr().err.endswith("error: not finite\n")
  assert status(stopped) == 143
  expected = "stopped by SIGTERM: step 3 was the last\n"
  assert capsys.readouterr().err.endswith(expected)


def test_success_is_zero_and_a_defect_keeps_its_traceback():
  assert status(lambda argv: None) == 0
  with pytest.raises(ZeroDivisionError):
    describe_failures(lambda argv: 1 / 0)([])
