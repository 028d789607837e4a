//! Plays the actions of a request and describes the state that they lead to.

use games::{
    Symmetry,
    erased::{self, AnyState, VariantError},
    registry,
};
use serde_json::Value;

use super::{answer::StateAnswer, request::Request};

/// Answers a request.
///
/// # Errors
/// Message for the `error` field of the answer.
pub fn answer(request: &Request) -> Result<StateAnswer, String> {
    let game = registry::find(&request.game).map_err(|error| error.to_string())?;
    let switches =
        (request.rules.clone().into_iter()).filter(|(name, _)| !game.start_fields.contains(&name.as_str()));
    let rules = erased::changed(game.json_rules(), switches);
    let variant = game
        .variant(&rules, request.options)
        .map_err(|error| match error {
            VariantError::Rules { source, .. } => source.to_string(),
            VariantError::Options(error) => error.to_string(),
        })?;
    let mut state = variant.start_from_json(request.start.as_ref(), &request.rules)?;
    let mut legal_before = request.trace.then(Vec::new);
    for (index, value) in request.actions.iter().flatten().enumerate() {
        if let Some(sets) = &mut legal_before {
            sets.push(legal(state.as_ref()));
        }
        let action = state
            .action_from_json(value)
            .map_err(|error| format!("action {index}: {error}"))?;
        state
            .play(action)
            .map_err(|error| format!("action {index}: {value} is not legal: {}", error.reason))?;
    }
    let legal = legal(state.as_ref());
    if let Some(sets) = &mut legal_before {
        sets.push(legal.clone());
    }
    let mut row = Vec::new();
    state.write_row(Symmetry::IDENTITY, &mut row);
    Ok(StateAnswer {
        legal,
        to_move: state.to_move().index(),
        fen: state.position(),
        outcome: state.outcome_name(),
        row,
        more: state.json_fields(),
        legal_before,
    })
}

fn legal(state: &dyn AnyState) -> Vec<Value> {
    let mut actions = Vec::new();
    state.legal_actions(&mut actions);
    actions
        .iter()
        .map(|&action| state.action_to_json(action))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn ask(line: &str) -> Result<Map<String, Value>, String> {
        let (id, request) = Request::read(line.as_bytes());
        let state = answer(&request?)?;
        let answer = crate::rules::answer::Answer {
            id,
            result: Ok(state),
        };
        match serde_json::to_value(&answer) {
            Ok(Value::Object(fields)) => Ok(fields),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn the_answer_holds_clan_and_render_until_an_oops() {
        let drawn = ask(r#"{"id":1,"game":"generator","start":null,"actions":[[0,2],[4,22]]}"#).unwrap();
        assert_eq!(drawn["clan"].as_array().unwrap().len(), 9);
        assert_eq!(drawn["render"][0], json!([0, 1, 0, 0, 0, 0, 0, 0]));
        assert_eq!(drawn["outcome"], Value::Null);
        assert!(drawn["legal"].as_array().unwrap().contains(&json!([4, 8])));
        // To the left it would leave the grid of coordinates.
        let oops = ask(r#"{"id":2,"game":"generator","start":null,"actions":[[0,2],[4,21]]}"#).unwrap();
        assert_eq!(oops["outcome"], "second");
        assert_eq!((&oops["clan"], &oops["legal"]), (&Value::Null, &json!([])));
    }

    #[test]
    fn targets_beside_a_packed_clan_pose_a_problem() {
        let asked = |actions: &str, more: &str| {
            let line = format!(
                r#"{{"id":1,"game":"generator","start":[1,265,521,785],"actions":{actions},"target":[[0]]{more}}}"#
            );
            ask(&line)
        };
        assert_eq!(asked("[[0,1]]", "").unwrap()["outcome"], "first");
        assert_eq!(asked("[[0,0]]", "").unwrap()["outcome"], "second");
        let pair = r#","second_target":[[0,0]]"#;
        let step = asked("[[0,0],[1,19]]", pair).unwrap();
        assert_eq!(
            (&step["outcome"], &step["step_marked"]),
            (&Value::Null, &json!(true))
        );
        assert_eq!(asked("[[0,0],[1,19],[0,1]]", pair).unwrap()["outcome"], "first");
        // Examples judge nothing; the row holds them in one order.
        let examples = [
            r#"{"input":[[3]],"output":[[4]]}"#,
            r#"{"input":[[5]],"output":[[6]]}"#,
        ];
        let [one, other] = examples;
        let task =
            |list: String| asked("[[0,0],[1,19],[0,1]]", &format!(r#"{pair},"examples":[{list}]"#)).unwrap();
        let (first, second) = (task(format!("{one},{other}")), task(format!("{other},{one}")));
        assert_eq!(
            (&first["outcome"], &first["row"]),
            (&json!("first"), &second["row"])
        );
        let bare = asked("[[0,0],[1,19],[0,1]]", pair).unwrap();
        let length = |answer: &Map<String, Value>| answer["row"].as_array().unwrap().len();
        assert_eq!(length(&first), length(&bare) + 64);
        let strict = asked("[]", r#","illegal":"strict""#).unwrap();
        let all = asked("[]", "").unwrap();
        let count = |answer: &Map<String, Value>| answer["legal"].as_array().unwrap().len();
        assert!(count(&strict) < count(&all), "{} {}", count(&strict), count(&all));
        for (actions, words) in [
            ("[[9,2]]", "no such imp"),
            ("[[0,19]]", "cannot make this move"),
            ("[7]", "is not an [imp, move]"),
            ("[[0,38]]", "is not an [imp, move]"),
        ] {
            let error = asked(actions, "").unwrap_err();
            assert!(error.starts_with("action 0") && error.contains(words), "{error}");
        }
    }
}
