r"""The same preparation as an Apache Beam pipeline, for more than one machine.

Every pair has the same key as in the local shuffle, so that the shards are the
same, byte for byte, on every runner. The process that starts the pipeline makes
the vocabulary and data.json.

    files -> blocks of lines -> records by shard -> shards
                            \-> statistics

Text and --data_dir must be where all workers read and write: a remote store, or
a file system they share. A worker holds a block, or all of a shard.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np

from data_prep.encoding.filters import DUPLICATE
from data_prep.encoding.making import (
  Engine,
  Made,
  Making,
  directory_beside,
  report,
)
from data_prep.encoding.pair_encoder import EncodingPlan, PairEncoder
from data_prep.encoding.shuffle import Order, Statistics
from data_prep.reading.corpora import Corpus
from data_prep.reading.text_blocks import Block, count_pairs, read_blocks
from official_transformer.commands import beam_pipeline
from official_transformer.errors import RunError
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import (
  copy_file,
  new_file,
  write_text,
)
from official_transformer.text.vocabulary_files import VocabFiles


class CorpusJob(NamedTuple):
  """The encoding of one corpus.

  Attributes:
    tag: `train` or `dev`.
    corpus: the text, where all workers find it.
    plan: how lines become records.
    order: where records belong.
    shard_paths: paths of the files to write.
    statistics_path: file for the corpus' statistics.
  """

  tag: str
  corpus: Corpus
  plan: EncodingPlan
  order: Order
  shard_paths: Sequence[str]
  statistics_path: str


class _Record(NamedTuple):
  """A record on its way to its shard.

  Attributes:
    pair: number of the pair in the corpus.
    key: where in the shard it belongs.
    shard: which.
    fingerprint: fingerprint of its text; 0 if it is not needed.
    lengths: tokens of source and target.
    data: the framed record.
  """

  pair: int
  key: int
  shard: int
  fingerprint: int
  lengths: tuple[int, int]
  data: bytes


def engine(runner: str, options: str) -> Engine:
  """Returns an engine of preparation.

  Args:
    runner: as Beam names it.
    options: Beam's own, as on a command line.
  """
  return functools.partial(_make, runner, options)


def _make(runner: str, options: str, making: Making) -> Made:
  """Writes all shards by a pipeline."""
  shared = directory_beside(making)
  jobs = [job_of(tag, making, shared) for tag in sorted(making.corpora)]
  for local, there in zip(
    making.vocab_files, jobs[0].plan.vocab_files, strict=True
  ):
    copy_file(local, there)

  def build_all(pipeline: beam.Pipeline) -> None:
    for job in jobs:
      build(pipeline, job)

  beam_pipeline.run(runner, options, build_all)
  found = {}
  for job in jobs:
    with file_system.open_file(job.statistics_path) as stream:
      found[job.tag] = Statistics.from_json(json.load(stream))
    report(job.tag, found[job.tag])
    _check_shards(job, found[job.tag])
  return Made(found, [path for job in jobs for path in job.shard_paths])


def _check_shards(job: CorpusJob, found: Statistics) -> None:
  """Refuses shards that lack something, before they take others' place.

  Raises:
    RunError: if the pipeline has lost records.
  """
  there = [path for path in job.shard_paths if file_system.exists(path)]
  written = sum(map(file_system.size, there))
  if len(there) < len(job.shard_paths) or written != found.bytes:
    raise RunError(
      f"the pipeline has lost records of {job.tag}: {len(there)} of "
      f"{len(job.shard_paths)} shards are there, with {written} bytes of "
      f"{found.bytes}. Earlier data are as they were"
    )


def job_of(tag: str, making: Making, shared: str) -> CorpusJob:
  """Returns a pipeline's job for a corpus.

  Args:
    tag: tag of the corpus.
    making: the data that are being made.
    shared: a directory that all workers see.
  """
  files = VocabFiles(
    *(os.path.join(shared, os.path.basename(p)) for p in making.vocab_files)
  )
  return CorpusJob(
    tag,
    making.corpora[tag].mapped(file_system.absolute),
    dataclasses.replace(making.plans[tag], vocab_files=files),
    making.order(tag),
    [os.path.join(shared, name) for name in making.shard_names(tag)],
    os.path.join(shared, f"{tag}.statistics.json"),
  )


def build(pipeline: beam.Pipeline, job: CorpusJob) -> None:
  """Adds the making of one corpus to a pipeline."""
  tag = job.tag
  files = [
    Corpus([source], [target]) if target else Corpus(pairs=[source])
    for source, target in job.corpus.file_pairs()
  ]
  numbered = pipeline | f"{tag}: files" >> beam.Create(list(enumerate(files)))
  # Pairs are numbered in the whole corpus: those of earlier files are counted.
  counts = (
    numbered
    | f"{tag}: each file" >> beam.Reshuffle()
    | f"{tag}: count pairs"
    >> beam.Map(lambda item: (item[0], count_pairs(item[1])))
  )
  encoded = (
    numbered
    | f"{tag}: each file again" >> beam.Reshuffle()
    | f"{tag}: read blocks"
    >> beam.FlatMap(_read_blocks, counts=beam.pvalue.AsDict(counts))
    | f"{tag}: each block" >> beam.Reshuffle()
    | f"{tag}: encode"
    >> beam.ParDo(_Encode(job.plan, job.order)).with_outputs(
      _Encode.DROPPED, main="records"
    )
  )
  records = encoded.records
  if job.plan.filters.duplicates:
    records = (
      records
      | f"{tag}: by text"
      >> beam.Map(_by_text).with_output_types(tuple[bytes, Any])
      | f"{tag}: equal ones" >> beam.GroupByKey()
      | f"{tag}: keep the first" >> beam.FlatMap(_first_of_equal)
    )
  found = (
    (
      encoded[_Encode.DROPPED],
      records | f"{tag}: measure" >> beam.Map(_measured),
    )
    | f"{tag}: all that is counted" >> beam.Flatten()
    | f"{tag}: add up" >> beam.CombineGlobally(_AddUp())
  )
  _ = found | f"{tag}: write statistics" >> beam.Map(
    _write_statistics, job.statistics_path
  )
  # A shard without records is a file, too.
  shards = pipeline | f"{tag}: shards" >> beam.Create(
    [(shard, None) for shard in range(job.order.shards)]
  ).with_output_types(tuple[int, Any])
  by_shard = records | f"{tag}: by shard" >> beam.Map(
    lambda record: (record.shard, record)
  ).with_output_types(tuple[int, Any])
  _ = (
    (shards, by_shard)
    | f"{tag}: shards and records" >> beam.Flatten()
    | f"{tag}: gather" >> beam.GroupByKey()
    | f"{tag}: write" >> beam.Map(_write_shard, job.shard_paths)
  )


def _read_blocks(
  item: tuple[int, Corpus], counts: dict[int, int]
) -> Iterator[Block]:
  """Yields the blocks of a pair of files, numbered as in the whole corpus."""
  number, corpus = item
  first = sum(counts[other] for other in range(number))
  for block in read_blocks(corpus):
    yield block._replace(first_pair=first + block.first_pair)


class _Encode(beam.DoFn):
  """Makes records of blocks, and reports pairs that are left out."""

  DROPPED = "dropped"

  def __init__(self, plan: EncodingPlan, order: Order) -> None:
    super().__init__()
    self._plan = plan
    self._order = order

  def setup(self) -> None:
    """Loads the vocabularies, once in each worker."""
    self._encoder = PairEncoder(self._plan)

  def process(self, block: Block) -> Iterator[Any]:
    """Yields a block's records."""
    encoded = self._encoder.encode(block)
    keys = self._order.keys(encoded.pairs)
    shards = self._order.shards_of(keys)
    fingerprints = encoded.fingerprints
    if not len(fingerprints):
      fingerprints = np.zeros(len(keys), np.uint64)
    columns = (encoded.pairs, keys, shards, fingerprints, encoded.lengths)
    for pair, key, shard, fingerprint, (source, target), data in zip(
      *(column.tolist() for column in columns), encoded.records, strict=True
    ):
      yield _Record(pair, key, shard, fingerprint, (source, target), data)
    yield beam.pvalue.TaggedOutput(
      self.DROPPED,
      Statistics(
        dropped=collections.Counter(encoded.dropped),
        kept_pairs=encoded.kept_pairs,
        several_sentences=encoded.several_sentences,
      ),
    )


def _by_text(record: _Record) -> tuple[bytes, _Record]:
  """Gives a record the key that it shares with equal ones.

  Bytes, because half of the numbers are larger than Beam's integers, and a key
  must look the same to all workers.
  """
  return record.fingerprint.to_bytes(8, "big"), record


def _first_of_equal(item: tuple[bytes, Iterable[_Record]]) -> Iterator[_Record]:
  """Yields the first of equal pairs, and the others without their bytes."""
  first, *others = sorted(item[1])
  yield first
  for other in others:
    yield other._replace(data=b"")


def _measured(record: _Record) -> Statistics:
  """Returns the statistics of one record."""
  if not record.data:
    return Statistics(dropped=collections.Counter({DUPLICATE: 1}))
  return Statistics(
    1,
    record.lengths,
    collections.Counter({max(record.lengths): 1}),
    collections.Counter(),
    len(record.data),
  )


class _AddUp(beam.CombineFn):
  """Adds statistics."""

  def create_accumulator(self) -> Statistics:
    """Returns the statistics of an empty corpus."""
    return Statistics()

  def add_input(self, total: Statistics, more: Statistics) -> Statistics:
    """Adds statistics."""
    total.add_all(more)
    return total

  def merge_accumulators(self, totals: Iterable[Statistics]) -> Statistics:
    """Returns the sum of several."""
    result = Statistics()
    for total in totals:
      result.add_all(total)
    return result

  def extract_output(self, total: Statistics) -> Statistics:
    """Returns the sum."""
    return total


def _write_shard(
  item: tuple[int, Iterable[_Record | None]], paths: Sequence[str]
) -> None:
  """Writes one shard's records in their order."""
  shard, records = item
  kept = sorted(
    (record.key, record.data) for record in records if record and record.data
  )
  with (
    # A runner may have two workers try the same.
    new_file(paths[shard]) as aside,
    file_system.open_file(aside, "wb") as stream,
  ):
    for _, data in kept:
      stream.write(data)


def _write_statistics(found: Statistics, path: str) -> None:
  write_text(path, json.dumps(found.to_json()))
