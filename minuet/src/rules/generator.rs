//! The generator game in JSON: actions are `[imp, move]`, a start is a packed clan, grids are rows of colours.

use games::{
    Action, Game,
    generator::{End, GeneratorGame, Move, Rules},
};
use serde_json::{Map, Value, json};

use super::{face::Face, request::Request};

/// The generator game under its original rules: what fails is an Oops.
pub struct GeneratorFace;

impl Face for GeneratorFace {
    type Game = GeneratorGame;

    const OPTIONS: u32 = 0;
    const FIELDS: &[&str] = &["target", "second_target"];

    fn rules() -> Rules {
        Rules::compatibility()
    }

    /// A packed clan, or a whole position as text; the targets stand beside.
    fn start(request: &Request, rules: &Rules) -> Result<GeneratorGame, String> {
        let mut fields = match &request.start {
            None => Map::new(),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Object(fields)) => fields,
                _ => return Err("`start` is a text, but no position".into()),
            },
            Some(clan) => Map::from_iter([("clan".to_owned(), clan.clone())]),
        };
        for &name in Self::FIELDS {
            if let Some(grid) = request.rules.get(name).filter(|grid| !grid.is_null()) {
                fields.insert(name.into(), grid.clone());
            }
        }
        let text = Value::Object(fields).to_string();
        GeneratorGame::start(rules, Some(&text)).map_err(|error| error.to_string())
    }

    fn read_action(_: &GeneratorGame, value: &Value) -> Result<Action, String> {
        let number = |at: usize, below: u64| {
            let number = value.get(at).and_then(Value::as_u64)?;
            (number < below).then_some(number)
        };
        match (value.as_array().map(Vec::len), number(0, 96), number(1, 38)) {
            (Some(2), Some(imp), Some(action)) => Ok(GeneratorGame::action(imp as usize, Move(action as u8))),
            _ => Err(format!("{value} is no [imp, move] (imps 0 to 95, moves 0 to 37)")),
        }
    }

    fn write_action(_: &GeneratorGame, action: Action) -> Value {
        let (imp, action) = GeneratorGame::imp_and_move(action);
        json!([imp, action.0])
    }

    fn outcome(state: &GeneratorGame) -> Option<&'static str> {
        state.end().map(|end| match end {
            End::Solved => "first",
            End::Oops => "second",
            End::MoveLimit => "draw",
        })
    }

    /// After an Oops, which is the one position that every illegal move leads to, there is neither clan nor render.
    fn more(state: &GeneratorGame, (): ()) -> Vec<(&'static str, Value)> {
        let (clan, render) = match state.end() {
            Some(End::Oops) => (Value::Null, Value::Null),
            _ => (
                state.clan().packed().collect::<Vec<u32>>().into(),
                json!(Vec::<Vec<u8>>::from(state.render())),
            ),
        };
        vec![
            ("clan", clan),
            ("render", render),
            ("step_marked", state.step_marked().into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::face;

    fn ask(line: &str) -> Result<Map<String, Value>, String> {
        let (id, request) = Request::read(line.as_bytes());
        let state = face::answer(&request?)?;
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
    fn clans_and_renders_are_told_until_an_oops() {
        let asked = ask(r#"{"id":1,"game":"generator","start":null,"actions":[[0,2],[4,22]]}"#).unwrap();
        assert_eq!(asked["clan"].as_array().unwrap().len(), 9);
        assert_eq!(asked["render"][0], json!([0, 1, 0, 0, 0, 0, 0, 0]));
        assert_eq!(asked["outcome"], Value::Null);
        assert!(asked["legal"].as_array().unwrap().contains(&json!([4, 8])));
        // To the left it would leave the grid of coordinates.
        let oops = ask(r#"{"id":2,"game":"generator","start":null,"actions":[[0,2],[4,21]]}"#).unwrap();
        assert_eq!(oops["outcome"], "second");
        assert_eq!((&oops["clan"], &oops["legal"]), (&Value::Null, &json!([])));
    }

    #[test]
    fn problems_are_posed_beside_a_packed_clan() {
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
        let strict = asked("[]", r#","illegal":"strict""#).unwrap();
        let all = asked("[]", "").unwrap();
        let count = |answer: &Map<String, Value>| answer["legal"].as_array().unwrap().len();
        assert!(count(&strict) < count(&all), "{} {}", count(&strict), count(&all));
        for (actions, words) in [
            ("[[9,2]]", "no such imp"),
            ("[[0,19]]", "not possible"),
            ("[7]", "is no [imp, move]"),
            ("[[0,38]]", "is no [imp, move]"),
        ] {
            let error = asked(actions, "").unwrap_err();
            assert!(error.starts_with("action 0") && error.contains(words), "{error}");
        }
    }
}
