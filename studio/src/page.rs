//! The frames of pages: head, style sheets and scripts of every page; navigation and main part of a section's page.

use std::sync::atomic::Ordering;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{app::App, assets};

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
    /// This run next to others.
    Compare,
    /// Settings of the run.
    Config,
}

/// All sections in the order of the navigation, with their names and addresses.
const SECTIONS: [(Section, &str, &str); 7] = [
    (Section::Overview, "Overview", "/"),
    (Section::Games, "Games", "/games"),
    (Section::Play, "Play", "/play"),
    (Section::Learn, "Learn", "/learn"),
    (Section::Matches, "Matches", "/matches"),
    (Section::Compare, "Compare", "/compare"),
    (Section::Config, "Config", "/config"),
];

/// A page of a section. `scripts` are names of modules among the assets; the page must be readable without them.
pub fn page(app: &App, section: Section, title: &str, scripts: &[&str], body: &Markup) -> Markup {
    let run = &app.run;
    let frame = html! {
        header.bar {
            a.brand href="/" { (PreEscaped(assets::text("mark.svg"))) span { "minuet" } }
            span.run title=(run.folder.display()) { (run.name) }
            nav aria-label="Sections" {
                ul {
                    @for (each, name, path) in SECTIONS.into_iter().filter(|(each, ..)| app.has_run || *each == Section::Play) {
                        li { a href=(path) aria-current=[(each == section).then_some("page")] { (name) } }
                    }
                }
            }
            button.theme type="button" hidden aria-label="Switch between light and dark" title="Light or dark" {
                svg viewBox="0 0 16 16" aria-hidden="true" {
                    circle cx="8" cy="8" r="6.25" fill="none" stroke="currentColor" stroke-width="1.5" {}
                    path d="M8 1.75a6.25 6.25 0 0 1 0 12.5z" fill="currentColor" {}
                }
            }
            @if app.has_sessions.load(Ordering::Relaxed) {
                form.sign-out method="post" action="/logout" { button type="submit" { "Sign out" } }
            }
        }
        main #main { (body) }
    };
    document(&format!("{title} · {}", run.name), scripts, &frame)
}

/// A page without navigation, for errors.
pub fn bare(title: &str, body: &Markup) -> Markup {
    document(title, &[], &html! { main #main.bare { (body) } })
}

/// A document with the head that all pages share. `scripts` are names of modules among the assets.
pub fn document(title: &str, scripts: &[&str], body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · minuet" }
                link rel="icon" type="image/svg+xml" href=(assets::path("mark.svg"));
                @for style in assets::STYLES { link rel="stylesheet" href=(assets::path(style)); }
                // Not a module: it chooses the theme before the first drawing.
                script src=(assets::path("theme.js")) {}
                @for script in scripts {
                    script type="module" src=(assets::path(script)) {}
                }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (body)
            }
        }
    }
}

/// The head of a table with these columns.
pub fn columns(names: &[&str]) -> Markup {
    html! { thead { tr { @for name in names { th scope="col" { (name) } } } } }
}
