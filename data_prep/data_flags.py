"""The flags of what becomes data, shared by the commands that read text."""

from __future__ import annotations

from absl import flags

from data_prep.corpora import Corpus, DataSettings, WantedVocabulary
from data_prep.filters import FilterSettings
from official_transformer.data.scripts import SCRIPTS
from official_transformer.data.text_form import NORMALIZATIONS, TextForm
from official_transformer.data.tokenizer import SENTENCEPIECE_TYPES
from official_transformer.errors import InputError
from official_transformer.flag_groups.core import Effect, define, start_section

FLAGS = flags.FLAGS

_FILES = (
  "UTF-8 text, one sentence a line; plain, .gz, .bz2, .xz or .zst, several "
  "files between commas."
)


def define_text_flags() -> None:
  """Defines where the text is."""
  start_section("Text")
  for side in ("train_source", "train_target", "dev_source", "dev_target"):
    define(flags.DEFINE_list, side, [], _FILES)
  for tag in ("train", "dev"):
    define(
      flags.DEFINE_list,
      f"{tag}_pairs",
      [],
      "Files each line of which holds a source, a tab and its target; further "
      "columns are not looked at. Beside or instead of the other two.",
    )


def define_form_flags() -> None:
  """Defines what is done to all text."""
  start_section("The form of the text, kept with the data and the model")
  define(
    flags.DEFINE_enum,
    "normalize",
    "none",
    "Unicode's normal form to bring all text into.",
    enum_values=list(NORMALIZATIONS),
  )
  define(flags.DEFINE_bool, "lowercase", False, "Make capitals small letters.")


def define_filter_flags() -> None:
  """Defines which pairs are left out."""
  start_section("Pairs that are left out, besides those with an empty side")
  define(
    flags.DEFINE_enum,
    "invalid_utf8",
    "error",
    "What to do with pairs that hold bytes that are not UTF-8.",
    enum_values=["error", "drop"],
  )
  define(
    flags.DEFINE_bool,
    "drop_control_characters",
    False,
    "Leave out pairs with control characters other than tabs.",
  )
  define(
    flags.DEFINE_bool,
    "drop_identical",
    False,
    "Leave out pairs whose sides are the same.",
  )
  define(
    flags.DEFINE_bool,
    "drop_duplicates",
    False,
    "Keep only the first of equal training pairs.",
  )
  define(
    flags.DEFINE_list,
    "held_out",
    [],
    "Text files, such as test sets: leave out training pairs one side of which "
    "is a line of them.",
  )
  _define_script_flags()
  define(
    flags.DEFINE_integer,
    "max_tokens",
    0,
    "Leave out pairs with a side of more tokens, EOS included; 0 keeps them, "
    "and training leaves out what is over its --max_length.",
    lower_bound=0,
  )
  define(
    flags.DEFINE_float,
    "max_length_ratio",
    0.0,
    "Leave out pairs with a side of more than so many times the other's "
    "tokens; 0 keeps them.",
    lower_bound=0,
  )


def _define_script_flags() -> None:
  for side in ("source", "target"):
    define(
      flags.DEFINE_enum,
      f"{side}_script",
      None,
      f"Leave out pairs whose {side} is of other letters.",
      enum_values=sorted(SCRIPTS),
    )
  define(
    flags.DEFINE_float,
    "min_script_share",
    0.5,
    "How many of a line's letters must be of its script.",
    lower_bound=0,
    upper_bound=1,
  )


def define_vocabulary_flags() -> None:
  """Defines the vocabulary."""
  start_section("Vocabulary")
  define(
    flags.DEFINE_enum,
    "vocab_type",
    "sentencepiece",
    "The vocabulary to make: a SentencePiece model, or the official model's "
    "subtokens.",
    enum_values=["sentencepiece", "subtoken"],
  )
  define(
    flags.DEFINE_enum,
    "sentencepiece_model_type",
    "unigram",
    "What a SentencePiece model's pieces are: those of a unigram language "
    "model, byte pair encoding, whole words (others are unknown), or single "
    "characters.",
    Effect().idle_if(
      lambda v: v.vocab_type != "sentencepiece", "subtokens are of one kind"
    ),
    enum_values=list(SENTENCEPIECE_TYPES),
  )
  define(
    flags.DEFINE_integer,
    "vocab_size",
    8000,
    "Entries of the vocabulary that source and target share. A small corpus "
    "may yield fewer.",
    lower_bound=32,
  )
  define(
    flags.DEFINE_string,
    "vocab_file",
    None,
    "Use this vocabulary instead of making one.",
    short_name="vf",
  )
  for side in ("source", "target"):
    define(
      flags.DEFINE_integer,
      f"{side}_vocab_size",
      None,
      f"Give the {side} a vocabulary of its own, of so many entries, as the "
      "other side then has one, too: the model has two tables.",
      lower_bound=32,
    )
    define(
      flags.DEFINE_string,
      f"{side}_vocab_file",
      None,
      f"Use this vocabulary for the {side} alone.",
    )
  define(
    flags.DEFINE_integer,
    "vocab_sample",
    200_000,
    "Pairs of the training data from which a vocabulary is made, drawn evenly; "
    "0 is all. SentencePiece takes 1.5 GB of memory for a million lines.",
    lower_bound=0,
  )


def define_worker_flag() -> None:
  """Defines how many processes there are."""
  define(
    flags.DEFINE_integer,
    "workers",
    None,
    "Processes; one a processor if unset. The data are the same.",
    lower_bound=1,
  )


def read_corpora() -> dict[str, Corpus]:
  """Returns the text that was named, by its tag."""
  sides = ("source", "target", "pairs")
  corpora = {
    tag: Corpus(*(FLAGS[f"{tag}_{side}"].value for side in sides))
    for tag in ("train", "dev")
  }
  return {tag: corpus for tag, corpus in corpora.items() if corpus.paths}


def read_form() -> TextForm:
  """Returns what is done to all text."""
  return TextForm(FLAGS.normalize, FLAGS.lowercase)


def read_filters() -> FilterSettings:
  """Returns which pairs are left out."""
  return FilterSettings(
    invalid_utf8=FLAGS.invalid_utf8,
    control_characters=FLAGS.drop_control_characters,
    identical=FLAGS.drop_identical,
    duplicates=FLAGS.drop_duplicates,
    held_out=tuple(FLAGS.held_out),
    max_tokens=FLAGS.max_tokens,
    max_ratio=FLAGS.max_length_ratio,
    source_script=FLAGS.source_script,
    target_script=FLAGS.target_script,
    script_share=FLAGS.min_script_share,
  )


def read_separate() -> tuple[WantedVocabulary, WantedVocabulary] | None:
  """Returns the vocabularies that the sides do not share, if they do not.

  Raises:
    InputError: if it cannot be told what either is.
  """
  names = [
    f"{side}_vocab_{what}"
    for side in ("source", "target")
    for what in ("size", "file")
  ]
  values = [FLAGS[name].value for name in names]
  if not any(values):
    return None
  if FLAGS.vocab_file or FLAGS["vocab_size"].present:
    raise InputError(
      "--vocab_size and --vocab_file are for one vocabulary of both sides, "
      + ", ".join(f"--{name}" for name in names)
      + " for one of each: leave out the one or the other"
    )
  sides = values[:2], values[2:]
  for side, (size, file) in zip(("source", "target"), sides, strict=True):
    if bool(size) == bool(file):
      raise InputError(
        f"the {side} needs --{side}_vocab_size or --{side}_vocab_file, one of "
        "the two, where each side has a vocabulary of its own"
      )
  source, target = (WantedVocabulary(size or 0, file) for size, file in sides)
  return source, target


def read_settings() -> DataSettings:
  """Returns what to make of the text."""
  return DataSettings(
    data_dir=FLAGS.data_dir,
    vocab_type=FLAGS.vocab_type,
    sentencepiece_model_type=FLAGS.sentencepiece_model_type,
    vocab_size=FLAGS.vocab_size,
    vocab_file=FLAGS.vocab_file,
    separate=read_separate(),
    vocab_sample=FLAGS.vocab_sample,
    shards=FLAGS.shards,
    seed=FLAGS.seed,
    form=read_form(),
    filters=read_filters(),
    workers=FLAGS.workers,
  )
