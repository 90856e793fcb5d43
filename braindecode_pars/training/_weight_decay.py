"""Parameter groups for weight decay."""

__all__ = ["NO_DECAY"]

#: Parameter groups for skorch's ``optimizer__param_groups``. The weights of linear layers decay;
#: norms, biases and learned tokens do not.
NO_DECAY = [(pattern, {"weight_decay": 0.0}) for pattern in ("*bias", "*norm*", "*_token")]
