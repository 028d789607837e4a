//! The outermost frame of every page: head, style sheets, scripts.

use maud::{DOCTYPE, Markup, html};

use crate::assets;

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
