"""A replica of the Ray application, by itself: no cluster is started.

`tests/system/test_ray.py` runs the application on two nodes.
"""

import asyncio

import pytest
from serving_fakes import make_translator

from official_transformer.errors import InputError

pytest.importorskip("ray")
# Ray warns of what it will change.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def replica():
  from official_transformer.serving import ray_application

  # Ray's wrapper around it has a destructor that wants a cluster.
  kind, *_ = ray_application.TranslationReplica.func_or_class.__bases__
  made = object.__new__(kind)
  made.translator = make_translator()
  return made


def test_a_batch_of_lines_is_translated_in_order(replica):
  found = replica._translate(["abc", "", "de"])
  assert [translation.text for translation in found] == ["cba", "", "ed"]


def test_a_line_that_cannot_be_translated_fails_alone(replica):
  translate = replica.translator.translate_stream

  def refusing(lines):
    if "bad" in lines:
      raise InputError("bad is too long")
    return translate(lines)

  replica.translator.translate_stream = refusing
  first, error, last = replica._translate(["abc", "bad", "de"])
  assert (first.text, last.text) == ("cba", "ed")
  assert str(error) == "bad is too long"


def test_a_line_by_itself_is_translated_alike(replica):
  replica.translator.translate_line = lambda line, aligned: (line, aligned)
  assert asyncio.run(replica.align_line("abc")) == ("abc", True)


def test_a_batch_counts_as_if_all_its_lines_were_the_longest():
  from official_transformer.serving import ray_application

  count = ray_application._characters
  assert count(["abc", "a", ""]) == 9
  assert count(["", ""]) == 2
  # A longer line is a batch by itself.
  assert count(["a" * 100_000]) == ray_application._BATCH_CHARACTERS


def test_arguments_become_options_of_the_deployment():
  from official_transformer.serving.ray_application import (
    Arguments,
    application,
  )

  arguments = Arguments(
    model_dir="x", min_replicas=2, max_replicas=5, num_cpus=3
  )
  deployment = application(arguments)._bound_deployment
  assert deployment.ray_actor_options["num_cpus"] == 3
  scaling = deployment._deployment_config.autoscaling_config
  assert (scaling.min_replicas, scaling.max_replicas) == (2, 5)
  with pytest.raises(ValueError, match="max_replica"):
    Arguments(model_dir="x", max_replica=2)


def test_replicas_have_the_key_of_who_deploys_them(monkeypatch):
  from official_transformer.serving.ray_application import (
    Arguments,
    application,
  )
  from official_transformer.serving.settings import API_KEY_VARIABLE

  def variables():
    deployment = application(Arguments(model_dir="x"))._bound_deployment
    return deployment.ray_actor_options["runtime_env"]

  monkeypatch.setenv(API_KEY_VARIABLE, "key\n")
  assert variables() == {"env_vars": {API_KEY_VARIABLE: "key"}}
  monkeypatch.delenv(API_KEY_VARIABLE)
  assert variables() == {}
