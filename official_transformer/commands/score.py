"""`--mode=score`: log-probabilities of given translations."""

from __future__ import annotations

import dataclasses

from official_transformer.commands.decoding_options import (
  AlphaOptions,
  BatchOptions,
)
from official_transformer.commands.model_options import StoredModelOptions
from official_transformer.commands.shared_options import (
  DtypeOptions,
  GpuOptions,
  ThreadOptions,
)
from official_transformer.commands.text_options import (
  OutputOptions,
  ReferenceOptions,
)
from official_transformer.errors import InputError, RunError


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreOptions(
  ReferenceOptions,
  OutputOptions,
  StoredModelOptions,
  AlphaOptions,
  BatchOptions,
  GpuOptions,
  DtypeOptions,
  ThreadOptions,
):
  """Flags of `--mode=score`."""

  summary = (
    "tell how probable each line of --reference_file is"
    " as the translation of --file"
  )

  def check(self) -> None:
    """Refuses missing files, and a missing model.

    Raises:
      InputError: for the first thing that is wrong.
    """
    if self.file is None or self.reference_file is None:
      raise InputError(
        "--mode=score needs --file, the sources, and --reference_file, the "
        "translations to score"
      )
    self.check_output(self.check_inputs())
    self.check_model()

  def run(self) -> None:
    """Writes a line for each pair of a source and its translation."""
    from official_transformer.decoding.loading import load_model
    from official_transformer.decoding.output import (
      score_json_line,
      score_text_line,
    )
    from official_transformer.decoding.scorer import Scorer
    from official_transformer.hardware.devices import choose_devices

    choose_devices(self.num_gpus)
    model = load_model(*self.model, self.dtype, self.checkpoint)
    scorer = Scorer(model.transformer, model.tokenizers, self.limits)
    is_text = self.output_format == "text"
    as_line = score_text_line if is_text else score_json_line
    pairs = self.lines_beside(str(self.reference_file))
    self.write(as_line(found) for found in scorer.score_stream(pairs))
    problems = []
    if scorer.not_scored:
      problems.append(
        f"{scorer.not_scored} pairs are too long for the memory there is: "
        "their scores are nan. Cut them, or score them on a larger machine"
      )
    if scorer.beyond_positions:
      problems.append(
        f"{scorer.beyond_positions} pairs are longer than the "
        f"{model.transformer.params.max_positions} positions that the model "
        "has learnt: their scores are nan. Cut them: it can read no longer ones"
      )
    if problems:
      raise RunError("; ".join(problems))
