//! `minuet arena` as a process: a killed match continues, other engines can play, and other programs can read the games.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(120);

fn minuet(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minuet"));
    command
        .arg("arena")
        .args(arguments)
        .args(["--json", "--folder"])
        .arg(folder)
        .stderr(Stdio::piped());
    command
}

fn object(output: &Output) -> Value {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn lines(folder: &Path) -> usize {
    fs::read_to_string(folder.join("games.jsonl")).map_or(0, |text| text.lines().count())
}

#[test]
fn a_match_that_is_killed_continues() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("match");
    let players = ["--game", "othello", "uct,visits=400", "uct,visits=100"];
    let match_of = |folder: &Path, games: u64| {
        let games = games.to_string();
        let numbers = ["--games", &games, "--games-at-once", "2"];
        minuet(folder, &[&players[..], &numbers].concat())
    };
    // So many games that no machine finishes them before the kill.
    for _ in 0..2 {
        let before = lines(&folder);
        let mut child = match_of(&folder, 100_000).stdout(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while lines(&folder) < before + 4 {
            assert!(began.elapsed() < TIMEOUT, "no game ended");
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // The continued match has a few games more than were begun.
    let text = fs::read_to_string(folder.join("games.jsonl")).unwrap();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let numbers = whole.map(|line| {
        let game: Value = serde_json::from_str(line).unwrap();
        game["game"].as_u64().unwrap()
    });
    let games = (numbers.max().unwrap() + 20).next_multiple_of(2);
    let report = object(&match_of(&folder, games).output().unwrap());
    assert_eq!(report["ended"], "complete");
    assert_eq!(report["games"], serde_json::json!([games, games]));
    assert_eq!(lines(&folder) as u64, games, "no game is played twice");

    // Uniform players depend on their seeds alone, so an uninterrupted match has the same games.
    let whole = home.path().join("whole");
    let truth = object(&match_of(&whole, games).output().unwrap());
    assert_eq!(report["pairings"], truth["pairings"]);
    let score = report["pairings"][0]["estimate"]["score"].as_f64().unwrap();
    assert!(score > 0.6, "score with four times the visits: {score}");
    let text = |folder: &Path| fs::read_to_string(folder.join("games.txt")).unwrap();
    assert_eq!(text(&folder), text(&whole));
}

#[test]
fn bad_usage_and_failure_have_different_exit_codes() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = minuet(home.path(), arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), said)
    };
    for (arguments, words) in [
        (&["--game", "chess", "uct"][..], "2 values required"),
        (&["--game", "chess", "uct,visit=3", "random"], "no key `visit`"),
        (&["--game", "go", "uct", "random"], "possible values"),
        (
            &["--game", "chess", "uct", "random", "--games", "3"],
            "even number",
        ),
        (
            &["--game", "chess", "uct", "random", "--sprt", "elo0=5,elo1=0"],
            "elo0 must be below elo1",
        ),
    ] {
        let (code, said) = run(arguments);
        assert_eq!((code, said.contains(words)), (2, true), "{said}");
    }
    let (code, said) = run(&["--game", "chess", "runs/nowhere", "random"]);
    assert_eq!(
        (code, said.contains("cannot read runs/nowhere")),
        (1, true),
        "{said}"
    );
    let (code, said) = run(&["--game", "othello", "perfect", "random"]);
    assert_eq!((code, said.contains("connect-four only")), (1, true), "{said}");
    let (code, said) = run(&["--game", "chess", "uct", "uct"]);
    assert_eq!(
        (code, said.contains("two players are called `uct`")),
        (1, true),
        "{said}"
    );
    let (code, said) = run(&["--game", "chess", "uci:/nowhere/engine", "random"]);
    assert_eq!(
        (code, said.contains("cannot start the engine /nowhere/engine")),
        (1, true),
        "{said}"
    );
    let (code, said) = run(&["--game", "chess", "gtp:/nowhere/engine", "random"]);
    assert_eq!((code, said.contains("othello only")), (1, true), "{said}");
}

/// An engine with python-chess' rules that plays random legal moves, underpromotions included; with an argument it plays an illegal move
/// after that number of moves.
const ENGINE: &str = "
import chess, random, sys
random.seed(7)
mistake = int(sys.argv[1]) if len(sys.argv) > 1 else None
board, level = chess.Board(), None
for line in sys.stdin:
    words = line.split()
    if words[:1] == ['uci']:
        print('id name any\\noption name Level type spin default 1\\nuciok')
    elif words[:1] == ['setoption']:
        level = words[-1]
    elif words[:1] == ['isready']:
        print('readyok')
    elif words[:1] == ['position']:
        at = words.index('moves') if 'moves' in words else len(words)
        board = chess.Board(' '.join(words[2:at]))
        for move in words[at + 1:]:
            board.push_uci(move)
    elif words[:1] == ['go']:
        assert level == '3' and words[1:] == ['nodes', '5']
        wrong = mistake is not None and board.fullmove_number > mistake
        move = 'e1e5' if wrong else random.choice(list(board.legal_moves)).uci()
        print('info depth 1 nodes 5 score cp 0\\nbestmove ' + move)
    elif words[:1] == ['quit']:
        break
    sys.stdout.flush()
";

/// Reads every game with python-chess, and checks moves, results and colours.
const READER: &str = "
import chess.pgn, sys
games = []
with open(sys.argv[1]) as file:
    while (game := chess.pgn.read_game(file)) is not None:
        assert not game.errors, game.errors
        board = game.end().board()
        outcome = board.outcome(claim_draw=True)
        ended = game.headers['Termination']
        if ended not in ('illegal-move', 'max-actions'):
            assert outcome is not None and outcome.result() == game.headers['Result'], (ended, board.fen())
        assert len(board.move_stack) == int(game.headers['PlyCount'])
        games.append(game.headers['White'])
print(len(games), games.count('any'))
";

#[test]
fn another_engine_plays_and_python_chess_reads_the_games() {
    let Some(python) = test_support::python("chess") else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("engine.py");
    fs::write(&script, ENGINE).unwrap();
    let engine = |arguments: &str, name: &str| {
        format!(
            "uci:{} {} {arguments},nodes=5,option.Level=3,name={name}",
            python.display(),
            script.display()
        )
    };
    let folder = home.path().join("match");
    let report = object(
        &minuet(
            &folder,
            &[
                "--game",
                "chess",
                "uct,visits=30",
                &engine("", "any"),
                &engine("6", "wrong"),
                "--games",
                "4",
            ],
        )
        .output()
        .unwrap(),
    );
    assert_eq!(report["games"], serde_json::json!([12, 12]));
    assert!(
        report["endings"]["illegal-move"].as_u64().unwrap() > 0,
        "{report}"
    );
    let wrong = report["players"]
        .as_array()
        .unwrap()
        .iter()
        .find(|player| player["name"] == "wrong");
    assert_eq!(wrong.unwrap()["points"], 0.0, "an illegal move loses");

    let read = Command::new(&python)
        .args(["-c", READER])
        .arg(folder.join("games.pgn"))
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert_eq!(String::from_utf8(read.stdout).unwrap().trim(), "12 4");
}

/// An engine with OpenSpiel's rules of Othello that plays random legal moves; with an argument it plays an illegal move after that number of
/// moves. It refuses moves that OpenSpiel does not allow.
const GTP_ENGINE: &str = "
import pyspiel, random, sys
random.seed(7)
mistake = int(sys.argv[1]) if len(sys.argv) > 1 else None
game, colours = pyspiel.load_game('othello'), ['black', 'white']
for line in sys.stdin:
    name, *words = line.split()
    answer = '= '
    if name == 'clear_board':
        state = game.new_initial_state()
    elif name in ('play', 'genmove'):
        if state.legal_actions() == [64]:
            state.apply_action(64)
        legal = {state.action_to_string(action): action for action in state.legal_actions()}
        if state.is_terminal() or words[0] != colours[state.current_player()]:
            answer = '? wrong colour'
        elif name == 'genmove':
            move = random.choice(list(legal))
            state.apply_action(legal[move])
            wrong = mistake is not None and state.move_number() > mistake
            answer = '= ' + ('A9' if wrong else move.upper())
        elif words[1] in legal:
            state.apply_action(legal[words[1]])
        else:
            answer = '? illegal move'
    elif name == 'quit':
        break
    elif name != 'boardsize':
        answer = '? unknown command'
    print(answer + '\\n', flush=True)
";

#[test]
fn another_program_plays_othello() {
    let Some(python) = test_support::python("minuet") else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("engine.py");
    fs::write(&script, GTP_ENGINE).unwrap();
    let engine = |arguments: &str| format!("gtp:{} {} {arguments}", python.display(), script.display());
    let folder = home.path().join("match");
    let players = [
        "uct,visits=10",
        &format!("{},name=any", engine("")),
        &format!("{},name=wrong", engine("40")),
    ];
    let arguments = [&["--game", "othello", "--games", "6"][..], &players].concat();
    let report = object(&minuet(&folder, &arguments).output().unwrap());
    assert_eq!(report["games"], serde_json::json!([18, 18]));
    assert!(
        report["endings"]["illegal-move"].as_u64().unwrap() > 0,
        "{report}"
    );

    // An engine that refuses a command ends the match with its answer.
    let refusing = "import sys\nfor line in sys.stdin: print('? busy\\n', flush=True)";
    fs::write(&script, refusing).unwrap();
    let output = minuet(
        &home.path().join("refused"),
        &["--game", "othello", &engine(""), "random"],
    )
    .output()
    .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("refused `boardsize 8`: busy"),
        "{said}"
    );
}
