r"""Makes training data from your own parallel text.

    prepare_data --train_source=train.en \
      --train_target=train.de --dev_source=dev.en --dev_target=dev.de \
      --data_dir=data

writes a vocabulary, shuffled TFRecord shards and data.json.
"""

from __future__ import annotations

import dataclasses

from data_prep.data_options import (
  AugmentOptions,
  FilterOptions,
  FormOptions,
  TextOptions,
  VocabularyOptions,
  WorkerOptions,
)
from data_prep.encoding.augmentation import Augmentation
from data_prep.encoding.local_engine import make_locally
from data_prep.encoding.making import Engine
from data_prep.encoding.preparation import prepare
from data_prep.reading.corpora import DataSettings, Shares
from official_transformer.commands import beam_pipeline, flags_core
from official_transformer.commands.flag_records import (
  REQUIRED,
  flag,
)
from official_transformer.commands.shared_options import BeamOptions
from official_transformer.errors import InputError, describe_failures


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrepareOptions(
  WorkerOptions,
  BeamOptions,
  TextOptions,
  VocabularyOptions,
  FormOptions,
  FilterOptions,
  AugmentOptions,
):
  """Flags of `prepare_data`."""

  heading = "prepare_data"

  data_dir: str = flag(REQUIRED, "Where to write.", path=True, short_name="dd")
  shards: int = flag(
    8,
    "Files to spread the training data over.",
    lower_bound=1,
    upper_bound=99999,
  )
  seed: int = flag(
    1,
    "Seed of the shuffle, of the sample for the vocabulary, and of --augment.",
    lower_bound=0,
    upper_bound=2**63 - 1,
  )

  split: str | None = flag(
    None,
    "Split the text of --train_source and --train_target, or of "
    "--train_pairs: shares of training, development and test pairs, such as "
    ".7,.15,.15. --data_dir gets a folder split with dev.source, dev.target, "
    "test.source and test.target. No sentence of theirs is trained on.",
  )

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.shares and (self.dev_source or self.dev_target or self.dev_pairs):
      raise InputError(
        "--split makes development text, and --dev_source, --dev_target and "
        "--dev_pairs name it: leave out the one or the other"
      )
    augmentation = self.augmentation
    if self.lowercase and (augmentation.upper or augmentation.title):
      raise InputError(
        "--lowercase leaves no capitals, also where text is translated: leave "
        "upper and title out of --augment"
      )
    if self.workers and self.runner:
      raise InputError(
        "--workers is for this machine; --beam_options sets the number of "
        "workers of a pipeline"
      )

  @property
  def augmentation(self) -> Augmentation:
    """Settings of the augmentation of training pairs."""
    passes = self.augment_passes if self.augment else 1
    return Augmentation.parse(self.augment, passes, self.seed)

  @property
  def shares(self) -> Shares | None:
    """The shares of a split; None if the text is not split."""
    return None if self.split is None else Shares.parse(self.split)

  @property
  def settings(self) -> DataSettings:
    """Settings of the preparation."""
    return DataSettings(
      data_dir=self.data_dir,
      vocab_type=self.vocab_type,
      sentencepiece_model_type=self.sentencepiece_model_type,
      vocab_size=self.vocab_size,
      vocab_file=self.vocab_file,
      separate=self.separate,
      vocab_sample=self.vocab_sample,
      shards=self.shards,
      seed=self.seed,
      form=self.form,
      filters=self.filters,
      workers=self.workers,
      augmentation=self.augmentation,
      min_frequency=self.min_frequency,
      split=self.shares,
    )


OPTIONS = PrepareOptions


def main(_: list[str]) -> None:
  """Runs the command."""
  options: PrepareOptions = flags_core.begin(OPTIONS)
  prepare(options.corpora, options.settings, _engine(options))


def _engine(options: PrepareOptions) -> Engine:
  """Returns the engine that writes the records."""
  if not options.runner:
    return make_locally
  beam_pipeline.check(options.runner, options.beam_options)
  # Beam need not be installed.
  from data_prep.encoding import beam_preparation

  return beam_preparation.engine(options.runner, options.beam_options)


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(OPTIONS, describe_failures(main))


if __name__ == "__main__":
  run()
