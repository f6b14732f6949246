"""Merges hyper-parameters of a user with those of an existing model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from official_transformer.errors import InputError
from official_transformer.model_directory.description import DESCRIPTION_FILE
from official_transformer.model_params import (
  DECODING_FIELDS,
  MULTI_GPU_PARAM_SETS,
  PARAM_SETS,
  TRAINING_FIELDS,
  VOCABULARY_FIELDS,
  TransformerParams,
  get_params,
)

# Fields that a parameter set does not decide: they depend on the vocabulary, or
# on the implementation that trained the model.
FIELDS_OUTSIDE_PARAM_SETS = (
  *VOCABULARY_FIELDS,
  "start_symbol",
  "target_space_embedding",
)


@dataclasses.dataclass(frozen=True)
class RequestedParams:
  """The hyper-parameters that a user chose, and no others.

  Attributes:
    param_set: the set's name, or None if none was given.
    overrides: values by field.
  """

  param_set: str | None
  overrides: dict[str, Any]

  def for_new_model(
    self, default_set: str, num_gpus: int = 1
  ) -> TransformerParams:
    """Returns the chosen set, or the default one, with the overrides.

    Args:
      default_set: the set's name if the user chose none.
      num_gpus: above 1, the sets tuned for several.
    """
    params = get_params(self.param_set or default_set, num_gpus)
    return dataclasses.replace(params, **self.overrides)

  def for_existing_model(
    self,
    stored: TransformerParams,
    where: str,
    free_fields: Sequence[str] = DECODING_FIELDS,
  ) -> TransformerParams:
    """Returns a model's own parameters, decoded as the user chose.

    Args:
      stored: parameters of the existing model.
      where: the model directory, for the message.
      free_fields: fields that the user may change.

    Raises:
      InputError: if the user chose something else than the model has;
        every such field is named with both values.
    """
    # A set has a form for one GPU and one for several: either may be meant.
    starts = (
      [
        sets[self.param_set]
        for sets in (PARAM_SETS, MULTI_GPU_PARAM_SETS)
        if self.param_set in sets
      ]
      if self.param_set
      else [stored]
    )
    unsaid = {name: getattr(stored, name) for name in FIELDS_OUTSIDE_PARAM_SETS}
    differences = min(
      (
        _differences(
          dataclasses.replace(start, **{**unsaid, **self.overrides}),
          stored,
          free_fields,
        )
        for start in starts
      ),
      key=len,
    )
    if differences:
      raise InputError(
        f"--param_set or --params_override contradicts {where}/"
        f"{DESCRIPTION_FILE}: {'; '.join(differences)}. Leave the flags out "
        "to go on with this model, or name another --model_dir to train a "
        "new one"
      )
    chosen = {k: v for k, v in self.overrides.items() if k in free_fields}
    return dataclasses.replace(stored, **chosen)

  def for_decoding(
    self, stored: TransformerParams, where: str
  ) -> TransformerParams:
    """Returns a model's own parameters, decoded as the user chose.

    Fields that decoding does not read, such as the learning rate, may differ:
    users often repeat a training command with another mode.

    Args:
      stored: parameters of the existing model.
      where: the model directory, for the message.

    Raises:
      InputError: if the user chose another model.
    """
    chosen = self.for_existing_model(
      stored, where, (*DECODING_FIELDS, *TRAINING_FIELDS)
    )
    return dataclasses.replace(
      stored, **{name: getattr(chosen, name) for name in DECODING_FIELDS}
    )

  def for_weights_of(
    self, stored: TransformerParams, where: str, num_gpus: int = 1
  ) -> TransformerParams:
    """Returns the parameters of a new model with another's weights.

    Training fields come from the parameter set, if one was chosen, and
    otherwise from the other model.

    Args:
      stored: parameters of the other model.
      where: directory of the model, for the message.
      num_gpus: as in `for_new_model`.

    Raises:
      InputError: if the user chose another model.
    """
    if self.param_set:
      chosen = get_params(self.param_set, num_gpus)
      values = {name: getattr(chosen, name) for name in TRAINING_FIELDS}
      trained = dataclasses.replace(stored, **values)
    else:
      trained = stored
    return self.for_existing_model(
      trained, where, (*DECODING_FIELDS, *TRAINING_FIELDS)
    )


def _differences(
  given: TransformerParams,
  stored: TransformerParams,
  free_fields: Sequence[str],
) -> list[str]:
  """Describes the fixed fields in which two sets differ, with both values."""
  return [
    f"{field.name}: {getattr(given, field.name)} given, "
    f"{getattr(stored, field.name)} stored"
    for field in dataclasses.fields(given)
    if field.name not in free_fields
    and getattr(given, field.name) != getattr(stored, field.name)
  ]
