"""The controller: a small network that reads a phrase without its operands and chooses the operation (ours).

Binary16 codes of the tokens, lifted; a map of each token (or of a few neighbours, `kernel`); the strongest
response of each feature anywhere in the phrase; a linear map to the five operations.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tasks.codec import Binary16
from tasks.corpus import PAD, Tokenizer
from tasks.payload import fitting, load_module, pack_tensors, unpack_tensors
from tasks.progress import Progress, silent
from tasks.skills.compiler import OPERATIONS, Operation
from tasks.skills.operands import parse_operands
from tasks.skills.params import ControllerParams
from tasks.skills.phrasing import phrasings
from tasks.skills.tasks import TaskMaker

_PAYLOAD = "controller"
_CODE_SEED = 16
_LONGEST_PIECE = 4
_MARKS = ("", "", "", ",", ":", "?")


class Controller(nn.Module):
    """Token ids (B, L), padded with 0 -> logits (B, 5) in the order of `OPERATIONS`."""

    codebook_VD: Tensor

    def __init__(self, width: int, kernel: int, vocab_size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.width, self.kernel, self.vocab_size = width, kernel, vocab_size
        codebook = Binary16(vocab_size, width, _CODE_SEED).codebook()
        self.register_buffer("codebook_VD", codebook, persistent=False)
        self.embed = nn.Linear(width, width)
        self.features = nn.Conv1d(width, width, kernel, padding=kernel // 2)
        self.choose = nn.Linear(width, len(OPERATIONS))
        if not self.codebook_VD.is_meta:
            with torch.no_grad():
                for parameter in self.parameters():
                    scale = parameter[0].numel() ** -0.5 if parameter.ndim > 1 else 0.0
                    parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))

    def forward(self, tokens_BL: Tensor) -> Tensor:
        present_BL1 = (tokens_BL != PAD).unsqueeze(-1)
        x_BLD = F.gelu(self.embed(F.embedding(tokens_BL, self.codebook_VD))) * present_BL1
        y_BDL = self.features(x_BLD.transpose(1, 2))[..., : tokens_BL.shape[1]]
        y_BDL = y_BDL.masked_fill(~present_BL1.transpose(1, 2), -1e4)
        logits_BO: Tensor = self.choose(F.relu(y_BDL.amax(-1)))
        return logits_BO

    @torch.no_grad()
    def route(self, phrases: Sequence[str], tokenizer: Tokenizer) -> Tensor:
        """Probabilities (B, 5) of the operations for phrases with masked operands, see `parse_operands`."""
        return torch.cat([self(encode_phrases([phrase], tokenizer)).softmax(-1) for phrase in phrases])

    def to_bytes(self) -> bytes:
        """Safetensors payload."""
        record = {"width": self.width, "kernel": self.kernel, "vocab_size": self.vocab_size}
        return pack_tensors(self.state_dict(), what=_PAYLOAD, record=record)


def load_controller(payload: bytes) -> Controller:
    """A frozen controller from its payload; raises `BadPayload` when the bytes are none."""
    tensors, record = unpack_tensors(payload, what=_PAYLOAD)
    with fitting(_PAYLOAD):
        width, kernel, vocab_size = (int(record[name]) for name in ("width", "kernel", "vocab_size"))
        found = load_module(
            lambda: Controller(width, kernel, vocab_size, torch.Generator().manual_seed(0)), tensors, layers=3
        )
    return _frozen(found)


def encode_phrases(phrases: Sequence[str], tokenizer: Tokenizer) -> Tensor:
    """Token ids (B, L) int64 of phrases, padded to the longest; an empty phrase is one padding."""
    ids = tokenizer.encode_many([f" {phrase}" for phrase in phrases])  # the first word like any other
    tokens_BL = torch.full((len(ids), max(1, *(len(row) for row in ids))), PAD)
    for row, tokens in enumerate(ids):
        tokens_BL[row, : len(tokens)] = torch.from_numpy(tokens.astype(np.int64))
    return tokens_BL


def train_controller(
    params: ControllerParams, tasks: TaskMaker, tokenizer: Tokenizer, progress: Progress = silent
) -> Controller:
    """Train a controller on training prompts, each with random words in it; equal inputs, equal bytes."""
    generator = torch.Generator().manual_seed(params.seed)
    controller = Controller(params.width, params.kernel, tokenizer.vocab_size, generator)
    optimizer = torch.optim.AdamW(controller.parameters(), lr=params.rate, weight_decay=0.01)
    noise = Noise(tokenizer, params.noise)
    for step in range(params.steps):
        rng = np.random.default_rng([params.seed, step])
        made = tasks.make(params.rows, seed=1_000_003 + step)
        phrases = [noise.apply(parse_operands(task.prompt).masked, rng) for task in made]
        target_B = torch.tensor([OPERATIONS.index(task.operation) for task in made])
        loss = F.cross_entropy(controller(encode_phrases(phrases, tokenizer)), target_B)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        for group in optimizer.param_groups:
            group["lr"] = params.rate * (1 - step / params.steps)
        optimizer.step()
        progress(step + 1, params.steps, loss=float(loss.detach()))
    return _frozen(controller)


class Noise:
    """Random words for training prompts, made of the tokenizer's own pieces, as unknown words will be.

    None of them is a word of a training phrasing.
    """

    def __init__(self, tokenizer: Tokenizer, share: float) -> None:
        """`share` is the chance of a random word at each gap; a third of it that of losing a word."""
        self.share = share
        pieces = {tokenizer.pieces([token])[0].strip() for token in range(tokenizer.vocab_size)}
        self.pieces = sorted(piece for piece in pieces if piece.isalpha() and len(piece) <= _LONGEST_PIECE)
        self.known = {word for phrasing in phrasings("train") for word in phrasing.template.split()}

    def apply(self, phrase: str, rng: np.random.Generator) -> str:
        """A phrase with random words at its gaps, some of its own missing, and half the time in any order.

        What remains to choose by are the operation's own words, wherever they stand.
        """
        own = [word for word in phrase.split() if rng.random() >= self.share / 3]
        if rng.random() < 0.5:
            own = [own[place] for place in rng.permutation(len(own))]
        words: list[str] = []
        for word in own:
            words += [self.word(rng), word] if rng.random() < self.share else [word]
        return " ".join([*words, self.word(rng)] if rng.random() < self.share else words)

    def word(self, rng: np.random.Generator) -> str:
        """One to four pieces in a row, now and then with a mark behind."""
        while True:
            drawn = rng.integers(len(self.pieces), size=int(rng.integers(1, 5)))
            word = "".join(self.pieces[place] for place in drawn)
            if word not in self.known:
                return word + _MARKS[int(rng.integers(len(_MARKS)))]


def _frozen(controller: Controller) -> Controller:
    for parameter in controller.parameters():
        parameter.requires_grad_(False)
    return controller.eval()


def chosen(probabilities: Tensor) -> list[Operation]:
    """The most likely operations of `Controller.route`."""
    return [OPERATIONS[int(index)] for index in probabilities.argmax(-1)]
