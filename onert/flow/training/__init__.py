"""Training: losses, and optimizers whose steps are functions of the flow.

logits = ...                                  # [batch, classes], of function `f`
loss = cross_entropy(f, logits, labels)
f.func.backprop = True
AdamOptimizer().build(flow)

net = Compiler().compile(flow)
data, back = net.cell("f").instance(), net.cell("gradients/f").instance()
update = net.cell("optimizer").instance()
update["optimizer/alpha"] = 0.001             # the learning rate
for images, labels in batches:
    data["f/x"], data["f/labels"] = images, labels
    data.compute()
    back.clear()
    back["gradients/f/primal"] = data
    back["gradients/f/d_loss:0"] = 1
    back.compute()
    update["optimizer/gradients/f"] = back
    update.compute()
"""

from .losses import cross_entropy, squared_error
from .optimizers import AdamOptimizer, GradientDescentOptimizer, MomentumOptimizer, Optimizer

__all__ = [
    "AdamOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "cross_entropy",
    "squared_error",
]
