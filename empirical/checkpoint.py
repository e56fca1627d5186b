"""A finished run's weights on disk (safetensors): the server's, and what stays with each client."""

import json
import os
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from empirical.state import FederationState
from empirical.weights import Weights

_FORMAT = "unifed-1"


def save_checkpoint(path: str | os.PathLike[str], state: FederationState) -> None:
    """Writes `state` aside and renames it to `path`, so that no half-written file is seen."""
    owners = ["server", *sorted(state.clients)]
    models: dict[str, Weights] = {"server": state.server, **state.clients}
    flat = {
        f"{number}/{name}": tensor.detach().cpu().contiguous()
        for number, owner in enumerate(owners)
        for name, tensor in models[owner].items()
    }
    about = {
        "owners": owners,
        "status": state.status,
        "round": state.round,
        "p": dict(state.p),
        "notes": state.notes,
    }
    target = Path(path)
    aside = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        save_file(flat, aside, {"format": _FORMAT, "about": json.dumps(about, sort_keys=True)})
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def load_checkpoint(path: str | os.PathLike[str]) -> FederationState:
    """Reads what `save_checkpoint` wrote, onto the CPU.

    `load(model, state.weights("mnist"))` puts a client's model together.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a damaged file, or one that is no checkpoint of this package.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error
    if metadata.get("format") != _FORMAT:
        raise ValueError(f"{path} is no checkpoint of a federation (format {_FORMAT})")
    about = json.loads(metadata["about"])
    models: list[Weights] = [{} for _ in about["owners"]]
    for key, tensor in tensors.items():
        number, name = key.split("/", 1)
        models[int(number)][name] = tensor
    return FederationState(
        status=about["status"],
        round=about["round"],
        server=models[0],
        clients=dict(zip(about["owners"][1:], models[1:], strict=True)),
        p=about["p"],
        notes=tuple(about["notes"]),
    )
