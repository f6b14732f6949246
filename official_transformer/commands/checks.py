"""What can be said against a command line before TensorFlow is imported."""

from __future__ import annotations

from absl import flags

from official_transformer.commands.flag_readers import (
  answers_lines,
  model_directories,
  read_averaged_steps,
  read_early_stopping,
  read_model,
  read_other_models,
  read_profile_steps,
  read_requested_params,
)
from official_transformer.commands.picture_flags import PLOTS
from official_transformer.commands.scoring import (
  MetricsOptions,
  check_tokenizer,
  contest_settings,
)
from official_transformer.commands.search_flag_readers import (
  check_line_counts,
  check_search_flags,
)
from official_transformer.data import text_files
from official_transformer.data.data_directory import (
  DEV_TAG,
  TRAIN_TAG,
  has_shards,
  read_description,
  shard_paths,
)
from official_transformer.data.text_form import TextForm
from official_transformer.data.vocabulary_files import VocabFiles, describe
from official_transformer.decoding.batching import check_n_best
from official_transformer.decoding.engines import TENSORFLOW, check_installed
from official_transformer.distribution import beam_pipeline
from official_transformer.distribution.cluster import Cluster
from official_transformer.errors import InputError
from official_transformer.exporting.formats import (
  CTRANSLATE2,
  SAVED_MODEL,
  TEXT_MODULE,
  check_extras,
  is_installed,
)
from official_transformer.flag_groups.records import parsed
from official_transformer.model_directory.description import ModelDescription
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_directory.measurements import VALIDATION_LOSS
from official_transformer.plotting import figures
from official_transformer.storage import file_system

FLAGS = flags.FLAGS

LOSS_NEEDED = (
  "--early_stopping_patience looks at the validation loss, or at BLEU if "
  "--bleu_source and --bleu_ref are given"
)


def check_train() -> None:
  """Refuses what contradicts itself, and files that are not there.

  Raises:
    InputError: for the first thing that is wrong, like all functions here.
  """
  if FLAGS.train_epochs is not None and FLAGS["train_steps"].present:
    raise InputError("pass --train_steps or --train_epochs, not both")
  if FLAGS.train_epochs is not None and FLAGS.use_synthetic_data:
    raise InputError("synthetic data have no epochs; pass --train_steps")
  if FLAGS.stop_threshold is not None and not FLAGS.bleu_source:
    raise InputError(
      "--stop_threshold is a BLEU: it needs --bleu_source and --bleu_ref"
    )
  rule = read_early_stopping()
  if rule and rule.measure == VALIDATION_LOSS:
    if FLAGS.use_synthetic_data or not FLAGS.validation_steps:
      raise InputError(f"no validation in this run: {LOSS_NEEDED}")
  elif rule and not FLAGS.bleu_source:
    raise InputError(
      "--early_stopping_measure=bleu needs --bleu_source and --bleu_ref"
    )
  if FLAGS["accumulate_steps"].present and FLAGS.target_batch_tokens:
    raise InputError("pass --accumulate_steps or --target_batch_tokens")
  read_profile_steps()
  read_requested_params()
  if FLAGS.clean:
    ModelDirectory(FLAGS.model_dir).check_removable()
  _check_evaluation_set()
  _check_export_of_training()
  if FLAGS.distribution_strategy == "multi_worker_mirrored":
    Cluster.from_environment()
  # Of a strategy that cannot run there is more to say than of data.
  refused = ("parameter_server", "tpu")
  # With --skip_bad_records, what lacks is reported where the data are read.
  needs_data = not (FLAGS.use_synthetic_data or FLAGS.skip_bad_records)
  if needs_data and FLAGS.distribution_strategy not in refused:
    shard_paths(FLAGS.data_dir, TRAIN_TAG)


def check_average() -> None:
  """Refuses checkpoints that are not there."""
  read_averaged_steps()


def check_eval() -> None:
  """Refuses a missing evaluation set or model."""
  if not FLAGS.bleu_source:
    raise InputError("--mode=eval needs --bleu_source and --bleu_ref")
  sources, references = (
    text_files.listed_files(text)
    for text in (FLAGS.bleu_source, FLAGS.bleu_ref)
  )
  if len(sources) != len(references):
    raise InputError(
      f"--bleu_source names {len(sources)} files and --bleu_ref "
      f"{len(references)}: give a reference for each"
    )
  for path in (*sources, *references):
    text_files.check_input(path)
  contest_settings(
    parsed(MetricsOptions),
    check_tokenizer("bleu_tokenize", FLAGS.bleu_tokenize),
  )
  if FLAGS.compare_with:
    other = ModelDirectory(FLAGS.compare_with)
    other.read()
    other.choose_checkpoints(FLAGS.compare_checkpoint or FLAGS.checkpoint)
  _check_engine()
  _check_model()


def check_predict() -> None:
  """Refuses flags that do not say what to translate, and a missing model."""
  check_search_flags()
  if runs_as_pipeline():
    _check_bulk()
    return
  if "beam_options" in FLAGS and FLAGS.beam_options:
    raise InputError("--beam_options are for --runner")
  if FLAGS.interactive:
    standard = (None, text_files.STANDARD_STREAM)
    if FLAGS.text is not None or FLAGS.file not in standard:
      raise InputError(
        "--interactive answers lines of standard input; leave --text and "
        "--file out"
      )
  elif (FLAGS.text is None) == (FLAGS.file is None):
    raise InputError("nothing to translate: pass either --text or --file")
  if answers_lines() and FLAGS.file_out != text_files.STANDARD_STREAM:
    raise InputError("--interactive answers on standard output; see --file_out")
  if FLAGS.text is not None:
    _check_one_line(FLAGS.text)
  _check_engine()
  if "alignments" in FLAGS and FLAGS.alignments:
    _check_tensorflow("--alignments")
  _check_trace()
  inputs = [FLAGS.file] if FLAGS.file is not None else []
  _check_files(inputs)
  check_line_counts()
  check_n_best(FLAGS.n_best, _check_model().params.beam_size)


def _check_tensorflow(flag: str) -> None:
  """Refuses what another engine does not tell."""
  if FLAGS.engine != TENSORFLOW:
    raise InputError(
      f"{flag} is read from TensorFlow's attention: leave --engine="
      f"{FLAGS.engine} out"
    )


def _check_trace() -> None:
  """Refuses to watch a search that cannot be."""
  if "trace_dir" not in FLAGS or not FLAGS.trace_dir:
    return
  if answers_lines() or FLAGS.engine != TENSORFLOW or FLAGS.padded_decode:
    raise InputError(
      "--trace_dir watches TensorFlow's search of --file or --text, step by "
      "step: leave --interactive, --engine and --padded_decode out"
    )
  if file_system.is_file(FLAGS.trace_dir):
    raise InputError(f"--trace_dir={FLAGS.trace_dir} is a file")
  figures.check_formats(FLAGS.picture_formats)


def _check_bulk() -> None:
  """Refuses flags that do not say which files to translate, and where to."""
  beam_pipeline.check(FLAGS.runner, FLAGS.beam_options)
  standard = text_files.STANDARD_STREAM
  if (
    FLAGS.interactive
    or FLAGS.text is not None
    or FLAGS.file in (None, standard)
    or FLAGS.file_out in ("", standard)
  ):
    raise InputError(
      "--runner translates files: --file names them, as a pattern or between "
      "commas, and --file_out the directory of their translations"
    )
  if FLAGS.trace_dir:
    raise InputError("--trace_dir watches no search of --runner's workers")
  for name in ("tf_gpu_thread_mode", "per_gpu_thread_count", "enable_xla"):
    if FLAGS[name].present:
      raise InputError(
        f"--{name} is about this process, not the workers of --runner, whose "
        "environment is theirs: leave it out"
      )
  if file_system.is_file(FLAGS.file_out):
    raise InputError(f"--file_out={FLAGS.file_out} is a file, not a directory")
  _check_engine()
  check_n_best(FLAGS.n_best, _check_model().params.beam_size)


def check_score() -> None:
  """Refuses missing files, and a missing model."""
  if FLAGS.file is None or FLAGS.reference_file is None:
    raise InputError(
      "--mode=score needs --file, the sources, and --reference_file, the "
      "translations to score"
    )
  inputs = [FLAGS.file, FLAGS.reference_file]
  _check_both_standard(inputs)
  _check_files(inputs)
  _check_model()


def check_attention() -> None:
  """Refuses missing files, pictures that cannot be made, a missing model."""
  if FLAGS.file is None or not FLAGS.output_dir:
    raise InputError(
      "--mode=attention needs --file, the sources, and --output_dir, where "
      "weights and pictures go"
    )
  inputs = [FLAGS.file]
  if FLAGS.reference_file is not None:
    inputs.append(FLAGS.reference_file)
  _check_both_standard(inputs)
  for path in inputs:
    text_files.check_input(path)
  if file_system.is_file(FLAGS.output_dir):
    raise InputError(f"--output_dir={FLAGS.output_dir} is a file")
  figures.check_formats(FLAGS.picture_formats)
  _check_tensorflow("--mode=attention")
  _check_model()


def check_plot() -> None:
  """Refuses pictures of what there is not, or that cannot be made."""
  if not FLAGS.output_dir:
    raise InputError("--mode=plot needs --output_dir, where pictures go")
  if file_system.is_file(FLAGS.output_dir):
    raise InputError(f"--output_dir={FLAGS.output_dir} is a file")
  if not FLAGS.picture_formats:
    raise InputError("--mode=plot makes pictures: --picture_formats is empty")
  figures.check_formats(FLAGS.picture_formats)
  if not FLAGS.plots or not set(FLAGS.plots) <= set(PLOTS):
    raise InputError(
      f"--plots={','.join(FLAGS.plots)}: give some of {', '.join(PLOTS)}"
    )
  words = [word for word in FLAGS.words or () if word.strip()]
  if "neighbours" in FLAGS.plots and not words:
    raise InputError(
      "--plots=neighbours needs --words, whose neighbours are looked for"
    )
  models = text_files.listed_files(FLAGS.model_dir)
  of_models = {"run", "neighbours"}.intersection(FLAGS.plots)
  of_params = FLAGS["param_set"].present or FLAGS["params_override"].present
  if of_models or not of_params:
    for path in models:
      ModelDirectory(path).read()
  if "neighbours" in FLAGS.plots:
    ModelDirectory(models[0]).choose_checkpoints(FLAGS.checkpoint)
  read_requested_params()


def check_export() -> None:
  """Refuses an export that cannot be made, or not proven."""
  if not FLAGS.export_dir:
    raise InputError("--mode=export needs --export_dir, the directory to make")
  if file_system.exists(FLAGS.export_dir):
    raise InputError(
      f"--export_dir={FLAGS.export_dir} exists; name another, or remove it"
    )
  check_extras(FLAGS.export_format, FLAGS.export_text)
  if FLAGS.export_format == CTRANSLATE2 and FLAGS.dtype != "fp32":
    raise InputError(
      f"--dtype={FLAGS.dtype}: a CTranslate2 model keeps its weights in "
      "--quantization; leave --dtype out"
    )
  if FLAGS.file is not None:
    text_files.check_input(FLAGS.file)
  elif not has_shards(FLAGS.data_dir, DEV_TAG):
    raise InputError(
      "an export is verified before it is one: pass --data_dir, which has the "
      "development data of the model, or lines to translate in --file"
    )
  description = _check_model()
  if FLAGS.export_format == SAVED_MODEL and FLAGS.export_text:
    _check_text_in_graph(description.form)


def check_server() -> None:
  """Refuses a service that lacks a package, or a model."""
  try:
    import fastapi  # noqa: F401
    import fastapi_offline  # noqa: F401
    import httptools  # noqa: F401
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401
  except ImportError as error:
    raise InputError(
      f"the service needs more packages ({error}): pip install "
      "'official-transformer[server]'"
    ) from None
  _check_engine()
  _check_model()


def _check_export_of_training() -> None:
  """Refuses what would fail when a training has ended."""
  if FLAGS.export_dir:
    check_extras(SAVED_MODEL, exports_text_after_training())
    if not FLAGS.enable_checkpointing or FLAGS.use_synthetic_data:
      raise InputError("--export_dir exports a checkpoint: this run saves none")
    if not has_shards(FLAGS.data_dir, DEV_TAG):
      raise InputError(
        f"--export_dir needs development data in --data_dir={FLAGS.data_dir}, "
        "to verify the export with"
      )
    data = read_description(FLAGS.data_dir)
    if data and exports_text_after_training():
      _check_text_in_graph(data.form)


def _check_text_in_graph(form: TextForm) -> None:
  """Refuses what TensorFlow's operations would not do as Python does it."""
  if not form.is_plain:
    raise InputError(
      f"the model's text is brought into a form ({form}) that TensorFlow "
      "cannot give it in the same way: export without text, --noexport_text, "
      "or as --export_format=ctranslate2"
    )


def exports_text_after_training() -> bool:
  """Returns whether the export at a training's end takes text.

  The first version's commands say nothing of it, and must run as they stand.
  """
  if FLAGS["export_text"].present:
    return FLAGS.export_text
  return is_installed(TEXT_MODULE)


def runs_as_pipeline() -> bool:
  """Returns whether predict translates files as a pipeline.

  translate.py, which has predict's other flags, cannot.
  """
  return "runner" in FLAGS and FLAGS.runner is not None


def _check_engine() -> None:
  """Refuses an engine that is not there, or not so."""
  if FLAGS.engine == TENSORFLOW:
    return
  if len(model_directories()) > 1:
    raise InputError(
      "several models decide together in TensorFlow's search alone: leave "
      f"--engine={FLAGS.engine} out"
    )
  check_installed()
  if "padded_decode" in FLAGS and FLAGS.padded_decode:
    raise InputError(
      f"--padded_decode has XLA compile TensorFlow's search; --engine="
      f"{FLAGS.engine} has one of its own: leave one of them out"
    )


def _check_one_line(text: str) -> None:
  """Refuses a `--text` that is not one line that can be written."""
  if "\n" in text:
    raise InputError("--text takes one line; put several into a --file")
  try:
    text.encode("utf-8")
  except UnicodeEncodeError:
    raise InputError("--text is not UTF-8; check the terminal") from None


def _check_evaluation_set() -> None:
  """Refuses a training's evaluation set that cannot be read."""
  for path in (FLAGS.bleu_source, FLAGS.bleu_ref):
    if path:
      text_files.check_input(path)
  if FLAGS.bleu_source:
    check_tokenizer("bleu_tokenize", FLAGS.bleu_tokenize)


def _check_both_standard(inputs: list[str]) -> None:
  """Refuses to read standard input twice."""
  if inputs == [text_files.STANDARD_STREAM] * 2:
    raise InputError("only one of --file and --reference_file may be -")


def _check_files(inputs: list[str]) -> None:
  """Refuses inputs that cannot be read, and an output that is one of them."""
  for path in inputs:
    text_files.check_input(path)
  text_files.check_output(FLAGS.file_out)
  text_files.check_not_read(FLAGS.file_out, inputs, "file_out")


def _check_model() -> ModelDescription:
  """Refuses flags that contradict the model, and a directory without one.

  Returns:
    What is known of the model, decoded as the flags say.
  """
  directory, description = read_model()
  for one, _ in ((directory, description), *read_other_models()):
    one.choose_checkpoints(FLAGS.checkpoint)
  if FLAGS.vocab_file:
    given = describe(VocabFiles.joint(FLAGS.vocab_file))
    description.check_vocabularies(given, FLAGS.vocab_file, directory.path)
  return description
