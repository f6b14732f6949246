"""Makes three random Marian models by Hugging Face's own code, and its answers.

Runs where torch and transformers 5 are, not in this project's environment:

  python make_marian_models.py fixtures/marian

Each model has a directory as `save_pretrained` writes it, and `answers.json`;
`vocabulary` has the SentencePiece models and the JSON vocabulary of all three,
as OPUS-MT's models have them.
"""

import json
import pathlib
import random
import sys

import numpy as np
import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

SENTENCES = 200
# Sizes, and what is added to the end's logit, so that most sentences end.
MODELS = {
  "tied": {"d_model": 16, "heads": 2, "layers": (2, 2), "ffn": 32, "end": 4},
  "larger": {"d_model": 32, "heads": 4, "layers": (3, 1), "ffn": 48, "end": 4},
  "untied": {
    "d_model": 16,
    "heads": 4,
    "layers": (1, 2),
    "ffn": 24,
    "end": 3.5,
  },
}
WORDS = {
  "source": "the a dog cat house old man sees runs to from small red fish",
  "target": "der ein hund katze haus alter mann sieht läuft zu von klein rot",
}


def lines_of(side, number, rng):
  words = WORDS[side].split()
  return [
    " ".join(rng.choices(words, k=rng.randint(1, 9)))
    + rng.choice([".", "!", ""])
    for _ in range(number)
  ]


def write_vocabulary(directory, rng):
  pieces = []
  for side in WORDS:
    text = directory / f"{side}.txt"
    text.write_text("\n".join(lines_of(side, 400, rng)) + "\n")
    sentencepiece.SentencePieceTrainer.Train(
      input=str(text),
      model_prefix=str(directory / side),
      vocab_size=40,
      hard_vocab_limit=False,
      minloglevel=2,
    )
    (directory / f"{side}.model").rename(directory / f"{side}.spm")
    (directory / f"{side}.vocab").unlink()
    text.unlink()
    processor = sentencepiece.SentencePieceProcessor(
      model_file=str(directory / f"{side}.spm")
    )
    pieces += [processor.IdToPiece(i) for i in range(3, len(processor))]
  pieces = ["</s>", "<unk>", ">>deu<<", *dict.fromkeys(pieces), "<pad>"]
  vocabulary = {piece: i for i, piece in enumerate(pieces)}
  (directory / "vocab.json").write_text(json.dumps(vocabulary))
  return len(pieces)


def make(directory, vocabulary, name, sizes):
  rng = random.Random(name)
  torch.manual_seed(len(name))
  directory.mkdir(parents=True, exist_ok=True)
  size = len(json.loads((vocabulary / "vocab.json").read_text()))
  tied = name != "untied"
  config = MarianConfig(
    vocab_size=size,
    decoder_vocab_size=size,
    d_model=sizes["d_model"],
    encoder_layers=sizes["layers"][0],
    decoder_layers=sizes["layers"][1],
    encoder_attention_heads=sizes["heads"],
    decoder_attention_heads=sizes["heads"],
    encoder_ffn_dim=sizes["ffn"],
    decoder_ffn_dim=sizes["ffn"],
    activation_function="swish",
    scale_embedding=True,
    max_position_embeddings=128,
    pad_token_id=size - 1,
    eos_token_id=0,
    forced_eos_token_id=None,
    decoder_start_token_id=size - 1,
    share_encoder_decoder_embeddings=tied,
    tie_word_embeddings=tied,
  )
  model = MarianMTModel(config).eval()
  with torch.no_grad():
    for key, parameter in model.named_parameters():
      if "norm" not in key and "positions" not in key:
        # Weights of the usual size would end nothing, or everything.
        parameter.add_(torch.randn_like(parameter) * 0.45)
    bias = torch.randn_like(model.final_logits_bias) * 0.3
    bias[0, 0] += sizes["end"]
    model.final_logits_bias.copy_(bias)
  model.save_pretrained(directory)
  tokenizer = MarianTokenizer(
    source_spm=str(vocabulary / "source.spm"),
    target_spm=str(vocabulary / "target.spm"),
    vocab=str(vocabulary / "vocab.json"),
  )
  sources = lines_of("source", SENTENCES, rng)
  targets = lines_of("target", SENTENCES, rng)
  answers = {"sources": sources, "targets": targets, "found": []}
  for number, source in enumerate(sources):
    ids = tokenizer(source, return_tensors="pt").input_ids
    labels = tokenizer(
      text_target=targets[number], return_tensors="pt"
    ).input_ids
    row = {"source_ids": ids[0].tolist(), "target_ids": labels[0].tolist()}
    with torch.no_grad():
      if number < 10:
        logits = model(input_ids=ids, labels=labels).logits[0]
        row["logits"] = np.round(logits.numpy().astype(float), 6).tolist()
      found = model.generate(
        ids,
        num_beams=4,
        length_penalty=0.0,
        # Ours is so many tokens longer than the source, EOS included.
        max_length=ids.shape[1] + 50 + 1,
        forced_eos_token_id=None,
        early_stopping=False,
        bad_words_ids=[[size - 1]],
        renormalize_logits=True,
        return_dict_in_generate=True,
        output_scores=True,
      )
    row["ids"] = found.sequences[0, 1:].tolist()
    row["score"] = float(found.sequences_scores[0])
    row["text"] = tokenizer.decode(row["ids"], skip_special_tokens=True)
    answers["found"].append(row)
  with open(directory / "answers.json", "w", encoding="utf-8") as stream:
    json.dump(answers, stream, ensure_ascii=False)
  lengths = [len(row["ids"]) for row in answers["found"]]
  ended = sum(row["ids"][-1] == 0 for row in answers["found"])
  print(name, size, np.mean(lengths), f"{ended} ended")


if __name__ == "__main__":
  root = pathlib.Path(sys.argv[1])
  (root / "vocabulary").mkdir(parents=True, exist_ok=True)
  write_vocabulary(root / "vocabulary", random.Random(1))
  for name, sizes in MODELS.items():
    make(root / name, root / "vocabulary", name, sizes)
