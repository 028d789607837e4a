//! The examples of README.md, of the guide and of the help texts run: every command of their `console` blocks succeeds, and prints what
//! the page shows below it. [`NOT_RUN`] is the complete list of commands that are left out.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use checkpoints::Repository;
use games::{
    Game,
    registry::{self, Visitor},
};
use onnx::Metadata;
use proto::ids::hex;

use crate::support::{
    program::{minuet, printed},
    run::{Run, tiny_run},
    served::publish,
};

/// Commands that are not run, by their beginning, and why.
const NOT_RUN: [(&str, &str); 43] = [
    ("make up", TRAINS),
    ("minuet up ", TRAINS),
    ("$minuet grow ", TRAINS),
    ("minuet up\n", TRAINS),
    ("minuet grow ", TRAINS),
    ("minuet rating ", TRAINS),
    ("minuet analysis ", "serves until it is stopped"),
    ("target/release/minuet analysis ", "serves until it is stopped"),
    ("make test", "runs this test too"),
    ("make play", OPENS),
    ("target/release/minuet studio --run runs/chess --open", OPENS),
    ("minuet studio --run runs/connect-four --open", OPENS),
    ("minuet studio --open", OPENS),
    ("minuet studio --run runs/paco-sako --open", OPENS),
    (
        "minuet studio --run runs/chess --port",
        "serves until it is stopped",
    ),
    (
        "minuet studio --run runs/chess --listen",
        "needs a certificate, and serves until it is stopped",
    ),
    (
        "minuet studio --run runs/connect-four --listen",
        "needs a certificate, and serves until it is stopped",
    ),
    (
        "minuet studio --run runs/cluster --follow",
        "needs the names of containers, and serves until it is stopped",
    ),
    ("target/release/minuet bench generator", MINUTES),
    ("target/release/minuet bench tasks --model", MINUTES),
    ("target/release/minuet lab ", MINUTES),
    ("minuet bench ", MINUTES),
    ("minuet arena ", MINUTES),
    ("minuet lab ", MINUTES),
    ("minuet perft --game paco-sako --depth 6", MINUTES),
    ("minuet query http", "needs a server at this address"),
    ("minuet games import s3", "needs this store"),
    (
        "minuet solve --task runs/tasks",
        "needs the tasks that `minuet bench tasks --write runs/tasks` writes",
    ),
    (
        "minuet plan --game othello",
        "needs the figures of the benchmarks above it",
    ),
    ("$minuet bench accuracy", MINUTES),
    ("$minuet arena ", MINUTES),
    (
        "minuet plan --game paco-sako --network 6x64",
        "needs the figures of the benchmarks above it",
    ),
    ("cargo build ", BUILDS),
    ("cargo test ", BUILDS),
    ("make wheel", BUILDS),
    (
        "pip install ",
        "installs packages; the Python package has tests of its own",
    ),
    ("tar --zstd ", "needs the archive of a release"),
    ("for role in ", "starts roles that do not end"),
    (
        "python=$(python3 scripts/python_env.py simulate)",
        "installs packages",
    ),
    ("$python scripts/simulate.py", MINUTES),
    ("python python/examples/", "needs the roles of the line above it"),
    (
        "python -m minuet ",
        "needs the Python package, which has tests of its own",
    ),
    ("ssh ", "needs another machine"),
];

/// The page with the text of every `--help`.
const HELP: &str = "docs/reference/commands.md";

const TRAINS: &str = "trains until it is stopped";
const OPENS: &str = "opens a browser";
const MINUTES: &str = "takes minutes";
const BUILDS: &str = "builds the project";

/// Text of the pages that takes the place of a value of the reader's own run.
const GAME: &str = "4be1f0a2…";
const VERSION: &str = "000000001200-3fa94c21";

/// Line that ends the output of a command. Its status follows.
const END: &str = "--- end of a command, status ";
/// Longest time for all commands of a block, in seconds; a block that takes longer is assumed to hang.
const LONGEST: &str = "300";

/// A command of a page, with the output that the page shows.
struct Example {
    command: String,
    shown: Vec<String>,
}

impl Example {
    /// True if the page shows this output, or none. A last line `…` means lines that it leaves out.
    fn is_shown(&self, output: &[&str]) -> bool {
        match self.shown.split_last() {
            None => true,
            Some((last, before)) if last == "…" => {
                output.len() > before.len() && output.iter().zip(before).all(|(line, shown)| line == shown)
            }
            Some(_) => output == self.shown,
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// README.md and the pages of the guide.
fn pages() -> Vec<PathBuf> {
    let guide = fs::read_dir(root().join("docs/guide")).unwrap();
    let mut pages: Vec<PathBuf> = guide.map(|entry| entry.unwrap().path()).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

/// The commands of each `console` block.
fn blocks(page: &str) -> Vec<Vec<Example>> {
    let blocks = page.split("```console\n").skip(1);
    let block = |text: &str| {
        let mut examples: Vec<Example> = Vec::new();
        for line in text.split("```").next().unwrap().lines() {
            match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => examples.push(Example {
                    command: command.into(),
                    shown: Vec::new(),
                }),
                (None, Some(example)) => example.shown.push(line.trim_end().into()),
                (None, None) => panic!("a block begins with output: {line}"),
            }
        }
        examples
    };
    blocks.map(block).collect()
}

/// The commands in the help texts, each alone.
fn help_examples() -> Vec<Vec<Example>> {
    let page = fs::read_to_string(root().join(HELP)).unwrap();
    let command = |line: &str| {
        let line = line.strip_prefix("Example:").unwrap_or(line);
        let command = line
            .strip_prefix("  ")
            .or(line.strip_prefix(' '))?
            .split("   ")
            .next()?;
        let begins = ["minuet ", "printf ", "echo "]
            .iter()
            .any(|word| command.starts_with(word));
        begins.then(|| {
            vec![Example {
                command: command.into(),
                shown: Vec::new(),
            }]
        })
    };
    page.lines().filter_map(command).collect()
}

/// Publishes a network of random weights as the newest checkpoint of a run in `folder`.
struct Published<'a>(&'a Path);

impl Visitor for Published<'_> {
    type Output = ();

    fn visit<G: Game>(self) {
        let layout = G::layout(
            (0..8)
                .find_map(|options| G::encoding(&Default::default(), options).ok())
                .unwrap(),
        );
        let metadata = Metadata { layout, step: 7 };
        let model = onnx::random::model(&metadata, 1, 8, 1).unwrap();
        let store = self.0.join("checkpoints");
        let repository = Repository::open(store.to_str().unwrap()).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(publish(&repository, &metadata, model));
    }
}

/// The folder in which the commands run: a clone in which the project was built and runs were made.
struct Place {
    folder: tempfile::TempDir,
    /// Id of a stored game of `runs/paco-sako`, and the network that played it.
    game: String,
    version: String,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        for name in ["networks", "lab", "python"] {
            symlink(root().join(name), here.join(name)).unwrap();
        }
        let programs = Path::new(env!("CARGO_BIN_EXE_minuet")).parent().unwrap();
        fs::create_dir(here.join("target")).unwrap();
        symlink(programs, here.join("target/release")).unwrap();

        let trained = here.join("runs/paco-sako");
        // A search can be repeated only while its checkpoint is kept.
        let mut run = Run::start(&trained, &[&tiny_run()[..], &["checkpoints.keep=1000"]].concat());
        run.wait_for_games(|games| games.len() >= 20);
        let game = run.games().pop().unwrap();
        run.stop();
        let settings = [&tiny_run()[..], &["search.visits=2", "search.root=\"puct\""]].concat();
        let mut go = Run::of_game("go:9", &here.join("runs/go-9"), &settings);
        go.wait_for_game(|game| game.positions >= 40);
        go.stop();
        // A run without games, into which games are imported.
        let other = here.join("runs/other");
        fs::create_dir(&other).unwrap();
        fs::copy(trained.join("run.toml"), other.join("run.toml")).unwrap();
        let people = "[WhiteElo \"2100\"]\n[BlackElo \"2050\"]\n1. e4 e5 1-0\n";
        fs::write(here.join("games.pgn"), people).unwrap();
        for game in ["chess", "connect-four"] {
            let path = here.join("runs").join(game);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("run.toml"), printed(minuet("config --game").arg(game))).unwrap();
            registry::visit(game, Published(&path)).unwrap();
        }
        Self {
            game: hex(&game.id),
            version: game.model_versions[0].clone(),
            folder,
        }
    }

    /// Runs the commands in one shell. Returns the output and the status of each.
    fn run(&self, commands: &[&Example]) -> Vec<(String, i32)> {
        let mut script = String::new();
        for example in commands {
            let command = example
                .command
                .replace(GAME, &self.game)
                .replace(VERSION, &self.version);
            writeln!(
                script,
                "{{ {command}\n}} < /dev/null; status=$?; echo; echo \"{END}$status\""
            )
            .unwrap();
        }
        let programs = self.folder.path().join("target/release");
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let done = Command::new("timeout")
            .args([LONGEST, "bash", "-o", "pipefail", "-c", &script])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env_remove("MINUET_CONFIG")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        std::io::stderr().write_all(&done.stderr).unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        let mut outputs = Vec::new();
        let mut rest = text.as_str();
        while let Some((output, after)) = rest.split_once(END) {
            let (status, after) = after.split_once('\n').unwrap();
            outputs.push((output.to_owned(), status.parse().unwrap()));
            rest = after;
        }
        assert_eq!(
            outputs.len(),
            commands.len(),
            "the shell ended with {}",
            done.status
        );
        outputs
    }
}

#[test]
fn the_commands_of_readme_and_guide_run_as_written() {
    let place = Place::new();
    let (mut ran, mut unused, mut faults) = (0, BTreeSet::from_iter(0..NOT_RUN.len()), Vec::new());
    let mut left_out = String::new();
    let mut all: Vec<(String, Vec<Vec<Example>>)> = Vec::new();
    for page in pages() {
        let name = page.strip_prefix(root()).unwrap().display().to_string();
        all.push((name, blocks(&fs::read_to_string(&page).unwrap())));
    }
    all.push((HELP.into(), help_examples()));
    for (name, page) in all {
        // An export refuses a folder that is not empty.
        let _ = fs::remove_dir_all(place.folder.path().join("experience"));
        for block in page {
            let mut runnable = Vec::new();
            for example in &block {
                let line = format!("{}\n", example.command);
                let reason = |(beginning, _): &(&str, &str)| line.starts_with(beginning);
                match NOT_RUN.iter().position(reason) {
                    Some(at) => {
                        unused.remove(&at);
                        writeln!(left_out, "{name}: {} ({})", example.command, NOT_RUN[at].1).unwrap();
                    }
                    None => runnable.push(example),
                }
            }
            for (example, (output, status)) in runnable.iter().zip(place.run(&runnable)) {
                ran += 1;
                let fault = |what: &str| format!("{name}: {}: {what}:\n{output}", example.command);
                if status != 0 {
                    faults.push(fault(&format!("status {status}")));
                }
                let lines: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
                if !example.is_shown(&lines) {
                    faults.push(fault("the page shows another output"));
                }
            }
        }
    }
    // Unlike `print!`, this is shown by passing tests too.
    writeln!(std::io::stdout(), "{ran} examples ran; not run:\n{left_out}").unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let unused: Vec<&str> = unused.into_iter().map(|at| NOT_RUN[at].0).collect();
    assert!(
        unused.is_empty(),
        "no page has these commands any more: {unused:?}"
    );
}
