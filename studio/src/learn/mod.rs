//! The page that shows a run learning: the same positions, as checkpoints of different ages see them.
//!
//! | module | contents |
//! |---|---|
//! | [`answers`] | what the checkpoints think of the positions, computed while somebody looks |
//! | [`optimal`] | the share of optimal moves, in games with an exact solver |
//! | [`view`] | boards, tables and curves of the positions |

pub mod answers;
pub mod optimal;
pub mod view;

use std::{collections::BTreeMap, sync::Arc};

use axum::{Router, extract::State, response::IntoResponse, routing::get};
use checkpoints::Version;
use maud::{Markup, html};
use serde::Deserialize;

use self::{
    answers::{Answer, VISITS, has_solver},
    optimal::{POSITIONS, at_random},
};
use crate::{
    app::App,
    assets, board,
    chart::{Chart, Curve, Look, chart},
    failure::Failure,
    figures::{
        series::Point,
        words::{moment, percent, shown},
    },
    form::Parameters,
    live::{self, Slots},
    page::{Section, page},
    run::Kept,
};

/// Routes of the page.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/learn", get(show))
        .route("/learn/live", get(stream))
}

/// Query of the page.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct At {
    /// Version of the chosen checkpoint; the newest one if it is missing or empty.
    #[serde(default)]
    at: String,
}

impl At {
    fn version(&self) -> Result<Option<Version>, Failure> {
        if self.at.is_empty() {
            return Ok(None);
        }
        let read = self.at.parse();
        read.map(Some)
            .map_err(|error: checkpoints::NameError| Failure::BadRequest(error.to_string()))
    }
}

async fn show(State(app): State<App>, Parameters(at): Parameters<At>) -> Result<Markup, Failure> {
    let looked = look(&app, at.version()?.as_ref()).await?;
    if !at.at.is_empty() && looked.chosen.is_none() {
        return Err(Failure::Missing(
            "This checkpoint is not kept any more. The page of the newest one lists those that are.".into(),
        ));
    }
    let slots = looked.slots(&app);
    let body = html! {
        link rel="stylesheet" href=(assets::path("learn.css"));
        (board::pieces())
        h1 { "Watch it learn" }
        p.quiet {
            "The same positions, as networks of different ages see them: the network alone, and a search of " (VISITS)
            " visits with it. Nothing here is used in training."
        }
        div.learn data-learn=(at.at) data-live=(format!("/learn/live?at={}", at.at)) {
            section.card.chooser aria-label="Checkpoint" {
                (slots.show("checkpoint"))
                label.slider {
                    span.hidden-text { "Checkpoint" }
                    input type="range" min="0" max="0" value="0" step="1" disabled;
                }
                (slots.show("milestones"))
                details.all { summary { "All checkpoints" } (slots.show("kept")) }
                fieldset.show {
                    legend { "On the boards" }
                    label { input type="radio" name="show" value="prior" checked; "network" }
                    label { input type="radio" name="show" value="visits"; (VISITS) " visits" }
                }
            }
            @if has_solver(&app.run) {
                section.card aria-labelledby="optimal" {
                    h2 #optimal { "Optimal moves" }
                    (slots.show("optimal"))
                }
            }
            div.cards.probes {
                @for (number, drawn) in looked.drawn.iter().enumerate() {
                    section.card.probe aria-labelledby=(format!("name-{number}")) {
                        h2 id=(format!("name-{number}")) { (drawn.name) }
                        (slots.show(&format!("probe-{number}")))
                        h3.quiet.small { "The network’s main moves over training, in percent" }
                        (slots.show(&format!("lines-{number}")))
                    }
                }
            }
        }
    };
    Ok(page(&app, Section::Learn, "Watch it learn", &["learn.js"], &body))
}

async fn stream(
    State(app): State<App>,
    Parameters(at): Parameters<At>,
) -> Result<impl IntoResponse, Failure> {
    let version = at.version()?;
    let shown = app.clone();
    live::stream(&app, move || {
        let (app, version) = (shown.clone(), version.clone());
        async move {
            let looked = look(&app, version.as_ref()).await;
            looked.map(|looked| looked.slots(&app)).unwrap_or_default()
        }
    })
}

/// Content of the page at one moment.
struct Looked {
    kept: Arc<Vec<Kept>>,
    chosen: Option<Kept>,
    answers: BTreeMap<Version, Arc<Answer>>,
    drawn: Vec<view::Drawn>,
    /// Sentence about checkpoints that cannot be listed, or about one that cannot be asked.
    trouble: Option<String>,
}

async fn look(app: &App, at: Option<&Version>) -> Result<Looked, Failure> {
    let listed = app.answers.kept().await;
    let (kept, mut trouble) = match listed {
        Ok(kept) => (kept, None),
        Err(sentence) => (Arc::default(), Some(sentence)),
    };
    let chosen = match at {
        Some(version) => kept.iter().find(|kept| kept.version == *version),
        None => kept.last(),
    };
    let chosen = chosen.cloned();
    let answers = match chosen.as_ref().map(|chosen| &chosen.version).or(at) {
        Some(version) => app.answers.look(&kept, version, &app.tables.engine),
        None => BTreeMap::new(),
    };
    let answer = chosen.as_ref().and_then(|chosen| answers.get(&chosen.version));
    let all: Vec<Arc<Answer>> = answers.values().cloned().collect();
    let drawn = view::draw(&app.run, answer.map(Arc::as_ref), &all)
        .map_err(|error| Failure::Missing(error.to_string()))?;
    if let Some(Err(reason)) = answer.map(|answer| &answer.decisions) {
        trouble = Some(format!("The network cannot be used: {reason}."));
    }
    Ok(Looked {
        kept,
        chosen,
        answers,
        drawn,
        trouble,
    })
}

impl Looked {
    fn slots(&self, app: &App) -> Slots {
        let mut slots = Slots::default()
            .with("checkpoint", self.checkpoint(app))
            .with("milestones", self.milestones())
            .with("kept", self.list())
            .with("optimal", Self::optimal(app));
        for (number, drawn) in self.drawn.iter().enumerate() {
            slots = slots
                .with(format!("probe-{number}"), drawn.position.clone())
                .with(format!("lines-{number}"), drawn.lines.clone());
        }
        slots
    }

    /// Name and age of the chosen checkpoint, and what is wrong.
    fn checkpoint(&self, app: &App) -> Markup {
        let asked = self
            .kept
            .iter()
            .filter(|kept| self.answers.contains_key(&kept.version));
        let (asked, all) = (asked.count(), self.kept.len());
        html! {
            @if let Some(trouble) = &self.trouble { p.warning { (trouble) } }
            @match &self.chosen {
                Some(chosen) => {
                    p.chosen {
                        b { (chosen.name()) }
                        span.quiet { "published " (moment(chosen.created_at_ms)) }
                        a href=(format!("/play?game={}&opponent={}", app.run.config.game.title(), chosen.version)) { "Play against it" }
                        span.quiet.small.asked { (asked) " of " (all) " checkpoints asked" }
                    }
                }
                None if all > 0 => { p.chosen { "This checkpoint is not kept any more. Choose another one." } }
                None => { p.empty { "The first checkpoint, an untrained one, appears within seconds of the start of the run." } }
            }
        }
    }

    /// Shares of optimal moves over training.
    fn optimal(app: &App) -> Markup {
        let shares = app.answers.optimal().into_iter();
        let points: Vec<Point> = shares
            .map(|(step, share)| Point::single(step as f64, 100.0 * share))
            .collect();
        let random = app.answers.questions().map(at_random);
        html! {
            p.quiet.small {
                "The share of " (POSITIONS) " random positions, in which a mistake is possible, where the network’s first choice keeps the best "
                "result. An exact solver judges it."
            }
            p.quiet.small { "Random moves: " (shown(random, percent)) "." }
            (chart(&Chart {
                title: "Share of optimal moves in percent, milestones",
                across: "step",
                range: Some([0.0, 100.0]),
                figure: |share| percent(share / 100.0),
                curves: &[Curve { name: "network alone", points: &points, look: Look::SECOND }],
                empty: "The milestones are asked after the positions below.",
            }))
        }
    }

    /// Link to a checkpoint. `place` is unique in the page for each list.
    fn link(&self, place: &str, kept: &Kept, name: &str) -> Markup {
        let is_chosen = self.chosen.as_ref() == Some(kept);
        html! {
            a href=(format!("/learn?at={}", kept.version)) data-version=(kept.version) id=(format!("{place}-{}", kept.version))
                aria-current=[is_chosen.then_some("true")] { (name) }
        }
    }

    /// Links to the milestones and to the newest checkpoint.
    fn milestones(&self) -> Markup {
        let newest = self.kept.last();
        html! {
            nav.milestones aria-label="Milestones" {
                @for kept in self.kept.iter() {
                    @if let Some(milestone) = &kept.milestone { (self.link("milestone", kept, milestone)) }
                    @else if newest == Some(kept) { (self.link("milestone", kept, "newest")) }
                }
            }
        }
    }

    /// Links to all checkpoints.
    fn list(&self) -> Markup {
        html! {
            ol { @for kept in self.kept.iter() { li { (self.link("kept", kept, &kept.name())) } } }
        }
    }
}
