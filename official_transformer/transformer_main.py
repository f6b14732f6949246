r"""Trains a Transformer, translates with it, and measures its translations.

    python transformer_main.py --mode=train --data_dir=data --model_dir=model
    python transformer_main.py --mode=predict --model_dir=model --file=in.txt
    python transformer_main.py --mode=eval --model_dir=model \
      --bleu_source=test.en --bleu_ref=test.de
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from absl import flags, logging

from flags import core as flags_core
from official_transformer.errors import InputError, describe_failures
from official_transformer.model_params import DECODING_FIELDS, parse_override
from official_transformer.transformer_flags import (
  INERT_FLAGS,
  define_transformer_flags,
)

# TensorFlow takes seconds to import: what needs it is imported once the flags
# have been parsed, so that --help and a mistyped flag answer at once.
if TYPE_CHECKING:
  from official_transformer.decoding.translator import Translator
  from official_transformer.model.transformer import Transformer
  from official_transformer.model_directory import (
    ModelDirectory,
    RequestedParams,
  )
  from official_transformer.training.trainer import Evaluate

FLAGS = flags.FLAGS


def main(_: list[str]) -> None:
  """Runs the mode that the flags ask for."""
  logging.set_verbosity(logging.INFO)
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  for name, reason in INERT_FLAGS.items():
    if FLAGS[name].present:
      logging.warning("--%s has no effect: %s", name, reason)
  {"train": train, "eval": evaluate, "predict": predict}[FLAGS.mode]()


def train() -> None:
  """Trains a new model, or goes on with the one in the model directory."""
  from official_transformer.model_directory import ModelDirectory
  from official_transformer.training.model_setup import prepare_directory
  from official_transformer.training.trainer import Trainer, TrainingSettings

  directory = ModelDirectory(FLAGS.model_dir)
  evaluate_at_milestones = _evaluation_in_training(directory)
  seed = _choose_seed(directory)
  description = prepare_directory(
    directory,
    _requested_params(),
    batching={
      name: FLAGS[name].value
      for name in ("batch_size", "max_length")
      if FLAGS[name].present
    },
    vocab_file=FLAGS.vocab_file,
    data_dir=FLAGS.data_dir,
  )
  settings = TrainingSettings(
    data_dir=FLAGS.data_dir,
    train_steps=FLAGS.train_steps,
    steps_between_evals=FLAGS.steps_between_evals,
    **description.batching,
    validation_steps=FLAGS.validation_steps,
    seed=seed,
    keep_checkpoint_max=FLAGS.keep_checkpoint_max,
    log_steps=FLAGS.log_steps,
    with_metrics=FLAGS.enable_metrics_in_training,
    with_tensorboard=FLAGS.enable_tensorboard,
    num_parallel_calls=FLAGS.num_parallel_calls,
  )
  trainer = Trainer(
    directory, description.params, settings, evaluate_at_milestones
  )
  trainer.train()


def evaluate() -> None:
  """Translates the test set with the newest checkpoint and prints scores."""
  if not FLAGS.bleu_source:
    raise InputError("--mode=eval needs --bleu_source and --bleu_ref")

  from official_transformer.evaluation.test_set import TestSet
  from official_transformer.model_directory import ModelDirectory

  test_set = TestSet.read(FLAGS.bleu_source, FLAGS.bleu_ref)
  translator = _load_translator()
  directory = ModelDirectory(FLAGS.model_dir)
  step = directory.checkpoint_steps()[-1]
  params = translator.transformer.params
  scores, path = test_set.evaluate(
    translator,
    directory,
    f"{os.path.basename(FLAGS.bleu_source)}-step-{step}-beam-"
    f"{params.beam_size}-alpha-{params.alpha:g}-extra-"
    f"{params.extra_decode_length}",
  )
  print(f"Step {step}, beam {params.beam_size}, alpha {params.alpha:g}")
  print(scores.report())
  print(f"The translation is in {path}")


def predict() -> None:
  """Translates a sentence or a file, one line out for each line in."""
  from official_transformer.data import text_files

  if (FLAGS.text is None) == (FLAGS.file is None):
    raise InputError("--mode=predict needs either --text or --file")
  if FLAGS.text is not None:
    if "\n" in FLAGS.text:
      raise InputError("--text takes one line; put several into a --file")
    try:
      FLAGS.text.encode("utf-8")
    except UnicodeEncodeError:
      raise InputError("--text is not UTF-8; check the terminal") from None
    lines = iter([FLAGS.text])
  else:
    text_files.check_input(FLAGS.file)
    lines = text_files.read_lines(FLAGS.file)
  text_files.check_output(FLAGS.file_out)
  if (
    FLAGS.file
    and os.path.isfile(FLAGS.file)
    and os.path.exists(FLAGS.file_out)
    and os.path.samefile(FLAGS.file, FLAGS.file_out)
  ):
    raise InputError("--file_out is --file: the source would be overwritten")
  translator = _load_translator()
  count = text_files.write_lines(
    FLAGS.file_out, (t.text for t in translator.translate_stream(lines))
  )
  if FLAGS.file_out != text_files.STANDARD_STREAM:
    logging.info("wrote %d lines to %s", count, FLAGS.file_out)


def _requested_params() -> RequestedParams:
  """Returns the hyper-parameters that the flags choose."""
  from official_transformer.model_directory import RequestedParams

  overrides = parse_override(FLAGS.params_override)
  for name in DECODING_FIELDS:
    if FLAGS[name].value is not None:
      overrides[name] = FLAGS[name].value
  param_set = FLAGS.param_set if FLAGS["param_set"].present else None
  return RequestedParams(param_set, overrides)


def _load_translator() -> Translator:
  """Loads the model directory; refuses flags that contradict it."""
  from official_transformer.data.tokenizer import load_tokenizer
  from official_transformer.decoding.translator import Translator
  from official_transformer.model_directory import (
    ModelDirectory,
    check_vocabulary,
  )

  stored = ModelDirectory(FLAGS.model_dir).read()
  params = _requested_params().for_existing_model(
    stored.params, FLAGS.model_dir
  )
  if FLAGS.vocab_file:
    size = load_tokenizer(FLAGS.vocab_file).vocab_size
    check_vocabulary(FLAGS.vocab_file, size, stored, FLAGS.model_dir)
  return Translator.load(
    FLAGS.model_dir,
    decode_batch_size=FLAGS.decode_batch_size,
    **{name: getattr(params, name) for name in DECODING_FIELDS},
  )


def _choose_seed(directory: ModelDirectory) -> int:
  """Returns the seed of the run: a resumed run keeps its own."""
  from official_transformer.training.checkpoints import read_progress

  if not directory.checkpoint_steps():
    return random.randrange(2**31) if FLAGS.seed is None else FLAGS.seed
  step, seed = read_progress(directory.latest_checkpoint())
  if FLAGS.seed not in (None, seed):
    raise InputError(
      f"--seed={FLAGS.seed} contradicts the checkpoint of step {step} in "
      f"{directory.path}, whose run has seed {seed}; leave the flag out"
    )
  return seed


def _evaluation_in_training(directory: ModelDirectory) -> Evaluate | None:
  """Returns what scores the model at milestones, where a test set is given.

  The test set is read now: a missing file stops the run before it starts.
  """
  if not FLAGS.bleu_source:
    return None
  from official_transformer.data.tokenizer import load_tokenizer
  from official_transformer.decoding.translator import Translator
  from official_transformer.evaluation.test_set import TestSet

  test_set = TestSet.read(FLAGS.bleu_source, FLAGS.bleu_ref)
  translators: list[Translator] = []  # Made, and traced, once.

  def evaluate_model(transformer: Transformer, step: int) -> dict[str, float]:
    if not translators:
      tokenizer = load_tokenizer(directory.vocab_file())
      translators.append(
        Translator(transformer, tokenizer, FLAGS.decode_batch_size)
      )
    scores, _ = test_set.evaluate(translators[0], directory, f"step-{step}")
    return scores.scalars()

  return evaluate_model


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_transformer_flags, describe_failures(main))


if __name__ == "__main__":
  run()
