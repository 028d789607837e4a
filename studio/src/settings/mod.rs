//! The page of settings: every key of `run.toml`, those that differ from a new run of the game first. Nothing can be changed here.
//!
//! | module | contents |
//! |---|---|
//! | [`list`] | settings as data |

pub mod list;

use std::collections::BTreeMap;

use axum::{Router, extract::State, routing::get};
use maud::{Markup, html};

use self::list::Setting;
use crate::{
    app::App,
    assets,
    figures::words::with_code,
    page::{Section, columns, page},
};

/// Routes of the settings.
pub fn routes() -> Router<App> {
    Router::new().route("/config", get(show))
}

/// All settings, and the values of a new run.
struct Read {
    game: String,
    settings: Vec<Setting>,
    usual: BTreeMap<String, String>,
}

impl Read {
    fn of(app: &App) -> Result<Self, config::ConfigError> {
        let config = list::read(&app.run.folder)?;
        Ok(Self {
            settings: list::settings(&config),
            usual: list::usual(&config.game.title())?,
            game: config.game.title(),
        })
    }

    fn differs(&self, setting: &Setting) -> bool {
        self.usual.get(&setting.path) != Some(&setting.value)
    }
}

async fn show(State(app): State<App>) -> Markup {
    let body = html! {
        link rel="stylesheet" href=(assets::path("settings.css"));
        h1 { "Config" }
        @match Read::of(&app) {
            Ok(read) => { (whole(&read)) }
            Err(error) => { p.warning { "The settings cannot be read: " (service::chain(&error)) "." } }
        }
    };
    page(&app, Section::Config, "Config", &["copy.js"], &body)
}

fn whole(read: &Read) -> Markup {
    let different: Vec<&Setting> = read
        .settings
        .iter()
        .filter(|setting| read.differs(setting))
        .collect();
    let sections = config::described(&config::RunConfig::default());
    html! {
        p.quiet {
            "The settings in " code { "run.toml" } ", compared with those of a new run of " (read.game) ". A change of the file takes effect when "
            "the run is started again; " code { "--set" } " on the command line of " code { "minuet up" } " holds for one start and is not listed here."
        }
        section.card aria-labelledby="different" {
            h2 #different { "Different from a new run" }
            @if different.is_empty() {
                p.empty { "No setting differs from those of a new run of " (read.game) "." }
            } @else {
                (overview(read, &different))
                (command(read, &different))
            }
        }
        nav.jump aria-label="Sections of run.toml" {
            @for section in &sections { a href=(format!("#{}", section.name)) { (section.name) } }
        }
        @for section in &sections {
            section.card.settings aria-labelledby=(section.name) {
                h2 id=(section.name) { code { "[" (section.name) "]" } span.quiet { (with_code(section.documentation)) } }
                @let of_section = || read.settings.iter().filter(|setting| setting.section == section.name);
                @for setting in of_section().filter(|setting| read.differs(setting)) { (row(read, setting)) }
                @for setting in of_section().filter(|setting| !read.differs(setting)) { (row(read, setting)) }
            }
        }
    }
}

/// Settings that differ, each with a link to its documentation.
fn overview(read: &Read, different: &[&Setting]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Settings that differ, scrollable" {
            table.different {
                (columns(&["Key", "Here", "New run"]))
                tbody {
                    @for setting in different {
                        tr {
                            th scope="row" { a href=(format!("#{}", setting.path)) { code { (setting.path) } } }
                            td { code { (setting.value) } }
                            td.quiet { (usual(read, setting)) }
                        }
                    }
                }
            }
        }
    }
}

/// The command that begins a run with the same settings.
fn command(read: &Read, different: &[&Setting]) -> Markup {
    let arguments: Vec<&str> = different
        .iter()
        .filter(|setting| setting.path != "game.name")
        .map(|setting| setting.argument.as_str())
        .collect();
    let text = format!(
        "minuet up --game {} --run runs/another {}",
        read.game,
        arguments.join(" ")
    );
    html! {
        p.quiet.small { "Another run with the same settings:" }
        p.command {
            code { (text) }
            button.copy type="button" data-copy=(text) { "Copy" }
        }
    }
}

fn usual(read: &Read, setting: &Setting) -> Markup {
    html! {
        @match read.usual.get(&setting.path) {
            Some(value) => { code { (value) } }
            None => { "none" }
        }
    }
}

/// A key: value, documentation, and an argument to copy.
fn row(read: &Read, setting: &Setting) -> Markup {
    let differs = read.differs(setting);
    html! {
        div.setting.different[differs] id=(setting.path) {
            h3 { code { (setting.path) } }
            p.value {
                code { (setting.value) }
                @if differs { span.usual { "new run: " (usual(read, setting)) } }
                @if config::is_fixed(&setting.path) {
                    abbr.fixed title="Training continues only with this value. Another one needs a new run; minuet grow begins one with the same games." {
                        "fixed at start"
                    }
                }
                span.copying {
                    code.hidden-text aria-hidden="true" { (setting.argument) }
                    button.copy type="button" data-copy=(setting.argument) { "Copy" span.hidden-text { " " (setting.argument) } }
                }
            }
            p.documentation { (with_code(setting.documentation)) }
        }
    }
}
