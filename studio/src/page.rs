//! The frame of a section's page: navigation, main part.

use maud::{Markup, PreEscaped, html};

use crate::{app::App, assets, document::document};

/// A section of the studio: an entry of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// State of the run.
    Overview,
    /// Stored games.
    Games,
    /// Games of people, and analysis.
    Play,
    /// Checkpoints of different ages on the same positions.
    Learn,
    /// Rated matches.
    Matches,
    /// This run beside others.
    Compare,
    /// Settings of the run.
    Config,
}

impl Section {
    /// All sections, in the order of the navigation.
    const ALL: [Self; 7] = [
        Self::Overview,
        Self::Games,
        Self::Play,
        Self::Learn,
        Self::Matches,
        Self::Compare,
        Self::Config,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Play => "Play",
            Self::Games => "Games",
            Self::Learn => "Learn",
            Self::Matches => "Matches",
            Self::Compare => "Compare",
            Self::Config => "Config",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Overview => "/",
            Self::Play => "/play",
            Self::Games => "/games",
            Self::Learn => "/learn",
            Self::Matches => "/matches",
            Self::Compare => "/compare",
            Self::Config => "/config",
        }
    }
}

/// A page of a section. `scripts` are names of modules among the assets; the page must be readable without them.
pub fn page(app: &App, section: Section, title: &str, scripts: &[&str], body: &Markup) -> Markup {
    let run = app.run();
    let frame = html! {
        header.bar {
            a.brand href="/" { (mark()) span { "minuet" } }
            span.run title=(run.folder.display()) { (run.name) }
            nav aria-label="Sections" {
                ul {
                    @for each in Section::ALL.into_iter().filter(|each| app.has_run() || *each == Section::Play) {
                        li { a href=(each.path()) aria-current=[(each == section).then_some("page")] { (each.name()) } }
                    }
                }
            }
            button.theme type="button" hidden aria-label="Switch between light and dark" title="Light or dark" {
                svg viewBox="0 0 16 16" aria-hidden="true" {
                    circle cx="8" cy="8" r="6.25" fill="none" stroke="currentColor" stroke-width="1.5" {}
                    path d="M8 1.75a6.25 6.25 0 0 1 0 12.5z" fill="currentColor" {}
                }
            }
        }
        main #main { (body) }
    };
    document(&format!("{title} · {}", run.name), scripts, &frame)
}

/// The mark of Minuet: two dancing discs.
fn mark() -> Markup {
    PreEscaped(assets::text("mark.svg").into())
}
