//! Games as SGF: files of other programs, own files read again, faults.

use games::{
    Game,
    go::{
        Go, Rules,
        sgf::{self, Record},
    },
};
use test_support::fuzz;

use super::{plain, play, set_up};
use crate::shared::{drawer, legal};

fn read(text: &str) -> Result<Record, String> {
    sgf::read(text, &Rules::default()).map_err(|error| error.to_string())
}

#[test]
fn the_main_line_of_a_file_is_read() {
    let text = "\u{feff}; saved by a program (;FF[3]GaMe[1]SZ[9:9]KM[6.5]PB[A \\] \\\\ B]PW[C]BR[3d]WR[2150]RE[W+R]C[a (comment);B[aa\\]]
        ;B[ee];W[ec](;B[gc](;W[];B[tt])(;W[aa]))(;B[aa];W[ab]))";
    let record = read(text).unwrap();
    // The rank of ec is the third from the top.
    assert_eq!(record.actions, [40, 58, 60, 81, 81]);
    assert_eq!(
        (record.rules.size, record.rules.komi, record.rules.early_end),
        (9, 6.5, false)
    );
    assert_eq!(
        (record.names, record.ranks, record.result),
        (
            ["A ] \\ B".into(), "C".into()],
            ["3d".into(), "2150".into()],
            "W+R".into()
        )
    );
    assert_eq!(record.position, None);
}

/// The first text is what GNU Go 3.8 prints (`printsgf`) after a fixed handicap of two stones and White's move.
#[test]
fn stones_are_set_before_the_first_move() {
    let text = "(;GM[1]FF[4]\nSZ[9]\nGN[GNU Go 3.8 load and print]\nKM[0.5]HA[2]RU[Chinese]AP[GNU Go:3.8]AW[ee]\nAB[gc][cg]\nPL[B]\n)\n";
    let record = read(text).unwrap();
    let position = record.position.unwrap();
    assert_eq!(
        (position.matches('X').count(), position.matches('O').count()),
        (3, 1)
    );
    assert!(position.ends_with(" X 0 -") && record.rules.komi == 0.5);
    // A rectangle of points, one of them removed again; White's move tells who begins.
    let record = read("(;SZ[5]AB[aa:cb]AE[bb];W[ee])").unwrap();
    assert_eq!(record.position.unwrap(), "---------------X-X--XXX-- O 0 -");
}

#[test]
fn own_files_are_read_as_they_were_written() {
    for (size, seed) in [(2, 1), (5, 2), (9, 3), (19, 4)] {
        let rules = Rules {
            komi: -3.5,
            ..plain(size)
        };
        let start = Go::start(&rules, None).unwrap();
        let (mut state, mut random, mut actions) = (start.clone(), drawer(seed), Vec::new());
        while state.outcome().is_none() && actions.len() < 120 {
            let choice = legal(&state);
            actions.push(choice[random(choice.len())]);
            state.play(actions[actions.len() - 1]).unwrap();
        }
        let text = sgf::write(&start, &actions, ["a]b\\", "ö"]).unwrap();
        let record = read(&text).unwrap();
        assert_eq!(
            (record.rules, record.position, record.actions),
            (rules, None, actions)
        );
        assert_eq!(record.names, ["a]b\\", "ö"]);
    }
    let start = set_up(plain(5), &[".....", ".XO..", ".....", ".....", "....X"], 'O').unwrap();
    let record = read(&sgf::write(&start, &[0, 25, 25], ["", ""]).unwrap()).unwrap();
    assert_eq!(
        (record.position, record.result),
        (Some(start.position()), "0".into())
    );
    assert!(sgf::write(&start, &[4], ["", ""]).is_err());
    let mut state = Go::start(&plain(3), None).unwrap();
    play(&mut state, "b2 pass");
    let text = sgf::write(&state, &[9], ["", ""]).unwrap();
    assert!(text.contains("RE[B+9]AB[bb]PL[B]\n;B[])"), "{text}");
}

#[test]
fn komi_in_hundredths_is_read() {
    for (text, komi) in [
        ("375", 7.5),
        ("650", 6.5),
        ("750", 7.5),
        ("-650", -6.5),
        ("361", 361.0),
    ] {
        let Record { rules, .. } = read(&format!("(;SZ[19]KM[{text}])")).unwrap();
        assert_eq!(rules.komi, komi, "KM[{text}]");
    }
}

#[test]
fn faults_are_sentences() {
    for (text, expected) in [
        ("", "there is no `(`"),
        ("(;SZ[9]", "there is no `)`"),
        ("(;C[x", "a value has no end"),
        ("(;[x])", "a value has no property"),
        ("(;?)", "after 2 bytes: a letter is outside"),
        ("(;GM[2])", "GM is \"2\""),
        ("(;SZ[9:7])", "SZ[9:7]: a size is one number of lines"),
        ("(;SZ[25])", "`size` is 25; 2 to 19 are possible"),
        ("(;SZ[9]KM[7.25])", "`komi` is 7.25"),
        ("(;SZ[9]KM[x])", "KM[x]: komi is a number"),
        ("(;SZ[9]AB[jj])", "AB[jj]: the point is not on the board"),
        ("(;SZ[9]PL[X])", "PL[X]: the player is B or W"),
        ("(;SZ[2]AB[aa][ab][ba][bb])", "a chain has no liberty"),
        (
            "(;SZ[9];B[aa];AW[bb])",
            "AW[bb]: stones and the player can be set before",
        ),
        (
            "(;SZ[9];B[ee];W[ee])",
            "move 2 (W[ee]) is not legal: the point has a stone",
        ),
        (
            "(;SZ[9];B[ee];B[ef])",
            "move 2 (B[ef]) is not legal: the other player is to move",
        ),
        (
            "(;SZ[9];B[e])",
            "move 1 (B[e]) is not legal: the point is not on the board",
        ),
        (
            "(;SZ[9];B[];W[];B[aa])",
            "move 3 (B[aa]) is not legal: the game is over",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn any_text_is_read_or_refused() {
    let text = b"(;GM[1]FF[4]SZ[5]KM[0.5]AB[aa:bb]AE[ab]PL[W]PB[x\\]];W[cc](;B[];W[dd])(;B[ee]))";
    fuzz("SGF", &[text], |bytes| {
        std::str::from_utf8(bytes).is_ok_and(|text| read(text).is_ok())
    });
}
