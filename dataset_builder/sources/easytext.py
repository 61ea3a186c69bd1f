"""EasyText (arXiv:2505.24417): the six sample prompts with layouts from which the text rendering of LingT2I descends.

Upstream layout: ``prompt/{n}.txt`` with ``<sks1>``, ``<sks2>`` … where the texts go, ``condition/{n}-position.txt`` with the layout, and
``condition/{n}-text-wb.png``, a picture of the lines to be drawn. The texts stand only in those pictures: ``TEXTS`` is what we read there,
so the pictures' digests are checked. The descriptions are English, whatever the script of the text. No licence is stated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from t2i_parity.dataset_builder.schema import table
from t2i_parity.dataset_builder.sources.base import Account, Source
from t2i_parity.dataset_builder.sources.layout import canonical

REVISION = "615559db"
TEXTS: dict[int, tuple[str, ...]] = {
    1: ("(≧▽≦)",),
    2: ("CHASING THE", "MOMENT"),
    3: ("DREAM BIG", "BE THE BEST", "STAY HEALTHY"),
    4: ("English text", "ひらがなのもじ", "한국어 문장"),
    5: ("(╯°□°）(⊙_⊙)",),
    6: ("This is EASYTEXT",),
}
"""What goes to the placeholders of each prompt, by its number."""


def _read(source: Source, place: str, part: str) -> dict[str, pa.Table]:
    account = Account(source, place)
    found = {number: _sample(account, number) for number in range(1, source.expected["prompts"] + 1)}
    account.close()
    revision = account.revision()
    return {"lingt2i_text": table("lingt2i_text", _rows(source, revision, {n: sample for n, sample in found.items() if sample}))}


def _sample(account: Account, number: int) -> tuple[str, str, bytes] | None:
    """Prompt, layout and condition image of a sample; None when a file is not there or is not what it should be."""
    files = (f"prompt/{number}.txt", f"condition/{number}-position.txt", f"condition/{number}-text-wb.png")
    names = [account.first(name) for name in files]
    if None in names:
        return None
    prompt, layout, image = (account.read(name, key=name) for name in files)
    try:
        text = prompt.decode("utf-8").strip()
        lines = canonical(layout.decode("utf-8"))
    except ValueError as error:
        account.add(account.upstream.where(files[0]), f"sample {number} cannot be read: {error}")
        return None
    placeholders = [f"<sks{place}>" for place, _ in enumerate(TEXTS[number], start=1)]
    if text.count("<sks") != len(placeholders) or any(placeholder not in text for placeholder in placeholders):
        account.add(account.upstream.where(files[0]), f"expected the placeholders {', '.join(placeholders)}, each once")
        return None
    return text, lines, image


def _rows(source: Source, revision: str, samples: dict[int, tuple[str, str, bytes]]) -> Iterator[dict[str, Any]]:
    for number, (verbatim, layout, image) in samples.items():
        prompt = verbatim
        for place, text in enumerate(TEXTS[number], start=1):
            prompt = prompt.replace(f"<sks{place}>", text)
        yield {
            **source.provenance(),
            "prompt_id": f"easytext-{number}",
            "pair_id": f"easytext-{number}",
            "prompt": prompt,
            "verbatim_prompt": verbatim,
            "language": "en",
            "subset": "easytext",
            "dimension": "TR",
            "render_text": " ".join(TEXTS[number]),
            "render_layout": layout,
            "condition_image": {"bytes": image, "path": None},
            "source_id": f"prompt/{number}.txt",
            "source_revision": revision,
            "derivation": "templated",
            "producer": "EasyText authors; text read from the condition image and filled in by dataset_builder.sources.easytext 1.0",
        }


SOURCE = Source(
    name="easytext",
    title="EasyText",
    url="https://github.com/songyiren725/EasyText",
    license="unknown",
    revision=REVISION,
    counts={"lingt2i_text": 6},
    read=_read,
    default=f"https://github.com/songyiren725/EasyText/tree/{REVISION}",
    expected={"prompts": 6},
    sha256={
        "prompt/1.txt": "a291bade1ae09f21f5f4075e417e394fd381d689ef44ba856937e368391812a5",
        "prompt/2.txt": "a8e46a729386320fdc69f5e63fa68f93cb59853360d0e91669d41ef5b993bac2",
        "prompt/3.txt": "91dc18effb03d2603010c80ca09ff4a8d457ffddcf7150dbca8a0a45cf58624b",
        "prompt/4.txt": "d0fc58541d4f385083dd9d8ad3a36209d042caa0397ccbe82b72f91b2b3174a7",
        "prompt/5.txt": "94b75aab22b53c05ace8839f5a9249e4a2790529869e5b42b7b179e38f9d53e8",
        "prompt/6.txt": "d304e87040f727b84be45f3e44173562eb1f43020639a51f52c3ed75ae2936b4",
        "condition/1-position.txt": "ee6f32a5d0dc457fa995ef8881a5c2201ff64b18c87eefdf59fd19cef74667e9",
        "condition/2-position.txt": "9a3514fc3dd780ade4573ef0b5c67e09021897e666ae635f03468b62481275a0",
        "condition/3-position.txt": "9c794a83c838324f818c775f444e4284537b12a9dc9741be86d644e4b0c80fde",
        "condition/4-position.txt": "6765ab092ba899d836df920ef1eaf9d9311948509704bd3fdb61ad6950c196d3",
        "condition/5-position.txt": "7e59b972956abe0d33cf518246d3fd52ceeb90a4919cd6b6656b959937d7c663",
        "condition/6-position.txt": "eee9fcba4e2e18430f21e8f9b35af2be07e657eabe0bd6816196a0c58ef1fabb",
        "condition/1-text-wb.png": "2fccb591414ba19e93379129da00275955934d8c2f7be20e5a4d0c08126fbb8d",
        "condition/2-text-wb.png": "8c93bc7484f590981d0f71015eb86f8c0ca9dc35c6d5f4d935828838131953f7",
        "condition/3-text-wb.png": "ab3a6bc5835ed5bb3deb4c1ebd39028b7ef531c297afb69ca7615e63efb3757a",
        "condition/4-text-wb.png": "2a24e24f8e89cb6eb52e10adf29e51aebaac74555e30dc102c8aaba16750d4ff",
        "condition/5-text-wb.png": "5ce2d5301ef42f3c6765b2fd627edea89765f1b258c35827bb86d27b5dfe94e9",
        "condition/6-text-wb.png": "103a162978f859f49b457a5c94763e8c56bb2c858eed9709ada9e718b3fb327c",
    },
)
