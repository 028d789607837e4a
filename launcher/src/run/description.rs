//! The description of a game from outside in the folder of a run.

use std::path::Path;

use anyhow::Context as _;
use config::GameConfig;
use games::outside::{self, Description};

/// Name of the file.
pub(super) const FILE: &str = "game.json";

/// Writes the description of this process's game from outside into the folder of a new run, if the run is one of it.
pub(super) fn add(run: &Path, game: &mut GameConfig) -> anyhow::Result<()> {
    let Some(description) = outside::description().filter(|_| game.is_from_outside()) else {
        return Ok(());
    };
    // The settings may be those of another run, with its file.
    game.description = FILE.into();
    write(&run.join(FILE), description)
}

/// Writes the description of this process's game from outside over that of a run of it, which may have another text of the rules, or
/// another place. Returns what is to be told about that.
pub(super) fn renew(game: &GameConfig) -> anyhow::Result<Option<String>> {
    let (Some(known), Some(own)) = (game.read_description()?, outside::description()) else {
        return Ok(None);
    };
    // Another description is refused when the settings are read.
    if known == *own || known.difference(own).is_some() {
        return Ok(None);
    }
    write(&game.description, own)?;
    Ok((known.source != own.source).then(|| {
        format!(
            "the text of the rules in {} is not that of the last start; the run continues with the new text, because board, actions and \
             players are the same",
            own.rules
        )
    }))
}

fn write(file: &Path, description: &Description) -> anyhow::Result<()> {
    let text = serde_json::to_vec_pretty(description)?;
    durable::write(file, &text).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use config::RunConfig;
    use games::PlaneStack;

    use super::*;
    use crate::{BadUsage, plan::Plan, run::folder::RunFolder};

    fn described(source: &str, actions: u32) -> Description {
        let stack = PlaneStack {
            height: 3,
            width: 3,
            entries: 9,
            planes: 2,
            sparse: vec![0, 1],
            constants: Vec::new(),
            ones: Vec::new(),
        };
        Description {
            source: source.into(),
            rules: "my_game.py".into(),
            ..Description::of_planes("noughts", stack, actions)
        }
    }

    /// One test, because a process has one game from outside.
    #[test]
    fn a_run_keeps_the_description_of_its_game_and_is_told_of_changes() {
        outside::describe(described("first", 9)).unwrap();
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("run");
        let open = |game: &str| RunFolder::open(&path, Some(game), &[]);
        let folder = open("noughts").unwrap();
        assert!(folder.is_new() && folder.note().is_none());
        let file = path.join(FILE);
        let read = || serde_json::from_slice::<Description>(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(read(), described("first", 9));
        let config: RunConfig = folder.load(&[]).unwrap();
        assert_eq!(config.game.description, file);
        // This process does not know the rules.
        let refused = Plan::new(&folder, &[], 1).unwrap_err();
        assert!(refused.is::<BadUsage>() && refused.to_string().contains("python -m minuet up"));
        drop(folder);

        write(&file, &described("second", 9)).unwrap();
        let folder = open("noughts").unwrap();
        assert!(
            folder.note().unwrap().contains("my_game.py"),
            "{:?}",
            folder.note()
        );
        assert_eq!(read(), described("first", 9));
        drop(folder);
        assert!(open("noughts").unwrap().note().is_none());

        let error = format!("{:#}", open("othello").unwrap_err());
        assert!(error.contains("is a run of noughts, not of othello"), "{error}");
        write(&file, &described("first", 8)).unwrap();
        let error = format!("{:#}", open("noughts").unwrap_err());
        assert!(error.contains("the number of actions is 9, and was 8"), "{error}");
        std::fs::remove_file(&file).unwrap();
        let error = format!("{:#}", open("noughts").unwrap_err());
        assert!(error.contains("`game.description`: cannot use"), "{error}");
    }
}
