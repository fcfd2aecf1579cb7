"""PyTorch models of the offloading suite: true shapes, random weights, three number formats.

MLP, attention (prefill, and decode with KV caches of fixed length, kept by the placed module), one
layer of GPT-J-6B and of LLaMA-7B, a small whole language model. "float32" has ordinary linear
layers; "int8" and "int32" round activations to integers and sum products in int32. int32 values are
0 to 49, as in ATiM's evaluation (ISCA 2025, artefact, bench.py); int8 values are -127 to 127.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

__all__ = ["DTYPES", "MODELS", "Case", "Linear"]

DTYPES = ("float32", "int8", "int32")
_RANGES = {"int8": (-127, 127), "int32": (0, 49)}


class Linear(nn.Module):  # type: ignore[misc]
    """x W^T. Quantised: integers of a fixed scale in, int32 sums, float32 out."""

    def __init__(self, inputs: int, outputs: int, dtype: str) -> None:
        super().__init__()
        self.dtype = getattr(torch, dtype)
        if dtype == "float32":
            weight = torch.empty(outputs, inputs).uniform_(-1, 1) / math.sqrt(inputs)
            self.scale = 1.0
        else:
            self.low, self.high = _RANGES[dtype]
            weight = torch.randint(self.low, self.high + 1, (outputs, inputs), dtype=self.dtype)
            spread = (self.high - self.low) / 4
            self.step = 1.0 / spread
            self.scale = 1.0 / (math.sqrt(inputs) * spread * spread)
            self.middle = (self.low + self.high) // 2
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, x: Any) -> Any:
        if self.dtype is torch.float32:
            return functional.linear(x, self.weight)
        q = torch.clamp(torch.round(x / self.step) + self.middle, self.low, self.high)
        sums = q.to(self.dtype).to(torch.int32) @ self.weight.to(torch.int32).t()
        return sums.to(torch.float32) * self.scale


class MLP(nn.Module):  # type: ignore[misc]
    """Three layers with ReLU between."""

    def __init__(self, width: int, dtype: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Linear(width, width, dtype) for _ in range(3)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


def _rotary_tables(size: int, positions: int) -> tuple[Any, Any]:
    frequency = 1.0 / 10000.0 ** (torch.arange(0, size, 2).float() / size)
    angle = torch.outer(torch.arange(positions).float(), frequency)
    return angle.cos(), angle.sin()


def _rotate_pairs(x: Any, cos: Any, sin: Any) -> Any:
    """GPT-J: neighbours of the first dimensions are pairs."""
    size = 2 * cos.shape[-1]
    even, odd = x[..., 0:size:2], x[..., 1:size:2]
    turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)
    return torch.cat((turned, x[..., size:]), -1)


def _rotate_halves(x: Any, cos: Any, sin: Any) -> Any:
    """LLaMA: the first half pairs with the second."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):  # type: ignore[misc]
    """x [1, T, d], caches [1, heads, L, d / heads] -> y, caches.

    With a position (int64 [1]) the caches have fixed length and get one row; without, longer ones
    are returned.
    """

    def __init__(
        self, width: int, heads: int, dtype: str, rotary: int = 0, rotate: Any = None
    ) -> None:
        super().__init__()
        self.heads, self.rotate = heads, rotate
        self.q, self.k, self.v, self.o = (Linear(width, width, dtype) for _ in range(4))
        if rotate is not None:
            cos, sin = _rotary_tables(rotary, 2048)
            self.register_buffer("cos", cos)
            self.register_buffer("sin", sin)

    def forward(self, x: Any, keys: Any, values: Any, position: Any = None) -> tuple[Any, Any, Any]:
        _, tokens, width = x.shape
        past = keys.shape[2]

        def split(t: Any) -> Any:
            return t.view(1, tokens, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        if self.rotate is not None:
            rows = slice(past, past + tokens) if position is None else position
            cos, sin = self.cos[rows], self.sin[rows]
            q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        if position is None:
            keys, values = torch.cat((keys, k), 2), torch.cat((values, v), 2)
        else:
            keys = keys.index_copy(2, position, k)
            values = values.index_copy(2, position, v)
        scores = q @ keys.transpose(-1, -2) / math.sqrt(width // self.heads)
        if position is not None:
            scores = scores.masked_fill(torch.arange(past) > position, float("-inf"))
        elif tokens > 1:
            hidden = torch.ones(tokens, past + tokens, dtype=torch.bool).triu(past + 1)
            scores = scores.masked_fill(hidden, float("-inf"))
        mixed = (torch.softmax(scores, -1) @ values).transpose(1, 2).reshape(1, tokens, width)
        return self.o(mixed), keys, values


class GPTJLayer(nn.Module):  # type: ignore[misc]
    """One layer of GPT-J-6B: attention and feed-forward side by side."""

    def __init__(self, width: int, heads: int, hidden: int, rotary: int, dtype: str) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads, dtype, rotary, _rotate_pairs)
        self.up, self.down = Linear(width, hidden, dtype), Linear(hidden, width, dtype)
        self.up_bias = nn.Parameter(torch.zeros(hidden), requires_grad=False)
        self.down_bias = nn.Parameter(torch.zeros(width), requires_grad=False)

    def forward(self, x: Any, keys: Any, values: Any, position: Any = None) -> tuple[Any, Any, Any]:
        n = self.norm(x)
        mixed, keys, values = self.attention(n, keys, values, position)
        grown = functional.gelu(self.up(n) + self.up_bias, approximate="tanh")
        return x + mixed + self.down(grown) + self.down_bias, keys, values


class RMSNorm(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width), requires_grad=False)

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class LlamaLayer(nn.Module):  # type: ignore[misc]
    """One layer of LLaMA-7B: attention, then a gated feed-forward."""

    def __init__(self, width: int, heads: int, hidden: int, dtype: str) -> None:
        super().__init__()
        self.before, self.between = RMSNorm(width), RMSNorm(width)
        self.attention = Attention(width, heads, dtype, width // heads, _rotate_halves)
        self.gate, self.up = Linear(width, hidden, dtype), Linear(width, hidden, dtype)
        self.down = Linear(hidden, width, dtype)

    def forward(self, x: Any, keys: Any, values: Any, position: Any = None) -> tuple[Any, Any, Any]:
        mixed, keys, values = self.attention(self.before(x), keys, values, position)
        x = x + mixed
        n = self.between(x)
        return x + self.down(functional.silu(self.gate(n)) * self.up(n)), keys, values


class SmallModel(nn.Module):  # type: ignore[misc]
    """Embedding, two LLaMA-like layers, logits of the last token; weights of both ends are tied."""

    def __init__(self, width: int, heads: int, words: int, dtype: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList([LlamaLayer(width, heads, 3 * width, dtype) for _ in range(2)])
        self.norm = RMSNorm(width)

    def forward(self, tokens: Any, position: Any, *caches: Any) -> tuple[Any, ...]:
        x, after = self.embedding(tokens), []
        for number, layer in enumerate(self.layers):
            x, keys, values = layer(x, caches[2 * number], caches[2 * number + 1], position)
            after += [keys, values]
        logits = functional.linear(self.norm(x)[:, -1], self.embedding.weight)
        return (logits, *after)


@dataclass(frozen=True, slots=True)
class Case:
    """make(dtype) -> (model, example inputs); layers: how often the whole model has it."""

    name: str
    make: Callable[[str], tuple[Any, tuple[Any, ...]]]
    layers: int = 1
    published: float = 0.0  # best speedup in Torch-PIM's abstract, 0 where it names none


def _caches(heads: int, length: int, size: int) -> tuple[Any, Any]:
    shape = (1, heads, length, size)
    return torch.empty(shape).uniform_(-1, 1), torch.empty(shape).uniform_(-1, 1)


def _step(tokens: int, heads: int, length: int, size: int) -> tuple[Any, ...]:
    """Caches, and for a decoding step the position of the last row."""
    position = (torch.tensor([length - 1]),) if tokens == 1 else ()
    return (*_caches(heads, length, size), *position)


def _vector(*shape: int) -> Any:
    return torch.empty(shape).uniform_(-1, 1)


def mlp(width: int) -> Callable[[str], Any]:
    return lambda dtype: (MLP(width, dtype), (_vector(1, width),))


def attention(width: int, heads: int, tokens: int, past: int) -> Callable[[str], Any]:
    return lambda dtype: (
        Attention(width, heads, dtype),
        (_vector(1, tokens, width), *_step(tokens, heads, past, width // heads)),
    )


def gptj(width: int, heads: int, tokens: int, past: int) -> Callable[[str], Any]:
    rotary = min(64, width // heads // 4)
    return lambda dtype: (
        GPTJLayer(width, heads, 4 * width, rotary, dtype),
        (_vector(1, tokens, width), *_step(tokens, heads, past, width // heads)),
    )


def llama(width: int, heads: int, tokens: int, past: int) -> Callable[[str], Any]:
    hidden = 11008 * width // 4096
    return lambda dtype: (
        LlamaLayer(width, heads, hidden, dtype),
        (_vector(1, tokens, width), *_step(tokens, heads, past, width // heads)),
    )


def small_model(width: int, heads: int) -> Callable[[str], Any]:
    caches = [c for _ in range(2) for c in _caches(heads, 16, width // heads)]
    return lambda dtype: (
        SmallModel(width, heads, 512, dtype),
        (torch.tensor([[5]]), torch.tensor([15]), *caches),
    )


MODELS: tuple[Case, ...] = (
    Case("MLP 3 x 4096", mlp(4096), published=2.9),
    Case("attention decode", attention(4096, 16, 1, 512), published=4.4),
    Case("attention prefill", attention(4096, 16, 128, 0), published=4.4),
    Case("GPT-J-6B decode", gptj(4096, 16, 1, 512), 28, published=5.1),
    Case("GPT-J-6B prefill", gptj(4096, 16, 128, 0), 28, published=5.1),
    Case("LLaMA-7B decode", llama(4096, 32, 1, 512), 32, published=3.6),
    Case("small model", small_model(256, 4)),
)
"""True shapes; the small model runs end to end."""
