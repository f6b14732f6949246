#!/usr/bin/env bash
# One of the Multi30k results, from the text to BLEU, in four steps:
#
#   1. a vocabulary, and a model of both directions (multi30k_both.flags);
#   2. that model translates the training text of either side;
#   3. a model of the one direction (multi30k_ende.flags, say) is trained on the
#      text and on these translations: data diversification, Nguyen et al. 2020,
#      in one round and with one model of both directions in place of several of
#      each;
#   4. it translates the test set, which is scored.
#
# Models are the means of their last five checkpoints.
#
#   git clone https://github.com/multi30k/dataset
#   bash recipes/multi30k.sh en de dataset/data/task1/raw runs
#
# The source comes first: en de, de en, en fr or en cs. Both directions of a pair
# share steps 1 and 2. Stop it with Ctrl-C; the same command goes on from there,
# and to start over, delete WORK_DIR.
#
# Flags for both trainings may follow. Each replaces the recipes' flag of its name,
# and --params_override the whole of theirs. --dtype=fp32 is faster on processors
# without fast bfloat16 units, which training tells.
set -euo pipefail

if [ $# -lt 4 ]; then
  echo "usage: bash recipes/multi30k.sh SOURCE TARGET TEXT_DIR WORK_DIR" \
    "[FLAGS...], e.g. en de dataset/data/task1/raw runs" >&2
  exit 2
fi
source=$1
target=$2
text=$3
work=$4
flags=("${@:5}")
recipes=$(dirname "$0")
recipe=$recipes/multi30k_$source$target.flags

case "$source $target" in
  "en de" | "en fr" | "en cs") other=$target ;;
  "de en") other=$source ;;
  *)
    echo "multi30k.sh: no recipe for $source to $target; there are: en de, de en," \
      "en fr, en cs" >&2
    exit 2
    ;;
esac
for part in train val test_2016_flickr; do
  for language in en "$other"; do
    if [ ! -e "$text/$part.$language.gz" ]; then
      echo "multi30k.sh: there is no $text/$part.$language.gz; TEXT_DIR is" \
        "data/task1/raw of https://github.com/multi30k/dataset" >&2
      exit 2
    fi
  done
done
if ! command -v transformer_main > /dev/null; then
  echo "multi30k.sh: transformer_main is not installed here; first:" \
    "source .venv/bin/activate" >&2
  exit 2
fi

# prepare DATA_DIR SOURCE TARGET SOURCE_FILES TARGET_FILES FLAGS...: training
# files, if there are none.
prepare() {
  local data=$1 source=$2 target=$3 sources=$4 targets=$5
  shift 5
  [ -e "$data/data.json" ] && return
  prepare_data --data_dir="$data" \
    --train_source="$sources" --train_target="$targets" \
    --dev_source="$text/val.$source.gz" --dev_target="$text/val.$target.gz" "$@"
}

# train RECIPE DATA_DIR MODEL_DIR: a model, as far as it is not trained yet, with
# its average, if there is none.
train() {
  transformer_main --flagfile="$1" --data_dir="$2" --model_dir="$3" \
    ${flags[@]+"${flags[@]}"}
  local average
  for average in "$3"/average/step-*[0-9]; do
    [ -e "$average" ] && return
  done
  transformer_main --mode=average --average_last=5 --model_dir="$3"
}

# translate MODEL_DIR IN OUT FLAGS...: the file OUT, if there is none.
translate() {
  local model=$1 in=$2 out=$3
  shift 3
  [ -e "$out" ] && return
  transformer_main --mode=predict --model_dir="$model" --checkpoint=average \
    --file="$in" --file_out="$out" "$@"
}

pair=$work/both-en-$other
run=$work/$source-$target

echo "== 1. A model of both directions"
en=$text/train.en.gz
xx=$text/train.$other.gz
prepare "$pair/one" en "$other" "$en" "$xx" --vocab_size=4000
vocabulary=$pair/one/vocab.4000.model
prepare "$pair/both" en "$other" "$en,$xx" "$xx,$en" --vocab_file="$vocabulary"
train "$recipes/multi30k_both.flags" "$pair/both" "$pair/model"

echo "== 2. Its translations of the training text"
translate "$pair/model" "$en" "$pair/train.en.translated" --alpha=1.2
translate "$pair/model" "$xx" "$pair/train.$other.translated" --alpha=1.0

echo "== 3. The model"
from=$text/train.$source.gz
to=$text/train.$target.gz
prepare "$run/data" "$source" "$target" \
  "$from,$from,$pair/train.$target.translated" \
  "$to,$pair/train.$source.translated,$to" \
  --vocab_file="$vocabulary"
train "$recipe" "$run/data" "$run/model"

echo "== 4. test_2016_flickr"
reference=$text/test_2016_flickr.$target.gz
hypothesis=$run/test_2016_flickr.$target
translate "$run/model" "$text/test_2016_flickr.$source.gz" "$hypothesis"
sacrebleu "$reference" -i "$hypothesis" -m bleu chrf --confidence
sacrebleu "$reference" -i "$hypothesis" -m bleu --lowercase --confidence
