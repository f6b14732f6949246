"""Makes lines that nobody means well with, and looks at what becomes of them.

python fuzz_lines.py MODEL VOCABULARY SCRATCH LINES LONGEST RARITY SEED

With `tests` on its path. `LONGEST` is in characters; the larger `RARITY`, the
fewer lines are that long, and 1 spreads the logarithms evenly. The lines go
through `predict`, `score` and `prepare_data`, and again in batches of another
size. Prints one JSON object of what does not hold.
"""

import json
import pathlib
import random
import sys
import unicodedata

import command_line
from command_line import MAIN, PREPARE

from official_transformer.data.prepared_data import read_prepared_data

SIDES = ("train_source", "train_target")


def characters_by_category():
  """Returns every character but a line feed, by its Unicode category."""
  found = {}
  for code in range(sys.maxunicode + 1):
    if code != 10:
      found.setdefault(unicodedata.category(chr(code)), []).append(code)
  return found


def make_lines(number, longest, rarity, rng):
  """Yields lines of bytes, none with a line feed."""
  categories = characters_by_category()
  names = sorted(categories)
  for place in range(number):
    # Most are short: there are many ways to be strange in a few characters.
    length = int(longest ** (rng.random() ** rarity))
    length = length if place % 20 else rng.randrange(4)
    kind = rng.randrange(8)
    if kind == 0:
      yield rng.randbytes(length).replace(b"\n", b"\0")
      continue
    if kind == 1:
      text = rng.choice(["a", " ", "\t", ".", "_", "\\", "\u200b", "ab "]) * (
        length
      )
    elif kind == 2:
      words = ["A", "man", "walks", "12;", "\\12;", "<pad>", "<EOS>", "</s>"]
      text = " ".join(rng.choice(words) for _ in range(length // 4))
    else:
      name = names[place % len(names)]
      mixed = [name, rng.choice(names)]
      text = "".join(
        chr(rng.choice(categories[rng.choice(mixed)])) for _ in range(length)
      )
    line = text[:length].encode("utf-8", errors="surrogatepass")
    yield line.replace(b"\n", b" ")


def run(*command):
  done = command_line.run(*command)
  return done.status, done.stderr[-600:]


def lines_of(path):
  return path.read_bytes().split(b"\n")[:-1]


def main(model, vocabulary, scratch, number, longest, rarity, seed):
  rng = random.Random(int(seed))
  root = pathlib.Path(scratch)
  root.mkdir(parents=True)
  lines = list(make_lines(int(number), int(longest), float(rarity), rng))
  others = lines[1:] + lines[:1]
  (root / "in").write_bytes(b"".join(line + b"\n" for line in lines))
  (root / "other").write_bytes(b"".join(line + b"\n" for line in others))
  problems = []
  replace = "--invalid_utf8=replace"
  base = (MAIN, f"--model_dir={model}", f"--file={root}/in", replace)
  for mode, more in (
    ("predict", ["--beam_size=2", "--extra_decode_length=3"]),
    ("score", [f"--reference_file={root}/other"]),
  ):
    found = []
    for name, limits in (
      ("one", []),
      ("two", ["--decode_batch_size=7", "--decode_batch_tokens=300"]),
    ):
      out = root / f"{mode}.{name}"
      status, said = run(
        *(*base, f"--mode={mode}", f"--file_out={out}", *more, *limits)
      )
      # Too long a pair for the memory is told at the end.
      if status not in ((0,) if mode == "predict" else (0, 1)):
        problems.append([mode, name, status, said])
        break
      found.append(lines_of(out))
      if len(found[-1]) != len(lines):
        problems.append([mode, name, len(found[-1]), len(lines)])
    if len(found) == 2:
      differing = [
        n for n, pair in enumerate(zip(*found, strict=True)) if differ(*pair)
      ]
      if differing:
        n = differing[0]
        problems.append(
          [mode, "batches", len(differing), repr(lines[n][:80]),
           repr(found[0][n][:200]), repr(found[1][n][:200])]
        )  # fmt: skip

  # Text to prepare must be UTF-8.
  def is_text(line):
    try:
      line.decode("utf-8")
      return True
    except UnicodeDecodeError:
      return False

  pairs = [
    (a, b) for a, b in zip(lines, others, strict=True)
    if is_text(a) and is_text(b)
  ]  # fmt: skip
  for side, name in enumerate(("source", "target")):
    (root / name).write_bytes(b"".join(pair[side] + b"\n" for pair in pairs))
  status, said = run(
    PREPARE,
    *(f"--{side}={root}/{side.split('_')[1]}" for side in SIDES),
    *(f"--data_dir={root}/data", f"--vocab_file={vocabulary}", "--shards=1"),
  )
  kept = dropped = 0
  if status:
    problems.append(["prepare_data", status, said])
  else:
    content = json.loads((root / "data" / "data.json").read_text("utf-8"))
    kept = content["train"]["pairs"]
    dropped = sum(content["train"]["dropped"].values())
    size = content["vocabulary"]["size"]
    data = read_prepared_data(str(root / "data"), size, with_dev=False)
    if kept + dropped != len(pairs) or data.train.pairs != kept:
      problems.append(["pairs", len(pairs), kept, dropped, data.train.pairs])
  print(
    json.dumps(
      {"lines": len(lines), "kept": kept, "dropped": dropped,
       "problems": problems}
    )
  )  # fmt: skip


def differ(one, other):
  """Returns whether two results are of other text, or of another score."""
  if one == other:
    return False
  if b"\t" not in one:
    return True
  first, second = (
    [float(x) for x in line.split(b"\t")] for line in (one, other)
  )
  # Sums of numbers of some size, in another order.
  return any(
    abs(a - b) > 1e-4 * max(1.0, abs(a))
    for a, b in zip(first, second, strict=True)
  )


if __name__ == "__main__":
  main(*sys.argv[1:])
