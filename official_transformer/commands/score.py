"""What `--mode=score` does: tells how probable given translations are."""

from __future__ import annotations

from absl import flags

from official_transformer.commands.flag_readers import read_model
from official_transformer.commands.loading import batch_limits, dtype
from official_transformer.commands.output import parallel_lines, write
from official_transformer.decoding.loading import load_model
from official_transformer.decoding.output import (
  score_json_line,
  score_text_line,
)
from official_transformer.decoding.scorer import Scorer
from official_transformer.errors import RunError
from official_transformer.hardware.devices import choose_devices

FLAGS = flags.FLAGS


def score() -> None:
  """Writes a line for each pair of `--file` and `--reference_file`."""
  directory, description = read_model()
  choose_devices(FLAGS.num_gpus)
  model = load_model(directory, description, dtype(), FLAGS.checkpoint)
  scorer = Scorer(model.transformer, model.tokenizers, batch_limits())
  as_line = (
    score_text_line if FLAGS.output_format == "text" else score_json_line
  )
  pairs = parallel_lines(FLAGS.file, FLAGS.reference_file)
  write(as_line(found) for found in scorer.score_stream(pairs))
  if scorer.not_scored:
    raise RunError(
      f"{scorer.not_scored} pairs are too long for the memory there is: their "
      "scores are nan. Cut them, or score them on a larger machine"
    )
