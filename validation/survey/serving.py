"""A survey from its start to its end: the folder is opened, the app is up, and what was answered is safe when it stops."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from t2i_parity.cards.documents import Json
from t2i_parity.cards.survey import RatingsCard, ratings_card
from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.languages import language
from t2i_parity.dataset_builder.storage import Folder
from t2i_parity.validation.survey import tricks
from t2i_parity.validation.survey.app import application
from t2i_parity.validation.survey.pictures import Picture, read_pictures
from t2i_parity.validation.survey.ratings import HIGH, LOW
from t2i_parity.validation.survey.service import Settings, Survey
from t2i_parity.validation.survey.storage import Answers, Secret
from t2i_parity.validation.survey.study import Design
from t2i_parity.validation.survey.texts import interface_languages

if TYPE_CHECKING:
    from huggingface_hub import CommitScheduler

EVERY = 5
"""Minutes between two commits to the hub."""
PICTURES = "pictures.parquet"
SETTINGS = "survey.json"
FOLDER_VARIABLE = "T2I_PARITY_SURVEY_FOLDER"
"""Where a Space keeps the ratings, if not in a folder of its own that does not last."""
_NOT_PUSHED = [".*", "*/.*", PICTURES]


def serve(
    out: Path,
    settings: Settings,
    pictures: Callable[[], Sequence[Picture]],
    *,
    trick_folder: str | None,
    hub: str | None,
    host: str,
    port: int,
    say: Callable[[str], None],
) -> None:
    """Run a survey until the process is told to end (SIGINT, SIGTERM).

    Raises InputError where the folder is held or broken, the runs lack pictures that somebody is still to be asked about, the hub refuses,
    or the port is taken.
    """
    secret = Secret.of(out)
    with _to_hub(hub, out) as scheduler, Answers(out, writing=scheduler.lock if scheduler else None).opened() as answers:
        survey = Survey(settings, pictures(), tricks.pictures(trick_folder), answers, secret)
        if lost := survey.lost():
            raise InputError(
                f"{len(lost)} questions of participants in {out} are about pictures that these runs do not hold (the first: "
                f"{lost[0].shown[0]}). Give the runs and countries that the survey began with, or another --out"
            )
        answers.folder.write(_card(survey).encode("utf-8"), "README.md")
        stop = threading.Event()
        before = {sign: signal.signal(sign, lambda *_: stop.set()) for sign in (signal.SIGINT, signal.SIGTERM)}
        try:
            close = _launch(survey, host, port)
            address = f"http://{'localhost' if host in ('127.0.0.1', '0.0.0.0') else host}:{port}"
            say(f"The survey is open: {address}")
            say(f"Progress and quota: {address}/keeper, with the token {secret.keeper}")
            while not stop.wait(1):
                pass
            close()
        finally:
            for sign, handler in before.items():
                signal.signal(sign, handler)
        say(f"The survey is closed; its ratings are in {out}")


def _launch(survey: Survey, host: str, port: int) -> Callable[[], None]:
    app = application(survey)
    try:
        app.launch(server_name=host, server_port=port, prevent_thread_lock=True, quiet=True, share=False, run_history=False)
    except OSError as error:
        raise InputError(f"the survey cannot listen on {host}:{port} ({first_line(error)}). Give another --host or --port") from error

    def close() -> None:
        app.get_blocks().close(verbose=False)

    return close


def _card(survey: Survey) -> str:
    settings = survey.settings
    return ratings_card(
        RatingsCard(
            countries=settings.countries,
            models=sorted({picture.model for picture in survey.pictures.values()}),
            languages=[language(code).name for code in interface_languages()],
            per_participant=settings.design.per_participant,
            quota=settings.quota,
            seed=settings.design.seed,
            low=LOW,
            high=HIGH,
        )
    )


# The hub


@contextmanager
def _to_hub(repo: str | None, folder: Path) -> Iterator[CommitScheduler | None]:
    """Commit the folder to a private dataset every few minutes, and when the survey ends; begin with what is there already."""
    if repo is None:
        yield None
        return
    import httpx
    from huggingface_hub import CommitScheduler
    from huggingface_hub.errors import HfHubHTTPError

    try:
        restore(repo, folder)
        scheduler = CommitScheduler(
            repo_id=repo, repo_type="dataset", folder_path=folder, every=EVERY, private=True, ignore_patterns=list(_NOT_PUSHED)
        )
    except (HfHubHTTPError, httpx.HTTPError, OSError, ValueError) as error:
        raise InputError(
            f"the hub does not take the ratings as {repo!r} ({first_line(error)}). Give --ratings-hub NAMESPACE/NAME of a dataset that you "
            "may write to, and log in (hf auth login), or leave it out"
        ) from error
    try:
        yield scheduler
    finally:
        try:
            scheduler.trigger().result()
        except (HfHubHTTPError, httpx.HTTPError, OSError) as error:
            raise InputError(
                f"the last answers could not be committed to {repo} ({first_line(error)}). They are in {folder}; the same command commits "
                "them"
            ) from error
        finally:
            scheduler.stop()


def restore(repo: str, folder: Path) -> None:
    """Take a survey's files from the hub where the folder has none, as on a Space that started anew."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError

    if any(folder.glob("plans/*.json")):
        return
    try:
        wanted = ["plans/*.json", "ratings/*.jsonl", "ratings/*.parquet", PICTURES]
        snapshot_download(repo, repo_type="dataset", local_dir=folder, allow_patterns=wanted)
    except RepositoryNotFoundError:
        return


# The Space


def settings_record(settings: Settings, ratings_hub: str) -> Json:
    """The settings as ``survey.json`` of a Space keeps them."""
    return {
        "countries": list(settings.countries),
        "seed": settings.design.seed,
        "per_participant": settings.design.per_participant,
        "quota": settings.quota,
        "completion_code": settings.completion_code,
        "ratings_hub": ratings_hub,
    }


def serve_space(here: Path) -> None:
    """What a Space's app.py calls: the survey of ``survey.json``, with the pictures of its ratings dataset."""
    record = json.loads((here / SETTINGS).read_text(encoding="utf-8"))
    design = Design(seed=record["seed"], per_participant=record["per_participant"])
    settings = Settings(tuple(record["countries"]), design, record["quota"], record["completion_code"])
    out = Path(os.environ.get(FOLDER_VARIABLE, here / "ratings"))
    trick_folder = here / "tricks"
    serve(
        out,
        settings,
        lambda: read_pictures(Folder(str(out)), PICTURES),
        trick_folder=str(trick_folder) if trick_folder.is_dir() else None,
        hub=record["ratings_hub"],
        host=os.environ.get("GRADIO_SERVER_NAME", "0.0.0.0"),
        port=int(os.environ.get("GRADIO_SERVER_PORT", "7860")),
        say=lambda line: print(line, flush=True),
    )
