//! The newest game of the run.

use games::scene::Scene;
use proto::{ids::hex, v1::GameFilter};
use replay_store::client::NEWEST;

use crate::{failure::Failure, figures::words::length, records::replay::States, store::Store};

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
    let states = States::of(&game)?;
    let result = match states.all.last().map(|end| end.result_text()) {
        Some(Some(result)) => result,
        Some(None) => "The game was not finished.".into(),
        None => "The rules of this build do not accept this game.".into(),
    };
    Ok(Some(Newest {
        id,
        finished_at_ms: game.finished_at_ms,
        result,
        length: length(&game),
        end: states.scene(&game, states.all.len().saturating_sub(1)),
    }))
}
