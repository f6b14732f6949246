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
I paid $3.99 for it.| It was on sale.
The rate rose by 0.5%.| Nobody cared.
Call 555.1234 now.| Ask for Tom.
He ran 5 km.| Then he slept.
It weighs 10 lbs. and costs a lot.
The meeting is at 10 a.m. and ends at noon.
We left at 6 a.m.| The sun was up.
It opens at 9 a.m. on Mondays.
Ask Dr. No about it.| He knows.
Capt. Kirk and Lt. Uhura arrived.| They were late.
Gen. Lee lost.| Col. Brandt won.
Gov. Brown, Sen. Warren and Rep. Smith met.
Rev. King spoke.| We listened.
She works for Apple Inc. in Ohio.
He founded Smith & Co. in 1990.
He works at Acme Corp.| It is large.
John F. Kennedy was president.| He died in 1963.
E. coli is a bacterium.| It is small.
Franklin D. Roosevelt led the U.S. through war.
This is Plan B.| It is better.
Do you know Mr. T?| He is funny.
We met at St. Paul's.| It rained.
See No. 5.| It is good.
Read pp. 12 and 13.| They matter.
See Sec. 4 and Chap. 2.| Then stop.
Smith et al. Found nothing.
It was 1998.| Things were different.
He was 6 ft. tall and thin.
Yahoo! is a company.| So is Google.
Have you seen Jeopardy!?| I have.
What did he say?| "No!"
"Stop!" he cried.| Nobody listened.
"I know," he said.| "You told me."
He said, "Go."| She went.
'Why not?'| 'Because I say so.'
(He left early.)| We stayed.
He left early (as always).| We stayed.
[This was cut.]| The rest follows.
Really?!| Yes, really!
Oh no...| It broke.
Hmm...| I see.
He was... tired.
I wonder…| Do you?
No!!!| Not again!!!
Is it?| Is it not?
Wow!| That's great!| I love it.
Yes!| 100 times yes!
It ended in 2020.| 30 people came.
They have 3 cats.| 2 are black.
The score was 3-2.| We won.
The file is test.py.| Run it.
Visit www.example.com.| It is free.
Go to https://a.org/b.html?c=d!e and look.
The U.N. is in New York.| The E.U. is not.
He has a Ph.D. in physics.| She has an M.A. in art.
The U.S.A. is large.| It has 50 states.
Meet me on Jan. 5 or Feb. 6.
On Nov. 3 we vote.| On Dec. 24 we rest.
He lives on Main St. in Boston.
Turn left on 5th Ave. and stop.
I like apples, pears, etc. and plums.
I like apples, pears, etc.| They are sweet.
a) Wash it. b) Dry it.
1) Stop.| 2) Look.| 3) Listen.
Step 1.| Open the box.
Chapter 3.| The Return.
He got an A.| I got a B.| We are happy.
My name is Tom.| I live in Boston.
How much does it cost?| It is for my son.
Thanks.| Bye.
Good morning!| How are you?
What time is it?| It's 3 o'clock.
I'm 30.| You're 25.
"Is it you?" asked Tom.
"Is it you?"| Tom asked nothing.
"It is late.| I must go," he said.
He shouted "Fire!" and ran.
The so-called "experts"!| They know nothing.
It's John's.| Leave it.
It was the '90s.| We were young.
*Note: This is new.| Read it.
- First item.| Second item.
Tom's dog (it is old.) sleeps.
I said: wait!| They did not.
Dr. med. Schmidt ist krank.
Prof. Dr. Müller lehrt hier.| Er ist streng.
Das kostet 3,50 Euro.| Das ist billig.
Das sind ca. 100 Leute.| Viele kennen wir.
Er kommt am 3.| Sie auch.
Am 24. Dezember feiern wir.| Am 25. Dezember schlafen wir.
Das 1. Mal war schwer.| Das 2. Mal war leicht.
Heinrich VIII. war König.| Er hatte sechs Frauen.
Es war der 5. Mai 1990.| Wir waren jung.
Bitte Nr. 7 ziehen.| Danke.
Siehe Abb. 3 und Tab. 4.| Dann weiter.
Siehe S. 12.| Dort steht es.
Sie wohnt in der Str. des Friedens.
Das heißt, u.a. Karl, z.T. Anna.
Bsp.: Das Haus ist groß.
Er sagte: „Ich komme.“| Dann ging er.
Er sagte: „Ich komme“, und ging.
„Komm!“, rief er.| Niemand kam.
„Komm!“ rief er.
„Ich weiß“, sagte er.| „Du auch?“
Wirklich?!| Ja!
Na ja...| Vielleicht.
Tja … so ist es.
Ende.| Öffnen Sie die Tür.
Das ist gut.| Übung macht den Meister.
Ich heiße Tom.| Ich wohne in Berlin.
J. S. Bach komponierte viel.| Seine Musik lebt.
Die GmbH & Co. KG zahlt nicht.
Die Fa. Müller liefert.| Sie ist pünktlich.
Um 8.30 Uhr geht es los.| Sei pünktlich.
C'est M. Martin.| Il est médecin.
Où est-il ?| Il est là !| Enfin.
Il a dit : « Viens. »| Puis il est parti.
Il a dit « Viens ! » et il est parti.
J'habite à Paris.| À bientôt !
C'est vrai…| Non ?
¿Cómo estás?| ¡Muy bien!| ¿Y tú?
La Dra. Ruiz vino.| El Dr. Paz no.
Cuesta 3.000 pesos.| Es caro.
¡No!| ¡Espera!
EE. UU. es grande.
Costa 5 euro.| È caro?| No.
Ele chegou às 5h.| Ela saiu.
Gaat het?| Ja hoor!| Mooi.
Привет!| Как дела?| Хорошо.
Он сказал: «Иди!»| Она ушла.
«Где ты?»| — «Здесь».
Это стоит 5 руб.| Дёшево.
Это было в 1990 г.| Потом всё изменилось.
Ο κ. Παπάς ήρθε.| Έφυγε.
Zażółć!| Gęślą?| Jaźń.
Ahoj.| Žije?| Ano.
Merhaba!| İyi misin?| Evet.
你叫什么名字？|我叫汤姆。
他问：“你是谁？”我没回答。
“走吧！”他说。|我们走了。
等等……|什么？
现在是下午3:30。|走吧！
这是A。|那是B。
価格は3.5ドルです。|安い！
彼は「はい！」と言った。|私は黙った。
え？|本当？！|まさか……
「どこ？」|「ここ。」
东京。|（日本。）
안녕하세요.| 이름이 뭐예요?| 톰입니다.
값은 3.5달러입니다.| 싸네요!
मैं ठीक हूँ।| आप?| अच्छा!
আমি ভালো আছি।| তুমি?
مرحبا!| كيف حالك؟| بخير.
متى؟| الآن!
שלום.| מה שלומך?| טוב!
Բարև։| Ինչպես ես։
WHERE IS IT?| I DON'T KNOW.| HELP!
I WOULD LIKE A COFFEE.| THANK YOU.
THE U.S. ARMY CAME.| WE LEFT.
no capitals here. none at all. really
the end.| The beginning.
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
