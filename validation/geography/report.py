"""An analysis as its page: what it says in words, and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from t2i_parity.cards.environment import number, p_value
from t2i_parity.cards.geography import GeographyPage, Place, Score, Section, Table
from t2i_parity.dataset_builder.countries import countries
from t2i_parity.validation.geography.analysis import Analysis
from t2i_parity.validation.geography.questions import Answer
from t2i_parity.validation.geography.tables import GAIN, Cell
from t2i_parity.validation.survey.ratings import CONDITIONS

SIGNIFICANT = 0.05
QUESTIONS = {
    "RQ1": "Are the images representative, and of whom?",
    "RQ2": "Does naming the country help?",
    "RQ3": "Does realism sway the ratings?",
    "models": "Which model is more representative?",
}

NAMED = {
    "RQ1": "Named are: for counts, the countries at 3 or above; for the rich West, its members; for correlations, those without a figure.",
    "RQ2": "Named are countries that do not gain.",
}


def page_of(analysis: Analysis, title: str) -> GeographyPage:
    """The page's content."""
    cells = {(cell.measure, cell.country, cell.model, cell.noun, cell.condition): cell for cell in analysis.cells}

    def score(country: str | None, noun: str | None, condition: str) -> Score:
        cell = cells.get(("representativeness", country, None, noun, condition))
        return Score(None) if cell is None else Score(cell.value, cell.low, cell.high, cell.n)

    places = [Place(name_of(code), code, *(score(code, None, condition) for condition in CONDITIONS)) for code in analysis.countries]
    nouns = [Place(noun, "", *(score(None, noun, condition) for condition in CONDITIONS)) for noun in analysis.nouns]
    order = sorted(places, key=lambda place: (-(place.unspecified.value or 0), place.name))
    kept = analysis.participants - len(analysis.excluded)
    lead = [f"Ratings: {analysis.source}"]
    if analysis.ratings:
        lead.append(
            f"{kept:,} of {analysis.participants:,} participants pass the trick questions; {analysis.ratings:,} ratings of "
            f"{len(analysis.nouns)} nouns by {len(analysis.models)} models in {len(analysis.countries)} countries"
            + (f"; {analysis.skipped:,} images were skipped" if analysis.skipped else "")
        )
    return GeographyPage(
        title=title,
        lead=lead,
        findings=findings(analysis),
        countries=order,
        nouns=sorted(nouns, key=lambda place: (-(place.unspecified.value or 0), place.name)),
        sections=[section for section in (_questions(analysis), *_tables(analysis), *_beyond(analysis)) if section is not None],
        notes=analysis.notes,
    )


def name_of(code: str) -> str:
    """A country's name, its code where ISO 3166-1 has none."""
    known = countries("all")
    return known[code].name if code in known else code


def findings(analysis: Analysis) -> list[str]:
    """The answers in sentences; what is not significant is said to be so."""
    told = []
    for answer in analysis.answers:
        if answer.value is None:
            continue
        value = _two(answer.value)
        if answer.item == "countries below 3, unspecified":
            above = ", ".join(map(name_of, answer.names)) or "none"
            told.append(f"{answer.value:.0f} of {answer.n} countries rate images without their name below 3; at 3 or above: {above}.")
        elif answer.item == "gain by naming the country, all models":
            told.append(f"Naming the country adds {_signed(answer.value)} points on average{_tested(answer)}.")
        elif answer.question == "RQ1" and answer.statistic == "Pearson r" and not answer.item.startswith("log "):
            word = "goes with" if answer.p is not None and answer.p < SIGNIFICANT else "shows no significant correlation with"
            told.append(f"Representativeness without the country's name {word} {answer.item} (r = {value}{_p(answer)}, n = {answer.n}).")
        elif answer.item == "rich West less the others":
            told.append(f"The rich West rates images {_signed(answer.value)} points against the other countries{_tested(answer)}.")
        elif answer.question == "models":
            told.append(f"{answer.item}: {_signed(answer.value)} points{_tested(answer)}.")
    for proxy in analysis.proxies:
        if proxy.mse is not None:
            told.append(
                f"Proxy {proxy.proxy}, {_condition(proxy.condition)}: {proxy.verdict} (mean squared error {proxy.mse:.2f} against "
                f"{number(proxy.mse_baseline, 2)})."
            )
    return told


def _two(value: float | None) -> str:
    """Two digits, with a minus sign rather than a hyphen.

    >>> _two(-0.157), _two(None)
    ('−0.16', '–')
    """
    return number(value, 2).replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _tested(answer: Answer) -> str:
    p = answer.corrected if answer.corrected is not None else answer.p
    if p is None:
        return ""
    by = ", by Holm over pairs of models" if answer.corrected is not None else ""
    return f" ({'' if p < SIGNIFICANT else 'not significant, '}p {_relation(p)}{by})"


def _p(answer: Answer) -> str:
    return "" if answer.p is None else f", p {_relation(answer.p)}"


def _relation(p: float) -> str:
    told = p_value(p)
    return told if told.startswith("<") else f"= {told}"


def _condition(name: str) -> str:
    return {"country": "with country", "both": "both conditions", GAIN: "gain"}.get(name, name)


def _interval(low: float | None, high: float | None, digits: int = 2) -> str:
    return "–" if low is None or high is None else f"{low:.{digits}f} … {high:.{digits}f}".replace("-", "−")


def _questions(analysis: Analysis) -> Section:
    tables = []
    for question, heading in QUESTIONS.items():
        rows = [
            [
                answer.item,
                answer.statistic,
                ("–" if answer.value is None else f"{answer.value:.0f}" if answer.statistic == "count" else _two(answer.value)),
                _interval(answer.low, answer.high),
                p_value(answer.p) + (f" ({p_value(answer.corrected)})" if answer.corrected is not None else ""),
                f"{answer.n}",
                ", ".join(answer.names) or "",
            ]
            for answer in analysis.answers
            if answer.question == question
        ]
        if rows:
            note = NAMED.get(question, "")
            tables.append(
                Table(f"{question}: {heading}", note, ("what", "statistic", "value", "interval", "p", "countries", "named"), rows, 2)
            )
    return Section("questions", "Research questions", ("Countries are the units of every test here.",), tables)


def _tables(analysis: Analysis) -> Iterable[Section]:
    cells = {(cell.measure, cell.country, cell.model, cell.noun, cell.condition): cell for cell in analysis.cells}
    models: Sequence[str | None] = (None, *analysis.models)
    conditions = (*CONDITIONS, GAIN)
    headings = [f"{'All models' if model is None else model}, {_condition(condition)}" for model in models for condition in conditions]
    made = []

    def rows(measure: str, places: Sequence[tuple[str, str | None, str | None]], of: Sequence[str | None]) -> list[list[str]]:
        answer = []
        for name, country, noun in places:
            row = [cells.get((measure, country, model, noun, condition)) for model in of for condition in conditions]
            if any(cell is not None and cell.value is not None for cell in row):
                answer.append([name, *map(_cell, row)])
        return answer

    by_country = [*((name_of(code), code, None) for code in analysis.countries), ("All countries", None, None)]
    made.append(
        Table(
            "By country: GR(c, m, ·, p)",
            "Mean rating ± half-width.",
            ("country", *headings),
            rows("representativeness", by_country, models),
        )
    )
    if analysis.nouns:
        by_noun = [*((noun, None, noun) for noun in analysis.nouns), ("All nouns", None, None)]
        of_nouns = rows("representativeness", by_noun, models)
        made.append(Table("By noun: GR(·, m, n, p)", "Mean over countries ± half-width.", ("noun", *headings), of_nouns))
    if realism := rows("realism", by_country, analysis.models):
        of_realism = [heading for heading in headings if not heading.startswith("All models")]
        made.append(Table("Realism by country: R(c, m, p)", "Mean rating ± half-width.", ("country", *of_realism), realism))
    yield Section("tables", "Tables", (), made)
    if analysis.agreement is not None:
        found = analysis.agreement
        parts = [("All", found.overall), *((name_of(code), each) for code, each in found.by_country.items()), *found.by_noun.items()]
        shown = [[name, f"{each.items:,}", _share(each.modal_share), _share(each.by_chance), _two(each.alpha)] for name, each in parts]
        text = (
            "The modal share is how many of a country's raters choose the most frequent option for an image, averaged over images; chance "
            "gives it what stands beside it, which is more than one in five. Krippendorff's α is ordinal: 1 is agreement, 0 is chance."
        )
        headings_of = ("where", "images", "modal share", "by chance", "α")
        yield Section("agreement", "Agreement", (text,), (Table("Agreement among raters of a country", "", headings_of, shown),))


def _cell(cell: Cell | None) -> str:
    if cell is None or cell.value is None:
        return "–"
    half = "" if cell.low is None or cell.high is None else f" ± {(cell.high - cell.low) / 2:.2f}"
    return f"{_two(cell.value)}{half}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}%"


def _beyond(analysis: Analysis) -> Iterable[Section]:
    if analysis.over_representation:
        rows = [
            [name_of(each.country), _share(each.share), number(each.index, 2), _interval(each.low, each.high), f"{each.participants}"]
            for each in analysis.over_representation
        ]
        nouns = [[each.noun, name_of(each.country), number(each.value, 2), number(each.others, 2)] for each in analysis.by_noun]
        text = (
            "Which countries' raters accept images whose prompt names no country (a rating of 4 or 5)? The index is a country's share of "
            "accepted images over the mean share of all: 1 is parity."
        )
        tables = [Table("Over-representation", "", ("country", "accepted", "index", "interval", "participants"), rows)]
        if nouns:
            tables.append(
                Table("Whom the unspecified images of each noun suit best", "", ("noun", "country", "its mean", "others' mean"), nouns, 2)
            )
        yield Section("over-representation", "Over-representation", (text,), tables)
    if analysis.pooling:
        yield _pooled(analysis)
    if analysis.spread is not None:
        spread = analysis.spread
        text = (
            f"Participants of a country differ by {spread.participants:.2f} points (standard deviation), single answers about one image by "
            f"{spread.answers:.2f}. From these follows how many participants a country needs for an interval of a given half-width, by how "
            "many images each of them rates (of one condition, where the mean is of one)."
        )
        images = sorted({each.images for each in analysis.needed})
        widths = list(dict.fromkeys(each.half_width for each in analysis.needed))
        found = {(each.half_width, each.images): each.participants for each in analysis.needed}
        shown = [[f"± {width:g}", *("–" if (n := found[width, k]) is None else f"{n:,}" for k in images)] for width in widths]
        headings = ("half-width", *(f"{k} images each" for k in images))
        yield Section("power", "How many participants", (text,), (Table("Participants a country", "", headings, shown),))
    if analysis.proxies:
        yield _proxies(analysis)


def _pooled(analysis: Analysis) -> Section:
    paragraphs = [
        "A thinly rated country is drawn to the mean of all countries, the more the fewer its raters; one without raters gets that mean "
        "and the spread of countries. Rated countries are hardly a random sample of the unrated: read those rows as what follows if they "
        "were."
    ]
    tables = []
    for pool in analysis.pooling:
        if pool.reason is not None:
            paragraphs.append(f"No estimates {_condition(pool.condition)}: {pool.reason}.")
            continue
        rows = [
            [
                name_of(each.country),
                f"{each.participants}",
                number(each.own, 2),
                number(each.value, 2),
                _interval(each.low, each.high),
                _share(each.weight),
            ]
            for each in pool.estimates
        ]
        note = (
            f"Mean of countries {number(pool.mean, 2)}; standard deviation of countries {number(pool.countries_deviation, 2)}, of "
            f"participants {number(pool.participants_deviation, 2)}."
        )
        headings = ("country", "participants", "own mean", "pooled", "interval", "weight of own")
        tables.append(Table(f"Pooled estimates, {_condition(pool.condition)}", note, headings, rows))
    return Section("pooling", "Thinly rated countries", paragraphs, tables)


def _proxies(analysis: Analysis) -> Section:
    rows = [
        [
            each.proxy, _condition(each.condition), each.verdict, f"{each.n:,}", f"{each.n_missing:,}", _two(each.pearson_countries),
            _two(each.pearson_images), _two(each.pearson_within), _share(each.pairwise), _share(each.named_agreed),
            number(each.mse, 2), number(each.mse_baseline, 2), number(each.mse_mean, 2),
            _interval(each.low, each.high), _interval(each.low_mean, each.high_mean),
        ]
        for each in analysis.proxies
    ]  # fmt: skip
    good = [each for each in analysis.proxies if each.useful]
    named = "; ".join(f"{each.proxy}, {_condition(each.condition)}" for each in good)
    text = (
        "None of these proxies is shown to predict ratings better than the constant 3.0 and the mean of other countries: none can stand in "
        "for people."
        if not good
        else f"Better than the constant 3.0 and than the mean of other countries: {named}. The others are not."
    )
    headings = (
        "proxy", "condition", "verdict", "n", "missing", "r, countries", "r, images", "r, within country", "pairs agreed",
        "named ones", "error", "of 3.0", "of the mean", "error less that of 3.0", "less that of the mean",
    )  # fmt: skip
    more = (
        "Errors are mean squared ones, on the scale of the ratings; chance agrees in 50% of pairs; named ones are the pairs in "
        "which people prefer the image whose prompt names the country. The mean is that of all other countries' ratings: "
        "a fitted proxy reaches it without looking at an image, so it must beat that too. Neighbours' ratings are the same "
        "country's, so their r over countries is high whatever the images show."
    )
    return Section(
        "proxies", "Can a machine stand in for raters?", (text, more), (Table("Proxies against ratings", "", headings, rows, 3),)
    )
