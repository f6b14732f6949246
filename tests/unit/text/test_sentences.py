import pytest

from official_transformer.text.sentences import sentence_ends

# Each with a bar where a sentence ends and another begins.
CASES = """
A dog runs along the beach.| Two men sit on a bench.
Stop!| Who goes there?| It is me.
He asked "Why?" and left.
"Why?"| "Because."
He said (too late!) that he knew.
It was late.| (He knew.)| So he left.
She said: "Come in."| Then she sat down.
Wait... what?
Wait...| What is that?
Well… maybe.| Well…| Maybe it is.
Mr. Smith met Dr. Jones.| They talked.
Mrs. and Ms. Miller, Prof. Brown and St. Peter came.
See Fig. 3 and p. 12, vol. 2.| It is all there.
Tools, e.g. Hammers, i.e. Heavy ones, vs. Light ones.
J. R. R. Tolkien wrote it.| George W. Bush did not.
He got a D.| He was sad.
It has vitamin C.| It is good for you.
The U.S. Senate met.| The U.K. Parliament did not.
I live in the U.S.| He lives in Canada.
Come at 5 p.m. Monday.| Come at 5 p.m.| We will wait.
It costs 3.50 dollars.| That is cheap.
He was born in 1990.| Paul was not.
I am 25.| He is 30.
1. Open the door.| 2. Close it.
Version 2.0.1 is out.| Get it at example.com today.
Mail me at a.b@c.org.| I will answer.
What?!| No way!!| Really.
No way!!! really
Hello World.This is not apart.
Yes.| No.| Maybe.
I said no.I did.
Look: here.
Am 3. Oktober war es kalt.| Am 4. Oktober auch.
Im 19. Jahrhundert lebte er.| Der 2. Weltkrieg kam später.
Ich bin 25.| Er ist 30.
Das ist z.B. Wasser, d.h. Flüssigkeit.| Es ist nass.
Hr. Müller und Fr. Meier wohnen in Nr. 5.| Sie sind nett.
Sie kommen ca. Mittwoch bzw. Donnerstag.| Wir warten.
„Wo ist er?“| „Hier.“| Er kam.
»Wo?«| »Hier.«
Er fragte: „Kommst du?“ und ging.
Äpfel, Birnen usw. liegen da.| Österreich ist schön.
M. Dupont est là.| Mme. Dupont aussi.
« Où ? »| « Ici. »| Il est parti.
¿Dónde está?| ¡Aquí!| Él se fue.
El Sr. no vino.| La Sra. López sí.
Он ушёл.| Она осталась.| Кто там?| Никого.
А. С. Пушкин писал стихи.| Их читают все.
Τι είναι; Είναι νερό.
Πού είναι\u037e| Εδώ.
你好。|我喜欢学习中文。|你呢？|很好！
他说：“你好。”然后走了。
你喝咖啡吗?|我喝.|好!
他有3.5元。|她没有。
他说：“你好。”| 她也说。
「行く。」と言った。|「そう。」と答えた。
はい。|いいえ。|たぶん！
これは何ですか？|本です。
（はい。）そうです。
यह क्या है?| यह पानी है।| वह गया।
यह पानी है।|वह गया।
هل أنت هنا؟| نعم.| أنا هنا.
یہ کیا ہے؟| یہ پانی ہے۔| وہ گیا۔
Ինչ է սա։| Սա ջուր է։
ဒါက ရေပါ။|သူ သွားပြီ။
នេះជាទឹក។|គាត់ទៅហើយ។
ይህ ውሃ ነው።|እሱ ሄደ።
สวัสดีครับ วันนี้อากาศดี
No end at all
Only one sentence.
...
. . .
A. B.
!
""".replace("\\u037e", "\u037e")


@pytest.mark.parametrize("case", [c for c in CASES.split("\n") if c])
def test_sentences_end_where_a_reader_says(case):
  parts = case.split("|")
  text = "".join(parts)
  ends, place = [], 0
  for part in parts[:-1]:
    place += len(part)
    ends.append(place)
  found = sentence_ends(text)
  bars = list(text)
  for end in reversed(found):
    bars.insert(end, "|")
  assert "".join(bars) == case


def test_long_runs_take_linear_time():
  for text in ("." * 200_000, ". " * 100_000, "a." * 100_000, "。」" * 100_000):
    assert len(sentence_ends(text)) <= len(text)
