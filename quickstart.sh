#!/usr/bin/env bash
# From nothing to measured translations: installs into .venv, translates with the
# model that comes along, writes a small English-German corpus, trains on it for
# under three minutes on two cores, translates sentences that training has never
# seen, and scores them.
# What an earlier run has made is used again; delete quickstart/ to start over.
set -euo pipefail
cd "$(dirname "$0")"

source ./setup_environment.sh ""

echo "== The model that comes along, for everyday sentences"
transformer_main --mode=predict --model_dir=models/en_de \
  --text="My name is Tom. I live in Boston."
echo

text=quickstart/text
data=quickstart/data
model=quickstart/model

if [ ! -e "$text/test.dictionary.de" ]; then
  echo "== Writing the demo corpus"
  demo_corpus --output_dir="$text"
fi
if [ ! -e "$data/data.json" ]; then
  echo "== Preparing the data: vocabulary and training files"
  prepare_data --data_dir="$data" --vocab_size=1000 \
    --train_source="$text/train.en" --train_target="$text/train.de" \
    --dev_source="$text/dev.en" --dev_target="$text/dev.de"
fi

echo "== Training"
transformer_main --mode=train --data_dir="$data" --model_dir="$model" \
  --flagfile=quickstart.flags

echo "== Translating $text/test.en"
transformer_main --mode=predict --model_dir="$model" \
  --file="$text/test.en" --file_out=quickstart/test.out

echo
echo "== Five sentences, their translations and the references"
# awk reads to the end: an early exit would break the pipe, and the script.
paste "$text/test.en" quickstart/test.out "$text/test.de" |
  awk -F '\t' 'NR <= 5 { printf "\nsource:      %s\ntranslation: %s\nreference:   %s\n",
                 $1, $2, $3 }'
echo
echo "== Word for word, with a dictionary"
compute_bleu --translation="$text/test.dictionary.de" \
  --reference="$text/test.de"
echo
echo "== The trained model"
compute_bleu --translation=quickstart/test.out --reference="$text/test.de"
