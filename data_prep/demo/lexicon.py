"""The words of the demo corpus: English beside German, with their forms."""

from __future__ import annotations

from typing import NamedTuple


class Noun(NamedTuple):
  """A noun that declines strongly in the singular.

  Attributes:
    english: singular.
    english_plural: plural.
    german: nominative singular, also accusative and dative.
    gender: `m`, `f` or `n`.
    german_plural: nominative plural.
  """

  english: str
  english_plural: str
  german: str
  gender: str
  german_plural: str


class Verb(NamedTuple):
  """A verb.

  Attributes:
    english: base form, third person singular, past.
    particle: particle of the English verb, as in "picks up"; may be empty.
    german: third person singular, infinitive, past participle; the last two
      without the prefix.
    prefix: separable, as in "hebt ... auf"; may be empty.
    auxiliary: auxiliary verb of the perfect: `haben` or `sein`.
  """

  english: tuple[str, str, str]
  particle: str
  german: tuple[str, str, str]
  prefix: str = ""
  auxiliary: str = "haben"


class Adjective(NamedTuple):
  """An adjective; German endings are added to `stem`."""

  english: str
  stem: str


PEOPLE = (
  Noun("man", "men", "Mann", "m", "Männer"),
  Noun("woman", "women", "Frau", "f", "Frauen"),
  Noun("child", "children", "Kind", "n", "Kinder"),
  Noun("teacher", "teachers", "Lehrer", "m", "Lehrer"),
  Noun("friend", "friends", "Freund", "m", "Freunde"),
  Noun("girl", "girls", "Mädchen", "n", "Mädchen"),
  Noun("doctor", "doctors", "Arzt", "m", "Ärzte"),
  Noun("sister", "sisters", "Schwester", "f", "Schwestern"),
  Noun("brother", "brothers", "Bruder", "m", "Brüder"),
  Noun("mother", "mothers", "Mutter", "f", "Mütter"),
  Noun("father", "fathers", "Vater", "m", "Väter"),
  Noun("baker", "bakers", "Bäcker", "m", "Bäcker"),
  Noun("king", "kings", "König", "m", "Könige"),
  Noun("queen", "queens", "Königin", "f", "Königinnen"),
  Noun("cook", "cooks", "Koch", "m", "Köche"),
  Noun("painter", "painters", "Maler", "m", "Maler"),
)

THINGS = (
  Noun("dog", "dogs", "Hund", "m", "Hunde"),
  Noun("cat", "cats", "Katze", "f", "Katzen"),
  Noun("horse", "horses", "Pferd", "n", "Pferde"),
  Noun("bird", "birds", "Vogel", "m", "Vögel"),
  Noun("book", "books", "Buch", "n", "Bücher"),
  Noun("letter", "letters", "Brief", "m", "Briefe"),
  Noun("lamp", "lamps", "Lampe", "f", "Lampen"),
  Noun("apple", "apples", "Apfel", "m", "Äpfel"),
  Noun("flower", "flowers", "Blume", "f", "Blumen"),
  Noun("chair", "chairs", "Stuhl", "m", "Stühle"),
  Noun("picture", "pictures", "Bild", "n", "Bilder"),
  Noun("hat", "hats", "Hut", "m", "Hüte"),
  Noun("bag", "bags", "Tasche", "f", "Taschen"),
  Noun("key", "keys", "Schlüssel", "m", "Schlüssel"),
  Noun("egg", "eggs", "Ei", "n", "Eier"),
  Noun("bottle", "bottles", "Flasche", "f", "Flaschen"),
  Noun("knife", "knives", "Messer", "n", "Messer"),
)

PLACES = (
  Noun("house", "houses", "Haus", "n", "Häuser"),
  Noun("garden", "gardens", "Garten", "m", "Gärten"),
  Noun("city", "cities", "Stadt", "f", "Städte"),
  Noun("forest", "forests", "Wald", "m", "Wälder"),
  Noun("school", "schools", "Schule", "f", "Schulen"),
  Noun("kitchen", "kitchens", "Küche", "f", "Küchen"),
  Noun("room", "rooms", "Zimmer", "n", "Zimmer"),
  Noun("village", "villages", "Dorf", "n", "Dörfer"),
)

PERSONAL_ADJECTIVES = (
  Adjective("old", "alt"),
  Adjective("young", "jung"),
  Adjective("poor", "arm"),
  Adjective("rich", "reich"),
  Adjective("strong", "stark"),
  Adjective("clever", "klug"),
  Adjective("friendly", "freundlich"),
  Adjective("tired", "müd"),
  Adjective("happy", "glücklich"),
)

PLAIN_ADJECTIVES = (
  Adjective("big", "groß"),
  Adjective("small", "klein"),
  Adjective("old", "alt"),
  Adjective("new", "neu"),
  Adjective("red", "rot"),
  Adjective("green", "grün"),
  Adjective("black", "schwarz"),
  Adjective("white", "weiß"),
  Adjective("beautiful", "schön"),
)

# Take an object in the accusative that is a thing or an animal.
TRANSITIVE_VERBS = (
  Verb(("see", "sees", "saw"), "", ("sieht", "sehen", "gesehen")),
  Verb(("buy", "buys", "bought"), "", ("kauft", "kaufen", "gekauft")),
  Verb(("find", "finds", "found"), "", ("findet", "finden", "gefunden")),
  Verb(("paint", "paints", "painted"), "", ("malt", "malen", "gemalt")),
  Verb(("carry", "carries", "carried"), "", ("trägt", "tragen", "getragen")),
  Verb(("sell", "sells", "sold"), "", ("verkauft", "verkaufen", "verkauft")),
  Verb(
    ("forget", "forgets", "forgot"), "", ("vergisst", "vergessen", "vergessen")
  ),
  Verb(("look", "looks", "looked"), "for", ("sucht", "suchen", "gesucht")),
  Verb(("pick", "picks", "picked"), "up", ("hebt", "heben", "gehoben"), "auf"),
  Verb(
    ("bring", "brings", "brought"),
    "along",
    ("bringt", "bringen", "gebracht"),
    "mit",
  ),
  Verb(
    ("throw", "throws", "threw"),
    "away",
    ("wirft", "werfen", "geworfen"),
    "weg",
  ),
)

# Take a person in the accusative.
PERSON_VERBS = (
  Verb(("hear", "hears", "heard"), "", ("hört", "hören", "gehört")),
  Verb(("love", "loves", "loved"), "", ("liebt", "lieben", "geliebt")),
  Verb(
    ("invite", "invites", "invited"), "", ("lädt", "laden", "geladen"), "ein"
  ),
  Verb(("call", "calls", "called"), "up", ("ruft", "rufen", "gerufen"), "an"),
)

# Take a person in the dative.
DATIVE_VERBS = (
  Verb(("help", "helps", "helped"), "", ("hilft", "helfen", "geholfen")),
  Verb(("thank", "thanks", "thanked"), "", ("dankt", "danken", "gedankt")),
  Verb(
    ("follow", "follows", "followed"),
    "",
    ("folgt", "folgen", "gefolgt"),
    auxiliary="sein",
  ),
)

# Take a person in the dative, then a thing in the accusative.
GIVING_VERBS = (
  Verb(("give", "gives", "gave"), "", ("gibt", "geben", "gegeben")),
  Verb(("show", "shows", "showed"), "", ("zeigt", "zeigen", "gezeigt")),
)

INTRANSITIVE_VERBS = (
  Verb(("sleep", "sleeps", "slept"), "", ("schläft", "schlafen", "geschlafen")),
  Verb(("laugh", "laughs", "laughed"), "", ("lacht", "lachen", "gelacht")),
  Verb(("work", "works", "worked"), "", ("arbeitet", "arbeiten", "gearbeitet")),
  Verb(("sing", "sings", "sang"), "", ("singt", "singen", "gesungen")),
  Verb(("dance", "dances", "danced"), "", ("tanzt", "tanzen", "getanzt")),
  Verb(
    ("get", "gets", "got"),
    "up",
    ("steht", "stehen", "gestanden"),
    "auf",
    "sein",
  ),
  Verb(
    ("arrive", "arrives", "arrived"),
    "",
    ("kommt", "kommen", "gekommen"),
    "an",
    "sein",
  ),
)

# English, German; which tenses each goes with.
TIMES = {
  "present": (
    ("today", "heute"),
    ("now", "jetzt"),
    ("every day", "jeden Tag"),
    ("on Sunday", "am Sonntag"),
  ),
  "past": (
    ("yesterday", "gestern"),
    ("last week", "letzte Woche"),
    ("on Monday", "am Montag"),
  ),
  "future": (
    ("tomorrow", "morgen"),
    ("next week", "nächste Woche"),
    ("soon", "bald"),
  ),
}

# English, German; all take the dative of a place.
PLACE_PREPOSITIONS = (
  ("in", "in"),
  ("behind", "hinter"),
  ("next to", "neben"),
)

# English base, third person singular; German third person singular, plural.
MODALS = (
  ("can", "can", "kann", "können"),
  ("must", "must", "muss", "müssen"),
  ("want to", "wants to", "will", "wollen"),
)
FUTURE = ("will", "will", "wird", "werden")

# English singular and plural, German stem, and whether its endings are those of
# `der` or of `ein`.
DETERMINERS = (
  ("the", "the", "d", "der"),
  ("this", "these", "dies", "der"),
  ("a", None, "ein", "ein"),
  ("my", "my", "mein", "ein"),
  ("no", "no", "kein", "ein"),
)

# By case: masculine, feminine, neuter, plural.
ARTICLE = {
  "nominative": {"m": "der", "f": "die", "n": "das", "p": "die"},
  "accusative": {"m": "den", "f": "die", "n": "das", "p": "die"},
  "dative": {"m": "dem", "f": "der", "n": "dem", "p": "den"},
}
DIES_ENDINGS = {
  "nominative": {"m": "er", "f": "e", "n": "es", "p": "e"},
  "accusative": {"m": "en", "f": "e", "n": "es", "p": "e"},
  "dative": {"m": "em", "f": "er", "n": "em", "p": "en"},
}
EIN_ENDINGS = {
  "nominative": {"m": "", "f": "e", "n": "", "p": "e"},
  "accusative": {"m": "en", "f": "e", "n": "", "p": "e"},
  "dative": {"m": "em", "f": "er", "n": "em", "p": "en"},
}
# Of an adjective after `der` and `dieser`, after `ein`, and after a number.
ADJECTIVE_ENDINGS = {
  "der": {
    "nominative": {"m": "e", "f": "e", "n": "e", "p": "en"},
    "accusative": {"m": "en", "f": "e", "n": "e", "p": "en"},
    "dative": {"m": "en", "f": "en", "n": "en", "p": "en"},
  },
  "ein": {
    "nominative": {"m": "er", "f": "e", "n": "es", "p": "en"},
    "accusative": {"m": "en", "f": "e", "n": "es", "p": "en"},
    "dative": {"m": "en", "f": "en", "n": "en", "p": "en"},
  },
  "number": {
    "nominative": {"p": "e"},
    "accusative": {"p": "e"},
    "dative": {"p": "en"},
  },
}

ENGLISH_UNITS = (
  "zero one two three four five six seven eight nine ten eleven twelve "
  "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
GERMAN_UNITS = (
  "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf "
  "dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
).split()
ENGLISH_TENS = (
  "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
)
GERMAN_TENS = (
  "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
)


def number_words(value: int) -> tuple[str, str]:
  """Returns a number from 2 to 99 in English and German words."""
  if value < 20:
    return ENGLISH_UNITS[value], GERMAN_UNITS[value]
  tens, units = divmod(value, 10)
  if not units:
    return ENGLISH_TENS[tens], GERMAN_TENS[tens]
  german_unit = "ein" if units == 1 else GERMAN_UNITS[units]
  return (
    f"{ENGLISH_TENS[tens]}-{ENGLISH_UNITS[units]}",
    f"{german_unit}und{GERMAN_TENS[tens]}",
  )
