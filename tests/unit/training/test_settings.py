import dataclasses

from runs import SETTINGS

from official_transformer.training.settings import Execution


def evaluated(settings):
  return [step for step in range(1, 11) if settings.is_evaluated(step)]


def test_evaluations_come_at_multiples_and_the_end():
  assert evaluated(SETTINGS) == [4, 8, 10]


def test_or_those_that_are_named_and_the_end():
  named = dataclasses.replace(SETTINGS, evaluated_steps=(3, 7))
  assert evaluated(named) == [3, 7, 10]


def test_a_call_makes_several_updates_but_never_past_what_comes_between():
  several = dataclasses.replace(
    SETTINGS,
    train_steps=40,
    steps_between_evals=15,
    log_steps=10,
    profile_steps=(24, 26),
    execution=Execution(steps_per_loop=8),
  )
  pauses = [0]
  while pauses[-1] < 40:
    pauses.append(several.next_pause(pauses[-1]))
  # Reports at 10, 20, 30; evaluations at 15, 30; a profile from 24 to 26.
  assert pauses == [0, 8, 10, 15, 20, 23, 26, 30, 38, 40]
