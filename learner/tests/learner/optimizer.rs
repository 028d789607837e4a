//! The learner's optimisers equal torch's, from the same weights with the same gradients.

use config::Optimizer as Rule;
use learner::{
    network::{
        declarations::{Declaration, Purpose},
        variables::Variables,
    },
    torch::to_host,
    training::optimizer::{Rates, moments_of},
};
use tch::{Device, Kind, Tensor, nn};

const RATE: f64 = 0.03;
const DECAY: f64 = 0.1;
const STEPS: u64 = 20;

/// Returns a gradient that depends on the step and the weights.
fn gradient(weights: &Tensor, step: u64) -> Tensor {
    (weights * 0.3 + 0.5).sin() * (1.0 + step as f64 * 0.1)
}

fn start() -> Tensor {
    Tensor::linspace(-2.0, 2.0, 37, (Kind::Float, Device::Cpu))
}

fn by_torch<C: nn::OptimizerConfig>(config: C) -> Vec<f32> {
    let store = nn::VarStore::new(Device::Cpu);
    let mut weights = store.root().var("weights", &[37], nn::Init::Const(0.0));
    tch::no_grad(|| weights.copy_(&start()));
    let mut optimizer = config.build(&store, RATE).unwrap();
    for step in 0..STEPS {
        optimizer.zero_grad();
        // The gradient of the sum of weights × a constant is that constant.
        let along = tch::no_grad(|| gradient(&weights, step));
        (&weights * along).sum(Kind::Float).backward();
        optimizer.step();
    }
    to_host(&weights).unwrap()
}

fn by_us(rule: Rule) -> Vec<f32> {
    let mut weights = start();
    let mut moments: Vec<Tensor> = moments_of(rule).iter().map(|_| weights.zeros_like()).collect();
    for step in 0..STEPS {
        let along = gradient(&weights, step);
        let rates = Rates {
            learning_rate: RATE,
            decay: DECAY,
            updates: step + 1,
        };
        rates.apply(rule, &mut weights, &mut moments, along).unwrap();
    }
    to_host(&weights).unwrap()
}

fn assert_equal(ours: &[f32], torchs: &[f32]) {
    let start = to_host(&start()).unwrap();
    assert!(ours.iter().zip(&start).any(|(now, was)| (now - was).abs() > 0.1));
    for (ours, torchs) in ours.iter().zip(torchs) {
        assert!(
            (ours - torchs).abs() <= 1e-6 * torchs.abs().max(1.0),
            "{ours} {torchs}"
        );
    }
}

#[test]
fn both_rules_are_torchs() {
    assert_equal(&by_us(Rule::Adamw), &by_torch(nn::adamw(0.9, 0.999, DECAY)));
    assert_equal(&by_us(Rule::Sgd), &by_torch(nn::sgd(0.9, 0.0, DECAY, true)));
}

#[test]
fn variables_begin_at_64_bytes_and_flat_tensors_have_zeros_between_them() {
    let declared = [1, 3, 16, 17, 73].map(|length| Declaration {
        name: format!("of {length}"),
        dims: vec![length],
        values: (1..=length).map(|number| number as f32).collect(),
        purpose: Purpose::Weight,
    });
    let variables = Variables::new(&declared, Device::Cpu).unwrap();
    assert_eq!(variables.parameters(), 1 + 3 + 16 + 17 + 73);
    let [group, empty] = &variables.groups;
    assert_eq!(empty.flat.numel(), 0);
    for (view, declared) in group.views.iter().zip(&declared) {
        assert_eq!(view.data_ptr() as usize % 64, 0);
        assert_eq!(to_host(view).unwrap(), declared.values);
    }
    let doubled: Vec<Tensor> = group.views.iter().map(|view| view.detach() * 2.0).collect();
    let flat = group.flatten(&doubled).unwrap();
    assert_eq!(flat, &group.flat * 2.0);
    assert_eq!(
        f64::try_from(flat.sum(Kind::Float)).unwrap(),
        2.0 * (1 + 6 + 136 + 153 + 2701) as f64
    );
}
