"""Writes completed_q.json: policy targets as mctx computes them (pip install mctx; made with mctx 0.0.71, jax 0.10.2)."""

import json, pathlib

import jax, jax.numpy as jnp, mctx, numpy
from mctx._src.tree import Tree

jax.config.update("jax_enable_x64", True)
random = numpy.random.default_rng(14)


def tree(priors, visits, values, evaluation):
    actions = len(priors)
    one = lambda numbers: jnp.asarray([[numbers]])
    return Tree(
        node_visits=jnp.asarray([[1 + sum(visits)]]), raw_values=jnp.asarray([[evaluation]]),
        node_values=jnp.asarray([[0.0]]), parents=jnp.asarray([[-1]]), action_from_parent=jnp.asarray([[-1]]),
        children_index=one([-1] * actions), children_prior_logits=one(jnp.log(jnp.asarray(priors))),
        children_visits=one(visits), children_rewards=one([0.0] * actions), children_discounts=one([1.0] * actions),
        children_values=one(values), embeddings=None, root_invalid_actions=jnp.zeros((1, actions)), extra_data=None)


def case(scale, rescale):
    actions = int(random.integers(1, 12))
    half = lambda numbers: [float(numpy.float16(number)) for number in numbers]
    priors = half(random.dirichlet([0.5] * actions) + 1e-4)
    visits = [int(count) for count in random.multinomial(random.integers(1, 64), random.dirichlet([0.5] * actions))]
    values = half(random.uniform(-1, 1, actions))
    evaluation = half([random.uniform(-1, 1)])[0]
    one = jax.tree.map(lambda column: column[0], tree(priors, visits, values, evaluation))
    # mctx normalises the priors of a node itself, from their logits.
    scores = mctx.qtransform_completed_by_mix_value(
        one, 0, value_scale=scale, maxvisit_init=50, rescale_values=rescale, epsilon=1e-8)
    target = jax.nn.softmax(jnp.log(jnp.asarray(priors)) + scores)
    return {"priors": priors, "visits": visits, "values": values, "evaluation": evaluation,
            "scale": scale, "rescale": rescale, "target": [float(share) for share in target]}


cases = [case(scale, rescale) for scale, rescale in
         [(0.1, True), (0.1, False), (1.0, False), (0.02, True), (0.3, False)] for _ in range(8)]
pathlib.Path(__file__).with_suffix(".json").write_text(
    "[\n" + ",\n".join(json.dumps(one) for one in cases) + "\n]\n")
