# ruff: noqa: E501 - a compiler's line cannot be broken
"""Shardy and StableHLO text that the pipeline seldom prints, each written for its test."""

from __future__ import annotations

import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo import Collective, HloModule, ShardyModule, read, read_shardy
from shardviz.sharding import Mesh, PartitionSpec

XY = Mesh(("X", "Y"), (2, 4))
OPEN = """module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=2, "Y"=4]>
"""
SHARDED = 'tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}'


def text(body: str, argument: str = SHARDED) -> str:
    return f"{OPEN}  func.func public @main(%arg0: {argument}) -> tensor<8x64xf32> {{\n    {body}\n    return %0\n  }}\n}}\n"


def only(body: str, argument: str = SHARDED, mesh: Mesh | None = XY) -> Collective:
    module = read_shardy(text(body, argument), mesh)
    assert module.unread == ()
    (collective,) = module.collectives
    return collective


@pytest.mark.parametrize(
    ("line", "op", "axes", "operand", "result", "wire"),
    [
        ('sdy.all_gather [{}, {"Y"}] %arg0 out_sharding=<@mesh, [{"X"}, {}]>',
         "all-gather", ("Y",), (4, 16), (4, 64), 768),
        ('sdy.all_gather [{"X"}, {"Y"}] %arg0 out_sharding=<@mesh, [{}, {}]>',
         "all-gather", ("X", "Y"), (4, 16), (8, 64), 1792),
        ('sdy.all_gather [{}, {"Y":(2)2}] %arg0 out_sharding=<@mesh, [{"X"}, {"Y":(1)2}]>',
         "all-gather", ("Y:(2)2",), (4, 16), (4, 32), 256),
        ('sdy.all_slice [{"X"}, {}] %arg0 out_sharding=<@mesh, [{"X"}, {"Y"}]>',
         "slice", ("X",), (8, 16), (4, 16), 0),
        ('sdy.all_reduce {"Y"} %arg0 out_sharding=<@mesh, [{"X"}, {}]>',
         "all-reduce", ("Y",), (4, 64), (4, 64), 1536),
        ('sdy.all_reduce {"Y", "X"} %arg0 out_sharding=<@mesh, [{?}, {?}]>',
         "all-reduce", ("Y", "X"), (8, 64), (8, 64), 3584),
        ('sdy.reduce_scatter [{"X"}, {"Y"}] %arg0 out_sharding=<@mesh, [{"X"}, {"Y"}]>',
         "reduce-scatter", ("X", "Y"), (8, 64), (4, 16), 1792),
        ('sdy.all_to_all [{"Y"}: 1->0] %arg0 out_sharding=<@mesh, [{"X", "Y"}, {}]>',
         "all-to-all", ("Y",), (4, 16), (1, 64), 192),
        ('sdy.all_to_all [{"X"}: 0->1, {"Y"}: 1->0] %arg0 out_sharding=<@mesh, [{"Y"}, {"X"}]>',
         "all-to-all", ("X", "Y"), (4, 16), (2, 32), 224),
        ('sdy.collective_permute %arg0 out_sharding=<@mesh, [{"Y":(1)2}, {"X", "Y":(2)2}]>',
         "collective-permute", ("X", "Y"), (4, 16), (4, 16), 256),
        ('sdy.collective_permute %arg0 out_sharding=<@mesh, [{"X"}, {"Y"}]>',
         "collective-permute", (), (4, 16), (4, 16), 0),
    ],
)  # fmt: skip
def test_each_operation(line, op, axes, operand, result, wire):
    found = only(f"%0 = {line} : tensor<8x64xf32>")
    assert (found.op, found.axes, found.operand_shape, found.result_shape) == (op, axes, operand, result)
    assert (found.wire_bytes, found.name, found.dtype, found.count) == (wire, "%0", "f32", 1)


def test_uneven_dimensions_are_rounded_up():
    found = only(
        '%0 = sdy.all_gather [{"Y"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<10x3xbf16>',
        "tensor<10x3xbf16>",
    )
    assert (found.operand_shape, found.result_shape, found.bytes) == ((3, 3), (10, 3), 60)


@pytest.mark.parametrize(
    ("mlir", "dtype", "nbytes"),
    [
        ("bf16", "bf16", 16), ("i1", "pred", 8), ("ui8", "u8", 8), ("i32", "s32", 32), ("f8E4M3FN", "f8e4m3fn", 8),
        ("complex<f32>", "c64", 64), ("i4", "s4", 4),
    ],
)  # fmt: skip
def test_element_types(mlir, dtype, nbytes):
    found = only(f'%0 = sdy.all_reduce {{"X"}} %arg0 out_sharding=<@mesh, [{{}}]> : tensor<8x{mlir}>')
    assert (found.dtype, found.bytes) == (dtype, nbytes)


def test_a_permute_of_axes_that_do_not_divide():
    """On X=3, Y=2 device x * 2 + y wants block y * 3 + x, which is at the device of that number."""
    body = '%0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"Y", "X"}]> : tensor<12xf32>'
    argument = 'tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X", "Y"}]>}'
    found = read_shardy(text(body, argument).replace('"X"=2, "Y"=4', '"X"=3, "Y"=2')).collectives[0]
    pairs = tuple((y * 3 + x, x * 2 + y) for x in range(3) for y in range(2))
    assert (found.axes, found.groups, found.operand_shape) == (("X", "Y"), pairs, (2,))


def test_a_permute_on_more_devices_than_are_listed_has_its_axes():
    body = '%0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"X", "Y":(8)4}]> : tensor<4096xf32>'
    argument = 'tensor<4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X", "Y":(1)4}]>}'
    found = read_shardy(text(body, argument).replace('"X"=2, "Y"=4', '"X"=64, "Y"=32, "Z"=64')).collectives[0]
    assert (found.axes, found.groups, found.group_size) == (("Y",), None, 2)


PERMUTE = '%1 = sdy.collective_permute %0 out_sharding=<@mesh, [{"Y"}, {}]> : tensor<8x64xf32>'


@pytest.mark.parametrize(
    ("definition", "known"),
    [
        ('%0 = sdy.all_slice [{}, {}] %arg0 out_sharding=<@mesh, [{"X", "Y":(1)2}, {}]> : tensor<8x64xf32>', True),
        ('%0 = stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"X", "Y":(1)2}, {}]>]>}'
         " : tensor<8x64xf32>", True),
        ('%0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding<@mesh, [{"X", "Y":(1)2}, {}]>}', True),
        ("%0 = stablehlo.add %a, %b : tensor<8x64xf32>", False),
    ],
)  # fmt: skip
def test_a_permute_finds_its_operands_sharding(definition, known):
    module = read_shardy(text(f"{definition}\n    {PERMUTE}"), XY)
    permute = module.collectives[-1]
    assert (permute.op, permute.axes) == ("collective-permute", ("X", "Y") if known else ("Y",))
    assert (permute.groups is not None) is known


def test_specs():
    header = (
        '  func.func public @main(%arg0: tensor<8x64xf32> {mhlo.x = "a, %b: c", sdy.sharding = #sdy.sharding<@mesh, '
        '[{"X", ?}p1, {?}], replicated={"Y"}>}, %arg1: tensor<8xf32>, %arg2: tensor<8xf32> {sdy.sharding = '
        '#sdy.sharding<@mesh, [{"Y":(1)2}]>}) -> (tensor<8xf32> {jax.result_info = "a[0]", sdy.sharding = '
        '#sdy.sharding<@mesh, [{}], unreduced={"Y", "X"}>}, tensor<f32>) {\n  }\n}\n'
    )
    module = read_shardy(OPEN + header, XY)
    part = PartitionSpec((("Y:(1)2",),))
    assert module.argument_specs == (PartitionSpec((("X",), ())), PartitionSpec(((),)), part)
    assert module.result_specs == (PartitionSpec(((),), ("X", "Y")), PartitionSpec(()))
    assert (module.name, module.mesh, module.unread) == ("jit_f", XY, ())


def test_without_a_mesh_specs_are_open():
    module = read_shardy("module @m {\n  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n  }\n}\n")
    assert (module.argument_specs, module.result_specs, module.mesh) == ((None,), (None,), None)


def test_the_texts_mesh_and_its_devices():
    body = '%0 = sdy.all_reduce {"Y"} %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x64xf32>'
    given = text(body).replace('"Y"=4]', '"Y"=4], device_ids=[3, 1, 4, 0, 5, 7, 2, 6]')
    module = read_shardy(given)
    assert module.mesh == Mesh(("X", "Y"), (2, 4), (3, 1, 4, 0, 5, 7, 2, 6))
    assert module.collectives[0].groups == ((3, 1, 4, 0), (5, 7, 2, 6))


@pytest.mark.parametrize(
    "mesh", [Mesh(("X", "Y"), (4, 2)), Mesh(("Y", "X"), (4, 2)), Mesh(("A", "B"), (2, 4))]
)
def test_another_mesh_than_the_modules(mesh):
    with pytest.raises(QuestionError) as raised:
        read_shardy(text(""), mesh)
    assert raised.value.message == f"the mesh of the module is X=2,Y=4, not {mesh}"


LOOP = """%c = stablehlo.constant dense<{start}> : tensor<i32>
    %1:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<8x64xf32>
    cond {{
      %n = stablehlo.constant dense<{stop}> : tensor<i32>
      %2 = stablehlo.compare  {relation}, %iterArg, %n,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }} do {{
      %2 = sdy.all_reduce {{"Y"}} %iterArg_0 out_sharding=<@mesh, [{{"X"}}, {{}}]> : tensor<8x64xf32>
      %s = stablehlo.constant dense<{step}> : tensor<i32>
      %3 = stablehlo.add {sum} : tensor<i32>
      stablehlo.return %3, %2 : tensor<i32>, tensor<8x64xf32>
    }}"""


@pytest.mark.parametrize(
    ("start", "stop", "relation", "step", "total", "count"),
    [
        (0, 5, "LT", 1, "%iterArg, %s", 5), (0, 5, "LE", 1, "%s, %iterArg", 6), (2, 9, "LT", 3, "%iterArg, %s", 3),
        (9, 2, "LT", 1, "%iterArg, %s", 0), (0, 5, "NE", 1, "%iterArg, %s", None), (0, 5, "LT", 0, "%iterArg, %s", None),
        (0, 5, "LT", -1, "%iterArg, %s", None), (0, 5, "LT", 1, "%iterArg, %x", None), (0, 5, "LT", 1, "%s, %s", None),
    ],
)  # fmt: skip
def test_loops(start, stop, relation, step, total, count):
    body = LOOP.format(start=start, stop=stop, relation=relation, step=step, sum=total)
    assert only(body).count == count


def test_strings_are_no_operations():
    module = read_shardy(
        text('%0 = stablehlo.custom_call @x(%arg0) {a = "sdy.all_reduce {\\"X\\"} %0"} : tensor<8xf32>')
    )
    assert module.collectives == ()


def test_what_cannot_be_read_is_told():
    body = '%0 = sdy.all_reduce {"Z"} %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x64xf32>'
    module = read_shardy(text(body), XY)
    assert module.collectives == ()
    assert module.unread == ("line 4 cannot be read: the mesh has no axis Z at character 2 of '{\"Z\"}'",)


@pytest.mark.parametrize(
    "line",
    [
        "sdy.all_reduce %arg0 : tensor<8xf32>",
        "sdy.all_reduce {} %arg0 out_sharding=<@other, [{}]> : tensor<8xf32>",
        'sdy.all_gather [{"X"}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x64xf32>',
        'sdy.all_gather [{"X"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8xf32>',
        'sdy.all_gather [{"X":(3)2}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x64xf32>',
        'sdy.all_gather [{"X"}, {"X"}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x64xf32>',
        'sdy.all_to_all [{"X"}: 0->5] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x64xf32>',
        'sdy.all_reduce {"X"} %arg0 out_sharding=<@mesh, [{}]> : tensor<?xf32>',
        'sdy.all_reduce {"X"} %arg0 out_sharding=<@mesh, [{}]> : tensor<8x!quant.x>',
        '"stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64}> : (tensor<8xf32>) -> tensor<16xf32>',
        '"stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>',
    ],
)
def test_wrong_operations_do_not_stop_the_reading(line):
    module = read_shardy(text(f"%0 = {line}"), XY)
    assert module.collectives == ()
    assert len(module.unread) == 1


@pytest.mark.parametrize(
    ("groups", "axes"),
    [
        ("dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>", ("Y",)),
        ('dense<"0x' + "".join(i.to_bytes(8, "little").hex() for i in (0, 4, 1, 5, 2, 6, 3, 7)) + '"> : tensor<4x2xi64>',
         ("X",)),
        ('#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "Y">]>', ("Y",)),
        ('#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "Y", sub_axis_info = '
         "<pre_size = 2, size = 2>>]>", ("Y:(2)2",)),
    ],
)  # fmt: skip
def test_stablehlo_groups(groups, axes):
    found = only(
        f'%0 = "stablehlo.all_reduce"(%arg0) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, '
        f"replica_groups = {groups}, use_global_device_ids}}> ({{\n    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
        "      stablehlo.return %a : tensor<f32>\n    }) : (tensor<4x16xf32>) -> tensor<4x16xf32>"
    )
    assert (found.op, found.axes, found.operand_shape) == ("all-reduce", axes, (4, 16))


def test_a_text_that_breaks_off():
    whole = text('%0 = sdy.all_reduce {"Y"} %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x64xf32>')
    module = read_shardy(whole[: whole.index("return")], XY)
    assert len(module.collectives) == 1
    assert module.unread == ("the text breaks off inside the module",)


TWICE = text(LOOP.format(start=0, stop=2, relation="LT", step=1, sum="%iterArg, %s"))
LOGGED = "\nW1128 10:00:00.123456       1 hlo.cc:10] said beside the text {"


def test_lines_of_a_log_between_any_two_change_nothing():
    lines = TWICE.split("\n")
    whole = read_shardy(TWICE, XY)
    assert [each.count for each in whole.collectives] == [2]
    for number, line in enumerate(lines):
        logged = "\n".join([*lines[:number], line + LOGGED, *lines[number + 1 :]])
        assert read_shardy(logged, XY) == whole, line


def test_a_text_with_a_brace_too_many_or_too_few_says_so():
    lines = TWICE.split("\n")
    opens = next(number for number, line in enumerate(lines) if line.endswith("cond {"))
    for broken in (
        [*lines[:opens], "}", *lines[opens:]],
        [*lines, "}"],
        ["module @m attributes {mhlo.num_partitions = 8 : i32} {", "  sdy"],
    ):
        assert read_shardy("\n".join(broken), XY).unread == ("the text breaks off inside the module",)


def test_read_tells_the_languages_apart():
    assert isinstance(read(text("")), ShardyModule)
    assert isinstance(read("HloModule m\n\nENTRY %e (p: f32[8]) -> f32[8] {\n}\n"), HloModule)
    assert isinstance(
        read('HloModule m\n%a = f32[8] add(%p, %p), metadata={op_name="stablehlo.add"}'), HloModule
    )
    with pytest.raises(NotationError, match="this is neither HLO nor StableHLO nor Shardy text"):
        read("hello")
    with pytest.raises(NotationError, match="this is neither StableHLO nor Shardy text"):
        read_shardy("hello")


VECTOR = "tensor<8xf32>"
REDUCE = (
    '"stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, '
    "replica_groups = dense<[[0, 1, 2], [3, 4, -1]]> : tensor<2x3xi64>, use_global_device_ids}>"
    f" : ({VECTOR}) -> {VECTOR}"
)


def function(name: str, body: str, visibility: str = "private ") -> str:
    lines = f"    %0 = {body}\n    return %0 : {VECTOR}\n"
    return f"  func.func {visibility}@{name}(%arg0: {VECTOR}) -> {VECTOR} {{\n{lines}  }}\n"


def call(name: str) -> str:
    return f"call @{name}(%arg0) : ({VECTOR}) -> {VECTOR}"


def module_of(*functions: str) -> ShardyModule:
    head = "module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
    return read_shardy(head + "".join(functions) + "}\n")


@pytest.mark.parametrize(
    "caller",
    [
        call("f"),
        f"func.{call('f')}",
        f'stablehlo.composite "my.op" %arg0 {{decomposition = @f}} : ({VECTOR}) -> {VECTOR}',
        f'"stablehlo.composite"(%arg0) <{{decomposition = @f, name = "my.op"}}> : ({VECTOR}) -> {VECTOR}',
        f"stablehlo.custom_call @x(%arg0) {{called_computations = [@g, @f]}} : ({VECTOR}) -> {VECTOR}",
        f'"stablehlo.custom_call"(%arg0) <{{called_computations = [@f], call_target_name = "x"}}> : ({VECTOR}) -> {VECTOR}',
    ],
)
def test_what_a_function_calls(caller):
    found = module_of(function("main", caller, "public "), function("f", REDUCE))
    assert [(each.groups, each.count) for each in found.collectives] == [(((0, 1, 2), (3, 4)), 1)]
    assert found.unread == ()


@pytest.mark.parametrize("visibility", ["", "public "])
def test_every_public_function_runs(visibility):
    main = function("main", call("f"), visibility)
    for others, counts in [
        ([function("f", REDUCE)], [1]),
        ([function("f", REDUCE, visibility)], [1]),
        ([function("g", REDUCE, visibility), function("f", REDUCE)], [1, 1]),
        ([function("g", call("f"), visibility), function("f", REDUCE)], [2]),
    ]:
        found = module_of(main, *others)
        assert ([each.count for each in found.collectives], found.unread) == (counts, ())


def test_what_no_function_calls():
    found = module_of(function("main", f"stablehlo.abs %arg0 : {VECTOR}", "public "), function("f", REDUCE))
    assert (found.collectives, found.unread) == (
        (),
        ("1 collective is in functions that nothing calls",),
    )


@pytest.mark.parametrize(
    ("groups", "kind"),
    [
        ("dense<[[0, 1, 2], [3, 4, -1]]>", "tensor<2x3xi64>"),
        (
            f'dense<"0x{"".join(i.to_bytes(8, "little", signed=True).hex() for i in (0, 1, 2, 3, 4, -1))}">',
            "tensor<2x3xi64>",
        ),
    ],
)
def test_padded_groups(groups, kind):
    line = REDUCE.replace("dense<[[0, 1, 2], [3, 4, -1]]> : tensor<2x3xi64>", f"{groups} : {kind}")
    (found,) = module_of(function("main", line, "public ")).collectives
    assert (found.groups, found.group_size, found.group_count) == (((0, 1, 2), (3, 4)), 3, 2)


@pytest.mark.parametrize(
    ("host", "is_host"),
    [(", is_host_transfer = true", True), (", is_host_transfer = false", False), ("", False)],
)
def test_sends_and_receives(host, is_host):
    handle = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>"
    lines = (
        "stablehlo.create_token : !stablehlo.token\n"
        f'    %1 = "stablehlo.send"(%arg0, %0) <{{{handle}{host}}}> : ({VECTOR}, !stablehlo.token) -> !stablehlo.token\n'
        f'    %2:2 = "stablehlo.recv"(%1) <{{{handle}{host}}}> : (!stablehlo.token) -> ({VECTOR}, !stablehlo.token)'
    )
    found = module_of(function("main", lines, "public "))
    assert found.unread == ()
    assert [(each.op, each.bytes, each.wire_bytes, each.is_host_transfer) for each in found.collectives] == [
        ("send", 32, 0 if is_host else 32, is_host),
        ("recv", 32, 0, is_host),
    ]
