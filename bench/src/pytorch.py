"""The learner's network, loss and optimiser in PyTorch, written as its documentation advises: modules, channels-last
memory, autocast for bf16, AdamW over parameter groups, clipping by norm. Batches are dense tensors made in advance.

Arguments: the description that `minuet-learner bench-steps` prints, the precision, and `eager` or `compiled` (by
torch.compile, which needs a C++ compiler). The program prints a line when it is
ready. Then, for every line with a number of seconds, it trains that long and prints the number of samples.
"""

import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional

about = json.loads(sys.argv[1])
bf16 = sys.argv[2] == "bf16"
shape = about["shape"]
torch.set_num_threads(about["threads"])
torch.manual_seed(1)


class ConvNorm(nn.Module):
    def __init__(self, inputs, outputs, kernel):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(nn.Module):
    def __init__(self, filters):
        super().__init__()
        self.first = ConvNorm(filters, filters, 3)
        self.second = ConvNorm(filters, filters, 3)

    def forward(self, x):
        return functional.relu(self.second(functional.relu(self.first(x))) + x)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        filters, squares = shape["filters"], shape["height"] * shape["width"]
        self.input = ConvNorm(shape["planes"], filters, 3)
        self.blocks = nn.Sequential(*[Block(filters) for _ in range(shape["blocks"])])
        if "dense" in shape["policy"]:
            channels = shape["policy"]["dense"]["channels"]
            self.policy = ConvNorm(filters, channels, 1)
            self.policy_output = nn.Linear(channels * squares, shape["actions"])
        else:
            self.policy = ConvNorm(filters, filters, 3)
            self.policy_output = nn.Conv2d(filters, shape["policy"]["planes"]["planes"], 3, padding=1)
        self.value = ConvNorm(filters, shape["value_channels"], 1)
        self.value_hidden = nn.Linear(shape["value_channels"] * squares, shape["value_hidden"])
        self.value_output = nn.Linear(shape["value_hidden"], 1)

    def forward(self, x):
        x = self.blocks(functional.relu(self.input(x)))
        policy = functional.relu(self.policy(x))
        if isinstance(self.policy_output, nn.Linear):
            policy = policy.flatten(1)
        value = functional.relu(self.value(x)).flatten(1)
        value = self.value_output(functional.relu(self.value_hidden(value)))
        return self.policy_output(policy).flatten(1), torch.tanh(value).flatten()


network = Network().to(memory_format=torch.channels_last).train()
forward = torch.compile(network) if sys.argv[3] == "compiled" else network
parameters = sum(parameter.numel() for parameter in network.parameters())
assert parameters == about["parameters"], f"another network: {parameters} parameters, not {about['parameters']}"
weights = [parameter for parameter in network.parameters() if parameter.dim() > 1]
others = [parameter for parameter in network.parameters() if parameter.dim() <= 1]
optimizer = torch.optim.AdamW(
    [{"params": weights, "weight_decay": about["weight_decay"]}, {"params": others, "weight_decay": 0.0}],
    lr=about["learning_rate"],
)
size, targets = about["batch"], 8
batches = [
    (
        (torch.rand(size, shape["planes"], shape["height"], shape["width"]) < 0.05).float().contiguous(memory_format=torch.channels_last),
        torch.randint(shape["actions"], (size, targets)),
        torch.rand(size, targets).softmax(1),
        torch.randint(-1, 2, (size,)).float(),
    )
    for _ in range(4)
]


def step(planes, actions, shares, results):
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        logits, values = forward(planes)
    log_probabilities = logits.float().log_softmax(1)
    policy = -(log_probabilities.gather(1, actions) * shares).sum(1).mean()
    value = functional.mse_loss(values.float(), results)
    loss = policy + value
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(network.parameters(), about["max_gradient_norm"])
    optimizer.step()
    # The learner reads these numbers too, to report them and to detect that training diverges.
    return loss.item(), policy.item(), value.item(), norm.item()


for batch in batches:
    step(*batch)
print(json.dumps({"torch": torch.__version__}), flush=True)
number = 0
for line in sys.stdin:
    until, samples = time.perf_counter() + float(line), 0
    while time.perf_counter() < until:
        step(*batches[number % len(batches)])
        number += 1
        samples += size
    print(samples, flush=True)
