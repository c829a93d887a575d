"""Where a model's parameters are said: a built-in name, a `config.json`, the header of `safetensors`."""
