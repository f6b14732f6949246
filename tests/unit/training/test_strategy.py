import pytest
import tensorflow as tf

from official_transformer.errors import InputError
from official_transformer.training import strategy as lib


@pytest.mark.parametrize(
  ("arguments", "complaint"),
  [
    (("parameter_server", ["CPU:0"]), "Use mirrored"),
    (("multi_worker_mirrored", ["CPU:0"]), "TF_CONFIG is not set"),
    (
      ("multi_worker_mirrored", ["CPU:0"], "hierarchical_copy"),
      "over several there are: nccl, ring",
    ),
    (("off", ["GPU:0", "GPU:1"]), "asks for 2; use mirrored"),
    (("one_device", ["GPU:0", "GPU:1"]), "asks for 2; use mirrored"),
    (("mirrored", ["GPU:0", "GPU:1"], "ring"), "nccl, hierarchical_copy"),
  ],
)
def test_what_cannot_run_is_refused(arguments, complaint):
  with pytest.raises(InputError, match=complaint):
    lib.create_distribution(*arguments)


@pytest.mark.parametrize("address", ["nowhere", "grpc://127.0.0.1:1"])
def test_a_tpu_that_does_not_answer_is_one_clear_error(address):
  with pytest.raises(InputError, match=f"no TPU answers at --tpu={address}"):
    lib.create_distribution("tpu", ["CPU:0"], tpu=address)


@pytest.mark.parametrize(
  ("name", "kind"),
  [
    ("off", tf.distribute.get_strategy().__class__),
    ("one_device", tf.distribute.OneDeviceStrategy),
    ("mirrored", tf.distribute.get_strategy().__class__),
  ],
)
def test_one_device(name, kind):
  distribution = lib.create_distribution(name, ["CPU:0"])
  assert type(distribution.strategy) is kind
  assert distribution.replicas == 1
  assert distribution.is_chief
  assert not distribution.needs_loop
  assert distribution.on_cpu
  assert distribution.broadcast(7) == 7
