"""One filter trained: a transformers text classifier on composed rows, by one method, from one seed."""

from __future__ import annotations

import math
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.generate.filters import Wording, worded
from t2i_parity.generate.filters.text_classifier import TextClassifier, TextClassifierSettings, token_limit, unsafe_labels
from t2i_parity.generate.mitigate import Method
from t2i_parity.generate.mitigate.data import Example, group_sizes
from t2i_parity.generate.mitigate.group_dro import first_weights, group_losses, next_weights


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How every cell is trained. The study's own values stand in an appendix that we do not have: these are the usual ones for DistilBERT
    and, for ``step_size`` and ``adjustment``, those of GroupDRO's authors.

    Training ends after ``epochs`` rounds over the rows, or when ``stop_on`` has not become better for ``patience`` rounds; the best round's
    weights are kept. ``stop_on`` is the mean loss over the validation rows, which are composed as the training rows are, or the largest
    mean loss of one group of them. ``head`` says whether the model's own two labels are trained on (``unsafe`` names the one that blocks,
    where that is not plain), or a new head of the labels benign and toxic; "auto" keeps those of a classifier. The filter flags what it
    gives a probability above 0.5.
    """

    epochs: Annotated[int, Field(ge=1)] = 10
    patience: Annotated[int, Field(ge=1)] = 2
    stop_on: Literal["loss", "worst_group_loss"] = "loss"
    batch_size: Annotated[int, Field(ge=1)] = 32
    learning_rate: Annotated[float, Field(gt=0)] = 2e-5
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    step_size: Annotated[float, Field(ge=0)] = 0.01
    adjustment: Annotated[float, Field(ge=0)] = 0.0
    max_length: Annotated[int | None, Field(ge=4)] = None
    wording: Wording = "as_is"
    head: Literal["auto", "keep", "new"] = "auto"
    unsafe: str = ""
    precision: Literal["fp32", "bf16"] = "fp32"
    device: Literal["auto", "cpu"] = "auto"


@dataclass(frozen=True, slots=True)
class Base:
    """The model that every cell begins with. ``toxic`` is the place of its label that blocks, None when it gets a new head."""

    source: str
    revision: str | None
    toxic: int | None


@dataclass(frozen=True, slots=True)
class Trained:
    """How training went: rounds, the best one and its objective on the validation rows, and GroupDRO's last weights (None elsewhere)."""

    epochs: int
    best_epoch: int
    objective: float
    weights: tuple[float, ...] | None


class Stopped(Exception):  # noqa: N818 - an end that was asked for, no error
    """Training was ended by a signal."""


class Diverged(Exception):  # noqa: N818
    """The loss is no finite number; the message says where."""


def load_base(source: str, revision: str | None, settings: TrainingSettings) -> tuple[Base, Any]:
    """The base and its config; its weights are not read yet.

    Raises InputError when it cannot be had, or when its labels cannot be trained on as they are.
    """
    transformers = require("transformers", package="transformers", extra="generate")
    require("accelerate", package="accelerate", extra="generate")
    try:
        config = transformers.AutoConfig.from_pretrained(source, revision=revision)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, revision=revision)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--model {source}: it could not be loaded ({first_line(error)}). Give a folder that holds a transformers model, or a hub id; "
            f"download it once with: hf download {source}"
        ) from error
    if tokenizer.pad_token is None:
        raise InputError(f"--model {source}: its tokenizer has no padding token, so that its texts make no batches; give another model")
    classifier = any(str(name).endswith("ForSequenceClassification") for name in config.architectures or [])
    if settings.head == "new" or (settings.head == "auto" and not classifier):
        return Base(source, revision, None), config
    labels = [str(config.id2label[number]) for number in range(config.num_labels)]
    if not classifier or len(labels) != 2 or config.problem_type == "multi_label_classification":
        raise InputError(
            f"--model {source}: its labels are {', '.join(labels) or 'none'}, and a filter of two labels that exclude each other is "
            "trained here. Give it a new head: --set head=new"
        )
    (toxic,) = unsafe_labels(labels, settings.unsafe, f"--model {source}")
    return Base(source, revision, toxic), config


def train(
    base: Base,
    rows: Sequence[Example],
    validation: Sequence[Example],
    *,
    n_groups: int,
    method: Method,
    seed: int,
    settings: TrainingSettings,
    out: Path,
    told: Callable[[int], None] = lambda epoch: None,
    stop: threading.Event | None = None,
) -> Trained:
    """Train one filter and save it, tokenizer beside it, into the folder ``out``. The same arguments on one machine give the same filter.

    ``told`` hears of each round that ended; once ``stop`` is set, Stopped is raised after the step at hand, and nothing is saved. Raises
    Diverged when the loss is no finite number.
    """
    import torch
    import transformers

    with _quiet(transformers), tempfile.TemporaryDirectory(prefix=".tmp-", dir=out.parent) as work:
        transformers.set_seed(seed)
        tokenizer = transformers.AutoTokenizer.from_pretrained(base.source, revision=base.revision)
        model = _model(transformers, base)
        limit = settings.max_length or token_limit(tokenizer, model.config)
        toxic = 1 if base.toxic is None else base.toxic

        def encoded(examples: Sequence[Example]) -> list[dict[str, Any]]:
            texts = [worded(example.text, settings.wording) for example in examples]
            ids = tokenizer(texts, truncation=True, max_length=limit)
            names = [name for name in ("input_ids", "attention_mask") if name in ids]
            return [
                {**{name: ids[name][place] for name in names}, "labels": toxic if example.label else 1 - toxic, "groups": example.group}
                for place, example in enumerate(examples)
            ]

        group_of = np.array([example.group for example in validation])

        def measured(evaluation: Any) -> dict[str, float]:
            losses = _cross_entropy(np.asarray(evaluation.predictions, np.float64), np.asarray(evaluation.label_ids))
            by_group = [float(losses[group_of == group].mean()) for group in np.unique(group_of)]
            return {"objective": float(losses.mean()) if settings.stop_on == "loss" else max(by_group)}

        trainer = _trainer_class()(
            model=model,
            args=transformers.TrainingArguments(
                output_dir=work,
                num_train_epochs=settings.epochs,
                per_device_train_batch_size=settings.batch_size,
                per_device_eval_batch_size=64,
                learning_rate=settings.learning_rate,
                weight_decay=settings.weight_decay,
                bf16=settings.precision == "bf16",
                use_cpu=settings.device == "cpu",
                dataloader_pin_memory=False,
                eval_strategy="epoch",
                save_strategy="epoch",
                save_total_limit=1,
                save_only_model=True,
                logging_strategy="no",
                report_to="none",
                disable_tqdm=True,
                remove_unused_columns=False,
                label_names=["labels"],
                load_best_model_at_end=True,
                metric_for_best_model="objective",
                greater_is_better=False,
                seed=seed,
            ),
            train_dataset=encoded(rows),
            eval_dataset=encoded(validation),
            data_collator=transformers.DataCollatorWithPadding(tokenizer),
            compute_metrics=measured,
            callbacks=[transformers.EarlyStoppingCallback(settings.patience), _hearer(told, stop)],
        )
        trainer.begin(method, group_sizes(rows, n_groups), settings, seed)
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
        if stop is not None and stop.is_set():
            raise Stopped
        objectives = [entry["eval_objective"] for entry in trainer.state.log_history if "eval_objective" in entry]
        if not objectives or not all(math.isfinite(value) for value in objectives):
            raise Diverged(f"the loss became no finite number in round {len(objectives)}; a smaller learning_rate may help")
        best = min(range(len(objectives)), key=objectives.__getitem__)
        made = trainer.model.to(device="cpu", dtype=torch.float32)
        made.save_pretrained(out)
        tokenizer.save_pretrained(out)
        weights = None if trainer.weights is None else tuple(float(weight) for weight in trainer.weights)
        return Trained(len(objectives), best + 1, objectives[best], weights)


def judged(source: str, revision: str | None, unsafe: str, texts: Sequence[str], settings: TrainingSettings) -> list[float]:
    """The probability in [0, 1] that each text is toxic, by the very filter that ``audit-filter --filter transformers`` uses."""
    import torch
    import transformers

    device = "cuda" if settings.device == "auto" and torch.cuda.is_available() else "cpu"
    with _quiet(transformers):
        filter_ = TextClassifier(
            TextClassifierSettings(
                source, revision, unsafe=unsafe, wording=settings.wording, max_length=settings.max_length, device=device, batch_size=64
            )
        )
    scores = [verdict.score for verdict in filter_.judge(texts)]
    return [float(score) for score in scores if score is not None]


# Inside


def _model(transformers: Any, base: Base) -> Any:
    if base.toxic is not None:
        model = transformers.AutoModelForSequenceClassification.from_pretrained(base.source, revision=base.revision)
        labels = [str(model.config.id2label[number]) for number in range(2)]
        try:
            unsafe_labels(labels, "", "")
        except InputError:
            # So that whoever takes the filter need not be told which label blocks.
            labels = ["benign", "benign"]
            labels[base.toxic] = "toxic"
    else:
        labels = ["benign", "toxic"]
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            base.source, revision=base.revision, num_labels=2, ignore_mismatched_sizes=True
        )
    model.config.id2label = dict(enumerate(labels))
    model.config.label2id = {label: number for number, label in enumerate(labels)}
    model.config.problem_type = "single_label_classification"
    return model.float()


def _cross_entropy(logits: NDArray[np.float64], labels: NDArray[np.intp]) -> NDArray[np.float64]:
    """The loss of each row.

    >>> _cross_entropy(np.array([[0.0, 0.0]]), np.array([1])).round(4).tolist()
    [0.6931]
    """
    shifted = logits - logits.max(axis=1, keepdims=True)
    losses: NDArray[np.float64] = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]
    return losses


@cache
def _trainer_class() -> Any:
    """transformers' Trainer with our batches and our loss. Made when it is asked for, since transformers is imported late."""
    import torch
    import transformers
    from torch.utils.data import DataLoader, RandomSampler, WeightedRandomSampler

    class GroupTrainer(transformers.Trainer):  # type: ignore[misc]
        """Draws rows at random or each group equally often, and takes the mean of their losses or GroupDRO's."""

        def begin(self, method: Method, sizes: Sequence[int], settings: TrainingSettings, seed: int) -> None:
            """Say how this training goes, before it begins."""
            self.method, self.sizes, self.settings = method, list(sizes), settings
            self.weights = first_weights(sizes) if method.robust else None
            self.drawn = torch.Generator().manual_seed(seed)

        def get_train_dataloader(self) -> Any:
            rows: Any = self.train_dataset
            if self.method.balanced_batches:
                # Each group in equal expected number: a row's chance is one over the rows of its group.
                chances = [1.0 / self.sizes[row["groups"]] for row in rows]
                sampler: Any = WeightedRandomSampler(chances, len(rows), replacement=True, generator=self.drawn)
            else:
                sampler = RandomSampler(rows, generator=self.drawn)
            return DataLoader(rows, batch_size=self.settings.batch_size, sampler=sampler, collate_fn=self.data_collator)

        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None) -> Any:
            features = {name: value for name, value in inputs.items() if name not in ("labels", "groups")}
            outputs = model(**features)
            losses = torch.nn.functional.cross_entropy(outputs.logits.float(), inputs["labels"], reduction="none")
            if self.weights is not None and model.training:
                of_groups = group_losses(losses, inputs["groups"], len(self.sizes))
                self.weights = next_weights(
                    self.weights,
                    of_groups.detach().double().cpu().numpy(),
                    step_size=self.settings.step_size,
                    sizes=self.sizes,
                    adjustment=self.settings.adjustment,
                )
                loss = (of_groups * torch.as_tensor(self.weights, dtype=losses.dtype, device=losses.device)).sum()
            else:
                loss = losses.mean()
            return (loss, outputs) if return_outputs else loss

    return GroupTrainer


def _hearer(told: Callable[[int], None], stop: threading.Event | None) -> Any:
    import transformers

    class Hearer(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if stop is not None and stop.is_set():
                control.should_training_stop = True

        def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            told(round(state.epoch))

    return Hearer()


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Without its warnings of new heads and its bars of loading; a head is new only where it was asked for."""
    before = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before[0])
        if before[1]:
            transformers.logging.enable_progress_bar()
