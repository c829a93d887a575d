"""Whole models: names and shapes of parameters, and rules, become specs, memory and the collectives of a
step.

model          a model as a list of parameters, perhaps with its architecture
architecture   the sizes of a transformer, and the parameters that they make
sources        a name that is built in, a `config.json`, the header of `safetensors`
rules          patterns and logical axes that say how parameters are split; those that ship
splitting      rules × parameters: each parameter with its spec, and what no rule says
folding        repeated layers as one
memory         bytes of a device: parameters, gradients, optimizer, keys and values
layer_program  a layer, the embedding and the logits as programs for the planner
step           the plans of a forward and a backward step, and their sums

Standard library only. No weights are read.
"""
