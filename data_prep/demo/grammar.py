"""A seeded synchronous grammar: one derivation, an English and a German line.

The two sides differ where real languages do: articles and adjectives agree in
gender, number and case; the German verb comes second in a main clause and
last in a subordinate one; separable prefixes, infinitives and participles
close the clause; times move; tens and units swap inside numbers.
"""

from __future__ import annotations

from data_prep.demo import lexicon
from data_prep.demo.clauses import (
  EMPTY,
  Clause,
  Phrase,
  Subject,
  arrange_english,
  arrange_inverted,
  arrange_main,
  arrange_verb_last,
  punctuate,
)
from data_prep.demo.phrases import Phrases


class DemoGrammar(Phrases):
  """Draws sentence pairs; `dictionary` counts the words that stood for each."""

  def sentence(self) -> tuple[str, str]:
    """Returns a new English sentence and its German translation."""
    kind = self._rng.choices(
      (
        self._statement,
        self._time_first,
        self._reason,
        self._report,
        self._condition,
        self._question,
      ),
      weights=(35, 15, 15, 12, 8, 15),
    )[0]
    phrase, end = kind()
    return punctuate(phrase.english, end), punctuate(phrase.german, end)

  # Sentences.

  def _statement(self) -> tuple[Phrase, str]:
    return arrange_main(self._clause()), "."

  def _time_first(self) -> tuple[Phrase, str]:
    clause = self._clause(with_time=True)
    rest = clause._replace(time=EMPTY)
    return (
      Phrase(
        [*clause.time.english, *arrange_main(rest).english],
        [*clause.time.german, *arrange_inverted(rest)],
      ),
      ".",
    )

  def _reason(self) -> tuple[Phrase, str]:
    first, second = arrange_main(self._clause()), self._clause()
    return (
      Phrase(
        [
          *first.english,
          self._word("because", "weil"),
          *arrange_english(second),
        ],
        [*first.german, ",", "weil", *arrange_verb_last(second)],
      ),
      ".",
    )

  def _report(self) -> tuple[Phrase, str]:
    english, german = self._rng.choice(
      (("says", "sagt"), ("knows", "weiß"), ("believes", "glaubt"))
    )
    speaker = self._noun_phrase("nominative", lexicon.PEOPLE, plural=False)
    clause = self._clause()
    self._word("that", "dass")
    return (
      Phrase(
        [
          *speaker.english,
          self._word(english, german),
          "that",
          *arrange_english(clause),
        ],
        [*speaker.german, german, ",", "dass", *arrange_verb_last(clause)],
      ),
      ".",
    )

  def _condition(self) -> tuple[Phrase, str]:
    condition, result = self._clause(), self._clause()
    self._word("if", "wenn")
    return (
      Phrase(
        ["if", *arrange_english(condition), ",", *arrange_english(result)],
        ["wenn", *arrange_verb_last(condition), ",", *arrange_inverted(result)],
      ),
      ".",
    )

  def _question(self) -> tuple[Phrase, str]:
    clause = self._clause()
    auxiliary, rest = clause.verb.english_question
    english = [
      *auxiliary,
      *clause.subject.phrase.english,
      *rest,
      *clause.verb.particle,
      *clause.objects.english,
      *clause.place.english,
      *clause.time.english,
    ]
    return Phrase(english, arrange_inverted(clause)), "?"

  # Clauses.

  def _clause(self, with_time: bool = False) -> Clause:
    """Draws the parts of a clause."""
    plural = self._chance(0.3)
    phrase = self._noun_phrase("nominative", lexicon.PEOPLE, plural)
    subject = Subject(phrase, plural)
    tense = self._rng.choice(("present", "present", "past", "future", "modal"))
    verb, objects = self._predicate()
    time = EMPTY
    if with_time or self._chance(0.2):
      times = lexicon.TIMES["present" if tense == "modal" else tense]
      time = self._fixed(*self._rng.choice(times))
    place = self._place() if self._chance(0.25) else EMPTY
    return Clause(
      subject, self._conjugate(verb, tense, plural), objects, place, time
    )
