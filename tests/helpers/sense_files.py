"""The same few sentences in both formats of word senses."""

# Two documents; "cat" has two senses, and one occurrence has both.
COLUMNS = """\
# doc br-a01
The\t_\t_\t_
cat\tcat\tNOUN\tcat.1
sat\tsit\tVERB\tsit.1
.\t_\t_\t_

Cats\tcat\tNOUN\tcat.2 cat.1
ran\t_\t_\t_

# doc br-a02
\t_\t_\t_
An\t_\t_\t_
old\told\tADJ\told.1
cat\tcat\tNOUN\tcat.2
"""
XML = """\
<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="made">
<text id="br-a01">
<sentence id="br-a01.s000">
<wf lemma="the" pos="DET">The</wf>
<instance id="br-a01.s000.t000" lemma="cat" pos="NOUN">cat</instance>
<instance id="br-a01.s000.t001" lemma="sit" pos="VERB">sat</instance>
<wf lemma="." pos=".">.</wf>
</sentence>
<sentence id="br-a01.s001">
<instance id="br-a01.s001.t000" lemma="cat" pos="NOUN">Cats</instance>
<wf lemma="run" pos="VERB">ran</wf>
</sentence>
</text>
<text id="br-a02">
<sentence id="br-a02.s000">
<wf lemma="" pos="."> </wf>
<wf lemma="an" pos="DET">An</wf>
<instance id="br-a02.s000.t000" lemma="old" pos="ADJ">old</instance>
<instance id="br-a02.s000.t001" lemma="cat" pos="NOUN">cat</instance>
</sentence>
</text>
</corpus>
"""
KEYS = """\
br-a01.s000.t000 cat.1
br-a01.s000.t001 sit.1
br-a01.s001.t000 cat.2 cat.1
br-a02.s000.t000 old.1
br-a02.s000.t001 cat.2
"""


def write_columns(folder, text=COLUMNS):
  path = folder / "small.tsv"
  path.write_text(text)
  return str(path)


def write_xml(folder, text=XML, keys=KEYS):
  path = folder / "small.data.xml"
  path.write_text(text)
  (folder / "small.gold.key.txt").write_text(keys)
  return str(path)
