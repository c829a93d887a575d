"""The programs of layers on numbers, as JAX runs their statements, against plain ones in NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shardviz.models.layer_program import Tokens, model_parts
from shardviz.planner.problem.functions import statement_code
from shardviz.sharding import PartitionSpec

SMALL = {"vocab_size": 32, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 1}
DEEPSEEK = SMALL | {
    "model_type": "deepseek_v3",
    "num_attention_heads": 3,
    "q_lora_rank": 7,
    "kv_lora_rank": 6,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 2,
    "v_head_dim": 5,
    "first_k_dense_replace": 1,
    "n_routed_experts": 3,
    "n_shared_experts": 2,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 8,
    "num_hidden_layers": 2,
}

MAMBA = SMALL | {"model_type": "mamba2", "num_heads": 4, "head_dim": 3, "n_groups": 2, "state_size": 5}
MAMBA |= {"conv_kernel": 3}
DELTA = SMALL | {"model_type": "qwen3_next", "num_attention_heads": 2, "linear_num_value_heads": 4}
DELTA |= {"linear_num_key_heads": 2, "linear_key_head_dim": 5, "linear_value_head_dim": 3}
DELTA |= {"linear_conv_kernel_dim": 3}


@pytest.fixture
def layers(asked, config):
    """Runs the first layer of a config that has weights of a name, for `sequence` tokens or one more."""

    def run(keys, weight, values, sequence, decodes=False):
        question = asked(config(**keys), "data", "data=1", batch=2, sequence=sequence, training=None)
        tokens = Tokens(2, sequence, PartitionSpec(((), ())), decodes)
        parts = model_parts(question.split, tokens)
        names = [{each.name for each in part.problem.arguments} for part in parts]
        problem = next(part.problem for part, own in zip(parts, names, strict=True) if weight in own)
        for array in problem.arguments:
            if array.name in values:
                assert values[array.name].shape == array.shape, array
            else:
                values[array.name] = np.random.default_rng(len(values)).standard_normal(array.shape) / 2

        @jax.jit
        def made(known):
            known = dict(known)
            for part in problem.parts:
                code = statement_code(part, [f"known['{each.name}']" for each in part.operands])
                code = code.replace("bfloat16", "float32")
                known[part.result.name] = eval(code, {"jax": jax, "jnp": jnp, "known": known})
            return known

        known = made({name: jnp.asarray(value, "float32") for name, value in values.items()})
        return {name: np.asarray(value) for name, value in known.items()}

    return run


def normed(x, scale):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def soft(x):
    raised = np.exp(x - x.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


def mlp(x, gate, up, down):
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


def latent_attention(x, w):
    """Section 2.1 of DeepSeek-V2's report, without rotations."""
    low = normed(x @ w["q_a_proj"].T, w["q_a_layernorm"])
    latents, rope = normed(x @ w["kv_a"].T, w["kv_a_layernorm"]), x @ w["k_rope"].T
    made = np.zeros((*x.shape[:2], 3, 5))
    for head in range(3):
        query = np.concatenate([low @ w["q_nope"][head].T, low @ w["q_rope"][head].T], -1)
        key = np.concatenate([latents @ w["k_b"][head].T, rope], -1)
        scores = query @ key.swapaxes(1, 2) / np.sqrt(4 + 2)
        scores = np.where(np.tri(x.shape[1], dtype=bool), scores, -np.inf)
        made[:, :, head] = soft(scores) @ (latents @ w["v_b"][head].T)
    return np.einsum("btkh,dkh->btd", made, w["o_proj"]), latents, rope


def test_latent_attention_expanded_and_absorbed(layers):
    made = layers(DEEPSEEK, "gate_proj", {}, 5)
    x = made["x"]
    attention, latents, ropes = latent_attention(normed(x, made["input_layernorm"]), made)
    middle = x + attention
    norm = normed(middle, made["post_attention_layernorm"])
    y = middle + mlp(norm, made["gate_proj"], made["up_proj"], made["down_proj"])
    np.testing.assert_allclose(made["y"], y, rtol=1e-4, atol=1e-5)
    # A step that decodes the last token, with the vectors of all in its cache.
    last = {**made, "x": x[:, -1:], "latents": latents, "ropes": ropes}
    decoded = layers(DEEPSEEK, "gate_proj", last, 5, decodes=True)
    np.testing.assert_allclose(decoded["y"], y[:, -1:], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(decoded["new_latents"], latents[:, -1:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("decodes", [False, True])
def test_experts_and_the_one_that_all_tokens_take(layers, decodes):
    """Each token takes all three experts, so that none lacks a slot."""
    made = layers(DEEPSEEK, "router", {}, 5, decodes)
    norm = made["norm2"]
    shares = soft(norm @ made["router"].T)
    weights = zip(made["gate_proj"], made["up_proj"], made["down_proj"], strict=True)
    y = made["middle"] + mlp(norm, made["shared_gate_proj"], made["shared_up_proj"], made["shared_down_proj"])
    y += sum(shares[..., number, None] * mlp(norm, *own) for number, own in enumerate(weights))
    np.testing.assert_allclose(made["y"], y, rtol=1e-4, atol=1e-5)


def test_local_attention_sees_its_window(layers):
    keys = {"model_type": "mistral", "num_attention_heads": 2, "num_key_value_heads": 1, "sliding_window": 3}
    made = layers(SMALL | keys, "gate_proj", {}, 7)
    norm = normed(made["x"], made["input_layernorm"])
    query = np.einsum("btd,kghd->bgth", norm, made["q_proj"])
    key, value = (norm @ made[name][0].T for name in ("k_proj", "v_proj"))
    before = np.arange(7)[:, None] - np.arange(7)
    scores = query @ key[:, None].swapaxes(-1, -2) / np.sqrt(6)
    weights = soft(np.where((before >= 0) & (before < 3), scores, -np.inf))
    heads = np.einsum("bgts,bsh->btgh", weights, value)
    np.testing.assert_allclose(made["heads"][:, :, 0], heads, rtol=1e-4, atol=1e-5)


def convolved(made, norm, names):
    """Each input mixed with the two before it, and those that went in."""
    taken, past = {}, {}
    for name in names:
        raw = np.tensordot(norm, made[f"in_{name}"], (-1, -1))
        padded = np.concatenate([np.zeros_like(raw[:, :2]), raw], 1)
        past[name] = np.stack([padded[:, tap : tap + 6] for tap in range(3)], 2)
        taken[name] = silu(np.sum(past[name] * np.moveaxis(made[f"conv_{name}"], -1, 0), 2))
    return taken, past


def test_a_state_space_as_its_recurrence(layers):
    """Mamba 2 token by token, as `Mamba2Mixer.torch_forward` of transformers steps (g groups of k heads)."""
    made = layers(MAMBA, "in_z", {}, 6)
    x = made["x"]
    norm = normed(x, made["norm"])
    taken, past = convolved(made, norm, "xBC")
    step = np.log1p(np.exp(np.tensordot(norm, made["in_dt"], (-1, -1)) + made["dt_bias"]))
    states = [np.zeros((2, 2, 2, 3, 5))]
    y = np.zeros_like(taken["x"])
    for t in range(6):
        own = step[:, t, ..., None] * taken["x"][:, t]
        decay = np.exp(-np.exp(made["A_log"]) * step[:, t])[..., None, None]
        states.append(states[-1] * decay + own[..., None] * taken["B"][:, t, :, None, None])
        y[:, t] = np.einsum("bgkhn,bgn->bgkh", states[-1], taken["C"][:, t])
    y += taken["x"] * made["D"][..., None]
    y *= silu(np.tensordot(norm, made["in_z"], (-1, -1)))
    y = normed(y.reshape(2, 6, 12), made["mixer_norm"].reshape(12))
    y = x + y @ made["out_proj"].reshape(12, 12).T
    np.testing.assert_allclose(made["y"], y, rtol=1e-4, atol=1e-5)
    last = {**made, "x": x[:, -1:], "state": states[-2][:, None]}
    last |= {f"past_{name}": past[name][:, -1:] for name in "xBC"}
    decoded = layers(MAMBA, "in_z", last, 6, decodes=True)
    np.testing.assert_allclose(decoded["y"], y[:, -1:], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(decoded["new_state"][:, 0], states[-1], rtol=1e-4, atol=1e-5)


def test_the_gated_delta_rule_token_by_token(layers):
    """As `torch_recurrent_gated_delta_rule` of transformers' Qwen3-Next steps (g groups of k heads)."""
    made = layers(DELTA, "in_z", {}, 6)
    x = made["x"]
    norm = normed(x, made["input_layernorm"])
    taken, past = convolved(made, norm, "qkv")
    keys, queries = (taken[name] / np.sqrt((taken[name] ** 2).sum(-1, keepdims=True) + 1e-6) for name in "kq")
    share = 1 / (1 + np.exp(-np.tensordot(norm, made["in_beta"], (-1, -1))))
    step = np.log1p(np.exp(np.tensordot(norm, made["in_alpha"], (-1, -1)) + made["dt_bias"]))
    states, seen = [np.zeros((2, 2, 2, 5, 3))], np.zeros_like(taken["v"])
    for t in range(6):
        state = states[-1] * np.exp(-np.exp(made["A_log"]) * step[:, t])[..., None, None]
        found = np.einsum("bgknh,bgn->bgkh", state, keys[:, t])
        change = (taken["v"][:, t] - found) * share[:, t, ..., None]
        states.append(state + np.einsum("bgn,bgkh->bgknh", keys[:, t], change))
        seen[:, t] = np.einsum("bgknh,bgn->bgkh", states[-1], queries[:, t] / 5**0.5)
    gate = silu(np.tensordot(norm, made["in_z"], (-1, -1)))
    out = np.einsum("btgkh,dgkh->btd", normed(seen, made["mixer_norm"]) * gate, made["out_proj"])
    np.testing.assert_allclose(made["attention_out"], out, rtol=1e-3, atol=1e-4)
    last = {**made, "x": x[:, -1:], "state": states[-2][:, None]}
    last |= {f"past_{name}": past[name][:, -1:] for name in "qkv"}
    decoded = layers(DELTA, "in_z", last, 6, decodes=True)
    np.testing.assert_allclose(decoded["attention_out"], out[:, -1:], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(decoded["new_state"][:, 0], states[-1], rtol=1e-3, atol=1e-4)
