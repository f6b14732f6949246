"""Flags that every command which reads data or writes a model has."""

from absl import flags

from official_transformer.flag_groups._conventions import define, read_by


def define_base(
  data_dir: str = "/tmp", model_dir: str = "/tmp", batch_size: int | None = 32
) -> None:
  """Defines `--data_dir`, `--model_dir` and `--batch_size`.

  Args:
    data_dir: default of `--data_dir`.
    model_dir: default of `--model_dir`.
    batch_size: default of `--batch_size`.
  """
  define(
    flags.DEFINE_string,
    "data_dir",
    data_dir,
    "The prepared data: TFRecord files and data.json.",
    read_by("train", "export"),
    short_name="dd",
    path=True,
  )
  define(
    flags.DEFINE_string,
    "model_dir",
    model_dir,
    "The model: its description, vocabulary and checkpoints.",
    short_name="md",
    path=True,
  )
  define(
    flags.DEFINE_integer,
    "batch_size",
    batch_size,
    "Tokens in a global batch, on the longer of the two sides. Unset: what "
    "the parameter set says.",
    read_by("train"),
    lower_bound=1,
    short_name="bs",
  )
