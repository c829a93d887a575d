"""What a search chooses beside meshes and shardings: microbatches, interleave, remat; and what it names where
nothing fits."""

from __future__ import annotations

import re

import pytest

from shardviz.answers.search import row_rules, search_question
from shardviz.hardware.chip_torus import parts_by_slice
from shardviz.hardware.machine_file import named_machine, read_machine
from shardviz.models.answer import answered, model_question
from shardviz.models.rule_set import RuleSet, ShardingRule
from shardviz.models.sources import read_model
from shardviz.notation.spec_string import write_spec
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.search import mesh_choices
from shardviz.planner.search.mesh_ranking import best_meshes, problem_of, with_smallest_machine
from shardviz.planner.search.meshes import orders_across
from shardviz.planner.search.question import question_from_text
from shardviz.planner.search.rules import parse_axes
from shardviz.planner.training import Optimizer, Training
from shardviz.sharding import Mesh

MLP = "H = X[b,d] * W1[d,f]; Y = gelu(H) * W2[f,d] x 16"
EXAMPLES, MODEL, HIDDEN = 4096, 64, 4096
SIZES = f"b={EXAMPLES},d={MODEL},f={HIDDEN}"
PLAIN = Training("none", None)


def best(axes="pipeline=2,data=8", training=PLAIN, machine="v5e:4x4", sizes=SIZES, **given):
    question = question_from_text(
        MLP, named_machine(machine), parse_axes(axes), sizes=sizes, training=training, **given
    )
    return best_meshes(question)


def test_a_stage_holds_the_activations_of_as_many_microbatches_as_there_are_stages():
    """1F1B; interleaved (P - 1)/(P·V) more of them (Narayanan and others 2021, 2.2)."""
    held = {
        (count, runs): best(microbatches=count, interleave=runs).found[0].memory_bytes
        for count in (8, 16, 64)
        for runs in (1, 2)
    }
    # For the backward pass each of a stage's 8 layers keeps X, H and gelu(H), in bf16.
    example = 8 * 2 * (MODEL + 2 * HIDDEN)
    whole = EXAMPLES // 8 * example
    for count in (8, 16):
        assert held[count, 2] - held[count, 1] == pytest.approx(whole * 0.5 / count, rel=0.01)
    saved = held[8, 1] - held[16, 1]
    assert saved == pytest.approx(whole * (2 / 8 - 2 / 16), rel=0.1)


def test_a_stage_waits_less_the_more_runs_of_layers_it_has_and_sends_more_often():
    one, two = (best(microbatches=8, interleave=runs).found[0] for runs in (1, 2))
    assert one.time.bubble / (one.seconds - one.time.bubble) == pytest.approx(1 / 8)
    assert two.time.bubble / (two.seconds - two.time.bubble) == pytest.approx(1 / 16)
    sent, often = (dict(each.time.communication)[("pipeline",)] for each in (one, two))
    assert often == pytest.approx(2 * sent)


def test_the_best_choice_is_the_best_of_all():
    chosen = best(remats=("none", "layer", "dots")).found[0]
    every = [
        best(training=Training(remat, None), microbatches=count, interleave=runs).found[0]
        for remat in ("none", "layer", "dots")
        for count in (2, 4, 8, 16, 32, 64)
        for runs in (1, 2, 4)
    ]
    assert chosen.seconds == pytest.approx(min(each.seconds for each in every), rel=0.01)
    assert chosen.chosen == ("remat none",)


@pytest.mark.parametrize(("axes", "times"), [("fsdp", 4), ("data", 1)])
def test_gradients_of_parts_of_the_batch_are_added_up(axes, times):
    """A part gathers parameters and scatters gradients once more, where they are sharded (ZeRO-3); gradients
    of copies are summed at the end (PyTorch's `no_sync`). The backward pass of a part needs its activations
    alone, and gradients of all layers lie beside them."""
    training = Training("none", Optimizer("adam"))
    one, four = (best(axes, training, microbatches=count).found[0] for count in (1, 4))
    sent = [dict(each.time.communication)[(axes,)] for each in (one, four)]
    assert sent[1] == pytest.approx(times * sent[0])
    # Of 16 layers X, H and gelu(H), in bf16, and the gradients of both matrices, in f32.
    kept = 16 * EXAMPLES // 16 * 2 * (MODEL + 2 * HIDDEN)
    gradients = 16 * 2 * MODEL * HIDDEN * 4 // (16 if axes == "fsdp" else 1)
    largest = EXAMPLES // 16 * 4 * HIDDEN
    held = one.memory_bytes - four.memory_bytes
    assert held == pytest.approx(max(kept, gradients) - kept / 4 - gradients, abs=largest)


def test_more_runs_of_layers_are_found_where_two_hold_too_much():
    """(P - 1)/(P·V) more activations (Narayanan and others 2021, 2.2): of 2 runs twice as many as of 4."""
    words = {"axes": "pipeline=4,data=4", "sizes": "b=64Ki,d=4Ki,f=32Ki", "microbatches": 16}
    found = {runs: best(**words, machine="h100:2x8", interleave=runs).found[0] for runs in (1, 2, 4)}
    limit = (found[2].memory_bytes + found[4].memory_bytes) // 2
    small = read_machine(f'base = "h100:2x8"\n[device]\nhbm = {limit}')
    question = question_from_text(
        MLP, small, parse_axes(words["axes"]), sizes=words["sizes"], training=PLAIN, microbatches=16
    )
    (row,) = best_meshes(question).found
    assert row.stage.interleave == 4
    assert row.seconds < found[1].seconds


def test_gradients_over_data_are_added_up_whole_and_scattered_once():
    training = Training("none", Optimizer("adam", over=("data",)))
    one, four = (best("data", training, microbatches=count).found[0] for count in (1, 4))
    assert dict(four.time.communication) == pytest.approx(dict(one.time.communication))
    kept, gradients = 16 * EXAMPLES // 16 * 2 * (MODEL + 2 * HIDDEN), 16 * 2 * MODEL * HIDDEN * 4
    held = one.memory_bytes - four.memory_bytes
    assert held == pytest.approx(kept - kept / 4 - gradients, abs=EXAMPLES // 16 * 4 * HIDDEN)


def test_a_pipeline_gathers_what_fsdp_shards_for_each_microbatch():
    """A stage that gathered all its layers once would hold them whole, as with `data`."""
    sent = [
        dict(best("pipeline=2,fsdp=8", microbatches=count).found[0].time.communication)[("fsdp",)]
        for count in (8, 16)
    ]
    assert sent[1] == pytest.approx(2 * sent[0])


def test_stages_of_unequal_layers_take_as_long_as_the_longest():
    """Of 16 layers three stages have 6, 5 and 5: of 18 each has 6."""
    answers = {}
    for layers in (16, 18):
        program, machine = MLP.replace("x 16", f"x {layers}"), named_machine("h100:3x8")
        axes = parse_axes("pipeline=3,data=8")
        question = question_from_text(program, machine, axes, sizes=SIZES, training=PLAIN, interleave=1)
        (answers[layers],) = best_meshes(question).found
    assert answers[16].seconds == pytest.approx(answers[18].seconds)
    assert answers[16].memory_bytes == answers[18].memory_bytes
    assert answers[16].utilisation == pytest.approx(answers[18].utilisation * 16 / 18)
    (ruled_out,) = best("pipeline=32", machine="h100:4x8").infeasible
    assert ruled_out.reason == "16 layers are fewer than 32 parts of a pipeline"


def test_a_batch_is_taken_in_parts_only_where_memory_is_lacking():
    training, wide = Training("none", Optimizer("adam")), "b=512Ki,d=2Ki,f=8Ki"
    assert best("fsdp,tensor", training).found[0].stage is None
    assert not best("fsdp", training, sizes=wide, microbatches=1).found
    found = best("fsdp", training, sizes=wide).found[0]
    every = [best("fsdp", training, sizes=wide, microbatches=2**power).found for power in range(1, 8)]
    assert found.seconds == pytest.approx(min(each[0].seconds for each in every if each))
    assert found.stage.words.endswith("microbatches")


def test_microbatches_that_do_not_divide_the_examples_are_not_possible():
    """Of 4,096 examples each of 16 devices takes 256."""
    answer = best("fsdp=16", microbatches=3)
    assert [each.reason for each in answer.infeasible] == [
        "3 microbatches do not divide 256 examples per device"
    ]


@pytest.mark.parametrize(
    ("name", "machine", "axes", "batch", "closeness"),
    [
        ("llama-3-8b", "v5p:2x2x4", "fsdp=16", 32, 0.05),
        ("gemma-3-1b", "v5p:2x2x4", "fsdp=16", 32, 0.08),
        ("deepseek-v3", "v5p:8x8x8", "fsdp=16,expert=32", 512, 0.05),
    ],
)
def test_a_row_of_a_model_has_the_seconds_and_the_memory_of_the_whole_model(
    name, machine, axes, batch, closeness
):
    """Its layers of all kinds, its embedding, logits and loss, as `shardviz model` plans each."""
    words = {"backward": True, "remat": "layer", "optimizer": "adam", "batch": batch, "sequence": 4096}
    asked = search_question(name, named_machine(machine), axes, microbatches=1, **words)
    (row,) = best_meshes(asked).found
    specs, inputs = row_rules(read_model(name), asked, row)
    rules = tuple(ShardingRule(f"{re.escape(name)}$", spec) for name, spec in specs.items())
    tokens = {"batch": batch, "sequence": 4096, "dtype": "bf16"}
    whole = answered(
        model_question(
            read_model(name),
            RuleSet("", "patterns", rules, write_spec(inputs)),
            row.placed,
            row.placed.mesh,
            training=asked.training,
            **tokens,
        )
    )
    assert row.overlapped_seconds == pytest.approx(whole.step.overlapped_seconds, rel=0.02)
    assert row.memory_bytes == pytest.approx(whole.memory.training, rel=closeness)
    # Each kind counts: without one a step takes less.
    layers = sum(part.cost.layers for part in whole.step.parts if part.part.kind)
    asked_layers = asked.problem.layers + sum(kind.problem.layers for kind in asked.kinds)
    assert asked_layers == layers


def test_where_nothing_fits_options_that_do_are_named():
    small = {"axes": "data", "training": Training("none", Optimizer("adam")), "sizes": "b=512Ki,d=2Ki,f=8Ki"}
    answer = with_smallest_machine(best(**small, microbatches=1))
    assert answer.found == ()
    assert answer.fitting_options == "--remat layer"
    found = best(**{**small, "training": Training("layer", Optimizer("adam"))}).found[0]
    assert found.memory_bytes <= found.placed.machine.device.limit_bytes


def test_an_optimizer_over_data_is_planned_as_the_search_says():
    """ZeRO's first stage (Rajbhandari and others 2020): gradients are scattered and new parameters gathered;
    the state of 12 bytes a parameter is on one device of eight. Activations are more than gradients here,
    of which the largest lies whole until it is scattered."""
    sizes, machine = "b=256Ki,d=8Ki,f=28Ki", "h100:8x8"
    every = {}
    for over in ((), ("data",)):
        training = Training("layer", Optimizer("adam", over=over))
        answer = best("data=8,tensor=8", training, machine, sizes)
        (found,) = answer.found
        cost = price(plan(problem_of(answer.question, found)), found.placed)
        assert found.seconds == pytest.approx(cost.step_seconds * 16, rel=0.02)
        assert found.memory_bytes == pytest.approx(cost.layers_peak_bytes, rel=0.05)
        every[over] = found
    parameters = 16 * 2 * 8192 * 28672 // 8
    saved = every[()].memory_bytes - every["data",].memory_bytes
    gradient = 4 * 8192 * 28672 // 8
    assert saved == pytest.approx(parameters * 12 * 7 / 8 - gradient, rel=1e-2)
    assert every["data",].seconds < every[()].seconds


def test_an_optimizer_is_sharded_over_copies_where_memory_asks_for_it():
    training = Training("layer", Optimizer("adam"))
    small, large = (best("data=64", training, "h100:8x8", f"b=256Ki,d=4Ki,f={f}") for f in ("4Ki", "40Ki"))
    assert small.found[0].optimizer.over == ()
    assert large.found[0].optimizer.over == ("data",)


def test_attention_over_a_sequence_passes_keys_and_values_round_while_it_computes():
    """Ring attention (Liu and others 2023): of Llama 3 8B's keys and values of 65,536 tokens, 8 heads of 128
    in bf16, seven eighths come to each of 8 chips of a v5e 2×4, over two links of 45 GB/s, behind the work.
    Of few tokens the work is shorter, and the rest is waited for."""

    def at(tokens, overlap="parameters"):
        axes = "sequence=8"
        question = search_question(
            "llama-3-8b",
            named_machine("v5e:2x4"),
            axes,
            batch=1,
            sequence=tokens,
            overlap=overlap,
            of_layers=True,
        )
        (found,) = best_meshes(question).found
        return found

    long, short = at(65_536), at(2048)
    sent = 32 * 2 * 65_536 * 8 * 128 * 2 * 7 / 8 / 9e10
    assert dict(long.time.communication)["sequence",] == pytest.approx(sent, rel=0.01)
    assert long.ring == ("sequence",)
    assert long.seconds == pytest.approx(long.time.work)
    gathered = at(65_536, "none")
    assert gathered.seconds == pytest.approx(long.seconds + sent, rel=0.01)
    attention = 32 * 4 * 2048**2 * 32 * 128 / 8 / 1.97e14
    assert short.time.exposed == pytest.approx(short.time.communication_seconds - attention, rel=0.3)


def on_h100(layers, optimizer="adam", offload="any", remat="layer", batch="4Ki"):
    """67,108,864 parameters of each layer on a device of eight, whose states, bf16 weights and f32 gradients
    take 18 bytes each, 14 with moments in bf16, and 6 where the state is on the host."""
    question = search_question(
        f"H = X[b,d] * W1[d,f]; Y = gelu(H) * W2[f,d] x {layers}",
        named_machine("h100:8"),
        "fsdp",
        sizes=f"b={batch},d=8Ki,f=32Ki",
        backward=True,
        remat=remat,
        optimizer=optimizer,
        offload=offload,
    )
    return best_meshes(question).found


def test_moments_are_bf16_where_f32_does_not_fit_and_then_the_state_is_on_the_host():
    """80 GB hold 66 layers of 18 bytes, 85 of 14, and 198 of 6."""
    words = {layers: on_h100(layers)[0] for layers in (60, 70, 100)}
    assert [row.chosen for row in words.values()] == [(), ("moments bf16",), ()]
    assert [row.optimizer.moments for row in words.values()] == ["f32", "bf16", "f32"]
    assert [row.is_offloaded for row in words.values()] == [False, False, True]
    # What is written is kept, and what is refused is not done.
    (kept,) = on_h100(70, "adam,moments=f32")
    assert (kept.chosen, kept.is_offloaded, kept.optimizer.moments) == ((), True, "f32")
    assert on_h100(70, "adam,moments=f32", "none") == on_h100(100, offload="none") == ()


def test_offloaded_state_leaves_the_device_and_takes_the_seconds_of_the_hosts_link():
    """12 bytes a parameter go over PCIe 5 and back, at 64 GB/s each way; a layer's are there at a time."""
    kept, small, away = (
        on_h100(60, *words)[0] for words in (["adam"], ["adam,moments=bf16"], ["adam", "optimizer"])
    )
    parameters = 2 * 8192 * 32768 // 8
    assert kept.memory_bytes - small.memory_bytes == 60 * parameters * 4
    assert kept.memory_bytes - away.memory_bytes == 59 * parameters * 12
    seconds = 2 * 60 * parameters * 12 / 6.4e10
    assert dict(away.time.communication)[()] == pytest.approx(seconds)
    assert away.seconds - kept.seconds == pytest.approx(seconds)
    assert away.published_seconds - kept.published_seconds == pytest.approx(seconds)


def test_an_optimizer_is_offloaded_where_that_is_faster_than_microbatches():
    """Without rematerialization the activations fit beside the state only in parts, for each of which all
    weights are gathered again."""
    (away,), (kept,) = (on_h100(60, "adam", offload, "none", "32Ki") for offload in ("any", "none"))
    assert away.is_offloaded
    assert away.stage is None
    assert kept.stage.microbatches > 1
    assert away.seconds < kept.seconds


def test_a_models_tables_are_offloaded_as_well():
    """Llama 3 8B has 8,030,261,248 parameters, whose norms every device has."""
    question = search_question(
        "llama-3-8b", named_machine("h100:8"), "fsdp", batch=8, sequence=2048, backward=True,
        remat="layer", optimizer="adam", offload="optimizer",
    )  # fmt: skip
    (row,) = best_meshes(question).found
    norms = 65 * 4096
    sent = 2 * 12 * ((8_030_261_248 - norms) / 8 + norms) / 6.4e10
    assert dict(row.time.communication)[()] == pytest.approx(sent, rel=1e-3)
    ends = [array.name for array in question.ends.problem.arguments if array.name in dict(row.specs)]
    assert [name for name, _ in row.specs][-len(ends) :] == ends


def test_each_device_moves_its_own_part_of_offloaded_state():
    """Adam's 12 bytes for each of 4,194,304 parameters, of whose state a device has an eighth."""
    question = search_question(
        "H = X[b,d] * W1[d,f]; Y = gelu(H) * W2[f,d]", named_machine("h100:8"), "data=2,fsdp=4",
        sizes="b=4Ki,d=1Ki,f=2Ki", backward=True, optimizer="adam", offload="optimizer",
    )  # fmt: skip
    (row,) = best_meshes(question).found
    assert row.optimizer.over == ("data",)
    assert dict(row.time.communication)[()] == pytest.approx(2 * 12 * 2 * 2**21 / 8 / 6.4e10)


def test_the_heads_that_latent_attention_keeps_are_not_experts():
    """DeepSeek-V3 has 256 experts and 128 heads, which a decode step multiplies by a matrix of each."""
    words = {"batch": 256, "serve": True}
    question = search_question("deepseek-v3", named_machine("v5p:4x8x8"), "expert=256", **words)
    (row,) = best_meshes(question).found
    specs = dict(row.specs)
    assert specs["gate_proj"].dims[0] == ("expert",)
    assert "expert" not in specs["k_b"].axes


def test_where_the_state_is_kept_on_devices_that_it_does_not_fit_on_the_host_is_named():
    training = Training("layer", Optimizer("adam"))
    answer = best("fsdp", training, "h100:8", "b=4Ki,d=16Ki,f=96Ki")
    assert answer.found == ()
    assert with_smallest_machine(answer).fitting_options == "--remat layer --offload optimizer"


def test_the_axes_that_cross_slices_are_chosen(monkeypatch):
    """Gradients cross the network between two slices once, 6.25 GB/s for each v5p, while each layer waits for
    the sums of activations, which stay on the links of a slice whatever the order of the axes."""
    machine, sizes = "2*v5p:2x2x2", f"b=64Ki,d={MODEL * 32},f={HIDDEN}"
    for axes in ("data=2,tensor=8", "tensor=8,data=2"):
        (row,) = best(axes, machine=machine, sizes=sizes).found
        assert row.mesh.axis_names == ("data", "tensor")
        assert row.across == ("data",)
        gradients = 2 * 32 * MODEL * HIDDEN * 2 / 8
        # Of two shards that are summed a device sends half, and half again of the sum.
        assert dict(row.time.communication)[("data",)] == pytest.approx(16 * gradients / 6.25e9, rel=0.05)
    chosen = {
        row.mesh.shape["tensor"]: row for row in best("tensor,data", machine=machine, sizes=sizes).found
    }
    assert chosen[16].across == ("tensor",)
    monkeypatch.setattr(mesh_choices, "orders_across", lambda _, mesh: [mesh])
    for row in chosen.values():
        orders = {
            order: [
                each.seconds
                for each in best(order, machine=machine, sizes=sizes).found
                if each.mesh.shape["tensor"] == row.mesh.shape["tensor"]
            ]
            for order in ("tensor,data", "data,tensor")
        }
        assert row.seconds == pytest.approx(min(orders.values())[0], rel=0.002)


def test_four_slices_are_divided_between_axes_in_every_way():
    mesh = Mesh(("data", "tensor"), (4, 32))
    orders = orders_across(named_machine("4*v5e:4x8"), mesh)
    assert [order.axis_names for order in orders] == [("data", "tensor"), ("tensor", "data")]
    assert orders_across(named_machine("v5e:8x16"), mesh) == [mesh]
    two = Mesh(("data", "tensor"), (2, 64))
    orders = orders_across(named_machine("4*v5e:4x8"), two)
    assert [(order.axis_names, parts_by_slice(order.axis_sizes, 4)[1]) for order in orders] == [
        (("data", "tensor"), (2, 2)),
        (("tensor", "data"), (4, 1)),
    ]
