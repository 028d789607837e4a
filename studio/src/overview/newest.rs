//! The newest game of the run.

use games::{Action, Face, registry, scene::Scene};
use proto::{
    ids::hex,
    v1::{Game, GameFilter},
};
use replay_store::client::NEWEST;

use crate::{failure::Failure, figures::words::length, records::replay, store::Store};

/// A finished game, ready to be shown.
#[derive(Clone, Debug)]
pub struct Newest {
    /// Id, 32 hexadecimal digits.
    pub id: String,
    /// Time of the end, in milliseconds since the Unix epoch.
    pub finished_at_ms: u64,
    /// Result in a sentence.
    pub result: String,
    /// Number of moves, in words.
    pub length: String,
    /// Last position.
    pub end: Option<Scene>,
}

/// Finds the newest game. Returns `None` if there is none, or it is the one with the id `known`.
///
/// # Errors
/// [`Failure`] if the store does not answer.
pub async fn find(store: &Store, known: Option<&str>) -> Result<Option<Newest>, Failure> {
    let listed = store.list(NEWEST, GameFilter::default(), 1, Vec::new()).await?;
    let Some(summary) = listed.games.first() else {
        return Ok(None);
    };
    let id = hex(&summary.id);
    if known == Some(&id) {
        return Ok(None);
    }
    let game = store.game(&summary.id).await?;
    let (result, end) =
        registry::visit(&game.game, End(&game)).map_err(|error| Failure::Missing(error.to_string()))?;
    Ok(Some(Newest {
        id,
        finished_at_ms: game.finished_at_ms,
        result,
        length: length(&game),
        end,
    }))
}

struct End<'a>(&'a Game);

impl registry::Visitor for End<'_> {
    type Output = (String, Option<Scene>);

    fn visit<G: Face>(self) -> Self::Output {
        let states = replay::states::<G>(self.0);
        let Some(end) = states.last() else {
            return ("The rules of this build do not accept this game.".into(), None);
        };
        let last: Vec<Action> = replay::last_turn::<G>(self.0, states.len() - 1);
        let result = end
            .result_text()
            .unwrap_or_else(|| "The game was not finished.".into());
        (result, Some(end.scene(&last)))
    }
}
