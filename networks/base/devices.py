"""Which device to compute on, and in which arithmetic."""


def resolve_device(name):
    """The `torch.device` called `name`: "cpu", "cuda", "cuda:1" or "auto" (a GPU if there is one).

    A `torch.device` is taken as well. Raises ValueError, one line, for a name that torch does not know and
    for a device that this machine does not have.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device must be cpu, cuda or auto, not {name!r}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {name}, but no CUDA device is available: set device to cpu or auto")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device is {name}, but there are {torch.cuda.device_count()} CUDA devices")
    return device


def fast_half(device, on_cpu):
    """The 16-bit `torch.dtype` that a device computes fast in, or None.

    On CUDA bfloat16 where it is supported, else float16. On a CPU bfloat16 where the processor multiplies it
    in hardware and `on_cpu` says that a network gains by it there.
    """
    import torch

    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    able = torch.cpu.get_capabilities()
    multiplies = able.get("avx512_bf16") or able.get("amx_bf16")
    return torch.bfloat16 if device.type == "cpu" and on_cpu and multiplies else None
