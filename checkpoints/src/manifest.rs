//! [`Manifest`]: the description of a checkpoint, readable without its files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Error, Version};

/// Schema number that this program writes and reads. New fields do not change the number; a change of a field's meaning
/// does.
pub const SCHEMA: u64 = 1;

/// `manifest.json`: a published checkpoint. It exists only once all of its files do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Schema number of this file: [`SCHEMA`].
    pub schema: u64,
    /// Name of the checkpoint.
    pub version: Version,
    /// Description that the publisher gave. The fields of the file are not nested.
    #[serde(flatten)]
    pub draft: Draft,
    /// Digest and length of each file.
    pub files: BTreeMap<String, FileEntry>,
    /// Fencing token of the publisher ([`crate::Lease`]). Later publishers have higher tokens. 0: published without a
    /// lease.
    #[serde(default)]
    pub token: u64,
    /// Time of publication, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
}

/// A file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// SHA-256 in lower-case hexadecimal.
    pub sha256: String,
    /// Length in bytes.
    pub bytes: u64,
}

/// Description of a checkpoint by its publisher.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// Name of the game.
    pub game: String,
    /// Row layout of the model's input: a `games::RowLayout`.
    pub layout: serde_json::Value,
    /// Size of the policy.
    pub actions: u32,
    /// Shape of the network, as the learner describes it.
    pub network: serde_json::Value,
    /// Training steps so far.
    pub step: u64,
    /// Samples trained on so far.
    pub positions_seen: u64,
    /// Games inserted into the replay store by the time of the checkpoint.
    pub games_seen: u64,
    /// Time that the learner was at work for this checkpoint and those before it, in milliseconds. 0 if the publisher does not
    /// count it.
    #[serde(default)]
    pub trained_ms: u64,
    /// Checkpoint from which training continued.
    pub parent: Option<Version>,
    /// State of the learner besides the files, for an exact resumption.
    pub learner_state: serde_json::Value,
}

/// Contents of `labels/<label>.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Label {
    pub schema: u64,
    /// Version that the label points at; `None` for a label that has a token only.
    pub version: Option<Version>,
    /// Highest fencing token that may move the label.
    #[serde(default)]
    pub token: u64,
    pub moved_at_ms: u64,
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: u64,
}

/// Parses a manifest, a label or a lease. The schema is read first, so that a newer file is not taken for a damaged one.
pub(crate) fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, Error> {
    let damaged = |error: serde_json::Error| Error::Damaged {
        name: name.to_owned(),
        reason: error.to_string(),
    };
    let SchemaOnly { schema } = serde_json::from_slice(bytes).map_err(damaged)?;
    if schema != SCHEMA {
        return Err(Error::Schema {
            name: name.to_owned(),
            found: schema,
        });
    }
    serde_json::from_slice(bytes).map_err(damaged)
}

/// Returns the present time in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |age| age.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_manifest_is_read_as_it_was_written(step in 0u64..1_000_000_000_000, games in any::<u64>(), game in "[a-z-]{0,12}", digest in "[0-9a-f]{64}") {
            let version = Version::new(step, &digest).unwrap();
            let manifest = Manifest {
                schema: SCHEMA,
                version: version.clone(),
                draft: Draft {
                    game,
                    layout: serde_json::json!({"entries": 38}),
                    actions: 132,
                    network: serde_json::json!({"blocks": 4}),
                    step,
                    positions_seen: games,
                    games_seen: games,
                    trained_ms: games,
                    parent: (step % 2 == 0).then_some(version),
                    learner_state: serde_json::json!({"progress": {"step": step, "loss": 0.5}}),
                },
                files: BTreeMap::from([("model.onnx".to_owned(), FileEntry { sha256: digest, bytes: step })]),
                token: games,
                created_at_ms: 1,
            };
            let text = serde_json::to_vec(&manifest).unwrap();
            prop_assert_eq!(parse::<Manifest>("m", &text).unwrap(), manifest);
            let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&text).unwrap();
            prop_assert_eq!(&fields["step"], &serde_json::json!(step));
            prop_assert!(!fields.contains_key("draft"));
        }

        #[test]
        fn parsing_any_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(parse::<Manifest>("m", &bytes).is_err());
        }
    }

    #[test]
    fn an_unknown_schema_is_not_reported_as_damage() {
        let error = parse::<Manifest>("m", br#"{"schema": 7, "something": "else"}"#).unwrap_err();
        assert!(matches!(error, Error::Schema { found: 7, .. }), "{error}");
        let error = parse::<Manifest>("m", br#"{"schema": 1}"#).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
}
