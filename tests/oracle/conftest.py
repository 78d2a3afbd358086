"""What doctest may not import: PyTorch under another name, and what needs PyTorch where there is none."""

import importlib.util

collect_ignore = ["pytorch_as_tapegrad"]
if importlib.util.find_spec("torch") is None:
    collect_ignore.append("twin_cases.py")
