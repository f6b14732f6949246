import pytest
from sacrebleu.metrics import BLEU

from official_transformer.evaluation import bleu_tokenizer
from official_transformer.evaluation.bleu_tokenizer import choose_tokenizer

CHINESE = ["我喜欢学习。", "他在北京工作。"]
JAPANESE = ["私は本を読みます。", "彼女は東京に住んでいます。"]
WITHOUT_BLANKS = [
  "ฉันรักการอ่านหนังสือ",  # Thai.
  "ຂ້ອຍມັກອ່ານປຶ້ມ",  # Lao.
  "ខ្ញុំចូលចិត្តអានសៀវភៅ",  # Khmer.
  "ကျွန်တော်စာဖတ်ရတာကြိုက်တယ်",  # Burmese.
  "ང་དཔེ་ཆ་ཀློག་པར་དགའ།",  # Tibetan.
]
KOREAN = ["나는 학생입니다.", "그는 서울에 삽니다."]


@pytest.mark.parametrize(
  ("references", "tokenizer"),
  [
    (["A dog runs.", "Zwei Männer."], "13a"),
    (["Собака бежит."], "13a"),
    (["", "..."], "13a"),
    (CHINESE, "zh"),
    ([*CHINESE, "He said OK."], "zh"),
    # The package that each of them needs is not here.
    (JAPANESE, "char"),
    (KOREAN, "char"),
    *(([line], "char") for line in WITHOUT_BLANKS),
  ],
)
def test_the_script_of_the_references_decides(references, tokenizer):
  choice = choose_tokenizer("auto", references)
  assert choice.name == tokenizer
  assert bool(choice.reason) == (tokenizer != "13a")


@pytest.mark.parametrize(
  ("references", "tokenizer", "extra"),
  [(JAPANESE, "ja-mecab", "ja"), (KOREAN, "ko-mecab", "ko")],
)
def test_with_its_package_a_language_has_its_own(
  references, tokenizer, extra, monkeypatch
):
  assert f"sacrebleu[{extra}]" in choose_tokenizer("auto", references).reason
  monkeypatch.setattr(bleu_tokenizer, "problem_of", lambda name: None)
  choice = choose_tokenizer("auto", references)
  assert choice.name == tokenizer
  assert "pip" not in choice.reason


def test_what_is_asked_for_is_taken():
  assert choose_tokenizer("intl", CHINESE) == ("intl", "")


def test_a_missing_package_is_named():
  assert "sacrebleu[ja]" in bleu_tokenizer.problem_of("ja-mecab")
  assert bleu_tokenizer.problem_of("zh") is None


def test_13a_leaves_chinese_whole_and_the_choice_does_not():
  one = ["我喜欢学习中文和数学。"]
  other = ["我喜欢学习中文和物理。"]
  scores = {
    name: BLEU(tokenize=name).corpus_score(one, [other]).score
    for name in ("13a", choose_tokenizer("auto", other).name)
  }
  assert scores["13a"] == 0
  assert scores["zh"] > 60


@pytest.mark.parametrize("line", WITHOUT_BLANKS)
def test_a_sentence_that_lacks_a_character_is_nearly_right(line):
  name = choose_tokenizer("auto", [line]).name
  found = BLEU(tokenize=name).corpus_score([line[:-1]], [[line]])
  assert found.score > 50
