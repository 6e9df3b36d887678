# SPDX-License-Identifier: Apache-2.0
"""What stands in for PyTorch where it is not installed: in the tests, and in bench/torch_marks.py."""
import types


class Optimizer:
    """Calls its hooks as torch.optim.Optimizer does."""

    def __init__(self):
        self.hooks = []

    def register_step_post_hook(self, hook):
        self.hooks.append(hook)
        return types.SimpleNamespace(remove=lambda: self.hooks.remove(hook))

    def step(self):
        for hook in self.hooks:
            hook(self, (), {})
