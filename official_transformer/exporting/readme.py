"""The README of an export, for readers without this project."""

from __future__ import annotations

import os
from collections.abc import Sequence

from official_transformer.decoding.loading import LoadedModel
from official_transformer.model_directory.description import current_versions
from official_transformer.storage import file_system
from official_transformer.text.tokenizer import (
  FormedTokenizer,
  SentencePieceTokenizer,
  plain_tokenizer,
)
from official_transformer.text.vocabulary_files import VocabFiles

README = "README.md"
# Metadata of a model card on Hugging Face's hub.
FRONT_MATTER = """\
---
library_name: transformers
pipeline_tag: translation
---

"""


def text(model: LoadedModel, use: str, findings: Sequence[str]) -> str:
  """Returns the README of an export.

  Args:
    model: model that was exported.
    use: description of the export, and how to use it.
    findings: facts that were verified.
  """
  params, prefix = model.transformer.params, model.checkpoint.prefix
  folder = os.path.dirname(prefix)
  digests = "\n".join(
    f"- `{name}`: `{file_system.sha256(os.path.join(folder, name))}`"
    for name in sorted(file_system.names_in(folder))
    if ".data-" in name
  )
  proven = "\n".join(f"- {finding}." for finding in findings)
  patience = f"patience {params.patience:g}, " if params.patience else ""
  versions = ", ".join(f"{n} {v}" for n, v in current_versions().items())
  return f"""\
# A Transformer for translation

{use}
Beam {params.beam_size}, alpha {params.alpha:g}, {patience}at most \
{params.extra_decode_length} tokens more than the source has.

## Where it comes from

{str(model.checkpoint).capitalize()} of `{os.path.dirname(folder)}`, SHA-256 \
of its weights:

{digests}

Written by {versions}.

## What was proven of it when it was written

{proven}
"""


def saved_model(
  model: LoadedModel, vocab_files: VocabFiles, with_text: bool
) -> str:
  """Returns the README's text about a SavedModel."""
  params = model.transformer.params
  beam = params.beam_size
  of_text, example = "", _IDS_EXAMPLE
  if with_text:
    of_text = _TEXT_SIGNATURE.format(beam=beam)
    example = _TEXT_EXAMPLE.format(
      longest=model.longest_piece, tensorflow=current_versions()["tensorflow"]
    )
  return _SAVED_MODEL.format(
    beam=beam,
    of_text=of_text,
    vocabulary=_names(vocab_files),
    assets=_assets(vocab_files),
    rows=params.source_vocab_size or params.vocab_size,
    dtype=model.transformer.compute_dtype,
    example=example,
  )


def ctranslate2_model(
  model: LoadedModel,
  vocab_files: VocabFiles,
  quantization: str,
  setting: str,
  positions: int,
) -> str:
  """Returns the README's text about a CTranslate2 model.

  Args:
    model: model that was exported.
    vocab_files: files of its vocabularies.
    quantization: how it keeps its weights.
    setting: arguments with which it comes nearest to the model's own search.
    positions: most tokens of a line, and of its translation.
  """
  tokenizer = model.tokenizers.source
  tokens, other = _SUBTOKENS, _OTHER_SUBTOKENS
  if all(
    isinstance(plain_tokenizer(side), SentencePieceTokenizer)
    for side in model.tokenizers
  ):
    tokens, other = _PIECES, _OTHER_PIECES
  if isinstance(tokenizer, FormedTokenizer):
    tokens += f"\nText is to have this form before: {tokenizer.form}.\n"
  source, target = map(os.path.basename, vocab_files)
  is_joint = source == target
  return _CTRANSLATE2.format(
    vocabulary=_names(vocab_files),
    tokens=tokens.format(
      source=source,
      other="" if is_joint else other.format(target=target),
      entries=("shared" if is_joint else "target") + "_vocabulary.json",
    ),
    quantization=quantization,
    setting=setting,
    extra=model.transformer.params.extra_decode_length,
    positions=positions,
  )


def huggingface_model(positions: int) -> str:
  """Returns the README's text about a model for `transformers`.

  Args:
    positions: most tokens of a line, and of its translation.
  """
  return _HUGGINGFACE.format(positions=positions)


def marian_model(longest: int) -> str:
  """Returns the README's text about a model in Marian's own files.

  Args:
    longest: most tokens of a line.
  """
  return _MARIAN.format(longest=longest)


def bergamot_model() -> str:
  """Returns the README's text about a model for Bergamot."""
  return _BERGAMOT


def _names(files: VocabFiles) -> str:
  """Returns how the vocabularies are called in a sentence."""
  source, target = (f"`{os.path.basename(path)}`" for path in files)
  return source if source == target else f"{source} (source), {target} (target)"


def _assets(files: VocabFiles) -> str:
  """Returns where else a SavedModel has its vocabulary."""
  if len(files.different) > 1:
    return "`assets/` and `assets.extra/`"
  return (
    "`assets/` and, as the official model's first version had it, "
    "`assets.extra/vocab.txt`"
  )


_SAVED_MODEL = """\
A TensorFlow SavedModel: any number of lines, of any length, in one call. In the
tables, B lines, S and L tokens.

| signature | takes | returns |
| --- | --- | --- |
| `translate`, `serving_default` | `input`: int64 [B, S] | `outputs`: int32 \
[B, L], `scores`: float32 [B] |
| `translate_n_best` | `input`: int64 [B, S] | `outputs`: int32 \
[B, {beam}, L], `scores`: float32 [B, {beam}], `finished`: bool [B, {beam}] |
{of_text}
Ids are those of {vocabulary}, in {assets}.
Each line ends with 1 (EOS) and is padded with 0; an id of {rows} or above
fails. What has not finished was still going on at its limit, and its score is a
plain log-probability.

Its weights, and what it computes, are {dtype}.

{example}"""
_TEXT_SIGNATURE = """\
| `translate_text` | `text`: string [B] | `translations`: string [B], \
`scores`: float32 [B], `finished`, `blank`, `long`: bool [B]; \
`n_best_translations`, `n_best_scores`, `n_best_finished`: [B, {beam}], empty \
and -inf where fewer were found |
"""
_TEXT_EXAMPLE = """\
Give it one sentence a line, not in capitals: of several, a model that was
trained on single ones leaves some out. `blank` marks lines without text to
translate, `long` those of over {longest} tokens, more than the model knows
well: cut these.

    import tensorflow as tf
    import tensorflow_text  # Registers what the tokenizer is made of.

    model = tf.saved_model.load("PATH")
    translate = model.signatures["translate_text"]
    found = translate(text=tf.constant(["A dog runs."]))
    print(found["translations"][0].numpy().decode())

It needs tensorflow and tensorflow-text, {tensorflow} or later.
"""
_IDS_EXAMPLE = """\
    import tensorflow as tf

    model = tf.saved_model.load("PATH")
    ids = tf.constant([[17, 4, 1]], tf.int64)
    print(model.signatures["translate"](input=ids)["outputs"])
"""
_CTRANSLATE2 = """\
A CTranslate2 model that keeps its weights in {quantization}: tokens in, tokens
out, entries of {vocabulary}, beside it.

    import ctranslate2

    translator = ctranslate2.Translator("PATH")
    found = translator.translate_batch(
      [tokens],  # Strings, without EOS.
      {setting},
      max_input_length=0,
      max_decoding_length=len(tokens) + 1 + {extra},
    )
    print(found[0].hypotheses[0])

{tokens}
A line and its translation have at most {positions} tokens each. The search is
CTranslate2's own: this setting comes nearest to the model's, and
`--engine=ctranslate2` of the project that wrote this comes nearer still.
"""
_HUGGINGFACE = """\
A model for Hugging Face's `transformers`, which runs it without other code:

    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("PATH")
    model = AutoModelForSeq2SeqLM.from_pretrained("PATH")
    found = model.generate(**tokenizer("A dog runs.", return_tensors="pt"))
    print(tokenizer.decode(found[0], skip_special_tokens=True))

Give it one sentence at a time, not in capitals: a model that was trained on
single sentences drops some of several. A line, and its translation, have at
most {positions} tokens. The search is that of `transformers`, which divides
scores by another power of the length: some translations differ from those of
the model's own search. That has:
"""
_MARIAN = """\
A model for Marian (https://marian-nmt.github.io):

    marian-decoder --config PATH/decoder.yml < lines > translations

Give it one sentence a line, not in capitals: a model that was trained on
single sentences drops some of several. Of a line with more than {longest}
tokens, Marian leaves out the rest. It divides scores by another power of the
length, of which `decoder.yml` has the nearest: some translations differ from
those of the model's own search. That has:
"""
_BERGAMOT = """\
A model for Bergamot, Marian inside of Firefox and of web pages. Its weights are
8-bit integers. With `@browsermt/bergamot-translator` from npm, these are the
buffers of a model:

    {model: "model.intgemm8.bin", vocabs: ["vocab.spm"],
     shortlist: (an empty one), config: {"gemm-precision": "int8shiftAll"}}

`examples/offline_page` of the project that wrote this is a page that uses it.
Bergamot cuts text into sentences itself, and takes the likeliest token at each
step. The model's own search has:
"""
_PIECES = """\
Text becomes tokens, and they text, by SentencePiece:

    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file="{source}")
    tokens = processor.encode("A dog runs.", out_type=str)
{other}    text = processor.decode(found[0].hypotheses[0])
"""
_OTHER_PIECES = """\
    processor = sentencepiece.SentencePieceProcessor(model_file="{target}")
"""
_SUBTOKENS = """\
Text becomes tokens, and tokens become text, by the project that wrote this,
`pip install 'official-transformer[words]'`. Where a subtoken file has an entry
twice, the last counts, and the others have other names in `{entries}`:

    import json
    from official_transformer.text.tokenizer import load_tokenizer

    tokenizer = load_tokenizer("{source}")
    tokens = tokenizer.pieces(tokenizer.encode("A dog runs."))
{other}    entries = json.load(open("PATH/{entries}"))
    ids = [entries.index(token) for token in found[0].hypotheses[0]]
    text = tokenizer.decode(ids)
"""
_OTHER_SUBTOKENS = """\
    tokenizer = load_tokenizer("{target}")
"""
