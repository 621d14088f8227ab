"""Language decoders against llama.cpp: tokens per second for a prompt and for the tokens that follow it.

    pip install '.[language]'
    python tests/bench/language.py [--forms q8,q4,blocks] [--threads 1,2] [--rounds 15] [--spinning] [--folder DIR]

The decoder has 154 million random weights (tests/language_models.py): 12 layers of width 768, 12 query heads and 4 key
heads, a hidden width of 3072, and 32768 tokens. The same weights are written as TFLite and as GGUF: int8 or int4 with
per-row scales (q8, q4), or int4 in blocks of 32 (blocks). llama.cpp always uses blocks of 32 (Q8_0, Q4_0). A prompt of
128 tokens is read, then single tokens follow, using the caches. The two alternate in rounds; a ratio is the median of
the rounds' ratios. With `--spinning` another process keeps each core busy meanwhile. The outputs of both are compared
first. Prints Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

import numpy as np
from attrs import frozen
from shared_cores import spinning

import onert
from onert.ir import Array

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from language_models import BASE, EPSILON, RUN, Matrix, Sizes, Weights, decoder, weights

FORMS = {"q8": (8, False), "q4": (4, False), "blocks": (4, True)}
PROMPT, FOLLOWING = 128, 32
PAUSE = 0.02
"""Seconds between the turns, because llama.cpp's threads spin for a while."""
Tokens = Sequence[int]


@frozen(eq=False)
class Peer:
    """`prefill(tokens)` reads a prompt from position 0; `step(token, position)` returns the next scores."""

    prefill: Callable[[Tokens], object]
    step: Callable[[int, int], Array]


# ---- onert


def ours(path: Path, sizes: Sizes, threads: int) -> Peer:
    """The model in process, with its caches updated in place."""
    package = onert.load(path)
    shape = (1, sizes.key_heads, sizes.positions, sizes.size)
    names = [f"{kind}_{number}" for number in range(sizes.layers) for kind in ("keys", "values")]
    caches = {name: np.zeros(shape, np.float32) for name in names}
    entries, given = {}, {}
    for key, count in (("prefill", PROMPT), ("decode", 1)):
        execution = entries[key] = onert.Execution(onert.compile(package, signature=key, num_threads=threads))
        for name, array in caches.items():
            execution.set_input(name, array)
            execution.set_output(name, array)
        # The arrays keep their addresses, so that kernels stay bound to them.
        given[key] = np.zeros((1, count), np.int32), np.zeros(count, np.int32)
        for name, array in zip(("tokens", "positions"), given[key], strict=True):
            execution.set_input(name, array)
    scores = np.zeros((1, 1, sizes.vocabulary), np.float32)
    entries["decode"].set_output("scores", scores)

    def run(key: str, tokens: Tokens, first: int) -> None:
        own, places = given[key]
        own[:], places[:] = tokens, np.arange(first, first + len(tokens))
        entries[key].execute()

    def step(token: int, position: int) -> Array:
        run("decode", [token], position)
        return scores.reshape(-1)

    return Peer(lambda tokens: run("prefill", tokens, 0), step)


# ---- llama.cpp


def write_gguf(path: Path, given: Weights) -> None:
    """Write the same weights for llama.cpp."""
    import gguf

    sizes, kinds = given.sizes, gguf.GGMLQuantizationType
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(sizes.positions)
    writer.add_embedding_length(sizes.model)
    writer.add_block_count(sizes.layers)
    writer.add_feed_forward_length(sizes.hidden)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.key_heads)
    writer.add_rope_dimension_count(sizes.size)
    writer.add_rope_freq_base(BASE)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_vocab_size(sizes.vocabulary)
    writer.add_tokenizer_model("no_vocab")

    def add(name: str, matrix: Matrix) -> None:
        kind = kinds.Q4_0 if matrix.bits == 4 else kinds.Q8_0
        writer.add_tensor(f"{name}.weight", _blocks(matrix), raw_dtype=kind)

    add("token_embd", given.tokens)
    add("output", given.last)
    writer.add_tensor("output_norm.weight", given.norms[-1])
    names = {"output": "attn_output", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down", "value": "attn_v"}
    for number, layer in enumerate(given.layers):
        for ours, theirs in names.items():
            add(f"blk.{number}.{theirs}", layer[ours])
        for ours, theirs in (("query", "attn_q"), ("key", "attn_k")):
            add(f"blk.{number}.{theirs}", _neighbours(layer[ours], sizes.size))
        for at, name in enumerate(("attn_norm", "ffn_norm")):
            writer.add_tensor(f"blk.{number}.{name}.weight", given.norms[2 * number + at])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _neighbours(matrix: Matrix, size: int) -> Matrix:
    """The rows in llama.cpp's order: it rotates neighbouring rows together, not the two halves of a head."""
    order = np.arange(len(matrix.integers)).reshape(-1, 2, size // 2).swapaxes(1, 2).reshape(-1)
    return Matrix(matrix.integers[order], matrix.scales[order], matrix.bits)


def _blocks(matrix: Matrix) -> Array:
    """ggml's block_q4_0 or block_q8_0: a row of bytes for each row of the matrix."""
    n, k = matrix.integers.shape
    runs = matrix.integers.reshape(n, k // RUN, RUN)
    scales = np.broadcast_to(matrix.scales, (n, k // RUN)).astype("<f2")[..., None].view(np.uint8)
    if matrix.bits == 4:
        lifted = (runs + 8).astype(np.uint8)
        stored = lifted[..., : RUN // 2] | lifted[..., RUN // 2 :] << 4
    else:
        stored = runs.view(np.uint8)
    return np.concatenate([scales, stored], -1).reshape(n, -1)


def theirs(path: Path, sizes: Sizes, threads: int) -> Peer:
    """llama.cpp on a GGUF file, through its C interface."""
    import llama_cpp as c

    silent = c.llama_log_callback(lambda *_: None)
    c.llama_log_set(silent, ctypes.c_void_p(0))
    c.llama_backend_init()
    model = c.llama_model_load_from_file(str(path).encode(), c.llama_model_default_params())
    parameters = c.llama_context_default_params()
    parameters.n_ctx = sizes.positions
    parameters.n_batch = parameters.n_ubatch = PROMPT
    parameters.n_threads = parameters.n_threads_batch = threads
    context = c.llama_init_from_model(model, parameters)

    def decode(tokens: Tokens) -> None:
        array = (c.llama_token * len(tokens))(*tokens)
        if c.llama_decode(context, c.llama_batch_get_one(array, len(tokens))):
            raise RuntimeError("llama_decode has failed")

    def prefill(tokens: Tokens) -> None:
        c.llama_memory_clear(c.llama_get_memory(context), False)
        decode(tokens)

    def step(token: int, position: int) -> Array:
        c.llama_memory_seq_rm(c.llama_get_memory(context), 0, position, -1)
        decode([token])
        return np.ctypeslib.as_array(c.llama_get_logits(context), (sizes.vocabulary,))

    prefill.kept = silent  # type: ignore[attr-defined]
    return Peer(prefill, step)


# ---- both


def seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def rows(form: str, threads: int, files: tuple[Path, Path], sizes: Sizes, rounds: int) -> list[str]:
    """The table's rows for the prompt and for the tokens after it."""
    tokens = np.random.default_rng(0).integers(0, sizes.vocabulary, PROMPT + FOLLOWING).tolist()
    prompt, following = tokens[:PROMPT], list(enumerate(tokens[PROMPT:], PROMPT))
    peers = (ours(files[0], sizes, threads), theirs(files[1], sizes, threads))
    answers = []
    for peer in peers:
        peer.prefill(prompt)
        answers.append(np.array([peer.step(token, at).copy() for at, token in following]))
    apart = np.corrcoef(answers[0].reshape(-1), answers[1].reshape(-1))[0, 1]
    assert apart > 0.99, f"the answers' correlation is {apart}"
    found: dict[str, list[list[float]]] = {"prompt": [], "following": []}
    for number in range(rounds):
        times: dict[str, list[float]] = {name: [0.0, 0.0] for name in found}
        for at in (0, 1) if number % 2 else (1, 0):
            peer = peers[at]
            sleep(PAUSE)
            times["prompt"][at] = seconds(lambda peer=peer: peer.prefill(prompt)) / len(prompt)
            run = seconds(lambda peer=peer: [peer.step(token, place) for place, token in following])
            times["following"][at] = run / len(following)
        for name, own in times.items():
            found[name].append(own)
    return [
        f"| {form} | {threads} | {name} | {1 / median(own):.0f} | {1 / median(other):.0f} | "
        f"{median(t / o for o, t in each):.2f} |"
        for name, each in found.items()
        for own, other in [zip(*each, strict=True)]
    ]


def main() -> None:
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--forms", type=lambda text: text.split(","), default=list(FORMS))
    out.add_argument("--threads", type=lambda text: [int(each) for each in text.split(",")], default=[1, 2])
    out.add_argument("--rounds", type=int, default=15)
    out.add_argument("--spinning", action="store_true")
    out.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / f"decoders-{os.getuid()}")
    given = out.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    sizes = Sizes()
    print("| weights | threads | tokens | onert tokens/s | llama.cpp tokens/s | speedup |")
    print("|---|---:|---|---:|---:|---:|")
    for form in given.forms:
        files = given.folder / f"{form}.tflite", given.folder / f"{form}.gguf"
        if not all(file.exists() for file in files):
            made = weights(sizes, *FORMS[form])
            files[0].write_bytes(decoder(made, PROMPT))
            write_gguf(files[1], made)
        for threads in given.threads:
            with spinning(apart=False) if given.spinning else contextlib.nullcontext():
                print(*rows(form, threads, files, sizes, given.rounds), sep="\n", flush=True)


if __name__ == "__main__":
    main()
