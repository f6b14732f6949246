"""Settings of a short training run, to be replaced field by field."""

from official_transformer.data.buckets import Batching
from official_transformer.training.settings import TrainingSettings

SETTINGS = TrainingSettings(
  data_dir="data",
  train_steps=10,
  steps_between_evals=4,
  batching=Batching(64, 16),
  validation_steps=1,
  seed=1,
  keep_checkpoint_max=1,
  log_steps=1,
  num_parallel_calls=1,
)
