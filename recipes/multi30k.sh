#!/usr/bin/env bash
# One of the Multi30k results, from the text to BLEU, in four steps:
#
#   1. a vocabulary, and a model of both directions (multi30k_both.flags);
#   2. that model translates the training text of either side;
#   3. a model of the one direction (multi30k_ende.flags, say) learns from the
#      text and these translations: data diversification, Nguyen et al. 2020, in
#      one round and with one model of both directions in place of several of
#      each;
#   4. it translates the test set, which is scored.
#
# Models are the means of their last five checkpoints.
#
#   git clone https://github.com/multi30k/dataset
#   bash recipes/multi30k.sh en de dataset/data/task1/raw runs
#
# The source comes first: en de, de en, en fr or en cs. WORK_DIR/both-en-de has
# steps 1 and 2, which both directions share, and WORK_DIR/en-de the others.
# Stop it with Ctrl-C: the same command goes on from there, and makes data and
# translations anew that are older than what they are made of. To start over, or
# with another text, delete these folders.
#
# Flags for both trainings may follow. Each replaces the recipes' flag of its
# name, and --params_override the whole of theirs. --dtype=fp32 is faster on
# processors without fast bfloat16 units, which training tells.
set -euo pipefail

recipes=$(dirname "$0")

fail() {
  echo "multi30k.sh: $1" >&2
  exit 2
}

# prepare DATA_DIR SOURCE TARGET SOURCE_FILES TARGET_FILES FLAGS...: training
# files, unless they are newer than all files they are made of.
prepare() {
  local data=$1 source=$2 target=$3 source_files=$4 target_files=$5
  shift 5
  local file files stale=
  IFS=, read -ra files <<< "$source_files,$target_files"
  for file in "${files[@]}"; do
    [ "$data/data.json" -nt "$file" ] || stale=yes
  done
  [ "$stale" ] || return 0
  prepare_data --data_dir="$data" \
    --train_source="$source_files" --train_target="$target_files" \
    --dev_source="$text/val.$source.gz" --dev_target="$text/val.$target.gz" "$@"
}

# train RECIPE DATA_DIR MODEL_DIR: a model, as far as it is not trained yet, and
# the average of its last checkpoints, if there is none.
train() {
  local recipe=$1 data=$2 model=$3 newest
  transformer_main --flagfile="$recipe" \
    --data_dir="$data" --model_dir="$model" ${flags[@]+"${flags[@]}"}
  newest=$(cd "$model/checkpoints" && printf '%s\n' step-*[0-9] |
    sort -t - -k 2 -n | tail -n 1)
  [ -e "$model/average/$newest" ] ||
    transformer_main --mode=average --average_last=5 --model_dir="$model"
}

# translate MODEL_DIR IN OUT FLAGS...: the file OUT, unless it is newer than the
# average.
translate() {
  local model=$1 in=$2 out=$3
  shift 3
  [ "$out" -nt "$model/average" ] ||
    transformer_main --mode=predict --model_dir="$model" --checkpoint=average \
      --file="$in" --file_out="$out" "$@"
}

# In a function, which is read before it runs: editing this file, or pulling
# another version of it, does not disturb a run.
main() {
  [ $# -ge 4 ] || fail "usage: bash recipes/multi30k.sh SOURCE TARGET TEXT_DIR \
WORK_DIR [FLAGS...], e.g. en de dataset/data/task1/raw runs"
  local source=$1 target=$2 work=$4 other part language flag command
  text=$3
  flags=("${@:5}")
  case "$source $target" in
    "en de" | "en fr" | "en cs") other=$target ;;
    "de en") other=$source ;;
    *) fail "no recipe for $source to $target; there are: en de, de en, en fr, \
en cs" ;;
  esac
  for flag in ${flags[@]+"${flags[@]}"}; do
    case "$flag" in
      --mode=* | --data_dir=* | --model_dir=*)
        fail "$flag is the script's to set"
        ;;
      --*) ;;
      *) fail "$flag is no flag; write --name=value" ;;
    esac
  done
  [[ "$text$work" != *,* ]] || fail "TEXT_DIR and WORK_DIR may have no comma"
  for part in train val test_2016_flickr; do
    for language in en "$other"; do
      [ -e "$text/$part.$language.gz" ] || fail "there is no \
$text/$part.$language.gz; TEXT_DIR is data/task1/raw of \
https://github.com/multi30k/dataset"
    done
  done
  for command in transformer_main prepare_data sacrebleu; do
    command -v "$command" > /dev/null || fail "$command is not installed here; \
first: source .venv/bin/activate"
  done

  local both=$work/both-en-$other run=$work/$source-$target
  local english=$text/train.en.gz foreign=$text/train.$other.gz
  # Translations: of the English text, and into English.
  local from_english=$both/train.en-$other to_english=$both/train.$other-en

  echo "== 1. A model of both directions"
  local vocabulary=$both/vocabulary/vocab.4000.model
  prepare "$both/vocabulary" en "$other" "$english" "$foreign" --vocab_size=4000
  prepare "$both/data" en "$other" "$english,$foreign" "$foreign,$english" \
    --vocab_file="$vocabulary"
  train "$recipes/multi30k_both.flags" "$both/data" "$both/model"

  echo "== 2. Its translations of the training text"
  translate "$both/model" "$english" "$from_english" --alpha=1.2
  translate "$both/model" "$foreign" "$to_english" --alpha=1.0

  echo "== 3. The model"
  local from=$english to=$foreign forward=$from_english backward=$to_english
  if [ "$target" = en ]; then
    from=$foreign to=$english forward=$to_english backward=$from_english
  fi
  prepare "$run/data" "$source" "$target" \
    "$from,$from,$backward" "$to,$forward,$to" --vocab_file="$vocabulary"
  train "$recipes/multi30k_$source$target.flags" "$run/data" "$run/model"

  echo "== 4. test_2016_flickr"
  local reference=$text/test_2016_flickr.$target.gz
  local hypothesis=$run/test_2016_flickr.$target
  translate "$run/model" "$text/test_2016_flickr.$source.gz" "$hypothesis"
  local score=(sacrebleu "$reference" -i "$hypothesis" --confidence)
  "${score[@]}" --format text -m bleu chrf
  "${score[@]}" --format text -m bleu --lowercase
}

main "$@"
exit
