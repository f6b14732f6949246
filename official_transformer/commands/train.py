"""`--mode=train`: a new model, or more of the one that there is."""

from __future__ import annotations

import dataclasses

from official_transformer.commands.flag_records import flag
from official_transformer.commands.shared_options import (
  WORKERS,
  BenchmarkOptions,
  DeviceOptions,
)
from official_transformer.commands.train_options import TrainOptions
from official_transformer.data.data_directory import (
  DEV_TAG,
  TRAIN_TAG,
  has_shards,
  shard_paths,
)
from official_transformer.errors import InputError
from official_transformer.exporting.formats import (
  SAVED_MODEL,
  check_extras,
  check_text_in_graph,
)
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.text import text_files
from official_transformer.text.vocabulary_files import VocabFiles
from official_transformer.training.cluster import Cluster


@dataclasses.dataclass(frozen=True, kw_only=True)
class AcceptedOptions(DeviceOptions, BenchmarkOptions):
  """Flags of the official model that nothing reads any more."""

  heading = "Training: how a run goes"

  enable_mlir_bridge: bool = flag(
    False, "Accepted.", never="TensorFlow always compiles through it"
  )
  hooks: tuple[str, ...] | None = flag(
    None,
    "Accepted.",
    never="they belong to TensorFlow 1; see --log_steps and "
    "--enable_tensorboard",
    short_name="hk",
  )
  save_weights_only: bool = flag(
    True,
    "Accepted; a checkpoint always holds the optimizer's state too.",
    never="every checkpoint holds the optimizer's state too, so that a run can "
    "always be resumed",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Train(TrainOptions):
  """A training run, and the export at its end."""

  def check(self) -> None:
    """Refuses files that are not there.

    Raises:
      InputError: for the first that is not.
    """
    if self.clean:
      ModelDirectory(self.model_dir).check_removable()
    for path in (self.bleu_source, self.bleu_ref):
      if path:
        text_files.check_input(path)
    if self.bleu_source:
      self.tokenizer()
    self._check_export()
    if self.distribution_strategy == WORKERS:
      Cluster.from_environment()
    # Of a strategy that cannot run there is more to say than of data.
    refused = ("parameter_server", "tpu")
    # With --skip_bad_records, missing shards are reported later, when the data
    # are read.
    needs_data = not (self.use_synthetic_data or self.skip_bad_records)
    if needs_data and self.distribution_strategy not in refused:
      shard_paths(self.data_dir, TRAIN_TAG)

  def _check_export(self) -> None:
    """Refuses an export that would fail at the end of the training."""
    if not self.export_dir:
      return
    check_extras(SAVED_MODEL, self.exports_text)
    if not self.enable_checkpointing or self.use_synthetic_data:
      raise InputError("--export_dir exports a checkpoint: this run saves none")
    if not has_shards(self.data_dir, DEV_TAG):
      raise InputError(
        f"--export_dir needs development data in --data_dir={self.data_dir}, "
        "to verify the export with"
      )
    data = self.data.description
    if data and self.exports_text:
      check_text_in_graph(
        data.form,
        VocabFiles.joint(self.vocab_file)
        if self.vocab_file
        else self.data.vocab_files(),
      )

  def run(self) -> None:
    """Trains; then exports, if that is asked for."""
    from official_transformer.commands.training_run import train

    is_chief = train(self)
    if self.export_dir and is_chief:
      self.export_newest(self.model_dir, self.data_dir)
