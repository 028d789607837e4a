//! Tests of parsing a request of the protocol, and of writing its answer in the requested form.

use proptest::prelude::*;
use proto::inference::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};

use super::*;
use crate::tests::layout;

fn given(name: &str, shape: &[i64], numbers: &[i32]) -> (InferInputTensor, Bytes) {
    let tensor = InferInputTensor {
        name: name.into(),
        datatype: "INT32".into(),
        shape: shape.to_vec(),
        ..InferInputTensor::default()
    };
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    (tensor, bytes.into())
}

fn request(tensors: Vec<(InferInputTensor, Bytes)>) -> ModelInferRequest {
    let (inputs, raw_input_contents) = tensors.into_iter().unzip();
    ModelInferRequest {
        model_name: "latest".into(),
        id: "seven".into(),
        inputs,
        raw_input_contents,
        ..ModelInferRequest::default()
    }
}

fn rows() -> (InferInputTensor, Bytes) {
    given("indices", &[2, 3], &[5, 130, 50, 3, 3, 0])
}

fn read(request: ModelInferRequest) -> Result<InferRequest, Status> {
    InferRequest::read(request, &layout(), 8)
}

#[test]
fn a_request_without_legal_actions_is_answered_with_logits() {
    let question = read(request(vec![rows()])).unwrap();
    assert_eq!(question.request.indices, [5, 130, 50, 3, 3, 0]);
    assert_eq!(question.request.legal_counts, [0, 0]);
    assert_eq!(question.request.wants, Wants::Logits);
    assert_eq!(question.request.priority, Priority::Play);
    assert_eq!(question.request.deadline, None);
    let response = question.form.fill(Evaluation {
        version: "v".into(),
        values: vec![0.5, -0.5],
        policy: (0..10).map(|number| number as f32).collect(),
    });
    assert_eq!(
        (response.id.as_str(), response.model_version.as_str()),
        ("seven", "v")
    );
    let shapes: Vec<_> = response
        .outputs
        .iter()
        .map(|output| (output.name.as_str(), output.shape.clone()))
        .collect();
    assert_eq!(shapes, [("policy_logits", vec![2, 5]), ("value", vec![2, 1])]);
    assert_eq!(response.raw_output_contents[1], bytes_of(&[0.5, -0.5]));
}

#[test]
fn parameters_are_read_and_unknown_ones_refused() {
    let with = |name: &str, choice| {
        let mut request = request(vec![rows()]);
        let parameter = InferParameter {
            parameter_choice: Some(choice),
        };
        request.parameters.insert(name.into(), parameter);
        read(request)
    };
    let question = with("timeout", ParameterChoice::Int64Param(1_000_000)).unwrap();
    assert!(
        question
            .request
            .deadline
            .is_some_and(|deadline| deadline > Instant::now())
    );
    let question = with("priority", ParameterChoice::Uint64Param(2)).unwrap();
    assert_eq!(question.request.priority, Priority::SelfPlay);
    assert!(with("priority", ParameterChoice::Uint64Param(1)).is_ok());
    assert!(with("timeout", ParameterChoice::Int64Param(-1)).is_err());
    assert!(with("priority", ParameterChoice::StringParam("high".into())).is_err());
    let refused = with("sequence_id", ParameterChoice::Int64Param(1)).unwrap_err();
    assert!(
        refused.message().contains("unexpected parameter 'sequence_id'"),
        "{refused}"
    );
}

#[test]
fn an_output_is_requested_once_and_fits_the_inputs() {
    let ask = |legal: bool, names: &[&str]| {
        let mut tensors = vec![rows()];
        if legal {
            tensors.push(given("legal_actions", &[2, 1], &[0, 1]));
        }
        let mut request = request(tensors);
        let output = |name: &&str| InferRequestedOutputTensor {
            name: (*name).into(),
            ..InferRequestedOutputTensor::default()
        };
        request.outputs = names.iter().map(output).collect();
        read(request).map(|question| question.form.outputs)
    };
    assert_eq!(ask(false, &["value"]).unwrap(), [Output::Value]);
    assert_eq!(
        ask(true, &["value", "priors"]).unwrap(),
        [Output::Value, Output::Policy]
    );
    for (legal, names, words) in [
        (false, ["priors"].as_slice(), "needs an input 'legal_actions'"),
        (true, &["policy_logits"], "the policy output is 'priors'"),
        (false, &["value", "value"], "requested twice"),
        (false, &["moves"], "unexpected output 'moves'"),
    ] {
        let refused = ask(legal, names).unwrap_err().message().to_owned();
        assert!(refused.contains(words), "{refused}");
    }
}

proptest! {
    /// Padding may be anywhere among the legal actions; each prior is at the place of its action.
    #[test]
    fn priors_are_at_the_places_of_their_actions(legal in prop::collection::vec(prop::collection::vec(-3i32..5, 4), 1..6)) {
        let positions = legal.len();
        let numbers: Vec<i32> = legal.concat();
        let indices = [5, 130, 50].repeat(positions);
        let question = read(request(vec![
            given("indices", &[positions as i64, 3], &indices),
            given("legal_actions", &[positions as i64, 4], &numbers),
        ])).unwrap();
        let actions: Vec<u32> = numbers.iter().filter(|&&number| number >= 0).map(|&number| number as u32).collect();
        prop_assert_eq!(&question.request.legal_actions, &actions);
        prop_assert_eq!(question.request.legal_counts.iter().sum::<u32>() as usize, actions.len());
        prop_assert_eq!(question.request.wants, Wants::Priors);
        // Each prior is the action's number plus a half.
        let response = question.form.fill(Evaluation {
            version: "v".into(),
            values: vec![0.0; positions],
            policy: actions.iter().map(|&action| action as f32 + 0.5).collect(),
            });
        let expected: Vec<f32> = numbers.iter().map(|&number| if number < 0 { 0.0 } else { number as f32 + 0.5 }).collect();
        prop_assert_eq!(&response.raw_output_contents[0], &bytes_of(&expected));
        prop_assert_eq!(&response.outputs[0].shape, &vec![positions as i64, 4]);
    }

    /// The numbers of rows, counts and actions of a parsed request agree, for any input.
    #[test]
    fn parsed_requests_are_consistent(
        shape in prop::collection::vec(-1i64..4, 0..4), length in 0usize..10,
        legal_shape in prop::collection::vec(-1i64..4, 0..4), legal_length in 0usize..10,
    ) {
        let tensors = vec![given("indices", &shape, &vec![1; length]), given("legal_actions", &legal_shape, &vec![1; legal_length])];
        if let Ok(question) = read(request(tensors)) {
            let positions = question.request.legal_counts.len();
            prop_assert_eq!(question.request.indices.len(), positions * 3);
            prop_assert_eq!(question.request.legal_counts.iter().sum::<u32>() as usize, question.request.legal_actions.len());
        }
    }
}
