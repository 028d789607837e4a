//! Style sheets, scripts and pictures, embedded in the program.
//!
//! The path of an asset has a digest of all assets, so browsers may keep a file without a limit. All files share one folder, so scripts import
//! each other by relative paths.

use std::sync::LazyLock;

use axum::{
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use proto::ids::hex;
use sha2::{Digest as _, Sha256};

/// An embedded file.
struct Asset {
    name: &'static str,
    media_type: &'static str,
    content: &'static [u8],
}

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! assets {
    ($($name:literal: $media_type:expr),* $(,)?) => {
        &[$(Asset {
            name: $name,
            media_type: $media_type,
            content: include_bytes!(concat!("../assets/", $name)),
        }),*]
    };
}

/// All files.
const ALL: &[Asset] = assets![
    "tokens.css": CSS,
    "style.css": CSS,
    "theme.js": SCRIPT,
    "ages.js": SCRIPT,
    "copy.js": SCRIPT,
    "slots.js": SCRIPT,
    "learn.css": CSS,
    "learn.js": SCRIPT,
    "live.js": SCRIPT,
    "board.css": CSS,
    "board.js": SCRIPT,
    "play.css": CSS,
    "play.js": SCRIPT,
    "replay.js": SCRIPT,
    "settings.css": CSS,
    "explore.css": CSS,
    "explore.js": SCRIPT,
    "mark.svg": SVG,
];

/// Style sheets, in the order in which a page names them.
pub const STYLES: &[&str] = &["tokens.css", "style.css", "board.css"];

/// Begin of every asset's path: `/assets/<digest>`.
static FOLDER: LazyLock<String> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    for asset in ALL {
        digest.update(asset.name);
        digest.update(asset.content);
    }
    format!("/assets/{}", hex(&digest.finalize()[..6]))
});

/// Path of the file `name`, with the digest.
pub fn path(name: &str) -> String {
    format!("{}/{name}", *FOLDER)
}

/// Content of the file `name` as text; empty if there is none. A page that is one file embeds its style in this way.
pub fn text(name: &str) -> &'static str {
    let found = ALL.iter().find(|asset| asset.name == name);
    found
        .and_then(|asset| std::str::from_utf8(asset.content).ok())
        .unwrap_or_default()
}

/// Reply to the request of a file; an empty one with the status 404 if there is none with this digest and name.
pub async fn asset(Path((digest, name)): Path<(String, String)>) -> Response {
    let found = ALL.iter().find(|asset| asset.name == name);
    let found = found.filter(|_| FOLDER.ends_with(&format!("/{digest}")));
    let Some(asset) = found else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, asset.media_type),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    (headers, asset.content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_import_only_files_that_are_embedded() {
        for asset in ALL.iter().filter(|asset| asset.media_type == SCRIPT) {
            for line in text(asset.name).lines().filter(|line| line.starts_with("import")) {
                let from = line.rsplit('"').nth(1).and_then(|path| path.strip_prefix("./"));
                let known = from.is_some_and(|from| ALL.iter().any(|asset| asset.name == from));
                assert!(known, "{}: {line}", asset.name);
            }
        }
    }
}
