r"""Whether phrases are obeyed, and what leading a search costs.

  python benchmarks/constraints.py --model_dir=model --source=val.en \
    --reference=val.de

Of each of so many lines, drawn with a seed, one or two random words of its
reference that its own translation lacks are required, and one or two words of
that translation are forbidden. It prints how often both hold, how many are
reported as violated, and the sentences a second of all kinds of search.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any

from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.phrases import DecodingConstraints, holds
from official_transformer.decoding.requests import LineRequest
from official_transformer.decoding.translator import Translator
from official_transformer.hardware.startup import start_tensorflow
from official_transformer.search.options import (
  Sampling,
  SearchOptions,
)
from official_transformer.text.text_files import read_lines


def main() -> None:
  """Prints what was found."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--model_dir", required=True)
  parser.add_argument("--source", required=True)
  parser.add_argument("--reference", required=True)
  parser.add_argument("--number", type=int, default=500)
  parser.add_argument("--checkpoint", default="latest")
  parser.add_argument("--seed", type=int, default=1)
  arguments = parser.parse_args()
  start_tensorflow()
  rng = random.Random(arguments.seed)
  pairs = list(
    zip(
      read_lines(arguments.source), read_lines(arguments.reference), strict=True
    )
  )
  pairs = rng.sample(pairs, min(arguments.number, len(pairs)))
  sources = [source for source, _ in pairs]

  def translator(**search: Any) -> Translator:
    options = DecodingOptions(search=SearchOptions(**search))
    made = Translator.load(
      arguments.model_dir, options=options, checkpoint=arguments.checkpoint
    )
    made.warm_up()
    return made

  def timed(name: str, made: Translator, lines: list) -> list:
    started = time.monotonic()
    found = list(made.translate_stream(lines))
    seconds = time.monotonic() - started
    print(f"{name}: {len(lines) / seconds:.1f} sentences/s")
    return found

  plain = timed("the model's own search", translator(), sources)
  requests = [
    LineRequest(source, _random_demands(rng, found.text, reference))
    for (source, reference), found in zip(pairs, plain, strict=True)
  ]
  led = translator(min_length=1)  # Which nothing keeps from being met.
  timed("led by nothing", led, sources)
  found = timed("phrases required and forbidden", led, requests)
  required = met = forbidden = kept = told = 0
  for request, translation in zip(requests, found, strict=True):
    for phrase in request.constraints.required:
      required += 1
      met += holds(translation.text, phrase)
      told += phrase in translation.unmet
    for phrase in request.constraints.forbidden:
      forbidden += 1
      kept += not holds(translation.text, phrase)
  print(
    f"required {required}: there {met}, reported as unmet {told}; "
    f"forbidden {forbidden}: absent {kept}; of {len(requests)} lines, "
    f"{sum(t.finished for t in found)} finished"
  )
  timed("no trigram twice", translator(no_repeat_ngram_size=3), sources)
  timed("coverage penalty", translator(coverage_penalty=0.2), sources)
  timed("4 samples", translator(sampling=Sampling()), sources)


def _random_demands(
  rng: random.Random, translation: str, reference: str
) -> DecodingConstraints:
  """Returns words that a translation lacks, and words that it has."""
  lacking = [w for w in reference.split() if not holds(translation, w)]
  there = [w for w in translation.split() if w.isalpha()]
  required = rng.sample(lacking, min(len(lacking), rng.randint(1, 2)))
  forbidden = rng.sample(there, min(len(there), rng.randint(1, 2)))
  return DecodingConstraints(
    required=tuple(dict.fromkeys(required)),
    forbidden=tuple(
      w
      for w in dict.fromkeys(forbidden)
      # Nobody can have what it may not have.
      if not any(holds(phrase, w) for phrase in required)
    ),
  )


if __name__ == "__main__":
  main()
