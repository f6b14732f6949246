"""A translator of letters whose search can be held back."""

from __future__ import annotations

import threading

from official_transformer.decoding.hypotheses import FoundSequence
from official_transformer.decoding.loading import LoadedCheckpoint
from official_transformer.decoding.options import BatchLimits, DecodingOptions
from official_transformer.decoding.requests import TranslationRequest
from official_transformer.decoding.translator import Translator
from official_transformer.model_params import TransformerParams


class Letters:
  """A tokenizer of single letters: a is 2, b is 3, ..."""

  vocab_size = 28

  def encode(self, text, add_eos=False):
    ids = [ord(c) - ord("a") + 2 for c in text if "a" <= c <= "z"]
    return ids + [1] * add_eos

  def decode(self, ids):
    return "".join(chr(i - 2 + ord("a")) for i in ids)

  def pieces(self, ids):
    return list(self.decode(ids))


class Reverser:
  """Finds a source reversed, and then its tokens sorted.

  Attributes:
    go: nothing is found until it is set.
    began: released once for each search that begins.
    batches: of all searches.
    error: raised by the next search.
  """

  def __init__(self, params):
    self.params = params
    self.go = threading.Event()
    self.go.set()
    self.began = threading.Semaphore(0)
    self.batches = []
    self.error = None

  def search(self, sources):
    self.batches.append([list(ids) for ids in sources])
    self.began.release()
    assert self.go.wait(120)
    if self.error:
      error, self.error = self.error, None
      raise error
    return [
      [
        FoundSequence(ids[-2::-1], -1.0, True),
        FoundSequence(sorted(ids[:-1]), -2.0, False),
      ]
      for ids in sources
    ]


class _Transformer:
  params = TransformerParams(vocab_size=28, beam_size=2)
  compute_dtype = "float32"


def asked(lines, n_best=1):
  """Returns a request for lines."""
  return TranslationRequest(tuple(lines), n_best=n_best)


def make_translator(workers=1, lines=4, step=1):
  """Returns a translator of lines of up to 10 tokens."""
  options = DecodingOptions(limits=BatchLimits(lines=lines), workers=workers)
  translator = Translator(_Transformer(), Letters(), options, longest_piece=10)
  translator.searchers.plain = Reverser(_Transformer.params)
  translator.checkpoint = LoadedCheckpoint(step)
  return translator
