"""Arranging the parts of a clause in English and in German word order."""

from __future__ import annotations

from typing import NamedTuple


class Phrase(NamedTuple):
  """Words of one constituent in both languages."""

  english: list[str]
  german: list[str]


class Subject(NamedTuple):
  """A subject, and whether its verb is plural."""

  phrase: Phrase
  plural: bool


class VerbForms(NamedTuple):
  """A verb in its tense.

  Attributes:
    english: in a statement, e.g. ["must", "pick"].
    english_question: auxiliary and rest, e.g. (["must"], ["pick"]).
    particle: word after the English verb or its object.
    finite: the German verb that agrees with the subject.
    prefix: its separable prefix, if the finite verb has one; else empty.
    rest: German infinitive or participle that closes the clause, or empty.
  """

  english: list[str]
  english_question: tuple[list[str], list[str]]
  particle: list[str]
  finite: str
  prefix: str
  rest: str


class Clause(NamedTuple):
  """The parts that a main, a subordinate or an inverted clause arranges."""

  subject: Subject
  verb: VerbForms
  objects: Phrase
  place: Phrase
  time: Phrase


EMPTY = Phrase([], [])


def arrange_english(clause: Clause) -> list[str]:
  """Arranges an English statement."""
  return [
    *clause.subject.phrase.english,
    *clause.verb.english,
    *clause.verb.particle,
    *clause.objects.english,
    *clause.place.english,
    *clause.time.english,
  ]


def _middle(clause: Clause) -> list[str]:
  """Arranges the words between the German verb's two places."""
  return [
    *clause.time.german,
    *clause.objects.german,
    *clause.place.german,
  ]


def arrange_main(clause: Clause) -> Phrase:
  """Arranges a main clause, the German verb second."""
  verb = clause.verb
  german = [
    *clause.subject.phrase.german,
    verb.finite,
    *_middle(clause),
    *filter(None, (verb.prefix, verb.rest)),
  ]
  return Phrase(arrange_english(clause), german)


def arrange_inverted(clause: Clause) -> list[str]:
  """Arranges a German clause with the verb before the subject."""
  verb = clause.verb
  return [
    verb.finite,
    *clause.subject.phrase.german,
    *_middle(clause),
    *filter(None, (verb.prefix, verb.rest)),
  ]


def arrange_verb_last(clause: Clause) -> list[str]:
  """Arranges a German subordinate clause."""
  return [
    *clause.subject.phrase.german,
    *_middle(clause),
    *verb_cluster(clause.verb),
  ]


def verb_cluster(verb: VerbForms) -> list[str]:
  """Returns the verbs that close a German subordinate clause."""
  return [w for w in (verb.rest, verb.prefix + verb.finite) if w]


def punctuate(words: list[str], end: str) -> str:
  """Writes words as a sentence: capital, commas, full stop."""
  # A relative clause closes with a comma, unless another mark follows.
  marked = [*words, end]
  kept = [
    word
    for word, following in zip(marked, [*marked[1:], ""], strict=True)
    if not (word == "," and following in (",", end))
  ]
  text = " ".join(kept).replace(" ,", ",").replace(f" {end}", end)
  return text[0].upper() + text[1:]
