"""The phrases that sentences of the demo grammar are made of."""

from __future__ import annotations

import collections
import random

from data_prep.demo import lexicon
from data_prep.demo.clauses import (
  EMPTY,
  Phrase,
  VerbForms,
  verb_cluster,
)


class Phrases:
  """Draws verbs with their objects, noun phrases and places.

  Attributes:
    dictionary: for each English word, how often it was translated by each
      German word: the knowledge of a perfect dictionary.
  """

  def __init__(self, seed: int) -> None:
    self._rng = random.Random(seed)
    self.dictionary: dict[str, collections.Counter[str]] = (
      collections.defaultdict(collections.Counter)
    )

  def _predicate(self) -> tuple[lexicon.Verb, Phrase]:
    """Draws a verb and the objects it takes."""
    kind = self._rng.choices(
      ("thing", "person", "dative", "giving", "none"),
      weights=(45, 15, 12, 10, 18),
    )[0]
    if kind == "none":
      return self._rng.choice(lexicon.INTRANSITIVE_VERBS), EMPTY
    if kind == "thing":
      verb = self._rng.choice(lexicon.TRANSITIVE_VERBS)
      return verb, self._noun_phrase("accusative", lexicon.THINGS)
    if kind == "person":
      verb = self._rng.choice(lexicon.PERSON_VERBS)
      return verb, self._noun_phrase("accusative", lexicon.PEOPLE)
    receiver = self._noun_phrase("dative", lexicon.PEOPLE)
    if kind == "dative":
      return self._rng.choice(lexicon.DATIVE_VERBS), receiver
    gift = self._noun_phrase("accusative", lexicon.THINGS)
    return self._rng.choice(lexicon.GIVING_VERBS), Phrase(
      receiver.english + gift.english, receiver.german + gift.german
    )

  def _conjugate(
    self, verb: lexicon.Verb, tense: str, plural: bool
  ) -> VerbForms:
    """Puts a verb into a tense and number."""
    base, third, past = verb.english
    singular, infinitive, participle = verb.german
    particle = verb.particle.split()
    for word in particle:
      self._word(word, verb.prefix)
    if tense == "present":
      finite = infinitive if plural else singular
      english = base if plural else third
      self._word(english, finite)
      return VerbForms(
        [english],
        (["do" if plural else "does"], [base]),
        particle,
        finite,
        verb.prefix,
        "",
      )
    if tense == "past":
      if verb.auxiliary == "sein":
        finite = "sind" if plural else "ist"
      else:
        finite = "haben" if plural else "hat"
      rest = verb.prefix + participle
      self._word(past, rest)
      return VerbForms([past], (["did"], [base]), particle, finite, "", rest)
    modal = (
      lexicon.FUTURE if tense == "future" else self._rng.choice(lexicon.MODALS)
    )
    english_modal = modal[0] if plural else modal[1]
    finite = modal[3] if plural else modal[2]
    rest = verb.prefix + infinitive
    self._word(english_modal.split()[0], finite)
    self._word(base, rest)
    if modal[0] == "want to":
      question = (["do" if plural else "does"], ["want", "to", base])
    else:
      question = ([modal[0]], [base])
    return VerbForms(
      [*english_modal.split(), base], question, particle, finite, "", rest
    )

  # Noun phrases.

  def _noun_phrase(
    self,
    case: str,
    nouns: tuple[lexicon.Noun, ...],
    plural: bool | None = None,
  ) -> Phrase:
    """Draws determiner, adjective and noun, at times a relative clause."""
    if plural is None:
      plural = self._chance(0.3)
    noun = self._rng.choice(nouns)
    gender = "p" if plural else noun.gender
    determiner, endings = self._determiner(case, gender)
    english, german = list(determiner.english), list(determiner.german)
    if self._chance(0.4):
      adjective = self._rng.choice(
        lexicon.PERSONAL_ADJECTIVES
        if nouns is lexicon.PEOPLE
        else lexicon.PLAIN_ADJECTIVES
      )
      ending = lexicon.ADJECTIVE_ENDINGS[endings][case][gender]
      english.append(self._word(adjective.english, adjective.stem + ending))
      german.append(adjective.stem + ending)
    declined = self._decline(noun, case, plural)
    english += declined.english
    german += declined.german
    if english[0] == "a" and english[1][0] in "aeiou":
      english[0] = "an"
      self._word("an", german[0])
    if self._chance(0.12) and nouns is not lexicon.PLACES:
      relative = self._relative_clause(gender, nouns is lexicon.PEOPLE)
      english += relative.english
      german += relative.german
    return Phrase(english, german)

  def _determiner(self, case: str, gender: str) -> tuple[Phrase, str]:
    """Draws an article or a number; returns which adjective endings follow."""
    plural = gender == "p"
    if plural and self._chance(0.4):
      english, german = lexicon.number_words(self._rng.randrange(2, 100))
      return self._fixed(english, german), "number"
    singular, several, stem, endings = self._rng.choices(
      lexicon.DETERMINERS, weights=(5, 2, 0 if plural else 4, 2, 1)
    )[0]
    if stem == "d":
      german = lexicon.ARTICLE[case][gender]
    elif endings == "der":
      german = stem + lexicon.DIES_ENDINGS[case][gender]
    else:
      german = stem + lexicon.EIN_ENDINGS[case][gender]
    english = several if plural and several else singular
    return self._fixed(english, german), endings

  def _relative_clause(self, gender: str, person: bool) -> Phrase:
    """Draws "who sees the dog" or "that the woman sees"."""
    plural = gender == "p"
    tense = self._rng.choice(("present", "past"))
    pronoun = "who" if person else "that"
    if person:
      drawn, objects = self._predicate_without_relatives()
      verb = self._conjugate(drawn, tense, plural)
      german = lexicon.ARTICLE["nominative"][gender]
      self._word(pronoun, german)
      return Phrase(
        [pronoun, *verb.english, *verb.particle, *objects.english],
        [",", german, *objects.german, *verb_cluster(verb), ","],
      )
    agent_plural = self._chance(0.3)
    agent = self._simple_noun_phrase("nominative", agent_plural)
    drawn = self._rng.choice(lexicon.TRANSITIVE_VERBS)
    verb = self._conjugate(drawn, tense, agent_plural)
    german = lexicon.ARTICLE["accusative"][gender]
    self._word(pronoun, german)
    return Phrase(
      [pronoun, *agent.english, *verb.english, *verb.particle],
      [",", german, *agent.german, *verb_cluster(verb), ","],
    )

  def _predicate_without_relatives(self) -> tuple[lexicon.Verb, Phrase]:
    """Draws a verb with at most one plain object, for inside a clause."""
    if self._chance(0.3):
      return self._rng.choice(lexicon.INTRANSITIVE_VERBS), EMPTY
    if self._chance(0.3):
      receiver = self._simple_noun_phrase("dative", self._chance(0.3))
      return self._rng.choice(lexicon.DATIVE_VERBS), receiver
    person = self._simple_noun_phrase("accusative", self._chance(0.3))
    return self._rng.choice(lexicon.PERSON_VERBS), person

  def _simple_noun_phrase(self, case: str, plural: bool) -> Phrase:
    """Draws determiner and person."""
    noun = self._rng.choice(lexicon.PEOPLE)
    gender = "p" if plural else noun.gender
    determiner = self._fixed("the", lexicon.ARTICLE[case][gender])
    declined = self._decline(noun, case, plural)
    return Phrase(
      determiner.english + declined.english, determiner.german + declined.german
    )

  def _decline(self, noun: lexicon.Noun, case: str, plural: bool) -> Phrase:
    """Puts a noun into a case and number."""
    english = noun.english_plural if plural else noun.english
    german = noun.german_plural if plural else noun.german
    if plural and case == "dative" and german[-1] not in "ns":
      german += "n"
    return Phrase([self._word(english, german)], [german])

  def _place(self) -> Phrase:
    """Draws "in the garden"."""
    english, german = self._rng.choice(lexicon.PLACE_PREPOSITIONS)
    preposition = self._fixed(english, german)
    where = self._noun_phrase("dative", lexicon.PLACES, plural=False)
    words = [*preposition.german, *where.german]
    if words[:2] == ["in", "dem"]:
      words[:2] = ["im"]
    return Phrase([*preposition.english, *where.english], words)

  # Words.

  def _chance(self, probability: float) -> bool:
    return self._rng.random() < probability

  def _word(self, english: str, german: str) -> str:
    """Notes a pair in the dictionary; returns the English word."""
    self.dictionary[english][german] += 1
    return english

  def _fixed(self, english: str, german: str) -> Phrase:
    """Returns a phrase that is translated as a whole."""
    first, *others = english.split()
    self._word(first, german)
    for other in others:
      self._word(other, "")
    return Phrase(english.split(), german.split())
