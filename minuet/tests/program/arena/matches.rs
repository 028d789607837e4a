//! `minuet arena` as a process: a killed match continues, other engines can play, and other programs can read the games.

use std::{
    ffi::OsStr,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::program::{fails, minuet, printed, printed_json};

const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns `minuet arena` with these arguments, separated by spaces, and these players.
fn arena<S: AsRef<OsStr>>(folder: &Path, words: &str, players: &[S]) -> Command {
    let mut command = minuet(&format!("arena {words} --json --folder"));
    command.arg(folder).args(players);
    command
}

fn lines(folder: &Path) -> usize {
    fs::read_to_string(folder.join("games.jsonl")).map_or(0, |text| text.lines().count())
}

#[test]
fn a_match_that_is_killed_continues() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("match");
    let match_of = |folder: &Path, games: u64| {
        let words = format!("--game othello --games {games} --games-at-once 2");
        arena(folder, &words, &["uct,visits=400", "uct,visits=100"])
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
    let report = printed_json(&mut match_of(&folder, games));
    assert_eq!(report["ended"], "complete");
    assert_eq!(report["games"], json!([games, games]));
    assert_eq!(lines(&folder) as u64, games, "no game is played twice");

    // Uniform players depend on their seeds alone, so an uninterrupted match has the same games.
    let whole = home.path().join("whole");
    let truth = printed_json(&mut match_of(&whole, games));
    assert_eq!(report["pairings"], truth["pairings"]);
    let score = report["pairings"][0]["estimate"]["score"].as_f64().unwrap();
    assert!(score > 0.6, "score with four times the visits: {score}");
    let text = |folder: &Path| fs::read_to_string(folder.join("games.txt")).unwrap();
    assert_eq!(text(&folder), text(&whole));
}

#[test]
fn bad_usage_and_failure_have_different_exit_codes() {
    let home = tempfile::tempdir().unwrap();
    for (code, words, says) in [
        (2, "chess uct", "2 values required"),
        (2, "chess uct,visit=3 random", "no key `visit`"),
        (2, "shogi uct random", "there is no game"),
        (2, "go:99 uct random", "2 to 19"),
        (2, "chess uct random --games 3", "even number"),
        (
            2,
            "chess uct random --sprt elo0=5,elo1=0",
            "elo0 must be below elo1",
        ),
        (1, "chess runs/nowhere random", "cannot read runs/nowhere"),
        (1, "othello perfect random", "connect-four only"),
        (1, "chess uct uct", "two players are called `uct`"),
        (
            1,
            "chess uci:/nowhere/engine random",
            "cannot start the engine /nowhere/engine",
        ),
        (
            1,
            "chess gtp:/nowhere/engine random",
            "GTP has no moves for chess",
        ),
    ] {
        let words = format!("--game {words}");
        fails(&mut arena(home.path(), &words, &[""; 0]), code, says);
    }
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
    let players = [
        "uct,visits=30".to_owned(),
        engine("", "any"),
        engine("6", "wrong"),
    ];
    let report = printed_json(&mut arena(&folder, "--game chess --games 4", &players));
    assert_eq!(report["games"], json!([12, 12]));
    let illegal = report["endings"]["illegal-move"].as_u64();
    assert!(illegal > Some(0), "{report}");
    let mut players = report["players"].as_array().unwrap().iter();
    let wrong = players.find(|player| player["name"] == "wrong");
    assert_eq!(wrong.unwrap()["points"], 0.0, "an illegal move loses");

    let mut read = Command::new(&python);
    let read = printed(read.args(["-c", READER]).arg(folder.join("games.pgn")));
    assert_eq!(read.trim(), "12 4");
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
        "uct,visits=10".to_owned(),
        format!("{},name=any", engine("")),
        format!("{},name=wrong", engine("40")),
    ];
    let report = printed_json(&mut arena(&folder, "--game othello --games 6", &players));
    assert_eq!(report["games"], json!([18, 18]));
    let illegal = report["endings"]["illegal-move"].as_u64();
    assert!(illegal > Some(0), "{report}");

    // An engine that refuses a command ends the match with its answer.
    let refusing = "import sys\nfor line in sys.stdin: print('? busy\\n', flush=True)";
    fs::write(&script, refusing).unwrap();
    let players = [engine(""), "random".into()];
    let mut refused = arena(&home.path().join("refused"), "--game othello", &players);
    fails(&mut refused, 1, "refused `boardsize 8`: busy");
}
