"""The base of all layers: its config is made of its constructor's arguments."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, ClassVar

import keras


class ConfiguredLayer(keras.layers.Layer):
  """A Keras layer that keeps each argument in an attribute of the same name.

  Keras can save and load a subclass as it is. Inputs are not cast. A dictionary
  that is passed as `cache` is changed in place, although Keras copies all other
  arguments of a layer's call.
  """

  # Defaults of Keras' own arguments.
  keras_defaults: ClassVar[dict[str, Any]] = {}

  def __init__(self, **kwargs: Any) -> None:
    self._given = dict(kwargs)
    super().__init__(**{"autocast": False, **self.keras_defaults, **kwargs})

  def __init_subclass__(cls, **kwargs: Any) -> None:
    super().__init_subclass__(**kwargs)
    package = cls.__module__.partition(".")[0]
    keras.saving.register_keras_serializable(package)(cls)

  def __call__(
    self,
    *args: Any,
    cache: Any = None,
    decode_loop_step: Any = None,
    **kwargs: Any,
  ) -> Any:
    """Calls the layer; see `call`."""
    if cache is not None:
      kwargs["cache"] = UncopiedCache.of(cache, decode_loop_step)
    return super().__call__(*args, **kwargs)

  def build(self, input_shape: Any = None) -> None:
    """Builds the layers that this one holds, in the order of its attributes."""
    for value in list(vars(self).values()):
      for layer in keras.tree.flatten(value):
        if isinstance(layer, keras.layers.Layer) and not layer.built:
          layer.build(None)

  def get_config(self) -> dict[str, Any]:
    """Returns the constructor's arguments; optional ones if they differ.

    Of Keras' own arguments, `name` is included if it was given.
    """
    usual = self.keras_defaults.get("dtype", "float32")
    config = {
      key: value
      for key, value in super().get_config().items()
      if key in self._given
      or (key == "dtype" and self.dtype_policy.name != usual)
      or (key == "trainable" and not value)
    }
    for name, parameter in _parameters(type(self)).items():
      value = getattr(self, name)
      if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
      elif isinstance(value, keras.layers.Layer):
        value = keras.saving.serialize_keras_object(value)
      if parameter.default is parameter.empty or value != parameter.default:
        config[name] = value
    return config

  @classmethod
  def from_config(cls, config: dict[str, Any]) -> Any:
    """Makes a layer from the result of `get_config`."""
    config = dict(config)
    for name in _parameters(cls).keys() & config.keys():
      value = config[name]
      if isinstance(value, dict) and "class_name" in value:
        config[name] = keras.saving.deserialize_keras_object(value)
    trainable = config.pop("trainable", True)
    layer = super().from_config(config)
    if not trainable:
      # Keras passes only a changed value on to inner layers.
      layer.trainable = False
    return layer


@dataclasses.dataclass(frozen=True)
class UncopiedCache:
  """Passes a dictionary to a layer without a copy.

  Keras passes this object on as it is, because it copies only containers that
  it knows.

  Attributes:
    cache: the caller's dictionary.
    step: int32 [], where it is written to; None appends.
  """

  cache: dict[str, Any]
  step: Any = None

  @classmethod
  def of(cls, cache: Any, step: Any = None) -> UncopiedCache:
    """Returns a cache as an `UncopiedCache`, which it may be already."""
    return cache if isinstance(cache, cls) else cls(cache, step)


def _parameters(cls: Any) -> dict[str, inspect.Parameter]:
  """Returns the constructor's own parameters, without those of Keras."""
  # The signature of the class may be the one of Keras' `__new__`.
  _, *parameters = inspect.signature(cls.__init__).parameters.values()
  return {p.name: p for p in parameters if p.kind is not p.VAR_KEYWORD}
