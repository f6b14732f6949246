"""The flags of what decodes: which weights, what to translate, and how."""

from __future__ import annotations

from absl import flags

from flags.core import help_wrap
from official_transformer.model_directory.directory import LATEST

OUTPUT_FORMATS = ("text", "jsonl")
INVALID_UTF8 = ("refuse", "replace")


def define_decoding_flags() -> None:
  """Defines what to translate, how, and where the translation goes."""
  flags.DEFINE_string(
    "checkpoint",
    LATEST,
    help_wrap(
      "The weights to use: latest, best (at a milestone of training, by BLEU "
      "where it was measured, else by validation loss), average (see "
      "--mode=average), or the step of a checkpoint that is kept."
    ),
  )
  _define_text_flags()
  _define_search_flags()
  _define_decoding_speed_flags()


def _define_text_flags() -> None:
  """Defines what is read and what is written."""
  flags.DEFINE_string("text", None, help_wrap("One sentence to translate."))
  flags.DEFINE_string(
    "file", None, help_wrap("A file to translate; - is standard input.")
  )
  flags.DEFINE_string(
    "file_out",
    "-",
    help_wrap("Where its translation goes; - is standard output."),
  )
  flags.DEFINE_enum(
    "output_format",
    "text",
    list(OUTPUT_FORMATS),
    help_wrap(
      "text: a line for each line. jsonl: a JSON object for each, with score, "
      "tokens and flags."
    ),
  )
  flags.DEFINE_integer(
    "n_best",
    1,
    help_wrap(
      "Hypotheses to write for each line, best first: so many lines of text, "
      "the missing ones empty, or one JSON object."
    ),
    lower_bound=1,
  )
  flags.DEFINE_bool(
    "interactive",
    False,
    help_wrap(
      "Answer each line of standard input as soon as it is there, as on a "
      "terminal."
    ),
  )
  flags.DEFINE_bool(
    "split_long_lines",
    True,
    help_wrap(
      "Cut lines that are longer than the model was trained with at the ends "
      "of sentences, and join the translations. Off: decode them whole, which "
      "takes memory by the square of their length."
    ),
  )
  flags.DEFINE_enum(
    "invalid_utf8",
    "refuse",
    list(INVALID_UTF8),
    help_wrap(
      "What to do about a line of --file that is not UTF-8: refuse the file, "
      "or replace the bytes by U+FFFD and report the line, as --interactive "
      "always does."
    ),
  )


def _define_search_flags() -> None:
  """Defines what decides which translation is found."""
  flags.DEFINE_integer(
    "beam_size",
    None,
    help_wrap("Hypotheses kept; 1 is greedy. Unset: the model's own, 4."),
    lower_bound=1,
  )
  flags.DEFINE_float(
    "alpha",
    None,
    help_wrap("Strength of length normalisation. Unset: the model's own, .6."),
    lower_bound=0.0,
  )
  flags.DEFINE_integer(
    "extra_decode_length",
    None,
    help_wrap(
      "Tokens a translation may be longer than its source. Unset: the "
      "model's own, 50."
    ),
    lower_bound=0,
  )


def _define_decoding_speed_flags() -> None:
  """Defines what changes how fast lines are decoded, and in which memory."""
  flags.DEFINE_integer(
    "decode_batch_size",
    128,
    help_wrap("Most lines decoded at once; see --decode_batch_tokens."),
    lower_bound=1,
  )
  flags.DEFINE_integer(
    "decode_batch_tokens",
    2048,
    help_wrap("Most lines, times the tokens of the longest, decoded at once."),
    lower_bound=1,
  )
  flags.DEFINE_integer(
    "decode_workers",
    None,
    help_wrap(
      "Batches decoded side by side on a CPU, its threads shared out among "
      "them. Unset: one a processor, up to 4."
    ),
    lower_bound=1,
  )
  flags.DEFINE_bool(
    "padded_decode",
    False,
    help_wrap(
      "Pad lines to a multiple of --decode_max_length tokens, one shape of "
      "batches for each, and compile the search with XLA, as TPUs need it; no "
      "translation changes."
    ),
  )
  flags.DEFINE_integer(
    "decode_max_length",
    97,
    help_wrap("With --padded_decode: tokens a line is padded to."),
    lower_bound=1,
  )
