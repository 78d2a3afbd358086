"""What doctest may not import: PyTorch under another name, and what needs PyTorch where there is none."""

import importlib.util

collect_ignore = ["pytorch_as_tapegrad"]
if importlib.util.find_spec("torch") is None:
    collect_ignore += ["twin_cases.py", "samples_of_pytorch.py"]
elif importlib.util.find_spec("expecttest") is None:
    collect_ignore.append("samples_of_pytorch.py")
