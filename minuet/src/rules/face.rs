//! What a game shows of itself in JSON: the [`Face`] trait, one implementation per game.

use games::{
    Action, Game, Outcome, Player, Symmetry, catalogue::UnknownGame, connect_four::ConnectFour,
    othello::Othello,
};
use serde_json::Value;

use super::{
    answer::StateAnswer, chess::ChessFace, generator::GeneratorFace, numbered::NumberedFace,
    paco_sako::PacoSakoFace, request::Request,
};

/// How one game appears in `minuet rules` and `minuet perft`.
pub trait Face {
    /// The game.
    type Game: Game;

    /// The representation of a request that names none.
    const OPTIONS: u32;

    /// The rules of a request that switches none.
    fn rules() -> <Self::Game as Game>::Rules {
        Default::default()
    }

    /// Names of a request's fields that are no rules, besides those that every request may have.
    const FIELDS: &[&str] = &[];

    /// The state that a request starts from.
    fn start(request: &Request, rules: &<Self::Game as Game>::Rules) -> Result<Self::Game, String> {
        let text = match &request.start {
            None => None,
            Some(Value::String(text)) => Some(text.as_str()),
            Some(other) => return Err(format!("`start` is {other}, not a position as text")),
        };
        Self::Game::start(rules, text).map_err(|error| error.to_string())
    }

    /// The action that a JSON value stands for in this state (it need not be legal).
    fn read_action(state: &Self::Game, value: &Value) -> Result<Action, String>;

    /// An action of this state as JSON.
    fn write_action(state: &Self::Game, action: Action) -> Value;

    /// The word for how the game ended.
    fn outcome(state: &Self::Game) -> Option<&'static str> {
        match state.outcome()? {
            Outcome::Won(Player::First) => Some("first"),
            Outcome::Won(Player::Second) => Some("second"),
            Outcome::Draw | Outcome::Scored(_) => Some("draw"),
        }
    }

    /// Fields that only this game has.
    fn more(_state: &Self::Game, _encoding: <Self::Game as Game>::Encoding) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

/// Code that is generic over faces.
pub trait FaceVisitor {
    /// What it gives.
    type Output;

    /// Runs it for one game's face.
    fn visit<F: Face>(self) -> Self::Output;
}

/// Runs `visitor` for the face of the game called `name`.
pub fn visit<V: FaceVisitor>(name: &str, visitor: V) -> Result<V::Output, UnknownGame> {
    match name {
        <PacoSakoFace as Face>::Game::NAME => Ok(visitor.visit::<PacoSakoFace>()),
        <ChessFace as Face>::Game::NAME => Ok(visitor.visit::<ChessFace>()),
        Othello::NAME => Ok(visitor.visit::<NumberedFace<Othello>>()),
        ConnectFour::NAME => Ok(visitor.visit::<NumberedFace<ConnectFour>>()),
        <GeneratorFace as Face>::Game::NAME => Ok(visitor.visit::<GeneratorFace>()),
        _ => Err(UnknownGame::new(name)),
    }
}

/// Answers a request, whichever game it is about.
pub fn answer(request: &Request) -> Result<StateAnswer, String> {
    struct Answering<'a>(&'a Request);

    impl FaceVisitor for Answering<'_> {
        type Output = Result<StateAnswer, String>;

        fn visit<F: Face>(self) -> Self::Output {
            answer_for::<F>(self.0)
        }
    }

    visit(&request.game, Answering(request)).map_err(|error| error.to_string())?
}

fn answer_for<F: Face>(request: &Request) -> Result<StateAnswer, String> {
    let rules = rules::<F>(request)?;
    let encoding =
        F::Game::encoding(request.options.unwrap_or(F::OPTIONS)).map_err(|error| error.to_string())?;
    let mut state = F::start(request, &rules)?;
    let mut actions = Vec::new();
    let mut legal = |state: &F::Game| -> Vec<Value> {
        state.legal_actions(&mut actions);
        actions
            .iter()
            .map(|&action| F::write_action(state, action))
            .collect()
    };
    let mut legal_before = request.trace.then(Vec::new);
    for (index, value) in request.actions.iter().flatten().enumerate() {
        if let Some(sets) = &mut legal_before {
            sets.push(legal(&state));
        }
        let action = F::read_action(&state, value).map_err(|error| format!("action {index}: {error}"))?;
        state
            .play(action)
            .map_err(|error| format!("action {index}: {value} is not legal: {}", error.reason))?;
    }
    let legal = legal(&state);
    if let Some(sets) = &mut legal_before {
        sets.push(legal.clone());
    }
    let mut row = Vec::new();
    state.write_row(encoding, Symmetry::IDENTITY, &mut row);
    Ok(StateAnswer {
        legal,
        to_move: state.to_move().index(),
        fen: state.position(),
        outcome: F::outcome(&state),
        row,
        more: F::more(&state, encoding),
        legal_before,
    })
}

/// The face's rules with the request's switches laid over them.
fn rules<F: Face>(request: &Request) -> Result<<F::Game as Game>::Rules, String> {
    let mut table = serde_json::to_value(F::rules()).map_err(|error| error.to_string())?;
    if let Value::Object(fields) = &mut table {
        let rules = request.rules.clone().into_iter();
        fields.extend(rules.filter(|(name, _)| !F::FIELDS.contains(&name.as_str())));
    }
    serde_json::from_value(table).map_err(|error| error.to_string())
}
