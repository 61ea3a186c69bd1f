"""The culture that an image shows, by a vision-language model: one of 13 tags, what carries it, and how specific it is (LingT2I, §4.3).

The study counts 13 culture tags, 10 kinds of visual elements and a specificity from 0 to 3 without printing them; these are ours. The tags
are the cultures of the ten languages as ``culture_alignment`` knows them, then Other, Mixed and None. The model sees the image alone: the
language of a prompt would tell it what to find. No identifiable culture is an answer, the tag "None" with specificity 0; an answer that
cannot be read is missing.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from t2i_parity.dataset_builder.answers import AnswerError, fitting, json_in, whole
from t2i_parity.dataset_builder.chat import Completion, JsonSchema
from t2i_parity.dataset_builder.controls.culture_tags import CULTURES
from t2i_parity.dataset_builder.languages import LINGT2I_LANGUAGES
from t2i_parity.generate.backends.vlm import Prompt, VlmJudge, VlmSettings, one_of
from t2i_parity.generate.rows import Observation

NO_CULTURE = "None"
TAGS: tuple[str, ...] = (*(CULTURES[code].expected for code in LINGT2I_LANGUAGES), "Other", "Mixed", NO_CULTURE)
"""The 13 tags: ten cultures, a culture that is none of them, several at once, and no identifiable one."""

ELEMENTS: Mapping[str, str] = {
    "writing": "letters or characters of a script",
    "architecture": "buildings and their parts",
    "clothing": "dress, headwear, jewellery",
    "food": "dishes, drinks, how they are served",
    "religion": "places, figures and objects of a faith",
    "symbols": "flags, emblems, mythical beings, symbolic objects",
    "art": "a tradition of painting, sculpture, ornament or craft",
    "interior": "furniture, household objects, rooms",
    "surroundings": "streets, vehicles, landscapes, plants typical of a region",
    "customs": "festivals, rituals, music, games, gestures",
}
"""The ten kinds of visual elements that can carry a culture."""

SPECIFICITY: Mapping[str, str] = {
    "0": "nothing points to a culture",
    "1": "a faint hint of the culture, which would fit others too",
    "2": "clear elements of the culture",
    "3": "elements found in this culture alone, or many that agree",
}

PROMPT = Prompt(
    "culture",
    "1.0",
    "You record which culture an image shows, for a study of how image generators depict the same scene for speakers of different "
    "languages. You judge what is visible, never what you suppose the image was made for.",
    "Which culture do the visible elements of this image belong to?\n"
    "culture: exactly one of {tags}. Western stands for North America, Britain and Europe in general; Hispanic for Spain and "
    "Spanish-speaking America; Lusophone for Portugal, Brazil and Portuguese-speaking Africa; Other for an identifiable culture that is "
    "not listed; Mixed when elements of several are equally present; None when nothing points to any, as in a modern scene that could be "
    "anywhere. The look of a person alone, skin colour say, is no culture.\n"
    "elements: which kinds of elements carry it, any number of these, none for None:\n{elements}\n"
    "specificity: a whole number.\n{specificity}\n"
    'Answer with one JSON object and nothing else: {{"culture": "…", "elements": ["…"], "specificity": …}}.',
    {
        "tags": ", ".join(TAGS),
        "elements": "\n".join(f"{name}: {meaning}" for name, meaning in ELEMENTS.items()),
        "specificity": "\n".join(f"{number}: {meaning}" for number, meaning in SPECIFICITY.items()),
    },
)

SCHEMA = JsonSchema(
    "culture",
    {
        "type": "object",
        "properties": {
            "culture": {"type": "string", "enum": list(TAGS)},
            "elements": {"type": "array", "items": {"type": "string", "enum": list(ELEMENTS)}},
            "specificity": {"type": "integer", "minimum": 0, "maximum": len(SPECIFICITY) - 1},
        },
        "required": ["culture", "elements", "specificity"],
        "additionalProperties": False,
    },
)


class Culture(VlmJudge):
    """The judge; the question is the same for every language."""

    name = "culture"
    prompt = PROMPT
    schema = SCHEMA
    saw: Mapping[str, pa.DataType] = {"culture": pa.string(), "elements": pa.list_(pa.string()), "specificity": pa.int32()}

    def read(self, completion: Completion) -> Observation:
        """The tag, the kinds of elements without repetition, and the specificity.

        Raises AnswerError also for an answer that contradicts itself: no culture with a specificity, or a culture with none.
        """
        answer = json_in(whole(completion))
        if isinstance(answer, dict):
            answer = {**answer, "culture": one_of(answer.get("culture"), TAGS)}
            if isinstance(answer.get("elements"), list):
                answer["elements"] = [one_of(element, tuple(ELEMENTS)) for element in answer["elements"]]
        found = fitting(answer, SCHEMA.schema)
        if (found["culture"] == NO_CULTURE) != (found["specificity"] == 0):
            raise AnswerError(f"culture {found['culture']} and specificity {found['specificity']} contradict each other")
        return {
            "culture": found["culture"],
            "elements": list(dict.fromkeys(found["elements"])),
            "specificity": int(found["specificity"]),
        }


CultureSettings = VlmSettings
