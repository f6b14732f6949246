"""Turning another Transformer's checkpoint into a model directory.

Shapes: V rows of the table, D hidden size, F filter size, N heads, H head
size.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official_transformer.errors import InputError
from official_transformer.importing.foreign_checkpoint import (
  read_tensors,
  read_weights,
  stored_shapes,
)
from official_transformer.importing.formats import (
  EMBEDDING,
  FORMATS,
  ROUNDED_ROWS,
  SOURCE_EMBEDDING,
  TARGET_SPACE,
  CheckpointFormat,
  Placement,
)
from official_transformer.importing.model_writing import (
  new_directory,
  write_model,
)
from official_transformer.model.building import build_transformer
from official_transformer.model_directory.description import Origin
from official_transformer.model_params import (
  DEFAULT_PARAM_SET,
  PARAM_SETS,
  TransformerParams,
  get_params,
)
from official_transformer.storage import file_system
from official_transformer.text.identity import Vocabularies
from official_transformer.text.vocabulary_files import (
  VocabFiles,
  load_vocabularies,
)

ROOT = "transformer/"


@dataclasses.dataclass(frozen=True)
class ImportRequest:
  """A user's statements about a checkpoint.

  Attributes:
    format: a key of `FORMATS`.
    checkpoint: path of the checkpoint without `.index`, or its directory.
    vocab_files: files of the vocabularies it was trained with.
    param_set: the set it was trained with, or None: the one of its size.
    overrides: parameters by field that no size shows, such as `num_heads`.
    target_space_id: row of Tensor2Tensor's target space embedding.
    spare_rows: rows of the table beyond the entries of the vocabulary; None
      accepts 0 to `ROUNDED_ROWS`, which rounding adds.
  """

  format: str
  checkpoint: str
  vocab_files: VocabFiles
  param_set: str | None
  overrides: dict[str, Any]
  target_space_id: int | None
  spare_rows: int | None = None


class Source(NamedTuple):
  """A stored variable, and the place of it or of a part of it in the model.

  Attributes:
    name: as stored.
    shape: as stored.
    placement: in our model.
  """

  name: str
  shape: tuple[int, ...]
  placement: Placement


def import_checkpoint(request: ImportRequest, model_dir: str) -> str:
  """Writes a model directory with the weights of a checkpoint.

  The directory has one checkpoint, of step 0 and without optimizer state: it
  can translate, and training continues from it with a fresh schedule.

  Returns:
    One line that describes the imported model.

  Raises:
    InputError: if the checkpoint, the vocabulary and the flags do not
      make one model; all differences are listed.
  """
  directory = new_directory(model_dir)
  loaded = load_vocabularies(request.vocab_files)
  vocabularies = loaded.identity
  naming = FORMATS[request.format]
  prefix = _find_prefix(request.checkpoint)
  shapes = stored_shapes(prefix)
  sources = _place_all(shapes, naming, request.format, prefix)
  _part_tables(sources, vocabularies, request)
  params = _infer_params(sources, naming, request)
  rows = params.source_vocab_size or params.vocab_size, params.vocab_size
  spare = [_spare_rows(side, vocabularies, rows, request) for side in (0, 1)]
  transformer = build_transformer(params)
  wanted = {v.path: tuple(v.shape) for v in transformer.weights}
  _check(sources, wanted, params.num_heads, prefix)
  if request.target_space_id is not None and TARGET_SPACE not in sources:
    raise InputError(
      f"--target_space_id={request.target_space_id}: the checkpoint has no "
      "target space embedding, which is Tensor2Tensor's; leave the flag out"
    )
  values = _assemble(sources, wanted, prefix, request.target_space_id)
  step = _step(prefix, shapes, naming)
  write_model(
    directory,
    transformer,
    values,
    loaded,
    Origin(request.format, file_system.absolute(prefix), step),
  )
  parameters = sum(int(np.prod(shape)) for shape in wanted.values())
  return (
    f"imported {len(wanted)} variables, {parameters:,} parameters"
    + (f" of step {step}" if step is not None else "")
    + f", into {model_dir}: {params.num_hidden_layers} layers of "
    f"{params.hidden_size}, filter {params.filter_size}, {params.num_heads} "
    f"heads, start symbol {params.start_symbol}, "
    f"{' and '.join(map(str, dict.fromkeys(vocabularies.sizes)))} entries in "
    "the vocabulary"
    + (
      f" ({max(spare)} more rows in the table, never shown)"
      if any(spare)
      else ""
    )
  )


def _part_tables(
  sources: dict[str, list[Source]],
  vocabularies: Vocabularies,
  request: ImportRequest,
) -> None:
  """Gives the source the one of two tables that is its own.

  Table names show the size of a vocabulary, but not its side.

  Args:
    sources: stored variables by our paths; changed.
    vocabularies: vocabularies of both sides.
    request: the user's request.
  """
  tables: dict[str, list[Source]] = defaultdict(list)
  for part in sources[EMBEDDING]:
    tables[re.sub(r"_\d+$", "", part.name)].append(part)
  rows = {
    name: sum(part.shape[0] for part in parts) for name, parts in tables.items()
  }
  if len(tables) == 1 and vocabularies.is_joint:
    return
  if len(tables) == 2 and not vocabularies.is_joint:
    for source, target in itertools.permutations(tables):
      spare = (
        rows[source] - vocabularies.source.size,
        rows[target] - vocabularies.target.size,
      )
      if all(0 <= n <= ROUNDED_ROWS for n in spare):
        sources[SOURCE_EMBEDDING] = tables[source]
        sources[EMBEDDING] = tables[target]
        return
  raise InputError(
    f"{request.checkpoint} has {len(tables)} embedding table"
    f"{'s' * (len(tables) > 1)}, of {' and '.join(map(str, rows.values()))} "
    f"rows, for {request.vocab_files} with {vocabularies}: the model was "
    "trained with other vocabularies. One table is for one --vocab_file, two "
    "are for --source_vocab_file and --target_vocab_file"
  )


def _spare_rows(
  side: int,
  vocabularies: Vocabularies,
  tables: tuple[int, int],
  request: ImportRequest,
) -> int:
  """Returns how many more rows a table has than its vocabulary entries.

  Args:
    side: 0 is the source, 1 the target.
    vocabularies: vocabularies of both.
    tables: rows of both.
    request: the user's request.

  Raises:
    InputError: if the vocabulary does not fit the table.
  """
  rows = tables[side]
  spare = rows - vocabularies.sizes[side]
  given = request.spare_rows
  if spare == given or (given is None and 0 <= spare <= ROUNDED_ROWS):
    return spare
  raise InputError(
    f"{request.vocab_files[side]} has {rows - spare} entries but the "
    f"checkpoint's table has {rows} rows: the model was trained with another "
    "vocabulary"
    + (
      f". If a constant decided its table's size, as in upstream's model, say "
      f"so with --spare_rows={spare}"
      if spare > 0
      else ""
    )
  )


def _find_prefix(checkpoint: str) -> str:
  """Returns a checkpoint's prefix, given it, its index file or directory."""
  prefix: str | None = checkpoint.removesuffix(".index")
  if file_system.is_directory(checkpoint):
    try:
      prefix = tf.train.latest_checkpoint(checkpoint)
    except ValueError as error:
      raise InputError(
        f"{checkpoint}/checkpoint names no checkpoint "
        f"({error}); pass the path of a checkpoint, without .index, as "
        "--checkpoint"
      ) from None
  if prefix is None or not file_system.exists(prefix + ".index"):
    raise InputError(
      f"no checkpoint {checkpoint}: give its path without the ending, where "
      "PATH.index and PATH.data-00000-of-... are, or its directory"
    )
  return prefix


def _place_all(
  shapes: dict[str, tuple[int, ...]],
  naming: CheckpointFormat,
  format_name: str,
  prefix: str,
) -> dict[str, list[Source]]:
  """Returns the stored variables that make up each of ours, by path."""
  sources: dict[str, list[Source]] = defaultdict(list)
  unknown = []
  for name, shape in sorted(shapes.items()):
    placements = naming.place(name)
    if placements is None:
      unknown.append(name)
      continue
    for placement in placements:
      sources[placement.path].append(Source(name, shape, placement))
  if EMBEDDING not in sources:
    others = [
      other
      for other, naming in FORMATS.items()
      if any(
        place.path == EMBEDDING
        for name in shapes
        for place in naming.place(name) or []
      )
    ]
    raise InputError(
      f"{prefix} has no embedding table shared by source, target and softmax "
      f"under a name of --format={format_name}"
      + (f"; by its names it is --format={others[0]}" if others else "")
      + ". Its variables: "
      + (", ".join(sorted(shapes)[:20]) + (", ..." if len(shapes) > 20 else ""))
    )
  if unknown:
    raise InputError(
      f"unknown variables in {prefix}; a model of another kind?\n  "
      + "\n  ".join(unknown)
    )
  return sources


def _infer_params(
  sources: dict[str, list[Source]],
  naming: CheckpointFormat,
  request: ImportRequest,
) -> TransformerParams:
  """Reads all sizes off the variables, and adds the user's statements."""
  inferred = _inferred_sizes(sources)
  names = [part.name for parts in sources.values() for part in parts]
  not_inferred: dict[str, Any] = {
    "start_symbol": naming.start_symbol("num_heads" in inferred, names)
  }
  usual = _set_of_size(inferred["hidden_size"])
  if not {"num_heads"} & (inferred.keys() | request.overrides.keys()):
    if usual is None:
      raise InputError(
        f"the number of heads cannot be read off {request.checkpoint}, and no "
        f"parameter set has its hidden size {inferred['hidden_size']}: pass "
        "--num_heads"
      )
    not_inferred["num_heads"] = usual.num_heads
  # Sizes of a parameter set are replaced by the inferred ones; its dropout,
  # schedule and batch size are used if training continues.
  params = (
    get_params(request.param_set)
    if request.param_set
    else usual or get_params(DEFAULT_PARAM_SET)
  )
  given = {**(_sizes(params) if request.param_set else {}), **request.overrides}
  differences = [
    f"{name}: {given[name]} given, {value} in the checkpoint"
    for name, value in inferred.items()
    if name in given and given[name] != value
  ]
  if differences:
    raise InputError(
      f"{request.checkpoint} is not such a model: {'; '.join(differences)}"
    )
  return dataclasses.replace(
    params, **{**not_inferred, **request.overrides, **inferred}
  )


def _inferred_sizes(sources: dict[str, list[Source]]) -> dict[str, Any]:
  """Returns the parameters that shapes show, by field."""
  tables = sources[EMBEDDING]
  layers = [
    int(match[1])
    for path in sources
    if (match := re.match(r"(?:en|de)coder_stack/layer_(\d+)/", path))
  ]
  inferred: dict[str, Any] = {
    "vocab_size": sum(source.shape[0] for source in tables),
    "source_vocab_size": sum(
      source.shape[0] for source in sources.get(SOURCE_EMBEDDING, [])
    ),
    "hidden_size": tables[0].shape[-1],
    "num_hidden_layers": max(layers, default=0) + 1,
    "target_space_embedding": TARGET_SPACE in sources,
  }
  for path, parts in sources.items():
    if path.endswith(("/filter_bias", "/filter_kernel")):
      inferred["filter_size"] = parts[0].shape[-1]
      break
  query = "encoder_stack/layer_0/self_attention/attention/query_kernel"
  for source in sources.get(query, []):
    if len(source.shape) == 3 and source.shape[0] > 1:  # [D, N, H]
      inferred["num_heads"] = source.shape[1]
  return inferred


def _sizes(params: TransformerParams) -> dict[str, Any]:
  """Returns the sizes of a parameter set."""
  names = ("hidden_size", "num_hidden_layers", "filter_size", "num_heads")
  return {name: getattr(params, name) for name in names}


def _set_of_size(hidden_size: int) -> TransformerParams | None:
  """Returns the parameter set of a hidden size, or None."""
  sets = PARAM_SETS.values()
  return next((p for p in sets if p.hidden_size == hidden_size), None)


def _check(
  sources: dict[str, list[Source]],
  wanted: dict[str, tuple[int, ...]],
  num_heads: int,
  prefix: str,
) -> None:
  """Lists all variables that are missing, unknown or misshapen."""
  problems = [
    f"missing: {path.removeprefix(ROOT)}"
    for path in sorted(wanted)
    if path.removeprefix(ROOT) not in sources
  ]
  for path, parts in sorted(sources.items()):
    shape = wanted.get(ROOT + path)
    if shape is None:
      problems += [f"unknown: {part.name}" for part in parts]
      continue
    stored = [
      f"{part.name} {part.shape}"
      for part in parts
      if not _fits(path, part, shape, num_heads)
    ]
    shards = [part.placement.shard for part in parts]
    if sorted(shards) != list(range(len(parts))):
      stored.append(
        f"{len(parts)} variables: {', '.join(p.name for p in parts)}"
      )
    problems += [f"shape of {path}: needed {shape}, stored {s}" for s in stored]
  if problems:
    raise InputError(
      f"{prefix} does not make one model:\n  " + "\n  ".join(problems)
    )


def _fits(
  path: str, part: Source, shape: tuple[int, ...], num_heads: int
) -> bool:
  """Returns whether a stored variable can become (part of) one of ours."""
  if path in (EMBEDDING, SOURCE_EMBEDDING):
    return len(part.shape) == 2 and part.shape[1] == shape[1]
  if path == TARGET_SPACE:
    return len(part.shape) == 2 and part.shape[1] == shape[0]
  stored = part.shape
  while len(stored) > len(shape) and stored[0] == 1:  # A convolution's width.
    stored = stored[1:]
  if len(stored) == 3:
    output = path.endswith("output_kernel")  # [N, H, D], others [D, N, H]
    if stored[0 if output else 1] != num_heads:
      return False
    stored = (
      (stored[0] * stored[1], stored[2])
      if output
      else (stored[0], stored[1] * stored[2])
    )
  return stored == (*shape[:-1], shape[-1] * part.placement.parts)


def _assemble(
  sources: dict[str, list[Source]],
  wanted: dict[str, tuple[int, ...]],
  prefix: str,
  target_space_id: int | None,
) -> dict[str, np.ndarray]:
  """Reads all variables, in the shapes and under the paths of this project."""
  values = {}
  for path, shape in wanted.items():
    parts = sorted(
      sources[path.removeprefix(ROOT)], key=lambda part: part.placement.shard
    )
    stored = read_weights(prefix, [part.name for part in parts])
    if path in (ROOT + EMBEDDING, ROOT + SOURCE_EMBEDDING):
      value = np.concatenate([stored[part.name] for part in parts])
    elif path == ROOT + TARGET_SPACE:
      value = _target_space(stored[parts[0].name], target_space_id)
    else:
      placement = parts[0].placement
      fused = stored[parts[0].name].reshape(
        *shape[:-1], shape[-1] * placement.parts
      )
      value = np.split(fused, placement.parts, axis=-1)[placement.part]
    values[path] = np.asarray(value, np.float32)
  return values


def _target_space(table: np.ndarray, row: int | None) -> np.ndarray:
  """Returns the row of the target space that the model was trained for."""
  if row is None or not 0 <= row < len(table):
    raise InputError(
      "the checkpoint has Tensor2Tensor's target space embedding: pass "
      f"--target_space_id, from 0 to {len(table) - 1}, the SpaceID of the "
      "problem's target (3 English, 6 French, 8 German, 16 Chinese tokens; "
      "4 English, 9 German BPE; 0 if the problem names none)"
    )
  return table[row]


def _step(
  prefix: str, shapes: dict[str, tuple[int, ...]], naming: CheckpointFormat
) -> int | None:
  """Returns how many updates the checkpoint has had; None if unknown."""
  for name in shapes:
    if naming.is_step(name):
      value = np.asarray(read_tensors(prefix, [name])[name])
      if value.dtype.kind in "iuf" and value.size == 1 and np.isfinite(value):
        return int(value.item())
  return None
