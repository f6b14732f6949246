"""Makes docs/tour.md and its pictures anew, from a trained model.

    bash quickstart.sh   # trains it
    python docs/make_tour.py

Every number on that page is computed here, by the code that trains and
translates.
"""

from __future__ import annotations

import argparse
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from official_transformer.commands.trace import tree_of
from official_transformer.decoding.attention import LineAttention
from official_transformer.decoding.options import AlignmentRule, DecodingOptions
from official_transformer.decoding.scorer import Scorer
from official_transformer.decoding.search_trace import (
  FINISHED,
  SearchTrace,
  SearchTracer,
)
from official_transformer.decoding.translator import Translator
from official_transformer.model.model_utils import (
  get_decoder_self_attention_bias,
  get_padding_bias,
  get_position_encoding,
)
from official_transformer.model.transformer import Transformer
from official_transformer.plotting import figures
from official_transformer.plotting.heat_maps import (
  heat_maps_of,
  save_heat_map,
)
from official_transformer.plotting.model_plots import save_positions
from official_transformer.plotting.run_plots import (
  ScheduleCurve,
  save_schedules,
)
from official_transformer.plotting.search_tree import save_tree
from official_transformer.training.step.optimizer import LearningRateSchedule

ROOT = pathlib.Path(__file__).parents[1]
SOURCE = "The woman who calls the teacher can throw away my key."
SHORT = "A man runs."
PNG = ("png",)


def table(heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
  """Returns a table in Markdown."""

  def line(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(str(c).replace("|", r"\|") for c in cells) + " |"

  return "\n".join(
    [line(heading), line(["---"] * len(heading)), *map(line, rows)]
  )


def code(text: Any) -> str:
  """Returns text as it stands."""
  return f"`{text}`"


class Tour:
  """The page, in the order in which a sentence goes through the model.

  Attributes:
    translator: the model.
    transformer: of it.
    pictures: where they go.
    page: the directory of the page.
  """

  def __init__(self, model_dir: str, page: pathlib.Path) -> None:
    options = DecodingOptions(alignment=AlignmentRule())
    self.translator = Translator.load(model_dir, options=options)
    reader = self.translator.attention_reader
    assert reader
    self.transformer: Transformer = reader.transformer
    self.page = page
    self.pictures = page / "tour"
    self.pictures.mkdir(parents=True, exist_ok=True)
    self.source, self.target = self.translator.tokenizers
    self.ids = self.source.encode(SOURCE, add_eos=True)
    self.translation = self.translator.translate_line(SOURCE)

  def picture(self, name: str, what: str) -> str:
    """Returns the Markdown that shows a picture."""
    assert (self.pictures / f"{name}.png").exists(), name
    return f"![{what}](tour/{name}.png)"

  def path(self, name: str) -> str:
    """Returns where a picture goes, without its ending."""
    return str(self.pictures / name)

  def text(self) -> str:
    """Returns the whole page."""
    parts = [
      self._introduction(),
      self._tokens(),
      self._embedding(),
      self._masks(),
      self._attention(),
      self._model(),
      self._search(),
      self._loss(),
      self._schedule(),
    ]
    return "\n\n".join(parts) + "\n"

  def _introduction(self) -> str:
    params = self.transformer.params
    count = sum(int(np.prod(w.shape)) for w in self.transformer.weights)
    return f"""# A tour of a sentence

One sentence goes through the whole model, from text to text. Each part is explained
after "Attention Is All You Need", whose sections are named, with the numbers of a
small model that `quickstart.sh` trains in three minutes: {params.num_hidden_layers} layers,
{params.num_heads} heads, {params.hidden_size} wide, {count:,} parameters, the
weights of {self.translator.checkpoint}. (`python docs/make_tour.py` writes this page; do
not edit it.) The model translates

> {SOURCE}

as

> {self.translation.text}"""

  def _tokens(self) -> str:
    spans = self.source.spans(SOURCE)
    rows = [
      (n, code(piece), i, code(SOURCE[span.start : span.end]))
      for n, (piece, i, span) in enumerate(
        zip(self.source.pieces(self.ids[:-1]), self.ids, spans, strict=False)
      )
    ]
    rows.append((len(rows), code("</s>"), self.ids[-1], ""))
    return f"""## Text to ids

The model reads numbers. The tokenizer cuts the line into pieces of a vocabulary, and
each piece has a number, its id. This vocabulary has {self.source.vocab_size} pieces
for both languages; `▁` marks a blank. Two ids are reserved: 0 pads shorter lines of a
batch, and 1, `</s>`, ends every line.
([`text/tokenizer.py`](../official_transformer/text/tokenizer.py))

{table(("position", "piece", "id", "characters"), rows)}"""

  def _embedding(self) -> str:
    params = self.transformer.params
    size = params.hidden_size
    save_positions(
      np.array(get_position_encoding(64, size)), self.path("positions"), PNG
    )
    table_ = self.transformer.source_embedding.shared_weights.numpy()
    signal = np.array(get_position_encoding(len(self.ids), size))
    ids = tf.constant([self.ids], tf.int32)
    embedded = self.transformer.embed_source(ids)[0].numpy()
    place = 1
    raw = table_[self.ids[place]]
    np.testing.assert_allclose(
      embedded[place], raw * size**0.5 + signal[place], rtol=1e-5, atol=1e-5
    )
    show = lambda row: " ".join(f"{v:+.3f}" for v in row[:4])  # noqa: E731
    piece = self.source.pieces([self.ids[place]])[0]
    rows = [
      (f"row {self.ids[place]} of the table", show(raw)),
      (f"times √{size} = {size**0.5:.3f}", show(raw * size**0.5)),
      (f"position {place}", show(signal[place])),
      ("their sum, which the encoder reads", show(embedded[place])),
    ]
    return f"""## Ids to vectors

Sections 3.4 and 3.5. Each id selects a row of the embedding table, a vector of
D = {size} numbers, which is multiplied by √D. The model would not know the order of the
pieces, so a signal of the position is added: {size // 2} sines and as many cosines, with
wave lengths from 2π to 10,000 · 2π. The first four numbers of {code(piece)}, at
position {place}:

{table(("", "first numbers"), rows)}

{self.picture("positions", "the timing signal, and the positions' dot products")}

The dot product of two positions depends on their distance alone, because
sin a sin b + cos a cos b = cos(a - b).
([`model/model_utils.py`](../official_transformer/model/model_utils.py))"""

  def _masks(self) -> str:
    short = self.source.encode(SHORT, add_eos=True)
    width = len(self.ids)
    batch = np.zeros([2, width], np.int32)
    batch[0, : len(short)] = short
    batch[1] = self.ids
    padding = np.array(get_padding_bias(tf.constant(batch)))[:, 0, 0] < 0
    causal = np.array(get_decoder_self_attention_bias(8))[0, 0] < 0
    with figures.figure((7.2, 2.9)) as figure:
      first, second = figure.subplots(1, 2)
      for axes, hidden, title, name in (
        (first, padding, "padding, of two sources", "line"),
        (second, causal, "later positions, of a target", "writes position"),
      ):
        axes.imshow(hidden, cmap="Greys", vmin=0, vmax=1.6, aspect="equal")
        axes.set_title(title, loc="left")
        axes.set_xlabel("position that is read")
        axes.set_ylabel(name)
        axes.set_yticks(range(len(hidden)))
        axes.set_xticks(range(0, hidden.shape[1], 2))
      figures.save(figure, self.path("masks"), PNG)
    return f"""## What is hidden

Attention is a weighted mean over positions, and some positions must have the weight
0. For these, shown dark, -1e9 is added to the logit. On the left, two lines form a
batch: the shorter one, {code(SHORT)}, is padded, and its padding is hidden. On the
right, a position of the target may use only itself and earlier positions, because later
ones are not yet known in a translation.

{self.picture("masks", "both masks")}"""

  def _attention(self) -> str:
    found = self.translator.attention(SOURCE)
    maps = heat_maps_of(found)
    for name, kind in (
      ("encoder", "heads"),
      ("decoder", "heads"),
      ("cross", "mean"),
    ):
      save_heat_map(maps[name], self.path(name), PNG, [kind])
    links = self.translation.hypotheses[0].alignment
    assert links
    pairs = [
      (links.target_words[t], links.source_words[s])
      for s, t in sorted(links.links, key=lambda link: link.target)
    ]
    return f"""## Attention

Section 3.2 and figure 2 of the paper. Each position has a query q, a key k and a value
v. The query is compared with all keys, the softmax makes weights of the results, and
the output is the mean of the values with these weights:
softmax(q kᵀ / √{self._head_size()}) v. This happens in each of
{self.transformer.params.num_heads} heads, with vectors of {self._head_size()} numbers.

{self._one_weight(found)}
([`model/attention_layer.py`](../official_transformer/model/attention_layer.py))

The weights of the encoder, as in the paper's figures 3 to 5. Each head attends to
other positions:

{self.picture("encoder.heads", "the encoder's attention, head by head")}

The decoder attends to the pieces that it has written. A row is the step that writes its
piece; later pieces are hidden:

{self.picture("decoder.heads", "the decoder's attention to itself, head by head")}

The decoder also attends to the source. The mean of the heads:

{self.picture("cross.mean", "the decoder's attention to the source")}

`--alignments` derives word alignments from these weights:

{table(("target", "source"), pairs)}"""

  def _head_size(self) -> int:
    params = self.transformer.params
    return params.hidden_size // params.num_heads

  def _one_weight(self, found: LineAttention) -> str:
    """Returns one weight, worked out from the kernels."""
    layer = self.transformer.encoder_stack.layers[0].self_attention
    x = layer.normalize(
      self.transformer.embed_source(tf.constant([self.ids], tf.int32))
    )[0].numpy()
    size = self._head_size()
    query = (x @ layer.layer.query_kernel.numpy())[:, :size]
    keys = (x @ layer.layer.key_kernel.numpy())[:, :size]
    # Somewhere else than at itself.
    others = found.encoder[0, 0] * (1 - np.eye(len(self.ids)))
    row = int(np.argmax(others.max(1)))
    logits = query[row] @ keys.T / size**0.5
    weights = np.exp(logits - logits.max())
    weights /= weights.sum()
    best = int(np.argmax(weights))
    np.testing.assert_allclose(weights, found.encoder[0, 0, row], atol=1e-4)
    return f"""In head 0 of the first layer, the query of {code(found.source[row])} times the key of
{code(found.source[best])}, divided by √{size}, is {logits[best]:.3f}. The softmax over
all {len(logits)} positions makes a weight of {weights[best]:.3f} of it: this share of the
value of {code(found.source[best])} goes into {code(found.source[row])}."""

  def _model(self) -> str:
    params = self.transformer.params
    length = len(self.ids)
    written = len(self.translator.attention(SOURCE).target)
    size, heads, width = (
      params.hidden_size,
      params.num_heads,
      params.filter_size,
    )
    block = [
      f"source ids                    [{length}]",
      f"  embedding + position        [{length}, {size}]",
      f"  {params.num_hidden_layers} x encoder layer",
      f"      self-attention          [{length}, {size}]   weights "
      f"[{heads}, {length}, {length}]",
      f"      feed-forward network    [{length}, {width}] inside, [{length}, {size}]",
      f"  layer norm                  [{length}, {size}]",
      "",
      f"target ids, shifted           [{written}]",
      f"  embedding + position        [{written}, {size}]",
      f"  {params.num_hidden_layers} x decoder layer",
      f"      self-attention          [{written}, {size}]   weights "
      f"[{heads}, {written}, {written}]",
      f"      attention to the source [{written}, {size}]   weights "
      f"[{heads}, {written}, {length}]",
      f"      feed-forward network    [{written}, {width}] inside, "
      f"[{written}, {size}]",
      f"  layer norm                  [{written}, {size}]",
      f"  times the embedding table   [{written}, {params.vocab_size}]",
    ]
    counts: dict[str, int] = {}
    for weight in self.transformer.weights:
      name = weight.path.split("/")[1]
      counts[name] = counts.get(name, 0) + int(np.prod(weight.shape))
    diagram = "\n".join(block)
    return f"""## The whole model

Figure 1 of the paper, with the shapes for this sentence and its translation. The
encoder reads the source once. The decoder reads the target, shifted right by one
position, and the output of the encoder; its last product gives each entry of the
vocabulary a logit. Each sub-layer is `x + dropout(f(layer_norm(x)))`: the norm comes
first, as in the official model, and not last, as in the paper.
([`model/transformer.py`](../official_transformer/model/transformer.py))

```
{diagram}
```

{table(("part", "parameters"), [(code(n), f"{c:,}") for n, c in counts.items()])}"""

  def _search(self) -> str:
    tracer = SearchTracer(self.transformer, self.source, self.target)
    trace = tracer.trace(self.ids)
    shown = tree_of(trace)
    last = next(
      n
      for n, nodes in enumerate(shown)
      if any(x.kind == FINISHED for x in nodes)
    )
    save_tree(
      trace.found[0].text,
      shown[: len(trace.best_path()) + 1],
      self.path("search"),
      PNG,
    )
    first = [
      (
        code(c.piece),
        f"{c.log_probability:.3f}",
        f"{np.exp(c.log_probability):.4f}",
        c.fate,
      )
      for c in trace.steps[0]
    ]
    found = [
      (code(h.text), len(h.pieces), f"{h.score:.3f}") for h in trace.found
    ]
    return f"""## A search, step by step

Section 6.1. The model gives probabilities for the next piece only, so a search finds a
whole translation. Beam search keeps the {trace.beam_size} best hypotheses. At every
step it looks at the {2 * trace.beam_size} best continuations of all of them, so that
{trace.beam_size} can go on even if {trace.beam_size} end. The first step:

{table(("piece", "log-probability", "probability", "fate"), first)}

The tree of the search, to one step after the end of its best hypothesis. Pruned
hypotheses are grey, finished ones green, and the best one is blue.

{self.picture("search", "the search as a tree")}

{self._normalization(trace)} The first hypothesis finished at step {last + 1}. The
search ended after {len(trace.steps)} steps, when the worst of {trace.beam_size} finished
hypotheses had a better score than the best alive one could still reach.

{table(("hypothesis", "pieces", "score"), found)}

`--mode=predict --trace_dir=DIR` writes tables and trees for any line.
([`search/beam_search.py`](../official_transformer/search/beam_search.py))"""

  def _normalization(self, trace: SearchTrace) -> str:
    best = trace.found[0]
    length = len(best.pieces)
    norm = ((5 + length) / 6) ** trace.alpha
    total = best.score * norm
    return f"""Longer hypotheses are less probable, so a finished one of n pieces has the score
log p / ((5 + n) / 6)^α (Wu et al. 2016). For the best one, with {length} pieces:
{total:.3f} / {norm:.3f} = {best.score:.3f}."""

  def _loss(self) -> str:
    params = self.transformer.params
    scorer = Scorer(self.transformer, self.translator.tokenizers)
    (score,) = scorer.score_stream([(SOURCE, self.translation.text)])
    targets = self.target.encode(self.translation.text, add_eos=True)
    inputs = [tf.constant([ids], tf.int32) for ids in (self.ids, targets)]
    logits = self.transformer(inputs)[0].numpy().astype(np.float64)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    rate, size = params.label_smoothing, params.vocab_size
    low = rate / (size - 1)
    own = log_probs[np.arange(len(targets)), targets]
    smoothed = -((1 - rate - low) * own + low * log_probs.sum(-1))
    entropy = -((1 - rate) * np.log(1 - rate) + rate * np.log(low))
    np.testing.assert_allclose(own, score.token_log_probabilities, atol=1e-4)
    pieces = [*self.target.pieces(targets[:-1]), "</s>"]
    rows = [
      (
        code(piece),
        f"{np.exp(p):.4f}",
        f"{-p:.3f}",
        f"{s:.3f}",
        f"{s - entropy:.3f}",
      )
      for piece, p, s in zip(pieces, own, smoothed, strict=True)
    ]
    return f"""## Loss and smoothing

Section 5.4. Training shows the model the right targets so far (teacher forcing) and asks
for the next one. It does not ask for a probability of 1: the goal is 1 - {
      rate:g} for the
right token, and {rate:g} is spread over the {size - 1} others, {
      low:.2e} each. The
cross-entropy with this goal is never below the goal's own entropy, {
      entropy:.3f} nats
here, which the official model subtracts. For the translation above:

{
      table(
        ("target", "probability", "-log p", "smoothed", "less the entropy"),
        rows,
      )
    }

Training reports the mean of the last column as its loss, here
{np.mean(smoothed - entropy):.3f}; the mean of the third, {
      np.mean(-own):.3f}, is the
logarithm of the perplexity.
([`ops/cross_entropy.py`](../official_transformer/ops/cross_entropy.py))"""

  def _schedule(self) -> str:
    params = self.transformer.params
    warmup = params.learning_rate_warmup_steps
    schedule = LearningRateSchedule(
      params.learning_rate, params.hidden_size, warmup
    )
    steps = range(0, 4 * warmup + 1, max(1, warmup // 50))
    curve = [(step, float(schedule(step))) for step in steps]
    save_schedules(
      "learning rate",
      [ScheduleCurve("", curve, warmup)],
      self.path("schedule"),
      PNG,
    )
    peak = float(schedule(warmup))
    return f"""## The learning rate

Section 5.3: {params.learning_rate:g} · {params.hidden_size}^-½ · min(1, step / {warmup})
/ √max(step, {warmup}). It rises to {peak:.2e} in {warmup} steps and then falls with the
square root of the step.

{self.picture("schedule", "the learning rate, step by step")}

`--mode=attention`, `--mode=predict --trace_dir` and `--mode=plot` show the same of your
own model and text ([looking](looking.md))."""


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--model_dir", default=str(ROOT / "quickstart" / "model"))
  parser.add_argument("--output_dir", default=str(ROOT / "docs"))
  given = parser.parse_args()
  page = pathlib.Path(given.output_dir)
  text = Tour(given.model_dir, page).text()
  (page / "tour.md").write_text(text, encoding="utf-8")
  print(f"wrote {os.path.relpath(page / 'tour.md')}")


if __name__ == "__main__":
  main()
