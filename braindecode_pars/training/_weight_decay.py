"""Which weights decay."""

__all__ = ["NO_DECAY"]

#: Parameter groups for skorch's ``optimizer__param_groups``: weight decay is for the weights of
#: linear layers, not for norms, biases and learned tokens.
NO_DECAY = [(pattern, {"weight_decay": 0.0}) for pattern in ("*bias", "*norm*", "*_token")]
