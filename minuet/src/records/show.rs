//! `minuet games show`: prints a game move by move.

use actor::check::positions;
use games::registry::{self, UnknownGame};
use launcher::moment::rfc3339;
use proto::{
    decisions::{Decision, Halves},
    ids::hex,
    v1,
};
use serde_json::{Value, json};

use super::{
    list::result,
    selection::parse_id,
    source::{Access, StoreLocation},
};

/// Arguments of `minuet games show`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  minuet games show 4be1f0a2… --run runs/paco-sako
Exits with 3 if acknowledged games of the store cannot be read.")]
pub struct Arguments {
    /// Id of the game.
    #[arg(value_parser = parse_id)]
    id: [u8; 16],
    #[command(flatten)]
    place: StoreLocation,
    /// Print one JSON object: the whole record without its rows, and the position before each move.
    #[arg(long)]
    json: bool,
}

/// Shows a game.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut source = arguments.place.open(Access::Read).await?;
    let game = source.game(&arguments.id).await?;
    let closed = source.close().await;
    if let Some(game) = game {
        print(&game, arguments.json)?;
    }
    closed
}

fn print(game: &v1::Game, as_json: bool) -> anyhow::Result<()> {
    let texts = texts(game)?;
    if as_json {
        let moves = positions(game)?.zip(&texts).map(|(position, text)| {
            json!({
                "ply": position.ply,
                "mover": position.mover,
                "action": position.action,
                "position": text,
                "visits": position.visit_actions.iter().zip(position.visits).collect::<Vec<_>>(),
                "root_value": position.root_value,
                "decision": position.decision.as_ref().map(decision),
                "model": game.model_of_position.get(position.ply)
                    .and_then(|&model| game.model_versions.get(model as usize)),
            })
        });
        println!("{}", service::plain_json(&whole(game, moves.collect())));
        return Ok(());
    }
    let (id, at) = (hex(&game.id), rfc3339(game.finished_at_ms));
    // An archive of a stranger may hold any text as a name.
    let head = [
        format!("game      {id}  {} (options {})", game.game, game.options),
        format!("finished  {at}  by {} ({})", game.actor, game.build),
        format!("result    {} by {}", result(game.result), game.ending),
        format!("models    {}", game.model_versions.join(", ")),
        format!("seed      {}, game {}", game.run_seed, game.game_number),
        format!("search    {}", game.search_json),
    ];
    head.iter().for_each(|line| println!("{}", service::plain(line)));
    for (position, text) in positions(game)?.zip(&texts) {
        let total: u32 = position.visits.iter().sum();
        println!(
            "{:>4}  {}  action {:<5} value {:>7.4}  {total:>5} visits over {:<3} {text}",
            position.ply,
            position.mover,
            position.action,
            position.root_value,
            position.visits.len(),
        );
    }
    Ok(())
}

/// Results of a search other than its visits. The priors and values of the visited actions have the order of `visits`.
fn decision(decision: &Decision<'_>) -> Value {
    let numbers = |halves: Halves<'_>| halves.iter().collect::<Vec<f32>>();
    json!({
        "is_solved": !decision.is_searched(),
        "evaluation": decision.evaluation,
        "priors": numbers(decision.visited_priors),
        "values": numbers(decision.values),
        "unvisited": decision.unvisited.iter().zip(decision.unvisited_priors.iter()).collect::<Vec<_>>(),
        "played": decision.played,
    })
}

fn whole(game: &v1::Game, moves: Vec<Value>) -> Value {
    let parsed = |text: &str| serde_json::from_str(text).unwrap_or(Value::String(text.into()));
    json!({
        "id": hex(&game.id),
        "game": game.game,
        "options": game.options,
        "rules": parsed(&game.rules_json),
        "start": game.start,
        "result": result(game.result),
        "score": game.score,
        "ending": game.ending,
        "model_versions": game.model_versions,
        "model_providers": game.model_providers,
        "run_seed": game.run_seed,
        "game_number": game.game_number,
        "search": parsed(&game.search_json),
        "actor": game.actor,
        "build": game.build,
        "finished_at_ms": game.finished_at_ms,
        "moves": moves,
    })
}

/// Returns the position before each action as text. After an illegal action a note takes the place of the position.
fn texts(game: &v1::Game) -> Result<Vec<String>, UnknownGame> {
    let own = registry::find(&game.game)?;
    let start = (!game.start.is_empty()).then_some(game.start.as_str());
    let begin = serde_json::from_str(&game.rules_json).ok().and_then(|rules| {
        let variant = own.variant(&rules, Some(game.options)).ok()?;
        variant.start(start).ok()
    });
    let Some(mut state) = begin else {
        let note = "(the rules of this build do not accept the start)";
        return Ok(vec![note.into(); game.actions.len()]);
    };
    let mut texts = Vec::with_capacity(game.actions.len());
    for &action in &game.actions {
        texts.push(state.position());
        if state.play(action).is_err() {
            texts.resize(game.actions.len(), "(after an illegal action)".into());
            break;
        }
    }
    Ok(texts)
}
