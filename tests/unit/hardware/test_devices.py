import pytest
import tensorflow as tf

from official_transformer.errors import InputError
from official_transformer.hardware import devices as lib


@pytest.fixture
def gpus(monkeypatch):
  """Pretends that there are some GPUs; records which stay visible."""
  visible = []

  def pretend(number):
    names = [f"gpu {n}" for n in range(number)]
    monkeypatch.setattr(
      tf.config, "list_physical_devices", lambda kind=None: names
    )
    monkeypatch.setattr(
      tf.config,
      "set_visible_devices",
      lambda devices, kind: visible.append(devices),
    )
    return visible

  return pretend


@pytest.mark.parametrize(
  ("there", "asked", "devices"),
  [
    (0, None, ["CPU:0"]),
    (0, 0, ["CPU:0"]),
    (0, 1, ["CPU:0"]),
    (0, -1, ["CPU:0"]),
    (2, None, ["GPU:0"]),
    (2, 0, ["CPU:0"]),
    (2, 2, ["GPU:0", "GPU:1"]),
    (3, -1, ["GPU:0", "GPU:1", "GPU:2"]),
  ],
)
def test_devices(gpus, there, asked, devices):
  visible = gpus(there)
  assert lib.choose_devices(asked) == devices
  assert len(visible[0]) == sum(d.startswith("GPU") for d in devices)


@pytest.mark.parametrize(("there", "asked"), [(0, 2), (1, 2)])
def test_more_gpus_than_there_are_is_refused(
  gpus, there, asked, monkeypatch, capsys
):
  gpus(there)
  monkeypatch.setattr(lib, "said_at_start", lambda: "no driver here\n")
  with pytest.raises(InputError, match=f"sees {there}"):
    lib.choose_devices(asked)
  # What TensorFlow said when it looked for them may tell why.
  assert capsys.readouterr().err == "no driver here\n"


@pytest.mark.parametrize(
  ("seen", "there", "devices"),
  [(0, 1, ["CPU:0"]), (1, 1, ["GPU:0"]), (1, 0, ["CPU:0"])],
)
def test_ctranslate2_asks_tensorflow_for_the_gpus_it_sees(
  gpus, seen, there, devices, monkeypatch
):
  """TensorFlow lists a GPU if the libraries of CUDA can be loaded."""
  ctranslate2 = pytest.importorskip("ctranslate2")
  monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: seen)
  visible = gpus(there)
  assert lib.choose_devices(None, for_tensorflow=False) == devices
  assert visible == [[]]
  if not seen:
    with pytest.raises(InputError, match="CTranslate2 sees 0"):
      lib.choose_devices(2, for_tensorflow=False)
