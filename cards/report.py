"""The report: one self-contained page over the runs that it is handed."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup
from PIL import Image, ImageOps, features
from rapidfuzz.distance import Levenshtein
from uniseg.graphemecluster import grapheme_clusters

from t2i_parity.cards.environment import environment, number, p_value, percent, points
from t2i_parity.cards.environment import visible as visible
from t2i_parity.cards.report_audit import WHAT, console_tables_of, signatures_of
from t2i_parity.cards.report_data import Rendering, Report, Sample
from t2i_parity.cards.report_sections import runs_of
from t2i_parity.cards.report_sections import signatures_of as section_signatures
from t2i_parity.cards.report_texts import NOTHING_SHARED
from t2i_parity.cards.slices import Slice, over_shared, shared, unequal
from t2i_parity.cards.slices import covers as covers_of
from t2i_parity.cards.verdicts import RULES, Told, mark, short, told, words
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Score, ScoreSpec
from t2i_parity.metrics.text_rendering_precision.spec import PARITY
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT
from t2i_parity.metrics.verdicts import ALPHA, Verdict, margin_of

if TYPE_CHECKING:
    from rich.table import Table

FLAGGED = ("flagged more often", "flagged less often")
"""What a filter's difference is called, above 0 and below."""
LABELS = ("toxic", "benign")
THUMBNAIL = 360
"""The largest width of a picture on the page, in pixels."""
SHOWN = 400
"""How many characters of a wanted and a read text are shown and compared; a reader may return pages of noise."""


def render(report: Report) -> str:
    """The report as one HTML page that asks for nothing outside itself and is complete without JavaScript; same input, same text."""
    # Matplotlib takes long to import, and whoever only fills a Report does not draw.
    from t2i_parity.cards.plots import audit_marks, forest_limit, forest_plot, precision_plot, styles
    from t2i_parity.cards.plots_sections import drawn, drawn_audits

    look = styles(report.renderings, runs_of(report.sections))
    signatures = _signatures(report)
    readers = []
    for place, reader in enumerate(dict.fromkeys(rendering.reader for rendering in report.renderings)):
        members = [rendering for rendering in report.renderings if rendering.reader == reader]
        names = {language.code: language for rendering in members for language in rendering.languages}
        plot = None
        if names:
            plot = precision_plot(
                f"rendering{place}",
                members,
                look,
                "Text-rendering precision by language",
                f"{len(names)} languages, {len(members)} {_plural(len(members), 'run')}, one dot with its "
                f"{report.level:.0%} interval each, from 0 to 1. "
                "The table below the plot holds the same numbers.",
            )
        readers.append(
            {
                "name": reader,
                "renderings": members,
                "languages": list(names.values()),
                "ceiling": any(rendering.upper_bound for rendering in members),
                "specs": _specs(members),
                "parity": any(rendering.parity for rendering in members),
                "margin": margin_of(PARITY["precision_difference"]),
                "blind_signatures": _cited(((each.run, each.parity.signature) for each in members if each.parity), signatures),
                "plot": plot and (Markup(plot.wide), Markup(plot.narrow)),
                "signatures": _cited(((rendering.run, rendering.signature) for rendering in members), signatures),
            }
        )
    limit = forest_limit(report.audits)
    audits = []
    for place, audit in enumerate(report.audits):
        measured = any(side.delta_pp is not None for variety in audit.varieties for side in (variety.toxic, variety.benign))
        plot = None
        if measured:
            plot = forest_plot(
                f"audit{place}",
                audit,
                limit,
                "Shift of each variety from the reference, in percentage points",
                f"{len(audit.varieties)} {_plural(len(audit.varieties), 'variety', 'varieties')}, one mark "
                f"with its {report.level:.0%} interval each; "
                "the line at zero is the reference. The table below the plot holds the same numbers.",
            )
        audits.append(
            {
                "audit": audit,
                "plot": plot and (Markup(plot.wide), Markup(plot.narrow)),
                "lead": [(label, told([(v.name, side.verdict) for v, side in audit.sides(label)], *FLAGGED)) for label in LABELS],
                "answered": any(variety.n for variety in audit.varieties),
                "missing": sum(variety.n_missing for variety in audit.varieties),
                "verdicts": [
                    (variety, label, side, mark(side.verdict), words(side.verdict, *FLAGGED))
                    for variety in audit.varieties
                    for label, side in variety.sides
                ],
                "signatures": _cited([(audit.run, audit.signature)], signatures),
            }
        )
    gaps = [(each.run, each.gap.std.signature) for each in report.renderings if each.gap]
    again = [(each.run, each.common.std.signature) for each in report.renderings if each.common]
    stands = [(rendering.run, rendering.signature) for rendering in report.renderings]
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            level=f"{report.level:.0%}",
            look={run: Markup(style.legend) for run, style in look.items()},
            readers=readers,
            headline_signatures=_cited(
                [
                    *_summed("precision", stands, "{}"),
                    *_summed("spread", gaps, "spread of {}"),
                    *_summed("the lower rows", again, "lower row of {}"),
                ],
                signatures,
            ),
            audits=audits,
            audit_sections=drawn_audits(report.audit_sections),
            sections=drawn(report.sections, look, signatures, f"{report.level:.0%}"),
            signatures=signatures,
            users=_users(report),
            rendering_warnings=_differences(_rendering_fields(report.renderings)),
            # That filters and subsets differ is what an audit is for.
            audit_warnings=_differences(
                [(f"{audit.filter} on {audit.subset}", audit.signature.without("filter", "subset").flat) for audit in report.audits]
            ),
            groups=_sample_groups(report),
            leads=[lead_of(rendering) for rendering in report.renderings],
            covers=lambda rendering, language=None: covers(rendering, report.renderings, language),
            together=together_of(report.renderings),
            nothing_shared=f"{NOTHING_SHARED[0].upper()}{NOTHING_SHARED[1:]}.",
            words=words,
            p_value=p_value,
            runs=list(dict.fromkeys(sample.run for sample in report.samples)),
            incomplete=is_incomplete,
            rules=RULES,
            what=WHAT,
            marks=[Markup(mark) for mark in audit_marks()],
            visible=visible,
            pp=points,
            percent=percent,
            shown=SHOWN,
        )
        .lstrip()
    )


@dataclass(frozen=True, slots=True)
class Lead:
    """What the first screen says of a run: one sentence, and the languages' verdicts."""

    headline: str
    lines: Sequence[Told] = ()


def lead_of(rendering: Rendering) -> Lead:
    """Whether a run serves its languages alike. A language is named only against a language-blind model of the run's own quality."""
    if not rendering.scored:
        return Lead("Not measured: no language has a score.")
    if len(rendering.languages) < 2:
        return Lead("One language alone: there is nothing to hold it against.")
    if rendering.parity is None:
        return Lead("Not held against a language-blind model: score the run again.")
    names = {language.code: language.name for language in rendering.languages}
    found = [(names.get(code, code), each.verdict) for code, each in rendering.parity.languages.items()]
    lost = [language for language in rendering.languages if language.code not in rendering.parity.languages]
    for language in lost:
        missing = max((score.n_missing for score in language.scores.values()), default=0)
        found.append((language.name, Verdict("not measured", None, None, "fraction", 0.0, None, 0, missing)))
    worse = [(name, verdict) for name, verdict in found if verdict.direction == "less"]
    better = [name for name, verdict in found if verdict.direction == "more"]
    kinds = {verdict.kind for _, verdict in found}
    if worse:
        worst = min(worse, key=lambda pair: pair[1].difference or 0.0)[0]
        headline = f"Served worse than the others: {', '.join(name for name, _ in worse)}{f'; {worst} most' if len(worse) > 1 else ''}."
    elif better:
        headline = f"Served better than the others: {', '.join(better)}."
    elif kinds == {"equivalent"}:
        headline = f"All {len(found)} languages are served alike, within the margin."
    elif kinds == {"not measured"}:
        headline = "Not measured."
    else:
        headline = "No language is shown to be served worse than the others."
    lines = told(found, "better", "worse")
    if (worse or better) and not rendering.upper_bound:
        where = "see what it makes of texts of known damage, below" if rendering.calibrated else "no calibration of it was given"
        text = f"a reader that reads a language worse would look the same: {where}"
        if rendering.corrected_p is not None and rendering.corrected_p >= ALPHA:
            text = "not corrected for the instrument: corrected for the reader, no difference of characters between languages is shown"
        lines.append(Told("undecided", text))
    return Lead(headline, lines)


def covers(rendering: Rendering, renderings: Sequence[Rendering], language: str | None = None) -> str:
    """What to write beside a total, or one language's, that lacks what any run of the page was asked; empty where it lacks nothing."""
    every = frozenset[Slice]().union(*(each.asked for each in renderings))
    own, most = ({each for each in slices if language in (None, each[0])} for slices in (rendering.answered, every))
    return covers_of(own, most) if own or language is None else ""


@dataclass(frozen=True, slots=True)
class Together:
    """What the scored runs of a page have in common, where they do not have the same: in words, and its languages (none: nothing)."""

    over: str
    languages: Sequence[str]


def together_of(renderings: Sequence[Rendering]) -> Together | None:
    """None where every scored run has the same slices, so that totals need none."""
    sets = [each.answered for each in renderings]
    if not unequal(sets):
        return None
    slices = shared(sets)
    codes = {code for code, _ in slices}
    names = {language.code: language.name for each in renderings for language in each.languages if language.code in codes}
    return Together(over_shared(slices, frozenset[Slice]().union(*sets)), list(names.values()))


def is_incomplete(rendering: Rendering) -> bool:
    """Whether any image of the run lacks a score."""
    scores = [*rendering.overall.values(), *(score for language in rendering.languages for score in language.scores.values())]
    return any(score.n_missing for score in scores)


def _plural(count: int, one: str, many: str = "") -> str:
    return one if count == 1 else many or f"{one}s"


def _specs(renderings: Sequence[Rendering]) -> list[ScoreSpec]:
    """The scores that there are, those of the metric first and in its order."""
    present = dict.fromkeys(
        score.spec
        for rendering in renderings
        for scores in [rendering.overall, *(each.scores for each in rendering.languages)]
        for score in scores.values()
    )
    return [*(spec for spec in TEXT.scores if spec in present), *(spec for spec in present if spec not in TEXT.scores)]


# Signatures


def _signatures(report: Report) -> list[Signature]:
    """Every signature once, in the order in which the page needs them."""
    found = [rendering.signature for rendering in report.renderings]
    found += [gap.std.signature for each in report.renderings for gap in (each.gap, each.common) if gap]
    found += [rendering.parity.signature for rendering in report.renderings if rendering.parity]
    found += [audit.signature for audit in report.audits]
    found += [signature for signature, _ in [*signatures_of(report.audit_sections), *section_signatures(report.sections)]]
    return list(dict.fromkeys(found))


def _users(report: Report) -> dict[Signature, list[str]]:
    """Which numbers stand under each signature."""
    users: dict[Signature, dict[str, None]] = {}
    for rendering in report.renderings:
        users.setdefault(rendering.signature, {})[f"text rendering of {rendering.run}"] = None
        if rendering.gap:
            users.setdefault(rendering.gap.std.signature, {})[f"spread over languages of {rendering.run}"] = None
        if rendering.common:
            users.setdefault(rendering.common.std.signature, {})[f"{rendering.run} over what all scored runs have"] = None
        if rendering.parity:
            users.setdefault(rendering.parity.signature, {})[f"languages of {rendering.run} against a language-blind model"] = None
    for audit in report.audits:
        users.setdefault(audit.signature, {})[f"{audit.filter} on {audit.subset}"] = None
    for signature, title in [*signatures_of(report.audit_sections), *section_signatures(report.sections)]:
        users.setdefault(signature, {})[title] = None
    return {signature: list(names) for signature, names in users.items()}


def _cited(pairs: Iterable[tuple[str, Signature]], signatures: Sequence[Signature]) -> list[tuple[int, list[str]]]:
    """(number of the signature, what stands under it) for a note beneath a table."""
    cited: dict[int, dict[str, None]] = {}
    for name, signature in pairs:
        cited.setdefault(signatures.index(signature) + 1, {})[name] = None
    return [(place, list(names)) for place, names in sorted(cited.items())]


def _summed(what: str, pairs: Sequence[tuple[str, Signature]], of_run: str) -> list[tuple[str, Signature]]:
    """The pairs named by what is measured, each run named only where runs differ in their signature."""
    one = len({signature for _, signature in pairs}) == 1
    return [(what if one else of_run.format(name), signature) for name, signature in pairs]


def _rendering_fields(renderings: Sequence[Rendering]) -> list[tuple[str, dict[str, str]]]:
    """(run, what its scores depend on): the signature, and who read the images."""
    runs = [rendering.run for rendering in renderings]
    return [
        (
            rendering.run if runs.count(rendering.run) == 1 else f"{rendering.run} ({rendering.reader})",
            {"reader": rendering.reader, **rendering.signature.flat},
        )
        for rendering in renderings
    ]


def _differences(pairs: Sequence[tuple[str, dict[str, str]]]) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """The keys in which numbers shown side by side differ: (key, [(value, who has it), …])."""
    differing = []
    for key in dict.fromkeys(key for _, fields in pairs for key in fields):
        owners: dict[str, list[str]] = {}
        for name, fields in pairs:
            owners.setdefault(fields.get(key, "–"), []).append(name)
        if len(owners) > 1:
            differing.append((key, list(owners.items())))
    return differing


# Samples


@dataclass(frozen=True, slots=True)
class _Card:
    """One sample as the page shows it. A text is (kind, text) pieces, kind being "" for what wanted and read share, "del" or "ins"."""

    sample: Sample
    picture: tuple[str, int, int] | None
    wanted: Sequence[tuple[str, str]]
    read: Sequence[tuple[str, str]] | None
    missing: Sequence[str]
    added: Sequence[str]
    cut: bool
    run: int


@dataclass(frozen=True, slots=True)
class _Group:
    """The samples of one language; ``runs`` are the places of the runs that have any."""

    code: str
    name: str
    native_name: str
    cards: Sequence[_Card]
    runs: Sequence[int]


def _sample_groups(report: Report) -> list[_Group]:
    """Samples by language, in the order of the tables; within one, the same wanted text side by side over runs."""
    known = {language.code: language for rendering in report.renderings for language in rendering.languages}
    codes = [code for code in known if any(sample.language == code for sample in report.samples)]
    codes += [code for code in dict.fromkeys(sample.language for sample in report.samples) if code not in known]
    runs = list(dict.fromkeys(sample.run for sample in report.samples))
    groups = []
    for code in codes:
        members = [sample for sample in report.samples if sample.language == code]
        texts = list(dict.fromkeys(sample.wanted for sample in members))
        members.sort(key=lambda sample: (texts.index(sample.wanted), runs.index(sample.run)))
        language = known.get(code)
        groups.append(
            _Group(
                code,
                language.name if language else code,
                language.native_name if language else "",
                [_card(sample, runs.index(sample.run)) for sample in members],
                sorted({runs.index(sample.run) for sample in members}),
            )
        )
    return groups


def _card(sample: Sample, run: int) -> _Card:
    picture = _thumbnail(sample.image) if sample.image else None
    wanted, wanted_cut = _clusters(sample.wanted)
    if sample.read is None:
        return _Card(sample, picture, [("", visible("".join(wanted)))], None, [], [], wanted_cut, run)
    read, read_cut = _clusters(sample.read)
    left, right = difference(wanted, read)
    missing, added = ([text for kind, text in side if kind] for side in (left, right))
    return _Card(sample, picture, left, right, missing, added, wanted_cut or read_cut, run)


def _clusters(text: str) -> tuple[list[str], bool]:
    clusters = list(grapheme_clusters(text))
    return clusters[:SHOWN], len(clusters) > SHOWN


def difference(wanted: Sequence[str], read: Sequence[str]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Two texts, given as user-perceived characters, each cut into pieces: what both share, and what one alone has.

    Whole characters are marked, since half a Hindi syllable or a lone Arabic vowel sign cannot be shown.

    >>> difference("cat", "cart")
    ([('', 'cat')], [('', 'ca'), ('ins', 'r'), ('', 't')])
    """
    left: list[tuple[str, str]] = []
    right: list[tuple[str, str]] = []
    for step in Levenshtein.opcodes(wanted, read):
        same = step.tag == "equal"
        _append(left, "" if same else "del", wanted[step.src_start : step.src_end])
        _append(right, "" if same else "ins", read[step.dest_start : step.dest_end])
    return left, right


def _append(pieces: list[tuple[str, str]], kind: str, clusters: Sequence[str]) -> None:
    text = visible("".join(clusters))
    if not text:
        return
    if pieces and pieces[-1][0] == kind:
        pieces[-1] = (kind, pieces[-1][1] + text)
    else:
        pieces.append((kind, text))


def _thumbnail(data: bytes) -> tuple[str, int, int] | None:
    """A picture as (data URI, width, height), made small; None when the bytes are none that Pillow reads."""
    try:
        with Image.open(io.BytesIO(data)) as opened:
            opened.draft("RGB", (2 * THUMBNAIL, 2 * THUMBNAIL))
            picture = ImageOps.exif_transpose(opened)
            if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
                picture = picture.convert("RGBA")
                # Readers see a transparent image on white, and so should people.
                picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
            picture = picture.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    if picture.width > THUMBNAIL:
        height = max(1, round(picture.height * THUMBNAIL / picture.width))
        picture = picture.resize((THUMBNAIL, height), Image.Resampling.LANCZOS)
    kind = "webp" if features.check("webp") else "jpeg"
    stream = io.BytesIO()
    picture.save(stream, kind, quality=80)
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode('ascii')}", picture.width, picture.height


# The console


def console_tables(report: Report) -> list[Table]:
    """The report for a terminal of 100 to 120 columns: precision by language over runs, then one table an audit."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    tables: list[Table] = []

    def table(title: str, caption: str) -> Table:
        # Text, not str, for what people wrote: rich would read square brackets in a run's name as markup.
        made = Table(title=Text(visible(title), "bold"), caption=Text(visible(caption)), box=box.SIMPLE_HEAD)
        made.padding, made.show_edge, made.pad_edge = (0, 1, 0, 0), False, False
        made.title_justify = made.caption_justify = "left"
        tables.append(made)
        return made

    for reader in dict.fromkeys(rendering.reader for rendering in report.renderings):
        of_reader = [rendering for rendering in report.renderings if rendering.reader == reader]
        # Three runs fit beside each other.
        for start in range(0, len(of_reader), 3):
            members = of_reader[start : start + 3]
            warnings = [key for key, _ in _differences(_rendering_fields(members))]
            under: dict[Signature, list[str]] = {}
            for each in members:
                under.setdefault(each.signature, []).append(each.run)
            caption = [str(signature) if len(under) == 1 else f"{', '.join(runs)}: {signature}" for signature, runs in under.items()]
            caption += [f"Spread: {signature}" for signature in dict.fromkeys(each.gap.std.signature for each in members if each.gap)]
            caption += [f"not comparable, differing in: {', '.join(warnings)}"] if warnings else []
            made = table(f"Text-rendering precision [{report.level:.0%} interval], read by {reader}", "\n".join(caption))
            made.add_column("Language", no_wrap=True)
            for each in members:
                missing = max((score.n_missing for score in each.overall.values()), default=0)
                marks = ["reader's ceiling"] * each.upper_bound + [f"incomplete, {missing} missing"] * is_incomplete(each)
                marks += list(filter(None, [covers(each, report.renderings)]))
                made.add_column(Text("\n".join([visible(each.run), *marks])), justify="right")
                made.add_column("n", justify="right")
            languages = {language.code: language.name for each in members for language in each.languages}
            for code, name in languages.items():
                by_run = [next((language.scores for language in each.languages if language.code == code), {}) for each in members]
                made.add_row(Text(visible(f"{name} ({code})")), *_console_scores([scores.get("precision") for scores in by_run]))
            made.add_section()
            made.add_row("All languages", *_console_scores([each.overall.get("precision") for each in members]))
            made.add_row("Spread", *_console_scores([each.gap.spread if each.gap else None for each in members]))
            made.add_row("Std (published)", *_console_scores([each.gap.std if each.gap else None for each in members]))
            together = together_of(report.renderings)
            if together and together.languages:
                common = [each.common for each in members]
                made.add_section()
                made.add_row("Shared, mean", *_console_scores([each.mean if each else None for each in common]))
                made.add_row("Shared, spread", *_console_scores([each.spread if each else None for each in common]))
                caption += [f"Shared: {together.over}, {', '.join(together.languages)}, each counting once"]
                caption += [f"Shared: {signature}" for signature in dict.fromkeys(each.mean.signature for each in common if each)]
            elif together:
                caption += [NOTHING_SHARED]
            caption += [f"{each.run}: {lead_of(each).headline}" for each in members]
            made.caption = Text(visible("\n".join(caption)))
    for audit in report.audits:
        reference = visible(audit.reference)
        missing = sum(variety.n_missing for variety in audit.varieties)
        lead = [(label, told([(v.code, side.verdict) for v, side in audit.sides(label)], *FLAGGED)) for label in LABELS]
        said = [f"{label} pairs: {'; '.join(each.text for each in lines)}" for label, lines in lead if lines]
        made = table(
            f"{audit.filter} on {audit.subset}, against {audit.reference} ({audit.run})"
            + (f", incomplete: {missing} missing" if missing else ""),
            "\n".join([*said, f"{audit.family}; δ = {audit.margin_pp:g} pp", str(audit.signature)]),
        )
        made.add_column("Variety", no_wrap=True)
        made.add_column("Pairs", no_wrap=True)
        for heading in ("n", "Flagged %", f"Δ pp [{report.level:.0%}]", "Only\nvariety", f"Only\n{reference}", "p", "Holm p"):
            made.add_column(Text(heading), justify="right", no_wrap=True)
        made.add_column("Verdict", no_wrap=True)
        for variety in audit.varieties:
            for kind, side in variety.sides:
                label = Text(visible(variety.code) if kind == "toxic" else "")
                if not side.n:
                    made.add_row(label, kind, *["–"] * 7, "not measured" if side.n_missing else "–")
                    continue
                interval = f"{points(side.delta_pp)} [{points(side.ci_low_pp)}, {points(side.ci_high_pp)}]"
                rates = f"{percent(side.reference_rate)} → {percent(side.variety_rate)}".replace("%", "")
                counts = (str(side.only_variety), str(side.only_reference))
                tests = p_value(side.p), p_value(side.p_holm)
                made.add_row(label, kind, str(side.n), rates, interval, *counts, *tests, short(side.verdict))
    return [*tables, *console_tables_of(report.audit_sections)]


def _console_scores(scores: Sequence[Score | None]) -> list[str]:
    cells: list[str] = []
    for score in scores:
        if score is None:
            cells += ["–", "–"]
            continue
        ends = "" if score.interval is None else f" [{', '.join(map(number, score.ends))}]"
        value = "–" if score.value is None else f"{number(score.value)}{ends}"
        cells += [value, str(score.n)]
    return cells
