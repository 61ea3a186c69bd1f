"""Construction: datasets of the studies' kind, made with language models from anybody's captions.

``steps`` is the graph that a pipeline is, ``calls`` how a step asks a model, ``cache`` what was answered; ``lingt2i`` and ``dialect`` are
the two pipelines, ``templates`` their words, ``review`` what people decide.

Varieties by rule are absent. The one library for them, value-nlp, does not work offline as it is shipped, and what it writes where it does
is poor: a row so made would stand for a way of speaking that nobody has. A producer by rule is one more step like ``convert``.
"""
