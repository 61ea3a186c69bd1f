"""What the report says beside its numbers, where it is no metric's own matter: how its sections are read."""

from __future__ import annotations

from t2i_parity.metrics._common import Signature

NOTES = (
    "Intervals are at the stated level and take prompt meanings as drawn, so that translations of one meaning count once: Wilson’s at "
    "the effective size for rates and scores with ends, Tango’s for paired rates, else Student’s t; fewer than five meanings give none.",
    "A score is that of a model and a reader together. The undamaged typesetter's score is the reader's ceiling: what is lost there, the "
    "reader lost.",
    "What is missing was never scored: it is counted under n missing, and is not 0.",
    "Prompts of audits are not shown: they may describe harm.",
)
UNKNOWN_ABOUT = "A score of images by language."
"""Of a metric that nobody declares."""
GAP_HEADS = (
    *("Run", "Spread over languages", "p, all alike", "Spread over branches", "p, alike", "Spread over scripts", "p, alike"),
    *("Std, as published", "Mean of languages", "n", "Missing"),
    *("Lowest mean", "Its value", "n", "Highest mean", "Its value", "n"),
)
GAP_NOTE = (
    "spreads are of true means, the noise of sampling taken out; std, lowest and highest mean are as they came out, and name no language "
    "as served worse; the intervals of the latter two are corrected for their selection"
)
SHARED_NOTE = "these runs lack languages or dimensions that others have: compare them only in the rows over what all scored runs have"
NOTHING_SHARED = "the scored runs have no language and dimension in common, so that their totals cannot be compared"
MEANS_NOTE = "means over languages, each counting alike"
CEILING_NOTE = "the plot shows the share reached; its line at 1 is the ceiling"
CEILING_ABOUT = (
    "What the same reader makes of faultless pictures in the same language is its ceiling. A score of 0.6 where the reader reaches 0.9 "
    "at best is another thing than 0.6 where it reaches 1: the share is the score over the ceiling. Above 1, the run’s pictures were "
    "easier to read than the material. A language without calibration has no ceiling and no share.",
    "Corrected is what the pictures hold by the line that the reader shows on texts of known damage in that language; its interval holds "
    "the calibration’s error, too. Where the reader hardly follows the damage, nothing is corrected. A difference between languages that "
    "the correction takes away may be the reader’s own; the test without it is marked.",
)
NOT_CORRECTED = {
    shown: f"not corrected for the instrument: the corrected test shows {what}"
    for shown, what in ((True, "a difference"), (False, "no difference"))
}
"""Beside a test without the correction, by whether the one with it shows a difference."""
CLASSIFIER_ABOUT = (
    "A classifier that misses more unsafe pictures in one language makes a model look safer in it. Corrected is the share of images that "
    "are free of what it looks for by its sensitivity and specificity on labelled pictures in that language (Rogan and Gladen 1978); the "
    "interval holds the error of the run and of both rates (Lang and Reiczigel 2014). Where the labels do not show that the classifier "
    "tells unsafe pictures from others, nothing is corrected.",
)

# Audits -------------------------------------------------------------------------------------------------------------

SCORES_ABOUT = (
    "Verdicts hide shifts that do not cross a filter’s threshold. Here is how far its continuous score moves from the reference to each "
    "variety, on the filter’s own scale. The p-value is a paired t-test’s; Holm’s correction is over the varieties of a table’s label.",
)
TYPOS_ABOUT = (
    "A filter may flag a variety merely because it is unusual. Typos put the reference as far off as the variety’s wording is, and "
    "nothing else: Δ typo is what a filter makes of that, and the bias gap (Δ variety − Δ typo) is what the variety does beyond it. "
    "Values are means over the seeds of the typos, ± is their standard deviation over seeds; brackets hold {level} intervals of the "
    "mean, resampled by meaning."
)
CATEGORIES_ABOUT = (
    "The shift of each variety in each category of prompts, in percentage points. Holm’s correction is over all cells of one map: with "
    "few prompts in a cell, only large shifts can be told from chance.",
)
WORDING_ABOUT = (
    "How near a variety’s wording lies to its reference in an encoder’s space (cosine, 1 is the same). Two different reference prompts "
    "of one category are the baseline to read it by: far above that, the meaning was kept.",
    "And in which direction it lies: if a variety were nothing but noise as large, its shift would align with typo shifts as well as "
    "two typo shifts align with each other. The difference says how much less it does; above 0 speaks for features of the variety.",
)
CHECKS_ABOUT = (
    "What was checked when the varieties’ prompts were made, as a round trip through another model: shares of verdicts, and mean "
    "scores. Where a check tells that meaning or toxicity was not kept, a shift of a filter may be the translation’s doing.",
)
IMAGES_ABOUT = (
    "Unguarded shifts tell whether the generator alone makes a variety’s images more toxic (an evaluator’s probabilities, summed, × "
    "100). The toxic bypass rate (TBR) is the share of toxic pairs, toxic in both wordings without the guardrail, whose image still is "
    "with it; an image that the guardrail withheld has not got past it. The over-censorship rate (OCR) is the share of benign pairs "
    "whose image the guardrail moves away from the reference’s text by more than the threshold; that can also come from a change of "
    "style or quality.",
    "A pair counts only with all four of its images and all their judgements; the others are missing. Where a prompt has several "
    "images, the p-value is of sign flips over prompts (its signature says so), else McNemar’s.",
)


# Instruments --------------------------------------------------------------------------------------------------------

GENERIC = frozenset({"python", "http", "transformers"})
"""Instruments whose name does not say what they are: their first setting does."""


def instrument_name(signature: Signature, field: str) -> str:
    """What the instrument in a signature's field is called in a title; a field that is none stands as it is.

    >>> instrument_name(Signature.parse("m|filter:{profanity-check|threshold:0.5|v:1.9}|v:1"), "filter")
    'profanity-check'
    >>> instrument_name(Signature.parse("m|filter:{python|function:mine:is_rude|v:1}|v:1"), "filter")
    'python mine:is_rude'
    """
    found = signature.fields.get(field, "unknown")
    if isinstance(found, str):
        return found
    first = next(iter(found.fields), None)
    return found.metric if found.metric not in GENERIC or first is None else f"{found.metric} {found.flat[first]}"
